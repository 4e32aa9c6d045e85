//! The requests to a phase's agents, with the minimum of context.

use serde_json::Value;

use super::Phases;
use super::progress::lead;
use crate::run::Run;
use crate::wire::phase::{PhaseContext, PhaseRequest};
use crate::workflow::phases::PhaseStep;
use crate::{AgentName, Fields, Offer, Party};

/// The maximum length of the summary for the next phase, in tokens.
pub const MAX_SUMMARY: u64 = 500;

/// The request field with the maximum length of the answer's summary.
const LIMIT: &str = "max_summary_tokens";

/// The maximum length of a feature name derived from a request, in characters.
const FEATURE: usize = 80;

/// Returns the request for one agent, in the model's terms.
pub(super) fn offer(run: &Run, phases: &Phases, step: &PhaseStep, agent: &AgentName) -> Offer {
    let task_id = match step.agents.as_slice() {
        [_] => phases.task_id.clone(),
        _ => format!("{}/{agent}", phases.task_id),
    };
    let instructions = match step.instructions.trim() {
        "" => run.request.clone(),
        instructions => instructions.replace("{request}", &run.request),
    };
    let phase = step.asked();
    let request = PhaseRequest {
        task_id,
        phase,
        context: context(run, phases, step),
        instructions,
        expected_output: phase.output(),
        extra: Fields::from_iter([(LIMIT.to_owned(), share(step, agent).into())]),
    };
    request.into_offer(Party::from(agent))
}

/// Returns the maximum length of one part's summary, in tokens: several parts share the limit.
fn share(step: &PhaseStep, agent: &AgentName) -> u64 {
    match step.agents.len() as u64 {
        0 | 1 => MAX_SUMMARY,
        // A token has at least one byte, so the prefix never has more tokens than this.
        parts => {
            let before = lead(&Party::from(agent), false).len() as u64 + 1;
            (MAX_SUMMARY / parts).saturating_sub(before)
        }
    }
}

/// Returns the maximum length of the summary in the answer to this request, in tokens.
pub(super) fn most(offer: &Offer) -> u64 {
    let foreign = offer.foreign.as_ref().and_then(|foreign| foreign.fields.get(LIMIT)?.as_u64());
    foreign.unwrap_or(MAX_SUMMARY)
}

fn context(run: &Run, phases: &Phases, step: &PhaseStep) -> PhaseContext {
    let mut extra = phases.given.clone();
    extra.shift_remove("task_id");
    let feature = match extra.shift_remove("feature") {
        Some(Value::String(feature)) => feature,
        _ => run.request.lines().next().unwrap_or_default().chars().take(FEATURE).collect(),
    };
    let mut constraints = texts(extra.shift_remove("constraints"));
    constraints.extend(step.constraints.iter().cloned());
    let files = texts(extra.shift_remove("relevant_files"));
    let spec = extra.shift_remove("spec_path").and_then(|path| Some(path.as_str()?.to_owned()));
    extra.shift_remove("previous_findings");
    PhaseContext {
        feature,
        spec_path: spec.map(Some),
        relevant_files: (!files.is_empty()).then_some(files),
        constraints: (!constraints.is_empty()).then_some(constraints),
        previous_findings: phases.findings.clone().map(Some),
        extra,
    }
}

/// Returns the texts of a list; a single text is a list of one.
fn texts(value: Option<Value>) -> Vec<String> {
    match value {
        Some(Value::String(text)) => vec![text],
        Some(Value::Array(items)) => {
            items.iter().filter_map(|item| Some(item.as_str()?.to_owned())).collect()
        }
        _ => Vec::new(),
    }
}
