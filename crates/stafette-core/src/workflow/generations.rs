//! `[generations]`: the rules for handing over to the next generation.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Millis, Usd};

/// The rules for handing over to the next generation.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct GenerationRules {
    /// The path of the context file, relative to the project.
    pub context: String,
    /// The pause before the next generation.
    pub pause: Millis,
    /// The maximum number of generations that follow each other automatically.
    pub max_runs: u32,
    /// The maximum total cost of those generations, in US dollars.
    pub max_cost: Usd,
    /// The number of generations after which a person is asked whether to continue; 0 means never.
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
