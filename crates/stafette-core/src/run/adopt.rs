//! A process takes the run over: turns that were out are delivered again, under the same keys and
//! with fresh clocks, because the time that nobody was there is not the agents' fault.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run};
use crate::handoff::{Receipt, State};
use crate::{Event, HandoffId, Reply, Time};

/// A process took the run over.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunAdopted {
    /// Who.
    pub by: String,
    /// The turns that are delivered again.
    #[serde(default)]
    pub redelivered: Vec<HandoffId>,
    /// The turns that stay with somebody from outside.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<HandoffId>,
}

pub(super) fn decide(draft: &mut Draft, by: String) -> Reply {
    let (mut redelivered, mut kept) = (Vec::new(), Vec::new());
    for handoff in draft.run.open() {
        match handoff.state.turn() {
            Some(turn) if turn.taken.is_some() => kept.push(handoff.id),
            Some(_) => redelivered.push(handoff.id),
            None => {}
        }
    }
    draft.record(Event::RunAdopted(RunAdopted { by, redelivered, kept }));
    Reply::Recorded
}

impl RunAdopted {
    pub(super) fn apply(&self, run: &mut Run, at: Time) {
        let limits = run.workflow.limits.clone();
        for id in &self.kept {
            let Some(handoff) = run.handoff_mut(*id) else { continue };
            if let State::Accepted(turn) | State::Running(turn) = &mut handoff.state {
                let lease = turn.taken.as_ref().map_or(limits.lease, |taken| taken.lease);
                turn.due = at + lease;
                turn.finish_by = at + limits.finish_timeout;
            }
        }
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
