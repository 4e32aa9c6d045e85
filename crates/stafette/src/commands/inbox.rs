//! `inbox`: lists the questions waiting for you.

use serde_json::Value;
use stafette_core::fields::shell_word;

use super::{Context, daemon_of_runs};
use crate::exit::{Exit, Failure};
use crate::output::{Output, Tone, short};

/// The most characters of an option.
const OPTION: usize = 200;

pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let client = daemon_of_runs(context).await?;
    let questions: Vec<Value> = client.get("/v1/inbox").await?;
    if context.output.json {
        context.output.data(&questions);
        return Ok(Exit::Ok);
    }
    let changes = super::changes::waiting(&client).await?;
    for change in &changes {
        context.output.line(change);
    }
    if questions.is_empty() && changes.is_empty() {
        context.output.say("Nothing needs you.");
    }
    for question in &questions {
        show(context.output, question);
    }
    Ok(Exit::Ok)
}

/// Prints a question with its options and how to answer it.
pub(crate) fn show(output: Output, row: &Value) {
    let text =
        |path: &str| row.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
    let id = text("/id");
    let run = text("/run");
    let from = format!("({} of {})", text("/from"), tail(&run));
    let details = text("/handoff/offer/question/details");
    // Further lines are marked: an agent's words must not look like another question.
    let details = details.lines().collect::<Vec<_>>().join("\n     │ ");
    output.line(
        output.paint(Tone::Yours, format!("{id:>4}"))
            + format!(" {details}  ")
            + output.paint(Tone::Quiet, from),
    );
    let listed = row.pointer("/handoff/offer/question/options").and_then(Value::as_array);
    let mut options: Vec<String> = Vec::new();
    for option in listed.into_iter().flatten().filter_map(Value::as_str) {
        let option = short(option, OPTION);
        if !option.trim().is_empty() && !options.contains(&option) {
            options.push(option);
        }
    }
    let example = match (options.first(), text("/handoff/offer/question/answer_with")) {
        (Some(first), _) if first.starts_with('-') => format!("-- {}", shell_word(first)),
        (Some(first), _) => shell_word(first),
        // A single text is the whole answer.
        (None, with) if with.is_empty() || is_one_text(&with) => "\"…\"".to_owned(),
        (None, with) => with,
    };
    // Questions that have to be weighed are shown with their numbers.
    let weighed = ["decision_approval", "plan_approval"];
    if weighed.contains(&text("/handoff/offer/question/reason").as_str()) {
        for line in text("/handoff/offer/question/context").lines() {
            output.line(format!("       {line}"));
        }
    }
    if !options.is_empty() {
        output.line(format!("     options: {}", options.join(" · ")));
    }
    output.line(format!("     answer:  stafette answer {}:{id} {example}", tail(&run)));
}

fn is_one_text(with: &str) -> bool {
    with.strip_suffix("=…").is_some_and(|key| !key.contains(' '))
}

/// The short form of a run's id that people type.
fn tail(run: &str) -> &str {
    run.get(run.len().saturating_sub(8)..).unwrap_or(run)
}
