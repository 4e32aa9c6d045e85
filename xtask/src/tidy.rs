//! Rules about the source itself: those that are worth a failing test.
//!
//! The rules read their data from `ARCHITECTURE.md`, so that the description and the code cannot
//! differ.

mod architecture;
mod graph;
mod kernel;
mod layout;
mod links;
mod manifest;
mod proofs;
mod purity;
mod requirement;
mod source;
mod tree;
mod wording;
mod wrapping;

use std::fmt;
use std::path::Path;

use tree::Tree;

/// A violation of a rule.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Finding {
    /// The path of the file.
    path: String,
    /// The line, from 1; 0 if it is about the whole file.
    line: usize,
    /// The problem and its solution.
    message: String,
}

impl Finding {
    fn new(path: impl Into<String>, line: usize, message: impl Into<String>) -> Self {
        Finding { path: path.into(), line, message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Checks the tree and prints the findings.
pub(crate) fn run(root: &Path) -> bool {
    match inspect(root) {
        Err(trouble) => {
            eprintln!("{trouble}");
            false
        }
        Ok((findings, coverage)) => {
            for finding in &findings {
                eprintln!("{finding}");
            }
            eprint!("{coverage}");
            findings.is_empty()
        }
    }
}

fn inspect(root: &Path) -> Result<(Vec<Finding>, requirement::Coverage), String> {
    let tree = Tree::read(root).map_err(|error| error.to_string())?;
    let graph = graph::Graph::read(root)?;
    let sources = source::sources(&tree);
    let (coverage, names) = requirement::check(&sources);
    let mut findings = [
        graph::check(&tree, &graph),
        wrapping::check(&tree, &sources),
        purity::check(&graph, &sources),
        kernel::check(&tree, &sources),
        layout::check(&tree, &sources),
        links::check(&tree),
        wording::check(&tree, &sources),
        manifest::check(&tree),
        proofs::check(&tree, &sources),
        names,
    ]
    .concat();
    findings.sort();
    Ok((findings, coverage))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tree_is_tidy() {
        let (findings, _) = inspect(&crate::root()).expect("the tree can be read");
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        assert!(lines.is_empty(), "\n{}\n", lines.join("\n"));
    }
}
