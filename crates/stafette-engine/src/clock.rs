//! The only clock: everything below is handed its time.
//!
//! A test can set it, as one sets a clock on the wall: the daemon is told of a file that says how
//! far its clock is from the system's. A build for users has the system's clock and no other.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stafette_core::Time;
use thiserror::Error;

/// The environment variable that names the file: the milliseconds to add to the system's clock.
pub const VARIABLE: &str = "STAFETTE_CLOCK_SHIFT";

/// How often a clock that somebody may set is looked at by those who wait.
const GLANCE: Duration = Duration::from_millis(20);

static SHIFT: OnceLock<PathBuf> = OnceLock::new();

/// The clock cannot be set in this program.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("{VARIABLE} is set, and only builds for tests have a clock that can be set")]
pub struct Fixed;

/// Reads the environment once, before anything asks for the time.
///
/// # Errors
/// When somebody wants to set the clock of a build for users: it does not go on by another time
/// than they think.
pub fn arm() -> Result<(), Fixed> {
    let Some(file) = std::env::var_os(VARIABLE) else { return Ok(()) };
    if !cfg!(debug_assertions) {
        return Err(Fixed);
    }
    SHIFT.get_or_init(|| file.into());
    Ok(())
}

/// This moment.
#[must_use]
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let system = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Time(system.saturating_add(SHIFT.get().map_or(0, read)))
}

/// How far the clock is from the system's, by the file.
fn read(file: &PathBuf) -> i64 {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// Returns once it is `moment`, and after `longest` in any case: clocks are set, machines sleep.
pub async fn reach(moment: Option<Time>, longest: Duration) {
    let since = tokio::time::Instant::now();
    loop {
        let left = longest.saturating_sub(since.elapsed());
        let left = moment.map_or(left, |moment| left.min(moment.since(now()).into()));
        if left.is_zero() {
            return;
        }
        tokio::time::sleep(if SHIFT.get().is_some() { left.min(GLANCE) } else { left }).await;
    }
}
