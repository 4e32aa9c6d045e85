//! What the model is asked: one question, whichever dialect it came in.

use serde_json::Value;

/// A dialect that agents speak to their models.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Anthropic's Messages.
    Messages,
    /// `OpenAI`'s Responses.
    Responses,
    /// `OpenAI`'s chat completions, which many others speak.
    Completions,
}

/// What an agent asked its model.
#[derive(Clone, PartialEq, Debug)]
pub struct Ask {
    /// In which dialect.
    pub dialect: Dialect,
    /// Which model.
    pub model: String,
    /// Everything that the agent's maker told the model.
    pub system: String,
    /// What the user said last, without what the agent added to it.
    pub prompt: String,
    /// How many results of tools have come back since then.
    pub step: usize,
    /// Whether this is beside the point: a title or a summary, not the work.
    pub aside: bool,
    /// Whether the answer is wanted as a stream.
    pub streamed: bool,
    /// The agent's own name for the conversation, if it tells.
    pub session: Option<String>,
    /// The names of the tools on offer; of a group of them, `group/name`.
    pub tools: Vec<String>,
}

/// Words with which agents begin what they add to a conversation in the user's name.
const ADDED: [&str; 6] = [
    "<system-reminder>",
    "<environment_context>",
    "<user_instructions>",
    "<skills_instructions>",
    "<permissions instructions>",
    "# AGENTS.md instructions",
];

/// A message of any dialect, as far as it matters.
#[derive(Debug, Default)]
pub(super) struct Message {
    pub(super) role: String,
    pub(super) texts: Vec<String>,
    pub(super) results: usize,
}

/// What the conversation comes down to.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    pub(super) system: String,
    pub(super) prompt: String,
    pub(super) step: usize,
}

impl Conversation {
    /// Goes through the messages from the first to the last.
    pub(super) fn of(messages: impl IntoIterator<Item = Message>) -> Self {
        let mut conversation = Conversation::default();
        for message in messages {
            conversation.step += message.results;
            let said = message.texts.iter().filter(|text| !is_added(text));
            match message.role.as_str() {
                "system" | "developer" => {
                    conversation.system.push_str(&message.texts.join("\n"));
                    conversation.system.push('\n');
                }
                "user" if message.results == 0 && said.clone().next().is_some() => {
                    conversation.prompt = said.cloned().collect::<Vec<_>>().join("\n");
                    conversation.step = 0;
                }
                _ => {}
            }
        }
        conversation
    }
}

fn is_added(text: &str) -> bool {
    ADDED.iter().any(|added| text.trim_start().starts_with(added))
}

/// The texts in a `content` that is either a string or a list of parts.
pub(super) fn texts(content: &Value) -> Vec<String> {
    match content {
        Value::String(text) => vec![text.clone()],
        parts => list(parts).filter_map(|part| Some(part["text"].as_str()?.to_owned())).collect(),
    }
}

/// The items of an array; nothing when it is none.
pub(super) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A text, or an empty one.
pub(super) fn word(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
