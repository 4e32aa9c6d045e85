//! A handoff ends, and with the last one the run.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run, Stage, Status, budget, message, resume, whole};
use crate::fields;
use crate::handoff::{Closing, State, Way};
use crate::team::Awaited;
use crate::team::{self, Closed};
use crate::text::clip;
use crate::{Event, Handoff, HandoffId, Outcome, Party, Response, Time, Usage};

/// The most characters of a text, and the most texts of a list, of an answer in brief.
const BRIEF: usize = 1024;
const BRIEF_LINES: usize = 8;

/// A handoff has ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandoffClosed {
    /// The handoff that ended.
    pub handoff: HandoffId,
    /// The answer that closed it.
    pub response: Response,
    /// The way in which it ended.
    pub way: Way,
    /// The handoffs that replace it: the handoff that waited for it now waits for them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub succeeded_by: Vec<HandoffId>,
    /// The inputs of the waiting handoff that must be cut, because they would be too large
    /// together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<String>,
    /// The inputs of the waiting handoff that must be left out, because there are too many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub drops: Vec<String>,
    /// The values that must be cut in the answers of the waiting handoff, which would be too large
    /// together. Its inputs keep the latest of each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answer_cuts: Vec<String>,
    /// The values that must be left out of the answers of the waiting handoff.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answer_drops: Vec<String>,
    /// True if the waiting handoff gets only the beginning of what is said in the answer, because
    /// the answers would be too large together.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub brief: bool,
    /// The usage of the turn that it interrupts, as far as it is known; `None` if no agent has taken
    /// one, and in events of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Usage>,
    /// The effect on a coordinator; `None` in events of older releases, where it is computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<Box<Closed>>,
}

impl HandoffClosed {
    /// Creates the end of a handoff whose answer goes to the handoff that waits for it.
    fn new(handoff: HandoffId, response: Response, way: Way) -> Self {
        HandoffClosed {
            handoff,
            response,
            way,
            succeeded_by: Vec::new(),
            cuts: Vec::new(),
            drops: Vec::new(),
            answer_cuts: Vec::new(),
            answer_drops: Vec::new(),
            brief: false,
            used: None,
            team: None,
        }
    }
}

/// The run has ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunFinished {
    /// The result of the run.
    #[serde(flatten)]
    pub ending: Ending,
    /// The questions that a person must answer first, if the answers go to the run that continues
    /// this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<Awaited>,
    /// True if the run lists what is left to do after its end. Earlier releases did that without a
    /// record, so it counts as done where this is absent.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lists_orders: bool,
}

/// The result of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ending {
    /// The final status of the run.
    pub status: Status,
    /// The reason, in a sentence.
    pub why: String,
}

/// Closes a handoff with the answer of its taker.
pub(crate) fn answered(draft: &mut Draft, id: HandoffId, response: Response) {
    close(draft, id, response, Way::Answered);
}

pub(crate) fn close(draft: &mut Draft, id: HandoffId, response: Response, way: Way) {
    succeeded_by(draft, id, response, way, Vec::new());
}

pub(crate) fn succeeded_by(
    draft: &mut Draft,
    id: HandoffId,
    mut response: Response,
    way: Way,
    succeeded_by: Vec<HandoffId>,
) {
    let Some(handoff) = draft.run.handoff(id).filter(|handoff| handoff.is_open()) else { return };
    let waiting = handoff.returns_to;
    response.took = draft.now.since(handoff.admitted_at);
    response.usage = handoff.usage;
    let lost = way == Way::Answered
        && response.outcome == Outcome::Failed
        && waiting.is_none()
        && !handoff.constraints.keeps;
    let why = response.failure.clone().unwrap_or_else(|| "a handoff failed".to_owned());
    let taken_over = !succeeded_by.is_empty();
    let mut closed = HandoffClosed { succeeded_by, ..HandoffClosed::new(id, response, way) };
    if !taken_over {
        measure(&draft.run, &mut closed);
    }
    record(draft, closed);
    if taken_over {
        return;
    }
    match waiting {
        Some(waiting) => resume::resume_if_free(draft, waiting),
        // The work was lost, and no other handoff takes it up.
        None if lost => end(draft, Status::Failed, &why),
        None => {}
    }
}

fn record(draft: &mut Draft, mut closed: HandoffClosed) {
    closed.used = budget::interrupted(&draft.run, closed.handoff);
    closed.team = Some(team::closing(&draft.run, &closed));
    draft.record(Event::HandoffClosed(Box::new(closed)));
}

/// Returns the handoff that receives the answer: the one that waits for it, or the one that asked a
/// person without waiting.
fn receiver(run: &Run, closed: &Handoff, response: &Response) -> Option<HandoffId> {
    let aside = || closed.cause.filter(|_| response.by == Party::Human);
    closed.returns_to.or_else(aside).filter(|id| run.handoff(*id).is_some_and(Handoff::is_open))
}

/// Decides what the receiver of an answer gets of it, so that its inputs and its answers fit with
/// everything gathered.
fn measure(run: &Run, closed: &mut HandoffClosed) {
    let Some(handoff) = run.handoff(closed.handoff) else { return };
    let receiver = receiver(run, handoff, &closed.response).and_then(|id| run.handoff(id));
    let Some(receiver) = receiver else { return };
    let asked = &handoff.offer.missing;
    let new = || handoff.gathered.iter().chain([&closed.response]);
    let mut of_inputs = fields::Surplus::default();
    let more = new().map(|answer| fields::size(&answer.outputs)).sum::<usize>();
    if fields::size(&receiver.inputs) + more > fields::MAX {
        let mut inputs = receiver.inputs.clone();
        new().for_each(|answer| inputs.extend(answer.outputs.clone()));
        of_inputs = fields::surplus([&inputs], asked, fields::MAX);
    }
    let (mut brief, mut of_answers) = (false, fields::Surplus::default());
    if handoff.returns_to.is_some() {
        let all = || receiver.answers.iter().chain(new());
        brief = all().map(Response::words).sum::<usize>() > fields::MAX;
        of_answers = fields::surplus(all().map(|answer| &answer.outputs), asked, fields::MAX);
    }
    (closed.cuts, closed.drops) = (of_inputs.cuts, of_inputs.drops);
    (closed.answer_cuts, closed.answer_drops) = (of_answers.cuts, of_answers.drops);
    closed.brief = brief;
}

/// Returns the beginning of what an answer says, with its values.
pub(super) fn in_brief(answer: Response) -> Response {
    let short = |text: &String| clip(text, BRIEF);
    let first = |texts: &[String]| texts.iter().take(BRIEF_LINES).map(short).collect();
    Response {
        unresolved: first(&answer.unresolved),
        failure: answer.failure.as_ref().map(short),
        recommendations: first(&answer.recommendations),
        summary: short(&answer.summary),
        question: answer.question.as_ref().map(short),
        foreign: None,
        ..answer
    }
}

/// Cancels everything that `id` waits for, directly or through others.
pub(crate) fn call_off_below(draft: &mut Draft, id: HandoffId, why: &str) {
    let below = |run: &Run, above: HandoffId| -> Vec<HandoffId> {
        let waited_for = run.open().filter(|handoff| handoff.returns_to == Some(above));
        waited_for.map(|handoff| handoff.id).collect()
    };
    for child in below(&draft.run, id) {
        call_off_below(draft, child, why);
        record(draft, HandoffClosed::new(child, Response::failed(why), Way::Cancelled));
    }
}

/// True for a question that no handoff waits for: the run does not wait for it either.
pub(super) fn is_aside(handoff: &Handoff) -> bool {
    handoff.offer.question.as_ref().is_some_and(|question| !question.blocking)
}

/// Ends the run if nothing is open that any handoff waits for.
pub(crate) fn finish_if_done(draft: &mut Draft) {
    if !draft.run.status().is_final() && draft.run.open().all(is_aside) {
        let in_part = |handoff: &&Arc<Handoff>| match &handoff.state {
            State::Closed(closing) => {
                handoff.returns_to.is_none()
                    && closing.way == Way::Answered
                    && closing.response.outcome == Outcome::Partial
            }
            _ => false,
        };
        let parts: Vec<String> =
            draft.run.handoffs.values().filter(in_part).map(|it| it.id.to_string()).collect();
        let why = match parts.is_empty() {
            true => "nothing is left to do".to_owned(),
            false => format!("nothing is left to do; done in part: {}", parts.join(", ")),
        };
        end(draft, Status::Succeeded, &why);
    }
}

/// Ends the run now and cancels everything that is open.
pub(crate) fn end(draft: &mut Draft, status: Status, why: &str) {
    end_awaiting(draft, status, why, Vec::new());
}

/// Ends the run now; the run that continues its work asks a person the awaited questions.
pub(crate) fn end_awaiting(draft: &mut Draft, status: Status, why: &str, awaits: Vec<Awaited>) {
    if draft.run.status().is_final() {
        return;
    }
    let open: Vec<HandoffId> = draft.run.open().map(|handoff| handoff.id).collect();
    for id in open {
        record(draft, HandoffClosed::new(id, Response::failed(why), Way::Cancelled));
    }
    message::end(draft);
    budget::note_excess(draft);
    let ending = Ending { status, why: why.to_owned() };
    draft.record(Event::RunFinished(RunFinished { ending, awaits, lists_orders: true }));
}

impl HandoffClosed {
    pub(crate) fn apply(&self, run: &mut Run, at: Time) {
        let out = run.handoff(self.handoff).filter(|handoff| handoff.state.turn().is_some());
        if out.is_some() {
            // Cancelled in the middle of a turn: its reservation is released.
            budget::settle(run, self.handoff, self.used);
        }
        let follows = self.team.clone().unwrap_or_else(|| team::closing(run, self));
        let Some(handoff) = run.handoff_mut(self.handoff) else { return };
        let (waiting, aside) = (handoff.returns_to, handoff.cause);
        let (way, response) = (self.way, self.response.clone());
        let succeeded_by = self.succeeded_by.clone();
        handoff.state = State::Closed(Box::new(Closing { at, response, way, succeeded_by }));
        handoff.answers = Vec::new();
        handoff.unconfirmed = None;
        let (gathered, replies) = (handoff.gathered.clone(), handoff.replies.clone());
        // What the orchestrator answers, a person has told it.
        let is_reply = |by: &Party, key: &str| match by {
            Party::Human => true,
            Party::Orchestrator => replies.contains(key),
            Party::Agent(_) => false,
        };
        // The successor owes the whole answer, including what others contributed.
        let next = self.succeeded_by.first().and_then(|id| run.handoff_mut(*id));
        if let Some(next) = next.filter(|next| next.gathered.is_empty()) {
            next.gathered.clone_from(&gathered);
        }
        if let Some(waiting) = waiting.and_then(|id| run.handoff_mut(id)) {
            let id = waiting.id;
            if let State::Blocked { on } = &mut waiting.state {
                on.retain(|id| *id != self.handoff);
                on.extend(&self.succeeded_by);
            }
            if self.succeeded_by.is_empty() && !follows.withheld {
                for answer in gathered.into_iter().chain([self.response.clone()]) {
                    waiting.receive(&answer.outputs, |key| is_reply(&answer.by, key));
                    waiting.answers.push(if self.brief { in_brief(answer) } else { answer });
                }
                whole::cut(run, id, &self.cuts, self.handoff);
                whole::leave_out(run, id, &self.drops, self.handoff);
                whole::cut_answers(run, id, &self.answer_cuts, self.handoff);
                whole::leave_out_of_answers(run, id, &self.answer_drops, self.handoff);
            }
        } else if self.response.by == Party::Human {
            // A question without a waiting handoff: its answer goes to the asker, if that is still
            // open.
            if let Some(asker) = aside.and_then(|id| run.handoff_mut(id)).filter(|h| h.is_open()) {
                let id = asker.id;
                asker.receive(&self.response.outputs, |key| is_reply(&self.response.by, key));
                whole::cut(run, id, &self.cuts, self.handoff);
                whole::leave_out(run, id, &self.drops, self.handoff);
            }
        }
        team::closed(run, self.handoff, &follows);
    }
}

impl RunFinished {
    pub(crate) fn apply(&self, run: &mut Run) {
        run.stage = Stage::Finished(self.ending.clone());
    }
}
