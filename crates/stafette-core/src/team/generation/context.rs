//! The context file of a team that outlives a run: `data/state/orchestrator-context.json`, export
//! and import.

use std::collections::BTreeMap;

use serde_json::{Number, Value, json};

use super::{
    Awaited, ChangeCounts, KEPT, Lineage, Note, Past, Service, decisions, heir, next, services,
    trim,
};
use crate::team::council::Decision;
use crate::text::clip;
use crate::wire::context::{
    AgentState, ChangeStatus, CodeChange, ContextVersion, DiscussionSummary, NextAction,
    OrchestratorContext, PastRun,
};
use crate::wire::scalar::{Measure, Stamp};
use crate::{Fields, Run, Time, Usd};

/// Returns the state of a team, from a run and the changes of its generations.
pub fn context(
    run: &Run,
    changes: &[CodeChange],
    counts: &ChangeCounts,
    at: Time,
) -> OrchestratorContext {
    let plain;
    let lineage = match &run.team.lineage {
        Some(lineage) => &**lineage,
        None => {
            plain = Lineage::first(run.created_at, Fields::new());
            &plain
        }
    };
    // After the handover, the state is that of the next generation.
    let over = lineage.handed_over.as_deref();
    let heir = over.map(|over| heir(run, lineage, over));
    let shown = heir.as_ref().unwrap_or(lineage);
    let spent = lineage.spent.0.saturating_add(run.purse.spent.money.0);
    let ahead = next(run, counts);
    let (mut next_action, cause) = match over {
        Some(over) => (action(over.action, &over.reason, over.target_agent.clone()), over.cause),
        None => (action(ahead.action, &ahead.reason, ahead.target), ahead.cause),
    };
    if let Some(cause) = cause {
        next_action.extra.insert("cause".into(), json!(cause));
    }
    let open = super::awaited(run);
    let awaits: Vec<Value> = lineage.awaits.iter().chain(&open).map(told).collect();
    if !awaits.is_empty() {
        next_action.extra.insert("awaits".into(), json!(awaits));
    }
    let notes: Vec<&str> = lineage.notes.iter().map(|note| note.text.as_str()).collect();
    let mut extra = lineage.foreign.clone();
    extra.insert("run".into(), json!(run.id));
    extra.insert("status".into(), run.status().word().into());
    OrchestratorContext {
        version: ContextVersion::V1,
        run_number: u64::from(shown.number).into(),
        started_at: lineage.since.into(),
        last_updated: at.into(),
        current_phase: shown.phase,
        discussion_summary: discussion(run),
        code_changes: carried(lineage, changes).chain(changes).cloned().collect(),
        agent_states: agents(run, over.is_some()),
        next_action,
        history: shown.past.iter().map(past).collect(),
        total_cost: dollars(Usd(spent)),
        human_notes: (!notes.is_empty()).then(|| Some(notes.join("\n"))),
        extra,
    }
}

/// Returns the changes left by another orchestrator, except those that one of our sets covers by
/// now.
fn carried<'l>(
    lineage: &'l Lineage,
    ours: &'l [CodeChange],
) -> impl Iterator<Item = &'l CodeChange> {
    lineage.changes.iter().filter(|left| {
        left.status != ChangeStatus::Pending || ours.iter().all(|our| our.file != left.file)
    })
}

/// Formats an awaited question for people.
fn told(awaited: &Awaited) -> Value {
    let Awaited { from, question, .. } = awaited;
    json!({ "from": from, "question": question.details, "options": question.options })
}

fn action(
    kind: crate::wire::context::NextActionType,
    reason: &str,
    target: Option<String>,
) -> NextAction {
    let target_agent = target.map(Some);
    NextAction { kind, reason: reason.to_owned(), target_agent, extra: Fields::new() }
}

fn discussion(run: &Run) -> DiscussionSummary {
    let shown = run.shown_council();
    let council = shown.as_ref();
    let members = run.workflow.council.iter().flat_map(|rules| &rules.members);
    let mut signals: BTreeMap<String, String> =
        members.map(|member| (member.to_string(), "building".to_owned())).collect();
    for (member, signal) in council.map(|council| council.signals()).unwrap_or_default() {
        signals.insert(member.to_string(), signal.as_str().to_owned());
    }
    let verdict = council.and_then(|council| council.verdict.as_ref());
    let mut extra = Fields::new();
    if let Some(verdict) = verdict.filter(|verdict| !verdict.dissent.is_empty()) {
        extra.insert("dissent".into(), json!(verdict.dissent));
    }
    DiscussionSummary {
        topic: council.map_or(&run.request, |council| &council.topic).clone(),
        key_decisions: decisions(run, council),
        consensus_reached: verdict.is_some_and(|v| v.decision == Decision::Consensus),
        consensus_signals: signals,
        extra,
    }
}

/// The field of an agent's state that counts its turns whose cost is not known.
pub(super) const UNKNOWN: &str = "unknownCosts";

fn agents(run: &Run, over: bool) -> BTreeMap<String, AgentState> {
    let services = services(run);
    let council = run.team.council.as_deref();
    let state = |name: &str| {
        let service = services.get(name).copied().unwrap_or_default();
        let spoken =
            council.and_then(|council| Some((council.positions.get(name)?.turns, council)));
        let exhausted = spoken.is_some_and(|(turns, council)| turns >= council.limit);
        let mut extra = Fields::new();
        if service.unknown > 0 {
            extra.insert(UNKNOWN.to_owned(), json!(service.unknown));
        }
        AgentState {
            times_processed: service.turns.into(),
            total_cost: dollars(service.cost),
            can_process: over || !exhausted,
            extra,
        }
    };
    let known = run.workflow.agents.keys().map(|name| name.as_str());
    let names = known.chain(services.keys().map(String::as_str));
    names.map(|name| (name.to_owned(), state(name))).collect()
}

fn past(past: &Past) -> PastRun {
    let mut extra = Fields::new();
    if let Some(run) = past.run {
        extra.insert("run".into(), json!(run));
    }
    PastRun {
        run_number: u64::from(past.number).into(),
        phase: past.phase,
        summary: past.summary.clone(),
        cost: dollars(past.cost),
        extra,
    }
}

fn dollars(money: Usd) -> Measure {
    // Money is finite, so it has a JSON number.
    Measure(Number::from_f64(money.dollars()).unwrap_or_else(|| 0.into()))
}

/// The start of a run from a context file.
#[derive(Clone, PartialEq, Debug)]
pub struct Imported {
    /// The topic for the team.
    pub request: String,
    /// The position among the generations.
    pub lineage: Lineage,
}

/// Continues from a context, by any orchestrator. Fields without a counterpart here are kept and
/// exported again.
pub fn import(context: &OrchestratorContext, now: Time) -> Imported {
    let money = |measure: &Measure| Usd::from_dollars(measure.get()).unwrap_or_default();
    let number = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let stamp = |stamp: &Stamp| stamp.time().unwrap_or(now);
    let previous = |fields: &Fields| serde_json::from_value(fields.get("run")?.clone()).ok();
    let mut past: Vec<Past> = context
        .history
        .iter()
        .map(|past| Past {
            number: number(past.run_number.get()),
            run: previous(&past.extra),
            phase: past.phase,
            summary: clip(&past.summary, super::NOTE),
            cost: money(&past.cost),
        })
        .collect();
    trim(&mut past);
    let agents = context.agent_states.iter().take(KEPT * 4).map(|(name, state)| {
        let (turns, cost) = (state.times_processed.get(), money(&state.total_cost));
        let unknown = state.extra.get(UNKNOWN).and_then(Value::as_u64).unwrap_or(0);
        (name.clone(), Service { turns, cost, unknown })
    });
    let summary = &context.discussion_summary;
    let mut decisions: Vec<String> =
        summary.key_decisions.iter().map(|text| clip(text, super::NOTE)).collect();
    trim(&mut decisions);
    let mut foreign = context.extra.clone();
    for ours in ["run", "status"] {
        foreign.shift_remove(ours);
    }
    let notes = context.human_notes.clone().flatten().filter(|text| !text.trim().is_empty());
    let mut lineage = Lineage {
        number: number(context.run_number.get()).max(1),
        previous: previous(&context.extra),
        phase: context.current_phase,
        past,
        spent: money(&context.total_cost),
        agents: agents.collect(),
        decisions,
        changes: context.code_changes.clone(),
        foreign,
        ..Lineage::first(stamp(&context.started_at), Fields::new())
    };
    if let Some(text) = notes {
        lineage.note(Note { text: clip(&text, super::NOTE), by: "context".into(), at: now });
    }
    Imported { request: clip(&summary.topic, super::NOTE), lineage }
}
