//! Parts that the dialects share.

use serde_json::Value;

use super::ask::Ask;
use super::script::Act;

/// The number of characters in a piece of streamed text: few, so that words and frames are split.
const PIECE: usize = 7;

/// An answer in one dialect.
#[derive(Debug)]
pub(super) enum Answer {
    /// A complete document with its status and headers.
    Whole { status: u16, headers: Vec<(&'static str, String)>, body: Value },
    /// Events, one after another; if `open`, the stream does not end.
    Stream { events: Vec<String>, open: bool },
}

impl Answer {
    pub(super) fn ok(body: Value) -> Self {
        Answer::Whole { status: 200, headers: Vec::new(), body }
    }

    pub(super) fn error(status: u16, body: Value) -> Self {
        Answer::Whole { status, headers: Vec::new(), body }
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
pub(super) fn call(
    act: &Act,
    ask: &Ask,
    own: impl Fn(&Act) -> Option<(&'static str, Value)>,
) -> Option<Call> {
    if let Some((name, input)) = own(act) {
        return Some(Call { group: None, name: name.to_owned(), input });
    }
    match act {
        Act::Call { name, input } => {
            Some(Call { group: None, name: name.clone(), input: input.clone() })
        }
        Act::Mcp { server, tool, input } => Some(mcp(ask, server, tool, input.clone())),
        _ => None,
    }
}

/// Finds the tool as it is offered: some agents put the tools of a server into a group.
fn mcp(ask: &Ask, server: &str, tool: &str, input: Value) -> Call {
    let plain = format!("mcp__{server}__{tool}");
    let grouped = ask.tools.iter().find_map(|name| {
        let (group, name) = name.split_once('/')?;
        (name == tool && group.contains(server)).then(|| (group.to_owned(), name.to_owned()))
    });
    match grouped {
        Some((group, name)) => Call { group: Some(group), name, input },
        // Tools that have to be searched for first can still be called.
        None if ask.tools.iter().any(|name| name == "tool_search") => {
            Call { group: Some(format!("mcp__{server}")), name: tool.to_owned(), input }
        }
        None => Call { group: None, name: plain, input },
    }
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
