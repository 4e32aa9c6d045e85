//! An agent says that it has its turn: the clock changes from acceptance to the lease.

use serde::{Deserialize, Serialize};

use super::{Draft, Run};
use crate::handoff::State;
use crate::{Event, Time, TurnKey};

/// The agent has taken the turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TurnAccepted {
    /// Which turn.
    pub turn: TurnKey,
    /// When the next sign of life is due.
    pub due: Time,
}

pub(super) fn decide(draft: &mut Draft, turn: TurnKey) {
    if !draft.run.is_current(turn) {
        return;
    }
    let ordered = |h: &crate::Handoff| matches!(h.state, State::Ordered(_));
    if draft.run.handoff(turn.handoff).is_some_and(ordered) {
        let due = draft.now + draft.run.workflow.limits.lease;
        draft.record(Event::TurnAccepted(TurnAccepted { turn, due }));
    }
}

impl TurnAccepted {
    pub(super) fn apply(&self, run: &mut Run) {
        let Some(handoff) = run.handoff_mut(self.turn.handoff) else {
            return;
        };
        if let State::Ordered(turn) = &handoff.state {
            let mut turn = turn.clone();
            turn.due = self.due;
            handoff.state = State::Accepted(turn);
        }
    }
}
