//! The pattern that a lock covers: a name, a path or a glob, relative to the project.
//!
//! `*` matches any part of a name, `?` any one character, `**` any number of folders. Nothing else
//! is special, so `app/[id].tsx` is the file of that name. A pattern without wildcards also covers
//! everything below it: nothing is below a file, and locking a folder means all of it.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_model::as_text;
use thiserror::Error;

use crate::change::folded;

/// The maximum length of a name or glob, in bytes.
pub const LONGEST_PATTERN: usize = 512;

/// A name or a glob in normal form: no `.`, no `..`, no doubled slash.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct Pattern(String);

/// The text is not a valid pattern.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{}` cannot be locked: {flaw}", text.chars().take(80).collect::<String>().escape_debug())]
pub struct BadPattern {
    pub text: String,
    /// The reason why it is invalid.
    pub flaw: &'static str,
}

impl Pattern {
    /// Returns the pattern as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// True if it can match more than one name.
    pub fn is_glob(&self) -> bool {
        self.0.contains(['*', '?'])
    }

    /// True if at least one path matches both patterns.
    pub fn overlaps(&self, other: &Pattern) -> bool {
        meet(&self.parts(), &other.parts())
    }

    /// True if the file at `path` matches on a file system that ignores case and invisible
    /// characters.
    pub fn covers_folded(&self, path: &str) -> bool {
        Pattern(folded(&self.0)).covers(&folded(path))
    }

    /// True if the file at `path`, compared character by character, matches. A path that is not
    /// valid inside the project never matches.
    pub fn covers(&self, path: &str) -> bool {
        normal(path).is_ok_and(|path| {
            let exact: Vec<Part> = path.split('/').map(Part::literal).collect();
            meet(&self.parts(), &exact)
        })
    }

    fn parts(&self) -> Vec<Part> {
        let mut parts: Vec<Part> = Vec::new();
        for segment in self.0.split('/') {
            let part = Part::of(segment);
            // Two in a row mean the same as one.
            if !(part == Part::AnyFolders && parts.last() == Some(&Part::AnyFolders)) {
                parts.push(part);
            }
        }
        if !self.is_glob() {
            parts.push(Part::AnyFolders);
        }
        parts
    }
}

impl FromStr for Pattern {
    type Err = BadPattern;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.len() > LONGEST_PATTERN {
            true => Err(BadPattern { text: text.to_owned(), flaw: "it is longer than 512 bytes" }),
            false => normal(text).map(Pattern),
        }
    }
}

as_text!(Pattern, BadPattern);

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Normalises a text that a person typed.
fn normal(text: &str) -> Result<String, BadPattern> {
    let bad = |flaw| Err(BadPattern { text: text.to_owned(), flaw });
    if text.is_empty() {
        return bad("it is empty");
    }
    if text.chars().any(char::is_control) {
        return bad("it has control characters in it");
    }
    if text.starts_with('/') {
        return bad("it is outside of the project; name it relative to the project's folder");
    }
    let mut segments: Vec<&str> = Vec::new();
    for segment in text.split('/') {
        match segment {
            "" | "." => {}
            ".." => match segments.pop() {
                Some(above) if !above.contains(['*', '?']) => {}
                Some(_) => return bad("`..` after a wildcard leads anywhere"),
                None => return bad("`..` leads out of the project"),
            },
            segment => segments.push(segment),
        }
    }
    // An empty path means the whole project, a trailing slash a whole folder.
    if segments.is_empty() || text.ends_with('/') {
        segments.push("**");
    }
    Ok(segments.join("/"))
}

/// A part of a pattern between two slashes.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    /// `**`: any number of names, including none.
    AnyFolders,
    /// A single name, with or without wildcards.
    Name(Vec<Letter>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Letter {
    /// `*`: any characters, including none.
    Any,
    /// `?`: any one character.
    One,
    /// Exactly this one character.
    Just(char),
}

impl Part {
    fn of(segment: &str) -> Part {
        if segment == "**" {
            return Part::AnyFolders;
        }
        let mut letters: Vec<Letter> = Vec::new();
        for c in segment.chars() {
            let letter = match c {
                '*' => Letter::Any,
                '?' => Letter::One,
                c => Letter::Just(c),
            };
            if !(letter == Letter::Any && letters.last() == Some(&Letter::Any)) {
                letters.push(letter);
            }
        }
        Part::Name(letters)
    }

    fn literal(segment: &str) -> Part {
        Part::Name(segment.chars().map(Letter::Just).collect())
    }
}

/// True if one path can match both patterns. `open` marks elements that match nothing or anything;
/// `same` says whether two elements can match the same element.
fn walk<T>(a: &[T], b: &[T], open: impl Fn(&T) -> bool, same: impl Fn(&T, &T) -> bool) -> bool {
    // reached[j]: some text is matched by both a[..i] and b[..j].
    let mut reached = vec![false; b.len() + 1];
    reached[0] = true;
    for j in 0..b.len() {
        reached[j + 1] = reached[j] && open(&b[j]);
    }
    for step in a {
        let mut next = vec![false; b.len() + 1];
        next[0] = reached[0] && open(step);
        for j in 0..b.len() {
            next[j + 1] = if open(step) {
                // It matches nothing, or one more element that the other matches.
                reached[j + 1] || next[j]
            } else if open(&b[j]) {
                next[j] || reached[j + 1]
            } else {
                reached[j] && same(step, &b[j])
            };
        }
        reached = next;
    }
    reached[b.len()]
}

fn meet(a: &[Part], b: &[Part]) -> bool {
    let same = |a: &Part, b: &Part| match (a, b) {
        (Part::Name(a), Part::Name(b)) => names_meet(a, b),
        _ => true,
    };
    walk(a, b, |part| *part == Part::AnyFolders, same)
}

/// Two names of which one is all wildcards share more than the empty name, which is not a valid
/// name.
fn names_meet(a: &[Letter], b: &[Letter]) -> bool {
    let same = |a: &Letter, b: &Letter| match (a, b) {
        (Letter::Just(a), Letter::Just(b)) => a == b,
        _ => true,
    };
    walk(a, b, |letter| *letter == Letter::Any, same)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn pattern(text: &str) -> Pattern {
        text.parse().expect(text)
    }

    #[test]
    fn b_10_a_glob_conflicts_with_what_it_could_mean() {
        let cases = [
            ("src/**", "src/a.rs", true),
            ("src/**", "src", true),
            ("src/**", "docs/a.md", false),
            ("src", "src/deep/a.rs", true),
            ("src/*.rs", "src/a.rs", true),
            ("src/*.rs", "src/deep/a.rs", false),
            ("src/*.rs", "src/a*", true),
            ("*.rs", "*.md", false),
            ("**/a.rs", "src/**", true),
            ("**/a.rs", "src/*/b.rs", false),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("app/[id].tsx", "app/i.tsx", false),
            ("app/[id].tsx", "app/*.tsx", true),
            ("db:migrations", "db:*", true),
            (".", "any/thing", true),
        ];
        for (a, b, expected) in cases {
            assert_eq!(pattern(a).overlaps(&pattern(b)), expected, "{a} {b}");
            assert_eq!(pattern(b).overlaps(&pattern(a)), expected, "{b} {a}");
        }
        assert!(pattern("src/*.rs").covers("src/*.rs"), "a file may be called so");
        assert!(!pattern("a.rs").covers("*.rs"), "the name of a file is no glob");
    }

    #[test]
    fn s5_04_names_are_plain_and_stay_in_the_project() {
        for (text, expected) in [
            ("./src//a.rs", "src/a.rs"),
            ("src/x/../a.rs", "src/a.rs"),
            ("src/", "src/**"),
            (".", "**"),
            ("a..b", "a..b"),
        ] {
            assert_eq!(pattern(text).as_str(), expected);
            assert_eq!(pattern(expected).as_str(), expected, "it is plain already");
        }
        let long = "x".repeat(LONGEST_PATTERN + 1);
        for text in ["", "/etc/passwd", "../x", "src/../../x", "*/../x", "a\nb", "a\0", &long] {
            assert!(text.parse::<Pattern>().is_err(), "{text:?}");
        }
    }

    /// All combinations of up to six `a` and `b`, joined with `between`.
    fn rows(between: &str) -> Vec<String> {
        let mut rows: Vec<String> = vec!["a".to_owned(), "b".to_owned()];
        let mut from = 0;
        for _ in 1..6 {
            let longer: Vec<String> = rows[from..]
                .iter()
                .flat_map(|row| ["a", "b"].map(|next| format!("{row}{between}{next}")))
                .collect();
            from = rows.len();
            rows.extend(longer);
        }
        rows
    }

    /// A deliberately simple matcher to compare the real one with.
    fn matches(pattern: &str, path: &str) -> bool {
        fn folders(pattern: &[&str], path: &[&str]) -> bool {
            match (pattern.split_first(), path.split_first()) {
                (None, None) => true,
                (Some((&"**", rest)), _) => {
                    (0..=path.len()).any(|skip| folders(rest, &path[skip..]))
                }
                (Some((name, rest)), Some((text, more))) => {
                    letters(name.as_bytes(), text.as_bytes()) && folders(rest, more)
                }
                _ => false,
            }
        }
        fn letters(pattern: &[u8], text: &[u8]) -> bool {
            match (pattern.split_first(), text.split_first()) {
                (None, None) => true,
                (Some((b'*', rest)), _) => {
                    (0..=text.len()).any(|skip| letters(rest, &text[skip..]))
                }
                (Some((letter, rest)), Some((found, more))) => {
                    (*letter == b'?' || letter == found) && letters(rest, more)
                }
                _ => false,
            }
        }
        let mut parts: Vec<&str> = pattern.split('/').collect();
        if !pattern.contains(['*', '?']) {
            parts.push("**");
        }
        folders(&parts, &path.split('/').collect::<Vec<_>>())
    }

    /// Up to three folders of one letter each: two such patterns need no path longer than six.
    fn folders() -> impl Strategy<Value = String> {
        let segment = prop_oneof![Just("**"), Just("a"), Just("b"), Just("*"), Just("?")];
        prop::collection::vec(segment, 1..=3).prop_map(|segments| segments.join("/"))
    }

    /// Part of a folder name: a name that is just `**` would match any number of folders.
    fn name() -> impl Strategy<Value = String> {
        "[ab*?]{1,3}".prop_filter("any number of folders", |name| !name.contains("**"))
    }

    fn exact(a: &str, b: &str, between: &str) -> Result<(), TestCaseError> {
        let brute = rows(between).iter().any(|path| matches(a, path) && matches(b, path));
        prop_assert_eq!(pattern(a).overlaps(&pattern(b)), brute, "{} {}", a, b);
        prop_assert_eq!(pattern(b).overlaps(&pattern(a)), brute, "{} {}", b, a);
        for path in rows(between) {
            prop_assert_eq!(pattern(a).covers(&path), matches(a, &path), "{} {}", a, path);
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1000))]
        #[test]
        fn b_10_two_globs_conflict_exactly_when_a_path_is_meant_by_both(
            a in folders(), b in folders()
        ) {
            exact(&a, &b, "/")?;
        }

        #[test]
        fn b_10_two_names_conflict_exactly_when_a_name_is_meant_by_both(
            a in name(), b in name()
        ) {
            exact(&a, &b, "")?;
        }

        #[test]
        fn s5_04_any_text_is_a_pattern_or_a_clear_refusal(text in any::<String>()) {
            if let Ok(pattern) = text.parse::<Pattern>() {
                prop_assert_eq!(pattern.as_str().parse::<Pattern>(), Ok(pattern.clone()));
                prop_assert!(pattern.overlaps(&pattern));
            }
        }
    }
}
