//! `diff`: shows a change line by line.

use std::io::IsTerminal;

use serde_json::Value;

use super::changes::{author, path, text};
use super::{Context, daemon};
use crate::cli;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{colour_wanted, count, plain};

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
    let head = format!("{} by {}, {}", text(change, "id"), author(change), text(change, "status"));
    context.output.say(&plain(&head));
    for line in text(change, "reason").lines() {
        context.output.say(&plain(&format!("  {line}")));
    }
    let files: Vec<&Value> = view["diff"].as_array().into_iter().flatten().collect();
    match arguments.stat {
        true => stat(context, &files),
        false => {
            let page = Page { colour: colour_wanted() && std::io::stdout().is_terminal() };
            let mut lines = files.iter().flat_map(|file| page.file(file));
            lines.by_ref().for_each(|line| context.output.line(&line));
        }
    }
    Ok(Exit::Ok)
}

/// The newest change that waits, or the newest of all.
async fn newest(client: &Client) -> Result<String, Failure> {
    let list: Value = client.get("/v1/changes").await?;
    let changes: Vec<&Value> = list["changes"].as_array().into_iter().flatten().collect();
    let is_open =
        |change: &&&Value| change["status"] == "pending" || change["status"] == "approved";
    let newest = changes.iter().rev().find(is_open).or(changes.last());
    newest
        .map(|change| text(change, "id"))
        .ok_or_else(|| Failure::failed("Nothing was proposed, so there is nothing to show"))
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
        rows.push(vec![text(file, "action"), name(file), lines]);
    }
    context.output.table(&["", "", ""], rows);
    context.output.line(&format!("{}, +{added} -{removed}", count(files.len(), "file")));
}

fn name(file: &Value) -> String {
    match file["from"].as_str() {
        Some(from) => format!("{from} → {}", text(file, "file")),
        None => text(file, "file"),
    }
}

/// Unified diff lines, in the form that other programs read.
struct Page {
    colour: bool,
}

impl Page {
    fn file(&self, file: &Value) -> Vec<String> {
        let path = text(file, "file");
        let from = file["from"].as_str().unwrap_or(&path);
        let action = text(file, "action");
        let mut lines = vec![self.paint("1", &format!("diff --git a/{from} b/{path}"))];
        let bits = |at: usize| file["mode"][at].as_u64().map(|mode| mode & 0o111 != 0);
        let mode = |is_executable: bool| if is_executable { "100755" } else { "100644" };
        if let (Some(old), Some(new)) = (bits(0), bits(1)) {
            lines.push(format!("old mode {}", mode(old)));
            lines.push(format!("new mode {}", mode(new)));
        }
        match action.as_str() {
            "create" => lines.push("new file mode 100644".to_owned()),
            "delete" => lines.push("deleted file mode 100644".to_owned()),
            "rename" => {
                lines.push(format!("rename from {from}"));
                lines.push(format!("rename to {path}"));
            }
            _ => {}
        }
        if let Some(why) = file["unshown"].as_str() {
            lines.push(format!("({why})"));
        }
        let hunks: Vec<&Value> = file["hunks"].as_array().into_iter().flatten().collect();
        if !hunks.is_empty() {
            let old = if action == "create" { "/dev/null" } else { &format!("a/{from}") };
            let new = if action == "delete" { "/dev/null" } else { &format!("b/{path}") };
            lines.push(self.paint("1", &format!("--- {old}")));
            lines.push(self.paint("1", &format!("+++ {new}")));
        }
        lines.extend(hunks.into_iter().flat_map(|hunk| self.hunk(hunk)));
        lines
    }

    fn hunk(&self, hunk: &Value) -> Vec<String> {
        let number = |key: &str| hunk[key].as_u64().unwrap_or(0);
        let (old, old_lines) = (number("old_start"), number("old_lines"));
        let (new, new_lines) = (number("new_start"), number("new_lines"));
        let head = format!("@@ -{old},{old_lines} +{new},{new_lines} @@");
        let mut lines = vec![self.paint("36", &head)];
        for line in hunk["lines"].as_array().into_iter().flatten() {
            let sign = text(line, "sign");
            let shown = format!("{sign}{}", visible(&text(line, "text")));
            lines.push(match sign.as_str() {
                "+" => self.paint("32", &shown),
                "-" => self.paint("31", &shown),
                _ => shown,
            });
            if line["unended"] == true {
                lines.push("\\ No newline at end of file".to_owned());
            }
        }
        lines
    }

    fn paint(&self, code: &str, text: &str) -> String {
        match self.colour {
            true => format!("\x1b[{code}m{text}\x1b[0m"),
            false => text.to_owned(),
        }
    }
}

/// Text of agents must not control a terminal. When the output is not a terminal, it is left as it
/// is.
fn visible(text: &str) -> String {
    if !std::io::stdout().is_terminal() {
        return text.to_owned();
    }
    let shown = |c: char| if c.is_control() && c != '\t' { '\u{fffd}' } else { c };
    text.chars().map(shown).collect()
}
