//! The only clock: everything below is handed its time.
//!
//! A test can set it, as one sets a clock on the wall: the daemon is told of a file that says how
//! far its clock is from the system's. A build for users has the system's clock and no other.

use std::cell::Cell;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use stafette_core::{Millis, Time};
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

/// This moment. It never goes back: when the clock is set back, time continues from where it was until
/// the clock has caught up.
#[must_use]
pub fn now() -> Time {
    if let Some(virtual_time) = virtual_time() {
        return virtual_time;
    }
    let mut anchor = ANCHOR.lock().unwrap_or_else(PoisonError::into_inner);
    let (wall, at) = (wall(), Instant::now());
    if let Some(jump) = jump(*anchor, wall, at) {
        JUMPED.fetch_add(jump.0, Ordering::Relaxed);
    }
    let (now, kept) = onward(*anchor, wall, at);
    *anchor = Some(kept);
    now
}

/// The time that the clock has skipped since this process began, up to its last look at it.
#[must_use]
pub(crate) fn skipped() -> Millis {
    Millis(JUMPED.load(Ordering::Relaxed))
}

/// The least time that counts as skipped: less than that, a clock is merely corrected.
const JUMP: Millis = Millis::seconds(10);

/// All the time that was skipped.
static JUMPED: AtomicU64 = AtomicU64::new(0);

/// The time that a clock has skipped: it shows more than has passed.
fn jump(anchor: Option<(Time, Instant)>, wall: Time, at: Instant) -> Option<Millis> {
    Some(wall.since(reached(anchor?, at))).filter(|skipped| *skipped >= JUMP)
}

/// The anchor's time, and what has passed since.
fn reached((moment, since): (Time, Instant), at: Instant) -> Time {
    let passed = at.saturating_duration_since(since).as_millis();
    moment + Millis(u64::try_from(passed).unwrap_or(u64::MAX))
}

/// Time continues from `moment` at least: what is recorded there is not in the future for us.
pub fn at_least(moment: Time) {
    if now() < moment {
        if virtual_time().is_some() {
            return follow_runtime(moment);
        }
        let anchor = Some((moment, Instant::now()));
        *ANCHOR.lock().unwrap_or_else(PoisonError::into_inner) = anchor;
    }
}

thread_local! {
    static VIRTUAL: Cell<Option<(Time, tokio::time::Instant)>> = const { Cell::new(None) };
}

/// Takes the time of this thread from its tokio runtime, which a simulation pauses, and begins with
/// `from`. Without effect in a build for users.
pub fn follow_runtime(from: Time) {
    if SETTABLE {
        VIRTUAL.set(Some((from, tokio::time::Instant::now())));
    }
}

fn virtual_time() -> Option<Time> {
    let (from, since) = VIRTUAL.get()?;
    Some(from + Millis(u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX)))
}

/// The latest moment that a clock has shown, and when that was by a clock that nobody sets.
static ANCHOR: Mutex<Option<(Time, Instant)>> = Mutex::new(None);

/// The wall's time, or the anchor's and what has passed since where that is later; with the anchor for
/// the next time.
fn onward(anchor: Option<(Time, Instant)>, wall: Time, at: Instant) -> (Time, (Time, Instant)) {
    match anchor.map(|anchor| (reached(anchor, at), anchor)) {
        // Kept as it is: what is less than a millisecond each time adds up.
        Some((reached, anchor)) if wall < reached => (reached, anchor),
        _ => (wall, (wall, at)),
    }
}

/// What the wall's clock says, or the one that a test has set.
fn wall() -> Time {
    let system = Time::of(SystemTime::now());
    Time(system.0.saturating_add(shift().map_or(0, read)))
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
    fn b_22_time_goes_on_when_the_clock_is_set_back() {
        let (begin, day) = (Instant::now(), 24 * 3_600_000);
        let later = |micros| begin + Duration::from_micros(micros);
        let (now, mut anchor) = onward(None, Time(5 * day), begin);
        assert_eq!(now, Time(5 * day));
        let mut reached = now;
        for step in 1..=1000 {
            (reached, anchor) = onward(Some(anchor), Time(4 * day), later(step * 100));
        }
        assert_eq!(
            reached,
            Time(5 * day + 100),
            "as much as has passed, however often it is asked"
        );
        let (caught_up, _) = onward(Some(anchor), Time(6 * day), later(200_000));
        assert_eq!(caught_up, Time(6 * day), "the wall's time counts again");
    }

    #[test]
    fn b_22_a_clock_that_skips_is_noticed_and_one_that_is_corrected_is_not() {
        let (begin, hour) = (Instant::now(), 3_600_000);
        let anchor = Some((Time(hour), begin));
        let after = |seconds| begin + Duration::from_secs(seconds);
        assert_eq!(jump(anchor, Time(hour + 60_000), after(60)), None);
        assert_eq!(jump(anchor, Time(hour + 63_000), after(60)), None);
        assert_eq!(jump(anchor, Time(9 * hour + 60_000), after(60)), Some(Millis::hours(8)));
        assert_eq!(jump(anchor, Time(0), after(60)), None, "a clock that goes back skips nothing");
    }

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
