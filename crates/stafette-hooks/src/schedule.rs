//! Recurring times, with changes between summer and winter time.
//!
//! A named hour is an hour on the wall clock: if the clock skips it, the run comes later by the
//! length of the skip; if the clock shows it twice, the first one counts. With `*` or `*/n`, hours
//! are counted as they pass, so that none is left out or merged.

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use stafette_core::Time;
use stafette_core::workflow::triggers::Cron;
use thiserror::Error;

/// Number of days to search: the 29th of February can be eight years away.
const DAYS: usize = 9 * 366;

/// The time zone does not exist.
#[derive(Debug, Error)]
#[error("there is no time zone `{name}`")]
pub struct BadZone {
    name: String,
}

/// Returns a time zone by its name; that of this machine for `None`.
///
/// # Errors
/// When there is none of that name.
pub fn zone(name: Option<&str>) -> Result<TimeZone, BadZone> {
    match name {
        None => Ok(TimeZone::system()),
        Some(name) => TimeZone::get(name).map_err(|_| BadZone { name: name.to_owned() }),
    }
}

/// Returns the next time after `after`, to the minute.
pub fn next_after(cron: &Cron, zone: &TimeZone, after: Time) -> Option<Time> {
    let after = Timestamp::from_millisecond(after.0).ok()?;
    let found = match cron.is_by_the_hour() {
        true => by_the_hour(cron, zone, after),
        false => by_the_wall(cron, zone, after),
    };
    found.map(|found| Time(found.as_millisecond()))
}

fn by_the_hour(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let minute = after.as_second().div_euclid(60) + 1;
    let mut at = Timestamp::from_second(minute * 60).ok()?;
    for _ in 0..DAYS {
        let day = at.to_zoned(zone.clone()).date();
        let next = day.tomorrow().ok()?.to_zoned(zone.clone()).ok()?.timestamp();
        if !cron.comes_on(day) {
            at = next;
            continue;
        }
        while at < next {
            if cron.comes_at(at.to_zoned(zone.clone()).datetime()) {
                return Some(at);
            }
            at = at.checked_add(1.minute()).ok()?;
        }
    }
    None
}

fn by_the_wall(cron: &Cron, zone: &TimeZone, after: Timestamp) -> Option<Timestamp> {
    let mut day = after.to_zoned(zone.clone()).date().yesterday().ok()?;
    for _ in 0..DAYS {
        if cron.comes_on(day) {
            let moments = cron
                .times_on(day)
                .filter_map(|moment| zone.to_ambiguous_timestamp(moment).compatible().ok());
            // A time that was skipped may come after later ones.
            if let Some(first) = moments.filter(|moment| *moment > after).min() {
                return Some(first);
            }
        }
        day = day.tomorrow().ok()?;
    }
    None
}

/// Returns the last time after `after` and not after `now`.
pub(crate) fn last_due(cron: &Cron, zone: &TimeZone, after: Time, now: Time) -> Option<Time> {
    const MINUTE: i64 = 60_000;
    // Looks back further and further, so that a long absence is not walked through from its start.
    for minutes in [2, 60, 24 * 60, 32 * 24 * 60, 366 * 24 * 60, 9 * 366 * 24 * 60] {
        let from = Time(after.0.max(now.0.saturating_sub(minutes * MINUTE)));
        let mut last = None;
        let mut at = from;
        while let Some(next) = next_after(cron, zone, at).filter(|next| *next <= now) {
            last = Some(next);
            at = next;
        }
        if last.is_some() || from == after {
            return last;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use jiff::civil::DateTime;
    use proptest::collection::btree_set;
    use proptest::prelude::*;

    use super::*;

    fn next(cron: &str, zone_name: &str, after: &str) -> String {
        let cron = Cron::parse(cron).expect("a time");
        let zone = zone(Some(zone_name)).expect("a zone");
        let after = Time::parse(after).expect("a moment");
        next_after(&cron, &zone, after).expect("it comes").rfc3339()
    }

    #[test]
    fn b_16_a_nightly_run_keeps_to_the_clock_on_the_wall() {
        let night = |after| next("30 2 * * *", "Europe/Vienna", after);
        assert_eq!(night("2026-01-10T12:00:00Z"), "2026-01-11T01:30:00.000Z");
        assert_eq!(night("2026-07-10T12:00:00Z"), "2026-07-11T00:30:00.000Z");
        // The clock jumps from 2 to 3: half past two is half past three that night.
        assert_eq!(night("2026-03-28T12:00:00Z"), "2026-03-29T01:30:00.000Z");
        // The clock shows half past two twice: only the first one counts.
        assert_eq!(night("2026-10-24T12:00:00Z"), "2026-10-25T00:30:00.000Z");
        assert_eq!(night("2026-10-25T00:30:00Z"), "2026-10-26T01:30:00.000Z");
    }

    #[test]
    fn b_16_what_comes_every_hour_comes_every_hour() {
        let hourly = |after| next("30 * * * *", "Europe/Vienna", after);
        assert_eq!(hourly("2026-10-25T00:30:00Z"), "2026-10-25T01:30:00.000Z");
        assert_eq!(hourly("2026-03-29T00:30:00Z"), "2026-03-29T01:30:00.000Z");
        assert_eq!(next("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z"), "2104-02-29T00:00:00.000Z");
    }

    #[test]
    fn the_last_one_of_a_long_absence_is_found() {
        let (cron, utc) = (Cron::parse("* * * * *").expect("a time"), TimeZone::UTC);
        let now = Time::parse("2026-11-15T12:00:30Z").expect("a moment");
        let since = Time::parse("2019-01-01T00:00:00Z").expect("a moment");
        let last = last_due(&cron, &utc, since, now).expect("it was due");
        assert_eq!(last.rfc3339(), "2026-11-15T12:00:00.000Z");
        assert_eq!(last_due(&cron, &utc, last, now), None);
        let seldom = Cron::parse("0 0 1 1 *").expect("a time");
        let last = last_due(&seldom, &utc, since, now).expect("it was due");
        assert_eq!(last.rfc3339(), "2026-01-01T00:00:00.000Z");
    }

    /// The fields as sets, and their text.
    #[derive(Clone, Debug)]
    struct Drawn {
        minutes: Vec<i8>,
        hours: Option<Vec<i8>>,
        days: Option<Vec<i8>>,
        months: Option<Vec<i8>>,
        weekdays: Option<Vec<i8>>,
    }

    impl Drawn {
        fn text(&self) -> String {
            let list = |set: &Vec<i8>| set.iter().map(i8::to_string).collect::<Vec<_>>().join(",");
            let or = |set: &Option<Vec<i8>>| set.as_ref().map_or("*".to_owned(), list);
            let rest = [&self.hours, &self.days, &self.months, &self.weekdays].map(or);
            format!("{} {}", list(&self.minutes), rest.join(" "))
        }

        /// Matches by the specification, without any of the code above.
        fn fits(&self, moment: DateTime) -> bool {
            let has =
                |set: &Option<Vec<i8>>, n: i8| set.as_ref().is_none_or(|set| set.contains(&n));
            let (day, weekday) = (moment.day(), moment.weekday().to_sunday_zero_offset());
            let days = match (&self.days, &self.weekdays) {
                (Some(days), Some(weekdays)) => days.contains(&day) || weekdays.contains(&weekday),
                _ => has(&self.days, day) && has(&self.weekdays, weekday),
            };
            self.minutes.contains(&moment.minute())
                && has(&self.hours, moment.hour())
                && has(&self.months, moment.month())
                && days
        }

        /// Searches minute by minute, up to a limit.
        fn brute(&self, zone: &TimeZone, after: Timestamp, minutes: i64) -> Option<Timestamp> {
            let first = after.as_second().div_euclid(60) + 1;
            if self.hours.is_none() {
                return (first..first + minutes).find_map(|minute| {
                    let at = Timestamp::from_second(minute * 60).expect("a moment");
                    self.fits(at.to_zoned(zone.clone()).datetime()).then_some(at)
                });
            }
            let wall = after.to_zoned(zone.clone()).datetime() - 3.hours();
            let wall = wall.with().second(0).subsec_nanosecond(0).build().expect("a minute");
            let fitting =
                (0..minutes + 360).map(|n| wall + n.minutes()).filter(|at| self.fits(*at));
            let moments =
                fitting.filter_map(|at| zone.to_ambiguous_timestamp(at).compatible().ok());
            moments.filter(|at| *at > after).min()
        }
    }

    fn some(range: std::ops::RangeInclusive<i8>) -> impl Strategy<Value = Option<Vec<i8>>> {
        prop_oneof![
            Just(None),
            btree_set(range, 1..4).prop_map(|set| Some(set.into_iter().collect())),
        ]
    }

    fn drawn() -> impl Strategy<Value = Drawn> {
        let minutes = btree_set(0..=59_i8, 1..4).prop_map(|set| set.into_iter().collect());
        (minutes, some(0..=23), some(1..=31), Just(None), some(0..=6)).prop_map(
            |(minutes, hours, days, months, weekdays)| Drawn {
                minutes,
                hours,
                days,
                months,
                weekdays,
            },
        )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]
        #[test]
        fn b_16_the_next_time_is_the_one_that_counting_minutes_finds(
            drawn in drawn(),
            // Around the changes of the clock, and in between.
            near in prop_oneof![
                Just(1_774_746_000_i64), Just(1_792_890_000), Just(1_775_314_800), Just(1_760_000_000),
            ],
            off in -200_000_i64..200_000,
            place in prop_oneof![
                Just("Europe/Vienna"), Just("America/New_York"), Just("Australia/Lord_Howe"),
                Just("Africa/Cairo"), Just("UTC"),
            ],
        ) {
            let cron = Cron::parse(&drawn.text()).expect("a time");
            let zone = zone(Some(place)).expect("a zone");
            let after = Timestamp::from_second(near + off).expect("a moment");
            let minutes = 4 * 24 * 60;
            let expected = drawn.brute(&zone, after, minutes);
            let found = next_after(&cron, &zone, Time(after.as_millisecond()));
            let found = found.map(|found| Timestamp::from_millisecond(found.0).expect("a moment"));
            // A time beyond the search only has to be beyond it.
            match expected {
                Some(expected) => prop_assert_eq!(found, Some(expected), "{}", drawn.text()),
                None => {
                    let counted = after.as_second() + (minutes - 180) * 60;
                    let further = found.is_none_or(|found| found.as_second() > counted);
                    prop_assert!(further, "{found:?}");
                }
            }
        }
    }
}
