//! Rules about the names, lengths and ends of files.

use super::Finding;
use super::source::Source;
use super::tree::{File, Tree};

/// The most lines of a file; a longer one is more than one thing.
const LONGEST: usize = 700;

/// Names that say nothing about the content.
const EMPTY_NAMES: [&str; 10] = [
    "common", "helper", "helpers", "manager", "managers", "misc", "shared", "stuff", "util",
    "utils",
];

/// Extensions of files that are written by hand, line by line.
const WRITTEN: [&str; 10] = ["css", "html", "js", "md", "rs", "sh", "toml", "ts", "yaml", "yml"];

pub(super) fn check(tree: &Tree, sources: &[Source]) -> Vec<Finding> {
    let names = tree.files.iter().filter_map(|file| {
        let message = ill_named(file)?;
        Some(Finding::new(&file.path, 0, message))
    });
    let long = sources.iter().filter_map(|source| {
        let lines = source.code.lines().count();
        let message =
            format!("has {lines} lines, {LONGEST} are allowed: split it by what it is about");
        (lines > LONGEST).then(|| Finding::new(source.path, 0, message))
    });
    let written = tree.files.iter().filter(|file| file.is_ours() && file.has_ending(&WRITTEN));
    names.chain(long).chain(written.flat_map(blanks)).collect()
}

fn ill_named(file: &File) -> Option<String> {
    if !file.has_ending(&["rs", "ts"]) {
        return None;
    }
    let stem = file.stem();
    let folders = file.path.split('/').rev().skip(1);
    if stem == "mod" {
        let folder = folders.clone().next().unwrap_or("foo");
        return Some(format!(
            "modules have their own name: call it `{folder}.rs`, beside the folder"
        ));
    }
    let empty = [stem].into_iter().chain(folders).find(|name| EMPTY_NAMES.contains(name))?;
    Some(format!("`{empty}` says nothing: name it after what is inside, a noun of the domain"))
}

fn blanks(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.text.is_empty() && (!file.text.ends_with('\n') || file.text.ends_with("\n\n")) {
        findings.push(Finding::new(&file.path, 0, "must end with one line end"));
    }
    for (number, line) in (1..).zip(file.text.split('\n')) {
        if line.ends_with([' ', '\t', '\r']) {
            findings.push(Finding::new(&file.path, number, "has blanks at the end of the line"));
        } else if line.contains('\t') {
            findings.push(Finding::new(&file.path, number, "has a tab: use spaces, or `\\t`"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source::sources;
    use super::*;

    fn told(path: &str, text: &str) -> Vec<String> {
        let tree = Tree::of([(path, text)]);
        check(&tree, &sources(&tree)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_must_say_something() {
        assert!(told("a/src/run/mod.rs", "\n")[0].contains("`run.rs`"));
        assert!(told("a/src/utils.rs", "fn f() {}\n")[0].contains("`utils`"));
        assert!(told("a/src/helpers/run.rs", "fn f() {}\n")[0].contains("`helpers`"));
        assert_eq!(told("a/src/model.rs", "fn f() {}\n"), Vec::<String>::new());
    }

    #[test]
    fn files_are_short_and_end_well() {
        assert!(told("a.rs", &"x\n".repeat(701))[0].contains("701 lines"));
        assert_eq!(told("a.rs", &"x\n".repeat(700)), Vec::<String>::new());
        assert_eq!(told("a.md", "x"), ["a.md: must end with one line end"]);
        assert_eq!(told("a.md", "x\n\n"), ["a.md: must end with one line end"]);
        assert_eq!(told("a.toml", "a \nb\n"), ["a.toml:1: has blanks at the end of the line"]);
        assert_eq!(told("a.rs", "\tb\n"), ["a.rs:1: has a tab: use spaces, or `\\t`"]);
        assert_eq!(told("fixtures/a.md", "\tx \n\n"), Vec::<String>::new());
    }
}
