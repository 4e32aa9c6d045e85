//! `why`: shows the handoffs that led to a result, with their evidence and rules.

use serde_json::Value;
use stafette_core::HandoffId;
use stafette_core::clean::Clean;
use stafette_core::run::message::Way;

use super::changes::author;
use super::{Context, daemon_of_runs, run_path, segment};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::{Tone, short};

pub(crate) async fn run(context: &Context, arguments: cli::Why) -> Result<Exit, Failure> {
    let client = daemon_of_runs(context).await?;
    let what = arguments.what.as_deref();
    if let Some(id) = what.filter(|what| is_change(what)) {
        match client.get::<Value>(&format!("/v1/changes/{}/why", segment(id))).await {
            Ok(explained) => {
                let run = explained.pointer("/way/run").and_then(Value::as_str);
                let handoffs: Vec<Value> = match run {
                    Some(run) => {
                        client.get(&run_path(Some(run), "/handoffs")).await.unwrap_or_default()
                    }
                    None => Vec::new(),
                };
                change(context, &explained, &handoffs);
                return Ok(Exit::Ok);
            }
            // The short form of a run's id can look like one.
            Err(failure) if id.len() < 5 => return Err(failure),
            Err(_) => {}
        }
    }
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
    let handoffs = run_path(explained["run"].as_str(), "/handoffs");
    // Without them the path is shown all the same.
    let handoffs: Vec<Value> = client.get(&handoffs).await.unwrap_or_default();
    way(context, &explained, &handoffs);
    if path.ends_with("/why") {
        context.output.line(format!("○ {}", short(&text(&explained, "/outcome"), 300)));
    }
    Ok(Exit::Ok)
}

/// True if it is the name of a change, such as `c3`.
fn is_change(what: &str) -> bool {
    let digits = what.strip_prefix('c').unwrap_or_default();
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

fn text(value: &Value, path: &str) -> String {
    value.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Prints a detail of the item above, if there is one.
fn detail(context: &Context, name: &str, said: &str) {
    if !said.is_empty() {
        let output = context.output;
        // An output's name is an agent's own, too.
        let said = Clean::from(said).on_one_line();
        output.line(
            Clean::from("   ") + output.paint(Tone::Quiet, format!("{name:<9}")) + " " + said,
        );
    }
}

/// Prints the path from the request to the item. The questions to people are not on it, since their
/// answers lead back to the asker: they are shown where they were asked.
fn way(context: &Context, explained: &Value, handoffs: &[Value]) {
    let output = context.output;
    output.line(format!("● {}", short(&text(explained, "/request"), 100)));
    for leg in explained["legs"].as_array().into_iter().flatten() {
        output.line(format!(
            "{} {} → {}  {} — {}",
            text(leg, "/id"),
            text(leg, "/handoff/offer/from"),
            text(leg, "/handoff/offer/to"),
            text(leg, "/handoff/offer/reason"),
            text(leg, "/state"),
        ));
        let detail = |name: &str, said: String| detail(context, name, &said);
        detail("said", short(&text(leg, "/handoff/offer/summary"), 100));
        detail("because", short(&text(leg, "/handoff/offer/detail"), 100));
        detail("evidence", keys(leg.pointer("/handoff/offer/outputs")));
        for learned in learned(leg) {
            detail("learned", learned);
        }
        detail("receipts", receipts(leg));
        for said in messages(leg) {
            detail("message", said);
        }
        detail("refused", refusal(leg));
        detail("asked", short(&text(leg, "/handoff/offer/question/details"), 100));
        detail("answer", short(&text(leg, "/handoff/state/closed/response/summary"), 100));
        detail("dissent", dissent(leg));
        detail("rule", rules(leg));
        detail("ignored", short(&ignored(leg), 200));
        for said in changes(leg) {
            detail("change", said);
        }
        for question in asked(leg, explained, handoffs) {
            let details = text(question, "/handoff/offer/question/details");
            detail("asked you", short(&format!("{} {details}", text(question, "/id")), 100));
            detail("you said", short(&answered(question), 100));
        }
    }
}

/// The questions to people that were asked in a handoff of the path, or in what followed from it
/// beside the path.
fn asked<'a>(leg: &Value, explained: &Value, handoffs: &'a [Value]) -> Vec<&'a Value> {
    let on_path =
        |id: &Value| explained["legs"].as_array().into_iter().flatten().any(|leg| leg["id"] == *id);
    let cause = |row: &Value| row.pointer("/handoff/cause").cloned().unwrap_or_default();
    let origin = |row: &Value| {
        let mut origin = cause(row);
        // A cause is always older, so this ends; the number of steps is a limit all the same.
        for _ in 0..handoffs.len() {
            if on_path(&origin) {
                break;
            }
            let before = handoffs.iter().find(|row| row["id"] == origin);
            origin = before.map(cause).unwrap_or_default();
        }
        origin
    };
    let is_question = |row: &&Value| row["to"] == "human" && !on_path(&row["id"]);
    handoffs.iter().filter(is_question).filter(|row| origin(row) == leg["id"]).collect()
}

/// What a person answered, in words or in values; empty while the question is open.
fn answered(question: &Value) -> String {
    let response = question.pointer("/handoff/state/closed/response").unwrap_or(&Value::Null);
    match text(response, "/summary") {
        said if said.is_empty() => keys(response.get("outputs")),
        said => said,
    }
}

/// The messages that its agent was given during the handoff.
fn messages(leg: &Value) -> Vec<String> {
    let events = leg["events"].as_array().into_iter().flatten();
    let given = events.filter(|event| event["event"] == "message_delivered");
    let line = |event: &Value| {
        let ids = event["messages"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let ids = ids.collect::<Vec<_>>().join(", ");
        let way = serde_json::from_value::<Way>(event["way"].clone()).map_or("", Way::words);
        format!("{ids} {way} {}", event["at"].as_str().and_then(|at| at.get(11..19)).unwrap_or(""))
    };
    given.map(line).collect()
}

/// Prints the origin of a change, and its outcome.
fn change(context: &Context, explained: &Value, handoffs: &[Value]) {
    if context.output.json {
        return context.output.data(explained);
    }
    if let Some(explained) = explained.get("way") {
        way(context, explained, handoffs);
    }
    let change = &explained["change"];
    let head =
        format!("{} by {} — {}", text(change, "/id"), author(change), text(change, "/status"));
    context.output.line(Clean::from(head).on_one_line());
    let detail = |name: &str, said: String| detail(context, name, &said);
    let all = |path: &str| change[path].as_array().into_iter().flatten();
    let list = |words: Vec<String>| short(&words.join(", "), 100);
    detail("for", short(&text(change, "/reason"), 100));
    let file = |edit: &Value| format!("{} {}", text(edit, "/action"), text(edit, "/file"));
    detail("files", list(all("edits").map(file).collect()));
    let gate = |gate: &Value| format!("{} {}", text(gate, "/kind"), text(gate, "/file"));
    detail("gates", list(all("gates").map(gate).collect()));
    for comment in all("comments") {
        let said = format!("{}: {}", text(comment, "/by"), text(comment, "/text"));
        detail("said", short(&said, 100));
    }
    detail("yes by", text(change, "/approved_by"));
    for (name, path) in [
        ("proposed", "/proposed_at"),
        ("applied", "/applied_at"),
        ("validated", "/validated_at"),
        ("undone", "/undone_at"),
        ("commit", "/commit"),
    ] {
        detail(name, text(change, path));
    }
    detail("failed", short(&text(change, "/failure"), 300));
    let tried = |event: &&Value| event["event"] == "change_settled" && event["unchanged"] == true;
    for event in explained["events"].as_array().into_iter().flatten().filter(tried) {
        let said = format!("stays {}: {}", text(event, "/status"), text(event, "/note"));
        detail("tried", short(&said, 200));
    }
    let event = |event: &Value| text(event, "/event");
    let events = explained["events"].as_array().into_iter().flatten();
    detail("recorded", list(events.map(event).collect()));
}

/// The insights that had a part in it, each with its version.
fn learned(leg: &Value) -> Vec<String> {
    let outputs = leg.pointer("/handoff/offer/outputs");
    let places = ["/ranking/learned", "/plan/learned", "/provenance/learned"];
    let lists = places.iter().filter_map(|place| outputs?.pointer(place)?.as_array());
    let sentence = |one: &Value| {
        let word = |key: &str| one[key].as_str().unwrap_or_default();
        format!("{} ({}, version {})", word("says"), word("insight"), one["version"])
    };
    lists.flatten().map(sentence).collect()
}

fn keys(outputs: Option<&Value>) -> String {
    let fields = outputs.and_then(Value::as_object).into_iter().flatten();
    fields
        .map(|(key, value)| match value {
            Value::String(text) => format!("{key}={}", short(text, 40)),
            other => format!("{key}={}", short(&other.to_string(), 40)),
        })
        .collect::<Vec<_>>()
        .join(", ")
}

/// The progress of its last turn into the agent, with times.
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
    steps.collect::<Vec<_>>().join(" → ")
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

/// The outcomes of the sets that were proposed in it, a line each.
fn changes(leg: &Value) -> Vec<String> {
    let events = leg["events"].as_array().into_iter().flatten();
    let mut told: Vec<(String, Vec<String>)> = Vec::new();
    for event in events {
        let Some(change) = event["change"].as_str() else { continue };
        let word = |name: &str| event[name].as_str().unwrap_or_default().to_owned();
        let by = match word("by") {
            by if by.is_empty() => by,
            by => format!(" by {by}"),
        };
        let said = match event["event"].as_str().unwrap_or_default() {
            "change_proposed" if event["revision"] == 1 => "proposed".to_owned(),
            "change_proposed" => format!("revised ({})", event["revision"]),
            "change_commented" => {
                let comment = &event["comment"];
                let text = comment["text"].as_str().unwrap_or_default();
                format!("{}: {}", comment["by"].as_str().unwrap_or_default(), short(text, 40))
            }
            "change_returned" => "sent back".to_owned(),
            "order_done" if event["order"] == "forward" => {
                match event["heard"]["by"].as_str().unwrap_or_default() {
                    "revision" => "revised in a run of its own".to_owned(),
                    "nobody" => "heard by nobody".to_owned(),
                    _ => "forwarded".to_owned(),
                }
            }
            "change_settled" if event["unchanged"] == true => {
                format!("stays {} ({})", word("status"), short(&word("note"), 60))
            }
            "change_settled" => match word("note") {
                note if note.is_empty() => word("status") + &by,
                note => format!("{}{by} ({})", word("status"), short(&note, 60)),
            },
            _ => continue,
        };
        match told.iter_mut().find(|(known, _)| known == change) {
            Some((_, list)) => list.push(said),
            None => told.push((change.to_owned(), vec![said])),
        }
    }
    told.iter().map(|(change, list)| format!("{change} {}", list.join(" → "))).collect()
}

/// The members that did not agree with a council's decision, and their reasons.
fn dissent(leg: &Value) -> String {
    let events = leg["events"].as_array().into_iter().flatten();
    let last = events.filter_map(|event| event.pointer("/verdict/dissent")?.as_array()).next_back();
    let said: Vec<String> = last
        .into_iter()
        .flatten()
        .map(|one| {
            let text = |name: &str| one[name].as_str().unwrap_or_default();
            format!("{} {} {}", text("member"), text("signal"), short(text("reason"), 60))
        })
        .map(|line| line.trim_end().to_owned())
        .collect();
    said.join("; ")
}

/// The reasons why frames in the agent's output could not be read.
fn ignored(leg: &Value) -> String {
    let events = leg["events"].as_array().into_iter().flatten();
    let reasons = events.filter(|event| event["event"] == "frame_ignored");
    let reasons: Vec<String> = reasons.map(|event| text(event, "/reason")).collect();
    reasons.join("; ")
}

/// The decisions about it, in order.
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
            "council_heard" if event["sealed"] == true => {
                Some(format!("{} has voted", event["member"].as_str()?))
            }
            "council_heard" => {
                let signal = event.pointer("/vote/signal").and_then(Value::as_str);
                Some(format!("{} {}", event["member"].as_str()?, signal.unwrap_or("says nothing")))
            }
            "council_concluded" => Some(event.pointer("/verdict/why")?.as_str()?.to_owned()),
            _ => None,
        })
        .collect();
    told.join("; ")
}
