//! Recovery: each rule has the fields it needs, and each can be the first match.

use super::Report;
use stafette_config::Diagnostic;
use stafette_core::Party;
use stafette_core::workflow::{RecoveryRule, Strategy};

pub(super) fn check(report: &mut Report<'_>) {
    let workflow = report.workflow;
    let recovery = &workflow.recovery;
    report.distinct(recovery.critical.iter().map(String::as_str), "/recovery/critical");
    for (index, rule) in recovery.rules.iter().enumerate() {
        let at = format!("/recovery/rules/{index}");
        for (name, party) in [("to", &rule.to), ("target", &rule.target)] {
            if let Some(party) = party {
                report.knows(party.as_str(), &format!("{at}/{name}"));
            }
        }
        let meant = |to: &Party| rule.to.as_ref().is_none_or(|only| only == to);
        // For an input that another handoff waits for, the orchestrator is always one more target.
        let asked = workflow.agents.values().flat_map(|agent| &agent.needs);
        let others = asked.map(|need| workflow.provider(&need.source)).any(|party| meant(&party))
            || workflow
                .routes
                .iter()
                .any(|route| meant(&route.to) && !route.alternatives.is_empty());
        let elsewhere = rule.action == Strategy::RetryDifferentTarget;
        if elsewhere && rule.target.is_none() && !others {
            report.add(
                Diagnostic::error(
                    "no-target",
                    &format!("{at}/action"),
                    "there is nobody else to try",
                )
                .help("name a `target` here, or `alternatives` on the route"),
            );
        }
        if rule.target.is_some() && rule.target == rule.to {
            let message = "the target is the one that failed";
            report.add(Diagnostic::error("same-target", &format!("{at}/target"), message));
        }
        if rule.action == Strategy::FallbackDefault && rule.default.is_empty() {
            let message = "there is no default to fall back to";
            report.add(
                Diagnostic::error("no-default", &format!("{at}/action"), message)
                    .help("give one: default = { KEY = \"value\" }"),
            );
        }
        if rule.target.is_some() && !elsewhere {
            let message = "only `retry_different_target` has a target";
            report.add_named(Diagnostic::warning("unused", &format!("{at}/target"), message));
        }
        if !rule.default.is_empty() && rule.action != Strategy::FallbackDefault {
            let message = "only `fallback_default` has a default";
            report.add_named(Diagnostic::warning("unused", &format!("{at}/default"), message));
        }
        if let Some(earlier) = recovery.rules[..index].iter().position(|other| covers(other, rule))
        {
            let message = format!("rule {} decides before this one ever can", earlier + 1);
            report.add(
                Diagnostic::warning("shadowed-rule", &at, message)
                    .help("the first rule that fits decides: put the narrower one first"),
            );
        }
    }
}

/// True if the first rule matches in all cases in which the second does.
fn covers(first: &RecoveryRule, second: &RecoveryRule) -> bool {
    (first.to.is_none() || first.to == second.to) && (first.on.is_none() || first.on == second.on)
}
