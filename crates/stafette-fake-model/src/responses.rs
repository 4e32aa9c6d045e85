//! OpenAI's Responses API.

use serde_json::{Value, json};

use super::ask::{Ask, Conversation, Dialect, Message, list, texts, word};
use super::script::{Act, Reply, Usage};
use super::wire::{self, HttpAnswer, call, event, pieces};

/// Reads a request in this dialect.
pub(super) fn ask(body: &Value, session: Option<String>) -> Ask {
    let first = Message { role: "system".into(), texts: texts(&body["instructions"]), results: 0 };
    let messages: Vec<Message> = match &body["input"] {
        Value::String(text) => {
            vec![Message { role: "user".into(), texts: vec![text.clone()], results: 0 }]
        }
        items => list(items).map(message).collect(),
    };
    let Conversation { system, prompt, step } =
        Conversation::of([first].into_iter().chain(messages));
    let tools: Vec<String> = list(&body["tools"]).flat_map(names).collect();
    Ask {
        dialect: Dialect::Responses,
        model: word(&body["model"]),
        system,
        prompt,
        step,
        // Requests for titles offer a tool that no title needs.
        aside: tools.iter().all(|tool| tool == "apply_patch"),
        streamed: body["stream"] == true,
        session,
        tools,
        schemas: Vec::new(),
    }
}

fn message(item: &Value) -> Message {
    let is_result = item["type"].as_str().is_some_and(|kind| kind.ends_with("_output"));
    Message {
        role: word(&item["role"]),
        texts: texts(&item["content"]),
        results: usize::from(is_result),
    }
}

fn names(tool: &Value) -> Vec<String> {
    let name = tool["name"].as_str().or(tool["type"].as_str()).unwrap_or_default();
    match &tool["tools"] {
        Value::Array(tools) => {
            tools.iter().map(|tool| format!("{name}/{}", word(&tool["name"]))).collect()
        }
        _ => vec![name.to_owned()],
    }
}

/// Returns the name and input of the agent's own tool for an act.
fn own(act: &Act) -> Option<(&'static str, Value)> {
    match act {
        Act::Shell(command) => Some(("exec_command", json!({ "cmd": command }))),
        Act::Write { path, text } => {
            let script = format!("printf %s {} > {}", quoted(text), quoted(path));
            Some(("exec_command", json!({ "cmd": script })))
        }
        _ => None,
    }
}

/// Quotes a word for a shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// Writes the answer in this dialect.
pub(super) fn answer(ask: &Ask, reply: &Reply, number: usize) -> HttpAnswer {
    let id = format!("resp_{number:024}");
    let item = match &reply.act {
        Act::Limited { resets_at } => return limited(*resets_at),
        Act::Broken { status } => {
            let (kind, message) = wire::openai_error(*status);
            return failure(*status, kind, message);
        }
        Act::Stall => return HttpAnswer::Stream { events: vec![created(&id)], open: true },
        Act::Text(text) => spoken(number, text),
        act => match call(act, ask, own) {
            Some(call) => {
                let mut item = json!({
                    "type": "function_call",
                    "id": format!("fc_{number:024}"),
                    "call_id": format!("call_{number:024}"),
                    "name": call.name,
                    "arguments": call.input.to_string(),
                    "status": "completed",
                });
                if let Some(group) = call.group {
                    item["namespace"] = group.into();
                }
                item
            }
            None => return failure(500, "server_error", "The script has an act without words."),
        },
    };
    let done = json!({
        "id": id,
        "object": "response",
        "status": "completed",
        "model": ask.model,
        "output": [item],
        "usage": counted(reply.usage),
    });
    if !ask.streamed {
        return HttpAnswer::ok(done);
    }
    let mut events = vec![created(&id)];
    if let Act::Text(text) = &reply.act {
        let place = json!({ "item_id": item["id"], "output_index": 0, "content_index": 0 });
        events.push(tagged(
            "response.output_item.added",
            json!({ "output_index": 0, "item": empty(&item) }),
        ));
        for piece in pieces(text) {
            let mut delta = place.clone();
            delta["delta"] = piece.into();
            events.push(tagged("response.output_text.delta", delta));
        }
    }
    events.push(tagged("response.output_item.done", json!({ "output_index": 0, "item": item })));
    events.push(tagged("response.completed", json!({ "response": done })));
    HttpAnswer::Stream { events, open: false }
}

fn spoken(number: usize, text: &str) -> Value {
    json!({
        "type": "message",
        "id": format!("msg_{number:024}"),
        "role": "assistant",
        "status": "completed",
        "content": [{ "type": "output_text", "text": text, "annotations": [] }],
    })
}

fn empty(item: &Value) -> Value {
    let mut empty = item.clone();
    empty["content"] = json!([]);
    empty["status"] = "in_progress".into();
    empty
}

fn created(id: &str) -> String {
    tagged("response.created", json!({ "response": { "id": id, "status": "in_progress" } }))
}

fn tagged(name: &str, mut data: Value) -> String {
    data["type"] = name.into();
    event(name, &data)
}

fn counted(usage: Usage) -> Value {
    let input = usage.input + usage.cached;
    json!({
        "input_tokens": input,
        "input_tokens_details": { "cached_tokens": usage.cached },
        "output_tokens": usage.output,
        "output_tokens_details": { "reasoning_tokens": 0 },
        "total_tokens": input + usage.output,
    })
}

/// Writes an error in this dialect.
pub(super) fn failure(status: u16, kind: &str, message: &str) -> HttpAnswer {
    HttpAnswer::error(status, json!({ "error": { "type": kind, "message": message } }))
}

fn limited(resets_at: u64) -> HttpAnswer {
    let error = json!({
        "type": "usage_limit_reached",
        "message": "The usage limit has been reached",
        "plan_type": "plus",
        "resets_at": resets_at,
    });
    let headers = vec![
        ("x-codex-primary-used-percent", "100".to_owned()),
        ("x-codex-primary-window-minutes", "300".to_owned()),
        ("x-codex-primary-reset-at", resets_at.to_string()),
    ];
    HttpAnswer::Whole { status: 429, headers, body: json!({ "error": error }) }
}
