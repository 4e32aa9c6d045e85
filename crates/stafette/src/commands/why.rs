//! `why`: who handed what to whom, on which evidence, under which rule.

use serde_json::Value;
use stafette_core::HandoffId;

use super::{Context, daemon, run_path, segment};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::{Tone, plain, short};

pub(crate) async fn run(context: &Context, arguments: cli::Why) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let what = arguments.what.as_deref();
    let path = match what.and_then(|what| what.rsplit_once(':')) {
        Some((run, handoff)) => run_path(Some(run), &format!("/why/{}", segment(handoff))),
        None => match what {
            Some(text) if text.parse::<HandoffId>().is_ok() => {
                run_path(None, &format!("/why/{}", segment(text)))
            }
            run => run_path(run, "/why"),
        },
    };
    let explained: Value = client.get(&path).await?;
    if context.output.json {
        context.output.data(&explained);
        return Ok(Exit::Ok);
    }
    let output = context.output;
    let text = |value: &Value, path: &str| {
        plain(value.pointer(path).and_then(Value::as_str).unwrap_or_default())
    };
    output.line(&format!("● {}", short(&text(&explained, "/request"), 100)));
    for leg in explained["legs"].as_array().into_iter().flatten() {
        output.line(&format!(
            "{} {} → {}  {} — {}",
            text(leg, "/id"),
            text(leg, "/handoff/offer/from"),
            text(leg, "/handoff/offer/to"),
            text(leg, "/handoff/offer/reason"),
            text(leg, "/state"),
        ));
        let detail = |name: &str, said: String| {
            if !said.is_empty() {
                output.line(&format!("   {:<9} {said}", output.paint(Tone::Quiet, name)));
            }
        };
        detail("said", short(&text(leg, "/handoff/offer/summary"), 100));
        detail("because", short(&text(leg, "/handoff/offer/detail"), 100));
        detail("evidence", keys(leg.pointer("/handoff/offer/outputs")));
        detail("receipts", receipts(leg));
        detail("refused", refusal(leg));
        detail("asked", short(&text(leg, "/handoff/offer/question/details"), 100));
        detail("answer", short(&text(leg, "/handoff/state/closed/response/summary"), 100));
        detail("dissent", dissent(leg));
        detail("rule", rules(leg));
    }
    if path.ends_with("/why") {
        output.line(&format!("○ {}", short(&text(&explained, "/outcome"), 100)));
    }
    Ok(Exit::Ok)
}

fn keys(outputs: Option<&Value>) -> String {
    let fields = outputs.and_then(Value::as_object).into_iter().flatten();
    fields
        .map(|(key, value)| match value {
            Value::String(text) => format!("{key}={}", short(&plain(text), 40)),
            other => format!("{key}={}", short(&plain(&other.to_string()), 40)),
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// How far its last turn came into the agent, and when.
fn receipts(leg: &Value) -> String {
    let events = leg["events"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ordered = |event: &Value| event["event"] == "turn_ordered";
    let Some(last) = events.iter().rposition(ordered) else { return String::new() };
    let steps = events[last..].iter().filter_map(|event| {
        let step = match event["event"].as_str()? {
            "turn_ordered" => "queued",
            "receipt_given" => event["receipt"].as_str()?,
            _ => return None,
        };
        Some(format!("{step} {}", event["at"].as_str()?.get(11..23)?))
    });
    plain(&steps.collect::<Vec<_>>().join(" → "))
}

fn refusal(leg: &Value) -> String {
    let refusal = leg.pointer("/handoff/refusal").cloned();
    refusal
        .and_then(|value| {
            serde_json::from_value::<stafette_core::run::propose::Refusal>(value).ok()
        })
        .map(|refusal| refusal.to_string())
        .unwrap_or_default()
}

/// Who was not for what a council decided, and why.
fn dissent(leg: &Value) -> String {
    let events = leg["events"].as_array().into_iter().flatten();
    let last = events.filter_map(|event| event.pointer("/verdict/dissent")?.as_array()).last();
    let said: Vec<String> = last
        .into_iter()
        .flatten()
        .map(|one| {
            let text = |name: &str| one[name].as_str().unwrap_or_default();
            format!("{} {} {}", text("member"), text("signal"), short(text("reason"), 60))
        })
        .map(|line| line.trim_end().to_owned())
        .collect();
    plain(&said.join("; "))
}

/// What was decided about it, in order.
fn rules(leg: &Value) -> String {
    let events = leg["events"].as_array().into_iter().flatten();
    let told: Vec<String> = events
        .filter_map(|event| match event["event"].as_str()? {
            "recovery_chosen" => {
                Some(format!("{}: {}", event["action"].as_str()?, event["reason"].as_str()?))
            }
            "retry_scheduled" => Some(format!("attempt {}", event["attempt"])),
            "inputs_assessed" => Some(format!("missing {}", event["missing"])),
            "late_result_kept" => Some("a late result was kept".to_owned()),
            "council_heard" => {
                let signal = event.pointer("/vote/signal").and_then(Value::as_str);
                Some(format!("{} {}", event["member"].as_str()?, signal.unwrap_or("says nothing")))
            }
            "council_concluded" => Some(event.pointer("/verdict/why")?.as_str()?.to_owned()),
            _ => None,
        })
        .collect();
    plain(&told.join("; "))
}
