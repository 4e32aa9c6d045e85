//! `odei.neo4j.decisions.create.v1`: record the decision that a person approved.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_core::Fields;

use super::{CallContext, Effect, Right, ToolError, Whose};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Reason for this option over the others, in a few sentences.
    reasoning: String,
    #[serde(flatten)]
    whose: Whose,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Fields that a handoff to execute must carry: `decision_id`, `roi`, `goals`, `provenance`.
    evidence: Fields,
}

impl super::Tool for Tool {
    const NAME: &'static str = "odei.neo4j.decisions.create.v1";
    const TITLE: &'static str = "Record the decision";
    const ABOUT: &'static str = "Records the decision that a person approved, with your reasoning. \
        Use it after a person has chosen one of the options that you handed to `human` as \
        `candidates`; there is no decision before that. Returns the evidence that the handoff to \
        execute requires.\n\
        Example: {\"reasoning\": \"It serves both goals, and pays back within the quarter.\"}";
    const EFFECT: Effect = Effect::Settles;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let (stages, actor, handle) = context.knower(&arguments.whose).await?;
        let order = context.order(&handle).await?;
        let given = |key: &str| order.inputs.get(key).filter(|value| !value.is_null()).cloned();
        let Some(Value::String(id)) = given("decision_id") else {
            return Err(ToolError::new("not_approved", "No person has approved a decision yet")
                .fix("Hand the options to `human` with `candidates` in `outputs` first."));
        };
        stages.give_reasons(&actor, &id, arguments.reasoning).await?;
        let keys = ["decision_id", "roi", "goals", "provenance"];
        let evidence = keys.iter().filter_map(|key| Some(((*key).to_owned(), given(key)?)));
        Ok(Output { evidence: evidence.collect() })
    }
}
