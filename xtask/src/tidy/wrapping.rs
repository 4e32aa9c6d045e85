//! Foreign types stop in the one place that wraps them, so that replacing their crate is a change
//! in one place.

use super::Finding;
use super::architecture::{PATH, Row, table};
use super::source::Source;
use super::tree::Tree;

pub(super) fn check(tree: &Tree, sources: &[Source]) -> Vec<Finding> {
    let Some(rows) = table(tree, "wrapped") else {
        let message =
            "has no table after `<!-- tidy: wrapped -->`: a foreign crate, and where it stops";
        return vec![Finding::new(PATH, 0, message)];
    };
    let gone = rows.iter().flat_map(|row| {
        let nowhere = |place: &&String| !sources.iter().any(|source| is_in(source.path, place));
        row.values.iter().filter(nowhere).map(|place| {
            let message = format!("there is no `{place}`: say where `{}` stops now", row.name);
            Finding::new(PATH, row.line, message)
        })
    });
    let leaks = rows.iter().flat_map(|row| sources.iter().flat_map(|source| leaks(row, source)));
    gone.chain(leaks).collect()
}

fn leaks(row: &Row, source: &Source) -> Vec<Finding> {
    if row.values.iter().any(|place| is_in(source.path, place) || is_tested_by(source.path, place))
    {
        return Vec::new();
    }
    let name = row.name.replace('-', "_");
    let places: Vec<&str> = row.values.iter().map(String::as_str).collect();
    source
        .words()
        .filter(|word| word.text == name && word.rest.starts_with("::"))
        .map(|word| {
            let message = format!(
                "`{}` stops in {}: wrap what you need there and use that",
                row.name,
                places.join(" and ")
            );
            Finding::new(source.path, source.line(word.start), message)
        })
        .collect()
}

/// True if a file is in a place: `a/b` is the file `a/b.rs` and everything below `a/b/`.
fn is_in(path: &str, place: &str) -> bool {
    let rest = path.strip_prefix(place);
    rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
}

/// True for tests of the crate that contains the place: they may look behind its wrapping.
fn is_tested_by(path: &str, place: &str) -> bool {
    let home = place.split("/src").next().unwrap_or(place);
    path.strip_prefix(home).is_some_and(|rest| rest.starts_with("/tests/"))
}

#[cfg(test)]
mod tests {
    use super::super::source::sources;
    use super::*;

    #[test]
    fn a_foreign_type_is_found_outside_its_place() {
        let table = "<!-- tidy: wrapped -->\n| crate | place |\n|---|---|\n\
                     | `pty-process` | `crates/a/src/pty` |\n| `avt` | `crates/a/src/screen` |\n";
        let tree = Tree::of([
            (PATH, table),
            ("crates/a/src/pty.rs", "use pty_process::Pty;"),
            ("crates/a/src/pty/size.rs", "fn f() -> pty_process::Size"),
            ("crates/a/src/ptyless.rs", "\nuse pty_process::Pty;"),
            ("crates/a/tests/suite.rs", "use pty_process::Pty;"),
            ("crates/b/tests/suite.rs", "use pty_process::Pty;"),
        ]);
        let found = check(&tree, &sources(&tree));
        let places: Vec<String> = found.iter().map(|f| format!("{}:{}", f.path, f.line)).collect();
        let expected =
            ["ARCHITECTURE.md:5", "crates/a/src/ptyless.rs:2", "crates/b/tests/suite.rs:1"];
        assert_eq!(places, expected);
    }
}
