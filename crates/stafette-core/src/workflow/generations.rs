//! `[generations]`: how the team hands over to its next self.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Millis, Usd};

/// How the team hands over to its next self.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct GenerationRules {
    /// Where the picture of the team is kept, relative to the project.
    pub context: String,
    /// The wait before the next generation.
    pub pause: Millis,
    /// How many generations may follow each other without a person.
    pub max_runs: u32,
    /// What they may cost together.
    pub max_cost: Usd,
    /// After how many generations a person is asked whether it should go on; 0 is never.
    pub check_in_every: u32,
}

impl Default for GenerationRules {
    fn default() -> Self {
        GenerationRules {
            context: "data/state/orchestrator-context.json".into(),
            pause: Millis::seconds(2),
            max_runs: 10,
            max_cost: Usd(5_000_000),
            check_in_every: 0,
        }
    }
}
