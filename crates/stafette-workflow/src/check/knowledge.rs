//! Knowledge settings: the backends exist, and the numbers are plausible.

use super::Report;
use super::integrations::timezone;
use stafette_config::Diagnostic;
use stafette_core::workflow::knowledge::{CalendarHome, GraphHome, Knowledge, span_of};
use stafette_core::{Millis, Workflow};

/// The shortest interval between two looks at a calendar.
const SOONEST: Millis = Millis::seconds(1);
const FURTHEST: Millis = Millis::hours(400 * 24);

pub(super) fn check(report: &mut Report<'_>) {
    let workflow: &Workflow = report.workflow;
    let Some(knowledge) = &workflow.knowledge else { return };
    graph(report, knowledge);
    if let Some(calendar) = &knowledge.calendar {
        home(report, calendar);
    }
    for (name, path) in [("constitution", &knowledge.constitution), ("goals", &knowledge.goals)] {
        if let Some(path) = path {
            inside(report, path, &format!("/knowledge/{name}"));
        }
    }
    if let Some(agent) = &knowledge.beside {
        report.knows(agent.as_str(), "/knowledge/beside");
    }
    week(report, knowledge);
    for (name, value) in knowledge.roi.impossible() {
        let message = format!("{name} is {value}, it must be from 0 to 1e12");
        report.add(Diagnostic::error("bad-weight", &format!("/knowledge/roi/{name}"), message));
    }
    let mind = &knowledge.mind;
    for (name, value) in [
        ("samples", mind.samples),
        ("share_samples", mind.share_samples),
        ("outlier_samples", mind.outlier_samples),
        ("runs", mind.runs),
    ] {
        if !(2..=100_000).contains(&value) {
            let message = format!("{name} is {value}, it must be from 2 to 100000");
            report.add(Diagnostic::error("bad-limit", &format!("/knowledge/mind/{name}"), message));
        }
    }
}

fn graph(report: &mut Report<'_>, knowledge: &Knowledge) {
    match (knowledge.graph, &knowledge.neo4j) {
        (GraphHome::Neo4j, None) => {
            let message = "it is not said where the Neo4j server is";
            let diagnostic = Diagnostic::error("no-server", "/knowledge/graph", message);
            report
                .add(diagnostic.help("say it: [knowledge.neo4j] uri = \"bolt://127.0.0.1:7687\""));
        }
        (GraphHome::Sqlite, Some(_)) => {
            let message = "the Neo4j server is not used";
            let diagnostic = Diagnostic::warning("not-used", "/knowledge/neo4j", message);
            report.add(diagnostic.help("use it with graph = \"neo4j\""));
        }
        _ => {}
    }
    if let Some(neo4j) = &knowledge.neo4j {
        let schemes = ["bolt://", "bolt+s://", "neo4j://", "neo4j+s://"];
        address(report, &neo4j.uri, &schemes, "/knowledge/neo4j/uri");
    }
}

fn home(report: &mut Report<'_>, calendar: &CalendarHome) {
    match (&calendar.folder, &calendar.url) {
        (Some(_), Some(_)) | (None, None) => {
            let message = "a calendar is a folder or a server";
            let diagnostic = Diagnostic::error("which-calendar", "/knowledge/calendar", message);
            report.add(diagnostic.help("say one of folder = \"calendar\" and url = \"https://…\""));
        }
        (Some(folder), None) => inside(report, folder, "/knowledge/calendar/folder"),
        (None, Some(url)) => {
            address(report, url, &["https://", "http://"], "/knowledge/calendar/url");
        }
    }
    if calendar.look < SOONEST {
        let message = format!("a calendar is looked at once in {SOONEST} at most");
        report.add(Diagnostic::error("bad-limit", "/knowledge/calendar/look", message));
    }
    if calendar.ahead == Millis(0) || calendar.ahead > FURTHEST {
        let message = format!("room is looked for within {FURTHEST} at most");
        report.add(Diagnostic::error("bad-limit", "/knowledge/calendar/ahead", message));
    }
}

fn week(report: &mut Report<'_>, knowledge: &Knowledge) {
    let week = &knowledge.week;
    timezone(report, Some(&week.timezone), "/knowledge/week/timezone");
    let mut last = 0;
    for (n, text) in week.hours.iter().enumerate() {
        match span_of(text) {
            Some((from, to)) if from < to && from >= last => last = to,
            _ => {
                let message = format!("`{text}` are not hours of a day after those before them");
                let path = format!("/knowledge/week/hours/{n}");
                let diagnostic = Diagnostic::error("bad-time", &path, message);
                report.add(diagnostic.help("write them like \"09:00-12:00\""));
            }
        }
    }
    if week.shortest == Millis(0) || week.shortest > week.longest || week.step < Millis::minutes(1)
    {
        let message =
            "the shortest block is not longer than the longest, and the step is 1 min or more";
        report.add(Diagnostic::error("bad-limit", "/knowledge/week", message));
    }
    if let Some(quiet) = &knowledge.people.quiet
        && span_of(quiet).is_none_or(|(from, to)| from == to)
    {
        let message = format!("`{quiet}` is not a part of the day, such as 22:00-07:00");
        report.add(Diagnostic::error("bad-time", "/knowledge/people/quiet", message));
    }
}

/// Checks that a path stays inside the project.
fn inside(report: &mut Report<'_>, path: &str, at: &str) {
    let leads_out = path.is_empty()
        || path.starts_with('/')
        || path.split('/').any(|part| part == ".." || part == ".stafette");
    if leads_out {
        let message = format!("`{path}` is not a path inside the project");
        report.add(Diagnostic::error("bad-path", at, message));
    }
}

fn address(report: &mut Report<'_>, url: &str, schemes: &[&str], at: &str) {
    if !schemes.iter().any(|scheme| url.starts_with(scheme)) {
        let message = format!("`{url}` is not an address: it begins with {}", schemes.join(" or "));
        report.add(Diagnostic::error("bad-url", at, message));
    } else if url.split('/').nth(2).is_some_and(|authority| authority.contains('@')) {
        let message = "this address holds a password, which does not belong in this file";
        report.add(Diagnostic::error("secret-in-file", at, message));
    }
}
