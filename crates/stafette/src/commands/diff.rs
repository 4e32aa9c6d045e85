//! `diff`: shows a change line by line.

use serde_json::Value;

use super::changes::{author, named, path, text};
use super::{Context, daemon};
use crate::cli;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::count;

pub(crate) async fn run(context: &Context, arguments: cli::Diff) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let change = match arguments.change {
        Some(change) => change,
        None => newest(&client).await?,
    };
    let view: Value = client.get(&path(&change, "")).await?;
    if context.output.json {
        context.output.data(&view);
        return Ok(Exit::Ok);
    }
    let change = &view["change"];
    let head = format!("{} by {}, {}", named(change), author(change), text(change, "status"));
    context.output.say(head);
    for line in text(change, "reason").lines() {
        context.output.say(format!("  {line}"));
    }
    let files: Vec<&Value> = view["diff"].as_array().into_iter().flatten().collect();
    match arguments.stat {
        true => stat(context, &files),
        false => {
            let lines = files.iter().flat_map(|file| unified(file));
            lines.for_each(|(code, line)| context.output.content(&line, code));
        }
    }
    Ok(Exit::Ok)
}

/// The newest change that waits, or the newest of all.
pub(super) async fn newest(client: &Client) -> Result<String, Failure> {
    let list: Value = client.get("/v1/changes").await?;
    let changes: Vec<&Value> = list["changes"].as_array().into_iter().flatten().collect();
    let is_open =
        |change: &&&Value| change["status"] == "pending" || change["status"] == "approved";
    let newest = changes.iter().rev().find(is_open).or(changes.last());
    newest.map(|change| text(change, "id")).ok_or_else(|| {
        Failure::failed("No change was proposed yet").fix(
            "see `stafette status` for the runs, or propose one with `stafette changes propose`",
        )
    })
}

/// Returns the change as a patch, or the first file that has no text.
pub(super) fn patch(view: &Value) -> Result<String, String> {
    let mut patch = String::new();
    for file in view["diff"].as_array().into_iter().flatten() {
        if file["unshown"].is_string() {
            return Err(text(file, "file"));
        }
        for (_, line) in unified(file) {
            patch.push_str(&line);
            patch.push('\n');
        }
    }
    Ok(patch)
}

fn stat(context: &Context, files: &[&Value]) {
    let number = |file: &Value, key: &str| file[key].as_u64().unwrap_or(0);
    let (mut added, mut removed) = (0, 0);
    let mut rows = Vec::new();
    for file in files {
        added += number(file, "added");
        removed += number(file, "removed");
        let lines = match file["unshown"].as_str() {
            Some(why) => why.to_owned(),
            None => format!("+{} -{}", number(file, "added"), number(file, "removed")),
        };
        let is_new = file["mode"].is_array() || text(file, "action") == "create";
        let lines = match (is_new, file["executable"] == true) {
            (true, true) => format!("{lines}, executable"),
            (true, false) if file["mode"].is_array() => format!("{lines}, not executable any more"),
            _ => lines,
        };
        rows.push(vec![text(file, "action"), name(file), lines]);
    }
    context.output.table(&["", "", ""], rows);
    context.output.line(format!("{}, +{added} -{removed}", count(files.len(), "file")));
}

fn name(file: &Value) -> String {
    match file["from"].as_str() {
        Some(from) => format!("{from} → {}", text(file, "file")),
        None => text(file, "file"),
    }
}

/// A line with the style that it has on a terminal.
type Styled = (Option<&'static str>, String);

/// The lines of a unified diff, in the form that other programs read.
fn unified(file: &Value) -> Vec<Styled> {
    let path = text(file, "file");
    let from = file["from"].as_str().unwrap_or(&path);
    let action = text(file, "action");
    let (bold, plain) = (|line: String| (Some("1"), line), |line: String| (None, line));
    let mut lines = vec![bold(format!("diff --git a/{from} b/{path}"))];
    let bits = |at: usize| file["mode"][at].as_u64().map(|mode| mode & 0o111 != 0);
    let is_executable = file["executable"] == true;
    let mode = |is_executable: bool| if is_executable { "100755" } else { "100644" };
    if let (Some(old), Some(new)) = (bits(0), bits(1)) {
        lines.push(plain(format!("old mode {}", mode(old))));
        lines.push(plain(format!("new mode {}", mode(new))));
    }
    match action.as_str() {
        "create" => lines.push(plain(format!("new file mode {}", mode(is_executable)))),
        "delete" => lines.push(plain(format!("deleted file mode {}", mode(is_executable)))),
        "rename" => {
            lines.push(plain(format!("rename from {from}")));
            lines.push(plain(format!("rename to {path}")));
        }
        _ => {}
    }
    if let Some(why) = file["unshown"].as_str() {
        lines.push(plain(format!("({why})")));
    }
    let hunks: Vec<&Value> = file["hunks"].as_array().into_iter().flatten().collect();
    if !hunks.is_empty() {
        let old = if action == "create" { "/dev/null" } else { &format!("a/{from}") };
        let new = if action == "delete" { "/dev/null" } else { &format!("b/{path}") };
        lines.push(bold(format!("--- {old}")));
        lines.push(bold(format!("+++ {new}")));
    }
    lines.extend(hunks.into_iter().flat_map(hunk));
    lines
}

fn hunk(hunk: &Value) -> Vec<Styled> {
    let number = |key: &str| hunk[key].as_u64().unwrap_or(0);
    let (old, old_lines) = (number("old_start"), number("old_lines"));
    let (new, new_lines) = (number("new_start"), number("new_lines"));
    let mut lines = vec![(Some("36"), format!("@@ -{old},{old_lines} +{new},{new_lines} @@"))];
    for line in hunk["lines"].as_array().into_iter().flatten() {
        let sign = text(line, "sign");
        let code = match sign.as_str() {
            "+" => Some("32"),
            "-" => Some("31"),
            _ => None,
        };
        lines.push((code, format!("{sign}{}", text(line, "text"))));
        if line["unended"] == true {
            lines.push((None, "\\ No newline at end of file".to_owned()));
        }
    }
    lines
}
