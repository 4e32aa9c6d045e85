//! Routes: between existing agents, without duplicates, and none both allowed and denied.

use std::collections::BTreeMap;

use super::{NO_ESCALATION, Report};
use stafette_config::Diagnostic;
use stafette_core::Party;

pub(super) fn check(report: &mut Report<'_>) {
    let workflow = report.workflow;
    let mut denied: BTreeMap<(&Party, &Party), usize> = BTreeMap::new();
    for (index, deny) in workflow.deny.iter().enumerate() {
        let at = format!("/deny/{index}");
        report.knows(deny.from.as_str(), &format!("{at}/from"));
        report.knows(deny.to.as_str(), &format!("{at}/to"));
        let is_reserved = matches!(deny.from, Party::Human | Party::Orchestrator);
        if is_reserved || deny.from == stafette_core::workflow::council::party() {
            let message = format!("`{}` may hand to everyone", deny.from);
            report.add(Diagnostic::error("reserved", &format!("{at}/from"), message));
        }
        if deny.to == Party::Human {
            let message = format!("`{}` may always ask a person", deny.from);
            report.add(
                Diagnostic::error(NO_ESCALATION, &format!("{at}/to"), message)
                    .help("take this entry out: every agent keeps a way to a person"),
            );
        } else if deny.to == Party::Orchestrator {
            let message = format!("`{}` may always hand to `orchestrator`", deny.from);
            report.add(Diagnostic::error("reserved", &format!("{at}/to"), message));
        }
        if deny.why.trim().is_empty() {
            let message = "say why: it is the answer that an agent gets";
            report.add(Diagnostic::error("empty", &format!("{at}/why"), message));
        }
        if denied.insert((&deny.from, &deny.to), index).is_some() {
            report.add(twice(&at, &deny.from, &deny.to, "denied"));
        }
    }
    let mut allowed: BTreeMap<(&Party, &Party), usize> = BTreeMap::new();
    for (index, route) in workflow.routes.iter().enumerate() {
        let at = format!("/routes/{index}");
        report.knows(route.from.as_str(), &format!("{at}/from"));
        report.knows(route.to.as_str(), &format!("{at}/to"));
        if route.from == route.to {
            let message = format!("`{}` cannot hand to itself", route.from);
            report.add(
                Diagnostic::error("self-route", &format!("{at}/to"), message)
                    .help("an agent that goes on needs no handoff"),
            );
        }
        if let Some(denied) = denied.get(&(&route.from, &route.to)) {
            let why = &workflow.deny[*denied].why;
            let message = format!("`{} → {}` is both allowed and denied", route.from, route.to);
            report.add(
                Diagnostic::error("route-denied", &format!("{at}/to"), message)
                    .help(format!("it is denied because: {why}")),
            );
        }
        if allowed.insert((&route.from, &route.to), index).is_some() {
            report.add(twice(&at, &route.from, &route.to, "allowed"));
        }
        if !matches!(route.to, Party::Agent(_)) && !route.requires.is_empty() {
            let message = format!("nothing is required on the way to `{}`", route.to);
            report.add_named(Diagnostic::warning("unused", &format!("{at}/requires"), message));
        }
        report.distinct(route.requires.iter().map(String::as_str), &format!("{at}/requires"));
        let names = route.alternatives.iter().map(Party::as_str);
        report.distinct(names, &format!("{at}/alternatives"));
        for (number, other) in route.alternatives.iter().enumerate() {
            let at = format!("{at}/alternatives/{number}");
            report.knows(other.as_str(), &at);
            if *other == route.to || *other == route.from {
                let message =
                    format!("`{other}` is no alternative on `{} → {}`", route.from, route.to);
                report.add(Diagnostic::error("no-alternative", &at, message));
            } else if denied.contains_key(&(&route.from, other)) {
                let message = format!("`{} → {other}` is denied", route.from);
                report.add(Diagnostic::error("route-denied", &at, message));
            }
        }
    }
}

fn twice(at: &str, from: &Party, to: &Party, word: &str) -> Diagnostic {
    let message = format!("`{from} → {to}` is {word} twice");
    Diagnostic::warning("duplicate-route", at, message).help("the first of them counts")
}
