//! Who asks, and for which piece of work.

use stafette_core::{AgentName, HandoffId, Party, RunId, Time};
use stafette_knowledge::graph::Provenance;
use stafette_knowledge::rights::{self, Access, Data};

use crate::Fault;

/// Somebody who asks for something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actor {
    /// Who it is.
    pub party: Party,
    /// In which run.
    pub run: Option<RunId>,
    /// For which handoff of it.
    pub handoff: Option<HandoffId>,
}

impl Actor {
    /// A person.
    #[must_use]
    pub fn person() -> Self {
        Actor { party: Party::Human, run: None, handoff: None }
    }

    /// An agent at work.
    #[must_use]
    pub fn agent(agent: &AgentName, run: RunId, handoff: HandoffId) -> Self {
        Actor { party: Party::from(agent), run: Some(run), handoff: Some(handoff) }
    }

    /// Somebody in a run.
    #[must_use]
    pub(crate) fn of(party: Party, run: RunId, handoff: HandoffId) -> Self {
        Actor { party, run: Some(run), handoff: Some(handoff) }
    }

    /// Whether they may do this; a refusal is in the log.
    ///
    /// # Errors
    /// The refusal.
    pub fn may(&self, access: Access, data: Data) -> Result<(), Fault> {
        Ok(rights::enforce(&self.party, access, data)?)
    }

    /// Whether a person asks: for what agents never may, whatever the table says.
    pub(crate) fn is_person(&self, what: &'static str) -> Result<(), Fault> {
        match self.party {
            Party::Human => Ok(()),
            _ => {
                tracing::warn!("{} may not {what}: that is for a person", self.party);
                Err(Fault::NeedsPerson { what })
            }
        }
    }

    /// Where what they write comes from.
    pub(crate) fn provenance(&self, at: Time) -> Provenance {
        Provenance { by: self.party.clone(), at, run: self.run, handoff: self.handoff }
    }
}
