//! The caller of an operation, and the work that it is for.

use stafette_core::{AgentName, HandoffId, Party, RunId, Time};
use stafette_knowledge::graph::Provenance;
use stafette_knowledge::rights::{self, Access, Data};

use crate::StageError;

/// The caller of an operation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actor {
    /// The person or agent that asks.
    pub party: Party,
    /// The run of the caller; `None` outside of a run.
    pub run: Option<RunId>,
    /// The handoff of that run that the caller works on.
    pub handoff: Option<HandoffId>,
}

impl Actor {
    /// Makes an actor for a person.
    #[must_use]
    pub fn person() -> Self {
        Actor { party: Party::Human, run: None, handoff: None }
    }

    /// Makes an actor for an agent that works on a handoff.
    #[must_use]
    pub fn agent(agent: &AgentName, run: RunId, handoff: HandoffId) -> Self {
        Actor { party: Party::from(agent), run: Some(run), handoff: Some(handoff) }
    }

    /// Makes an actor for a party in a run.
    #[must_use]
    pub(crate) fn of(party: Party, run: RunId, handoff: HandoffId) -> Self {
        Actor { party, run: Some(run), handoff: Some(handoff) }
    }

    /// Checks that the actor has this right; a refusal is logged.
    pub fn may(&self, access: Access, data: Data) -> Result<(), StageError> {
        Ok(rights::enforce(&self.party, access, data)?)
    }

    /// Checks that a person asks: for what agents never may do, whatever the table of rights says.
    pub(crate) fn is_person(&self, what: &'static str) -> Result<(), StageError> {
        match self.party {
            Party::Human => Ok(()),
            _ => {
                tracing::warn!("{} may not {what}: that is for a person", self.party);
                Err(StageError::NeedsPerson { what })
            }
        }
    }

    /// Returns the origin for what the actor writes.
    pub(crate) fn provenance(&self, at: Time) -> Provenance {
        Provenance { by: self.party.clone(), at, run: self.run, handoff: self.handoff }
    }
}
