//! Inputs that are too large together are cut, and what was cut can still be had whole: the note in its
//! place names the handoff whose record has it.

use serde_json::Value;

use super::Run;
use crate::fields;
use crate::handoff::State;
use crate::{Handoff, HandoffId};

/// Cuts these inputs of a handoff, and the same values in the answers that brought them. `from` is
/// named where no record is known that has the value.
pub(super) fn cut(run: &mut Run, id: HandoffId, keys: &[String], from: HandoffId) {
    if keys.is_empty() {
        return;
    }
    let Some(mut handoff) = run.handoff(id).cloned() else { return };
    let holder = |key: &str, value: &Value| {
        let mut all = run.handoffs.values().rev();
        all.find(|handoff| has(handoff, key, value)).map_or(from, |handoff| handoff.id)
    };
    fields::cut(&mut handoff.inputs, keys, holder);
    for answer in &mut handoff.answers {
        fields::cut(&mut answer.outputs, keys, holder);
    }
    if let Some(cut) = run.handoff_mut(id) {
        *cut = handoff;
    }
}

/// True if the record of a handoff has a value whole, in the offer or in an answer, for good.
fn has(handoff: &Handoff, key: &str, value: &Value) -> bool {
    let answer = match &handoff.state {
        State::Closed(closing) => Some(&closing.response.outputs),
        _ => None,
    };
    let gathered = handoff.gathered.iter().map(|answer| &answer.outputs);
    let mut places = answer.into_iter().chain([&handoff.offer.outputs]).chain(gathered);
    places.any(|fields| fields.get(key) == Some(value))
}
