//! The next step after a generation: the first matching rule.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Awaited, Lineage};
use crate::change::{Change, ChangeStatus, GateKind};
use crate::handoff::State;
use crate::team::council::Decision;
use crate::wire::context::{NextActionType, TeamPhase};
use crate::{Run, Status};

/// The changes of a generation, counted by status.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ChangeCounts {
    /// Changes that are ready to be applied.
    pub ready: u32,
    /// Changes that wait for a person's approval.
    pub waiting: u32,
    /// Changes that could not be applied or were rolled back.
    pub failed: u32,
    /// Changes that are applied to the project.
    pub applied: u32,
    /// Applied changes to the orchestrator's own code.
    pub own: u32,
}

impl ChangeCounts {
    /// Counts changes by status.
    pub fn of<'c>(changes: impl IntoIterator<Item = &'c Change>) -> Self {
        let mut counts = ChangeCounts::default();
        for change in changes {
            match change.status {
                _ if change.waits_for_person() => counts.waiting += 1,
                ChangeStatus::Pending | ChangeStatus::Approved => counts.ready += 1,
                ChangeStatus::Failed => counts.failed += 1,
                ChangeStatus::Applied | ChangeStatus::Validated => {
                    counts.applied += 1;
                    let own = change.gates.iter().any(|gate| gate.kind == GateKind::OwnLogic);
                    counts.own += u32::from(own);
                }
                ChangeStatus::Refused | ChangeStatus::Undone => {}
            }
        }
        counts
    }
}

/// The next step of a team, and the reason.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Next {
    pub phase: TeamPhase,
    pub action: NextActionType,
    /// The reason, in a sentence.
    pub reason: String,
    /// The agent whose turn would be next.
    pub target: Option<String>,
    /// The topic, if it is a new one.
    pub topic: Option<String>,
    /// True if nothing is left to do.
    pub done: bool,
    /// The trigger of the handover, if it was one of these.
    pub cause: Option<Cause>,
}

/// A trigger of a handover.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The members of the council agree.
    ConsensusReached,
    /// All members have used up their turns.
    AgentsExhausted,
    /// At least one change is ready to be applied.
    ChangesReady,
    /// A person has to answer first.
    HumanNeeded,
}

impl Next {
    fn new(phase: TeamPhase, action: NextActionType, reason: impl Into<String>) -> Self {
        let (reason, target, topic, cause) = (reason.into(), None, None, None);
        Next { phase, action, reason, target, topic, done: false, cause }
    }
}

/// Returns the next step for the current state of a run, ended or not.
pub fn next(run: &Run, changes: &ChangeCounts) -> Next {
    use NextActionType::{ApplyChanges, ContinueDiscussion, ManualReview, RestartWithNewCode};
    let phase = run
        .team
        .lineage
        .as_deref()
        .map_or(TeamPhase::Discussion, |lineage: &Lineage| lineage.phase);
    let status = run.status();
    if !status.is_final() {
        let asked = super::awaited(run);
        if let (true, Some(first)) = (status.waiting_on().is_some(), asked.first()) {
            let reason = format!("A person is asked: {}", first.question.details);
            return Next::new(phase, ManualReview, reason);
        }
        let mut next = Next::new(phase, ContinueDiscussion, format!("The generation is {status}"));
        let out = run.open().find(|handoff| handoff.state.turn().is_some());
        next.target = out.map(|handoff| handoff.offer.to.to_string());
        return next;
    }
    let awaits = run.team.lineage.iter().flat_map(|lineage| &lineage.awaits);
    if let Some(Awaited { from, question, .. }) = awaits.into_iter().next() {
        let reason = format!("A person is needed: {from} asks: {}", question.details);
        return Next { cause: Some(Cause::HumanNeeded), ..Next::new(phase, ManualReview, reason) };
    }
    if status != Status::Succeeded {
        let why = match &run.stage {
            crate::run::Stage::Finished(ending) => ending.why.as_str(),
            _ => "",
        };
        return Next::new(phase, ManualReview, format!("The generation {status}: {why}"));
    }
    let ChangeCounts { ready, waiting, failed, applied, own } = *changes;
    if waiting > 0 {
        let reason =
            format!("{} a person's yes", count(waiting, "change waits for", "changes wait for"));
        let cause = Some(Cause::HumanNeeded);
        return Next { cause, ..Next::new(TeamPhase::CodeReview, ManualReview, reason) };
    }
    if ready > 0 {
        let reason = format!("{} ready", count(ready, "change is", "changes are"));
        let cause = Some(Cause::ChangesReady);
        return Next { cause, ..Next::new(TeamPhase::ApplyChanges, ApplyChanges, reason) };
    }
    if own > 0 {
        let reason =
            format!("{} the team's own logic", count(own, "change is to", "changes are to"));
        return Next::new(TeamPhase::Testing, RestartWithNewCode, reason);
    }
    if failed > 0 {
        let reason = format!("{} hold", count(failed, "change does not", "changes do not"));
        return Next::new(TeamPhase::Discussion, ContinueDiscussion, reason);
    }
    let verdict = run.team.council.as_ref().and_then(|council| council.verdict.as_ref());
    if let Some(verdict) = verdict.filter(|verdict| verdict.decision == Decision::Exhausted) {
        let mut next = Next::new(TeamPhase::Discussion, ContinueDiscussion, sentence(&verdict.why));
        next.target = verdict.dissent.first().map(|dissent| dissent.member.to_string());
        next.cause = Some(Cause::AgentsExhausted);
        return next;
    }
    let cause = verdict.map(|_| Cause::ConsensusReached);
    let settled =
        verdict.map_or_else(|| "The work is done".to_owned(), |verdict| sentence(&verdict.why));
    if let Some(topic) = proposed(run) {
        let mut next = Next::new(
            TeamPhase::Discussion,
            ContinueDiscussion,
            format!("{settled}; the next topic is: {topic}"),
        );
        next.topic = Some(topic);
        next.cause = cause;
        return next;
    }
    if applied > 0 && phase != TeamPhase::Testing {
        let reason = format!("{} in the project", count(applied, "change is", "changes are"));
        return Next { cause, ..Next::new(TeamPhase::Testing, ContinueDiscussion, reason) };
    }
    let reason = format!("{settled}; nothing is left to do until a person names the next topic");
    Next { done: true, cause, ..Next::new(phase, ManualReview, reason) }
}

/// Returns the next topic that the team itself suggests: the council's, or that of the last answer.
fn proposed(run: &Run) -> Option<String> {
    let verdict = run.team.council.as_ref().and_then(|council| council.verdict.as_ref());
    let agreed = verdict.and_then(|verdict| verdict.next_topic.clone());
    let closed = run.handoffs.values().filter_map(|handoff| match &handoff.state {
        State::Closed(closing) if super::is_agent(&handoff.offer.to) => {
            Some((closing.at, handoff.id, closing.response.outputs.get("next_topic")))
        }
        _ => None,
    });
    let last = closed.max_by_key(|(at, id, _)| (*at, *id)).and_then(|(_, _, topic)| topic);
    let said = last.and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    said.map(|text| crate::text::clip(text, super::NOTE)).or(agreed)
}

fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

fn count(n: u32, one: &str, many: &str) -> String {
    format!("{n} {}", if n == 1 { one } else { many })
}
