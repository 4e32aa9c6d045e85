//! `restart`: starts the program in an agent's terminal again.

use serde_json::json;
use stafette_server::terminals::Glance;

use super::{Context, attach};
use crate::cli;
use crate::exit::{Exit, Failure};

pub(crate) async fn run(context: &Context, arguments: cli::Restart) -> Result<Exit, Failure> {
    let client = crate::daemon::find(&context.project()?).await?;
    let path = attach::path(arguments.run.as_deref(), &arguments.agent, "/restart");
    let glance: Glance = client.post(&path, &json!({})).await?;
    match (context.output.json, glance.pid) {
        (true, _) => context.output.data(&glance),
        (false, Some(pid)) => {
            context.output.say(format!("{} runs again as process {pid}", glance.agent));
        }
        (false, None) => context.output.say(format!("{} was started again", glance.agent)),
    }
    Ok(Exit::Ok)
}
