//! Follows a team from generation to generation.

use std::time::{Duration, Instant, SystemTime};

use serde_json::Value;
use stafette_core::Time;
use stafette_core::team::generation::hand_over::{Ends, GenerationHandedOver};
use stafette_engine::RunView;

use super::{follow as follow_one, run_path};
use crate::client::Client;
use crate::commands::Context;
use crate::exit::{Exit, Failure};

/// The time limit for the daemon to hand over.
const HAND_OVER: Duration = Duration::from_secs(60);

/// The interval between two checks.
const LOOK: Duration = Duration::from_millis(50);

/// Shows generation after generation until none follows, or one waits for a person.
pub(super) async fn follow(
    context: &Context,
    client: &Client,
    mut run: String,
    stay: bool,
) -> Result<Exit, Failure> {
    loop {
        let exit = follow_one(context, client, &run, stay).await?;
        if matches!(exit, Exit::NeedsPerson | Exit::Budget) {
            return Ok(exit);
        }
        let over = handed_over(client, &run).await?;
        context.output.say(format!("⇒ {}: {}", over.reason, over.why));
        let Some(next) = over.next else {
            return Ok(match over.ends {
                _ if exit != Exit::Ok => exit,
                Some(Ends::NeedsPerson) => Exit::NeedsPerson,
                Some(Ends::Ceiling) => Exit::Budget,
                _ => Exit::Ok,
            });
        };
        run = next.run.to_string();
        let since = Instant::now();
        let now = Time::of(SystemTime::now());
        let pause = next.not_before.0.saturating_sub(now.0);
        let patience = HAND_OVER + Duration::from_millis(u64::try_from(pause).unwrap_or(0));
        while client.get::<RunView>(&run_path(Some(&run), "")).await.is_err() {
            if since.elapsed() > patience {
                return Err(Failure::failed("The next generation does not begin")
                    .fix("see the daemon's log; `stafette state` says where it is"));
            }
            tokio::time::sleep(LOOK).await;
        }
    }
}

async fn handed_over(client: &Client, run: &str) -> Result<GenerationHandedOver, Failure> {
    let since = Instant::now();
    while since.elapsed() < HAND_OVER {
        let seen: Value = client.get(&run_path(Some(run), "/generations")).await?;
        let over = seen.pointer("/lineage/handed_over").cloned();
        if let Some(over) = over.and_then(|over| serde_json::from_value(over).ok()) {
            return Ok(over);
        }
        tokio::time::sleep(LOOK).await;
    }
    Err(Failure::failed("The generation does not hand over")
        .fix("see the daemon's log; `stafette state` says where it is"))
}
