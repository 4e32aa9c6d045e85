//! Paths that a change may name: inside the project on every file system.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_model::as_text;
use thiserror::Error;
use unicode_normalization::UnicodeNormalization;

/// The maximum length of a path, in bytes.
const LONGEST: usize = 1024;

/// The maximum length of a name in a path, in bytes.
const LONGEST_NAME: usize = 240;

/// The maximum depth of a path, in names.
const DEEPEST: usize = 64;

/// A file's path within the project, in its only valid spelling.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct FilePath(String);

/// The text is not a path that a change may name.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("`{}` cannot be changed: {flaw}", text.chars().take(200).collect::<String>().escape_debug())]
pub struct BadPath {
    pub text: String,
    /// The reason why it is invalid.
    pub flaw: &'static str,
}

impl FilePath {
    /// Returns the path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the folders that contain it, outermost first.
    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.0.match_indices('/').map(|(end, _)| &self.0[..end])
    }

    /// Returns the last name of the path.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }
}

impl FromStr for FilePath {
    type Err = BadPath;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match flaw(text) {
            Some(flaw) => Err(BadPath { text: text.to_owned(), flaw }),
            None => Ok(FilePath(text.to_owned())),
        }
    }
}

as_text!(FilePath, BadPath);

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

fn flaw(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("it is empty");
    }
    if text.len() > LONGEST {
        return Some("it is longer than 1024 bytes");
    }
    if text.starts_with('/') {
        return Some("it is absolute");
    }
    if text.chars().any(char::is_control) {
        return Some("it has control characters in it");
    }
    if text.contains('\\') {
        return Some("it has a backslash in it");
    }
    if text.split('/').count() > DEEPEST {
        return Some("it is deeper than 64 folders");
    }
    text.split('/').find_map(name_flaw)
}

fn name_flaw(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("it has an empty name in it");
    }
    if name == "." || name == ".." {
        return Some("it has `.` or `..` in it");
    }
    if name.len() > LONGEST_NAME {
        return Some("a name in it is longer than 240 bytes");
    }
    if name.ends_with(['.', ' ']) || name.starts_with(' ') {
        return Some("a name in it begins or ends with a space, or ends with a dot");
    }
    let folded = folded(name);
    // An NTFS stream of a file is the file.
    let plain = folded.split(':').next().unwrap_or(&folded).trim_end_matches(['.', ' ']);
    if plain == ".git" || plain == "git~1" {
        return Some("it belongs to git");
    }
    if plain == ".stafette" || plain == "stafet~1" {
        return Some("it belongs to Stafette");
    }
    None
}

/// Returns a name as seen by file systems that ignore case, invisible characters, and whether a letter
/// and its accent are one character or two.
pub(crate) fn folded(name: &str) -> String {
    let is_seen = |c: &char| {
        !matches!(*c,
            '\u{00ad}' | '\u{034f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
    };
    // By way of the capital letters, which fold more: a long s is an s.
    let capitals = name.nfd().filter(is_seen).flat_map(char::to_uppercase);
    capitals.flat_map(char::to_lowercase).nfc().collect()
}

/// Returns two paths of one set that would be the same file on some file system, or of which one
/// contains the other. The paths of `pairs` may differ in case alone: a rename may be just that.
pub fn collisions<'p>(
    paths: impl IntoIterator<Item = &'p FilePath>,
    pairs: &[(&FilePath, &FilePath)],
) -> Option<(FilePath, FilePath)> {
    let mut seen: BTreeMap<String, &FilePath> = BTreeMap::new();
    for path in paths {
        if let Some(other) = seen.insert(folded(path.as_str()), path) {
            let is_pair =
                |(a, b): &(&FilePath, &FilePath)| (*a, *b) == (other, path) && other != path;
            if !pairs.iter().any(is_pair) {
                return Some((other.clone(), path.clone()));
            }
        }
    }
    for (key, path) in &seen {
        let folders = key.match_indices('/').map(|(end, _)| &key[..end]);
        if let Some(other) = folders.filter_map(|folder| seen.get(folder)).next() {
            return Some(((*other).clone(), (*path).clone()));
        }
    }
    // One folder in two spellings.
    let mut spelled: BTreeMap<String, &str> = BTreeMap::new();
    for path in seen.values() {
        for folder in path.folders() {
            let first = *spelled.entry(folded(folder)).or_insert(folder);
            if first != folder {
                let other = seen.values().find(|it| it.folders().any(|it| it == first));
                return other.map(|other| ((*other).clone(), (*path).clone()));
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> FilePath {
        text.parse().expect(text)
    }

    #[test]
    fn s4_07_no_spelling_leads_out_of_the_project_or_into_git() {
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            "a/../../x",
            "Src/../.git/config",
            "a//b",
            "./a",
            "a/.",
            "a/",
            "a\0b",
            "a\nb",
            "a\\..\\b",
            ".git/hooks/post-commit",
            ".GIT/hooks/post-commit",
            "sub/.Git/config",
            "GIT~1/config",
            ".git./config",
            ".git /config",
            ".git::$INDEX_ALLOCATION/config",
            ".g\u{200c}it/config",
            ".stafette/store.sqlite",
            ".Stafette/changes/journal.json",
            "a./b",
            "b ",
        ] {
            assert!(bad.parse::<FilePath>().is_err(), "{bad:?} must be refused");
        }
        for good in ["src/lib.rs", ".gitignore", ".github/x.yml", "a.b/c d.e", "git", "é/ü"] {
            assert_eq!(path(good).as_str(), good);
        }
        assert!("a/".repeat(65).parse::<FilePath>().is_err());
    }

    #[test]
    fn s4_07_two_spellings_of_one_file_are_refused() {
        let found = |texts: &[&str]| {
            let paths: Vec<FilePath> = texts.iter().map(|text| path(text)).collect();
            collisions(&paths, &[]).is_some()
        };
        assert!(found(&["src/a", "src/a"]));
        assert!(found(&["src/a", "Src/A"]));
        assert!(found(&["src/a", "SRC/b"]), "one folder in two spellings");
        assert!(found(&["caf\u{e9}", "CAFE\u{301}"]), "an accent as a character of its own");
        assert!(found(&["\u{1e69}", "s\u{307}\u{323}"]), "two accents in another order");
        assert!(found(&["src", "src/b"]), "a file and its own folder");
        assert!(!found(&["src/a", "src/b", "src2/a"]));
        let (old, new) = (path("readme"), path("README"));
        assert_eq!(collisions([&old, &new], &[(&old, &new)]), None, "renamed in case alone");
    }
}
