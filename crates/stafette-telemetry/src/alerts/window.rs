//! A window of time that ends now, in a bounded number of slices.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};
use stafette_core::{Millis, Time};

/// Number of slices of a window: an event leaves the window at most one slice late.
const SLICES: u64 = 60;

/// The slices of a window, the oldest first.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub(super) struct Window<T> {
    /// Length of a slice, in milliseconds.
    length: u64,
    slices: VecDeque<(u64, T)>,
}

impl<T: Default> Window<T> {
    /// Changes the slice that contains a moment.
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

    /// Returns the slices within the window; older ones are dropped.
    pub(super) fn within(&mut self, now: Time, within: Millis) -> impl Iterator<Item = &T> {
        self.fit(within);
        let oldest = self.slice(now).saturating_sub(SLICES);
        while self.slices.front().is_some_and(|(slice, _)| *slice < oldest) {
            self.slices.pop_front();
        }
        self.slices.iter().map(|(_, held)| held)
    }

    /// Starts anew if the length of the window changes: the slices cannot be split.
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
