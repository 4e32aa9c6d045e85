//! `answer`: answers a question of the inbox.

use serde_json::{Value, json};

use super::{Context, segment};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::project::person;

pub(crate) async fn run(context: &Context, arguments: cli::Answer) -> Result<Exit, Failure> {
    let client = crate::daemon::reach(&context.project()?).await?;
    let questions: Vec<Value> = client.get("/v1/inbox").await?;
    let body = body(&arguments.answer, &asked_for(&questions, &arguments.question))?;
    let path = format!("/v1/inbox/{}", segment(&arguments.question));
    let answered: Value = client.post(&path, &body).await?;
    match context.output.json {
        true => context.output.data(&answered),
        false => {
            let text = |path: &str| answered.pointer(path).and_then(Value::as_str).unwrap_or("");
            let raised = text("/raised");
            let raised =
                if raised.is_empty() { "" } else { &format!("; the budget is now {raised}") };
            context.output.say(format!(
                "{} is answered{raised}; {}",
                text("/answered"),
                super::status::sentence(text("/run/status"))
            ));
        }
    }
    Ok(Exit::Ok)
}

/// The names of the inputs that a question asks for, which a person names as `RUN:h5`, `h5` or `5`.
pub(super) fn asked_for(questions: &[Value], named: &str) -> Vec<String> {
    let (run, id) = named.rsplit_once(':').unwrap_or(("", named));
    let id = id.trim_start_matches('h');
    let is_meant = |row: &&Value| {
        let text = |key: &str| row[key].as_str().unwrap_or_default();
        let digits = |text: &str| text.replace('-', "").to_lowercase();
        let (whole, run) = (digits(text("run")), digits(run));
        let is_run = whole.contains(&run) || run == "latest";
        text("id").trim_start_matches('h') == id && is_run
    };
    questions.iter().filter(is_meant).flat_map(inputs).collect()
}

/// The names of the inputs that the question of a row asks for.
fn inputs(row: &Value) -> Vec<String> {
    let missing = row.pointer("/handoff/offer/missing").and_then(Value::as_array);
    let keys = missing.into_iter().flatten().filter_map(|input| input["key"].as_str());
    keys.map(str::to_owned).collect()
}

/// The request for the daemon: values when every word is KEY=VALUE with a key that was asked for,
/// otherwise the words as text: `CFLAGS=-O2` is an answer too.
pub(super) fn body(words: &[String], asked_for: &[String]) -> Result<Value, Failure> {
    let is_input = |word: &String| {
        word.split_once('=').is_some_and(|(key, _)| asked_for.iter().any(|asked| asked == key))
    };
    let by = person();
    Ok(match words.iter().all(is_input) {
        true => json!({ "values": super::run::pairs(words)?, "by": by }),
        false => json!({ "text": words.join(" "), "by": by }),
    })
}
