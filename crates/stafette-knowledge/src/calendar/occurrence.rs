//! Computes when the events of a calendar take place.

use std::collections::BTreeSet;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ToSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Millis, Time};

use super::content::{Component, Property};
use super::recurrence::Rule;
use super::zone::{When, Zones};
use super::{Entry, entry};
use crate::graph::NodeKey;

/// The most occurrences of one event in one answer.
pub const MOST: usize = 5_000;

/// One occurrence of an event.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Occurrence {
    /// The name of the calendar entry that holds the event.
    pub entry: String,
    /// The id of the event.
    pub uid: String,
    /// The originally planned start of this occurrence; `None` if the event does not recur.
    pub recurrence: Option<Time>,
    /// The title of the event.
    pub title: String,
    /// The description of the event; may be empty.
    pub notes: String,
    /// The start of the occurrence.
    pub start: Time,
    /// The end of the occurrence.
    pub end: Time,
    /// True if the event lasts whole days.
    pub all_day: bool,
    /// True if the event blocks its time for anything else.
    pub busy: bool,
    /// The task that the event is for; `None` for events of other programs.
    pub task: Option<NodeKey>,
}

/// The occurrences in a set of entries, and what could not be read in them.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Agenda {
    /// The occurrences, by start.
    pub occurrences: Vec<Occurrence>,
    /// One sentence for each part that was not understood.
    pub doubts: Vec<String>,
}

/// Returns what takes place between two moments. Events without a zone are read in `home`.
pub fn agenda(entries: &[Entry], from: Time, to: Time, home: &TimeZone) -> Agenda {
    let mut agenda = Agenda::default();
    for entry in entries {
        match Component::parse(&entry.text) {
            Ok(calendar) => read(&mut agenda, &entry.name, &calendar, (from, to), home),
            Err(error) => agenda.doubts.push(format!("{}: {error}", entry.name)),
        }
    }
    agenda.occurrences.sort_by(|a, b| (a.start, &a.uid).cmp(&(b.start, &b.uid)));
    agenda
}

fn read(
    agenda: &mut Agenda,
    name: &str,
    calendar: &Component,
    window: (Time, Time),
    home: &TimeZone,
) {
    let mut zones = Zones::of(calendar);
    let events: Vec<&Component> =
        calendar.components.iter().filter(|part| part.name == "VEVENT").collect();
    let uid = |event: &Component| event.text("UID").unwrap_or_default();
    // Exceptions of an event replace the occurrences that they name.
    let mut replaced: BTreeSet<(String, Time)> = BTreeSet::new();
    for event in &events {
        if let Some(when) = first(&mut zones, event, "RECURRENCE-ID") {
            replaced.insert((uid(event), when.moment(home)));
        }
    }
    for event in &events {
        let onwards = event.property("RECURRENCE-ID").and_then(|one| one.param("RANGE"));
        if onwards.is_some() {
            let why = "a change of all later times is taken for a change of one";
            agenda.doubts.push(format!("{name}: {why}"));
        }
        let mut single = Event { name, event, zones: &mut zones, home };
        match single.occurrences(&uid(event), &replaced, window) {
            Ok(found) => agenda.occurrences.extend(found),
            Err(why) => agenda.doubts.push(format!("{name}: {why}")),
        }
    }
    for zone in &zones.unknown {
        agenda.doubts.push(format!("{name}: the time zone `{zone}` is not known; yours is taken"));
    }
}

fn first(zones: &mut Zones, event: &Component, name: &str) -> Option<When> {
    let property = event.property(name)?;
    zones.read(property).into_iter().next().flatten()
}

struct Event<'a> {
    name: &'a str,
    event: &'a Component,
    zones: &'a mut Zones,
    home: &'a TimeZone,
}

impl Event<'_> {
    fn occurrences(
        &mut self,
        uid: &str,
        replaced: &BTreeSet<(String, Time)>,
        (from, to): (Time, Time),
    ) -> Result<Vec<Occurrence>, String> {
        let cancelled = self.event.text("STATUS").is_some_and(|status| status == "CANCELLED");
        let start = first(self.zones, self.event, "DTSTART").ok_or("an event has no beginning")?;
        if cancelled {
            return Ok(Vec::new());
        }
        let length = self.length(&start)?;
        let exception = first(self.zones, self.event, "RECURRENCE-ID");
        let times = match &exception {
            Some(_) => vec![start.clone()],
            None => self.times(&start, to)?,
        };
        let several = times.len() > 1 || self.event.property("RRULE").is_some();
        let mut found = Vec::new();
        for time in times {
            let (begin, end) = (time.moment(self.home), length.after(&time, self.home));
            let planned = exception.as_ref().map(|when| when.moment(self.home));
            if planned.is_none() && replaced.contains(&(uid.to_owned(), begin)) {
                continue;
            }
            // An event without a duration still takes place.
            if begin >= to || end < from || (end == from && begin < from) {
                continue;
            }
            found.push(Occurrence {
                entry: self.name.to_owned(),
                uid: uid.to_owned(),
                recurrence: planned.or(several.then_some(begin)),
                title: self.event.text("SUMMARY").unwrap_or_default(),
                notes: self.event.text("DESCRIPTION").unwrap_or_default(),
                start: begin,
                end,
                all_day: matches!(time, When::Day(_)),
                busy: self.event.text("TRANSP").is_none_or(|word| word != "TRANSPARENT"),
                task: self.event.text(entry::TASK).and_then(|key| key.parse().ok()),
            });
        }
        Ok(found)
    }

    fn length(&mut self, start: &When) -> Result<Length, String> {
        if let Some(end) = first(self.zones, self.event, "DTEND") {
            return Ok(match (start, &end) {
                (When::Day(from), When::Day(to)) => Length::Days(
                    from.until(*to).map_or(1, |span| i64::from(span.get_days())).max(1),
                ),
                _ => Length::Exact(end.moment(self.home).since(start.moment(self.home))),
            });
        }
        let Some(text) = self.event.property("DURATION").map(|found| found.value.trim()) else {
            return Ok(match start {
                When::Day(_) => Length::Days(1),
                When::Clock(..) => Length::Exact(Millis(0)),
            });
        };
        let span: jiff::Span =
            text.parse().map_err(|_| format!("`{text}` is not a length of time"))?;
        // A day in a duration is a calendar day, regardless of how many hours it has.
        let days = i64::from(span.get_weeks()) * 7 + i64::from(span.get_days());
        let rest = span.weeks(0).days(0);
        let rest = SignedDuration::try_from(rest).map_err(|error| error.to_string())?;
        match (start, rest.is_zero()) {
            (When::Day(_), _) => Ok(Length::Days(days.max(1))),
            (_, true) if days > 0 => Ok(Length::Days(days)),
            _ => {
                let all = rest.as_millis() + i128::from(days) * 24 * 3_600_000;
                Ok(Length::Exact(Millis(u64::try_from(all).unwrap_or(0))))
            }
        }
    }

    /// Returns all occurrences that begin before `to`.
    fn times(&mut self, start: &When, to: Time) -> Result<Vec<When>, String> {
        let until = match start {
            When::Clock(_, Some(zone)) => civil(to, zone),
            _ => civil(to, self.home),
        };
        let mut times: Vec<When> = vec![start.clone()];
        for rule in self.event.all("RRULE") {
            let rule = Rule::parse(&rule.value).map_err(|error| error.to_string())?;
            let dates = rule.expand(start, until, MOST * 20);
            times.extend(dates.into_iter().map(|date| start.at(date)));
        }
        let list = |zones: &mut Zones, properties: Vec<&Property>| -> Vec<When> {
            properties.into_iter().flat_map(|property| zones.read(property)).flatten().collect()
        };
        let more: Vec<&Property> = self.event.all("RDATE").collect();
        times.extend(list(self.zones, more));
        let less: Vec<&Property> = self.event.all("EXDATE").collect();
        let less = list(self.zones, less);
        let gone: BTreeSet<Time> = less.iter().map(|when| when.moment(self.home)).collect();
        // Some programs exclude a date although the event has a time of day.
        let days: Vec<_> = less
            .iter()
            .filter_map(|when| match when {
                When::Day(date) => Some(*date),
                When::Clock(..) => None,
            })
            .collect();
        let home = self.home;
        times.retain(|time| {
            !gone.contains(&time.moment(home)) && !days.contains(&time.civil().date())
        });
        times.sort_by_key(|time| time.moment(home));
        times.dedup_by_key(|time| time.moment(home));
        // The last ones are kept: with so many, the first are long past.
        let skip = times.len().saturating_sub(MOST);
        Ok(times.split_off(skip))
    }
}

/// The length of an event.
enum Length {
    Days(i64),
    Exact(Millis),
}

impl Length {
    fn after(&self, start: &When, home: &TimeZone) -> Time {
        match self {
            Length::Exact(span) => start.moment(home) + *span,
            Length::Days(days) => {
                let end = start.civil().checked_add(days.days());
                end.map_or(Time(i64::MAX), |end| start.at(end).moment(home))
            }
        }
    }
}

fn civil(moment: Time, zone: &TimeZone) -> DateTime {
    let moment = Timestamp::from_millisecond(moment.0).unwrap_or(Timestamp::MAX);
    zone.to_datetime(moment)
}

/// A planned block of a task that was changed in the calendar.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "drift", rename_all = "snake_case")]
pub enum Drift {
    /// The block now takes place at another time.
    Moved {
        /// The block as it was planned.
        planned: Occurrence,
        /// The start in the calendar now.
        start: Time,
        /// The end in the calendar now.
        end: Time,
    },
    /// The block was deleted.
    Deleted {
        /// The block as it was planned.
        planned: Occurrence,
    },
}

/// Returns the planned blocks that were moved or deleted in the calendar.
pub fn drifts(planned: &[Occurrence], now: &[Occurrence]) -> Vec<Drift> {
    let drift = |planned: &Occurrence| {
        let same = |found: &&Occurrence| {
            found.uid == planned.uid && found.recurrence == planned.recurrence
        };
        match now.iter().find(same) {
            Some(found) if (found.start, found.end) == (planned.start, planned.end) => None,
            Some(found) => {
                let (start, end) = (found.start, found.end);
                Some(Drift::Moved { planned: planned.clone(), start, end })
            }
            None => Some(Drift::Deleted { planned: planned.clone() }),
        }
    };
    planned.iter().filter_map(drift).collect()
}
