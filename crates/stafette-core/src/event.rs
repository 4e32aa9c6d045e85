//! Events: the only persistent record of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::{
    adopt, alert, answer, assess, budget, close, create, expire, fail, finish, fork, message, park,
    pause, permission, postpone, printed, propose, receipt, recover, renew, resume, session, take,
    tell, turn,
};
use crate::{TeamEvent, Time};

/// Gives an enum of events their names, as they are stored; what one of its variants wraps has
/// names of its own.
macro_rules! stored_names {
    ($type:ident: $($variant:ident $name:literal,)+ $(; $inner:ident)?) => {
        impl $type {
            /// The names of the variants.
            pub(crate) const NAMES: &[&str] = &[$($name),+];

            /// Returns the event's name as it is stored.
            pub fn name(&self) -> &'static str {
                match self {
                    $($type::$variant(_) => $name,)+
                    $($type::$inner(event) => event.name(),)?
                }
            }
        }
    };
}

pub(crate) use stored_names;

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
    MessageSent(Box<message::MessageSent>),
    MessageDelivered(message::MessageDelivered),
    MessageUnread(message::MessageUnread),
    #[serde(untagged)]
    Team(TeamEvent),
}

stored_names! { Event:
    RunCreated "run_created",
    RunForked "run_forked",
    RunAdopted "run_adopted",
    RunPaused "run_paused",
    RunUnpaused "run_unpaused",
    RunFinished "run_finished",
    HandoffAdmitted "handoff_admitted",
    HandoffRefused "handoff_refused",
    HandoffBlocked "handoff_blocked",
    HandoffResumed "handoff_resumed",
    HandoffClosed "handoff_closed",
    InputsAssessed "inputs_assessed",
    TurnOrdered "turn_ordered",
    ReceiptGiven "receipt_given",
    TurnTaken "turn_taken",
    SessionChanged "session_changed",
    PermitGiven "permit_given",
    TurnTold "turn_told",
    LeaseRenewed "lease_renewed",
    TurnFinished "turn_finished",
    TurnFailed "turn_failed",
    RetryScheduled "retry_scheduled",
    HandoffParked "handoff_parked",
    HandoffOverdue "handoff_overdue",
    LateResultKept "late_result_kept",
    RecoveryChosen "recovery_chosen",
    QuestionAnswered "question_answered",
    QuestionPostponed "question_postponed",
    BudgetReached "budget_reached",
    BudgetRaised "budget_raised",
    AlertRaised "alert_raised",
    FrameIgnored "frame_ignored",
    MessageSent "message_sent",
    MessageDelivered "message_delivered",
    MessageUnread "message_unread",
    ; Team
}

impl Event {
    /// Returns the names of all events.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        Self::NAMES.iter().chain(TeamEvent::NAMES).copied()
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
            Event::MessageDelivered(e) => Some(e.turn.handoff),
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
            | Event::AlertRaised(_)
            | Event::MessageSent(_)
            | Event::MessageUnread(_) => None,
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
