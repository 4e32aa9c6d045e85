//! `changes`, `apply`, `undo`: the changes that agents propose, and their outcomes.

use std::io::Read;

use serde_json::{Value, json};
use stafette_core::RunId;
use stafette_core::fields::shell_word;
use stafette_core::team::order::{LeftFile, Leftover};

use super::{Context, daemon, segment};
use crate::cli::{self, ChangesCommand};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{Tone, count, short};
use crate::project::person;

/// The maximum size of a document, in bytes.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The most files that are named for a reason why they are in no change.
const NAMED: usize = 5;

/// The most such reasons.
const REASONS: usize = 10;

pub(crate) async fn run(context: &Context, arguments: cli::Changes) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    match arguments.command {
        None => list(context, &client).await,
        Some(ChangesCommand::Approve { change }) => {
            let answer: Value =
                client.post(&path(&change, "/approve"), &json!({ "by": person() })).await?;
            let said = format!("{} may be applied: stafette apply {0}", named(&answer));
            tell(context, &answer, &said)
        }
        Some(ChangesCommand::Refuse { change, why }) => {
            let body = json!({ "by": person(), "why": why.unwrap_or_default() });
            let answer: Value = client.post(&path(&change, "/refuse"), &body).await?;
            tell(context, &answer, &format!("{} is refused", text(&answer, "id")))
        }
        Some(ChangesCommand::Propose { file }) => {
            let mut document: Value = serde_json::from_str(&read(&file)?).map_err(|error| {
                Failure::usage(format!("{} is not JSON", file.display()))
                    .because(&error)
                    .fix("write an object with `reason` and `codeChanges`")
            })?;
            if let Some(document) = document.as_object_mut() {
                document.entry("author").or_insert_with(|| json!({ "person": person() }));
            }
            let answer: Value = client.post("/v1/changes", &document).await?;
            let said = format!("{} waits: stafette diff {0}", text(&answer, "id"));
            tell(context, &answer, &said)
        }
        Some(ChangesCommand::Comment { change, text, file, line }) => {
            let body = json!({ "text": text, "by": person(), "file": file, "line": line });
            let answer: Value = client.post(&path(&change, "/comment"), &body).await?;
            let agent = answer["author"]["agent"].as_str().unwrap_or("somebody");
            let run = |key: &str| {
                let run = answer["heard"][key].as_str().unwrap_or_default();
                run.get(run.len().saturating_sub(8)..).unwrap_or(run).to_owned()
            };
            let said = match answer["heard"]["by"].as_str() {
                Some("agent") => format!("{agent} hears it in {}", run("run")),
                Some("next_generation") => "the next generation hears it".to_owned(),
                Some("revision") => format!(
                    "its run is over, so {agent} revises it in a run of its own: stafette log {}",
                    run("run")
                ),
                Some("later") => format!(
                    "recorded; {agent} hears it as soon as that is possible: stafette status {}",
                    run("run")
                ),
                _ => "kept with the change".to_owned(),
            };
            tell(context, &answer, &said)
        }
    }
}

fn tell(context: &Context, answer: &Value, said: &str) -> Result<Exit, Failure> {
    match context.output.json {
        true => context.output.data(answer),
        false => context.output.say(said),
    }
    Ok(Exit::Ok)
}

fn read(file: &std::path::Path) -> Result<String, Failure> {
    let failed = |error: std::io::Error| {
        Failure::usage(format!("Cannot read {}", file.display()))
            .because(&error)
            .fix("name a text file that you may read, or `-` for standard input")
    };
    let mut text = String::new();
    match file.as_os_str() == "-" {
        true => std::io::stdin().lock().take(LARGEST).read_to_string(&mut text),
        false => {
            let file = std::fs::File::open(file).map_err(failed)?;
            file.take(LARGEST).read_to_string(&mut text)
        }
    }
    .map_err(failed)?;
    Ok(text)
}

async fn list(context: &Context, client: &Client) -> Result<Exit, Failure> {
    let list: Value = client.get("/v1/changes").await?;
    if context.output.json {
        context.output.data(&list);
        return Ok(Exit::Ok);
    }
    let changes: Vec<&Value> = list["changes"].as_array().into_iter().flatten().collect();
    if changes.is_empty() {
        context.output.say("Nothing was proposed.");
        return Ok(Exit::Ok);
    }
    let row = |change: &&Value| {
        let edits = change["edits"].as_array().map_or(0, Vec::len);
        let status = match is_waiting(change) {
            true => "needs you".to_owned(),
            false => text(change, "status"),
        };
        let reason = text(change, "reason");
        let reason = short(reason.lines().next().unwrap_or_default(), 60);
        vec![named(change), status, count(edits, "file"), author(change), reason]
    };
    let head = ["change", "status", "files", "by", "reason"];
    context.output.table(&head, changes.iter().map(row).collect());
    Ok(Exit::Ok)
}

/// Some lines for each change that waits for a person, and is not one of the questions.
pub(crate) async fn waiting(client: &Client) -> Result<Vec<String>, Failure> {
    let list: Value = client.get("/v1/changes?waiting=true").await?;
    let line = |change: &Value| {
        let (id, seen) = (text(change, "id"), named(change));
        let files = count(each(change, "edits").count(), "file");
        let says = match is_waiting(change) {
            true => {
                let gate = |gate: &Value| format!("{} {}", text(gate, "kind"), text(gate, "file"));
                let gates: Vec<String> = each(change, "gates").map(gate).collect();
                format!("needs your yes: {}", short(&gates.join(", "), 100))
            }
            false => format!("is yours to apply: {files}, {}", text(change, "status")),
        };
        let answer = match is_waiting(change) {
            true => format!("stafette changes approve {seen}"),
            false => format!("stafette apply {seen}"),
        };
        format!(
            "{id:>4} a change of {} {says}\n     look: stafette diff {id}\n     \
             answer:  {answer}, or stafette changes reject {seen}",
            author(change),
        )
    };
    Ok(each(&list, "changes").map(line).collect())
}

/// A line for each change of a run, with what the user can do with it.
pub(crate) async fn of_run(client: &Client, run: RunId) -> Result<Vec<String>, Failure> {
    let list: Value = client.get(&format!("/v1/changes?run={run}")).await?;
    let line = |change: &Value| {
        let (id, seen, status) = (text(change, "id"), named(change), text(change, "status"));
        let files = count(change["edits"].as_array().map_or(0, Vec::len), "file");
        let next = match status.as_str() {
            _ if is_waiting(change) => {
                format!("stafette changes approve {seen}, then stafette apply {seen}")
            }
            "pending" | "approved" => format!("stafette apply {seen}"),
            _ => return format!("{seen}: {files}, {status}"),
        };
        format!("{seen}: {files}, {status}. Look: stafette diff {id}. Take it: {next}")
    };
    Ok(each(&list, "changes").map(line).collect())
}

/// Says what a run has left that is in no change, why, and how to take it.
pub(crate) fn left(left: &Leftover) -> Vec<String> {
    let mut lines = vec![format!("{}:", left.told())];
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for LeftFile { file, why } in &left.files {
        match reasons.iter_mut().find(|(known, _)| known == why) {
            Some((_, files)) => files.push(file),
            None => reasons.push((why, vec![file])),
        }
    }
    for (why, files) in reasons.iter().take(REASONS) {
        let named: Vec<String> = files.iter().take(NAMED).map(|file| shell_word(file)).collect();
        let more = if files.len() > named.len() { " and others" } else { "" };
        lines.push(format!("  {}{more}: {why}", named.join(" ")));
    }
    if let Some(branch) = &left.branch {
        let named: Vec<String> = left.files.iter().map(|left| shell_word(&left.file)).collect();
        lines.push(match left.count <= NAMED && !named.iter().any(|name| name.contains('\n')) {
            true => format!("  Take them: git checkout {branch} -- {}", named.join(" ")),
            false => format!("  Take all of the run: git merge {branch}"),
        });
    }
    lines
}

/// Returns the name of a set with its revision, unless that is the first.
pub(super) fn named(change: &Value) -> String {
    match change["revision"].as_u64() {
        Some(revision) if revision > 1 => format!("{}@{revision}", text(change, "id")),
        _ => text(change, "id"),
    }
}

fn is_waiting(change: &Value) -> bool {
    change["status"] == "pending" && change["gates"].as_array().is_some_and(|it| !it.is_empty())
}

pub(crate) async fn apply(context: &Context, arguments: cli::Apply) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let path = match &arguments.change {
        Some(change) => path(change, "/apply"),
        None => "/v1/changes/apply".to_owned(),
    };
    let body = json!({ "by": person(), "as_it_is": arguments.as_it_is });
    let report: Value = client.post(&path, &body).await?;
    let needs_person = each(&report, "left").any(|left| left["needs_person"] == true);
    if each(&report, "landed").chain(each(&report, "rolled_back")).next().is_none()
        && !context.output.json
    {
        context.output.say("Nothing was applied.");
    }
    Ok(match told(context, &report, "applied") {
        Exit::Ok if needs_person => Exit::NeedsPerson,
        exit => exit,
    })
}

pub(crate) async fn undo(context: &Context, arguments: cli::Undo) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let body = json!({ "with_later": arguments.with_later, "by": person() });
    let report: Value = client.post(&path(&arguments.change, "/undo"), &body).await?;
    Ok(told(context, &report, "undone"))
}

/// Prints the outcome of changes.
fn told(context: &Context, report: &Value, word: &str) -> Exit {
    let output = context.output;
    if output.json {
        output.data(report);
    } else {
        for change in each(report, "landed") {
            let validated = if change["status"] == "validated" { " and validated" } else { "" };
            let commit = text(change, "commit");
            let commit = match commit.get(..8) {
                Some(commit) => format!(", commit {commit}"),
                None => String::new(),
            };
            let id = text(change, "id");
            output.line(output.paint(Tone::Good, format!("{id} {word}{validated}{commit}")));
            notes(context, change);
        }
        for back in each(report, "rolled_back") {
            let said = format!("{} was taken back: {}", text(back, "id"), text(back, "why"));
            output.line(output.paint(Tone::Bad, &said));
            for line in text(back, "output").lines() {
                output.line(format!("  | {line}"));
            }
            notes(context, back);
        }
        for left in each(report, "left") {
            output.line(format!("{} was left: {}", text(left, "id"), text(left, "why")));
        }
    }
    match each(report, "rolled_back").next() {
        Some(_) => Exit::RolledBack,
        None => Exit::Ok,
    }
}

fn notes(context: &Context, value: &Value) {
    for note in each(value, "notes").filter_map(Value::as_str) {
        context.output.line(context.output.paint(Tone::Quiet, format!("  {note}")));
    }
}

fn each<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = &'v Value> {
    value[key].as_array().into_iter().flatten()
}

/// The author of a change, in a word.
pub(super) fn author(change: &Value) -> String {
    let author = &change["author"];
    let short = |run: String| run.get(run.len().saturating_sub(8)..).unwrap_or(&run).to_owned();
    let made = match (author["agent"].as_str(), short(text(author, "run"))) {
        (Some(agent), run) if !run.is_empty() => format!("{agent} in {run}"),
        (Some(agent), _) => agent.to_owned(),
        (None, _) => author["person"].as_str().unwrap_or("someone").to_owned(),
    };
    match change["reviser"]["run"].as_str() {
        Some(run) => format!("{made}, sent back to {}", short(run.to_owned())),
        None => made,
    }
}

pub(super) fn path(change: &str, rest: &str) -> String {
    format!("/v1/changes/{}{rest}", segment(change))
}

pub(super) fn text(value: &Value, key: &str) -> String {
    value[key].as_str().unwrap_or_default().to_owned()
}
