//! A council member's vote: a single word, or an object with reasons.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::text::clip;

/// The maximum length of a stored reason, in characters.
const REASON: usize = 1000;

/// The maximum length of a stored decision, in characters.
pub(crate) const DECISION: usize = 300;

/// The maximum number of decisions per vote.
const DECISIONS: usize = 8;

/// A member's position on the topic.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Stance {
    /// Still working on a position.
    #[default]
    Building,
    /// In favour of the proposal.
    Agree,
    /// Against the proposal as it is.
    Disagree,
    /// Neither for nor against.
    Abstain,
}

impl Stance {
    /// All stances, in order.
    pub const ALL: [Stance; 4] =
        [Stance::Building, Stance::Agree, Stance::Disagree, Stance::Abstain];

    /// Returns the stance as it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Stance::Building => "building",
            Stance::Agree => "agree",
            Stance::Disagree => "disagree",
            Stance::Abstain => "abstain",
        }
    }
}

impl fmt::Display for Stance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The vote of a council member.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Vote {
    /// The member's stance on the topic.
    pub signal: Stance,
    /// The reason for the stance.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// Decisions that the member considers settled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub key_decisions: Vec<String>,
    /// The suggested next topic, once this one is settled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_topic: Option<String>,
}

impl Vote {
    /// Parses `agree`, or an object with `signal` and optional `reason`, `key_decisions` and
    /// `next_topic`.
    ///
    /// # Errors
    /// The problem with the payload, with its path.
    pub fn read(payload: &Value) -> Result<Vote, String> {
        let named = |word: &str| Stance::ALL.into_iter().find(|stance| stance.as_str() == word);
        let words = "building, agree, disagree or abstain";
        match payload {
            Value::String(word) => match named(word.trim()) {
                Some(signal) => Ok(Vote { signal, ..Vote::default() }),
                None => Err(format!("`{word}` is not one of {words}")),
            },
            Value::Object(fields) => {
                let word = fields.get("signal").and_then(Value::as_str);
                if word.and_then(named).is_none() {
                    return Err(format!("/signal: expected one of {words}"));
                }
                let vote: Vote =
                    serde_json::from_value(payload.clone()).map_err(|error| error.to_string())?;
                // Not shortened yet: half a secret would not be recognised any more.
                Ok(vote.without_blanks())
            }
            _ => Err(format!("expected {words}, or an object with `signal`")),
        }
    }

    /// Returns the vote cut to the stored limits.
    #[must_use]
    pub fn bounded(self) -> Vote {
        let vote = self.without_blanks();
        Vote {
            signal: vote.signal,
            reason: clip(&vote.reason, REASON),
            key_decisions: vote.key_decisions.iter().map(|text| clip(text, DECISION)).collect(),
            next_topic: vote.next_topic.map(|topic| clip(&topic, REASON)),
        }
    }

    fn without_blanks(mut self) -> Vote {
        self.key_decisions.retain(|decision| !decision.trim().is_empty());
        self.key_decisions.truncate(DECISIONS);
        self.next_topic = self.next_topic.filter(|topic| !topic.trim().is_empty());
        self
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn s4_03_a_signal_is_a_word_or_a_word_with_reasons() {
        assert_eq!(Vote::read(&json!("agree")).map(|vote| vote.signal), Ok(Stance::Agree));
        let vote = Vote::read(&json!({
            "signal": "disagree",
            "reason": "it loses data",
            "key_decisions": ["one table", " "],
            "next_topic": "",
            "other": 1,
        }));
        let vote = vote.expect("a vote");
        assert_eq!((vote.signal, vote.key_decisions.len()), (Stance::Disagree, 1));
        assert_eq!(vote.next_topic, None);
        for bad in [json!("yes"), json!({}), json!({"signal": 1}), json!(1), json!(null)] {
            assert!(Vote::read(&bad).is_err(), "{bad}");
        }
        assert!(Vote::read(&json!({"signal": "agree", "reason": []})).is_err());
    }

    #[test]
    fn what_is_said_at_length_is_kept_in_short() {
        let long = Vote { reason: "ä".repeat(5000), ..Vote::default() }.bounded();
        assert_eq!(long.reason.chars().count(), REASON);
        assert!(long.reason.ends_with('…'));
    }
}
