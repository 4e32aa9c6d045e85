//! Reads the reset time of a quota from the message of a program.

use jiff::civil::{Date, DateTime, Time as Clock, Weekday};
use jiff::tz::{Offset, TimeZone};
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};
use stafette_core::Time;

use super::phrase::plain;

/// The current time and the time zone.
#[derive(Clone, PartialEq, Debug)]
pub struct Wall {
    now: Timestamp,
    zone: TimeZone,
}

impl Wall {
    /// The current time in the system's time zone.
    #[must_use]
    pub fn here() -> Self {
        Wall { now: Timestamp::now(), zone: TimeZone::system() }
    }

    /// A time in a zone of the IANA database; in UTC when there is none with that name.
    #[must_use]
    pub fn new(now: Time, zone: &str) -> Self {
        let now = Timestamp::from_millisecond(now.0).unwrap_or(Timestamp::UNIX_EPOCH);
        Wall { now, zone: TimeZone::get(zone).unwrap_or(TimeZone::UTC) }
    }
}

/// The farthest reset that is accepted; later ones are misread numbers.
const FARTHEST: SignedDuration = SignedDuration::from_hours(400 * 24);

/// The time for which a time of day that has just passed still means today.
const JUST_NOW: SignedDuration = SignedDuration::from_mins(10);

/// Words that come before the moment.
const ANCHORS: [&str; 6] = ["reset", "try again", "retry", "available", "wait", "renew"];

/// The maximum number of words between such a word and the moment.
const WORDS_BETWEEN: usize = 6;

/// The number of bytes of a message that are searched.
const REACH: usize = 4096;

/// The reset time in a message, as in `resets 3pm (Europe/Berlin)`, `try again in 5m`, `limit
/// reached|1794823200` or `Retry-After: 30`.
pub fn reset(message: &str, wall: &Wall) -> Option<Time> {
    let text = plain(&message[..message.floor_char_boundary(REACH)]);
    let after_bar = text.split('|').skip(1).filter_map(|rest| epoch(words(rest).first()?));
    let anchored = ANCHORS.iter().flat_map(|anchor| text.match_indices(anchor));
    let mut places: Vec<usize> = anchored.map(|(at, anchor)| at + anchor.len()).collect();
    places.sort_unstable();
    let after_word = places.into_iter().filter_map(|at| moment(&words(&text[at..]), wall));
    after_bar
        .chain(after_word)
        .find(|moment| moment.duration_since(wall.now) < FARTHEST)
        .map(|moment| Time(moment.as_millisecond()))
}

/// The time that a JSON value stands for: seconds or milliseconds since 1970, or text.
pub(crate) fn reset_value(value: &serde_json::Value, wall: &Wall) -> Option<Time> {
    let moment = match value {
        serde_json::Value::String(text) => moment(&words(&plain(text)), wall),
        number => epoch(&number.as_f64().map(|seconds| format!("{seconds:.0}"))?),
    };
    moment.map(|moment| Time(moment.as_millisecond()))
}

/// The first words of a text, without separators.
fn words(text: &str) -> Vec<String> {
    let part = |c: char| c.is_alphanumeric() || ":.+-/_".contains(c);
    text.split(|c: char| !part(c))
        .map(|word| word.trim_end_matches(['.', ':']).trim_start_matches(['-', '.', ':']))
        .filter(|word| !word.is_empty())
        .take(WORDS_BETWEEN + 12)
        .map(str::to_owned)
        .collect()
}

fn moment(words: &[String], wall: &Wall) -> Option<Timestamp> {
    (0..words.len().min(WORDS_BETWEEN)).find_map(|start| {
        let rest = &words[start..];
        let first = rest.first()?;
        epoch(first)
            .or_else(|| first.to_uppercase().parse().ok())
            .or_else(|| wall.now.checked_add(span(rest)?).ok())
            .or_else(|| {
                // `Retry-After: 30`, `resets_in_seconds: 30`.
                let named = start.checked_sub(1).map(|before| words[before].as_str());
                let counts = named.is_some_and(|n| n.ends_with("after") || n.ends_with("seconds"));
                let seconds = counts.then(|| first.parse::<u32>().ok()).flatten()?;
                wall.now.checked_add(i64::from(seconds).seconds()).ok()
            })
            .or_else(|| on_the_clock(rest, wall))
    })
}

/// Ten digits are seconds, thirteen milliseconds.
fn epoch(word: &str) -> Option<Timestamp> {
    let number: i64 = word.parse().ok()?;
    match word.len() {
        10 => Timestamp::from_second(number).ok(),
        13 => Timestamp::from_millisecond(number).ok(),
        _ => None,
    }
}

/// A length of time: `4h32m10s`, `11.5s`, `3 days 4 hours`.
fn span(words: &[String]) -> Option<SignedDuration> {
    let mut total = SignedDuration::ZERO;
    let mut index = 0;
    while let Some(word) = words.get(index) {
        if word == "and" && index > 0 {
            index += 1;
            continue;
        }
        let next = words.get(index + 1).filter(|next| unit(next).is_some());
        let (joined, used) = match next {
            Some(next) if word.parse::<f64>().is_ok() => (format!("{word}{next}"), 2),
            _ => (word.clone(), 1),
        };
        let Some(part) = joined_span(&joined) else { break };
        total = total.checked_add(part)?;
        index += used;
    }
    (index > 0).then_some(total)
}

/// Numbers and units without anything between them.
fn joined_span(mut text: &str) -> Option<SignedDuration> {
    let mut total = SignedDuration::ZERO;
    while !text.is_empty() {
        let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, rest) = text.split_at(digits);
        let end = rest.find(|c: char| !c.is_alphabetic()).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(end);
        let seconds = number.parse::<f64>().ok()? * unit(name)?;
        total = total.checked_add(SignedDuration::try_from_secs_f64(seconds).ok()?)?;
        text = rest;
    }
    Some(total)
}

/// The number of seconds in a unit.
fn unit(name: &str) -> Option<f64> {
    let seconds = match name {
        "ms" => 0.001,
        "s" | "sec" | "secs" | "second" | "seconds" => 1.0,
        "m" | "min" | "mins" | "minute" | "minutes" => 60.0,
        "h" | "hr" | "hrs" | "hour" | "hours" => 3600.0,
        "d" | "day" | "days" => 86_400.0,
        "w" | "week" | "weeks" => 604_800.0,
        _ => return None,
    };
    Some(seconds)
}

/// The day of a reset time.
enum Day {
    Next,
    On(Date),
    /// A day of this year, or of the next.
    Of {
        month: i8,
        day: i8,
    },
    Weekday(Weekday),
    Tomorrow,
}

/// A time of day, with a day before it or not, and a zone behind it or not.
fn on_the_clock(words: &[String], wall: &Wall) -> Option<Timestamp> {
    let (day, used) = day(words);
    let mut rest = &words[used..];
    while rest.first().is_some_and(|word| word == "at" || word == "on") {
        rest = &rest[1..];
    }
    let (clock, used) = time_of_day(rest)?;
    let named = rest.get(used).and_then(|word| zone(word));
    let zone = named.unwrap_or_else(|| wall.zone.clone());
    let here = wall.now.to_zoned(zone.clone());
    let at = |date: Date| -> Option<Zoned> {
        DateTime::from_parts(date, clock).to_zoned(zone.clone()).ok()
    };
    let passed = |zoned: &Zoned| wall.now.duration_since(zoned.timestamp()) > JUST_NOW;
    let today = here.date();
    let meant = match day {
        Day::On(date) => at(date)?,
        Day::Tomorrow => at(today.tomorrow().ok()?)?,
        Day::Next => {
            at(today).filter(|zoned| !passed(zoned)).or_else(|| at(today.tomorrow().ok()?))?
        }
        Day::Weekday(weekday) if today.weekday() == weekday => {
            let next = today.nth_weekday(1, weekday).ok()?;
            at(today).filter(|zoned| !passed(zoned)).or_else(|| at(next))?
        }
        Day::Weekday(weekday) => at(today.nth_weekday(1, weekday).ok()?)?,
        Day::Of { month, day } => {
            let date = Date::new(today.year(), month, day).ok()?;
            let long_ago = date < today.checked_sub(2.days()).ok()?;
            at(if long_ago { Date::new(today.year() + 1, month, day).ok()? } else { date })?
        }
    };
    Some(meant.timestamp())
}

/// The day that the words begin with, and the number of words that it takes.
fn day(words: &[String]) -> (Day, usize) {
    let word = |index: usize| words.get(index).map(String::as_str).unwrap_or_default();
    if let Ok(date) = word(0).parse::<Date>() {
        return (Day::On(date), 1);
    }
    if word(0) == "tomorrow" {
        return (Day::Tomorrow, 1);
    }
    if let Some(weekday) = weekday(word(0)) {
        // `Mon, Nov 16`: the date is more precise.
        let (exact, used) = day(&words[1..]);
        return if used > 0 { (exact, used + 1) } else { (Day::Weekday(weekday), 1) };
    }
    let number = |index: usize| {
        let digits = word(index).trim_end_matches(|c: char| c.is_alphabetic());
        digits.parse::<i16>().ok()
    };
    let (month, number_at) = match (month(word(0)), month(word(1))) {
        (Some(month), _) => (month, 1),
        (None, Some(month)) => (month, 0),
        (None, None) => return (Day::Next, 0),
    };
    let Some(in_month) = number(number_at).and_then(|n| i8::try_from(n).ok()) else {
        return (Day::Next, 0);
    };
    match word(2).parse::<i16>().ok().filter(|year| (2000..3000).contains(year)) {
        Some(year) => {
            Date::new(year, month, in_month).map_or((Day::Next, 0), |date| (Day::On(date), 3))
        }
        None => (Day::Of { month, day: in_month }, 2),
    }
}

fn month(word: &str) -> Option<i8> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let place = MONTHS.iter().position(|month| word.starts_with(month))?;
    word.chars().all(char::is_alphabetic).then(|| i8::try_from(place + 1).ok()).flatten()
}

fn weekday(word: &str) -> Option<Weekday> {
    let weekday = match word.get(..3)? {
        "mon" => Weekday::Monday,
        "tue" => Weekday::Tuesday,
        "wed" => Weekday::Wednesday,
        "thu" => Weekday::Thursday,
        "fri" => Weekday::Friday,
        "sat" => Weekday::Saturday,
        "sun" => Weekday::Sunday,
        _ => return None,
    };
    (word.len() == 3 || word.ends_with("day")).then_some(weekday)
}

/// The time of day that the words begin with: `3pm`, `3:30 PM`, `15:00`.
fn time_of_day(words: &[String]) -> Option<(Clock, usize)> {
    let first = words.first()?;
    let digits = first.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(first.len());
    let (time, attached) = first.split_at(digits);
    let half = |word: &str| match word.replace('.', "").as_str() {
        "am" => Some(0),
        "pm" => Some(12),
        _ => None,
    };
    let (half, used) = match (half(attached), words.get(1).and_then(|word| half(word))) {
        (Some(half), _) => (Some(half), 1),
        (None, Some(half)) if attached.is_empty() => (Some(half), 2),
        (None, _) if attached.is_empty() => (None, 1),
        (None, _) => return None,
    };
    // A number alone could be anything.
    if half.is_none() && !time.contains(':') {
        return None;
    }
    let mut parts = time.split(':').map(str::parse::<i8>);
    let hour = parts.next()?.ok()?;
    let minute = parts.next().unwrap_or(Ok(0)).ok()?;
    let second = parts.next().unwrap_or(Ok(0)).ok()?;
    let hour = match half {
        Some(half) if (1..=12).contains(&hour) => hour % 12 + half,
        Some(_) => return None,
        None => hour,
    };
    Clock::new(hour, minute, second, 0).ok().map(|clock| (clock, used))
}

/// A zone by its name in the database, its distance from UTC, or a well-known abbreviation.
fn zone(word: &str) -> Option<TimeZone> {
    let hours = match word {
        "utc" | "gmt" | "z" => 0,
        "est" => -5,
        "edt" => -4,
        "cst" => -6,
        "cdt" => -5,
        "mst" => -7,
        "mdt" => -6,
        "pst" => -8,
        "pdt" => -7,
        "cet" => 1,
        "cest" => 2,
        "jst" => 9,
        _ if word.contains('/') => return TimeZone::get(word).ok(),
        _ => {
            let distance = word.strip_prefix("gmt").or_else(|| word.strip_prefix("utc"))?;
            let (sign, size) = match distance.strip_prefix('-') {
                Some(size) => (-1, size),
                None => (1, distance.strip_prefix('+')?),
            };
            let (hours, minutes) = size.split_once(':').unwrap_or((size, "0"));
            let seconds = hours.parse::<i32>().ok()? * 3600 + minutes.parse::<i32>().ok()? * 60;
            return Offset::from_seconds(sign * seconds).ok().map(TimeZone::fixed);
        }
    };
    Some(TimeZone::fixed(Offset::constant(hours)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sunday, noon in Berlin.
    const NOW: &str = "2026-11-15T11:00:00Z";

    fn read(message: &str) -> Option<String> {
        let wall = Wall::new(Time::parse(NOW).unwrap(), "America/New_York");
        reset(message, &wall).map(|time| time.rfc3339().replace(".000Z", "Z"))
    }

    #[test]
    fn b_09_every_way_to_say_when_a_quota_is_back_is_read() {
        for (message, expected) in [
            ("Claude AI usage limit reached|1794823200", "2026-11-16T10:00:00Z"),
            ("limit reached|1794823200000", "2026-11-16T10:00:00Z"),
            ("You've hit your limit · resets 3pm (Europe/Berlin)", "2026-11-15T14:00:00Z"),
            ("Your limit will reset at 9am (America/Chicago).", "2026-11-15T15:00:00Z"),
            ("resets at 11:55am (Europe/Berlin)", "2026-11-15T10:55:00Z"),
            ("resets at 11:30am (Europe/Berlin)", "2026-11-16T10:30:00Z"),
            ("Weekly limit reached ∙ resets Nov 20 at 5pm (UTC)", "2026-11-20T17:00:00Z"),
            ("resets Nov 20, 5pm (Europe/Berlin)", "2026-11-20T16:00:00Z"),
            ("resets Jan 3 at 12am (UTC)", "2027-01-03T00:00:00Z"),
            ("resets Monday 5:30 PM UTC", "2026-11-16T17:30:00Z"),
            ("resets Sun 1am (UTC)", "2026-11-22T01:00:00Z"),
            ("resets tomorrow at 09:00 CET", "2026-11-16T08:00:00Z"),
            ("Access resets at 10:57 PM GMT-3.", "2026-11-16T01:57:00Z"),
            ("resets at 18:30 UTC+5:30", "2026-11-15T13:00:00Z"),
            ("Limits will reset at 9:30 AM.", "2026-11-15T14:30:00Z"),
            ("or try again at Nov 16th, 2026 10:00 AM.", "2026-11-16T15:00:00Z"),
            ("or try again at 3:05\u{202f}PM.", "2026-11-15T20:05:00Z"),
            ("try again in 3 days 4 hours 9 minutes.", "2026-11-18T15:09:00Z"),
            ("Please try again in 5m", "2026-11-15T11:05:00Z"),
            ("Please try again in 11.054s.", "2026-11-15T11:00:11.054Z"),
            ("Your quota will reset after 4h32m10s.", "2026-11-15T15:32:10Z"),
            ("Please retry in 52.5s.", "2026-11-15T11:00:52.500Z"),
            ("\"retryDelay\": \"34s\"", "2026-11-15T11:00:34Z"),
            ("HTTP 429\nRetry-After: 3600\n", "2026-11-15T12:00:00Z"),
            ("{\"resets_in_seconds\":90}", "2026-11-15T11:01:30Z"),
            ("limit resets at: 2026-11-16T10:13:01+0000", "2026-11-16T10:13:01Z"),
            ("available again in 2 hours and 5 minutes", "2026-11-15T13:05:00Z"),
        ] {
            assert_eq!(read(message).as_deref(), Some(expected), "{message}");
        }
    }

    #[test]
    fn b_09_what_says_no_moment_is_no_moment() {
        for message in [
            "",
            "Please try again later.",
            "usage limit reached",
            "resets at noon or so",
            "retry 3 of 5",
            "limit resets at 25:99",
            "|12|",
            "reset|9999999999999999999",
            "try again in 99999999999999999999 hours",
            "resets at 3pm (Nowhere/Nothing",
        ] {
            let found = read(message);
            assert!(found.is_none() || message.contains("Nowhere"), "{message}: {found:?}");
        }
    }
}
