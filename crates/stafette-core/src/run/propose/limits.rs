//! Counts, sizes and the cooldown.

use super::{Proposal, Refusal};
use crate::fields;
use crate::run::Run;
use crate::{Fields, Handoff, Offer, Party, Time};

/// The maximum size of a handoff's data, in bytes.
pub const MAX_PAYLOAD: usize = fields::MAX;

/// The maximum length of a text in a system question, in characters.
pub const MAX_QUESTION: usize = 8 * 1024;

/// True for handoffs between agents. Questions to people, the orchestrator's decisions, a person's
/// own requests and work that only one agent can do are not counted.
pub(crate) fn counts(proposal: &Proposal) -> bool {
    let offer = &proposal.offer;
    let moves = matches!(offer.to, Party::Agent(_));
    moves && offer.from != Party::Human && !proposal.constraints.fixed_taker
}

pub(crate) fn item(offer: &Offer) -> &str {
    offer.item.as_deref().unwrap_or("global")
}

pub(crate) fn check_counts(run: &Run, proposal: &Proposal) -> Result<(), Refusal> {
    if !counts(proposal) {
        return Ok(());
    }
    let limits = &run.workflow.limits;
    let item = item(&proposal.offer);
    if run.tally.per_item.get(item).is_some_and(|n| *n >= limits.handoffs_per_item) {
        let limit = limits.handoffs_per_item;
        return Err(Refusal::ItemLimit { item: item.to_owned(), limit });
    }
    if run.tally.handoffs >= limits.handoffs_per_run {
        return Err(Refusal::RunLimit { limit: limits.handoffs_per_run });
    }
    Ok(())
}

/// Checks the total size; inherited inputs count too, because the taker receives them all.
pub(crate) fn check_size(offer: &Offer, held: Option<&Fields>) -> Result<(), Refusal> {
    let along = held.into_iter().flatten().filter(|(key, _)| !offer.outputs.contains_key(*key));
    let along = along.map(|(key, value)| key.len() + fields::size_of(value));
    let bytes = offer.size() + along.sum::<usize>();
    if bytes > MAX_PAYLOAD {
        return Err(Refusal::TooLarge { bytes, limit: MAX_PAYLOAD });
    }
    Ok(())
}

/// Returns the earliest time for the next turn of a waiting handoff: not before its own time, and
/// the first turn not before the cooldown of its path has ended.
pub(crate) fn ready_at(run: &Run, handoff: &Handoff) -> Option<Time> {
    let not_before = handoff.state.not_before()?;
    if !handoff.cools || handoff.turn > 0 {
        return Some(not_before);
    }
    let offer = &handoff.offer;
    let last = run.last_use.iter().find(|path| path.from == offer.from && path.to == offer.to);
    Some(last.map_or(not_before, |path| not_before.max(path.at + run.workflow.limits.cooldown)))
}
