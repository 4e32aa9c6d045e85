//! What older releases left to replay: their events say less, and this fills in what they meant by
//! the rules of their time. Frozen: a rule that changes leaves these as they are.

use super::adopt::Clock;
use super::propose::{HandoffAdmitted, Terms};
use super::{CLOSED_KEPT, Run};
use crate::handoff::{PriorAttempt, State};
use crate::team;
use crate::{Handoff, HandoffId, Offer, Party, Time};

/// What an admission without [`Terms`] meant.
pub(super) fn terms(run: &Run, admitted: &HandoffAdmitted, at: Time) -> Terms {
    let offer = &admitted.offer;
    let constraints = team::old_constraints(run, offer);
    let moves = matches!(offer.to, Party::Agent(_));
    Terms {
        counts: moves && offer.from != Party::Human && !constraints.fixed_taker,
        // Paths were used, and cooled down, when a handoff was admitted.
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

/// Which closed handoffs the run no longer remembers after one more.
pub(super) fn forgotten(run: &Run, now: Time) -> Vec<HandoffId> {
    let closed_at = |handoff: &Handoff| match &handoff.state {
        State::Closed(closing) => Some(closing.at),
        _ => None,
    };
    let mut closed: Vec<(Time, HandoffId)> =
        run.handoffs.values().filter_map(|h| Some((closed_at(h)?, h.id))).collect();
    closed.sort_unstable();
    let surplus = closed.len().saturating_sub(CLOSED_KEPT);
    // What was closed this very moment stays, because its row is still to be written.
    closed.into_iter().take(surplus).filter(|(at, _)| *at < now).map(|(_, id)| id).collect()
}

/// The clocks that an adoption without them meant.
pub(super) fn clocks(run: &Run, at: Time) -> Vec<Clock> {
    let limits = &run.workflow.limits;
    let one = |handoff: &Handoff| {
        let turn = handoff.state.turn()?;
        let due = at + turn.taken.as_ref().map_or(limits.accept_timeout, |taken| taken.lease);
        Some(Clock { handoff: handoff.id, due, finish_by: at + limits.finish_timeout })
    };
    run.open().filter_map(one).collect()
}

/// Whom earlier attempts went to, which used to be told by a sentence.
pub(super) fn attempts(offer: &Offer) -> Vec<PriorAttempt> {
    let named = |prior: &PriorAttempt| prior.action.strip_prefix("handed to ").map(Party::from);
    let tried = |prior: &PriorAttempt| PriorAttempt { tried: named(prior), ..prior.clone() };
    offer.prior_attempts.iter().map(tried).collect()
}
