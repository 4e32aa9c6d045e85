//! Documents that name a test as the proof of something name one that is there.

use std::collections::BTreeSet;

use super::Finding;
use super::requirement::is_proof;
use super::source::Source;
use super::tree::Tree;

pub(super) fn check(tree: &Tree, sources: &[Source]) -> Vec<Finding> {
    let functions: BTreeSet<&str> = sources.iter().flat_map(functions).collect();
    let mut findings = Vec::new();
    for file in tree.files.iter().filter(|file| file.is_ours() && file.has_ending(&["md"])) {
        for (number, line) in (1..).zip(file.text.lines()) {
            // Every second part is between backticks.
            for name in line.split('`').skip(1).step_by(2) {
                if is_proof(name) && !functions.contains(name) {
                    let message = format!("there is no test `{name}`");
                    findings.push(Finding::new(&file.path, number, message));
                }
            }
        }
    }
    findings
}

/// All functions: a test of a suite that many implementations pass has no attribute of its own.
fn functions<'a>(source: &'a Source) -> Vec<&'a str> {
    let mut words = source.words();
    let mut found = Vec::new();
    while let Some(word) = words.next() {
        if word.text == "fn" {
            found.extend(words.next().map(|name| name.text));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::super::source::sources;
    use super::*;

    #[test]
    fn a_proof_that_is_gone_is_found() {
        let tree = Tree::of([
            ("a/tests/a.rs", "#[test]\nfn b_01_it_is_kept() {}\n"),
            ("SECURITY.md", "x `b_01_it_is_kept`, `b_01` and `b_01_it_is_gone`\n"),
        ]);
        let found = check(&tree, &sources(&tree));
        let told: Vec<String> = found.iter().map(ToString::to_string).collect();
        assert_eq!(told, ["SECURITY.md:1: there is no test `b_01_it_is_gone`"]);
    }
}
