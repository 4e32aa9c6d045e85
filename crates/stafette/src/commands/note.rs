//! `note`: leaves a note for the next generation.

use serde_json::{Value, json};

use super::{Context, daemon, run_path};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::project::person;

pub(crate) async fn run(context: &Context, arguments: cli::Note) -> Result<Exit, Failure> {
    if arguments.text.trim().is_empty() {
        return Err(Failure::usage("The note is empty").fix("say what the team should know"));
    }
    let client = daemon(context).await?;
    let path = run_path(arguments.run.as_deref(), "/notes");
    let taken: Value =
        client.post(&path, &json!({ "text": arguments.text, "by": person() })).await?;
    match context.output.json {
        true => context.output.data(&taken),
        false => context.output.say("The next generation will know."),
    }
    Ok(Exit::Ok)
}
