//! The contract's validation gate: sections, counts, cross references and quality, each with the
//! requirement and the finding.
//!
//! It applies to two things. A *document* is a written handoff protocol in Markdown: headings,
//! tables and code blocks are counted. A *workflow* is held to the same list by its content and by
//! what the engine provides for it, which the caller passes in.

mod document;
mod outline;

use std::ops::Range;

use serde::Serialize;

use crate::check::{self, NO_ESCALATION, UNDECLARED_CYCLE, UNKNOWN_AGENT, worst_case};
use stafette_config::{Diagnostic, Position, Spans, plain};
use stafette_core::{Millis, Workflow};

pub use document::document;

/// The required sections of a protocol.
pub const SECTIONS: [&str; 6] = [
    "Handoff Protocol Overview",
    "Handoff Schema",
    "Handoff Routes",
    "Handoff Implementation",
    "Handoff Observability",
    "Error Recovery",
];
/// The required schemas of a protocol.
pub const SCHEMAS: [&str; 3] = ["HandoffRequest", "HandoffResponse", "HandoffDecision"];
/// The attributes of a handoff's span.
pub const SPAN_ATTRIBUTES: [&str; 8] = [
    "handoff.trace_id",
    "handoff.source_agent",
    "handoff.target_agent",
    "handoff.reason",
    "handoff.status",
    "handoff.execution_time_ms",
    "handoff.inputs_provided",
    "handoff.inputs_missing",
];
/// The names of the handoff metrics.
pub const METRICS: [&str; 6] = [
    "handoff.total",
    "handoff.success",
    "handoff.failed",
    "handoff.escalated",
    "handoff.duration_ms",
    "handoff.circular_blocked",
];

const VALID_ROUTES: usize = 4;
const INVALID_ROUTES: usize = 2;
const STRATEGIES: usize = 3;

/// The part of the gate that an item belongs to.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Something has to be present.
    Section,
    /// There has to be enough of something.
    Count,
    /// Something has to agree with something else.
    CrossReference,
    /// Something has to be considered.
    Quality,
}

/// One requirement of the gate, with its result.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct GateItem {
    pub part: Part,
    /// The subject of the requirement.
    pub name: &'static str,
    /// The requirement in words.
    pub required: String,
    /// The finding in words.
    pub found: String,
    /// True if the requirement is met.
    pub ok: bool,
    /// The byte range in the file that it is about, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Range<usize>>,
}

impl GateItem {
    /// Formats the item as one line, with its position.
    pub fn render(&self, file_name: &str, text: &str) -> String {
        let word = if self.ok { "pass" } else { "FAIL" };
        let line = self.span.as_ref().map(|span| Position::of(text, span.start).line);
        let place = line.map_or_else(|| file_name.to_owned(), |line| format!("{file_name}:{line}"));
        let GateItem { name, required, found, .. } = self;
        // Names in a document can contain anything: none of them may control the terminal.
        plain(&format!("{word}  {name}: {found} (required: {required}) at {place}")) + "\n"
    }
}

/// True if all items are met.
pub fn passes(items: &[GateItem]) -> bool {
    items.iter().all(|item| item.ok)
}

/// The features that the engine provides to every workflow.
#[derive(Clone, Copy, Debug, Default)]
pub struct Provided<'a> {
    pub schemas: &'a [&'a str],
    pub span_attributes: &'a [&'a str],
    pub metrics: &'a [&'a str],
}

/// Checks a workflow against the gate.
pub fn workflow(workflow: &Workflow, spans: &Spans, provided: Provided<'_>) -> Vec<GateItem> {
    let found = check::check(workflow, spans);
    let wrong = |codes: &[&str]| -> Vec<&Diagnostic> {
        found.iter().filter(|d| d.is_error() && codes.contains(&d.code)).collect()
    };
    let mut items = Vec::new();
    let mut add = |part, name, required: String, found: String, ok, path: &str| {
        let span = spans.key(path);
        items.push(GateItem { part, name, required, found, ok, span });
    };

    let agents = workflow.agents.len();
    let roles = workflow.agents.values().filter(|agent| !agent.role.trim().is_empty()).count();
    let schemas = SCHEMAS.iter().filter(|name| has(provided.schemas, name)).count();
    let idle = wrong(&["no-command", "no-script"]).len();
    let attributes =
        SPAN_ATTRIBUTES.iter().filter(|name| has(provided.span_attributes, name)).count();
    let metrics = METRICS.iter().filter(|name| has(provided.metrics, name)).count();
    let rules = &workflow.recovery.rules;
    let observed = attributes == SPAN_ATTRIBUTES.len() && metrics == METRICS.len();
    let observability = format!("{attributes} span attributes, {metrics} metrics");

    let section = Part::Section;
    add(
        section,
        SECTIONS[0],
        "every agent says what it is for".into(),
        format!("{roles} of {agents} agents do"),
        agents > 0 && roles == agents,
        "/agents",
    );
    add(section, SECTIONS[1], "published".into(), named(provided.schemas), schemas > 0, "");
    let count = |n: usize, what: &str| format!("{n} {what}");
    let routes = workflow.routes.len();
    add(section, SECTIONS[2], "present".into(), count(routes, "routes"), routes > 0, "/routes");
    add(
        section,
        SECTIONS[3],
        "every agent can be started".into(),
        format!("{} of {agents} can", agents - idle),
        agents > 0 && idle == 0,
        "/agents",
    );
    add(
        section,
        SECTIONS[4],
        "present".into(),
        observability.clone(),
        attributes + metrics > 0,
        "",
    );
    add(
        section,
        SECTIONS[5],
        "present".into(),
        count(rules.len(), "rules"),
        !rules.is_empty(),
        "/recovery",
    );

    let at_least = |n: usize| format!("at least {n}");
    let mut actions: Vec<_> = rules.iter().map(|rule| rule.action as u8).collect();
    actions.sort_unstable();
    actions.dedup();
    let denied = workflow.deny.len();
    add(
        Part::Count,
        "schemas",
        at_least(SCHEMAS.len()),
        schemas.to_string(),
        schemas == SCHEMAS.len(),
        "",
    );
    for (name, needed, there, path) in [
        ("valid routes", VALID_ROUTES, routes, "/routes"),
        ("invalid routes", INVALID_ROUTES, denied, "/deny"),
        ("recovery strategies", STRATEGIES, actions.len(), "/recovery"),
    ] {
        add(Part::Count, name, at_least(needed), there.to_string(), there >= needed, path);
    }

    let unknown = wrong(&[UNKNOWN_AGENT]).len();
    add(
        Part::CrossReference,
        "agents",
        "every name is an agent".into(),
        format!("{unknown} unknown"),
        unknown == 0,
        "/agents",
    );
    let version = &workflow.workflow.schema_version;
    add(
        Part::CrossReference,
        "schema version",
        "a semantic version".into(),
        version.clone(),
        check::is_semver(version),
        "/workflow/schema_version",
    );
    let handoffs = u64::from(workflow.limits.handoffs_per_run);
    let worst = Millis(worst_case(workflow).0.saturating_mul(handoffs));
    add(
        Part::CrossReference,
        "limits",
        format!("within {}", workflow.budget.time),
        format!("{worst} at worst"),
        worst <= workflow.budget.time,
        "/limits",
    );

    let cycles = wrong(&[UNDECLARED_CYCLE]).len();
    add(
        Part::Quality,
        "circular detection",
        "every cycle is declared".into(),
        format!("{cycles} undeclared"),
        cycles == 0,
        "/loops",
    );
    let closed = wrong(&[NO_ESCALATION]).len();
    let path = if closed == 0 { "open to every agent" } else { "closed" };
    add(Part::Quality, "human escalation", "a path".into(), path.into(), closed == 0, "/limits");
    let names = format!("{} span attributes, {} metrics", SPAN_ATTRIBUTES.len(), METRICS.len());
    add(Part::Quality, "observability", names, observability, observed, "");
    items
}

/// True if a list has a name in any spelling: `HandoffRequest`, `handoff_request`.
fn has(names: &[&str], wanted: &str) -> bool {
    let bare = |name: &str| -> String {
        name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
    };
    names.iter().any(|name| bare(name) == bare(wanted))
}

fn named(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;

    const ALL: Provided<'_> =
        Provided { schemas: &SCHEMAS, span_attributes: &SPAN_ATTRIBUTES, metrics: &METRICS };
    const FEATURE: &str = include_str!("../../stafette/templates/feature.toml");

    fn shown(text: &str, provided: Provided<'_>) -> String {
        let source = file::read(text).unwrap();
        let items = workflow(&source.workflow, &source.spans, provided);
        items.iter().map(|item| item.render("stafette.toml", text)).collect()
    }

    #[test]
    fn s2_11_the_gate_says_what_it_found_in_a_workflow() {
        insta::assert_snapshot!(shown(FEATURE, ALL), @"
        pass  Handoff Protocol Overview: 4 of 4 agents do (required: every agent says what it is for) at stafette.toml:17
        pass  Handoff Schema: HandoffRequest, HandoffResponse, HandoffDecision (required: published) at stafette.toml
        pass  Handoff Routes: 5 routes (required: present) at stafette.toml:68
        pass  Handoff Implementation: 4 of 4 can (required: every agent can be started) at stafette.toml:17
        pass  Handoff Observability: 8 span attributes, 6 metrics (required: present) at stafette.toml
        pass  Error Recovery: 3 rules (required: present) at stafette.toml:141
        pass  schemas: 3 (required: at least 3) at stafette.toml
        pass  valid routes: 5 (required: at least 4) at stafette.toml:68
        pass  invalid routes: 3 (required: at least 2) at stafette.toml:99
        pass  recovery strategies: 3 (required: at least 3) at stafette.toml:141
        pass  agents: 0 unknown (required: every name is an agent) at stafette.toml:17
        pass  schema version: 1.0.0 (required: a semantic version) at stafette.toml:11
        pass  limits: 2d at worst (required: within 7d) at stafette.toml:120
        pass  circular detection: 0 undeclared (required: every cycle is declared) at stafette.toml:115
        pass  human escalation: open to every agent (required: a path) at stafette.toml:120
        pass  observability: 8 span attributes, 6 metrics (required: 8 span attributes, 6 metrics) at stafette.toml
        ");
    }

    #[test]
    fn s2_11_every_template_passes_the_gate() {
        for text in [
            FEATURE,
            include_str!("../../stafette/templates/odei.toml"),
            include_str!("../../stafette/templates/phases.toml"),
            include_str!("../../stafette/templates/council.toml"),
        ] {
            let source = file::read(text).unwrap();
            let items = workflow(&source.workflow, &source.spans, ALL);
            assert!(passes(&items), "{}", shown(text, ALL));
        }
    }

    #[test]
    fn s2_11_a_thin_workflow_fails_the_gate_item_by_item() {
        let text = r#"[workflow]
name = "thin"
entry = "a"
schema_version = "one"

[agents.a]
runner = "exec"

[agents.b]
role = "Answers."
runner = "exec"
command = ["cat"]

[[routes]]
from = "a"
to = "b"

[[routes]]
from = "b"
to = "a"

[limits]
answer_timeout = 0

[budget]
time = "8h"
"#;
        insta::assert_snapshot!(shown(text, Provided::default()), @"
        FAIL  Handoff Protocol Overview: 1 of 2 agents do (required: every agent says what it is for) at stafette.toml:6
        FAIL  Handoff Schema: none (required: published) at stafette.toml
        pass  Handoff Routes: 2 routes (required: present) at stafette.toml:14
        FAIL  Handoff Implementation: 1 of 2 can (required: every agent can be started) at stafette.toml:6
        FAIL  Handoff Observability: 0 span attributes, 0 metrics (required: present) at stafette.toml
        FAIL  Error Recovery: 0 rules (required: present) at stafette.toml
        FAIL  schemas: 0 (required: at least 3) at stafette.toml
        FAIL  valid routes: 2 (required: at least 4) at stafette.toml:14
        FAIL  invalid routes: 0 (required: at least 2) at stafette.toml
        FAIL  recovery strategies: 0 (required: at least 3) at stafette.toml
        pass  agents: 0 unknown (required: every name is an agent) at stafette.toml:6
        FAIL  schema version: one (required: a semantic version) at stafette.toml:4
        FAIL  limits: 2d at worst (required: within 8h 00m) at stafette.toml:22
        FAIL  circular detection: 1 undeclared (required: every cycle is declared) at stafette.toml
        FAIL  human escalation: closed (required: a path) at stafette.toml:22
        FAIL  observability: 0 span attributes, 0 metrics (required: 8 span attributes, 6 metrics) at stafette.toml
        ");
    }
}
