//! Phases: the orchestrator orders one after the other, each with nothing but the summary of the
//! one
//! before.
//!
//! An agent answers in the shape of its phase. PROCEED continues, CLARIFY asks the user, STOP
//! halts.
//! A phase with several agents has ended when all of them have, and its rule decides whether it
//! passed.

mod judge;
mod progress;
mod request;
#[cfg(test)]
pub(super) mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Closed, Coordinator, legacy};
use crate::handoff::{Constraints, Way};
use crate::run::close::HandoffClosed;
use crate::run::propose::{self, Proposal, propose};
use crate::run::{Draft, Run, Status, close, escalate, recover, resume, tell};
use crate::wire::phase::{Decision, Phase, PhaseRequest, PhaseResponse, asked, decision};
use crate::workflow::RecoveryCause;
use crate::workflow::phases::PhaseStep;
use crate::{
    Event, Fields, HandoffId, Input, Kind, Offer, Outcome, Party, Question, Reason, Response,
    TeamEvent, TurnKey,
};

pub use progress::{Brought, Hop, Part, Phases, Saving, Tokens};
pub use request::MAX_SUMMARY;

/// The reason of a handoff that orders a part of a phase.
pub const REASON: &str = "phase";

/// A phase began with these handoffs as its parts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseBegun {
    /// The task id that requests and answers carry.
    pub task_id: String,
    /// The position among the phases of the workflow, from 0.
    pub place: usize,
    /// The kind of phase.
    pub phase: Phase,
    /// The number of times that the phase was entered, including this one.
    pub round: u32,
    /// The handoffs of its parts.
    pub parts: Vec<HandoffId>,
    /// The parts that had ended before the previous generation ended in the middle of the phase.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<Part>,
    /// The inputs of the run, for the contexts of all phases.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub given: Fields,
}

/// A phase has ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseEnded {
    /// The position among the phases of the workflow, from 0.
    pub place: usize,
    /// The kind of phase.
    pub phase: Phase,
    /// The number of times that the phase was entered, including this one.
    pub round: u32,
    /// PROCEED if it passed, STOP if it did not.
    pub decision: Decision,
    /// The reason, in a sentence.
    pub why: String,
    /// The parts with their results.
    pub parts: Vec<Part>,
    /// The rule that combined the results.
    pub rule: String,
    /// The summary for the next phase.
    pub summary: String,
    /// The total tokens of the phase.
    pub tokens: Tokens,
    /// The tokens that its summary has saved; `None` in events of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saving: Option<Saving>,
}

/// The tokens of a turn's answer were counted. Older releases recorded this as a separate event;
/// the result of the turn carries it now.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnMeasured {
    /// The turn that was measured.
    pub turn: TurnKey,
    /// The token counts of the answer.
    pub measured: Measured,
}

/// The token counts of an answer; `None` where a text was too long to be counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// The tokens of the request.
    pub request: Option<u64>,
    /// The tokens of the whole answer.
    pub response: Option<u64>,
    /// The tokens of the answer's summary.
    pub summary: Option<u64>,
}

/// The answer to a phase, for counting its tokens.
#[derive(Clone, PartialEq, Debug)]
pub struct PhaseAnswer {
    pub request: PhaseRequest,
    pub response: PhaseResponse,
}

impl Run {
    /// Returns the problem with an answer to a phase before it is given, so that its sender can
    /// correct it.
    pub fn phase_complaint(
        &self,
        turn: TurnKey,
        response: &Response,
        measured: Measured,
    ) -> Option<String> {
        if !holds(self, turn.handoff) {
            return None;
        }
        judge::judge(self, turn.handoff, response, Some(measured)).err()
    }

    /// Returns the answer to a phase in `input`, if it contains one.
    pub fn phase_answer(&self, input: &Input) -> Option<PhaseAnswer> {
        let (turn, response) = match input {
            Input::Finish { turn, result } => {
                (*turn, tell::complete(self, turn.handoff, (**result).clone()).response)
            }
            Input::Tell { turn, told } => (*turn, told.response.clone()?),
            _ => return None,
        };
        let is_asked = self.is_current(turn) && holds(self, turn.handoff);
        let offer = &self.handoff(turn.handoff).filter(|_| is_asked)?.offer;
        let phase = asked(offer)?;
        decision(&response)?;
        Some(PhaseAnswer {
            request: PhaseRequest::from_offer(offer, "", phase),
            response: PhaseResponse::from_response(&response, "", phase),
        })
    }
}

/// The effect of a closed handoff on its part.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PartClosed {
    /// The tokens that its agent reports.
    pub reported: u64,
    /// The handoff that replaces it, with its agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub successor: Option<(HandoffId, Party)>,
    /// The result of the part, if it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brought: Option<Brought>,
}

/// Orders the phases of a workflow, one after the other.
pub(super) struct PhaseCoordinator;

impl Coordinator for PhaseCoordinator {
    fn begin(&self, draft: &mut Draft, given: &Fields) -> bool {
        let phased = !draft.run.workflow.phases.is_empty();
        if phased {
            begin(draft, given.clone());
        }
        phased
    }

    fn conclude(&self, draft: &mut Draft, id: HandoffId, response: Response) -> Option<Response> {
        if !holds(&draft.run, id) {
            return Some(response);
        }
        conclude(draft, id, response);
        None
    }

    fn closing(&self, run: &Run, closed: &HandoffClosed, follows: &mut Closed) {
        follows.part = part_closed(run, closed);
    }

    fn advance(&self, draft: &mut Draft) {
        advance(draft);
    }

    fn follow(&self, run: &mut Run, event: &Event) {
        let Some(phases) = &mut run.team.phases else { return };
        match event {
            // Counts of an earlier turn say nothing about this one.
            Event::TurnOrdered(ordered) => {
                let part = phases.part_mut(ordered.turn.handoff);
                part.into_iter().for_each(|part| part.measured = None);
            }
            Event::TurnFinished(finished) => {
                let part = phases.part_mut(finished.turn.handoff);
                if let (Some(part), Some(measured)) = (part, finished.result.said.measured) {
                    part.measure(measured);
                }
            }
            _ => {}
        }
    }
}

/// Starts the first phase of a new run.
fn begin(draft: &mut Draft, given: Fields) {
    let named = given.get("task_id").and_then(serde_json::Value::as_str);
    let task_id = named.map_or_else(|| draft.run.id.short(), str::to_owned);
    let phases = opening(&draft.run, task_id, given);
    let place = phases.place;
    enter(draft, phases, place, None);
}

/// Returns the progress of a new run: at the first phase, or where the previous generation had to
/// end.
fn opening(run: &Run, task_id: String, given: Fields) -> Phases {
    let left = run.team.lineage.as_ref().and_then(|lineage| lineage.phases.clone());
    Phases { given, ..left.unwrap_or_else(|| Phases { task_id, ..Phases::default() }) }
}

/// Orders a phase from all its agents in parallel.
fn enter(draft: &mut Draft, phases: Phases, place: usize, after: Option<HandoffId>) {
    let workflow = draft.run.workflow.clone();
    let Some(step) = workflow.phases.get(place) else { return };
    let mut parts = Vec::new();
    for agent in &step.agents {
        let offer = request::offer(&draft.run, &phases, step, agent);
        let task_id = offer.foreign.as_ref().map(|foreign| &foreign.id);
        if phases.parts.iter().any(|part| Some(&part.task_id) == task_id) {
            continue;
        }
        let constraints = Constraints {
            fresh: true,
            keeps: true,
            // The rule of the phase decides how many have to pass.
            optional: step.agents.len() > 1,
            ..Constraints::default()
        };
        let proposal =
            Proposal { cause: after, declared: true, constraints, ..Proposal::of(offer) };
        match propose(draft, proposal) {
            Ok(id) => parts.push(id),
            Err(refusal) => {
                let why = format!("the {} phase could not begin: {refusal}", step.phase);
                return close::end(draft, Status::Failed, &why);
            }
        }
    }
    let first = draft.run.team.phases.is_none();
    let begun = PhaseBegun {
        round: phases.rounds(place) + 1,
        task_id: phases.task_id,
        place,
        phase: step.phase,
        parts,
        kept: phases.parts,
        given: if first { phases.given } else { Fields::new() },
    };
    draft.record(Event::Team(TeamEvent::PhaseBegun(Box::new(begun))));
}

/// True if `id` is a part of the current phase.
fn holds(run: &Run, id: HandoffId) -> bool {
    run.team.phases.as_ref().is_some_and(|phases| phases.part(id).is_some())
}

/// Handles the answer of an agent to its phase.
fn conclude(draft: &mut Draft, id: HandoffId, response: Response) {
    let part = draft.run.team.phases.as_ref().and_then(|phases| phases.part(id));
    let measured = part.and_then(|part| part.measured);
    match judge::judge(&draft.run, id, &response, measured) {
        Err(complaint) => give_back(draft, id, complaint),
        Ok(()) if decision(&response) == Some(Decision::Clarify) => clarify(draft, id, &response),
        Ok(()) if decision(&response) == Some(Decision::Stop) => {
            close::answered(draft, id, response);
        }
        Ok(()) if response.outcome == Outcome::Failed => {
            recover::decide(draft, id, response, RecoveryCause::Failed);
        }
        Ok(()) => close::answered(draft, id, response),
    }
}

/// Returns an answer to its agent with the problem; the agent may answer again, until a person is
/// asked.
fn give_back(draft: &mut Draft, id: HandoffId, complaint: String) {
    let Some(handoff) = draft.run.handoff(id) else { return };
    if handoff.refusals >= draft.run.workflow.limits.refusals {
        return escalate::about_failure(draft, id, &complaint);
    }
    resume::refused(draft, id, vec![Response::failed(complaint)]);
}

/// Asks the user for clarification; the agent continues with the answer.
fn clarify(draft: &mut Draft, id: HandoffId, response: &Response) {
    let Some(handoff) = draft.run.handoff(id) else { return };
    let foreign = response.foreign.as_ref().map(|foreign| &foreign.fields);
    let texts = |name: &str| -> Vec<String> {
        let list = foreign.and_then(|fields| fields.get(name)?.as_array().cloned());
        list.unwrap_or_default().iter().filter_map(|item| Some(item.as_str()?.to_owned())).collect()
    };
    let issues = texts("issues").join("; ");
    let question = Question {
        reason: "clarify".into(),
        details: if issues.is_empty() { response.summary.clone() } else { issues },
        options: texts("options"),
        context: response.summary.clone(),
        blocking: true,
        ..Question::default()
    };
    let offer = Offer {
        item: handoff.offer.item.clone(),
        question: Some(question),
        ..Offer::new(
            handoff.offer.to.clone(),
            Party::Human,
            Kind::Delegate,
            Reason::RequiresHumanDecision,
        )
    };
    let question = propose::ask(draft, Proposal::within(offer, id));
    resume::block(draft, id, vec![question], Vec::new());
}

/// Ends a phase whose parts have all ended, and then begins the next one, repeats an earlier one or
/// ends the run. Called after every step.
fn advance(draft: &mut Draft) {
    let Some(phases) = draft.run.team.phases.clone().filter(Phases::is_complete) else { return };
    let workflow = draft.run.workflow.clone();
    let Some(step) = workflow.phases.get(phases.place) else { return };
    let last = phases.parts.last().map(|part| part.handoff);
    let mut ended = sum_up(step, &phases);
    ended.saving = Some(legacy::saving(&draft.run, &ended));
    let (passed, why) = (ended.decision == Decision::Proceed, ended.why.clone());
    draft.record(Event::Team(TeamEvent::PhaseEnded(Box::new(ended))));
    let Some(after) = draft.run.team.phases.clone() else { return };
    if passed {
        return enter(draft, after, phases.place + 1, last);
    }
    let earlier = |step: &PhaseStep| {
        workflow.phases[..phases.place].iter().rposition(|other| Some(other.phase) == step.back_to)
    };
    match earlier(step).filter(|_| !phases.is_halted() && after.rounds(phases.place) < step.rounds)
    {
        Some(earlier) => enter(draft, after, earlier, last),
        None => close::end(draft, Status::Failed, &why),
    }
}

fn sum_up(step: &PhaseStep, phases: &Phases) -> PhaseEnded {
    let (total, passed) = (phases.parts.len(), phases.passed());
    let halted = phases.is_halted();
    let good = !halted && passed >= step.rule.needed(total);
    let why = match phases.parts.as_slice() {
        [part] if good => format!("{} has done its part", part.agent),
        [part] if halted => format!("{} says STOP: {}", part.agent, part.why()),
        [part] => format!("{} did not pass: {}", part.agent, part.why()),
        _ => format!("{passed} of {total} parts passed, and the rule is {}", step.rule),
    };
    PhaseEnded {
        place: phases.place,
        phase: step.phase,
        round: phases.rounds(phases.place),
        decision: if good { Decision::Proceed } else { Decision::Stop },
        why: format!("{} phase: {why}", step.phase),
        summary: phases.summary(),
        rule: step.rule.to_string(),
        tokens: phases.tokens(),
        parts: phases.parts.clone(),
        saving: None,
    }
}

/// Returns the effect of a closed handoff on its part: the part has ended, or others replace it.
fn part_closed(run: &Run, closed: &HandoffClosed) -> Option<PartClosed> {
    let phases = run.team.phases.as_ref()?;
    phases.part(closed.handoff)?;
    let reported = run.handoff(closed.handoff)?.usage.tokens;
    let successor = closed.succeeded_by.first().and_then(|id| run.handoff(*id));
    let successor = successor.map(|handoff| (handoff.id, handoff.offer.to.clone()));
    // A cancelled part ends with the run, not on its own.
    let is_over = successor.is_none() && closed.way != Way::Cancelled;
    let alone = phases.parts.len() == 1;
    let brought = is_over.then(|| judge::brought(closed.way, &closed.response, alone));
    Some(PartClosed { reported, successor, brought })
}

impl PhaseBegun {
    pub(super) fn apply(&self, run: &mut Run) {
        let part = |id: &HandoffId| {
            let offer = &run.handoff(*id)?.offer;
            let task_id = offer.foreign.as_ref().map(|foreign| foreign.id.clone());
            let task_id = task_id.unwrap_or_else(|| self.task_id.clone());
            Some(Part { handoff: *id, agent: offer.to.clone(), task_id, ..Part::default() })
        };
        let parts = self.kept.iter().cloned().chain(self.parts.iter().filter_map(part)).collect();
        let before = run.team.phases.take();
        let before =
            before.unwrap_or_else(|| opening(run, self.task_id.clone(), self.given.clone()));
        run.team.phases = Some(before.begun(self.place, self.phase, parts));
    }
}

impl PhaseEnded {
    pub(super) fn apply(&self, run: &mut Run) {
        let saving = self.saving.unwrap_or_else(|| legacy::saving(run, self));
        if let Some(phases) = &mut run.team.phases {
            phases.ended(self, saving);
        }
    }
}

impl TurnMeasured {
    pub(super) fn apply(&self, run: &mut Run) {
        let part = run.team.phases.as_mut().and_then(|phases| phases.part_mut(self.turn.handoff));
        part.into_iter().for_each(|part| part.measure(self.measured));
    }
}
