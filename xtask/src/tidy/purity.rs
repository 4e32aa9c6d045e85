//! What decides performs nothing: no clock, no randomness, no files, no sockets.

use super::Finding;
use super::graph::Graph;
use super::source::{Source, Word};

/// The crates that only decide.
const PURE: [&str; 6] = [
    "stafette-config",
    "stafette-core",
    "stafette-model",
    "stafette-text",
    "stafette-wire",
    "stafette-workflow",
];

/// Crates with effects, direct or indirect.
const DOERS: [&str; 12] = [
    "async-std",
    "axum",
    "hyper",
    "libsqlite3-sys",
    "mio",
    "postgres",
    "reqwest",
    "rusqlite",
    "rustix",
    "sqlx",
    "tokio",
    "tokio-postgres",
];

/// Modules of the standard library with effects.
const MODULES: [&str; 6] = ["env", "fs", "net", "os", "process", "thread"];

/// Names that read the clock or draw random numbers.
const NAMES: [&str; 8] =
    ["Instant", "SystemTime", "UNIX_EPOCH", "getrandom", "new_v4", "now_v7", "rand", "tokio"];

pub(super) fn check(graph: &Graph, sources: &[Source]) -> Vec<Finding> {
    PURE.iter().flat_map(|name| of_crate(name, graph, sources)).collect()
}

fn of_crate(pure: &str, graph: &Graph, sources: &[Source]) -> Vec<Finding> {
    let everything = graph.crates.get(pure).into_iter().flat_map(|uses| &uses.everything);
    let dependencies =
        everything.filter(|(name, _)| DOERS.contains(&name.as_str())).map(|(_, way)| {
            let way = way.join(" → ");
            let message = format!("{pure} can perform something by {way}: it must only decide");
            Finding::new(format!("crates/{pure}/Cargo.toml"), 0, message)
        });
    let folder = format!("crates/{pure}/src/");
    let ours = sources.iter().filter(|source| source.path.starts_with(&folder));
    dependencies.chain(ours.flat_map(impurities)).collect()
}

fn impurities(source: &Source) -> Vec<Finding> {
    let words: Vec<Word> = source.words().collect();
    let mut findings = Vec::new();
    let mut in_use_of_std = false;
    for (at, word) in words.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| words[before].text);
        if word.text == "std" {
            in_use_of_std = before == Some("use");
        }
        let of_std = in_use_of_std || before == Some("std");
        let module = of_std && MODULES.contains(&word.text);
        if word.rest.starts_with(';') {
            in_use_of_std = false;
        }
        let called = word.rest.starts_with('(') || word.rest.starts_with("::");
        let name = NAMES.contains(&word.text) && (called || of_std || before == Some("use"));
        if (module || name) && !source.is_test(word.start) {
            let message = format!(
                "this crate must not use `{}`: have the caller hand in what it is needed for",
                word.text
            );
            findings.push(Finding::new(source.path, source.line(word.start), message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::super::source::sources;
    use super::super::tree::Tree;
    use super::*;

    fn told(code: &str) -> Vec<String> {
        let tree = Tree::of([("crates/stafette-wire/src/lib.rs", code)]);
        check(&Graph::default(), &sources(&tree)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn clocks_and_files_are_found_however_they_come() {
        assert_eq!(told("use std::fs;\n").len(), 1);
        assert_eq!(told("use std::{fmt, time::Instant};\n").len(), 1);
        assert_eq!(told("fn f() { std::env::var(\"A\"); Uuid::now_v7() }").len(), 2);
        assert_eq!(told("fn f() { let x = rand::random(); }").len(), 1);
    }

    #[test]
    fn words_that_only_look_like_it_are_fine() {
        let code = "use std::fmt;\n// std::fs is not for us\nfn fs(process: u8, instant: u8) {}\n\
                    #[cfg(test)]\nmod tests { use std::fs; }\n";
        assert_eq!(told(code), Vec::<String>::new());
    }
}
