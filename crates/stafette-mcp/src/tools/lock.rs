//! `lock`: keep others from writing files.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::Millis;
use stafette_core::lock::{Claim, Holder, LockId, LockOutcome, Mode, OnConflict, Pattern};
use tokio::time::Instant;

use super::{CallContext, Effect, Right, ToolError, Whose};

/// Maximum wait in one call, in seconds.
const LONGEST: u64 = 600;

/// Interval of progress reports while waiting.
const SIGN: Duration = Duration::from_secs(5);

pub(super) struct Tool;

#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct Arguments {
    /// Files or patterns, relative to the project, such as `src/login.rs` or `src/**/*.rs`. You get
    /// all of them or none.
    patterns: Vec<String>,
    /// Purpose, so that others can decide whether to wait.
    #[serde(default)]
    reason: String,
    /// `exclusive` to write, `shared` if it only must not change while you read.
    #[serde(default)]
    mode: Mode,
    /// Number of seconds to wait in the queue if another holder has the lock, up to 600. 0 does not
    /// wait.
    #[serde(default = "usual")]
    wait_seconds: u64,
    /// Length of the lease in seconds; the workflow's if left out. Lock again to extend it.
    #[serde(default)]
    lease_seconds: Option<u64>,
    #[serde(flatten)]
    whose: Whose,
}

fn usual() -> u64 {
    45
}

/// Confirms that the lock is held.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub(super) struct Output {
    /// Id of the lock: pass it to `unlock`.
    lock: String,
    /// Fencing number: a program that writes for you passes it along.
    fence: u64,
    /// Patterns that are locked.
    patterns: Vec<String>,
    /// End of the lease (RFC 3339), when the lock is released automatically.
    expires_at: String,
    /// Recommended next step.
    next: String,
}

impl super::Tool for Tool {
    const NAME: &'static str = "lock";
    const TITLE: &'static str = "Lock files";
    const ABOUT: &'static str = "Locks files so that no other agent changes them while you do. Lock \
        just before you write what others may write too, lock everything that you need in one call, \
        and `unlock` as soon as you are done; a lock ends with your turn or its lease. If somebody \
        else has it you wait in line, with progress, and can cancel. Returns the lock's name, its \
        fencing number and when it ends; an error says who has it.\n\
        Example: {\"patterns\": [\"src/login.rs\", \"tests/login/**\"], \"reason\": \"rename the \
        session type\"}";
    const EFFECT: Effect = Effect::Settles;
    const RIGHT: Right = Right::TakePart;
    type Arguments = Arguments;
    type Output = Output;

    async fn call(context: CallContext, arguments: Arguments) -> Result<Output, ToolError> {
        let (holder, turn) = context.holder(&arguments.whose).await?;
        let patterns = arguments.patterns.iter().map(|text| text.parse::<Pattern>());
        let patterns = patterns.collect::<Result<Vec<_>, _>>().map_err(|error| {
            ToolError::new("bad_pattern", error.to_string())
                .fix("Give paths relative to the project, with `*` and `**` where you need them.")
        })?;
        let rules = match turn {
            Some(turn) => context.engine.state(turn.run).await?.workflow.locks.clone(),
            None => (context.workflow)()?.locks,
        };
        let lease = arguments.lease_seconds.map_or(rules.lease, Millis::seconds);
        let reason = arguments.reason;
        let claim =
            Claim { holder: holder.clone(), turn, patterns, mode: arguments.mode, lease, reason };
        let seconds = arguments.wait_seconds.min(LONGEST);
        let on_conflict = if seconds == 0 { OnConflict::Skip } else { OnConflict::Wait };
        let taken =
            context.engine.locks().take(claim, on_conflict, Millis::seconds(seconds)).await?;
        let lock = match taken {
            LockOutcome::Waiting(waiter) => wait(&context, waiter.id, holder, seconds).await?,
            given => given,
        };
        match lock {
            LockOutcome::Held(lock) => Ok(Output {
                lock: lock.id.to_string(),
                fence: lock.fence,
                patterns: lock.claim.patterns.iter().map(ToString::to_string).collect(),
                expires_at: lock.expires_at.rfc3339(),
                next: "Make your changes, then call `unlock`.".to_owned(),
            }),
            LockOutcome::Waiting(_) | LockOutcome::Done => {
                Err(ToolError::new("locked", "It did not come free")
                    .fix("Work on something else first, and try again."))
            }
        }
    }
}

/// Waits for the lock, and reports progress from time to time.
async fn wait(
    context: &CallContext,
    id: LockId,
    holder: Holder,
    seconds: u64,
) -> Result<LockOutcome, ToolError> {
    let place = context.engine.locks().place(id, holder);
    let end = Instant::now() + Duration::from_secs(seconds);
    let mut step = 0;
    loop {
        step += 1;
        let left = end.saturating_duration_since(Instant::now());
        context.goes_on(step, format!("waiting in line for {id}, {} s left", left.as_secs())).await;
        match context.engine.locks().wait(id, left.min(SIGN)).await? {
            LockOutcome::Waiting(_) if !left.is_zero() => {}
            // A waiter whose time is up leaves the queue.
            waiting @ LockOutcome::Waiting(_) => return Ok(waiting),
            given => {
                place.keep();
                return Ok(given);
            }
        }
    }
}
