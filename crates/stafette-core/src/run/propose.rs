//! A proposed handoff is admitted, or refused under a named rule.
//!
//! The order of the rules is the contract's: limits, circularity, route.

mod circularity;
mod limits;
mod refusal;
mod route;

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, PathUse, Run, Step, escalate, legacy};
use crate::handoff::{ANSWER, About, Constraints, State, Trail};
use crate::text::clip;
use crate::{Event, Fields, Handoff, HandoffId, Offer, Party, Reply, Time, Usage};

pub use super::escalate::check_words;
pub use circularity::WINDOW;
pub(crate) use limits::ready_at;
pub use limits::{MAX_PAYLOAD, MAX_QUESTION};
pub use refusal::Refusal;

/// A handoff was admitted and numbered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandoffAdmitted {
    /// The id of the handoff, unique in the run.
    pub id: HandoffId,
    /// The offer as it was admitted.
    pub offer: Offer,
    /// The handoff that the giver was working on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HandoffId>,
    /// The handoff that waits for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns_to: Option<HandoffId>,
    /// The path of the request so far.
    pub trail: Trail,
    /// The initial state of the handoff.
    pub state: State,
    /// Further decisions of the kernel about it; `None` in events of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terms: Option<Terms>,
}

/// The kernel's decisions on admitting a handoff, so that nothing is left to decide when the event
/// is applied.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Terms {
    /// True if it counts against the limits of its item and of the run.
    pub counts: bool,
    /// True if each use of its path starts the cooldown.
    pub cools: bool,
    /// True if it belongs to the window in which repetitions are detected.
    pub windowed: bool,
    /// True if it begins with the inputs of its cause.
    pub inherits: bool,
    /// True if it begins without the input `answer` of its cause, which is the reply to a question
    /// there: another agent must not take it for the reply to its own.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub leaves_answer: bool,
    /// The deadline for the answer, if the document sets one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// The handoffs whose deadline ends here, because a person is asked on their behalf.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub releases: Vec<HandoffId>,
    /// The handoff that it replaces: answers gathered there count here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub continues: Option<HandoffId>,
    /// The number of turns after which a person is asked.
    pub turn_limit: u32,
    /// Closed handoffs that the run drops from memory.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub forgets: Vec<HandoffId>,
    /// The special rules set by the coordinator that created it; `None` if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub constraints: Option<Constraints>,
}

/// A proposal was refused.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandoffRefused {
    /// The id of the handoff, unique in the run.
    pub id: HandoffId,
    /// The offer that was refused.
    pub offer: Offer,
    /// The handoff that the giver was working on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HandoffId>,
    /// The rule that refused it.
    pub refusal: Refusal,
}

/// An offer with its place in the run.
pub(crate) struct Proposal {
    pub(crate) offer: Offer,
    pub(crate) cause: Option<HandoffId>,
    pub(crate) returns_to: Option<HandoffId>,
    /// A fingerprint of the work, to detect loops without progress.
    pub(crate) fingerprint: Option<String>,
    /// True if the workflow declares this step by a need or a recovery rule, so that no route is
    /// required.
    pub(crate) declared: bool,
    /// The handoff that it replaces, and whose remaining time it inherits.
    pub(crate) continues: Option<HandoffId>,
    /// The special rules set by the coordinator that creates it.
    pub(crate) constraints: Constraints,
}

impl Proposal {
    pub(crate) fn of(offer: Offer) -> Self {
        Proposal {
            offer,
            cause: None,
            returns_to: None,
            fingerprint: None,
            declared: false,
            continues: None,
            constraints: Constraints::default(),
        }
    }

    /// Creates a proposal from a giver that works on `cause`, and waits for the answer if the offer
    /// says so.
    pub(crate) fn within(offer: Offer, cause: HandoffId) -> Self {
        let waits = match &offer.question {
            Some(question) => question.blocking,
            None => offer.kind == crate::Kind::Delegate,
        };
        Proposal { cause: Some(cause), returns_to: waits.then_some(cause), ..Self::of(offer) }
    }
}

/// Decides about a handoff proposed outside a turn.
pub(crate) fn decide(draft: &mut Draft, offer: Offer) -> Reply {
    reply(draft, Proposal::of(from_outside(offer)))
}

/// Proposes, and returns the reply for the outcome.
pub(crate) fn reply(draft: &mut Draft, proposal: Proposal) -> Reply {
    let handoff = HandoffId(draft.run.next_handoff);
    match propose(draft, proposal) {
        Ok(handoff) => Reply::Admitted { handoff },
        Err(refusal) => Reply::Refused { handoff, refusal: Box::new(refusal) },
    }
}

/// Removes fields that only the kernel may set: the effect of an answer, and the parties tried
/// before. Otherwise an agent could disguise its question as one about the budget.
pub(crate) fn from_outside(mut offer: Offer) -> Offer {
    if let Some(question) = &mut offer.question {
        question.about = About::Inputs;
    }
    for prior in &mut offer.prior_attempts {
        prior.tried = None;
    }
    offer
}

/// Admits or refuses; either is an event.
pub(crate) fn propose(draft: &mut Draft, proposal: Proposal) -> Result<HandoffId, Refusal> {
    match judge(&draft.run, &proposal) {
        Err(refusal) => {
            let id = HandoffId(draft.run.next_handoff);
            let Proposal { offer, cause, .. } = proposal;
            let event = HandoffRefused { id, offer, cause, refusal: refusal.clone() };
            draft.record(Event::HandoffRefused(Box::new(event)));
            Err(refusal)
        }
        Ok(trail) => {
            let inherits = !proposal.constraints.fresh;
            Ok(admit(draft, proposal, trail, inherits))
        }
    }
}

/// Asks a person a system question: about a budget, a failure, a loop. No rule refuses such a
/// question, or a run could stall unnoticed. It carries nothing but its text, cut to a length that
/// every inbox accepts.
pub(crate) fn ask(draft: &mut Draft, mut proposal: Proposal) -> HandoffId {
    let cause = proposal.cause.and_then(|id| draft.run.handoff(id));
    let trail = cause.map(|handoff| handoff.trail.clone()).unwrap_or_default();
    let offer = &mut proposal.offer;
    offer.detail = clip(&offer.detail, MAX_QUESTION);
    offer.summary = clip(&offer.summary, MAX_QUESTION);
    offer.instructions = offer.instructions.take().map(|text| clip(&text, MAX_QUESTION));
    offer.outputs = Fields::new();
    if let Some(question) = &mut offer.question {
        question.details = clip(&question.details, MAX_QUESTION);
        question.context = clip(&question.context, MAX_QUESTION);
        // An option is an answer, so that none is cut: those that come first stay.
        let mut room = MAX_QUESTION;
        question.options.retain(|option| {
            let left = room.checked_sub(option.len());
            room = left.unwrap_or(room);
            left.is_some()
        });
        question.default = question.default.take().filter(|text| text.len() <= MAX_QUESTION);
    }
    admit(draft, proposal, trail, false)
}

fn admit(draft: &mut Draft, proposal: Proposal, trail: Trail, inherits: bool) -> HandoffId {
    let counts = limits::counts(&proposal);
    let Proposal { offer, cause, returns_to, continues, constraints, .. } = proposal;
    let run = &draft.run;
    let id = HandoffId(run.next_handoff);
    let offer = escalate::with_question(offer);
    let state = match (&offer.to, &offer.question) {
        (Party::Human, Some(question)) => {
            let within = question.within.unwrap_or(run.workflow.limits.answer_timeout);
            State::Asked { until: draft.now + within }
        }
        _ => State::Pending { not_before: draft.now },
    };
    let asks = matches!(state, State::Asked { .. });
    let waits = offer.question.as_ref().is_some_and(|question| question.blocking);
    let left = continues.and_then(|id| run.handoff(id)).and_then(|handoff| handoff.deadline);
    let held = cause.filter(|_| inherits && continues.is_none()).and_then(|id| run.handoff(id));
    let terms = Terms {
        counts,
        cools: counts,
        windowed: !asks && !constraints.fixed_taker,
        inherits,
        leaves_answer: held.is_some_and(Handoff::has_reply),
        deadline: left.or(offer.timeout.map(|timeout| draft.now + timeout)).filter(|_| !asks),
        releases: if asks && waits { timed_above(run, returns_to.or(cause)) } else { Vec::new() },
        continues,
        turn_limit: run.workflow.limits.turns_per_handoff,
        forgets: legacy::forgotten(run, draft.now),
        constraints: Some(constraints).filter(|it| !crate::is_default(it)),
    };
    let terms = Some(terms);
    let event = HandoffAdmitted { id, offer, cause, returns_to, trail, state, terms };
    draft.record(Event::HandoffAdmitted(Box::new(event)));
    id
}

/// Returns the handoffs with a deadline that wait, directly or through others, for the next action
/// of `id`.
fn timed_above(run: &Run, id: Option<HandoffId>) -> Vec<HandoffId> {
    let mut found = Vec::new();
    let mut next = id;
    while let Some(handoff) = next.and_then(|id| run.handoff(id)) {
        if handoff.deadline.is_some() {
            found.push(handoff.id);
        }
        // A waiting handoff is older than the one it waits for, so this ends.
        next = handoff.returns_to.filter(|above| *above < handoff.id);
    }
    found
}

pub(crate) fn judge(run: &Run, proposal: &Proposal) -> Result<Trail, Refusal> {
    let offer = &proposal.offer;
    let held = proposal.cause.and_then(|id| run.handoff(id)).map(|handoff| &handoff.inputs);
    limits::check_size(offer, held)?;
    if !proposal.declared {
        escalate::check_words(offer)?;
    }
    // Every party may always ask a person, and a person may override every rule but one: the target
    // has to exist.
    let to_person = offer.to == Party::Human;
    let from_person = offer.from == Party::Human;
    if !to_person && !from_person && !proposal.constraints.fixed_taker {
        limits::check_counts(run, proposal)?;
        circularity::check_window(run, proposal)?;
    }
    let trail = circularity::extend(run, proposal, from_person)?;
    route::check(run, proposal)?;
    Ok(trail)
}

impl HandoffAdmitted {
    pub(crate) fn apply(&self, run: &mut Run, at: Time) {
        let mut offer = self.offer.clone();
        let terms = match &self.terms {
            Some(terms) => terms.clone(),
            None => {
                offer.prior_attempts = legacy::attempts(&offer);
                legacy::terms(run, self, at)
            }
        };
        let constraints = terms.constraints.unwrap_or_default();
        let held = self.cause.filter(|_| terms.inherits).and_then(|id| run.handoff(id));
        let mut inputs = held.map(|handoff| handoff.inputs.clone()).unwrap_or_default();
        if terms.leaves_answer {
            inputs.shift_remove(ANSWER);
        }
        inputs.extend(offer.outputs.clone());
        if terms.counts {
            run.tally.handoffs += 1;
            *run.tally.per_item.entry(limits::item(&offer).to_owned()).or_default() += 1;
        }
        if offer.to == Party::Human {
            run.tally.escalated += 1;
        }
        if terms.windowed {
            remember(run, &offer);
            if !terms.cools {
                used(run, &offer, at);
            }
        }
        for id in &terms.releases {
            if let Some(handoff) = run.handoff_mut(*id) {
                handoff.deadline = None;
            }
        }
        let gathered = terms.continues.and_then(|id| run.handoff(id)).map(|h| h.gathered.clone());
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
        let handoff = Handoff {
            id: self.id,
            offer,
            cause: self.cause,
            returns_to: self.returns_to,
            state: self.state.clone(),
            attempt: 1,
            turn: 0,
            turn_limit: terms.turn_limit,
            inputs,
            replies: BTreeSet::new(),
            answers: Vec::new(),
            permits: Vec::new(),
            told: super::tell::TurnReport::default(),
            ignored: Vec::new(),
            unconfirmed: None,
            gathered: gathered.unwrap_or_default(),
            answered_by: None,
            deadline: terms.deadline,
            cools: terms.cools,
            constraints,
            refusals: 0,
            reminded: false,
            assessed: Vec::new(),
            trail: self.trail.clone(),
            admitted_at: at,
            usage: Usage::default(),
        };
        run.handoffs.insert(self.id, Arc::new(handoff));
        for id in &terms.forgets {
            run.handoffs.remove(id);
        }
    }
}

fn remember(run: &mut Run, offer: &Offer) {
    run.recent.push_back(Step {
        from: offer.from.clone(),
        to: offer.to.clone(),
        reason: offer.reason.clone(),
    });
    if run.recent.len() > WINDOW {
        run.recent.pop_front();
    }
}

/// Records the use of a path: its next use waits for the cooldown.
pub(crate) fn used(run: &mut Run, offer: &Offer, at: Time) {
    match run.last_use.iter_mut().find(|path| path.from == offer.from && path.to == offer.to) {
        Some(path) => path.at = at,
        None => run.last_use.push(PathUse { from: offer.from.clone(), to: offer.to.clone(), at }),
    }
}

impl HandoffRefused {
    pub(crate) fn apply(&self, run: &mut Run) {
        run.next_handoff = self.id.0 + 1;
        run.tally.refused += 1;
        if self.refusal.is_circular() {
            run.tally.circular += 1;
        }
    }
}

#[cfg(test)]
mod tests;
