//! A handoff is over, and with the last one the run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run, Stage, Status, resume};
use crate::fields;
use crate::handoff::{Closing, State, Way};
use crate::team::Awaited;
use crate::team::{self, Closed};
use crate::{Event, Handoff, HandoffId, Outcome, Party, Response, Time};

/// A handoff is over.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandoffClosed {
    /// Which one.
    pub handoff: HandoffId,
    /// With which answer.
    pub response: Response,
    /// Which way.
    pub way: Way,
    /// Those that take its place: whoever waited for it waits for them now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub succeeded_by: Vec<HandoffId>,
    /// The inputs of whoever waited that have to be cut, because they would be too large together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<String>,
    /// What follows for a coordinator. Older releases left that to be worked out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub team: Option<Box<Closed>>,
}

impl HandoffClosed {
    /// A handoff that ends, and whose answer goes to whoever waits for it.
    fn new(handoff: HandoffId, response: Response, way: Way) -> Self {
        let (succeeded_by, cuts) = (Vec::new(), Vec::new());
        HandoffClosed { handoff, response, way, succeeded_by, cuts, team: None }
    }
}

/// The run is over.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunFinished {
    /// How.
    #[serde(flatten)]
    pub ending: Ending,
    /// What a person has to say first, when whoever goes on with its work is the one to hear it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<Awaited>,
}

/// How a run ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ending {
    /// Well or not.
    pub status: Status,
    /// Why, in a sentence.
    pub why: String,
}

/// Somebody answered.
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
    let cuts =
        if succeeded_by.is_empty() { surplus(&draft.run, id, &response) } else { Vec::new() };
    record(draft, HandoffClosed { succeeded_by, cuts, ..HandoffClosed::new(id, response, way) });
    if taken_over {
        return;
    }
    match waiting {
        Some(waiting) => resume::resume_if_free(draft, waiting),
        // The baton was dropped and nobody picks it up.
        None if lost => end(draft, Status::Failed, &why),
        None => {}
    }
}

fn record(draft: &mut Draft, mut closed: HandoffClosed) {
    closed.team = team::closing(&draft.run, &closed);
    draft.record(Event::HandoffClosed(Box::new(closed)));
}

/// Who gets the answer to a handoff: whoever waits for it, or who asked a person by the way.
fn receiver(run: &Run, closed: &Handoff, response: &Response) -> Option<HandoffId> {
    let aside = || closed.cause.filter(|_| response.by == Party::Human);
    closed.returns_to.or_else(aside).filter(|id| run.handoff(*id).is_some_and(Handoff::is_open))
}

/// The inputs of the receiver that are too large once it has this answer, and all that was gathered.
fn surplus(run: &Run, id: HandoffId, response: &Response) -> Vec<String> {
    let Some(closed) = run.handoff(id) else { return Vec::new() };
    let receiver = receiver(run, closed, response).and_then(|id| run.handoff(id));
    let Some(receiver) = receiver else { return Vec::new() };
    let more = closed.gathered.iter().chain([response]).map(|answer| fields::size(&answer.outputs));
    if fields::size(&receiver.inputs) + more.sum::<usize>() <= fields::MAX {
        return Vec::new();
    }
    let mut inputs = receiver.inputs.clone();
    for answer in closed.gathered.iter().chain([response]) {
        inputs.extend(answer.outputs.clone());
    }
    fields::surplus(&inputs, &closed.offer.missing)
}

/// Calls off everything that `id` waits for, directly or through others.
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

/// Ends the run when nothing is open that anyone waits for.
pub(crate) fn finish_if_done(draft: &mut Draft) {
    let aside = |h: &crate::Handoff| h.offer.question.as_ref().is_some_and(|q| !q.blocking);
    if !draft.run.status().is_final() && draft.run.open().all(aside) {
        end(draft, Status::Succeeded, "nothing is left to do");
    }
}

/// Ends the run now; whatever is open is called off.
pub(crate) fn end(draft: &mut Draft, status: Status, why: &str) {
    end_awaiting(draft, status, why, Vec::new());
}

/// Ends the run now, and leaves it to whoever goes on with its work to ask a person what is awaited.
pub(crate) fn end_awaiting(draft: &mut Draft, status: Status, why: &str, awaits: Vec<Awaited>) {
    if draft.run.status().is_final() {
        return;
    }
    let open: Vec<HandoffId> = draft.run.open().map(|handoff| handoff.id).collect();
    for id in open {
        record(draft, HandoffClosed::new(id, Response::failed(why), Way::Cancelled));
    }
    let ending = Ending { status, why: why.to_owned() };
    draft.record(Event::RunFinished(RunFinished { ending, awaits }));
}

impl HandoffClosed {
    pub(crate) fn apply(&self, run: &mut Run, at: Time) {
        let out = run
            .handoff(self.handoff)
            .and_then(|h| Some((h.offer.to.clone(), h.state.turn()?.reserved)));
        if let Some((agent, reserved)) = out {
            // Called off in the middle of a turn: nothing is set aside for it any more.
            run.purse.release(&agent, reserved);
        }
        let follows = self.team.clone().or_else(|| team::closing(run, self));
        let withheld = follows.as_ref().is_some_and(|follows| follows.withheld);
        let Some(handoff) = run.handoff_mut(self.handoff) else {
            return;
        };
        let (waiting, aside) = (handoff.returns_to, handoff.cause);
        let (way, response) = (self.way, self.response.clone());
        handoff.state = State::Closed(Box::new(Closing { at, response, way }));
        handoff.answers = Vec::new();
        let gathered = std::mem::take(&mut handoff.gathered);
        // Whoever gets the work passed on owes the whole answer, with what others gave of it.
        let next = self.succeeded_by.first().and_then(|id| run.handoff_mut(*id));
        if let Some(next) = next.filter(|next| next.gathered.is_empty()) {
            next.gathered.clone_from(&gathered);
        }
        if let Some(waiting) = waiting.and_then(|id| run.handoff_mut(id)) {
            if let State::Blocked { on } = &mut waiting.state {
                on.retain(|id| *id != self.handoff);
                on.extend(&self.succeeded_by);
            }
            if self.succeeded_by.is_empty() && !withheld {
                for answer in gathered.into_iter().chain([self.response.clone()]) {
                    waiting.inputs.extend(answer.outputs.clone());
                    waiting.answers.push(answer);
                }
                fields::cut(&mut waiting.inputs, &self.cuts, self.handoff);
                for answer in &mut waiting.answers {
                    fields::cut(&mut answer.outputs, &self.cuts, self.handoff);
                }
            }
        } else if self.response.by == Party::Human {
            // A question that nobody waited for: its answer helps whoever asked, if still at it.
            if let Some(asker) = aside.and_then(|id| run.handoff_mut(id)).filter(|h| h.is_open()) {
                asker.inputs.extend(self.response.outputs.clone());
                fields::cut(&mut asker.inputs, &self.cuts, self.handoff);
            }
        }
        if let Some(follows) = follows {
            team::closed(run, self.handoff, &follows);
        }
    }
}

impl RunFinished {
    pub(crate) fn apply(&self, run: &mut Run) {
        run.stage = Stage::Finished(self.ending.clone());
    }
}
