//! Handoffs in the graph, for analysis: what a run's events say about each of them.

use std::collections::BTreeMap;

use stafette_core::handoff::Way;
use stafette_core::{Event, HandoffId, Offer, Outcome, Party, Recorded, RunId};

use super::{Batch, Entity, Handoff, NodeKey, Provenance, Relation, Write};

/// The longest summary that is mirrored, in characters.
const SUMMARY: usize = 500;

/// Makes batches of a run's events, in their order from the first. The keys are made of the events'
/// numbers, so that a mirror that starts again writes nothing twice.
#[derive(Clone, Debug)]
pub struct Mirror {
    run: RunId,
    open: BTreeMap<HandoffId, Handoff>,
}

impl Mirror {
    /// A mirror of one run that has seen nothing yet.
    #[must_use]
    pub fn new(run: RunId) -> Self {
        Mirror { run, open: BTreeMap::new() }
    }

    /// What the graph should hear of an event; most say nothing.
    pub fn see(&mut self, recorded: &Recorded) -> Option<Batch> {
        match &recorded.event {
            Event::HandoffAdmitted(event) => {
                let node = self.node(event.id, &event.offer, event.state.word());
                self.open.insert(event.id, node.clone());
                let by = event.offer.from.clone();
                Some(self.batch(recorded, event.id, by, node, event.cause))
            }
            Event::RunForked(event) => {
                // What was open in the run that it comes from goes on in this one.
                for handoff in event.state.open() {
                    let node = self.node(handoff.id, &handoff.offer, handoff.state.word());
                    self.open.insert(handoff.id, node);
                }
                None
            }
            Event::HandoffRefused(event) => {
                let node = self.node(event.id, &event.offer, "refused");
                let by = event.offer.from.clone();
                Some(self.batch(recorded, event.id, by, node, event.cause))
            }
            Event::HandoffClosed(event) => {
                let mut node = self.open.remove(&event.handoff)?;
                node.state = match (event.way, event.response.outcome) {
                    (Way::Expired, _) => "expired",
                    (Way::Cancelled, _) => "cancelled",
                    (_, Outcome::Resolved) => "resolved",
                    (_, Outcome::Partial) => "partial",
                    (_, Outcome::Failed) => "failed",
                    (_, Outcome::Escalated) => "escalated",
                }
                .to_owned();
                node.seconds = Some(event.response.took.0 as f64 / 1000.0);
                node.dollars = Some(event.response.usage.money.dollars());
                let by = event.response.by.clone();
                Some(self.batch(recorded, event.handoff, by, node, None))
            }
            _ => None,
        }
    }

    fn node(&self, id: HandoffId, offer: &Offer, state: &str) -> Handoff {
        Handoff {
            id: NodeKey::handoff(self.run, id).id,
            from: offer.from.to_string(),
            to: offer.to.to_string(),
            reason: offer.reason.as_str().to_owned(),
            state: state.to_owned(),
            summary: offer.summary.chars().take(SUMMARY).collect(),
            seconds: None,
            dollars: None,
        }
    }

    fn batch(
        &self,
        recorded: &Recorded,
        id: HandoffId,
        by: Party,
        node: Handoff,
        cause: Option<HandoffId>,
    ) -> Batch {
        let mut writes = vec![Write::Put(Entity::Handoff(node))];
        writes.extend(cause.map(|cause| Write::Link {
            from: NodeKey::handoff(self.run, cause),
            relation: Relation::FollowedBy,
            to: NodeKey::handoff(self.run, id),
        }));
        let (run, handoff) = (Some(self.run), Some(id));
        Batch {
            key: format!("event:{}/{}", self.run, recorded.seq),
            provenance: Provenance { by, at: recorded.at, run, handoff },
            writes,
        }
    }
}
