//! A request to the model, independent of its dialect.

use serde_json::Value;

/// A dialect that agents speak to their models.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// The Messages API of Anthropic.
    Messages,
    /// The Responses API of `OpenAI`.
    Responses,
    /// `OpenAI`'s chat completions, which many other programs use.
    Completions,
    /// The `generateContent` of the Gemini API.
    Generation,
}

/// A request of an agent to its model.
#[derive(Clone, PartialEq, Debug)]
pub struct Ask {
    /// The dialect of the request.
    pub dialect: Dialect,
    /// The name of the requested model.
    pub model: String,
    /// The system prompt of the agent.
    pub system: String,
    /// The last message of the user, without what the agent added to it.
    pub prompt: String,
    /// The number of tool results since then.
    pub step: usize,
    /// True if this is a side request: a title or a summary, not the work.
    pub aside: bool,
    /// True if a streamed answer is wanted.
    pub streamed: bool,
    /// The agent's own name for the conversation, if it sends one.
    pub session: Option<String>,
    /// The names of the offered tools; `group/name` for a tool in a group.
    pub tools: Vec<String>,
    /// The JSON schemas of their inputs, in the same order; empty where every agent of the dialect
    /// has the same tools.
    pub schemas: Vec<Value>,
}

/// Texts with which agents begin what they add to a conversation in the user's name.
const ADDED: [&str; 9] = [
    "<system-reminder>",
    "<environment_context>",
    "<session_context>",
    "<user_instructions>",
    "<skills_instructions>",
    "<permissions instructions>",
    "# AGENTS.md instructions",
    // What a hook says that sends them back to work.
    "Stop hook feedback:",
    "<hook_prompt",
];

/// A message of any dialect, reduced to what matters.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) role: String,
    pub(super) texts: Vec<String>,
    pub(super) results: usize,
}

/// A conversation, reduced to what matters.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    pub(super) system: String,
    pub(super) prompt: String,
    pub(super) step: usize,
}

impl Conversation {
    /// Reads the messages from the first to the last.
    pub(super) fn of(messages: impl IntoIterator<Item = Message>) -> Self {
        let mut conversation = Conversation::default();
        for message in messages {
            conversation.step += message.results;
            let said = message.texts.iter().map(|text| own_words(text)).filter(|t| !is_added(t));
            match message.role.as_str() {
                "system" | "developer" => {
                    conversation.system.push_str(&message.texts.join("\n"));
                    conversation.system.push('\n');
                }
                "user" if message.results == 0 && said.clone().next().is_some() => {
                    conversation.prompt = said.collect::<Vec<_>>().join("\n");
                    conversation.step = 0;
                }
                _ => {}
            }
        }
        conversation
    }
}

/// Returns a text without the block that goose puts in front of it.
fn own_words(text: &str) -> &str {
    let block = text.strip_prefix("<info-msg>").and_then(|rest| rest.split_once("</info-msg>"));
    block.map_or(text, |(_, own)| own.trim_start())
}

fn is_added(text: &str) -> bool {
    text.is_empty() || ADDED.iter().any(|added| text.trim_start().starts_with(added))
}

/// Returns the texts in a `content` that is either a string or a list of parts.
pub(super) fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        parts => list(parts).filter_map(|part| Some(part["text"].as_str()?.to_owned())).collect(),
    }
}

/// Returns the items of an array; none if it is not an array.
pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// Returns a string, or an empty one.
pub(super) fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
