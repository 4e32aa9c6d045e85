//! The newest events, held for followers.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::{PAGE, Seen};

/// The maximum number of events that are held, and of their bytes.
const EVENTS: usize = 256;
const BYTES: usize = 4 << 20;

/// The maximum number of pages that may be held before the events that precede them.
const EARLY: usize = 64;

/// The newest events, without a gap.
#[derive(Debug)]
pub(super) struct Recent {
    /// All events after this position are here, as far as they are known.
    after: u64,
    seen: VecDeque<Arc<Seen>>,
    bytes: usize,
    /// Events that arrived before their predecessors, by the position that they follow: runs store
    /// together, and announce in any order.
    early: BTreeMap<u64, Vec<Arc<Seen>>>,
}

impl Recent {
    /// An empty buffer that begins after a position.
    pub(super) fn after(after: u64) -> Self {
        Recent { after, seen: VecDeque::new(), bytes: 0, early: BTreeMap::new() }
    }

    fn last(&self) -> u64 {
        self.seen.back().map_or(self.after, |seen| seen.position)
    }

    /// Some of the events after `cursor`, when they are here.
    pub(super) fn page(&self, cursor: u64) -> Option<Vec<Arc<Seen>>> {
        if cursor < self.after || cursor >= self.last() {
            return None;
        }
        let first = self.seen.partition_point(|seen| seen.position <= cursor);
        Some(self.seen.range(first..).take(PAGE).cloned().collect())
    }

    /// Adds the events that were stored right after `before`, from their writer.
    pub(super) fn give(&mut self, before: u64, page: Vec<Arc<Seen>>) {
        if before > self.last() {
            // When too many are early, the missing ones have to be read from the store, and these
            // with them.
            let early = self.early.values().map(|page| bytes(page)).sum::<usize>();
            if self.early.len() < EARLY && early + bytes(&page) <= BYTES {
                self.early.insert(before, page);
            }
            return;
        }
        self.add(before, page);
        self.close_up();
    }

    /// Adds events that were read right after `cursor`.
    pub(super) fn read(&mut self, cursor: u64, page: &[Arc<Seen>]) {
        let Some(end) = page.last().map(|seen| seen.position) else { return };
        // Far behind: no other reader needs these.
        if end <= self.last() || cursor < self.after {
            return;
        }
        if cursor > self.last() {
            let early = std::mem::take(&mut self.early);
            *self = Recent { early, ..Recent::after(cursor) };
        }
        let new = page.iter().filter(|seen| seen.position > self.last());
        self.add(self.last(), new.cloned().collect());
        self.close_up();
    }

    /// Adds the events that are not early any more.
    fn close_up(&mut self) {
        while let Some(early) = self.early.first_entry()
            && *early.key() <= self.seen.back().map_or(self.after, |seen| seen.position)
        {
            let (before, page) = early.remove_entry();
            self.add(before, page);
        }
    }

    fn add(&mut self, before: u64, page: Vec<Arc<Seen>>) {
        // A reader has added it already.
        if before != self.last() {
            return;
        }
        self.bytes += bytes(&page);
        self.seen.extend(page);
        while self.seen.len() > EVENTS || self.bytes > BYTES {
            let Some(oldest) = self.seen.pop_front() else { break };
            self.after = oldest.position;
            self.bytes -= oldest.bytes;
        }
    }
}

fn bytes(page: &[Arc<Seen>]) -> usize {
    page.iter().map(|seen| seen.bytes).sum()
}

#[cfg(test)]
mod tests {
    use stafette_core::{RunId, Time};
    use stafette_store::{Entry, Stored};
    use uuid::Uuid;

    use super::*;

    fn page(positions: std::ops::RangeInclusive<u64>, bytes: usize) -> Vec<Arc<Seen>> {
        let seen = |position| {
            let (name, body) = ("run_paused".to_owned(), " ".repeat(bytes));
            let entry = Entry { seq: position, at: Time(0), name, handoff: None, body };
            Arc::new(Seen::from(Stored { position, run: RunId(Uuid::nil()), entry }))
        };
        positions.map(seen).collect()
    }

    fn positions(recent: &Recent, cursor: u64) -> Option<Vec<u64>> {
        recent.page(cursor).map(|page| page.iter().map(|seen| seen.position).collect())
    }

    #[test]
    fn what_one_has_read_the_others_need_not_read() {
        let mut recent = Recent::after(0);
        recent.read(7, &page(8..=9, 1));
        recent.read(9, &page(12..=12, 1));
        assert_eq!(positions(&recent, 7), Some(vec![8, 9, 12]));
        assert_eq!(positions(&recent, 9), Some(vec![12]));
        assert_eq!(positions(&recent, 12), None, "nobody has read on");
        assert_eq!(positions(&recent, 6), None, "something may be missing");
        // No reader has read the events in between.
        recent.read(20, &page(21..=21, 1));
        assert_eq!((positions(&recent, 12), positions(&recent, 20)), (None, Some(vec![21])));
        recent.read(0, &page(1..=2, 1));
        assert_eq!(positions(&recent, 20), Some(vec![21]), "one far behind is no news");
    }

    #[test]
    fn what_is_given_comes_in_its_order_however_it_was_given() {
        let mut recent = Recent::after(4);
        recent.give(6, page(7..=8, 1));
        recent.give(8, page(9..=9, 1));
        assert_eq!(positions(&recent, 4), None, "5 and 6 may come first");
        recent.give(4, page(5..=6, 1));
        assert_eq!(positions(&recent, 4), Some(vec![5, 6, 7, 8, 9]));
        recent.give(6, page(7..=8, 1));
        assert_eq!(positions(&recent, 6), Some(vec![7, 8, 9]), "nothing is there twice");
    }

    #[test]
    fn what_nobody_gives_is_read_and_the_rest_is_there() {
        let mut recent = Recent::after(0);
        recent.give(3, page(4..=5, 1));
        recent.give(5, page(6..=6, 1));
        // A reader found part of the early ones, too.
        recent.read(0, &page(1..=4, 1));
        assert_eq!(positions(&recent, 0), Some(vec![1, 2, 3, 4]));
        recent.read(4, &page(5..=5, 1));
        assert_eq!(positions(&recent, 4), Some(vec![5, 6]));
        for before in 10..200 {
            recent.give(before, page(before + 1..=before + 1, 1));
        }
        assert_eq!(recent.early.len(), EARLY);
        recent.give(8, page(9..=9, BYTES));
        assert!(!recent.early.contains_key(&8));
    }

    #[test]
    fn only_so_much_is_held_and_what_is_held_has_no_gap() {
        let mut recent = Recent::after(0);
        recent.read(0, &page(1..=3000, 1));
        assert_eq!((recent.after, recent.seen.len()), (3000 - EVENTS as u64, EVENTS));
        recent.give(3000, page(3001..=3001, BYTES - 5));
        assert_eq!(recent.seen.len(), 6, "the largest leaves room for a few");
        assert_eq!(positions(&recent, 2994), None);
        assert_eq!(positions(&recent, 2995).map(|page| page.len()), Some(6));
        recent.read(3001, &page(3002..=3002, BYTES + 1));
        assert_eq!((recent.seen.len(), recent.after, recent.last()), (0, 3002, 3002));
    }
}
