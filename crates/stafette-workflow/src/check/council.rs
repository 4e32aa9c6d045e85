//! The council and its generations: members exist, and the quorum can be reached.

use super::Report;
use stafette_config::{Diagnostic, child};
use stafette_core::Millis;

/// The maximum number of members: every member reads all the others.
const MAX_MEMBERS: usize = 32;

/// The longest pause between two generations.
const LONGEST_PAUSE: Millis = Millis::hours(24);

pub(super) fn check(report: &mut Report<'_>) {
    council(report);
    generations(report);
}

fn council(report: &mut Report<'_>) {
    let workflow = report.workflow;
    let Some(rules) = &workflow.council else { return };
    let at = "/council/members";
    if rules.members.is_empty() || rules.members.len() > MAX_MEMBERS {
        let message = format!("a council has from 1 to {MAX_MEMBERS} members");
        report.add(Diagnostic::error("no-council", at, message));
    }
    report.distinct(rules.members.iter().map(|name| name.as_str()), at);
    for (index, member) in rules.members.iter().enumerate() {
        report.knows(member.as_str(), &format!("{at}/{index}"));
    }
    for name in rules.weights.keys().filter(|name| !rules.members.contains(name)) {
        let path = child("/council/weights", name.as_str());
        let message = format!("`{name}` is not a member of the council");
        report.add_named(Diagnostic::error("unknown-member", &path, message));
    }
    if !rules.members.is_empty() && rules.total() == 0 {
        let message = "no voice counts: nobody could ever agree";
        report.add(Diagnostic::error("no-voice", "/council/weights", message));
    }
    if rules.turns_per_agent == 0 {
        let message = "`turns_per_agent` is zero: nobody could ever speak";
        report.add(Diagnostic::error("zero-limit", "/council/turns_per_agent", message));
    }
    if let Some(then) = &rules.then {
        report.knows(then.as_str(), "/council/then");
        if *then == stafette_core::workflow::council::party() {
            let message = "a council cannot hand to itself";
            report.add(Diagnostic::error("reserved", "/council/then", message));
        }
    }
}

fn generations(report: &mut Report<'_>) {
    let Some(rules) = &report.workflow.generations else { return };
    if rules.max_runs == 0 {
        let message = "`max_runs` is zero: there would be no first generation";
        report.add(Diagnostic::error("zero-limit", "/generations/max_runs", message));
    }
    if rules.pause > LONGEST_PAUSE {
        let message = format!("the next generation waits for {LONGEST_PAUSE} at most");
        report.add(Diagnostic::error("long-pause", "/generations/pause", message));
    }
    if rules.context.parse::<stafette_core::change::FilePath>().is_err() {
        let message = format!("`{}` is not a file in the project", rules.context);
        report.add(
            Diagnostic::error("bad-path", "/generations/context", message)
                .help("a path relative to the project, without `..`"),
        );
    }
}
