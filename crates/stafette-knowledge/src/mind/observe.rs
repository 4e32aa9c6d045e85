//! Reads observations about handoffs from the events of a run.

use std::collections::BTreeMap;

use stafette_core::handoff::Way;
use stafette_core::{Event, HandoffId, Outcome, Recorded, RunId};

use super::{Observation, Path, StepEnd};
use crate::graph::NodeKey;

/// Returns the steps and rounds of one run, in the order in which they ended. Open handoffs count
/// for nothing yet.
pub fn observe(run: RunId, events: &[Recorded]) -> Vec<Observation> {
    let mut open: BTreeMap<HandoffId, Path> = BTreeMap::new();
    let mut rounds: BTreeMap<Path, (u32, HandoffId)> = BTreeMap::new();
    let mut found = Vec::new();
    for Recorded { event, .. } in events {
        match event {
            Event::HandoffAdmitted(admitted) => {
                let (from, to) = (&admitted.offer.from, &admitted.offer.to);
                let path = Path { from: from.to_string(), to: to.to_string() };
                let (count, last) = rounds.entry(path.clone()).or_insert((0, admitted.id));
                *count += 1;
                *last = admitted.id;
                open.insert(admitted.id, path);
            }
            Event::HandoffClosed(closed) => {
                let Some(path) = open.remove(&closed.handoff) else { continue };
                // A cancelled handoff says nothing about those who had it.
                if closed.way == Way::Cancelled {
                    continue;
                }
                let end = match closed.response.outcome {
                    Outcome::Resolved | Outcome::Partial => StepEnd::Done,
                    Outcome::Failed => StepEnd::Failed,
                    Outcome::Escalated => StepEnd::Escalated,
                };
                found.push(Observation::Step {
                    path,
                    end,
                    seconds: closed.response.took.0 as f64 / 1000.0,
                    dollars: closed.response.usage.money.dollars(),
                    evidence: NodeKey::handoff(run, closed.handoff),
                });
            }
            _ => {}
        }
    }
    found.extend(rounds.into_iter().map(|(path, (count, last))| Observation::Rounds {
        path,
        count,
        evidence: NodeKey::handoff(run, last),
    }));
    found
}
