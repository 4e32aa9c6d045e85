//! Counts tokens where answers come in: the core decides by the count, and cannot count.

use serde::Serialize;
use stafette_core::team::phase::Measured;
use stafette_core::{Input, Response, Run, TurnKey};

use crate::EngineError;

/// Adds the number of tokens of a phase's answer to the input.
pub(crate) fn add(run: &Run, input: &mut Input) {
    let Some(answer) = run.phase_answer(input) else { return };
    let measured = Some(Measured {
        request: written(&answer.request),
        response: written(&answer.response),
        summary: stafette_tokens::count(&answer.response.context_summary).ok(),
    });
    match input {
        Input::Finish { result, .. } => result.said.measured = measured,
        Input::Tell { told, .. } => told.said.measured = measured,
        _ => {}
    }
}

/// Returns the mistakes in an answer that an agent gives through a channel of its own, so that it
/// learns of them immediately and loses no turn.
pub(crate) fn check(run: &Run, turn: TurnKey, response: &Response) -> Result<(), EngineError> {
    let summary = stafette_tokens::count(&response.summary).ok();
    let measured = Measured { summary, ..Measured::default() };
    match run.phase_complaint(turn, response, measured) {
        Some(complaint) => Err(EngineError::Mistaken { mistakes: vec![complaint] }),
        None => Ok(()),
    }
}

fn written(document: &impl Serialize) -> Option<u64> {
    stafette_tokens::count(&serde_json::to_string(document).ok()?).ok()
}
