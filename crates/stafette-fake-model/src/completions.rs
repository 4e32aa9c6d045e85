//! OpenAI's chat completions, which many other programs use.

use serde_json::{Value, json};

use super::ask::{Ask, Conversation, Dialect, Message, list, texts, word};
use super::script::{Act, Reply, Usage};
use super::toolbox;
use super::wire::{self, HttpAnswer, call, pieces};

/// Reads a request. Some agents of this dialect have no tools, so only the script can tell what is an
/// aside.
pub(super) fn ask(body: &Value) -> Ask {
    let messages = list(&body["messages"]).map(|message| Message {
        role: word(&message["role"]),
        texts: texts(&message["content"]),
        results: usize::from(message["role"] == "tool"),
    });
    let Conversation { system, prompt, step } = Conversation::of(messages);
    let functions: Vec<&Value> = list(&body["tools"]).map(|tool| &tool["function"]).collect();
    Ask {
        dialect: Dialect::Completions,
        model: word(&body["model"]),
        system,
        prompt,
        step,
        aside: false,
        streamed: body["stream"] == true,
        session: None,
        tools: functions.iter().map(|function| word(&function["name"])).collect(),
        schemas: functions.iter().map(|function| function["parameters"].clone()).collect(),
    }
}

/// Writes the answer. Agents of this dialect name their tools as they like.
pub(super) fn answer(ask: &Ask, reply: &Reply, number: usize) -> HttpAnswer {
    let (delta, reason) = match &reply.act {
        Act::Limited { resets_at } => return limited(*resets_at),
        Act::Broken { status } => {
            let (kind, message) = wire::openai_error(*status);
            return failure(*status, kind, message);
        }
        Act::Stall => {
            let first = chunk(ask, number, &json!({ "role": "assistant", "content": "" }), None);
            return HttpAnswer::Stream { events: vec![first], open: true };
        }
        Act::Text(text) => (json!({ "content": text }), "stop"),
        act => match call(act, ask, |act| toolbox::own(act, ask)) {
            Some(call) => {
                let function = json!({ "name": call.name, "arguments": call.input.to_string() });
                let id = format!("call_{number:024}");
                let calls =
                    json!([{ "index": 0, "id": id, "type": "function", "function": function }]);
                (json!({ "tool_calls": calls }), "tool_calls")
            }
            None => {
                let message = "There is no tool for this act.";
                return failure(400, "invalid_request_error", message);
            }
        },
    };
    if !ask.streamed {
        let mut message = delta;
        message["role"] = "assistant".into();
        return HttpAnswer::ok(json!({
            "id": format!("chatcmpl-{number:024}"),
            "object": "chat.completion",
            "created": 0,
            "model": ask.model,
            "choices": [{ "index": 0, "message": message, "finish_reason": reason }],
            "usage": counted(reply.usage),
        }));
    }
    let mut events = vec![chunk(ask, number, &json!({ "role": "assistant", "content": "" }), None)];
    match &reply.act {
        Act::Text(text) => {
            let spoken = pieces(text).into_iter().map(|piece| json!({ "content": piece }));
            events.extend(spoken.map(|delta| chunk(ask, number, &delta, None)));
        }
        _ => events.push(chunk(ask, number, &delta, None)),
    }
    events.push(chunk(ask, number, &json!({}), Some((reason, reply.usage))));
    events.push("data: [DONE]\n\n".to_owned());
    HttpAnswer::Stream { events, open: false }
}

fn chunk(ask: &Ask, number: usize, delta: &Value, end: Option<(&str, Usage)>) -> String {
    let reason = end.map(|(reason, _)| reason);
    let data = json!({
        "id": format!("chatcmpl-{number:024}"),
        "object": "chat.completion.chunk",
        "created": 0,
        "model": ask.model,
        "choices": [{ "index": 0, "delta": delta, "finish_reason": reason }],
        "usage": end.map(|(_, usage)| counted(usage)),
    });
    format!("data: {data}\n\n")
}

fn counted(usage: Usage) -> Value {
    let input = usage.input + usage.cached;
    json!({
        "prompt_tokens": input,
        "prompt_tokens_details": { "cached_tokens": usage.cached },
        "completion_tokens": usage.output,
        "total_tokens": input + usage.output,
    })
}

/// Writes an error in this dialect.
pub(super) fn failure(status: u16, kind: &str, message: &str) -> HttpAnswer {
    let error = json!({ "type": kind, "message": message, "param": null, "code": null });
    HttpAnswer::error(status, json!({ "error": error }))
}

/// Writes that a quota is used up, as providers do that know when it resets: without that, programs take
/// it for a limit on requests and try again for minutes.
fn limited(resets_at: u64) -> HttpAnswer {
    let seconds = wire::seconds_until(resets_at);
    let message = format!("You exceeded your current quota. It will reset in {seconds}s.");
    let kind = "insufficient_quota";
    let error = json!({ "type": kind, "message": message, "param": null, "code": kind });
    HttpAnswer::error(429, json!({ "error": error }))
}
