//! What became true: the only memory of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Time;
use crate::run::{
    adopt, alert, answer, assess, budget, change, close, council, create, expire, fail, finish,
    fork, hand_over, note, park, pause, permission, phase, postpone, propose, receipt, recover,
    renew, resume, session, take, tell, turn,
};

/// Something that became true. One variant a transition; each is defined, decided and applied in
/// the file of its own name under `run/`.
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
    PhaseBegun(Box<phase::PhaseBegun>),
    PhaseEnded(Box<phase::PhaseEnded>),
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
    TurnMeasured(phase::TurnMeasured),
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
    ChangeProposed(Box<change::ChangeProposed>),
    ChangeCommented(Box<change::ChangeCommented>),
    ChangeReturned(change::ChangeReturned),
    ChangeOrdered(change::ChangeOrdered),
    ChangeSettled(change::ChangeSettled),
    AlertRaised(alert::AlertRaised),
    CouncilOpened(Box<council::CouncilOpened>),
    CouncilHeard(Box<council::CouncilHeard>),
    CouncilConcluded(Box<council::CouncilConcluded>),
    CouncilReopened(Box<council::CouncilReopened>),
    NoteLeft(note::NoteLeft),
    GenerationHandedOver(Box<hand_over::GenerationHandedOver>),
}

impl Event {
    /// All names.
    pub const NAMES: [&str; 45] = [
        "run_created",
        "run_forked",
        "run_adopted",
        "run_paused",
        "run_unpaused",
        "run_finished",
        "handoff_admitted",
        "handoff_refused",
        "phase_begun",
        "phase_ended",
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
        "turn_measured",
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
        "change_proposed",
        "change_commented",
        "change_returned",
        "change_ordered",
        "change_settled",
        "alert_raised",
        "council_opened",
        "council_heard",
        "council_concluded",
        "council_reopened",
        "note_left",
        "generation_handed_over",
    ];

    /// The event's name, as it is stored.
    #[must_use]
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
            Event::PhaseBegun(_) => "phase_begun",
            Event::PhaseEnded(_) => "phase_ended",
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
            Event::TurnMeasured(_) => "turn_measured",
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
            Event::ChangeProposed(_) => "change_proposed",
            Event::ChangeCommented(_) => "change_commented",
            Event::ChangeReturned(_) => "change_returned",
            Event::ChangeOrdered(_) => "change_ordered",
            Event::ChangeSettled(_) => "change_settled",
            Event::AlertRaised(_) => "alert_raised",
            Event::CouncilOpened(_) => "council_opened",
            Event::CouncilHeard(_) => "council_heard",
            Event::CouncilConcluded(_) => "council_concluded",
            Event::CouncilReopened(_) => "council_reopened",
            Event::NoteLeft(_) => "note_left",
            Event::GenerationHandedOver(_) => "generation_handed_over",
        }
    }

    /// The handoff that it is about, if it is about one.
    #[must_use]
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
            Event::LeaseRenewed(e) => Some(e.turn.handoff),
            Event::TurnMeasured(e) => Some(e.turn.handoff),
            Event::TurnFinished(e) => Some(e.turn.handoff),
            Event::TurnFailed(e) => Some(e.turn.handoff),
            Event::RetryScheduled(e) => Some(e.handoff),
            Event::HandoffParked(e) => Some(e.handoff),
            Event::HandoffOverdue(e) => Some(e.handoff),
            Event::LateResultKept(e) => Some(e.turn.handoff),
            Event::RecoveryChosen(e) => Some(e.handoff),
            Event::QuestionAnswered(e) => Some(e.handoff),
            Event::ChangeProposed(e) => e.set.handoff,
            Event::ChangeCommented(e) => e.handoff,
            Event::ChangeReturned(e) => e.handoff,
            Event::ChangeOrdered(e) => e.handoff,
            Event::ChangeSettled(e) => e.handoff,
            Event::QuestionPostponed(e) => Some(e.handoff),
            Event::CouncilOpened(e) => Some(e.handoff),
            Event::CouncilHeard(e) => Some(e.handoff),
            Event::CouncilConcluded(e) => Some(e.handoff),
            Event::CouncilReopened(e) => Some(e.handoff),
            Event::RunCreated(_)
            | Event::RunForked(_)
            | Event::RunAdopted(_)
            | Event::RunPaused(_)
            | Event::RunUnpaused(_)
            | Event::RunFinished(_)
            | Event::PhaseBegun(_)
            | Event::PhaseEnded(_)
            | Event::SessionChanged(_)
            | Event::BudgetReached(_)
            | Event::BudgetRaised(_)
            | Event::AlertRaised(_)
            | Event::NoteLeft(_)
            | Event::GenerationHandedOver(_) => None,
        }
    }
}

/// An event in its place: numbered within its run, and with the moment it became true.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Recorded {
    /// From 1, without gaps.
    pub seq: u64,
    /// When.
    pub at: Time,
    /// What.
    #[serde(flatten)]
    pub event: Event,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_event_has_its_name_in_the_list() {
        let schema = schemars::schema_for!(Event).to_value();
        let variants = schema["oneOf"].as_array().expect("variants");
        let name = |variant: &serde_json::Value| {
            variant["properties"]["event"]["const"].as_str().expect("a name").to_owned()
        };
        let names: Vec<String> = variants.iter().map(name).collect();
        assert_eq!(names, Event::NAMES);
    }
}
