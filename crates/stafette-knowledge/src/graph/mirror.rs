//! Mirrors handoffs into the graph for analysis, from the events of a run.

use std::collections::BTreeMap;

use stafette_core::{Event, HandoffId, Offer, Party, Recorded, RunId};

use super::{Batch, Entity, Handoff, NodeKey, Provenance, Relation, Write};

/// The longest mirrored summary, in characters.
const SUMMARY: usize = 500;

/// Turns the events of a run, in order from the first, into batches. Their keys contain the event
/// numbers, so that a restarted mirror writes nothing twice.
#[derive(Clone, Debug)]
pub struct Mirror {
    run: RunId,
    open: BTreeMap<HandoffId, Handoff>,
}

impl Mirror {
    /// Makes a mirror of one run that has seen no event yet.
    #[must_use]
    pub fn new(run: RunId) -> Self {
        Mirror { run, open: BTreeMap::new() }
    }

    /// Returns the batch for an event; most events have none.
    pub fn see(&mut self, recorded: &Recorded) -> Option<Batch> {
        match &recorded.event {
            Event::HandoffAdmitted(event) => {
                let node = self.node(event.id, &event.offer, event.state.word());
                self.open.insert(event.id, node.clone());
                let by = event.offer.from.clone();
                Some(self.batch(recorded, event.id, by, node, event.cause))
            }
            Event::RunForked(event) => {
                // Handoffs that were open in the earlier run continue in this one.
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
                node.state = event.way.word(event.response.outcome).to_owned();
                node.seconds = Some(event.response.took.0 as f64 / 1000.0);
                let usage = event.response.usage;
                node.dollars = (usage.unknown.money == 0).then(|| usage.money.dollars());
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
