//! Somebody proposes a handoff: it is admitted, or refused under a rule that is named.
//!
//! The order of the rules is the contract's: limits, circularity, route.

mod circularity;
mod limits;
mod refusal;
mod route;

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CLOSED_KEPT, Draft, PathUse, Run, Step, council, escalate, phase};
use crate::handoff::{About, State, Trail};
use crate::{Event, Handoff, HandoffId, Offer, Outcome, Party, Reply, Response, Time, Usage};

pub use circularity::WINDOW;
pub use limits::MAX_PAYLOAD;
pub use refusal::Refusal;

/// A handoff was admitted and has its number.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandoffAdmitted {
    /// Its name within the run.
    pub id: HandoffId,
    /// What is asked.
    pub offer: Offer,
    /// The handoff that the giver was working on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HandoffId>,
    /// The handoff that waits for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns_to: Option<HandoffId>,
    /// How far the request has come.
    pub trail: Trail,
    /// Where it starts.
    pub state: State,
}

/// A proposal was refused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandoffRefused {
    /// Its name within the run.
    pub id: HandoffId,
    /// What was asked.
    pub offer: Offer,
    /// The handoff that the giver was working on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HandoffId>,
    /// Under which rule.
    pub refusal: Refusal,
}

/// An offer with its place in the run.
pub(super) struct Proposal {
    pub(super) offer: Offer,
    pub(super) cause: Option<HandoffId>,
    pub(super) returns_to: Option<HandoffId>,
    /// What the work looks like, for loops.
    pub(super) fingerprint: Option<String>,
    /// The workflow declares this step by a need or a recovery rule, so no route is asked for.
    pub(super) declared: bool,
}

impl Proposal {
    pub(super) fn of(offer: Offer) -> Self {
        Proposal { offer, cause: None, returns_to: None, fingerprint: None, declared: false }
    }

    /// The giver is at work on `cause`, and waits for the answer when the offer says so.
    pub(super) fn within(offer: Offer, cause: HandoffId) -> Self {
        let waits = match &offer.question {
            Some(question) => question.blocking,
            None => offer.kind == crate::Kind::Delegate,
        };
        Proposal { cause: Some(cause), returns_to: waits.then_some(cause), ..Self::of(offer) }
    }
}

/// Someone outside a turn proposes a handoff.
pub(super) fn decide(draft: &mut Draft, offer: Offer) -> Reply {
    reply(draft, Proposal::of(from_outside(offer)))
}

/// Proposes, and says what became of it.
pub(super) fn reply(draft: &mut Draft, proposal: Proposal) -> Reply {
    let handoff = HandoffId(draft.run.next_handoff);
    match propose(draft, proposal) {
        Ok(handoff) => Reply::Admitted { handoff },
        Err(refusal) => Reply::Refused { handoff, refusal: Box::new(refusal) },
    }
}

/// What the answer to a question decides is ours to say, never the asker's: otherwise an agent
/// could dress up as the budget.
pub(super) fn from_outside(mut offer: Offer) -> Offer {
    if let Some(question) = &mut offer.question {
        question.about = About::Inputs;
    }
    offer
}

/// Admits or refuses; either is an event.
pub(super) fn propose(draft: &mut Draft, proposal: Proposal) -> Result<HandoffId, Refusal> {
    let id = HandoffId(draft.run.next_handoff);
    let verdict = judge(&draft.run, &proposal);
    let Proposal { offer, cause, returns_to, .. } = proposal;
    match verdict {
        Err(refusal) => {
            let event = HandoffRefused { id, offer, cause, refusal: refusal.clone() };
            draft.record(Event::HandoffRefused(Box::new(event)));
            Err(refusal)
        }
        Ok(trail) => {
            let offer = escalate::with_question(offer);
            let state = match (&offer.to, &offer.question) {
                (Party::Human, Some(question)) => {
                    let within =
                        question.within.unwrap_or(draft.run.workflow.limits.answer_timeout);
                    State::Asked { until: draft.now + within }
                }
                _ => State::Pending {
                    not_before: limits::cooled_down(&draft.run, &offer, draft.now),
                },
            };
            let event = HandoffAdmitted { id, offer, cause, returns_to, trail, state };
            draft.record(Event::HandoffAdmitted(Box::new(event)));
            Ok(id)
        }
    }
}

pub(super) fn judge(run: &Run, proposal: &Proposal) -> Result<Trail, Refusal> {
    let offer = &proposal.offer;
    let held = proposal.cause.and_then(|id| run.handoff(id)).map(|handoff| &handoff.inputs);
    limits::check_size(offer, held)?;
    // Nobody is ever kept from asking a person, and a person may override every rule but one: the
    // target has to exist.
    let to_person = offer.to == Party::Human;
    let from_person = offer.from == Party::Human;
    if !to_person && !from_person && !offer.is_council_turn() {
        limits::check_counts(run, offer)?;
        circularity::check_window(run, offer)?;
    }
    let trail = circularity::extend(run, proposal, from_person)?;
    route::check(run, proposal)?;
    Ok(trail)
}

impl HandoffAdmitted {
    pub(super) fn apply(&self, run: &mut Run, at: Time) {
        let offer = &self.offer;
        let held = self.cause.filter(|_| !phase::is_fresh(offer));
        let mut inputs =
            held.and_then(|id| run.handoff(id)).map(|h| h.inputs.clone()).unwrap_or_default();
        inputs.extend(offer.outputs.clone());
        if limits::counts(offer) {
            run.tally.handoffs += 1;
            *run.tally.per_item.entry(limits::item(offer).to_owned()).or_default() += 1;
        }
        match offer.to {
            Party::Human => run.tally.escalated += 1,
            _ if offer.is_council_turn() => {}
            _ => remember(run, offer, at),
        }
        if let Some(lap) = self.trail.lap() {
            run.tally.rounds = run.tally.rounds.max(lap.round);
        }
        if self.returns_to == self.cause
            && let Some(waiting) = self.returns_to.and_then(|id| run.handoff_mut(id))
            && self.trail.within.is_some()
        {
            // The round is the giver's too: the work comes back to it.
            waiting.trail.laps.clone_from(&self.trail.laps);
            waiting.trail.within.clone_from(&self.trail.within);
            waiting.trail.lap_mut().into_iter().for_each(|lap| lap.away = true);
        }
        run.next_handoff = self.id.0 + 1;
        let turn_limit = run.workflow.limits.turns_per_handoff;
        let handoff = Handoff {
            id: self.id,
            offer: offer.clone(),
            cause: self.cause,
            returns_to: self.returns_to,
            state: self.state.clone(),
            attempt: 1,
            turn: 0,
            turn_limit,
            inputs,
            answers: Vec::new(),
            permits: Vec::new(),
            told: super::tell::Told::default(),
            refusals: 0,
            assessed: Vec::new(),
            trail: self.trail.clone(),
            admitted_at: at,
            usage: Usage::default(),
        };
        run.handoffs.insert(self.id, Arc::new(handoff));
        council::seated(run, self.id, offer, self.cause);
        forget_old(run, at);
    }
}

fn remember(run: &mut Run, offer: &Offer, at: Time) {
    run.recent.push_back(Step {
        from: offer.from.clone(),
        to: offer.to.clone(),
        reason: offer.reason.clone(),
    });
    if run.recent.len() > WINDOW {
        run.recent.pop_front();
    }
    match run.last_use.iter_mut().find(|path| path.from == offer.from && path.to == offer.to) {
        Some(path) => path.at = at,
        None => run.last_use.push(PathUse { from: offer.from.clone(), to: offer.to.clone(), at }),
    }
}

/// Keeps the state bounded: the store has every handoff, the run only those closed last. What was
/// closed this very moment stays, because its row is still to be written.
fn forget_old(run: &mut Run, now: Time) {
    let closed_at = |handoff: &Handoff| match &handoff.state {
        State::Closed(closing) => Some(closing.at),
        _ => None,
    };
    let mut closed: Vec<(Time, HandoffId)> =
        run.handoffs.values().filter_map(|h| Some((closed_at(h)?, h.id))).collect();
    closed.sort_unstable();
    let surplus = closed.len().saturating_sub(CLOSED_KEPT);
    for (at, id) in closed.into_iter().take(surplus) {
        if at < now {
            run.handoffs.remove(&id);
        }
    }
}

impl HandoffRefused {
    pub(super) fn apply(&self, run: &mut Run) {
        run.next_handoff = self.id.0 + 1;
        run.tally.refused += 1;
        if self.refusal.is_circular() {
            run.tally.circular += 1;
        }
    }

    /// The answer that the proposer gets.
    #[must_use]
    pub fn response(&self) -> Response {
        debug_assert_eq!(self.refusal.response().outcome, Outcome::Failed);
        self.refusal.response()
    }
}

#[cfg(test)]
mod tests;
