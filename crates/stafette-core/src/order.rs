//! The open orders of a run: the work that should be under way.

use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::handoff::Constraints;
use crate::run::message::Message;
use crate::run::permission::Permit;
use crate::{AgentName, Fields, HandoffId, Offer, Response, Time, TurnKey};

/// Work for an agent. The same key is the same work: doing it twice must be harmless.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnOrder {
    /// The idempotency key of the turn.
    pub key: TurnKey,
    /// The agent that does the work.
    pub agent: AgentName,
    /// The user's original request.
    pub request: String,
    /// The task as it was offered.
    pub offer: Offer,
    /// The special rules set by the coordinator that gives it out.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub constraints: Constraints,
    /// The id by which documents of the contract name the handoff: an answer with another one is
    /// refused.
    #[serde(default)]
    pub trace_id: String,
    /// The handoff that caused it.
    pub cause: Option<HandoffId>,
    /// The values that the agent can work with. In place of one that is too large together with the
    /// others stands `{"$cut": {"handoff", "key", "bytes", "head"}}`: its size, its beginning, and
    /// the handoff whose record has it whole. For values that are too many stands one
    /// `"$cut": {"keys", "handoffs"}`: how many are left out, and whose records have them.
    pub inputs: Fields,
    /// The names of the inputs that a person gave in answer to a question of this agent.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub replies: BTreeSet<String>,
    /// The answers that arrived since the last turn.
    pub answers: Vec<Response>,
    /// The permissions granted and denied so far in this turn.
    #[serde(default)]
    pub permits: Vec<Permit>,
    /// The messages that the agent is given with the turn; on another delivery of the turn also those
    /// that it was given during the earlier one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<Arc<Message>>,
    /// The parties that the agent may hand work to.
    pub routes: Vec<String>,
    /// The round of the current loop, from 1.
    pub round: u32,
    /// The deadline for the end of the turn.
    pub finish_by: Time,
    /// The number of deliveries, including this one.
    pub deliveries: u32,
}
