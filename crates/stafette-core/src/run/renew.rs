//! An agent shows that it lives: its lease is renewed, but not recorded more often than needed.

use serde::{Deserialize, Serialize};

use super::{Draft, Run, receipt};
use crate::handoff::{Receipt, State};
use crate::{Event, Millis, Time, TurnKey};

/// The agent lives and has its lease renewed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LeaseRenewed {
    /// Which turn.
    pub turn: TurnKey,
    /// When the next sign of life is due.
    pub due: Time,
    /// What it says it is doing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

pub(super) fn decide(draft: &mut Draft, turn: TurnKey, note: Option<String>) {
    receipt::decide(draft, turn, Receipt::Delivered);
    if !draft.run.is_current(turn) {
        return;
    }
    let lease = draft.run.workflow.limits.lease;
    let worth_recording = match draft.run.handoff(turn.handoff).map(|h| &h.state) {
        Some(State::Accepted(_)) => true,
        Some(State::Running(out)) => out.due.since(draft.now) <= Millis(lease.0 / 2),
        _ => false,
    };
    if worth_recording {
        let due = draft.now + lease;
        draft.record(Event::LeaseRenewed(LeaseRenewed { turn, due, note }));
    }
}

impl LeaseRenewed {
    pub(super) fn apply(&self, run: &mut Run) {
        let Some(handoff) = run.handoff_mut(self.turn.handoff) else {
            return;
        };
        if let Some(turn) = handoff.state.turn() {
            let mut turn = turn.clone();
            turn.due = self.due;
            handoff.state = State::Running(turn);
        }
    }
}
