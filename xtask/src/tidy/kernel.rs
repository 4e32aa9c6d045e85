//! The kernel knows no coordinator by name: they are added and removed under `team/` alone. And what an
//! event changes is in the event: applying it decides nothing.

use std::ops::Range;

use super::Finding;
use super::source::{Source, Word};
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

/// The crate whose events are applied.
const CORE: &str = "crates/stafette-core/src/";

pub(super) fn check(tree: &Tree, sources: &[Source]) -> Vec<Finding> {
    let is_kernel = |path: &str| path.starts_with(FOLDER) || FILES.contains(&path);
    let ours = sources.iter().filter(|source| is_kernel(source.path));
    let core = sources.iter().filter(|source| source.path.starts_with(CORE));
    ours.flat_map(|source| mentions(tree, source)).chain(core.flat_map(decisions)).collect()
}

/// Finds events that look at the workflow when they are applied.
fn decisions(source: &Source) -> Vec<Finding> {
    let rules = source.words().filter(|word| word.text == "workflow");
    let bodies: Vec<Range<usize>> = source.bodies("apply").collect();
    let applied = |at: usize| bodies.iter().any(|body| body.contains(&at));
    let found = rules.filter(|word| applied(word.start) && !source.is_test(word.start));
    let finding = |word: Word| {
        let message = "an event is applied by the rules of the workflow: put what they decide into the \
                       event, and what they meant for older ones into `legacy.rs`";
        Finding::new(source.path, source.line(word.start), message.to_owned())
    };
    found.map(finding).collect()
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
    fn an_event_that_is_applied_by_the_workflow_is_found() {
        let code = "impl E {\n    fn apply(&self, run: &mut Run) {\n        let most = \
                    run.workflow.limits.turns;\n    }\n    fn decide(run: &Run) { run.workflow; }\n}\n";
        assert_eq!(told("crates/stafette-core/src/team/change.rs", code), 1);
        assert_eq!(told("crates/stafette-engine/src/driver.rs", code), 0);
    }

    #[test]
    fn words_of_every_day_and_tests_are_fine() {
        let code = "// It changes nothing.\nstruct SessionChanged;\n#[cfg(test)]\nmod tests {\n\
                    // a phase\n}\n";
        assert_eq!(told("crates/stafette-core/src/run.rs", code), 0);
    }
}
