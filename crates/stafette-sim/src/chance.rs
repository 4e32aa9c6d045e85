//! Chance: everything that could have gone otherwise, drawn from one number.

/// A stream of numbers that a seed decides (SplitMix64).
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Chance(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ 0x9e37_79b9_7f4a_7c15)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to just below `end`; 0 when that leaves nothing.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        let drawn = self.next();
        if end == 0 { 0 } else { drawn % end }
    }

    /// From `low` to `high`, both included.
    pub(crate) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.below(high.saturating_sub(low) + 1)
    }

    /// The same for the small numbers of a workflow.
    pub(crate) fn count(&mut self, low: u32, high: u32) -> u32 {
        u32::try_from(self.between(low.into(), high.into())).unwrap_or(high)
    }

    /// Whether something happens that happens so often in a hundred.
    pub(crate) fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// The same in a thousand.
    pub(crate) fn per_mille(&mut self, share: u64) -> bool {
        self.below(1000) < share
    }

    /// A place in a list of that length.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).unwrap_or(0)
    }

    /// One of several.
    pub(crate) fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        let index = self.index(from.len());
        from.get(index)
    }

    /// One of some, which are not none.
    pub(crate) fn one<T: Copy, const N: usize>(&mut self, from: [T; N]) -> T {
        from[self.index(N)]
    }
}
