//! The tools, one per file. A new tool is a file here and a line in [`all`].

mod accept;
mod answer;
mod assess;
mod briefing;
mod calendar_read;
mod complete;
mod decisions_create;
mod decisions_pending;
mod escalate;
mod goals_list;
mod handoff;
mod history_append;
mod history_read;
mod history_search;
mod inbox;
mod insights_create;
mod insights_list;
mod lock;
mod message;
mod propose_change;
mod reject;
mod report;
mod start_run;
mod status;
mod tasks_report;
mod unlock;
mod vote;
mod wait;

use std::sync::OnceLock;

use futures_util::future::BoxFuture;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use stafette_core::Fields;
use stafette_engine::{Caller, Right};

use crate::ToolError;
use crate::call_context::CallContext;
use crate::turn_handle::{TurnHandle, Whose, short};

pub(crate) use briefing::Briefing;

/// Maximum wait in one call, in seconds.
const LONGEST_WAIT: u64 = 600;

/// An action that an agent can call.
trait Tool: 'static {
    /// Name that clients call it by.
    const NAME: &'static str;
    /// Title for people.
    const TITLE: &'static str;
    /// Description for the model, which knows nothing else about it: when to use it, what it
    /// returns, and an example.
    const ABOUT: &'static str;
    /// Side effects of a call.
    const EFFECT: Effect;
    /// The right that a caller needs.
    const RIGHT: Right;
    /// Type of the arguments.
    type Arguments: DeserializeOwned + JsonSchema + Send;
    /// Type of the result.
    type Output: Serialize + JsonSchema;

    /// Carries out one call.
    fn call(
        context: CallContext,
        arguments: Self::Arguments,
    ) -> impl Future<Output = Result<Self::Output, ToolError>> + Send;
}

/// Side effects of a tool.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Effect {
    /// Reads, and changes nothing.
    Looks,
    /// Changes something; repeating the call changes nothing more.
    Settles,
    /// Changes something with each call.
    Adds,
}

type Call = fn(CallContext, Fields) -> BoxFuture<'static, Result<Value, ToolError>>;

/// A tool as it is listed and called.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    pub(crate) about: &'static str,
    pub(crate) effect: Effect,
    right: Right,
    pub(crate) input: Fields,
    pub(crate) output: Fields,
    call: Call,
}

/// All tools, in the order in which an agent needs them.
pub(crate) fn all() -> &'static [Entry] {
    static ALL: OnceLock<Vec<Entry>> = OnceLock::new();
    ALL.get_or_init(|| {
        vec![
            entry::<briefing::Tool>(),
            entry::<assess::Tool>(),
            entry::<report::Tool>(),
            entry::<message::Tool>(),
            entry::<lock::Tool>(),
            entry::<unlock::Tool>(),
            entry::<propose_change::Tool>(),
            entry::<handoff::Tool>(),
            entry::<escalate::Tool>(),
            entry::<vote::Tool>(),
            entry::<complete::Tool>(),
            entry::<reject::Tool>(),
            entry::<wait::Tool>(),
            entry::<accept::Tool>(),
            entry::<status::Tool>(),
            entry::<start_run::Tool>(),
            entry::<inbox::Tool>(),
            entry::<answer::Tool>(),
            entry::<history_append::Tool>(),
            entry::<history_read::Tool>(),
            entry::<history_search::Tool>(),
            entry::<goals_list::Tool>(),
            entry::<insights_list::Tool>(),
            entry::<insights_create::Tool>(),
            entry::<decisions_create::Tool>(),
            entry::<decisions_pending::Tool>(),
            entry::<tasks_report::Tool>(),
            entry::<calendar_read::Tool>(),
        ]
    })
}

/// Returns the right that each tool needs.
pub fn rights() -> impl Iterator<Item = (&'static str, Right)> {
    all().iter().map(|tool| (tool.name, tool.right))
}

impl Entry {
    /// Returns true for tools of the knowledge store, which not every project has.
    pub(crate) fn wants_knowledge(&self) -> bool {
        self.name.starts_with("history_") || self.name.starts_with("odei.")
    }

    /// Returns true if a caller may call it.
    pub(crate) fn is_for(&self, caller: &Caller) -> bool {
        caller.may(self.right).is_ok()
    }

    /// Calls the tool, if the caller has the right. A missing or unknown argument is an error that
    /// names the field.
    pub(crate) async fn call(
        &self,
        context: CallContext,
        arguments: Fields,
    ) -> Result<Value, ToolError> {
        context.may(self.right)?;
        let known = self.input.get("properties").and_then(Value::as_object);
        let odd = arguments.keys().find(|name| known.is_none_or(|k| !k.contains_key(*name)));
        if let Some(odd) = odd {
            let names: Vec<&str> = known.into_iter().flatten().map(|(name, _)| &**name).collect();
            let what = format!("`{}` has no argument `{odd}`", self.name);
            return Err(ToolError::new("mistaken", what)
                .fix(format!("Its arguments are: {}.", names.join(", "))));
        }
        (self.call)(context, arguments).await
    }
}

fn entry<T: Tool>() -> Entry {
    let mut input = schema::<T::Arguments>(SchemaSettings::draft2020_12());
    input.insert("additionalProperties".into(), false.into());
    input.entry("properties").or_insert_with(|| Value::Object(Fields::new()));
    Entry {
        name: T::NAME,
        title: T::TITLE,
        about: T::ABOUT,
        effect: T::EFFECT,
        right: T::RIGHT,
        input,
        output: schema::<T::Output>(SchemaSettings::draft2020_12().for_serialize()),
        call: |context, arguments| Box::pin(call::<T>(context, arguments)),
    }
}

async fn call<T: Tool>(context: CallContext, arguments: Fields) -> Result<Value, ToolError> {
    let arguments = serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        ToolError::new("mistaken", format!("The arguments of `{}` do not fit: {error}", T::NAME))
            .fix("Correct them and call again.")
    })?;
    let answer = T::call(context, arguments).await?;
    serde_json::to_value(answer).map_err(|error| {
        ToolError::new("not_json", format!("The answer is not JSON: {error}"))
            .fix("Call again; a person finds more in the daemon's log.")
    })
}

/// Returns the JSON Schema of a type, without references: not every client follows them.
fn schema<T: JsonSchema>(settings: SchemaSettings) -> Fields {
    let settings = settings
        .with(|settings| settings.inline_subschemas = true)
        .with_transform(RecursiveTransform(portable));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.remove("title");
    schema.remove("description");
    std::mem::take(schema.ensure_object())
}

/// Simplifies a schema for all clients: an optional field need not also be null, and number formats
/// of Rust are removed.
fn portable(schema: &mut Schema) {
    if let Some(Value::Array(kinds)) = schema.get("type")
        && let [kind, null] = kinds.as_slice()
        && null == "null"
    {
        let kind = kind.clone();
        schema.insert("type".into(), kind);
    }
    if let Some(Value::Array(choices)) = schema.get("anyOf")
        && let [Value::Object(something), null] = choices.as_slice()
        && *null == json!({ "type": "null" })
    {
        let something = something.clone();
        schema.remove("anyOf");
        for (key, value) in something {
            schema.ensure_object().entry(key).or_insert(value);
        }
    }
    if schema.get("default").is_some_and(Value::is_null) {
        schema.remove("default");
    }
    if schema.get("type").is_some_and(|kind| kind == "integer" || kind == "number") {
        schema.remove("format");
    }
}

#[cfg(test)]
mod tests;
