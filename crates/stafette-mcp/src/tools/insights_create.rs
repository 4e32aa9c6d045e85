//! `odei.neo4j.insights.create.v1`: record a pattern that was found.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_knowledge::graph::NodeKey;

use super::{CallContext, Effect, Right, ToolError, Whose, short};

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Id of the insight, unique within this turn.
    id: String,
    /// The pattern, as a sentence.
    pattern: String,
    /// Confidence in the pattern, from 0 to 1.
    confidence: f64,
    /// Evidence for the pattern, as a sentence.
    evidence: String,
    /// Topic, in a few words.
    #[serde(default)]
    topic: String,
    /// Nodes that are the evidence, such as `task:…` or `decision:…`.
    #[serde(default)]
    learned_from: Vec<String>,
    #[serde(flatten)]
    whose: Whose,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Key of the insight's node.
    insight: NodeKey,
}

impl super::Tool for Tool {
    const NAME: &'static str = "odei.neo4j.insights.create.v1";
    const TITLE: &'static str = "Keep an insight";
    const ABOUT: &'static str = "Keeps a pattern that you found, with what shows it. Use it for \
        what the built-in detectors cannot see. It changes nothing by itself: people read it, and \
        the other stages find it. Returns the insight's key.\n\
        Example: {\"id\": \"mondays\", \"pattern\": \"Reviews on Mondays take twice as long\", \
        \"confidence\": 0.7, \"evidence\": \"Eight of nine Mondays\", \"topic\": \"reviews\"}";
    const EFFECT: Effect = Effect::Settles;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let (stages, actor, handle) = context.knower(&arguments.whose).await?;
        let parse = |text: &String| text.parse::<NodeKey>();
        let from = arguments.learned_from.iter().map(parse).collect::<Result<_, _>>();
        let from = from.map_err(|error| {
            ToolError::new("mistaken", error.to_string()).fix("Name nodes as other tools do.")
        })?;
        // A turn that is delivered again creates the same insight, not a second one.
        let turn = short(handle.turn).replace('/', ".");
        let id = format!("{}.{turn}.{}", handle.turn.run, arguments.id);
        let said = (arguments.pattern, arguments.evidence, arguments.topic);
        let kept = stages.create_insight(&actor, id, said, arguments.confidence, from).await?;
        Ok(Output { insight: kept })
    }
}
