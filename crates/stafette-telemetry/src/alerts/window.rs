//! What happened within a span of time that ends now, in a bounded number of slices.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use stafette_core::{Millis, Time};

/// A window has so many slices: what leaves it leaves it a slice late at most.
const SLICES: u64 = 60;

/// The slices of a window, the oldest first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Window<T> {
    /// How long a slice is, in milliseconds.
    length: u64,
    slices: VecDeque<(u64, T)>,
}

impl<T: Default> Window<T> {
    /// Changes the slice of a moment.
    pub(super) fn at(&mut self, at: Time, within: Millis, change: impl FnOnce(&mut T)) {
        self.fit(within);
        let slice = self.slice(at);
        let place = self.slices.partition_point(|(known, _)| *known < slice);
        if self.slices.get(place).is_none_or(|(known, _)| *known != slice) {
            self.slices.insert(place, (slice, T::default()));
        }
        if let Some((_, held)) = self.slices.get_mut(place) {
            change(held);
        }
        while self.slices.len() as u64 > SLICES + 1 {
            self.slices.pop_front();
        }
    }

    /// The slices that lie within; older ones are forgotten.
    pub(super) fn within(&mut self, now: Time, within: Millis) -> impl Iterator<Item = &T> {
        self.fit(within);
        let oldest = self.slice(now).saturating_sub(SLICES);
        while self.slices.front().is_some_and(|(slice, _)| *slice < oldest) {
            self.slices.pop_front();
        }
        self.slices.iter().map(|(_, held)| held)
    }

    /// A window of another length begins anew: what is in the slices cannot be cut.
    fn fit(&mut self, within: Millis) {
        let length = (within.0 / SLICES).max(1);
        if self.length != length {
            (self.length, self.slices) = (length, VecDeque::new());
        }
    }

    fn slice(&self, at: Time) -> u64 {
        u64::try_from(at.0).unwrap_or_default() / self.length.max(1)
    }
}
