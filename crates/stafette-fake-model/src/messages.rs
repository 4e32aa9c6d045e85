//! Anthropic's Messages API.

use serde_json::{Value, json};

use super::ask::{Ask, Conversation, Dialect, Message, list, texts, word};
use super::script::{Act, Reply, Usage};
use super::wire::{HttpAnswer, call, event, pieces};

/// Reads a request in this dialect.
pub(super) fn ask(body: &Value, session: Option<String>) -> Ask {
    let first = Message { role: "system".into(), texts: texts(&body["system"]), results: 0 };
    let messages = list(&body["messages"]).map(|message| Message {
        role: word(&message["role"]),
        texts: texts(&message["content"]),
        results: list(&message["content"]).filter(|part| part["type"] == "tool_result").count(),
    });
    let Conversation { system, prompt, step } =
        Conversation::of([first].into_iter().chain(messages));
    let tools: Vec<String> = list(&body["tools"]).map(|tool| word(&tool["name"])).collect();
    Ask {
        dialect: Dialect::Messages,
        model: word(&body["model"]),
        system,
        prompt,
        step,
        aside: tools.is_empty(),
        streamed: body["stream"] == true,
        session,
        tools,
        schemas: Vec::new(),
    }
}

/// Returns the name and input of the agent's own tool for an act.
fn own(act: &Act) -> Option<(&'static str, Value)> {
    match act {
        Act::Shell(command) => {
            Some(("Bash", json!({ "command": command, "description": "As the script says" })))
        }
        Act::Write { path, text } => Some(("Write", json!({ "file_path": path, "content": text }))),
        _ => None,
    }
}

/// Writes the answer in this dialect.
pub(super) fn answer(ask: &Ask, reply: &Reply, number: usize) -> HttpAnswer {
    let usage = counted(reply.usage);
    let content = match &reply.act {
        Act::Limited { resets_at } => return limited(*resets_at),
        Act::Broken { status } => {
            let (kind, message) = match *status {
                401 => ("authentication_error", "invalid x-api-key"),
                529 => ("overloaded_error", "Overloaded"),
                _ => ("api_error", "The script says that this fails."),
            };
            return failure(*status, kind, message);
        }
        Act::Stall => {
            return HttpAnswer::Stream { events: vec![start(ask, number, &usage)], open: true };
        }
        Act::Text(text) => json!({ "type": "text", "text": text }),
        act => match call(act, ask, own) {
            Some(call) => json!({
                "type": "tool_use",
                "id": format!("toolu_{number:024}"),
                "name": call.name,
                "input": call.input,
            }),
            None => return failure(500, "api_error", "The script has an act without words."),
        },
    };
    let stop = if content["type"] == "tool_use" { "tool_use" } else { "end_turn" };
    if !ask.streamed {
        let mut message = message(ask, number, &usage);
        message["content"] = json!([content]);
        message["stop_reason"] = stop.into();
        return HttpAnswer::ok(message);
    }
    let mut events = vec![start(ask, number, &usage)];
    events.extend(block(&content));
    events.push(tagged(
        "message_delta",
        json!({
            "delta": { "stop_reason": stop, "stop_sequence": null },
            "usage": { "output_tokens": reply.usage.output },
        }),
    ));
    events.push(tagged("message_stop", json!({})));
    HttpAnswer::Stream { events, open: false }
}

fn message(ask: &Ask, number: usize, usage: &Value) -> Value {
    json!({
        "id": format!("msg_{number:024}"),
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": [],
        "stop_reason": null,
        "stop_sequence": null,
        "usage": usage,
    })
}

fn start(ask: &Ask, number: usize, usage: &Value) -> String {
    let mut message = message(ask, number, usage);
    message["usage"]["output_tokens"] = 1.into();
    tagged("message_start", json!({ "message": message }))
}

/// Splits the one block of an answer into events.
fn block(content: &Value) -> Vec<String> {
    let (empty, kind, field, text) = if content["type"] == "text" {
        let empty = json!({ "type": "text", "text": "" });
        (empty, "text_delta", "text", word(&content["text"]))
    } else {
        let mut empty = content.clone();
        empty["input"] = json!({});
        (empty, "input_json_delta", "partial_json", content["input"].to_string())
    };
    let mut events =
        vec![tagged("content_block_start", json!({ "index": 0, "content_block": empty }))];
    for piece in pieces(&text) {
        let mut delta = json!({ "type": kind });
        delta[field] = piece.into();
        events.push(tagged("content_block_delta", json!({ "index": 0, "delta": delta })));
    }
    events.push(tagged("content_block_stop", json!({ "index": 0 })));
    events
}

fn tagged(name: &str, mut data: Value) -> String {
    data["type"] = name.into();
    event(name, &data)
}

fn counted(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.output,
    })
}

/// Writes an error in this dialect.
pub(super) fn failure(status: u16, kind: &str, message: &str) -> HttpAnswer {
    let error = json!({ "type": kind, "message": message });
    HttpAnswer::error(status, json!({ "type": "error", "error": error }))
}

fn limited(resets_at: u64) -> HttpAnswer {
    let error = json!({
        "type": "rate_limit_error",
        "message": "This request would exceed your account's rate limit. Please try again later.",
    });
    let headers = vec![
        ("x-should-retry", "false".to_owned()),
        ("anthropic-ratelimit-unified-status", "rejected".to_owned()),
        ("anthropic-ratelimit-unified-reset", resets_at.to_string()),
        ("anthropic-ratelimit-unified-representative-claim", "five_hour".to_owned()),
        ("anthropic-ratelimit-unified-5h-status", "rejected".to_owned()),
        ("anthropic-ratelimit-unified-5h-reset", resets_at.to_string()),
        ("anthropic-ratelimit-unified-5h-utilization", "1".to_owned()),
    ];
    HttpAnswer::Whole { status: 429, headers, body: json!({ "type": "error", "error": error }) }
}
