//! `fork`: starts a new run from an earlier point of another.

use serde_json::{Value, json};

use super::{Context, run_path};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::project::person;

pub(crate) async fn run(context: &Context, arguments: cli::Fork) -> Result<Exit, Failure> {
    let client = crate::daemon::reach(&context.project()?).await?;
    let mut body = json!({ "by": person() });
    if let Some(seq) = arguments.at {
        body["seq"] = seq.into();
    }
    if let Some(handoff) = arguments.handoff {
        body["handoff"] = handoff.into();
    }
    let forked: Value = client.post(&run_path(arguments.run.as_deref(), "/fork"), &body).await?;
    match context.output.json {
        true => context.output.data(&forked),
        false => {
            let name = |key: &str| forked[key].as_str().unwrap_or_default().to_owned();
            context.output.say(format!("{} goes on from {}", name("run"), name("from")));
        }
    }
    Ok(Exit::Ok)
}
