//! A handoff: one unit of work passed from one party to another.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::permission::Permit;
use crate::run::tell::TurnReport;
use crate::team::TeamAbout;
use crate::{Fields, HandoffId, Millis, Party, Time, TurnKey, TurnResult, Usage};
use stafette_model::offer;

pub use stafette_model::offer::{
    Foreign, Kind, MissingInput, Outcome, PriorAttempt, Priority, Reason, Response,
};

/// A proposed handoff, with a question that the kernel knows how to act on.
pub type Offer = offer::Offer<About>;

/// A question to a person, with the decision that its answer makes.
pub type Question = offer::Question<About>;

/// The decision that the answer to a question makes.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum About {
    /// Fills in the asker's missing inputs (if none are named, a single one called `answer`).
    #[default]
    Inputs,
    /// Decides how to handle a failed handoff: retry, skip or stop; any other text is taken as the
    /// result.
    Recovery(HandoffId),
    /// Decides how to handle a loop that ran too often or changed nothing: accept or stop; any
    /// other text is advice for another round.
    Loop(HandoffId),
    /// Confirms what was only read from plain output, and is kept in the handoff: allow or refuse.
    Unconfirmed(HandoffId),
    /// The same in older releases, which kept the result here.
    Confirm(HandoffId, Box<TurnResult>),
    /// Decides whether an agent may perform an action that it asks for during its turn.
    Permission(TurnKey, String),
    /// Decides whether the run may spend more: raise, an amount, or stop.
    Budget,
    /// A question asked by a coordinator.
    #[serde(untagged)]
    Team(TeamAbout),
}

/// A turn that was ordered and has not been completed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Turn {
    /// The time at which the turn was ordered.
    pub ordered_at: Time,
    /// The deadline for the next sign of life: acceptance first, then the lease.
    pub due: Time,
    /// The deadline for the end of the turn.
    pub finish_by: Time,
    /// The budget that is reserved for the turn.
    pub reserved: Usage,
    /// The number of deliveries, counted anew after each restart.
    pub deliveries: u32,
    /// The progress of the delivery.
    #[serde(default)]
    pub receipt: Receipt,
    /// The agent's latest description of its activity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The external agent that claimed the turn, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken: Option<Taken>,
}

/// An external agent's claim on a turn that no local agent carries out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Taken {
    /// The name of the external agent.
    pub by: String,
    /// The longest interval between two of its signs of life.
    pub lease: Millis,
}

/// The progress of a turn's delivery to the agent, the same on every transport.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Receipt {
    /// The turn is ordered.
    #[default]
    Queued,
    /// The agent's process has received it.
    Delivered,
    /// There is evidence that the agent has read it.
    Ingested,
    /// The agent has confirmed it.
    Acknowledged,
}

/// The state of a handoff.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Admitted; its next turn is ordered as soon as nothing prevents it.
    Pending {
        /// The earliest time for the next turn: cooldown or backoff.
        not_before: Time,
    },
    /// The agent's quota is used up; the next turn is ordered when it is restored.
    Parked {
        /// The time at which the quota should be restored.
        until: Time,
        /// The agent's own message; empty in states of older releases.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// Its turn is ordered, and no agent has accepted it yet.
    Ordered(Turn),
    /// The agent has accepted the turn.
    Accepted(Turn),
    /// The agent has shown that it works on the turn.
    Running(Turn),
    /// Its turn has ended, and the rest of the same step decides what follows. No step ends in this
    /// state.
    Undecided,
    /// Waits for other handoffs.
    Blocked {
        /// The handoffs that are still open.
        on: Vec<HandoffId>,
    },
    /// A person was asked.
    Asked {
        /// The time at which the default is taken or the handoff expires.
        until: Time,
    },
    /// The handoff has ended.
    Closed(Box<Closing>),
}

/// The end of a handoff.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Closing {
    /// The time of the end.
    pub at: Time,
    /// The answer that closed it.
    pub response: Response,
    /// The way in which it ended.
    pub way: Way,
    /// The handoffs that replace it; none in states of older releases.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub succeeded_by: Vec<HandoffId>,
}

/// The way in which a handoff ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The taker or a person answered.
    Answered,
    /// No answer arrived in time.
    Expired,
    /// The handoff was cancelled.
    Cancelled,
}

impl Way {
    /// Returns the name of the state that a handoff with this outcome ended in.
    pub fn word(self, outcome: Outcome) -> &'static str {
        match (self, outcome) {
            (Way::Expired, _) => "expired",
            (Way::Cancelled, _) => "cancelled",
            (Way::Answered, Outcome::Resolved) => "resolved",
            (Way::Answered, Outcome::Partial) => "partial",
            (Way::Answered, Outcome::Failed) => "failed",
            (Way::Answered, Outcome::Escalated) => "escalated",
        }
    }
}

impl State {
    /// Returns the name of the state as shown to people.
    pub fn word(&self) -> &'static str {
        match self {
            State::Pending { .. } | State::Ordered(_) => "pending",
            State::Parked { .. } => "parked",
            State::Accepted(_) => "accepted",
            State::Running(_) => "running",
            State::Undecided | State::Blocked { .. } => "blocked",
            State::Asked { .. } => "asked",
            State::Closed(closing) => closing.way.word(closing.response.outcome),
        }
    }

    /// Returns the earliest time for the next turn, if the handoff waits for it.
    pub fn not_before(&self) -> Option<Time> {
        match self {
            State::Pending { not_before: moment } | State::Parked { until: moment, .. } => {
                Some(*moment)
            }
            _ => None,
        }
    }

    /// Returns the open turn, if there is one.
    pub fn turn(&self) -> Option<&Turn> {
        match self {
            State::Ordered(turn) | State::Accepted(turn) | State::Running(turn) => Some(turn),
            _ => None,
        }
    }

    pub(crate) fn turn_mut(&mut self) -> Option<&mut Turn> {
        match self {
            State::Ordered(turn) | State::Accepted(turn) | State::Running(turn) => Some(turn),
            _ => None,
        }
    }

    /// True if the handoff has ended.
    pub fn is_closed(&self) -> bool {
        matches!(self, State::Closed(_))
    }
}

/// The path of a request: the parties that held it, and the rounds in each declared loop. Bounded
/// by the workflow: no party is in it twice, and there is one lap per loop.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Trail {
    /// The parties that have held the request, oldest first; rounds of a loop add no entries.
    pub held_by: Vec<Party>,
    /// The parties that rounds of a loop have left out, each with the place in `held_by` from which on
    /// others have held the request since.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub passed: BTreeMap<Party, usize>,
    /// The loop that the request is in, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<String>,
    /// The progress in each loop so far, by the loop's name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub laps: BTreeMap<String, Lap>,
}

impl Trail {
    /// Returns the lap of the current loop.
    pub fn lap(&self) -> Option<&Lap> {
        self.laps.get(self.within.as_ref()?)
    }

    pub(crate) fn lap_mut(&mut self) -> Option<&mut Lap> {
        self.laps.get_mut(self.within.as_ref()?)
    }
}

/// The progress of a request in a declared loop.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Lap {
    /// The party that entered the loop first: each return to it begins a round.
    pub head: Party,
    /// The number of the round, from 1.
    pub round: u32,
    /// True if the work was delegated to a member and will return as an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub away: bool,
    /// The number of times that each member has received the work.
    pub visits: BTreeMap<Party, u32>,
    /// A fingerprint of the work as each member last passed it on, to detect a round that changed
    /// nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub seen: BTreeMap<Party, String>,
}

impl Lap {
    /// Records that the work arrives at `party`.
    pub(crate) fn visit(&mut self, party: &Party) {
        *self.visits.entry(party.clone()).or_default() += 1;
        if *party == self.head {
            self.round += 1;
        }
    }
}

/// Special rules for a handoff that a coordinator created. No other handoff has any.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Constraints {
    /// The handoff starts fresh: it inherits neither inputs nor trail from its cause, and it does
    /// not count as a repetition.
    pub fresh: bool,
    /// Only the given taker can do it: no replacement is tried, and it counts against no limit.
    pub fixed_taker: bool,
    /// The taker stays responsible: the handoff waits for everything that the taker hands on.
    pub keeps: bool,
    /// If it cannot be done, the work continues without it.
    pub optional: bool,
}

/// A handoff with its complete state.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Handoff {
    /// The id of the handoff, unique in the run.
    pub id: HandoffId,
    /// The offer as it was admitted.
    pub offer: Offer,
    /// The handoff that the giver was working on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<HandoffId>,
    /// The handoff that waits for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub returns_to: Option<HandoffId>,
    /// The current state, from pending to closed.
    pub state: State,
    /// The number of the attempt, from 1.
    pub attempt: u32,
    /// The number of the latest turn, from 1; 0 before the first.
    pub turn: u32,
    /// The number of turns after which a person is asked.
    pub turn_limit: u32,
    /// The values that the taker can work with.
    pub inputs: Fields,
    /// The names of the inputs that a person gave in answer to a question of its own. An agent may give
    /// one the same name, and its word is no person's.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub replies: BTreeSet<String>,
    /// The answers that arrived since the last turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub answers: Vec<Response>,
    /// The permissions granted and denied in the open turn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub permits: Vec<Permit>,
    /// The agent's reports during the open turn.
    #[serde(default)]
    pub told: TurnReport,
    /// The reasons why frames in the output of the open turn could not be read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ignored: Vec<String>,
    /// The result of its last turn, which a person has to confirm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unconfirmed: Option<Box<TurnResult>>,
    /// Partial answers of earlier takers; their outputs still count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gathered: Vec<Response>,
    /// The name of the person who has answered it, if it is a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    /// The deadline for the answer, if the document sets one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deadline: Option<Time>,
    /// True if each use of its path starts the cooldown.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cools: bool,
    /// The special rules set by the coordinator that created it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub constraints: Constraints,
    /// The number of its own proposals that were refused.
    #[serde(default)]
    pub refusals: u32,
    /// True once its agent was reminded that its last turn ended without an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reminded: bool,
    /// The needs that were already requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assessed: Vec<String>,
    /// The path of the request so far.
    pub trail: Trail,
    /// The time at which it was admitted.
    pub admitted_at: Time,
    /// The resources used so far.
    #[serde(default)]
    pub usage: Usage,
}

/// Returns the handoffs of a run whose answers are its result: no other handoff continued them.
pub fn results(handoffs: &[Handoff]) -> impl Iterator<Item = &Handoff> {
    let is_agents = |handoff: &&Handoff| matches!(handoff.offer.to, Party::Agent(_));
    let continued: BTreeSet<HandoffId> = handoffs
        .iter()
        .filter(is_agents)
        .filter_map(|next| next.cause.filter(|cause| next.returns_to != Some(*cause)))
        .collect();
    handoffs.iter().filter(is_agents).filter(move |handoff| {
        handoff.returns_to.is_none() && handoff.turn > 0 && !continued.contains(&handoff.id)
    })
}

/// The input with a person's reply in their own words.
pub const ANSWER: &str = "answer";

impl Handoff {
    /// True if it holds a reply to a question of its own: it did not come along with the handoff.
    pub(crate) fn has_reply(&self) -> bool {
        self.inputs.contains_key(ANSWER) && !self.offer.outputs.contains_key(ANSWER)
    }

    /// Takes values among its inputs, and keeps in mind which of them are a person's word.
    pub(crate) fn receive(&mut self, values: &Fields, is_reply: impl Fn(&str) -> bool) {
        for (key, value) in values {
            self.inputs.insert(key.clone(), value.clone());
            match is_reply(key) {
                true => drop(self.replies.insert(key.clone())),
                false => drop(self.replies.remove(key)),
            }
        }
        self.replies.retain(|key| self.inputs.contains_key(key));
    }

    /// Returns the answer that closed it, with the values that earlier takers contributed. `None`
    /// while it is open.
    pub fn answer(&self) -> Option<Response> {
        let State::Closed(closing) = &self.state else { return None };
        let mut outputs = Fields::new();
        for response in self.gathered.iter().chain([&closing.response]) {
            outputs.extend(response.outputs.clone());
        }
        Some(Response { outputs, ..closing.response.clone() })
    }

    /// Returns the requested inputs that no taker has given yet.
    pub(crate) fn lacking(&self) -> Vec<MissingInput> {
        let is_given = |key: &str| self.gathered.iter().any(|it| it.outputs.contains_key(key));
        self.offer.missing.iter().filter(|input| !is_given(&input.key)).cloned().collect()
    }

    /// Returns the key of the open turn, or of the last one.
    pub fn key(&self, run: crate::RunId) -> TurnKey {
        TurnKey { run, handoff: self.id, attempt: self.attempt, turn: self.turn }
    }

    /// True if the handoff has not ended.
    pub fn is_open(&self) -> bool {
        !self.state.is_closed()
    }

    /// True if a step ended before the next action was decided; older releases had no separate
    /// state for that.
    pub(crate) fn is_undecided(&self) -> bool {
        match &self.state {
            State::Undecided => true,
            State::Blocked { on } => on.is_empty(),
            _ => false,
        }
    }
}
