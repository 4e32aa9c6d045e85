//! Moments as calendars write them, with their time zones.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime, Time as Clock};
use jiff::tz::TimeZone;
use stafette_core::Time;

use super::content::{Component, Property};

/// A day or a moment, as its event states it.
#[derive(Clone, PartialEq, Debug)]
pub enum When {
    /// A whole day without a time.
    Day(Date),
    /// A local time in a zone. Without a zone it is in the zone of the reader.
    Clock(DateTime, Option<TimeZone>),
}

impl When {
    /// Returns the local date and time.
    pub fn civil(&self) -> DateTime {
        match self {
            When::Day(date) => date.to_datetime(Clock::midnight()),
            When::Clock(clock, _) => *clock,
        }
    }

    /// Returns the same kind of value at another local time.
    pub fn at(&self, civil: DateTime) -> When {
        match self {
            When::Day(_) => When::Day(civil.date()),
            When::Clock(_, zone) => When::Clock(civil, zone.clone()),
        }
    }

    /// Returns the moment; days and local times without a zone are read in `home`. A time skipped
    /// by a clock change uses the offset before it; of a time that occurs twice, the first counts.
    pub fn moment(&self, home: &TimeZone) -> Time {
        let zone = match self {
            When::Clock(_, Some(zone)) => zone,
            _ => home,
        };
        let moment = zone.to_ambiguous_zoned(self.civil()).compatible();
        Time(moment.map_or(i64::MAX, |zoned| zoned.timestamp().as_millisecond()))
    }
}

/// The zones that a calendar's text defines, by their names in it.
#[derive(Clone, Debug, Default)]
pub struct Zones {
    known: Vec<(String, TimeZone)>,
    /// Names that match no known zone; their events are read in the user's zone.
    pub unknown: Vec<String>,
}

/// Zone names of other programs, with the matching name in the database.
const ALIASES: &[(&str, &str)] = &[
    ("AUS Eastern Standard Time", "Australia/Sydney"),
    ("Central Europe Standard Time", "Europe/Budapest"),
    ("Central European Standard Time", "Europe/Warsaw"),
    ("Central Standard Time", "America/Chicago"),
    ("China Standard Time", "Asia/Shanghai"),
    ("E. South America Standard Time", "America/Sao_Paulo"),
    ("Eastern Standard Time", "America/New_York"),
    ("FLE Standard Time", "Europe/Kiev"),
    ("GMT Standard Time", "Europe/London"),
    ("India Standard Time", "Asia/Kolkata"),
    ("Mountain Standard Time", "America/Denver"),
    ("Pacific Standard Time", "America/Los_Angeles"),
    ("Romance Standard Time", "Europe/Paris"),
    ("Russian Standard Time", "Europe/Moscow"),
    ("Singapore Standard Time", "Asia/Singapore"),
    ("Tokyo Standard Time", "Asia/Tokyo"),
    ("W. Europe Standard Time", "Europe/Berlin"),
];

impl Zones {
    /// Returns the zones that a calendar's text defines.
    #[must_use]
    pub fn of(calendar: &Component) -> Self {
        let mut zones = Zones::default();
        let defined = calendar.components.iter().filter(|part| part.name == "VTIMEZONE");
        for zone in defined {
            let Some(id) = zone.text("TZID") else { continue };
            let located = zone.text("X-LIC-LOCATION").and_then(|name| database(&name));
            let found = database(&id).or(located).or_else(|| fixed(zone));
            match found {
                Some(found) => zones.known.push((id, found)),
                None => zones.unknown.push(id),
            }
        }
        zones
    }

    fn get(&mut self, id: &str) -> Option<TimeZone> {
        if let Some((_, zone)) = self.known.iter().find(|(known, _)| known == id) {
            return Some(zone.clone());
        }
        let found = database(id);
        match &found {
            Some(zone) => self.known.push((id.to_owned(), zone.clone())),
            None if !self.unknown.iter().any(|unknown| unknown == id) => {
                self.unknown.push(id.to_owned());
            }
            None => {}
        }
        found
    }

    /// Reads all moments of a property.
    pub fn read(&mut self, property: &Property) -> Vec<Option<When>> {
        let zone = property.param("TZID").and_then(|id| self.get(id));
        let one = |value: &str| {
            // A period: only its start counts here.
            when(value.split('/').next().unwrap_or(value).trim(), zone.as_ref())
        };
        property.value.split(',').map(one).collect()
    }
}

/// Reads `20260301`, `20260301T090000` or `20260301T090000Z`.
pub fn when(value: &str, zone: Option<&TimeZone>) -> Option<When> {
    let number = |text: &str| {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<i16>().ok()).flatten()
    };
    let small = |text: &str| number(text).and_then(|number| i8::try_from(number).ok());
    let day = value.get(..8)?;
    let date = Date::new(number(&day[..4])?, small(&day[4..6])?, small(&day[6..])?).ok()?;
    let rest = &value[8..];
    if rest.is_empty() {
        return Some(When::Day(date));
    }
    let (clock, utc) = match rest.strip_suffix('Z') {
        Some(clock) => (clock, true),
        None => (rest, false),
    };
    let clock = clock.strip_prefix('T').filter(|clock| clock.len() == 6 && clock.is_ascii())?;
    // A leap second (60) is read as 59.
    let second = small(&clock[4..])?.min(59);
    let clock = Clock::new(small(&clock[..2])?, small(&clock[2..4])?, second, 0).ok()?;
    let zone = if utc { Some(TimeZone::UTC) } else { zone.cloned() };
    Some(When::Clock(date.to_datetime(clock), zone))
}

/// Finds a zone in the database, also under names that have a prefix.
fn database(id: &str) -> Option<TimeZone> {
    if matches!(id, "UTC" | "Etc/UTC" | "GMT" | "Z") {
        return Some(TimeZone::UTC);
    }
    let alias = ALIASES.iter().find(|(alias, _)| *alias == id).map(|(_, name)| *name);
    let mut rest = alias.unwrap_or(id);
    loop {
        if let Ok(zone) = TimeZone::get(rest) {
            return Some(zone);
        }
        rest = rest.split_once('/')?.1;
    }
}

/// Returns a zone with one constant offset, from its definition.
fn fixed(zone: &Component) -> Option<TimeZone> {
    let [rules] = &zone.components[..] else { return None };
    let text = rules.text("TZOFFSETTO")?;
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text.strip_prefix('+').unwrap_or(&text)),
    };
    let part = |from: usize| digits.get(from..from + 2)?.parse::<i32>().ok();
    let seconds = sign * (part(0)? * 3600 + part(2)? * 60 + part(4).unwrap_or(0));
    jiff::tz::Offset::from_seconds(seconds).ok().map(TimeZone::fixed)
}

/// Formats a moment in UTC as an iCalendar value.
pub fn utc(moment: Time) -> String {
    let moment = Timestamp::from_millisecond(moment.0).unwrap_or(Timestamp::UNIX_EPOCH);
    moment.strftime("%Y%m%dT%H%M%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_14_zones_are_found_by_the_names_that_programs_use() {
        for name in
            ["Europe/Berlin", "/mozilla.org/20050126_1/Europe/Berlin", "W. Europe Standard Time"]
        {
            let zone = database(name).expect(name);
            let noon = when("20260701T120000", Some(&zone)).expect("a moment");
            assert_eq!(noon.moment(&TimeZone::UTC).rfc3339(), "2026-07-01T10:00:00.000Z");
        }
        assert!(database("Nowhere/Land").is_none());
    }

    #[test]
    fn s1_14_a_clock_that_is_put_forward_or_back_still_names_a_moment() {
        let zone = database("Europe/Berlin").expect("a zone");
        let moment = |text| when(text, Some(&zone)).expect("a moment").moment(&TimeZone::UTC);
        assert_eq!(moment("20260329T023000").rfc3339(), "2026-03-29T01:30:00.000Z");
        assert_eq!(moment("20261025T023000").rfc3339(), "2026-10-25T00:30:00.000Z");
        assert_eq!(when("20260301T250000", None), None);
        assert_eq!(when("2026é301", None), None);
    }
}
