//! Recurring times, in the five fields of cron.

use jiff::civil::{Date, DateTime};
use thiserror::Error;

/// A recurring time. Handles calendars, but no time zones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// True if a day has to match both day fields, not one of them: at least one is `*`.
    both: bool,
    /// True if the hours are `*` or `*/n`: counted in elapsed hours, not by the wall clock.
    every: bool,
}

/// The text is not a valid schedule.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum NotCron {
    #[error("`{text}` is not a time: write five fields such as `0 3 * * 1-5`, or `@daily`")]
    Shape { text: String },
    #[error("`{field}` is not a {what}: write numbers from {least} to {most}")]
    Field {
        field: String,
        /// The kind of value that is expected, such as a day of the week.
        what: &'static str,
        least: u32,
        most: u32,
    },
    /// There is no such day, such as the 30th of February.
    #[error("`{text}` never comes: no month that it names has such a day")]
    Never { text: String },
}

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// The maximum number of days of each month.
const LONGEST: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

struct Field {
    what: &'static str,
    least: u32,
    most: u32,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field { what: "minute", least: 0, most: 59, names: &[] },
    Field { what: "hour", least: 0, most: 23, names: &[] },
    Field { what: "day of the month", least: 1, most: 31, names: &[] },
    Field { what: "month", least: 1, most: 12, names: &MONTHS },
    Field { what: "day of the week", least: 0, most: 7, names: &WEEKDAYS },
];

impl Cron {
    /// Parses five fields, or a word such as `@daily`.
    ///
    /// # Errors
    /// The text is neither, or names a day that no month has.
    pub fn parse(text: &str) -> Result<Self, NotCron> {
        let fields = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        let parts: Vec<&str> = fields.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = parts.as_slice() else {
            return Err(NotCron::Shape { text: text.to_owned() });
        };
        let mut sunday = FIELDS[4].read(weekdays)?;
        if sunday & (1 << 7) != 0 {
            sunday = (sunday | 1) & !(1 << 7);
        }
        let cron = Cron {
            minutes: FIELDS[0].read(minutes)?,
            hours: FIELDS[1].read(hours)?,
            days: FIELDS[2].read(days)?,
            months: FIELDS[3].read(months)?,
            weekdays: sunday,
            both: days.starts_with('*') || weekdays.starts_with('*'),
            every: hours.starts_with('*'),
        };
        let comes = |month: u32| {
            has(cron.months, month) && cron.days & under(LONGEST[month as usize - 1]) != 0
        };
        match cron.both && !(1..=12).any(comes) {
            true => Err(NotCron::Never { text: text.to_owned() }),
            false => Ok(cron),
        }
    }

    /// True if the hours are counted as they elapse (`*`, `*/2`), so that a change of the clock
    /// neither skips nor repeats one.
    pub fn is_by_the_hour(&self) -> bool {
        self.every
    }

    /// True if it occurs on this day.
    pub fn comes_on(&self, date: Date) -> bool {
        let number = |n: i8| u32::try_from(n).unwrap_or(0);
        let day = has(self.days, number(date.day()));
        let weekday = has(self.weekdays, number(date.weekday().to_sunday_zero_offset()));
        let fits = if self.both { day && weekday } else { day || weekday };
        has(self.months, number(date.month())) && fits
    }

    /// True if it occurs at this minute.
    pub fn comes_at(&self, moment: DateTime) -> bool {
        let number = |n: i8| u32::try_from(n).unwrap_or(0);
        has(self.minutes, number(moment.minute()))
            && has(self.hours, number(moment.hour()))
            && self.comes_on(moment.date())
    }

    /// Returns the wall-clock times on a day at which it occurs.
    pub fn times_on(&self, date: Date) -> impl Iterator<Item = DateTime> + '_ {
        let small = |n: u32| i8::try_from(n).unwrap_or(0);
        let hours = (0..24).filter(|hour| has(self.hours, *hour));
        hours.flat_map(move |hour| {
            let minutes = (0..60).filter(|minute| has(self.minutes, *minute));
            minutes.map(move |minute| date.at(small(hour), small(minute), 0, 0))
        })
    }
}

fn has(set: u64, number: u32) -> bool {
    set & (1 << number) != 0
}

/// Returns all numbers from 1 to `most` as a bit set.
fn under(most: u32) -> u64 {
    (1..=most).fold(0, |set, number| set | 1 << number)
}

impl Field {
    fn read(&self, text: &str) -> Result<u64, NotCron> {
        let mut set = 0;
        for part in text.split(',') {
            set |= self.part(part).ok_or_else(|| NotCron::Field {
                field: part.to_owned(),
                what: self.what,
                least: self.least,
                most: self.most,
            })?;
        }
        Ok(set)
    }

    /// Parses `7`, `1-5` or `*`, each with or without `/2`.
    fn part(&self, text: &str) -> Option<u64> {
        let (range, step) = match text.split_once('/') {
            Some((range, step)) => (range, Some(step.parse::<u32>().ok().filter(|n| *n > 0)?)),
            None => (text, None),
        };
        let (from, to) = match (range, range.split_once('-')) {
            // Day 7 is Sunday again, so that `*` ends before it.
            ("*", _) => (
                self.least,
                self.most.min(if self.least == 0 && self.most == 7 { 6 } else { self.most }),
            ),
            (_, Some((from, to))) => (self.number(from)?, self.number(to)?),
            (one, None) => {
                let one = self.number(one)?;
                (one, if step.is_some() { self.most } else { one })
            }
        };
        let step = usize::try_from(step.unwrap_or(1)).ok()?;
        (from <= to).then(|| (from..=to).step_by(step).fold(0, |set, number| set | 1 << number))
    }

    fn number(&self, text: &str) -> Option<u32> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let number = match named {
            // Months count from one, days of the week from zero.
            Some(index) => u32::try_from(index).ok()? + self.least,
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => text.parse().ok()?,
            None => return None,
        };
        (self.least..=self.most).contains(&number).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> DateTime {
        text.parse().expect("a moment")
    }

    #[test]
    fn b_16_cron_fields_take_lists_ranges_steps_and_names() {
        let nights = Cron::parse("30 3 * * mon-FRI").expect("it is one");
        assert!(nights.comes_at(at("2026-11-13T03:30")), "a Friday");
        assert!(!nights.comes_at(at("2026-11-14T03:30")), "a Saturday");
        let often = Cron::parse("*/20,5 9-17/4 1,15 jan,7 *").expect("it is one");
        let times: Vec<_> = often.times_on("2026-07-15".parse().expect("a day")).collect();
        assert_eq!(times.len(), 4 * 3, "{times:?}");
        assert_eq!(times[1], at("2026-07-15T09:05"));
        assert_eq!(Cron::parse("0 0 * * 7"), Cron::parse("0 0 * * sun"));
        assert_eq!(Cron::parse("@weekly"), Cron::parse("0 0 * * 0"));
        assert_eq!(Cron::parse("0 0 * * 5-7").expect("one").weekdays, 0b110_0001);
    }

    #[test]
    fn b_16_two_kinds_of_days_are_either_when_neither_is_every_day() {
        let either = Cron::parse("0 0 13 * fri").expect("it is one");
        assert!(either.comes_on("2026-11-13".parse().expect("a day")));
        assert!(either.comes_on("2026-11-20".parse().expect("a day")), "a Friday, not the 13th");
        assert!(!either.comes_on("2026-11-21".parse().expect("a day")));
        let both = Cron::parse("0 0 */2 * fri").expect("it is one");
        assert!(!both.comes_on("2026-11-20".parse().expect("a day")), "a Friday, but even");
    }

    #[test]
    fn what_is_no_time_is_named() {
        for wrong in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "* 24 * * *",
            "* * 0 * *",
            "* * * 13 *",
            "* * * * 8",
            "5-1 * * * *",
            "*/0 * * * *",
            "a * * * *",
            "1- * * * *",
            "@often",
            "0 0 30 2 *",
            "0 0 31 apr,jun *",
            "+5 * * * *",
        ] {
            assert!(Cron::parse(wrong).is_err(), "{wrong}");
        }
        let said = Cron::parse("0 25 * * *").expect_err("no such hour").to_string();
        assert_eq!(said, "`25` is not a hour: write numbers from 0 to 23");
        assert!(Cron::parse("0 0 29 2 *").is_ok(), "it comes, if seldom");
    }
}
