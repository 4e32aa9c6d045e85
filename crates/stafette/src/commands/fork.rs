//! `fork`: starts a new run from an earlier point of another.

use serde_json::{Value, json};
use stafette_engine::RunView;

use super::{Context, run_path};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::short;
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
    let path = run_path(arguments.run.as_deref(), "");
    let before: RunView = client.get(&path).await?;
    let run = before.run.to_string();
    if !context.output.json {
        let at = body["handoff"].as_str().map(|handoff| format!("at {handoff}"));
        let at = at.or_else(|| Some(format!("after event {}", body["seq"].as_u64()?)));
        context.output.say(format!(
            "a new run begins from {} {}: {}",
            before.run.short(),
            at.unwrap_or_else(|| "as it is now".to_owned()),
            short(&before.request, 100)
        ));
    }
    let forked: Value = client.post(&run_path(Some(&run), "/fork"), &body).await?;
    match context.output.json {
        true => context.output.data(&forked),
        false => {
            let name = |key: &str| forked[key].as_str().unwrap_or_default().to_owned();
            context.output.say(format!("{} goes on from {}", name("run"), name("from")));
        }
    }
    Ok(Exit::Ok)
}
