//! Checks whether a workflow is consistent: all named parties exist, the work can move and can end,
//! cycles are declared, limits are compatible, and a person can be asked.
//!
//! Two choices are worth knowing. Every agent may always hand to `orchestrator` and `human`, so a
//! check for "can reach an end" over those built-in paths could never fail. An *end* is therefore
//! an agent that hands to no other agent, or one whose routes name `orchestrator` or `human`: the
//! file has to declare where the work may leave a cycle. And the counts that limits are compared
//! with
//! are lower bounds (the shortest path to a loop, then its rounds), so that an error is never a
//! guess.

mod agents;
mod council;
mod graph;
mod integrations;
mod knowledge;
mod limits;
mod phases;
mod recovery;
mod routes;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use crate::file::{self, Source};
use stafette_config::{Diagnostic, Spans};
use stafette_core::{Party, Workflow};
use stafette_text::nearest;

pub(crate) use limits::worst_case;

/// The maximum number of agents in a workflow.
pub const MAX_AGENTS: usize = 256;

/// Parses and checks a file; every profile that it names must be one of `profiles`. Returns the workflow
/// if it could be parsed, and all problems.
pub fn examine_with(text: &str, profiles: &[&str]) -> (Option<Source>, Vec<Diagnostic>) {
    match file::read(text) {
        Err(diagnostics) => (None, diagnostics),
        Ok(source) => {
            let diagnostics = check_with(&source.workflow, &source.spans, Some(profiles));
            (Some(source), diagnostics)
        }
    }
}

/// Returns all problems of a workflow, in the order of its file.
pub fn check(workflow: &Workflow, spans: &Spans) -> Vec<Diagnostic> {
    check_with(workflow, spans, None)
}

/// Does the same as [`check`], and requires every profile that the workflow names to be one of
/// `profiles`, if the caller knows them.
pub fn check_with(
    workflow: &Workflow,
    spans: &Spans,
    profiles: Option<&[&str]>,
) -> Vec<Diagnostic> {
    let mut report = Report { workflow, spans, profiles, found: Vec::new() };
    header(&mut report);
    agents::check(&mut report);
    routes::check(&mut report);
    recovery::check(&mut report);
    limits::check(&mut report);
    phases::check(&mut report);
    integrations::check(&mut report);
    knowledge::check(&mut report);
    council::check(&mut report);
    if workflow.agents.len() > MAX_AGENTS {
        let message = format!("{} agents are more than {MAX_AGENTS}", workflow.agents.len());
        report.add(Diagnostic::error("too-many-agents", "/agents", message));
    } else {
        graph::check(&mut report);
    }
    let mut found = report.found;
    found.sort_by_key(|diagnostic| {
        (diagnostic.span.as_ref().map_or(usize::MAX, |span| span.start), diagnostic.severity)
    });
    found
}

/// The problems found so far.
struct Report<'a> {
    workflow: &'a Workflow,
    spans: &'a Spans,
    profiles: Option<&'a [&'a str]>,
    found: Vec<Diagnostic>,
}

impl Report<'_> {
    /// Adds a problem with a value.
    fn add(&mut self, diagnostic: Diagnostic) {
        let span = self.spans.value(&diagnostic.path);
        self.found.push(diagnostic.at(span));
    }

    /// Adds a problem with a value that may be a default; then `cause` is shown instead.
    fn add_or(&mut self, diagnostic: Diagnostic, cause: &str) {
        let span = self.spans.value(&diagnostic.path).or_else(|| self.spans.value(cause));
        self.found.push(diagnostic.at(span));
    }

    /// Adds a problem with a named entry.
    fn add_named(&mut self, diagnostic: Diagnostic) {
        let span = self.spans.key(&diagnostic.path);
        self.found.push(diagnostic.at(span));
    }

    /// True if a name is known; otherwise adds an error.
    fn knows(&mut self, name: &str, path: &str) -> bool {
        let council =
            || name == stafette_core::workflow::council::NAME && self.workflow.council.is_some();
        if matches!(Party::from(name), Party::Orchestrator | Party::Human)
            || council()
            || self.workflow.agents.contains_key(name)
        {
            return true;
        }
        let agents = self.workflow.agents.keys().map(|name| name.as_str());
        let diagnostic = Diagnostic::error(
            UNKNOWN_AGENT,
            path,
            format!("`{name}` is not an agent of this workflow"),
        );
        let help = match nearest(name, agents.clone().chain(["human", "orchestrator"])) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the workflow knows {}", listed(agents)),
        };
        self.add(diagnostic.help(help));
        false
    }

    /// True if a name is unknown. That breaks the graph: errors that follow from it are not
    /// reported.
    fn names_are_wrong(&self) -> bool {
        self.found.iter().any(|diagnostic| diagnostic.code == UNKNOWN_AGENT)
    }

    /// Reports duplicate and empty entries of a list.
    fn distinct<'t>(&mut self, items: impl IntoIterator<Item = &'t str>, path: &str) {
        let mut seen = BTreeSet::new();
        for (index, item) in items.into_iter().enumerate() {
            let path = format!("{path}/{index}");
            if item.trim().is_empty() {
                self.add(Diagnostic::error("empty", &path, "this name is empty"));
            } else if !seen.insert(item) {
                let message = format!("`{item}` is listed twice");
                self.add(Diagnostic::error("listed-twice", &path, message));
            }
        }
    }
}

/// The code of an error about an unknown name.
pub(crate) const UNKNOWN_AGENT: &str = "unknown-agent";
/// The code of an error about a cycle that no loop declares.
pub(crate) const UNDECLARED_CYCLE: &str = "undeclared-cycle";
/// The code of an error about a person who cannot be asked.
pub(crate) const NO_ESCALATION: &str = "no-escalation";

fn header(report: &mut Report<'_>) {
    let header = &report.workflow.workflow;
    if header.name.trim().is_empty() {
        report.add(Diagnostic::error("empty", "/workflow/name", "the workflow has no name"));
    }
    if !is_semver(&header.schema_version) {
        let message = format!("`{}` is not a semantic version", header.schema_version);
        report.add(
            Diagnostic::error("bad-version", "/workflow/schema_version", message)
                .help("write three numbers, such as \"1.0.0\""),
        );
    }
    let upper = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    if header.frame_word.is_empty() || !header.frame_word.chars().all(upper) {
        let message = format!("`{}` cannot be the word in control frames", header.frame_word);
        report.add(
            Diagnostic::error("bad-frame-word", "/workflow/frame_word", message)
                .help("use capital letters, digits and `_`"),
        );
    }
    report.knows(header.entry.as_str(), "/workflow/entry");
}

/// Joins names for a sentence: `a`, `b` and `c`.
fn listed<'t>(names: impl IntoIterator<Item = &'t str>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => "nobody".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// True if a text is a version as semver.org defines it.
pub(crate) fn is_semver(text: &str) -> bool {
    let (rest, build) = text.split_once('+').map_or((text, None), |(a, b)| (a, Some(b)));
    let (core, pre) = rest.split_once('-').map_or((rest, None), |(a, b)| (a, Some(b)));
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let number = |part: &str| digits(part) && (part == "0" || !part.starts_with('0'));
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    core.split('.').count() == 3
        && core.split('.').all(number)
        && pre.is_none_or(|pre| {
            pre.split('.').all(|part| word(part) && (!digits(part) || number(part)))
        })
        && build.is_none_or(|build| build.split('.').all(word))
}
