//! The kernel knows no coordinator by name: they are added and removed under `team/` alone.

use super::Finding;
use super::source::Source;
use super::tree::Tree;

/// The files of the kernel, and of the model that it is about.
const FILES: [&str; 10] = [
    "crates/stafette-core/src/event.rs",
    "crates/stafette-core/src/handoff.rs",
    "crates/stafette-core/src/input.rs",
    "crates/stafette-core/src/order.rs",
    "crates/stafette-core/src/reply.rs",
    "crates/stafette-core/src/run.rs",
    "crates/stafette-model/src/amount.rs",
    "crates/stafette-model/src/fields.rs",
    "crates/stafette-model/src/offer.rs",
    "crates/stafette-model/src/trace.rs",
];

/// The folder of the transitions.
const FOLDER: &str = "crates/stafette-core/src/run/";

/// Words of coordinators, in comments too: a comment that has to explain one here explains a leak.
const WORDS: [&str; 5] = ["phase", "council", "generation", "lineage", "vote"];

pub(super) fn check(tree: &Tree, sources: &[Source]) -> Vec<Finding> {
    let is_kernel = |path: &str| path.starts_with(FOLDER) || FILES.contains(&path);
    let ours = sources.iter().filter(|source| is_kernel(source.path));
    ours.flat_map(|source| mentions(tree, source)).collect()
}

fn mentions(tree: &Tree, source: &Source) -> Vec<Finding> {
    let Some(file) = tree.files.iter().find(|file| file.path == source.path) else {
        return Vec::new();
    };
    let mut findings = Vec::new();
    let mut start = 0;
    for line in file.text.split_inclusive('\n') {
        if !source.is_test(start)
            && let Some(word) = mention(line)
        {
            let message = format!(
                "the kernel names `{word}`, which is a coordinator's: let it act through a hook of \
                 `team.rs`"
            );
            findings.push(Finding::new(source.path, source.line(start), message));
        }
        start += line.len();
    }
    findings
}

/// Returns the first word of the line that belongs to a coordinator: one of theirs, or a type such
/// as `ChangeId`.
fn mention(line: &str) -> Option<&str> {
    let is_part = |letter: char| letter.is_alphanumeric();
    line.split(|letter| !is_part(letter)).find(|word| {
        let lower = word.to_lowercase();
        let of_changes = word.strip_prefix("Change").and_then(|rest| rest.chars().next());
        WORDS.iter().any(|known| lower.contains(known))
            || of_changes.is_some_and(char::is_uppercase)
    })
}

#[cfg(test)]
mod tests {
    use super::super::source::sources;
    use super::*;

    fn told(path: &str, code: &str) -> usize {
        let tree = Tree::of([(path, code)]);
        check(&tree, &sources(&tree)).len()
    }

    #[test]
    fn a_coordinator_is_found_in_the_kernel_wherever_it_is_named() {
        for code in
            ["use crate::team::phase;\n", "// The council waits.\n", "fn f(id: ChangeId) {}\n"]
        {
            assert_eq!(told("crates/stafette-core/src/run/turn.rs", code), 1, "{code}");
            assert_eq!(told("crates/stafette-core/src/event.rs", code), 1, "{code}");
            assert_eq!(told("crates/stafette-core/src/team/phase.rs", code), 0, "{code}");
        }
    }

    #[test]
    fn words_of_every_day_and_tests_are_fine() {
        let code = "// It changes nothing.\nstruct SessionChanged;\n#[cfg(test)]\nmod tests {\n\
                    // a phase\n}\n";
        assert_eq!(told("crates/stafette-core/src/run.rs", code), 0);
    }
}
