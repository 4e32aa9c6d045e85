//! Values in one table, with all of which a text is compared at once.

/// Values in order, so that those that begin in the same way are neighbours.
#[derive(Clone, Default)]
pub(super) struct Values(Vec<Box<[u8]>>);

impl Values {
    /// Inserts a value; false if it was there.
    pub(super) fn insert(&mut self, value: &[u8]) -> bool {
        let place = self.0.binary_search_by(|known| (**known).cmp(value));
        if let Err(place) = place {
            self.0.insert(place, value.into());
        }
        place.is_err()
    }

    /// True if this value is among them.
    pub(super) fn has(&self, value: &[u8]) -> bool {
        self.0.binary_search_by(|known| (**known).cmp(value)).is_ok()
    }

    /// All values, of which nothing was read so far.
    pub(super) fn all(&self) -> Begun<'_> {
        Begun { values: &self.0, length: 0 }
    }

    /// Returns the lengths of the values that a text begins with, shorter ones first.
    pub(super) fn lengths(&self, text: &[u8]) -> impl Iterator<Item = usize> {
        let read = text.iter().scan(self.all(), |begun, byte| {
            *begun = begun.then(&[*byte])?;
            Some(*begun)
        });
        read.filter_map(|begun| begun.whole())
    }
}

/// The values that begin with what was read so far.
#[derive(Clone, Copy)]
pub(super) struct Begun<'v> {
    values: &'v [Box<[u8]>],
    length: usize,
}

impl Begun<'_> {
    /// Keeps those that continue with these bytes, if there are any.
    pub(super) fn then(mut self, bytes: &[u8]) -> Option<Self> {
        for byte in bytes {
            let next = |value: &[u8]| {
                #[cfg(test)]
                super::tests::steps::count();
                value.get(self.length).copied()
            };
            // Nearly always all of them continue with it, or none.
            let ends = [self.values.first()?, self.values.last()?].map(|value| next(value));
            if ends[0] > Some(*byte) || ends[1] < Some(*byte) {
                return None;
            }
            if ends != [Some(*byte); 2] {
                let first = self.values.partition_point(|value| next(value) < Some(*byte));
                let rest = &self.values[first..];
                let count = rest.partition_point(|value| next(value) == Some(*byte));
                self.values = &rest[..count];
            }
            self.length += 1;
        }
        (!self.values.is_empty()).then_some(self)
    }

    /// The length of the value that ends here, if one does.
    pub(super) fn whole(&self) -> Option<usize> {
        // It stands in front of those that continue.
        self.values.first().filter(|value| value.len() == self.length).map(|_| self.length)
    }
}
