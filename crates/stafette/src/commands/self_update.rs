//! `self-update`: starts the team's own program on new code, or on the old code again.

use serde_json::json;
use stafette_engine::{Renewal, Stage};

use super::{Context, daemon, segment};
use crate::cli;
use crate::exit::{Exit, Failure};
use crate::output::Tone;
use crate::project::person;

pub(crate) async fn run(context: &Context, arguments: &cli::SelfUpdate) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let path = format!("/v1/changes/{}/renew", segment(&arguments.change));
    let renewal: Renewal = client.post(&path, &json!({ "by": person() })).await?;
    let output = context.output;
    let done = renewal.stage == Stage::Done;
    match (output.json, done) {
        (true, _) => output.data(&renewal),
        (false, true) => {
            let said = format!("{} is in, and the team runs on it", renewal.change);
            output.line(output.paint(Tone::Good, &said));
        }
        (false, false) => {
            let said = format!("{} was taken back: {}", renewal.change, renewal.why);
            output.line(output.paint(Tone::Bad, &said));
            for line in renewal.output.lines() {
                output.say(format!("  {line}"));
            }
        }
    }
    Ok(if done { Exit::Ok } else { Exit::RolledBack })
}
