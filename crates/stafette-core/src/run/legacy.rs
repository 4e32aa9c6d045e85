//! Defaults for events of older releases: those events have fewer fields, and this module derives
//! the missing values by the rules of that time. Frozen: later rule changes do not apply here.

use super::adopt::Clock;
use super::propose::{HandoffAdmitted, Terms};
use super::{CLOSED_KEPT, Run};
use crate::handoff::{PriorAttempt, State};
use crate::team;
use crate::{Handoff, HandoffId, Offer, Party, Time};

/// Returns the meaning of an admission without [`Terms`].
pub(super) fn terms(run: &Run, admitted: &HandoffAdmitted, at: Time) -> Terms {
    let offer = &admitted.offer;
    let constraints = team::legacy::constraints(run, offer);
    let moves = matches!(offer.to, Party::Agent(_));
    Terms {
        leaves_answer: false,
        counts: moves && offer.from != Party::Human && !constraints.fixed_taker,
        // Paths were marked as used, and cooled down, on admission.
        cools: false,
        windowed: offer.to != Party::Human && !constraints.fixed_taker,
        inherits: !constraints.fresh,
        deadline: None,
        releases: Vec::new(),
        continues: None,
        turn_limit: run.workflow.limits.turns_per_handoff,
        forgets: forgotten(run, at),
        constraints: Some(constraints),
    }
}

/// Returns the closed handoffs that the run drops after one more.
pub(super) fn forgotten(run: &Run, now: Time) -> Vec<HandoffId> {
    let closed_at = |handoff: &Handoff| match &handoff.state {
        State::Closed(closing) => Some(closing.at),
        _ => None,
    };
    let mut closed: Vec<(Time, HandoffId)> =
        run.handoffs.values().filter_map(|h| Some((closed_at(h)?, h.id))).collect();
    closed.sort_unstable();
    let surplus = closed.len().saturating_sub(CLOSED_KEPT);
    // Handoffs closed in this same moment stay, because their rows are still to be written.
    closed.into_iter().take(surplus).filter(|(at, _)| *at < now).map(|(_, id)| id).collect()
}

/// Returns the number of turns after which a person is asked about a handoff that begins afresh.
pub(super) fn turn_limit(run: &Run, handoff: &Handoff) -> u32 {
    handoff.turn.saturating_add(run.workflow.limits.turns_per_handoff)
}

/// Returns the deadlines for an adoption event without them.
pub(super) fn clocks(run: &Run, at: Time) -> Vec<Clock> {
    let limits = &run.workflow.limits;
    let one = |handoff: &Handoff| {
        let turn = handoff.state.turn()?;
        let due = at + turn.taken.as_ref().map_or(limits.accept_timeout, |taken| taken.lease);
        Some(Clock { handoff: handoff.id, due, finish_by: at + limits.finish_timeout })
    };
    run.open().filter_map(one).collect()
}

/// Returns the targets of earlier attempts, which used to be recorded as a sentence.
pub(super) fn attempts(offer: &Offer) -> Vec<PriorAttempt> {
    let named = |prior: &PriorAttempt| prior.action.strip_prefix("handed to ").map(Party::from);
    let tried = |prior: &PriorAttempt| PriorAttempt { tried: named(prior), ..prior.clone() };
    offer.prior_attempts.iter().map(tried).collect()
}

/// Adds the offers of a report that does not name those that it replaces: one to the same target, for
/// the same reason and item, did.
pub(super) fn tell(known: &mut Vec<Offer>, offers: &[Offer]) {
    for offer in offers {
        let same = |known: &Offer| {
            known.to == offer.to && known.reason == offer.reason && known.item == offer.item
        };
        known.retain(|known| !same(known));
        known.push(offer.clone());
    }
}
