//! Checks whether an answer matches its phase, and whether its result is good.

use super::progress::Brought;
use super::{Measured, request};
use crate::handoff::Way;
use crate::run::Run;
use crate::wire::phase::{DIALECT, Decision, Phase, asked, decision};
use crate::{HandoffId, Outcome, Party, Response};

/// Checks an answer; the error is the problem with it. Its shape was checked when it was parsed.
pub(super) fn judge(
    run: &Run,
    id: HandoffId,
    response: &Response,
    measured: Option<Measured>,
) -> Result<(), String> {
    let part = run.team.phases.as_ref().and_then(|phases| phases.part(id));
    let (Some(handoff), Some(part)) = (run.handoff(id), part) else { return Ok(()) };
    let phase = asked(&handoff.offer).unwrap_or(Phase::Research);
    let answer = response.foreign.as_ref().filter(|foreign| foreign.dialect == DIALECT);
    let Some(answer) = answer else {
        return Err(format!(
            "the {phase} phase is answered with a phase response: task_id, phase, status, decision, \
             findings and context_summary"
        ));
    };
    let echoed = |path: &str, found: &str, wanted: &str| match found == wanted {
        true => Ok(()),
        false => Err(format!("/{path}: `{found}` is not the `{wanted}` of the request")),
    };
    echoed("task_id", &answer.id, &part.task_id)?;
    let found = answer.fields.get("phase").and_then(|phase| phase.as_str()).unwrap_or_default();
    echoed("phase", found, phase.as_str())?;
    fits(measured, request::most(&handoff.offer), response)
}

fn fits(measured: Option<Measured>, most: u64, response: &Response) -> Result<(), String> {
    let bytes = response.summary.len() as u64;
    match measured {
        Some(Measured { summary: Some(tokens), .. }) if tokens <= most => Ok(()),
        Some(Measured { summary: Some(tokens), .. }) => {
            Err(format!("/context_summary: it has {tokens} tokens, and {most} are allowed"))
        }
        // It was not counted, but a token has at least one byte.
        None if bytes <= most => Ok(()),
        None | Some(Measured { summary: None, .. }) => Err(format!(
            "/context_summary: its {bytes} bytes are too many to be counted, and {most} tokens are \
             allowed"
        )),
    }
}

/// Returns the result of a part that has ended. `alone` means that no other agent works in its
/// phase: a decision to continue without it is then a decision for the phase.
pub(super) fn brought(way: Way, response: &Response, alone: bool) -> Brought {
    let decision = decision(response);
    let valid = response.outputs.get("overall_passed").is_none_or(|passed| *passed == true);
    let went_on = alone || response.by == Party::Human;
    let passed = match (way, response.outcome, decision) {
        (Way::Answered, Outcome::Resolved | Outcome::Partial, Some(Decision::Proceed)) => valid,
        (Way::Answered, Outcome::Resolved, None) => true,
        (Way::Answered, Outcome::Partial, None) => went_on,
        _ => false,
    };
    let issues = |name: &str| {
        let list = response.outputs.get(name)?.as_array()?;
        let texts: Vec<&str> = list.iter().filter_map(|issue| issue.as_str()).collect();
        (!texts.is_empty()).then(|| texts.join("; "))
    };
    let problem = match passed {
        true => None,
        false => issues("blocking_issues").or_else(|| response.failure.clone()),
    };
    Brought { passed, decision, summary: response.summary.clone(), problem }
}
