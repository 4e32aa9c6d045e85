//! `up` and `down`: the project's daemon.

use serde_json::{Value, json};

use super::Context;
use crate::cli;
use crate::client::Client;
use crate::daemon::{self, Daemon};
use crate::exit::{Exit, Failure};

pub(crate) async fn run(context: &Context, arguments: cli::Up) -> Result<Exit, Failure> {
    let project = context.project()?;
    let cli::Up { foreground, listen, trusted } = arguments;
    if foreground {
        let daemon = Daemon { listen, trusted, private: false };
        daemon.run(&project, context.output, || {}).await?;
        return Ok(Exit::Ok);
    }
    let client = Client::new(&project.socket());
    let running = client.is_up().await;
    if !running {
        let address = listen.map(|address| address.to_string());
        let mut extra = Vec::new();
        if let Some(address) = &address {
            extra.extend(["--listen", address]);
        }
        daemon::spawn(&project, &extra)?;
        daemon::wait_until_up(&project, &client).await?;
    }
    let health: Value = client.get("/healthz").await?;
    match context.output.json {
        true => context
            .output
            .data(&json!({ "running": true, "pid": health["pid"], "was_running": running })),
        false => {
            let word = if running { "runs already" } else { "runs" };
            context.output.say(&format!("the daemon {word}, pid {}", health["pid"]));
        }
    }
    Ok(Exit::Ok)
}

pub(crate) async fn down(context: &Context) -> Result<Exit, Failure> {
    let project = context.project()?;
    let client = daemon::find(&project).await?;
    let _: Value = client.post("/v1/stop", &json!({})).await?;
    for _ in 0..1000 {
        if !client.is_up().await {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    daemon::wait_until_down(&project, &client).await?;
    match context.output.json {
        true => context.output.data(&json!({ "running": false })),
        false => {
            context.output.say("the daemon is down; its runs go on with the next `stafette up`")
        }
    }
    Ok(Exit::Ok)
}
