//! Counts, sizes and the cooldown.

use serde_json::Value;

use super::Refusal;
use crate::run::Run;
use crate::{Fields, Offer, Party, Time};

/// The most that a handoff may carry, in bytes.
pub const MAX_PAYLOAD: usize = 1024 * 1024;

/// Handoffs between agents and to the council count; questions to people, the orchestrator's rulings,
/// a person's own requests and the turns of a council's members do not.
pub(super) fn counts(offer: &Offer) -> bool {
    let moves = matches!(offer.to, Party::Agent(_) | Party::Council);
    moves && offer.from != Party::Human && !offer.is_council_turn()
}

pub(super) fn item(offer: &Offer) -> &str {
    offer.item.as_deref().unwrap_or("global")
}

pub(super) fn check_counts(run: &Run, offer: &Offer) -> Result<(), Refusal> {
    if !counts(offer) {
        return Ok(());
    }
    let limits = &run.workflow.limits;
    let item = item(offer);
    if run.tally.per_item.get(item).is_some_and(|n| *n >= limits.handoffs_per_item) {
        let limit = limits.handoffs_per_item;
        return Err(Refusal::ItemLimit { item: item.to_owned(), limit });
    }
    if run.tally.handoffs >= limits.handoffs_per_run {
        return Err(Refusal::RunLimit { limit: limits.handoffs_per_run });
    }
    Ok(())
}

/// What travels along counts too: it is all given to the taker.
pub(super) fn check_size(offer: &Offer, held: Option<&Fields>) -> Result<(), Refusal> {
    let held = held.into_iter().flatten().filter(|(key, _)| !offer.outputs.contains_key(*key));
    let bytes = offer.summary.len()
        + offer.detail.len()
        + offer.instructions.as_ref().map_or(0, String::len)
        + offer
            .outputs
            .iter()
            .chain(held)
            .map(|(key, value)| key.len() + size(value))
            .sum::<usize>();
    if bytes > MAX_PAYLOAD {
        return Err(Refusal::TooLarge { bytes, limit: MAX_PAYLOAD });
    }
    Ok(())
}

/// About as many bytes as the value's JSON, without writing it.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| key.len() + size(value) + 4).sum::<usize>() + 2
        }
    }
}

/// When the path may be used again: a new proposal on it is delayed, not refused.
pub(super) fn cooled_down(run: &Run, offer: &Offer, now: Time) -> Time {
    if !counts(offer) {
        return now;
    }
    run.last_use
        .iter()
        .find(|path| path.from == offer.from && path.to == offer.to)
        .map_or(now, |path| now.max(path.at + run.workflow.limits.cooldown))
}
