//! A handoff waits for others, and continues when they have ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run, legacy, whole};
use crate::fields;
use crate::handoff::State;
use crate::{Event, Fields, HandoffId, Response, Time};

/// A handoff waits for others.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandoffBlocked {
    /// The handoff that waits.
    pub handoff: HandoffId,
    /// The handoffs that it waits for.
    pub on: Vec<HandoffId>,
    /// Answers that exist already: refusals of others that were proposed along with them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Response>,
}

/// A handoff continues: its next turn may be ordered.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct HandoffResumed {
    /// The handoff that continues.
    pub handoff: HandoffId,
    /// Inputs received besides the awaited answers.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub inputs: Fields,
    /// Answers to its own proposals that were refused.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refusals: Vec<Response>,
    /// True if a person lets it start again: loops, turns and refusals are counted from here.
    #[serde(default)]
    pub afresh: bool,
    /// The number of turns after which a person is asked, if it starts again; `None` in events of
    /// older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_limit: Option<u32>,
    /// True if its agent is reminded that its last turn ended without an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reminder: bool,
    /// Inputs that must be cut, because they would be too large together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<String>,
    /// Inputs that must be left out, because there are too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<String>,
}

pub(crate) fn block(draft: &mut Draft, id: HandoffId, on: Vec<HandoffId>, answers: Vec<Response>) {
    draft.record(Event::HandoffBlocked(HandoffBlocked { handoff: id, on, answers }));
}

/// Continues a handoff with these additional inputs.
pub(crate) fn resume(draft: &mut Draft, id: HandoffId, inputs: Fields) {
    record(draft, HandoffResumed { handoff: id, inputs, ..HandoffResumed::default() });
}

/// Continues a handoff with its refused proposals, so that it can try again.
pub(crate) fn refused(draft: &mut Draft, id: HandoffId, refusals: Vec<Response>) {
    record(draft, HandoffResumed { handoff: id, refusals, ..HandoffResumed::default() });
}

/// Continues a handoff on a person's decision and resets its counts.
pub(crate) fn afresh(draft: &mut Draft, id: HandoffId, inputs: Fields) {
    record(
        draft,
        HandoffResumed { handoff: id, inputs, afresh: true, ..HandoffResumed::default() },
    );
}

/// Gets another turn, because the last one ended without an answer; `unread` says what was wrong with
/// its frames.
pub(crate) fn remind(draft: &mut Draft, id: HandoffId, unread: &str) {
    let reminder = Response::failed(format!(
        "Your last turn ended without a handoff, a result or a question{unread}. Say now what its \
         outcome is, or ask what you need to know",
    ));
    let refusals = vec![reminder];
    let event =
        HandoffResumed { handoff: id, refusals, reminder: true, ..HandoffResumed::default() };
    record(draft, event);
}

fn record(draft: &mut Draft, mut event: HandoffResumed) {
    let Some(handoff) = draft.run.handoff(event.handoff).filter(|it| it.is_open()) else { return };
    if !event.inputs.is_empty() {
        let mut inputs = handoff.inputs.clone();
        inputs.extend(event.inputs.clone());
        let surplus = fields::surplus([&inputs], &[], fields::MAX);
        (event.cuts, event.drops) = (surplus.cuts, surplus.drops);
    }
    event.turn_limit = event.afresh.then(|| legacy::turn_limit(&draft.run, handoff));
    draft.record(Event::HandoffResumed(Box::new(event)));
}

/// Continues `id` if it waits for nothing any more; called after a handoff has closed.
pub(crate) fn resume_if_free(draft: &mut Draft, id: HandoffId) {
    let free = |h: &crate::Handoff| matches!(&h.state, State::Blocked { on } if on.is_empty());
    if draft.run.handoff(id).is_some_and(free) {
        resume(draft, id, Fields::new());
    }
}

impl HandoffBlocked {
    pub(crate) fn apply(&self, run: &mut Run) {
        if let Some(handoff) = run.handoff_mut(self.handoff) {
            handoff.answers.extend(self.answers.iter().cloned());
            handoff.state = State::Blocked { on: self.on.clone() };
        }
    }
}

impl HandoffResumed {
    pub(crate) fn apply(&self, run: &mut Run, at: Time) {
        let Some(handoff) = run.handoff(self.handoff) else { return };
        let limit = self.turn_limit.unwrap_or_else(|| legacy::turn_limit(run, handoff));
        let Some(handoff) = run.handoff_mut(self.handoff) else { return };
        // What a person has answered, here or to the run before this one.
        handoff.receive(&self.inputs, |_| true);
        whole::cut(run, self.handoff, &self.cuts, self.handoff);
        whole::leave_out(run, self.handoff, &self.drops, self.handoff);
        let Some(handoff) = run.handoff_mut(self.handoff) else { return };
        handoff.reminded |= self.reminder;
        if !self.refusals.is_empty() {
            handoff.refusals += u32::from(!self.reminder);
            handoff.answers.extend(self.refusals.iter().cloned());
        }
        if let Some(lap) = handoff.trail.lap_mut().filter(|lap| lap.away) {
            // An answer brings the work back just as a handoff does.
            lap.away = false;
            lap.visit(&handoff.offer.to);
        }
        if self.afresh {
            handoff.trail.laps.clear();
            handoff.trail.within = None;
            handoff.refusals = 0;
            handoff.reminded = false;
            handoff.turn_limit = limit;
        }
        handoff.state = State::Pending { not_before: at };
    }
}
