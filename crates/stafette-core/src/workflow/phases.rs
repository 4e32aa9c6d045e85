//! `[[phases]]`: the phases of a task, one after the other, each with the summary of the one
//! before.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::AgentName;
use crate::wire::phase::Phase;

/// One phase of every run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct PhaseStep {
    /// The kind of phase: `research`, `write`, `validate` or `parallel`.
    pub phase: Phase,
    /// The agents of the phase: one, or several in parallel for `parallel`.
    pub agents: Vec<AgentName>,
    /// The instructions; `{request}` stands for the user's request. If empty, the request itself.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// The constraints on the result, besides those of the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constraints: Vec<String>,
    /// The kind of phase that each agent of `parallel` works on, which determines the shape of its
    /// answer.
    #[serde(default = "validate")]
    pub part: Phase,
    /// The number of agents of `parallel` that have to succeed: `all`, `any`, `majority` or, say,
    /// `2 of 3`.
    #[serde(default)]
    pub rule: Rule,
    /// The earlier phase to repeat if this one does not pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub back_to: Option<Phase>,
    /// The maximum number of times that this phase may be entered.
    #[serde(default = "three")]
    pub rounds: u32,
}

fn validate() -> Phase {
    Phase::Validate
}

fn three() -> u32 {
    3
}

impl PhaseStep {
    /// Returns the kind of phase that its agents are asked for.
    pub fn asked(&self) -> Phase {
        match self.phase {
            Phase::Parallel => self.part,
            phase => phase,
        }
    }
}

/// The number of parts that have to succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Rule {
    /// All parts have to succeed.
    #[default]
    All,
    /// At least one part has to succeed.
    Any,
    /// More than half of the parts have to succeed.
    Majority,
    /// A fixed number of parts has to succeed.
    AtLeast {
        /// The number of parts that have to succeed.
        needed: u32,
        /// The total number of parts.
        of: u32,
    },
}

impl Rule {
    /// Returns the number of parts that have to succeed out of `total`.
    pub fn needed(self, total: usize) -> usize {
        match self {
            Rule::All => total,
            Rule::Any => 1,
            Rule::Majority => total / 2 + 1,
            Rule::AtLeast { needed, .. } => needed as usize,
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Rule::All => f.write_str("all"),
            Rule::Any => f.write_str("any"),
            Rule::Majority => f.write_str("majority"),
            Rule::AtLeast { needed, of } => write!(f, "{needed} of {of}"),
        }
    }
}

impl FromStr for Rule {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let number = |text: &str| text.trim().parse::<u32>().ok();
        let counted =
            |(needed, of)| Some(Rule::AtLeast { needed: number(needed)?, of: number(of)? });
        match text {
            "all" => Ok(Rule::All),
            "any" => Ok(Rule::Any),
            "majority" => Ok(Rule::Majority),
            _ => text.split_once(" of ").and_then(counted).ok_or_else(|| {
                format!("`{text}` is not a rule: write all, any, majority or, say, 2 of 3")
            }),
        }
    }
}

impl Serialize for Rule {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for Rule {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Rule".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "How many parts have to come to a good end.",
            "type": "string",
            "pattern": "^(all|any|majority|[0-9]+ of [0-9]+)$",
        })
    }

    fn inline_schema() -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_05_rules_say_how_many_are_enough() {
        for (text, of_two, of_five) in
            [("all", 2, 5), ("any", 1, 1), ("majority", 2, 3), ("2 of 5", 2, 2)]
        {
            let rule: Rule = text.parse().expect("a rule");
            assert_eq!((rule.needed(2), rule.needed(5)), (of_two, of_five), "{text}");
            assert_eq!(rule.to_string(), text);
        }
        for text in ["", "most", "of", "x of 3", "-1 of 3"] {
            assert!(text.parse::<Rule>().is_err(), "{text}");
        }
    }
}
