//! Turns bytes into text, cut where the screen is worth a search.

/// The beginning of the sequence that opens (`h`) or closes (`l`) a synchronized update.
const SYNCHRONIZED: &[u8] = b"\x1b[?2026";

/// The limit in bytes after which a synchronized update counts as never closed.
const UPDATE_LIMIT: usize = 64 * 1024;

/// The moment at which the screen is complete enough to be searched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Whole {
    /// Whenever a row is done, and at the end.
    Throughout,
    /// At the end only: a synchronized update closes there.
    AtEnd,
    /// The screen must not be searched yet.
    No,
}

/// A piece of the stream.
#[derive(PartialEq, Debug)]
pub(super) struct Update {
    /// The piece as text; bytes that are not UTF-8 are replaced.
    pub(super) text: String,
    /// The number of bytes of the stream that it stands for.
    pub(super) bytes: usize,
    /// The moment at which to search the screen.
    pub(super) whole: Whole,
}

/// Turns bytes into text, wherever they are cut.
#[derive(Default, Debug)]
pub(super) struct Decoder {
    utf8: Utf8,
    /// The length of the part of [`SYNCHRONIZED`] at the end of the stream.
    matched: usize,
    /// The number of bytes of the open update; `None` when none is open.
    open: Option<usize>,
}

impl Decoder {
    /// The updates that `bytes` consists of.
    pub(super) fn updates(&mut self, bytes: &[u8]) -> Vec<Update> {
        let mut updates = Vec::new();
        let mut from = 0;
        for (at, byte) in bytes.iter().enumerate() {
            if self.matched < SYNCHRONIZED.len() {
                self.matched = match *byte {
                    byte if byte == SYNCHRONIZED[self.matched] => self.matched + 1,
                    byte => usize::from(byte == SYNCHRONIZED[0]),
                };
                continue;
            }
            self.matched = usize::from(*byte == SYNCHRONIZED[0]);
            if matches!(byte, b'h' | b'l') {
                updates.push(self.update(&bytes[from..=at], Whole::AtEnd));
                from = at + 1;
                self.open = (*byte == b'h').then_some(0);
            }
        }
        if from < bytes.len() {
            updates.push(self.update(&bytes[from..], Whole::No));
        }
        updates
    }

    /// `within` says when to search if a synchronized update is open.
    fn update(&mut self, bytes: &[u8], within: Whole) -> Update {
        let mut whole = Whole::Throughout;
        if let Some(size) = &mut self.open {
            *size = size.saturating_add(bytes.len());
            if *size < UPDATE_LIMIT {
                whole = within;
            }
        }
        Update { text: self.utf8.text(bytes), bytes: bytes.len(), whole }
    }

    /// The number of bytes that wait for the rest of their character.
    pub(super) fn pending(&self) -> usize {
        self.utf8.partial.len()
    }
}

/// Turns bytes into characters, wherever they are cut; bytes that are not UTF-8 are replaced.
#[derive(Default, Debug)]
pub(crate) struct Utf8 {
    /// The first bytes of an incomplete character.
    partial: Vec<u8>,
}

impl Utf8 {
    /// Returns the characters that are complete with these bytes.
    pub(crate) fn text(&mut self, bytes: &[u8]) -> String {
        let mut whole = std::mem::take(&mut self.partial);
        whole.extend_from_slice(bytes);
        let mut text = String::with_capacity(whole.len());
        let mut rest = whole.as_slice();
        loop {
            let error = match std::str::from_utf8(rest) {
                Ok(valid) => {
                    text.push_str(valid);
                    return text;
                }
                Err(error) => error,
            };
            let (valid, after) = rest.split_at(error.valid_up_to());
            text.push_str(&String::from_utf8_lossy(valid));
            let Some(bad) = error.error_len() else {
                self.partial = after.to_vec();
                return text;
            };
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &after[bad..];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_02_characters_survive_any_cut() {
        let text = "aü—🦀\u{fffd}z";
        for size in 1..=5 {
            let mut decoder = Decoder::default();
            let read: String = text
                .as_bytes()
                .chunks(size)
                .flat_map(|piece| decoder.updates(piece))
                .map(|update| update.text)
                .collect();
            assert_eq!(read, text);
        }
        let noise = Decoder::default().updates(b"a\xff\xc3(b");
        assert_eq!(noise[0].text, "a\u{fffd}\u{fffd}(b");
    }

    #[test]
    fn s1_02_a_synchronized_update_is_looked_at_when_it_is_closed() {
        let stream = b"a\x1b[?2026hb\x1b[?2026lc";
        let when = |size: usize| -> Vec<(String, Whole)> {
            let mut decoder = Decoder::default();
            let updates = stream
                .chunks(size)
                .flat_map(|piece| decoder.updates(piece))
                .map(|update| (update.text, update.whole))
                .collect();
            assert_eq!(decoder.open, None);
            updates
        };
        let expected = [
            ("a\x1b[?2026h", Whole::Throughout),
            ("b\x1b[?2026l", Whole::AtEnd),
            ("c", Whole::Throughout),
        ];
        assert_eq!(when(100), expected.map(|(text, whole)| (text.to_owned(), whole)));
        let (text, whole) = &when(1)[9];
        assert_eq!((text.as_str(), *whole), ("b", Whole::No));
    }

    #[test]
    fn s1_02_an_update_that_nobody_closes_does_not_blind_us() {
        let mut decoder = Decoder::default();
        decoder.updates(b"\x1b[?2026h");
        assert_eq!(decoder.updates(b"x")[0].whole, Whole::No);
        let much = vec![b'x'; UPDATE_LIMIT];
        assert_eq!(decoder.updates(&much)[0].whole, Whole::Throughout);
    }
}
