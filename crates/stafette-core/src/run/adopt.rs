//! A process takes the run over: turns that were out are delivered again, under the same keys and
//! with fresh clocks, because the time that nobody was there is not the agents' fault.

use serde::{Deserialize, Serialize};

use super::{Draft, Run};
use crate::handoff::{Receipt, State};
use crate::{Event, HandoffId, Time};

/// A process took the run over.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct RunAdopted {
    /// Who.
    pub by: String,
    /// The turns that are delivered again.
    #[serde(default)]
    pub redelivered: Vec<HandoffId>,
}

pub(super) fn decide(draft: &mut Draft, by: String) {
    let redelivered = draft.run.open().filter(|h| h.state.turn().is_some()).map(|h| h.id).collect();
    draft.record(Event::RunAdopted(RunAdopted { by, redelivered }));
}

impl RunAdopted {
    pub(super) fn apply(&self, run: &mut Run, at: Time) {
        let limits = run.workflow.limits.clone();
        for id in &self.redelivered {
            run.tally.redelivered += 1;
            let Some(handoff) = run.handoff_mut(*id) else {
                continue;
            };
            if let Some(turn) = handoff.state.turn() {
                let mut turn = turn.clone();
                turn.due = at + limits.accept_timeout;
                turn.finish_by = at + limits.finish_timeout;
                turn.deliveries += 1;
                turn.receipt = Receipt::Queued;
                handoff.permits.clear();
                handoff.state = State::Ordered(turn);
            }
        }
    }
}
