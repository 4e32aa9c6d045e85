//! Checksums of stored rows: each is over everything that its row says.
//!
//! They find what a disk, a file system or a stray write did to a row, not what somebody did on
//! purpose. Rows of older versions have none, and count as unchecked.

use stafette_model::RunId;

use crate::{Entry, HandoffRow, LockEntry, LockRow, RunRow, Snapshot};

/// 64-bit FNV-1a over length-prefixed parts, eight bytes at a time. Each step is reversible, so that
/// one changed word always changes the sum.
struct Sum(u64);

impl Sum {
    fn of(run: RunId) -> Self {
        Sum::new().bytes(run.0.as_bytes())
    }

    fn new() -> Self {
        Sum(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        let (words, rest) = bytes.as_chunks::<8>();
        let word = |sum: Self, word: &[u8; 8]| sum.number(u64::from_le_bytes(*word));
        let sum = words.iter().fold(self.number(bytes.len() as u64), word);
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        sum.number(u64::from_le_bytes(last))
    }

    fn number(self, number: u64) -> Self {
        // The turn brings the high bits, which a product only moves up, back into the next step.
        Sum((self.0 ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29))
    }

    fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    fn signed(self, number: i64) -> Self {
        self.number(number.cast_unsigned())
    }

    fn maybe<T>(self, value: Option<T>, add: impl FnOnce(Self, T) -> Self) -> Self {
        match value {
            None => self.number(0),
            Some(value) => add(self.number(1), value),
        }
    }

    /// The sum as databases keep it.
    fn done(self) -> i64 {
        self.0.cast_signed()
    }
}

pub(crate) fn event(run: RunId, entry: &Entry) -> i64 {
    Sum::of(run)
        .number(entry.seq)
        .signed(entry.at.0)
        .text(&entry.name)
        .maybe(entry.handoff, |sum, id| sum.number(u64::from(id.0)))
        .text(&entry.body)
        .done()
}

pub(crate) fn snapshot(run: RunId, snapshot: &Snapshot) -> i64 {
    Sum::of(run).number(snapshot.seq).text(&snapshot.body).done()
}

pub(crate) fn run(row: &RunRow) -> i64 {
    Sum::of(row.run)
        .text(&row.workflow)
        .text(&row.title)
        .text(&row.status)
        .maybe(row.waiting_on.as_deref(), Sum::text)
        .number(row.seq)
        .signed(row.created_at.0)
        .signed(row.updated_at.0)
        .maybe(row.finished_at, |sum, at| sum.signed(at.0))
        .text(&row.body)
        .done()
}

pub(crate) fn handoff(row: &HandoffRow) -> i64 {
    Sum::of(row.run)
        .number(u64::from(row.id.0))
        .text(&row.from)
        .text(&row.to)
        .text(&row.reason)
        .text(&row.state)
        .number(u64::from(row.question))
        .signed(row.opened_at.0)
        .signed(row.updated_at.0)
        .maybe(row.closed_at, |sum, at| sum.signed(at.0))
        .text(&row.body)
        .done()
}

pub(crate) fn lock(row: &LockRow) -> i64 {
    Sum::new().number(row.id).number(u64::from(row.held)).text(&row.body).done()
}

pub(crate) fn lock_entry(entry: &LockEntry) -> i64 {
    Sum::new().number(entry.seq).signed(entry.at.0).text(&entry.name).text(&entry.body).done()
}

pub(crate) fn lock_book(version: u64, fence: u64) -> i64 {
    Sum::new().number(version).number(fence).done()
}

#[cfg(test)]
mod tests {
    use stafette_model::{HandoffId, Time};

    use super::*;
    use crate::conformance;

    fn entry() -> Entry {
        let (name, body) = ("turn_ordered".to_owned(), r#"{"turn":1}"#.to_owned());
        Entry { seq: 7, at: Time(1_700_000_000_000), name, handoff: Some(HandoffId(3)), body }
    }

    #[test]
    fn b_01_an_events_checksum_stays_what_it_was() {
        // It is in every store: another one would call all of them damaged.
        assert_eq!(event(conformance::run(1), &entry()), 4_364_425_350_756_478_142);
    }

    #[test]
    fn b_01_everything_that_a_row_says_counts() {
        let (run, plain) = (conformance::run(1), entry());
        let others = [
            Entry { seq: 8, ..plain.clone() },
            Entry { at: Time(0), ..plain.clone() },
            Entry { name: "turn_ordere".to_owned(), ..plain.clone() },
            Entry { handoff: None, ..plain.clone() },
            Entry { body: r#"{"turn":2}"#.to_owned(), ..plain.clone() },
        ];
        for other in others {
            assert_ne!(event(run, &plain), event(run, &other), "{other:?}");
        }
        assert_ne!(event(run, &plain), event(conformance::run(2), &plain));
    }
}
