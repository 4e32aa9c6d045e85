//! What the world should be doing: the orders that a run has out.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::permission::Permit;
use crate::{AgentName, Fields, HandoffId, Offer, Response, Time, TurnKey};

/// Work for an agent. The same key is the same work: doing it twice must be harmless.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnOrder {
    /// The idempotency key.
    pub key: TurnKey,
    /// Who is to do it.
    pub agent: AgentName,
    /// What the user asked for in the first place.
    pub request: String,
    /// What is asked now.
    pub offer: Offer,
    /// The handoff that caused it.
    pub cause: Option<HandoffId>,
    /// What there is to work with.
    pub inputs: Fields,
    /// What came back since the last turn.
    pub answers: Vec<Response>,
    /// What it was allowed and refused so far in this turn.
    #[serde(default)]
    pub permits: Vec<Permit>,
    /// Who the agent may hand on to.
    pub routes: Vec<String>,
    /// The round of the loop that it is in, from 1.
    pub round: u32,
    /// When it must be done.
    pub finish_by: Time,
    /// How often it has been delivered, this time included.
    pub deliveries: u32,
}
