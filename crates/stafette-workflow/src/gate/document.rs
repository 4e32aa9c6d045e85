//! A written handoff protocol: the content of its headings, tables and code blocks.

use std::collections::BTreeSet;
use std::ops::Range;

use super::outline::{Block, Kind, Outline, lines};
use super::{
    GateItem, INVALID_ROUTES, METRICS, Part, SCHEMAS, SECTIONS, SPAN_ATTRIBUTES, STRATEGIES,
    VALID_ROUTES,
};
use crate::check::is_semver;
use stafette_core::{AgentName, Millis, Party, Workflow};

/// Checks a Markdown document against the gate; with a workflow, also its agents and its time
/// limit.
pub fn document(text: &str, workflow: Option<&Workflow>) -> Vec<GateItem> {
    let outline = Outline::of(text);
    let routes = Routes::of(&outline);
    let mut items: Vec<GateItem> = SECTIONS.iter().map(|name| section(&outline, name)).collect();
    items.extend(counts(&outline, &routes));
    items.push(agents(&routes, workflow));
    items.push(version(text));
    items.push(limits(text, workflow));
    items.extend(quality(&outline, &routes));
    items
}

fn section(outline: &Outline<'_>, name: &'static str) -> GateItem {
    let heading = outline.section(name).and_then(|blocks| blocks.first());
    let filled = outline.section(name).is_some_and(|blocks| {
        blocks.iter().any(|block| !matches!(block.kind, Kind::Heading { .. }))
    });
    let found = match heading {
        None => "missing",
        Some(_) if !filled => "empty",
        Some(_) => "present",
    };
    GateItem {
        part: Part::Section,
        name,
        required: "present".into(),
        found: found.into(),
        ok: filled,
        span: heading.map(|block| block.span.clone()),
    }
}

fn counts(outline: &Outline<'_>, routes: &Routes) -> Vec<GateItem> {
    let schema = outline.section(SECTIONS[1]).unwrap_or_default();
    // A schema is a heading of its own with a code block below it.
    let (mut schemas, mut named) = (0, false);
    for block in schema.iter().skip(1) {
        match block.kind {
            Kind::Heading { .. } => named = true,
            Kind::Code if std::mem::take(&mut named) => schemas += 1,
            _ => {}
        }
    }
    let recovery = outline.section(SECTIONS[5]).unwrap_or_default();
    let strategies: usize = recovery
        .iter()
        .filter_map(Block::table)
        .filter(|(header, _)| {
            header.first().is_some_and(|cell| cell.to_lowercase().contains("strategy"))
        })
        .map(|(_, rows)| rows.len())
        .sum();
    let place = |blocks: &[Block<'_>]| blocks.first().map(|block| block.span.clone());
    let in_routes = || place(outline.section(SECTIONS[2]).unwrap_or_default());
    [
        ("schemas", SCHEMAS.len(), schemas, place(schema)),
        ("valid routes", VALID_ROUTES, routes.valid.len(), in_routes()),
        ("invalid routes", INVALID_ROUTES, routes.invalid, in_routes()),
        ("recovery strategies", STRATEGIES, strategies, place(recovery)),
    ]
    .into_iter()
    .map(|(name, needed, there, span)| GateItem {
        part: Part::Count,
        name,
        required: format!("at least {needed}"),
        found: there.to_string(),
        ok: there >= needed,
        span,
    })
    .collect()
}

fn agents(routes: &Routes, workflow: Option<&Workflow>) -> GateItem {
    let strange = |name: &&String| match (workflow, Party::from(name.as_str())) {
        (_, Party::Human | Party::Orchestrator) => false,
        (_, party) if party == stafette_core::workflow::council::party() => false,
        (Some(workflow), _) => !workflow.agents.contains_key(name.as_str()),
        (None, _) => name.parse::<AgentName>().is_err(),
    };
    let strange: Vec<&str> = routes.names.iter().filter(strange).map(String::as_str).collect();
    let known = workflow.iter().flat_map(|workflow| workflow.agents.keys());
    let forgotten: Vec<&str> =
        known.map(AgentName::as_str).filter(|name| !routes.names.contains(*name)).collect();
    let mut found = vec![format!("{} names", routes.names.len())];
    if !strange.is_empty() {
        found.push(format!("not an agent: {}", strange.join(", ")));
    }
    if !forgotten.is_empty() {
        found.push(format!("not in the routes: {}", forgotten.join(", ")));
    }
    let required = match workflow {
        Some(_) => "the agents of the workflow",
        None => "names of agents",
    };
    GateItem {
        part: Part::CrossReference,
        name: "agents",
        required: required.into(),
        found: found.join("; "),
        ok: !routes.names.is_empty() && strange.is_empty() && forgotten.is_empty(),
        span: routes.span.clone(),
    }
}

fn version(text: &str) -> GateItem {
    let names = ["schema_version", "schemaversion", "schema version"];
    let hit = lines(text).find_map(|(line, span)| {
        let lower = line.to_lowercase();
        let after = names.iter().find_map(|name| Some(lower.find(name)? + name.len()))?;
        let word = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '+');
        let mut words = lower.get(after..)?.split(|c| !word(c));
        words.find(|w| w.contains(|c: char| c.is_ascii_digit())).map(|w| (w.to_owned(), span))
    });
    GateItem {
        part: Part::CrossReference,
        name: "schema version",
        required: "a semantic version".into(),
        found: hit.as_ref().map_or_else(|| "none".into(), |(version, _)| version.clone()),
        ok: hit.as_ref().is_some_and(|(version, _)| is_semver(version)),
        span: hit.map(|(_, span)| span),
    }
}

/// Checks that the limits, by the contract's names, fit into the available time.
fn limits(text: &str, workflow: Option<&Workflow>) -> GateItem {
    let number = |name: &str| {
        lines(text).find_map(|(line, span)| {
            let rest = &line[line.find(name)? + name.len()..];
            let digits: String = rest
                .chars()
                .skip_while(|c| !c.is_ascii_digit())
                .take_while(|c| c.is_ascii_digit() || *c == '_')
                .filter(|c| *c != '_')
                .collect();
            Some((digits.parse::<u64>().ok()?, span))
        })
    };
    let stated = lines(text).find_map(|(line, _)| {
        let after = line.to_lowercase().find("latency budget")? + "latency budget".len();
        let rest = line.get(after..)?;
        let mut words = rest.split(|c: char| !c.is_alphanumeric());
        words.find_map(|word| Millis::parse(word).ok())
    });
    let budget = workflow.map(|workflow| workflow.budget.time).or(stated);
    let item = number("maxHandoffsPerItem");
    let run = number("maxHandoffsPerPipeline");
    let timeout = number("handoffTimeoutMs");
    let cooldown = number("handoffCooldownMs").map_or(0, |(ms, _)| ms);
    let span = run.as_ref().map(|(_, span)| span.clone());
    let (found, ok) = match (item, run, timeout) {
        (Some((item, _)), Some((run, _)), Some((timeout, _))) => {
            let worst = Millis(run.saturating_mul(timeout.saturating_add(cooldown)));
            let fits = budget.is_some_and(|budget| worst <= budget);
            (
                format!("{worst} at worst, {item} handoffs an item of {run} in all"),
                fits && item <= run,
            )
        }
        _ => (
            "not all of maxHandoffsPerItem, maxHandoffsPerPipeline, handoffTimeoutMs".into(),
            false,
        ),
    };
    let required = match budget {
        Some(budget) => format!("within {budget}"),
        None => "a latency budget, stated here or in a workflow".into(),
    };
    GateItem { part: Part::CrossReference, name: "limits", required, found, ok, span }
}

fn quality(outline: &Outline<'_>, routes: &Routes) -> [GateItem; 3] {
    let implementation = outline.section(SECTIONS[3]).unwrap_or_default();
    let circular =
        implementation.iter().find(|block| block.text.to_lowercase().contains("circular"));
    let person = routes.valid.iter().find(|(_, to, _)| to == "human");
    let observed = outline.section(SECTIONS[4]).unwrap_or_default();
    let count = |names: &[&str]| {
        names.iter().filter(|name| observed.iter().any(|block| block.text.contains(**name))).count()
    };
    let (attributes, metrics) = (count(&SPAN_ATTRIBUTES), count(&METRICS));
    let item = |name, required: &str, found: String, ok, span| GateItem {
        part: Part::Quality,
        name,
        required: required.into(),
        found,
        ok,
        span,
    };
    let yes = |there: bool| if there { "present" } else { "missing" }.to_owned();
    [
        item(
            "circular detection",
            "in the implementation",
            yes(circular.is_some()),
            circular.is_some(),
            circular.map(|block| block.span.clone()),
        ),
        item(
            "human escalation",
            "a route to `human`",
            yes(person.is_some()),
            person.is_some(),
            person.map(|(_, _, span)| span.clone()),
        ),
        item(
            "observability",
            "traces and metrics",
            format!("{attributes} span attributes, {metrics} metrics"),
            attributes > 0 && metrics > 0,
            observed.first().map(|block| block.span.clone()),
        ),
    ]
}

/// The handoffs that a document allows and forbids.
#[derive(Default)]
struct Routes {
    valid: Vec<(String, String, Range<usize>)>,
    invalid: usize,
    names: BTreeSet<String>,
    span: Option<Range<usize>>,
}

impl Routes {
    fn of(outline: &Outline<'_>) -> Self {
        let mut routes = Routes::default();
        let mut below = String::new();
        for block in outline.section(SECTIONS[2]).unwrap_or_default() {
            if let Kind::Heading { title, .. } = &block.kind {
                below = title.to_lowercase();
                routes.span.get_or_insert(block.span.clone());
            }
            let Some((header, rows)) = block.table() else { continue };
            let first = header.first().map(|cell| cell.to_lowercase()).unwrap_or_default();
            let forbids = |text: &str| {
                ["invalid", "anti-pattern", "denied", "forbidden"]
                    .iter()
                    .any(|word| text.contains(word))
            };
            if forbids(&below) || forbids(&first) {
                rows.iter().for_each(|(cells, _)| routes.forbid(cells));
            } else if ["source", "from", "agent"].iter().any(|word| first.contains(word)) {
                rows.iter().for_each(|(cells, span)| routes.allow(cells, span));
            }
        }
        routes
    }

    fn allow(&mut self, cells: &[String], span: &Range<usize>) {
        let [from, to, ..] = cells else { return };
        for to in to.split(',').map(str::trim).filter(|to| !to.is_empty()) {
            self.name(from);
            self.name(to);
            self.valid.push((from.clone(), to.to_owned(), span.clone()));
        }
    }

    fn forbid(&mut self, cells: &[String]) {
        let Some(path) = cells.first() else { return };
        self.invalid += 1;
        // "Circular: A → B → A" forbids a shape, not a path between agents.
        if !path.to_lowercase().starts_with("circular") {
            path.replace("->", "→").split('→').for_each(|name| self.name(name.trim()));
        }
    }

    fn name(&mut self, name: &str) {
        let everyone = ["any", "any agent", "every agent", "all agents", "*"];
        if !name.is_empty() && !everyone.contains(&name.to_lowercase().as_str()) {
            self.names.insert(name.to_owned());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file;
    use crate::gate::passes;

    const COMPLETE: &str = include_str!("../../../../fixtures/gate/protocol.md");
    const INCOMPLETE: &str = include_str!("../../../../fixtures/gate/protocol-incomplete.md");

    fn shown(text: &str, workflow: Option<&Workflow>) -> String {
        let items = document(text, workflow);
        items.iter().map(|item| item.render("PROTOCOL.md", text)).collect()
    }

    fn feature() -> Workflow {
        file::parse(include_str!("../../../stafette/templates/feature.toml")).unwrap()
    }

    #[test]
    fn s2_11_a_complete_protocol_passes_the_gate() {
        insta::assert_snapshot!(shown(COMPLETE, Some(&feature())), @"
        pass  Handoff Protocol Overview: present (required: present) at PROTOCOL.md:5
        pass  Handoff Schema: present (required: present) at PROTOCOL.md:11
        pass  Handoff Routes: present (required: present) at PROTOCOL.md:52
        pass  Handoff Implementation: present (required: present) at PROTOCOL.md:84
        pass  Handoff Observability: present (required: present) at PROTOCOL.md:89
        pass  Error Recovery: present (required: present) at PROTOCOL.md:101
        pass  schemas: 3 (required: at least 3) at PROTOCOL.md:11
        pass  valid routes: 6 (required: at least 4) at PROTOCOL.md:52
        pass  invalid routes: 3 (required: at least 2) at PROTOCOL.md:52
        pass  recovery strategies: 3 (required: at least 3) at PROTOCOL.md:101
        pass  agents: 6 names (required: the agents of the workflow) at PROTOCOL.md:52
        pass  schema version: 1.0.0 (required: a semantic version) at PROTOCOL.md:13
        pass  limits: 1h 40m at worst, 12 handoffs an item of 20 in all (required: within 7d) at PROTOCOL.md:79
        pass  circular detection: present (required: in the implementation) at PROTOCOL.md:86
        pass  human escalation: present (required: a route to `human`) at PROTOCOL.md:63
        pass  observability: 5 span attributes, 4 metrics (required: traces and metrics) at PROTOCOL.md:89
        ");
        assert!(passes(&document(COMPLETE, None)), "{}", shown(COMPLETE, None));
    }

    #[test]
    fn s2_11_an_incomplete_protocol_fails_where_it_is_incomplete() {
        insta::assert_snapshot!(shown(INCOMPLETE, Some(&feature())), @"
        pass  Handoff Protocol Overview: present (required: present) at PROTOCOL.md:3
        pass  Handoff Schema: present (required: present) at PROTOCOL.md:7
        pass  Handoff Routes: present (required: present) at PROTOCOL.md:21
        FAIL  Handoff Implementation: empty (required: present) at PROTOCOL.md:40
        FAIL  Handoff Observability: missing (required: present) at PROTOCOL.md
        pass  Error Recovery: present (required: present) at PROTOCOL.md:42
        FAIL  schemas: 1 (required: at least 3) at PROTOCOL.md:7
        FAIL  valid routes: 2 (required: at least 4) at PROTOCOL.md:21
        FAIL  invalid routes: 1 (required: at least 2) at PROTOCOL.md:21
        FAIL  recovery strategies: 1 (required: at least 3) at PROTOCOL.md:42
        FAIL  agents: 3 names; not an agent: tester; not in the routes: fixer, reviewer (required: the agents of the workflow) at PROTOCOL.md:21
        FAIL  schema version: 1.0 (required: a semantic version) at PROTOCOL.md:9
        FAIL  limits: 10m 00s at worst, 30 handoffs an item of 20 in all (required: within 7d) at PROTOCOL.md:36
        FAIL  circular detection: missing (required: in the implementation) at PROTOCOL.md
        FAIL  human escalation: missing (required: a route to `human`) at PROTOCOL.md
        FAIL  observability: 0 span attributes, 0 metrics (required: traces and metrics) at PROTOCOL.md
        ");
        assert!(!passes(&document(INCOMPLETE, None)));
    }

    #[test]
    fn s2_11_nothing_passes_with_nothing_in_it() {
        let items = document("", None);
        assert!(items.iter().all(|item| !item.ok), "{}", shown("", None));
        // A heading in a code block is not a section, and a section without text is empty.
        let hidden = "```\n## Handoff Routes\n```\n## Error Recovery\n";
        let found: Vec<_> = document(hidden, None).into_iter().map(|item| item.found).collect();
        assert_eq!(found[2], "missing");
        assert_eq!(found[5], "empty");
    }

    #[test]
    fn s2_11_a_document_that_is_still_a_form_names_no_agents() {
        let form = COMPLETE.replace("`planner`", "`[agent_1]`");
        let items = document(&form, None);
        let agents = items.iter().find(|item| item.name == "agents").unwrap();
        assert!(!agents.ok);
        assert!(agents.found.contains("[agent_1]"), "{}", agents.found);
    }

    #[test]
    fn s2_11_limits_need_a_budget_to_be_held_against() {
        let limits = |text: &str| {
            document(text, None).into_iter().find(|item| item.name == "limits").unwrap()
        };
        assert!(limits(COMPLETE).ok);
        let tight = COMPLETE.replace("Latency budget: 2h", "Latency budget: 10m");
        assert!(!limits(&tight).ok);
        let silent = COMPLETE.replace("Latency budget: 2h", "Be quick");
        assert!(limits(&silent).required.contains("a latency budget"));
        assert!(!limits(&silent).ok);
    }
}
