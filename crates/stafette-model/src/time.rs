//! Time as it is passed in: milliseconds since 1970, never read from a clock.

use std::fmt;
use std::ops::Add;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

/// A point in time, in milliseconds since 1970 (UTC).
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    /// The latest possible time.
    pub const MAX: Time = Time(i64::MAX);

    /// Converts a moment such as a `SystemTime`; what is beyond the calendar becomes [`Time::MAX`].
    pub fn of(moment: impl TryInto<jiff::Timestamp>) -> Self {
        moment.try_into().map_or(Time::MAX, |moment| Time(moment.as_millisecond()))
    }

    /// Formats the time as RFC 3339 in UTC, to the millisecond.
    pub fn rfc3339(self) -> String {
        jiff::Timestamp::from_millisecond(self.0)
            .map_or_else(|_| self.0.to_string(), |moment| format!("{moment:.3}"))
    }

    /// Returns the day in UTC: `2026-11-15`.
    pub fn day(self) -> String {
        self.rfc3339().chars().take(10).collect()
    }

    /// Parses RFC 3339 text.
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|moment| Time(moment.as_millisecond()))
    }

    /// Returns the time elapsed since `earlier`; zero if that is later.
    #[must_use]
    pub fn since(self, earlier: Time) -> Millis {
        Millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Millis> for Time {
    type Output = Time;
    fn add(self, span: Millis) -> Time {
        Time(self.0.saturating_add_unsigned(span.0))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.rfc3339())
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

/// A duration. In files it is written `"30s"`, `"1h 30m"`, `"7d"` or a number of milliseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, JsonSchema)]
#[serde(transparent)]
#[schemars(with = "SpanText")]
pub struct Millis(pub u64);

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum SpanText {
    Text(String),
    Number(u64),
}

impl Millis {
    /// Creates a duration of `n` seconds.
    #[must_use]
    pub const fn seconds(n: u64) -> Self {
        Millis(n * 1000)
    }
    /// Creates a duration of `n` minutes.
    #[must_use]
    pub const fn minutes(n: u64) -> Self {
        Millis(n * 60_000)
    }
    /// Creates a duration of `n` hours.
    #[must_use]
    pub const fn hours(n: u64) -> Self {
        Millis(n * 3_600_000)
    }
    /// Parses `30s`, `1h 30m`, `7d`.
    ///
    /// # Errors
    /// A message with the expected format if the text is not a duration.
    pub fn parse(text: &str) -> Result<Self, String> {
        let expected =
            || format!("`{text}` is not a length of time: write 500ms, 30s, 5m, 2h or 7d");
        if let Some(days) = text.strip_suffix('d').and_then(|days| days.trim().parse::<u64>().ok())
        {
            return days.checked_mul(24 * 3_600_000).map(Millis).ok_or_else(expected);
        }
        let span: jiff::SignedDuration = text.parse().map_err(|_| expected())?;
        u64::try_from(span.as_millis()).map(Millis).map_err(|_| expected())
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match SpanText::deserialize(deserializer)? {
            SpanText::Number(n) => Ok(Millis(n)),
            SpanText::Text(text) => Millis::parse(&text).map_err(serde::de::Error::custom),
        }
    }
}

impl From<Millis> for Duration {
    fn from(span: Millis) -> Duration {
        Duration::from_millis(span.0)
    }
}

impl fmt::Display for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ms if ms < 1000 => write!(f, "{ms}ms"),
            ms if ms < 60_000 && ms % 1000 != 0 => write!(f, "{:.1}s", ms as f64 / 1000.0),
            ms if ms < 60_000 => write!(f, "{}s", ms / 1000),
            ms if ms < 3_600_000 => write!(f, "{}m {:02}s", ms / 60_000, ms / 1000 % 60),
            ms if ms < 48 * 3_600_000 => write!(f, "{}h {:02}m", ms / 3_600_000, ms / 60_000 % 60),
            ms => write!(f, "{}d", ms / (24 * 3_600_000)),
        }
    }
}

impl fmt::Debug for Millis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_write_spans_in_words() {
        assert_eq!(Millis::parse("30s"), Ok(Millis::seconds(30)));
        assert_eq!(Millis::parse("1h 30m"), Ok(Millis::minutes(90)));
        assert_eq!(Millis::parse("7d"), Ok(Millis::hours(168)));
        assert_eq!(Millis::parse("250ms"), Ok(Millis(250)));
        assert!(Millis::parse("soon").is_err());
        assert!(Millis::parse("-3s").is_err());
    }

    #[test]
    fn a_moment_reads_back_as_written() {
        let moment = Time(1_760_034_600_123);
        assert_eq!(Time::parse(&moment.rfc3339()), Some(moment));
    }

    #[test]
    fn a_moment_of_the_system_is_the_same_moment() {
        let at = |millis| std::time::UNIX_EPOCH + std::time::Duration::from_millis(millis);
        assert_eq!(Time::of(at(1_760_034_600_123)), Time(1_760_034_600_123));
        assert_eq!(Time::of(at(1 << 62)), Time::MAX);
    }
}
