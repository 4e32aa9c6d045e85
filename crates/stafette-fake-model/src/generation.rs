//! Google's `generateContent`, as the Gemini API has it.

use serde_json::{Value, json};

use super::ask::{Ask, Conversation, Dialect, Message, list, texts, word};
use super::script::{Act, Reply, Usage};
use super::toolbox;
use super::wire::{self, HttpAnswer, call, pieces};

/// Reads a request in this dialect; `target` is `NAME:METHOD`, the last part of its path.
pub(super) fn ask(body: &Value, target: &str) -> Ask {
    let parts = |content: &Value| texts(&content["parts"]);
    let first =
        Message { role: "system".into(), texts: parts(&body["systemInstruction"]), results: 0 };
    let messages = list(&body["contents"]).map(|content| Message {
        role: word(&content["role"]),
        texts: parts(content),
        results: list(&content["parts"]).filter(|p| p["functionResponse"].is_object()).count(),
    });
    let Conversation { system, prompt, step } =
        Conversation::of([first].into_iter().chain(messages));
    let (model, method) = target.split_once(':').unwrap_or((target, ""));
    let declared: Vec<&Value> =
        list(&body["tools"]).flat_map(|tool| list(&tool["functionDeclarations"])).collect();
    let schema = |tool: &&Value| {
        let places = ["parametersJsonSchema", "parameters"];
        places.iter().find_map(|place| tool.get(place)).cloned().unwrap_or_default()
    };
    Ask {
        dialect: Dialect::Generation,
        model: model.to_owned(),
        system,
        prompt,
        step,
        aside: declared.is_empty(),
        streamed: method == "streamGenerateContent",
        session: None,
        tools: declared.iter().map(|tool| word(&tool["name"])).collect(),
        schemas: declared.iter().map(schema).collect(),
    }
}

/// Writes the answer in this dialect.
pub(super) fn answer(ask: &Ask, reply: &Reply) -> HttpAnswer {
    let parts: Vec<Value> = match &reply.act {
        Act::Limited { resets_at } => return limited(*resets_at),
        Act::Broken { status } => {
            let (kind, message) = match *status {
                401 => ("UNAUTHENTICATED", "API key not valid. Please pass a valid API key."),
                529 => ("UNAVAILABLE", "The model is overloaded. Please try again later."),
                _ => ("INTERNAL", "The script says that this fails."),
            };
            return failure(*status, kind, message);
        }
        Act::Stall => {
            let first = event(&chunk(ask, &json!({ "text": "" }), None));
            return HttpAnswer::Stream { events: vec![first], open: true };
        }
        Act::Text(text) => pieces(text).into_iter().map(|text| json!({ "text": text })).collect(),
        act => match call(act, ask, |act| toolbox::own(act, ask)) {
            Some(call) => {
                vec![json!({ "functionCall": { "name": call.name, "args": call.input } })]
            }
            None => return failure(400, "INVALID_ARGUMENT", "There is no tool for this act."),
        },
    };
    if !ask.streamed {
        let part = match &reply.act {
            Act::Text(text) => json!({ "text": text }),
            _ => parts.into_iter().next().unwrap_or_default(),
        };
        return HttpAnswer::ok(chunk(ask, &part, Some(reply.usage)));
    }
    let last = parts.len().saturating_sub(1);
    let events = parts.iter().enumerate().map(|(place, part)| {
        let end = (place == last).then_some(reply.usage);
        event(&chunk(ask, part, end))
    });
    HttpAnswer::Stream { events: events.collect(), open: false }
}

fn chunk(ask: &Ask, part: &Value, end: Option<Usage>) -> Value {
    let mut candidate = json!({ "content": { "role": "model", "parts": [part] }, "index": 0 });
    let mut data = json!({ "modelVersion": ask.model });
    if let Some(usage) = end {
        let input = usage.input + usage.cached;
        candidate["finishReason"] = "STOP".into();
        data["usageMetadata"] = json!({
            "promptTokenCount": input,
            "cachedContentTokenCount": usage.cached,
            "candidatesTokenCount": usage.output,
            "totalTokenCount": input + usage.output,
        });
    }
    data["candidates"] = json!([candidate]);
    data
}

fn event(data: &Value) -> String {
    format!("data: {data}\n\n")
}

/// Writes an error in this dialect.
pub(super) fn failure(status: u16, kind: &str, message: &str) -> HttpAnswer {
    let error = json!({ "code": status, "message": message, "status": kind });
    HttpAnswer::error(status, json!({ "error": error }))
}

/// Writes that a quota is used up. Without the time to wait, programs take it for a limit on requests
/// and try again for minutes.
fn limited(resets_at: u64) -> HttpAnswer {
    let wait = format!("{}s", wire::seconds_until(resets_at));
    let error = json!({
        "code": 429,
        "message": format!("You exceeded your current quota. Please retry in {wait}."),
        "status": "RESOURCE_EXHAUSTED",
        "details": [{ "@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": wait }],
    });
    HttpAnswer::error(429, json!({ "error": error }))
}
