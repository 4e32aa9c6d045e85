//! `answer`: answers a question of the inbox.

use serde_json::{Value, json};

use super::{Context, segment};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::project::person;

pub(crate) async fn run(context: &Context, arguments: cli::Answer) -> Result<Exit, Failure> {
    let client = crate::daemon::reach(&context.project()?).await?;
    let body = body(&arguments.answer)?;
    let path = format!("/v1/inbox/{}", segment(&arguments.question));
    let answered: Value = client.post(&path, &body).await?;
    match context.output.json {
        true => context.output.data(&answered),
        false => {
            let text = |path: &str| answered.pointer(path).and_then(Value::as_str).unwrap_or("");
            context.output.say(format!(
                "{} is answered; {}",
                text("/answered"),
                super::status::sentence(text("/run/status"))
            ));
        }
    }
    Ok(Exit::Ok)
}

/// The request for the daemon: values when every word is KEY=VALUE, otherwise the words as text.
pub(super) fn body(words: &[String]) -> Result<Value, Failure> {
    let is_pair = |word: &String| {
        word.split_once('=').is_some_and(|(key, _)| {
            !key.is_empty()
                && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))
        })
    };
    let by = person();
    Ok(match words.iter().all(is_pair) {
        true => json!({ "values": super::run::pairs(words)?, "by": by }),
        false => json!({ "text": words.join(" "), "by": by }),
    })
}
