//! Tokens are counted where answers come in: the core decides by the count, and cannot count.

use serde::Serialize;
use stafette_core::run::phase::Measured;
use stafette_core::{Input, Run};

/// What has to be told to the run before `input`, when that answers a phase.
pub(crate) fn before(run: &Run, input: &Input) -> Option<Input> {
    let answer = run.phase_answer(input)?;
    let measured = Measured {
        request: written(&answer.request),
        response: written(&answer.response),
        summary: stafette_tokens::count(&answer.response.context_summary).ok(),
    };
    Some(Input::Measure { turn: answer.turn, measured })
}

fn written(document: &impl Serialize) -> Option<u64> {
    stafette_tokens::count(&serde_json::to_string(document).ok()?).ok()
}
