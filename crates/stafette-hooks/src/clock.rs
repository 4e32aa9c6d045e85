//! The time of day.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use stafette_core::Time;

/// This moment.
#[must_use]
pub fn now() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

/// How long it is until then.
pub(crate) fn until(then: Time) -> Duration {
    then.since(now()).into()
}
