//! `notify`: tests the notification channels.

use serde_json::json;
use stafette_hooks::Tried;

use super::{Context, daemon};
use crate::cli;
use crate::exit::{Exit, Failure};

pub(crate) async fn run(context: &Context, arguments: &cli::Notify) -> Result<Exit, Failure> {
    let cli::Notify::Test = arguments;
    let client = daemon(context).await?;
    let tried: Vec<Tried> = client.post("/v1/notify/test", &json!({})).await?;
    let output = context.output;
    if output.json {
        output.data(&tried);
    } else {
        let row = |tried: &Tried| {
            let said = tried.why.clone().unwrap_or_else(|| "sent".to_owned());
            vec![tried.channel.clone(), said]
        };
        output.table(&["channel", "outcome"], tried.iter().map(row).collect());
    }
    match tried.iter().all(|tried| tried.sent) {
        true => Ok(Exit::Ok),
        false => Ok(Exit::Failed),
    }
}
