//! Parts that the dialects share.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use super::ask::Ask;
use super::script::Act;

/// The number of characters in a piece of streamed text: few, so that words and frames are split.
const PIECE: usize = 7;

/// An answer in one dialect.
#[derive(Debug)]
pub(super) enum HttpAnswer {
    /// A complete document with its status and headers.
    Whole { status: u16, headers: Vec<(&'static str, String)>, body: Value },
    /// Events, one after another; if `open`, the stream does not end.
    Stream { events: Vec<String>, open: bool },
}

impl HttpAnswer {
    pub(super) fn ok(body: Value) -> Self {
        HttpAnswer::Whole { status: 200, headers: Vec::new(), body }
    }

    pub(super) fn error(status: u16, body: Value) -> Self {
        HttpAnswer::Whole { status, headers: Vec::new(), body }
    }
}

/// A tool call, independent of the dialect.
#[derive(Debug)]
pub(super) struct Call {
    pub(super) group: Option<String>,
    pub(super) name: String,
    pub(super) input: Value,
}

/// Translates an act into a tool call of a dialect; `None` if it is no tool call.
pub(super) fn call<N: Into<String>>(
    act: &Act,
    ask: &Ask,
    own: impl Fn(&Act) -> Option<(N, Value)>,
) -> Option<Call> {
    if let Some((name, input)) = own(act) {
        return Some(Call { group: None, name: name.into(), input });
    }
    match act {
        Act::Call { name, input } => {
            Some(Call { group: None, name: name.clone(), input: input.clone() })
        }
        Act::Mcp { server, tool, input } => Some(mcp(ask, server, tool, input.clone())),
        _ => None,
    }
}

/// Finds the tool as it is offered: some agents put the tools of a server into a group, others put
/// the name of the server in front, in one way or another.
fn mcp(ask: &Ask, server: &str, tool: &str, input: Value) -> Call {
    let offered = offered(ask, server, tool);
    let grouped = ask.tools.iter().find_map(|name| {
        let (group, name) = name.split_once('/')?;
        (name == tool && group.contains(server)).then(|| (group.to_owned(), name.to_owned()))
    });
    match grouped {
        Some((group, name)) => Call { group: Some(group), name, input },
        // Some agents hide the tools behind a search, and have another tool that calls them.
        None if offered.is_none() && ask.tools.iter().any(|name| name == "tool_call") => {
            let input = json!({ "name": format!("mcp__{server}__{tool}"), "arguments": input });
            Call { group: None, name: "tool_call".to_owned(), input }
        }
        // Tools that have to be searched for first can still be called.
        None if ask.tools.iter().any(|name| name == "tool_search") => {
            Call { group: Some(format!("mcp__{server}")), name: tool.to_owned(), input }
        }
        None => {
            let plain = || format!("mcp__{server}__{tool}");
            Call { group: None, name: offered.cloned().unwrap_or_else(plain), input }
        }
    }
}

/// Returns the name under which the tool of a server is offered outside of groups.
pub(super) fn offered<'a>(ask: &'a Ask, server: &str, tool: &str) -> Option<&'a String> {
    let ends = [format!("{server}__{tool}"), format!("{server}_{tool}")];
    ask.tools.iter().find(|name| ends.iter().any(|end| name.ends_with(end)))
}

/// Returns the type and the message with which OpenAI's servers fail.
pub(super) fn openai_error(status: u16) -> (&'static str, &'static str) {
    match status {
        401 => ("invalid_request_error", "Incorrect API key provided."),
        529 => ("server_error", "The server is overloaded. Please try again later."),
        _ => ("server_error", "The script says that this fails."),
    }
}

/// Returns the number of seconds until a moment, in seconds since 1970.
pub(super) fn seconds_until(moment: u64) -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    moment.saturating_sub(now)
}

/// Splits a text into the pieces in which it is streamed.
pub(super) fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(PIECE).map(|piece| piece.iter().collect()).collect()
}

/// Formats a server-sent event.
pub(super) fn event(name: &str, data: &Value) -> String {
    format!("event: {name}\ndata: {data}\n\n")
}
