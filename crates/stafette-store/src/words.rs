//! Words as an index stores them: lower case, without accents, split as SQLite's `unicode61` splits
//! them, so that both backends find the same.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;

/// Maximum number of words in one search.
const MOST: usize = 32;

/// Number of bytes of a word that are indexed.
const LONGEST: usize = 512;

/// Maximum size of the indexed words of a text, in bytes: half of what a `tsvector` may have.
const ROOM: usize = 512 << 10;

/// Number of words in an excerpt.
const AROUND: usize = 24;

/// A word of a text, and its place.
struct Word {
    text: String,
    place: Range<usize>,
}

fn words(text: &str) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let mut begun = None;
    let inside = |c: char| c.is_alphanumeric() || is_combining_mark(c);
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (begun, inside(c)) {
            (None, true) => begun = Some(at),
            (Some(from), false) => {
                begun = None;
                let word = folded(&text[from..at]);
                if !word.is_empty() {
                    found.push(Word { text: word, place: from..at });
                }
            }
            _ => {}
        }
    }
    found
}

fn folded(word: &str) -> String {
    let plain = word.nfd().filter(|c| !is_combining_mark(*c));
    let mut folded: String = plain.flat_map(char::to_lowercase).nfc().collect();
    folded.truncate(folded.floor_char_boundary(LONGEST));
    folded
}

/// Returns the words of a text in the syntax of a `tsvector`.
pub(crate) fn vector(text: &str) -> String {
    let (mut all, mut room) = (BTreeMap::<String, Vec<usize>>::new(), ROOM);
    for (place, word) in (1..).zip(words(text)) {
        let Some(left) = room.checked_sub(word.text.len() + 8) else { break };
        room = left;
        all.entry(word.text).or_default().push(place);
    }
    let mut vector = String::new();
    for (word, places) in all {
        // Words are letters and digits, so that nothing needs escaping.
        let places: Vec<String> = places.iter().map(usize::to_string).collect();
        let _ = write!(vector, "'{word}':{} ", places.join(","));
    }
    vector
}

/// A search: each typed word, which may be split into several (`a-b`). The last one may be a
/// prefix.
#[derive(Debug)]
pub(crate) struct Query {
    phrases: Vec<Vec<String>>,
}

impl Query {
    /// Parses the typed text; `None` if it contains nothing to search for.
    pub(crate) fn of(typed: &str) -> Option<Self> {
        let phrases = typed
            .split_whitespace()
            .map(|typed| words(typed).into_iter().map(|word| word.text).collect::<Vec<_>>());
        let phrases: Vec<_> = phrases.filter(|phrase| !phrase.is_empty()).take(MOST).collect();
        (!phrases.is_empty()).then_some(Query { phrases })
    }

    /// Returns the search in the syntax of a `tsquery`.
    pub(crate) fn tsquery(&self) -> String {
        let phrases = self.phrases.iter().map(|phrase| {
            let words: Vec<String> = phrase.iter().map(|word| format!("'{word}'")).collect();
            words.join(" <-> ")
        });
        // A phrase binds tighter than `and`.
        phrases.collect::<Vec<_>>().join(" & ") + ":*"
    }

    /// Returns the part of a text with the matches, in brackets.
    pub(crate) fn excerpt(&self, text: &str) -> String {
        let words = words(text);
        let marks = self.marks(&words);
        let first = self.densest(&marks).map_or(0, |part| {
            let beside = AROUND.saturating_sub(part.len()) / 2;
            part.start.saturating_sub(beside).min(words.len().saturating_sub(AROUND))
        });
        let last = (first + AROUND).min(words.len());
        let from = if first == 0 { 0 } else { words[first].place.start };
        let to = if last == words.len() { text.len() } else { words[last - 1].place.end };
        let mut excerpt = String::new();
        excerpt.push_str(if first == 0 { "" } else { "…" });
        let mut at = from;
        for (place, _) in marks {
            let (start, end) = (words[place.start].place.start, words[place.end - 1].place.end);
            if start < at || end > to {
                continue;
            }
            let _ = write!(excerpt, "{}[{}]", &text[at..start], &text[start..end]);
            at = end;
        }
        excerpt.push_str(&text[at..to]);
        excerpt.push_str(if last == words.len() { "" } else { "…" });
        excerpt
    }

    /// Returns the first part of a text, no longer than an excerpt, that matches the most phrases.
    fn densest(&self, marks: &[(Range<usize>, usize)]) -> Option<Range<usize>> {
        let mut best: Option<(usize, Range<usize>)> = None;
        for (n, (begin, _)) in marks.iter().enumerate() {
            let near = marks[n..].iter().take_while(|(it, _)| it.end <= begin.start + AROUND);
            let (mut kinds, mut end) = (BTreeSet::new(), begin.end);
            for (place, phrase) in near {
                if kinds.insert(phrase) {
                    end = end.max(place.end);
                }
            }
            if best.as_ref().is_none_or(|(most, _)| kinds.len() > *most) {
                best = Some((kinds.len(), begin.start..end));
            }
            if kinds.len() == self.phrases.len() {
                break;
            }
        }
        best.map(|(_, part)| part)
    }

    /// Returns the matching words of a text, each with its phrase, in order.
    fn marks(&self, words: &[Word]) -> Vec<(Range<usize>, usize)> {
        let mut marks = Vec::new();
        for first in 0..words.len() {
            for (number, phrase) in self.phrases.iter().enumerate() {
                let Some(there) = words.get(first..first + phrase.len()) else { continue };
                let unfinished = number + 1 == self.phrases.len();
                let fits = |(at, (word, wanted)): (usize, (&Word, &String))| match unfinished
                    && at + 1 == phrase.len()
                {
                    true => word.text.starts_with(wanted),
                    false => word.text == *wanted,
                };
                if there.iter().zip(phrase).enumerate().all(fits) {
                    marks.push((first..first + phrase.len(), number));
                }
            }
        }
        marks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_17_words_have_no_case_no_accents_and_no_signs() {
        let found = |text| words(text).into_iter().map(|word| word.text).collect::<Vec<_>>();
        assert_eq!(
            found("Café, cafe\u{301}; STAFETTE.toml a-b\0c"),
            ["cafe", "cafe", "stafette", "toml", "a", "b", "c"]
        );
        assert_eq!(found("走る 🏃 ' OR 1=1 --"), ["走る", "or", "1", "1"]);
        assert_eq!(found(""), [""; 0]);
        assert_eq!(folded(&"é".repeat(2000)).len(), LONGEST);
    }

    #[test]
    fn b_17_a_text_and_a_question_are_written_as_the_database_reads_them() {
        assert_eq!(vector("To be, or not to be"), "'be':2,6 'not':4 'or':3 'to':1,5 ");
        let query = Query::of("stafette.toml lo\"g").expect("words");
        assert_eq!(query.tsquery(), "'stafette' <-> 'toml' & 'lo' <-> 'g':*");
        assert!(Query::of(" -- * \0 ").is_none());
        assert!(vector(&"many words ".repeat(1 << 17)).len() < 1 << 21);
    }

    #[test]
    fn b_17_an_excerpt_is_the_part_with_the_words() {
        let query = Query::of("login jw").expect("words");
        assert_eq!(query.excerpt("Add JWT login to the café"), "Add [JWT] [login] to the café");
        let long = format!("{} the login is by JWT, they say {}", "a ".repeat(60), "z ".repeat(60));
        let excerpt = query.excerpt(&long);
        assert!(excerpt.contains("[login] is by [JWT], they"), "{excerpt}");
        assert!(excerpt.starts_with('…') && excerpt.ends_with('…'), "{excerpt}");
        assert_eq!(query.excerpt(""), "");
    }
}
