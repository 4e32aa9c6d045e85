//! `[council]`: the members of the council, and the rules for its decisions.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_model::as_text;
use thiserror::Error;

use crate::{AgentName, Party};

/// The reserved name of the council as a target. No agent can have it.
pub const NAME: &str = "council";

/// Returns the council as a party.
pub fn party() -> Party {
    Party::Agent(NAME.into())
}

/// The members of the council, and the rules for its decisions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct CouncilRules {
    /// The members, in the order in which they speak.
    pub members: Vec<AgentName>,
    /// The order of speaking: one after the other or in parallel.
    #[serde(default)]
    pub mode: Mode,
    /// The share that has to agree, such as `4 of 5`; by weight.
    #[serde(default)]
    pub quorum: Quorum,
    /// True if every member speaks once before any member sees the others' speeches.
    #[serde(default)]
    pub blind_first_vote: bool,
    /// The weight of each member's vote; 1 if absent.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<AgentName, u32>,
    /// The maximum number of turns per member.
    #[serde(default = "six")]
    pub turns_per_agent: u32,
    /// The action to take if all turns are used up without agreement.
    #[serde(default)]
    pub exhausted: Exhausted,
    /// The party that carries out the decision; without one, the council's answer is the final
    /// result.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Party>,
}

fn six() -> u32 {
    6
}

impl CouncilRules {
    /// Returns the weight of a member's vote.
    pub fn weight(&self, member: &AgentName) -> u32 {
        self.weights.get(member).copied().unwrap_or(1)
    }

    /// Returns the total weight of all members.
    pub fn total(&self) -> u32 {
        self.members.iter().fold(0, |sum, member| sum.saturating_add(self.weight(member)))
    }

    /// Returns the weight that has to agree.
    pub fn needed(&self) -> u32 {
        self.quorum.part(self.total())
    }
}

/// The order in which members speak.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Mode {
    /// One after the other; each sees the speeches before it.
    #[default]
    InTurn,
    /// All members in parallel, round by round.
    Parallel,
}

/// The action to take if all turns are used up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Exhausted {
    /// Ask a person for a decision.
    #[default]
    Escalate,
    /// Continue in the next generation.
    HandOver,
}

/// The share that has to agree: `4 of 5`.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("pattern" = "^[0-9]+ of [0-9]+$"))]
pub struct Quorum {
    votes: u32,
    of: u32,
}

/// The text is not a valid quorum.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a quorum: write it as `4 of 5`, from 1 to all")]
pub struct NotAQuorum {
    /// The text that could not be parsed.
    pub text: String,
}

impl Quorum {
    /// Returns this share of `total`, rounded up.
    pub fn part(self, total: u32) -> u32 {
        let part = (u64::from(total) * u64::from(self.votes)).div_ceil(u64::from(self.of));
        u32::try_from(part).unwrap_or(u32::MAX)
    }
}

impl Default for Quorum {
    fn default() -> Self {
        Quorum { votes: 4, of: 5 }
    }
}

impl FromStr for Quorum {
    type Err = NotAQuorum;
    fn from_str(text: &str) -> Result<Self, NotAQuorum> {
        let parse = || {
            let (votes, of) = text.split_once(" of ").or_else(|| text.split_once('/'))?;
            let (votes, of) = (votes.trim().parse().ok()?, of.trim().parse().ok()?);
            (votes > 0 && votes <= of).then_some(Quorum { votes, of })
        };
        parse().ok_or_else(|| NotAQuorum { text: text.to_owned() })
    }
}

impl fmt::Display for Quorum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.votes, self.of)
    }
}

as_text!(Quorum, NotAQuorum);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s4_03_a_quorum_is_a_part_of_all_voices_rounded_up() {
        let quorum = Quorum::default();
        assert_eq!((quorum.to_string().as_str(), quorum.part(5)), ("4 of 5", 4));
        assert_eq!((quorum.part(3), quorum.part(1), quorum.part(10)), (3, 1, 8));
        assert_eq!("2/3".parse::<Quorum>().map(|quorum| quorum.part(3)), Ok(2));
        for bad in ["", "4", "0 of 5", "6 of 5", "4 of 0", "most"] {
            assert!(bad.parse::<Quorum>().is_err(), "{bad}");
        }
    }
}
