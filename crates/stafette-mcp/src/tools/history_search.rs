//! `history_search`: find messages that contain words.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_knowledge::history::Hit;

use super::{CallContext, Effect, Right, ToolError, Whose};

/// Maximum number of hits.
const MOST: usize = 20;

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Words that a message must all contain; the last one may be a prefix.
    words: String,
    /// Only messages of this stage, such as `discuss`.
    #[serde(default)]
    module: Option<String>,
    #[serde(flatten)]
    whose: Whose,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Hits, the best first.
    hits: Vec<Hit>,
}

impl super::Tool for Tool {
    const NAME: &'static str = "history_search";
    const TITLE: &'static str = "Search the history";
    const ABOUT: &'static str = "Finds messages of all threads that have these words. Use it to \
        learn whether something was discussed before. Returns at most twenty hits with the words \
        around each and the thread that `history_read` takes.\n\
        Example: {\"words\": \"four-day week\", \"module\": \"discuss\"}";
    const EFFECT: Effect = Effect::Looks;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let (stages, actor, _) = context.knower(&arguments.whose).await?;
        let module = arguments.module.as_deref();
        Ok(Output { hits: stages.search(&actor, &arguments.words, module, MOST).await? })
    }
}
