//! The only clock: everything below is handed its time.
//!
//! A test can set it, as one sets a clock on the wall: the daemon is told of a file that says how
//! far its clock is from the system's. A build for users has the system's clock and no other.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stafette_core::Time;
use thiserror::Error;

/// The environment variable that names the file: the milliseconds to add to the system's clock.
pub const VARIABLE: &str = "STAFETTE_CLOCK_SHIFT";

/// How often a clock that somebody may set is looked at by those who wait.
const GLANCE: Duration = Duration::from_millis(20);

/// Whether this build has a clock that can be set: those for tests have.
const SETTABLE: bool = cfg!(debug_assertions);

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
    if let Some(file) = wanted(std::env::var_os(VARIABLE), SETTABLE)? {
        SHIFT.get_or_init(|| file);
    }
    Ok(())
}

/// The file that somebody wants the clock to be set by, in a build that has one which can be.
fn wanted(named: Option<OsString>, settable: bool) -> Result<Option<PathBuf>, Fixed> {
    match (named, settable) {
        (Some(_), false) => Err(Fixed),
        (named, _) => Ok(named.map(PathBuf::from)),
    }
}

/// The file that the clock is set by; none in a build for users, whatever came before.
fn shift() -> Option<&'static PathBuf> {
    if SETTABLE { SHIFT.get() } else { None }
}

/// This moment.
#[must_use]
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let system = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    Time(system.saturating_add(shift().map_or(0, read)))
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
        tokio::time::sleep(if shift().is_some() { left.min(GLANCE) } else { left }).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_build_for_users_refuses_a_clock_that_somebody_sets() {
        let named = || Some(OsString::from("clock"));
        assert_eq!(wanted(named(), false), Err(Fixed));
        assert_eq!(wanted(None, false), Ok(None), "and says nothing to those who set none");
        assert_eq!(wanted(named(), true), Ok(Some(PathBuf::from("clock"))));
        // Which build is which goes by cargo's own defaults: no profile says otherwise.
        assert_eq!(SETTABLE, cfg!(debug_assertions));
        assert!(!include_str!("../../../Cargo.toml").contains("debug-assertions"));
    }
}
