//! Events: the only persistent record of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::{
    adopt, alert, answer, assess, budget, close, create, expire, fail, finish, fork, park, pause,
    permission, postpone, printed, propose, receipt, recover, renew, resume, session, take, tell,
    turn,
};
use crate::{TeamEvent, Time};

/// An event of a run. One variant per transition; each is defined, decided and applied in the file
/// of its own name under `run/`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each variant is documented where it is defined")]
pub enum Event {
    RunCreated(Box<create::RunCreated>),
    RunForked(Box<fork::RunForked>),
    RunAdopted(adopt::RunAdopted),
    RunPaused(pause::RunPaused),
    RunUnpaused(pause::RunUnpaused),
    RunFinished(close::RunFinished),
    HandoffAdmitted(Box<propose::HandoffAdmitted>),
    HandoffRefused(Box<propose::HandoffRefused>),
    HandoffBlocked(resume::HandoffBlocked),
    HandoffResumed(Box<resume::HandoffResumed>),
    HandoffClosed(Box<close::HandoffClosed>),
    InputsAssessed(assess::InputsAssessed),
    TurnOrdered(turn::TurnOrdered),
    ReceiptGiven(receipt::ReceiptGiven),
    TurnTaken(take::TurnTaken),
    SessionChanged(session::SessionChanged),
    PermitGiven(permission::PermitGiven),
    TurnTold(Box<tell::TurnTold>),
    LeaseRenewed(renew::LeaseRenewed),
    TurnFinished(Box<finish::TurnFinished>),
    TurnFailed(fail::TurnFailed),
    RetryScheduled(fail::RetryScheduled),
    HandoffParked(park::HandoffParked),
    HandoffOverdue(expire::HandoffOverdue),
    LateResultKept(Box<finish::LateResultKept>),
    RecoveryChosen(recover::RecoveryChosen),
    QuestionAnswered(answer::QuestionAnswered),
    QuestionPostponed(postpone::QuestionPostponed),
    BudgetReached(budget::BudgetReached),
    BudgetRaised(budget::BudgetRaised),
    AlertRaised(alert::AlertRaised),
    FrameIgnored(printed::FrameIgnored),
    #[serde(untagged)]
    Team(TeamEvent),
}

impl Event {
    /// Returns the names of all events.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        Self::NAMES.into_iter().chain(TeamEvent::NAMES)
    }

    /// The names of the kernel's own events.
    const NAMES: [&str; 32] = [
        "run_created",
        "run_forked",
        "run_adopted",
        "run_paused",
        "run_unpaused",
        "run_finished",
        "handoff_admitted",
        "handoff_refused",
        "handoff_blocked",
        "handoff_resumed",
        "handoff_closed",
        "inputs_assessed",
        "turn_ordered",
        "receipt_given",
        "turn_taken",
        "session_changed",
        "permit_given",
        "turn_told",
        "lease_renewed",
        "turn_finished",
        "turn_failed",
        "retry_scheduled",
        "handoff_parked",
        "handoff_overdue",
        "late_result_kept",
        "recovery_chosen",
        "question_answered",
        "question_postponed",
        "budget_reached",
        "budget_raised",
        "alert_raised",
        "frame_ignored",
    ];

    /// Returns the event's name as it is stored.
    pub fn name(&self) -> &'static str {
        match self {
            Event::RunCreated(_) => "run_created",
            Event::RunForked(_) => "run_forked",
            Event::RunAdopted(_) => "run_adopted",
            Event::RunPaused(_) => "run_paused",
            Event::RunUnpaused(_) => "run_unpaused",
            Event::RunFinished(_) => "run_finished",
            Event::HandoffAdmitted(_) => "handoff_admitted",
            Event::HandoffRefused(_) => "handoff_refused",
            Event::HandoffBlocked(_) => "handoff_blocked",
            Event::HandoffResumed(_) => "handoff_resumed",
            Event::HandoffClosed(_) => "handoff_closed",
            Event::InputsAssessed(_) => "inputs_assessed",
            Event::TurnOrdered(_) => "turn_ordered",
            Event::ReceiptGiven(_) => "receipt_given",
            Event::TurnTaken(_) => "turn_taken",
            Event::SessionChanged(_) => "session_changed",
            Event::PermitGiven(_) => "permit_given",
            Event::TurnTold(_) => "turn_told",
            Event::LeaseRenewed(_) => "lease_renewed",
            Event::TurnFinished(_) => "turn_finished",
            Event::TurnFailed(_) => "turn_failed",
            Event::RetryScheduled(_) => "retry_scheduled",
            Event::HandoffParked(_) => "handoff_parked",
            Event::HandoffOverdue(_) => "handoff_overdue",
            Event::LateResultKept(_) => "late_result_kept",
            Event::RecoveryChosen(_) => "recovery_chosen",
            Event::QuestionAnswered(_) => "question_answered",
            Event::QuestionPostponed(_) => "question_postponed",
            Event::BudgetReached(_) => "budget_reached",
            Event::BudgetRaised(_) => "budget_raised",
            Event::AlertRaised(_) => "alert_raised",
            Event::FrameIgnored(_) => "frame_ignored",
            Event::Team(event) => event.name(),
        }
    }

    /// Returns the handoff that the event is about, if any.
    pub fn handoff(&self) -> Option<crate::HandoffId> {
        match self {
            Event::HandoffAdmitted(e) => Some(e.id),
            Event::HandoffRefused(e) => Some(e.id),
            Event::HandoffBlocked(e) => Some(e.handoff),
            Event::HandoffResumed(e) => Some(e.handoff),
            Event::HandoffClosed(e) => Some(e.handoff),
            Event::InputsAssessed(e) => Some(e.handoff),
            Event::TurnOrdered(e) => Some(e.turn.handoff),
            Event::ReceiptGiven(e) => Some(e.turn.handoff),
            Event::TurnTaken(e) => Some(e.turn.handoff),
            Event::PermitGiven(e) => Some(e.turn.handoff),
            Event::TurnTold(e) => Some(e.turn.handoff),
            Event::FrameIgnored(e) => Some(e.turn.handoff),
            Event::LeaseRenewed(e) => Some(e.turn.handoff),
            Event::TurnFinished(e) => Some(e.turn.handoff),
            Event::TurnFailed(e) => Some(e.turn.handoff),
            Event::RetryScheduled(e) => Some(e.handoff),
            Event::HandoffParked(e) => Some(e.handoff),
            Event::HandoffOverdue(e) => Some(e.handoff),
            Event::LateResultKept(e) => Some(e.turn.handoff),
            Event::RecoveryChosen(e) => Some(e.handoff),
            Event::QuestionAnswered(e) => Some(e.handoff),
            Event::QuestionPostponed(e) => Some(e.handoff),
            Event::Team(event) => event.handoff(),
            Event::RunCreated(_)
            | Event::RunForked(_)
            | Event::RunAdopted(_)
            | Event::RunPaused(_)
            | Event::RunUnpaused(_)
            | Event::RunFinished(_)
            | Event::SessionChanged(_)
            | Event::BudgetReached(_)
            | Event::BudgetRaised(_)
            | Event::AlertRaised(_) => None,
        }
    }
}

/// An event with its number within the run and its time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Recorded {
    /// The number of the event, from 1 without gaps.
    pub seq: u64,
    /// The time of the event.
    pub at: Time,
    /// The event with its data.
    #[serde(flatten)]
    pub event: Event,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_its_name_in_the_list() {
        let schema = schemars::schema_for!(Event).to_value();
        let mut found: Vec<&str> = Vec::new();
        let mut left = vec![&schema];
        while let Some(value) = left.pop() {
            match value {
                serde_json::Value::Object(fields) => {
                    found.extend(value["properties"]["event"]["const"].as_str());
                    left.extend(fields.values());
                }
                serde_json::Value::Array(items) => left.extend(items),
                _ => {}
            }
        }
        found.sort_unstable();
        let mut names: Vec<&str> = Event::names().collect();
        names.sort_unstable();
        assert_eq!(found, names);
    }
}
