//! Identifiers of runs, handoffs, turns and agents.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

/// The id of a run. A UUIDv7, so runs sort by their start time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(with = "String", extend("format" = "uuid"))]
pub struct RunId(pub Uuid);

impl RunId {
    /// Returns the short name that people type: the last eight digits, which are random in a
    /// UUIDv7.
    pub fn short(&self) -> String {
        let text = self.0.simple().to_string();
        text[text.len() - 8..].to_owned()
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for RunId {
    type Err = uuid::Error;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(RunId)
    }
}

/// The id of a handoff, numbered within its run: `h7`.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^h[0-9]+$"))]
pub struct HandoffId(pub u32);

impl HandoffId {
    /// Returns a stable UUID for the dialects that identify handoffs by one.
    #[must_use]
    pub fn uuid(self, run: RunId) -> Uuid {
        Uuid::new_v5(&run.0, self.to_string().as_bytes())
    }
}

impl fmt::Display for HandoffId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "h{}", self.0)
    }
}

/// The text is not a valid handoff id.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a handoff: they are named h1, h2, …")]
pub struct NotAHandoff {
    /// The text that could not be parsed.
    pub text: String,
}

impl FromStr for HandoffId {
    type Err = NotAHandoff;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.strip_prefix('h')
            .and_then(|digits| digits.parse().ok())
            .map(HandoffId)
            .ok_or_else(|| NotAHandoff { text: text.to_owned() })
    }
}

as_text!(HandoffId, NotAHandoff);

/// The id of a message to an agent, numbered within its run: `m3`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^m[0-9]+$"))]
pub struct MessageId(pub u32);

impl fmt::Display for MessageId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "m{}", self.0)
    }
}

/// The text is not a valid message id.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a message: they are named m1, m2, …")]
pub struct NotAMessage {
    /// The text that could not be parsed.
    pub text: String,
}

impl FromStr for MessageId {
    type Err = NotAMessage;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let number = text.strip_prefix('m').and_then(|digits| digits.parse().ok());
        number.map(MessageId).ok_or_else(|| NotAMessage { text: text.to_owned() })
    }
}

as_text!(MessageId, NotAMessage);

/// The permanent id of one piece of work: the idempotency key that agents receive.
///
/// A redelivery after a crash has the same key; a retry is the next `attempt`; an agent that
/// was blocked and continues is in the next `turn` of the same attempt.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct TurnKey {
    /// The run that it belongs to.
    pub run: RunId,
    /// The handoff that is worked on.
    pub handoff: HandoffId,
    /// The number of the attempt, from 1; a later attempt fences the earlier ones.
    pub attempt: u32,
    /// The number of the turn within the handoff, from 1.
    pub turn: u32,
}

impl fmt::Display for TurnKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}.{}", self.run, self.handoff, self.attempt, self.turn)
    }
}

/// The text is not a valid turn key.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a turn: they look like RUN/h7/1.2")]
pub struct NotATurn {
    /// The text that could not be parsed.
    pub text: String,
}

impl FromStr for TurnKey {
    type Err = NotATurn;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let mut parts = text.split('/');
            let run = parts.next()?.parse().ok()?;
            let handoff = parts.next()?.parse().ok()?;
            let (attempt, turn) = parts.next()?.split_once('.')?;
            let key =
                TurnKey { run, handoff, attempt: attempt.parse().ok()?, turn: turn.parse().ok()? };
            parts.next().is_none().then_some(key)
        };
        parse().ok_or_else(|| NotATurn { text: text.to_owned() })
    }
}

as_text!(TurnKey, NotATurn);

/// The name of an agent of a workflow.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String")]
pub struct AgentName(Arc<str>);

/// The text is not a valid agent name.
#[derive(Debug, Error, PartialEq, Eq)]
#[error(
    "`{text}` cannot name an agent: use 1 to 64 letters, digits, `-`, `_` or `.`, \
     and not the reserved words `human`, `orchestrator` and `council`"
)]
pub struct BadAgentName {
    pub text: String,
}

impl AgentName {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for AgentName {
    type Err = BadAgentName;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        let reserved = matches!(text, "human" | "orchestrator" | "council");
        if text.is_empty()
            || text.len() > 64
            || text.starts_with('.')
            || reserved
            || !text.chars().all(plain)
        {
            return Err(BadAgentName { text: text.to_owned() });
        }
        Ok(AgentName(text.into()))
    }
}

as_text!(AgentName, BadAgentName);

impl std::borrow::Borrow<str> for AgentName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for AgentName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// A party that can give or take work. Any name parses; whether the workflow has it is checked by a
/// rule (`Unknown target`), not by the parser.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(from = "String", into = "String")]
#[schemars(with = "String")]
pub enum Party {
    /// One of the workflow's agents, or another name: a coordinator's, or an unknown one.
    Agent(Arc<str>),
    /// Stafette itself, which arbitrates the run.
    Orchestrator,
    /// A person, reached through the inbox.
    Human,
}

impl Party {
    /// Returns the party's name as text.
    pub fn as_str(&self) -> &str {
        match self {
            Party::Agent(name) => name,
            Party::Orchestrator => "orchestrator",
            Party::Human => "human",
        }
    }
}

impl From<&str> for Party {
    fn from(text: &str) -> Self {
        match text {
            "human" => Party::Human,
            "orchestrator" => Party::Orchestrator,
            name => Party::Agent(name.into()),
        }
    }
}

impl From<String> for Party {
    fn from(text: String) -> Self {
        text.as_str().into()
    }
}

impl From<&AgentName> for Party {
    fn from(name: &AgentName) -> Self {
        Party::Agent(name.0.clone())
    }
}

impl From<Party> for String {
    fn from(party: Party) -> Self {
        party.as_str().to_owned()
    }
}

impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_key_reads_back_as_written() {
        let key = TurnKey { run: RunId(Uuid::nil()), handoff: HandoffId(7), attempt: 2, turn: 1 };
        assert_eq!(key.to_string(), "00000000-0000-0000-0000-000000000000/h7/2.1");
        assert_eq!(key.to_string().parse(), Ok(key));
        assert!("h7/2.1".parse::<TurnKey>().is_err());
    }

    #[test]
    fn reserved_words_are_parties_and_never_agents() {
        assert_eq!(Party::from("human"), Party::Human);
        assert_eq!(Party::from("orchestrator"), Party::Orchestrator);
        assert!("council".parse::<AgentName>().is_err());
        assert!("human".parse::<AgentName>().is_err());
        assert!("../x".parse::<AgentName>().is_err());
        assert!("..".parse::<AgentName>().is_err());
        assert!("Alex".parse::<AgentName>().is_ok());
    }
}
