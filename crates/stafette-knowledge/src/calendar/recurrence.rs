//! Recurrence rules (RFC 5545, section 3.3.10), expanded in local time.
//!
//! As in most programs, only dates that match the rule count: a start that does not match it is not
//! one of its dates. `SECONDLY` is refused.

use jiff::civil::{Date, DateTime, Time as Clock, Weekday};
use jiff::{Span, ToSpan};
use thiserror::Error;

use super::zone::{When, when};

/// The most periods that are searched for one rule.
const PERIODS: usize = 200_000;

/// The unit in which a rule repeats.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the words of the standard")]
pub enum Frequency {
    Yearly,
    Monthly,
    Weekly,
    Daily,
    Hourly,
    Minutely,
}

/// A parsed recurrence rule.
#[derive(Clone, PartialEq, Debug)]
pub struct Rule {
    frequency: Frequency,
    interval: i32,
    count: Option<usize>,
    until: Option<When>,
    months: Vec<i8>,
    weeks: Vec<i8>,
    year_days: Vec<i16>,
    month_days: Vec<i8>,
    /// Weekdays, each with its number within the month or year, if there is one.
    days: Vec<(Option<i8>, Weekday)>,
    hours: Vec<i8>,
    minutes: Vec<i8>,
    seconds: Vec<i8>,
    positions: Vec<i16>,
    week_start: Weekday,
}

/// The rule cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("the rule `{rule}` cannot be used: {why}")]
pub struct RuleError {
    pub rule: String,
    /// The reason, in a sentence.
    pub why: String,
}

fn weekday(text: &str) -> Option<Weekday> {
    Some(match text {
        "MO" => Weekday::Monday,
        "TU" => Weekday::Tuesday,
        "WE" => Weekday::Wednesday,
        "TH" => Weekday::Thursday,
        "FR" => Weekday::Friday,
        "SA" => Weekday::Saturday,
        "SU" => Weekday::Sunday,
        _ => return None,
    })
}

fn numbers<T: TryFrom<i16>>(text: &str, least: i16, most: i16) -> Option<Vec<T>> {
    let number = |text: &str| {
        let number: i16 = text.strip_prefix('+').unwrap_or(text).parse().ok()?;
        let counted = if least > 0 && number < 0 { -number } else { number };
        let fits = (least..=most).contains(&counted);
        fits.then(|| T::try_from(number).ok()).flatten()
    };
    text.split(',').map(number).collect()
}

impl Rule {
    /// Parses a rule.
    ///
    /// # Errors
    /// Names the part that cannot be used.
    pub fn parse(text: &str) -> Result<Self, RuleError> {
        let wrong = |why: String| RuleError { rule: text.chars().take(200).collect(), why };
        let mut rule = Rule {
            frequency: Frequency::Daily,
            interval: 1,
            count: None,
            until: None,
            months: Vec::new(),
            weeks: Vec::new(),
            year_days: Vec::new(),
            month_days: Vec::new(),
            days: Vec::new(),
            hours: Vec::new(),
            minutes: Vec::new(),
            seconds: Vec::new(),
            positions: Vec::new(),
            week_start: Weekday::Monday,
        };
        let mut frequency = None;
        for part in text.trim().split(';').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').ok_or_else(|| wrong(part.to_owned()))?;
            let value = value.trim().to_ascii_uppercase();
            let set = match name.trim().to_ascii_uppercase().as_str() {
                "FREQ" => {
                    frequency = match value.as_str() {
                        "YEARLY" => Some(Frequency::Yearly),
                        "MONTHLY" => Some(Frequency::Monthly),
                        "WEEKLY" => Some(Frequency::Weekly),
                        "DAILY" => Some(Frequency::Daily),
                        "HOURLY" => Some(Frequency::Hourly),
                        "MINUTELY" => Some(Frequency::Minutely),
                        _ => None,
                    };
                    frequency.map(|_| ())
                }
                "INTERVAL" => {
                    let number = value.parse().ok().filter(|number| (1..=10_000).contains(number));
                    number.map(|number| rule.interval = number)
                }
                "COUNT" => value.parse().ok().map(|count| rule.count = Some(count)),
                "UNTIL" => when(&value, None).map(|until| rule.until = Some(until)),
                "BYMONTH" => numbers(&value, 0, 12).map(|list| rule.months = list),
                "BYWEEKNO" => numbers(&value, 1, 53).map(|list| rule.weeks = list),
                "BYYEARDAY" => numbers(&value, 1, 366).map(|list| rule.year_days = list),
                "BYMONTHDAY" => numbers(&value, 1, 31).map(|list| rule.month_days = list),
                "BYHOUR" => numbers(&value, 0, 23).map(|list| rule.hours = list),
                "BYMINUTE" => numbers(&value, 0, 59).map(|list| rule.minutes = list),
                "BYSECOND" => numbers(&value, 0, 59).map(|list| rule.seconds = list),
                "BYSETPOS" => numbers(&value, 1, 366).map(|list| rule.positions = list),
                "WKST" => weekday(&value).map(|day| rule.week_start = day),
                "BYDAY" => {
                    let day = |text: &str| {
                        let (number, day) = text.split_at_checked(text.len().checked_sub(2)?)?;
                        let number = match number {
                            "" => None,
                            number => Some(*numbers::<i8>(number, 1, 53)?.first()?),
                        };
                        Some((number, weekday(day)?))
                    };
                    let days: Option<Vec<_>> = value.split(',').map(day).collect();
                    days.map(|days| rule.days = days)
                }
                // Parts that the standard does not define are ignored.
                _ => Some(()),
            };
            set.ok_or_else(|| wrong(format!("`{part}` cannot be meant")))?;
        }
        rule.frequency = frequency.ok_or_else(|| wrong("it does not say how often".to_owned()))?;
        for list in [&mut rule.hours, &mut rule.minutes, &mut rule.seconds] {
            list.sort_unstable();
            list.dedup();
        }
        Ok(rule)
    }

    /// Returns the dates from `start` on, in order, until `end` or until there are `limit` of them.
    /// The rule's `UNTIL` is compared in the local time of `start`.
    pub fn expand(&self, start: &When, end: DateTime, limit: usize) -> Vec<DateTime> {
        let first = start.civil();
        let last = self.last(start).map_or(end, |until| until.min(end));
        let rule = self.completed(first);
        let mut found = Vec::new();
        let mut counted = 0;
        let mut period = rule.period_of(first);
        for _ in 0..PERIODS {
            let Some(from) = period else { break };
            if from > last {
                break;
            }
            for date in rule.within(from, first) {
                if date < first {
                    continue;
                }
                if date > last || rule.count.is_some_and(|count| counted >= count) {
                    return found;
                }
                counted += 1;
                found.push(date);
                if found.len() >= limit {
                    return found;
                }
            }
            period = rule.next(from);
        }
        found
    }

    /// Returns the end of the rule, in the local time of `start`.
    fn last(&self, start: &When) -> Option<DateTime> {
        Some(match (self.until.as_ref()?, start) {
            (When::Day(date), _) => date.to_datetime(Clock::constant(23, 59, 59, 0)),
            (When::Clock(clock, Some(utc)), When::Clock(_, Some(zone))) => utc
                .to_ambiguous_zoned(*clock)
                .compatible()
                .ok()?
                .with_time_zone(zone.clone())
                .datetime(),
            (When::Clock(clock, _), _) => *clock,
        })
    }

    /// Returns the rule with the parts that it leaves open taken from its start.
    fn completed(&self, first: DateTime) -> Rule {
        let mut rule = self.clone();
        let free = rule.weeks.is_empty()
            && rule.year_days.is_empty()
            && rule.month_days.is_empty()
            && rule.days.is_empty();
        match rule.frequency {
            Frequency::Yearly if free => {
                if rule.months.is_empty() {
                    rule.months = vec![first.month()];
                }
                rule.month_days = vec![first.day()];
            }
            Frequency::Monthly if free => rule.month_days = vec![first.day()],
            Frequency::Weekly if free => rule.days = vec![(None, first.weekday())],
            _ => {}
        }
        let by_day = !matches!(rule.frequency, Frequency::Hourly | Frequency::Minutely);
        if rule.hours.is_empty() && by_day {
            rule.hours = vec![first.hour()];
        }
        if rule.minutes.is_empty() && rule.frequency != Frequency::Minutely {
            rule.minutes = vec![first.minute()];
        }
        if rule.seconds.is_empty() {
            rule.seconds = vec![first.second()];
        }
        rule
    }

    fn period_of(&self, first: DateTime) -> Option<DateTime> {
        let date = first.date();
        let midnight = |date: Date| date.to_datetime(Clock::midnight());
        Some(match self.frequency {
            Frequency::Yearly => midnight(date.first_of_year()),
            Frequency::Monthly => midnight(date.first_of_month()),
            Frequency::Weekly => {
                let back = date.weekday().since(self.week_start);
                midnight(date.checked_sub(i64::from(back).days()).ok()?)
            }
            Frequency::Daily => midnight(date),
            Frequency::Hourly => first.with().minute(0).second(0).build().ok()?,
            Frequency::Minutely => first.with().second(0).build().ok()?,
        })
    }

    fn next(&self, from: DateTime) -> Option<DateTime> {
        let span: Span = match self.frequency {
            Frequency::Yearly => self.interval.years(),
            Frequency::Monthly => self.interval.months(),
            Frequency::Weekly => self.interval.weeks(),
            Frequency::Daily => self.interval.days(),
            Frequency::Hourly => self.interval.hours(),
            Frequency::Minutely => self.interval.minutes(),
        };
        from.checked_add(span).ok()
    }

    /// Returns the dates of one period, in order.
    fn within(&self, from: DateTime, first: DateTime) -> Vec<DateTime> {
        let days = match self.frequency {
            Frequency::Yearly => i64::from(from.date().days_in_year()),
            Frequency::Monthly => i64::from(from.date().days_in_month()),
            Frequency::Weekly => 7,
            _ => 1,
        };
        let single = |wanted: &[i8], own: i8, finer: bool| match (wanted.is_empty(), finer) {
            (true, _) => vec![own],
            (false, true) => wanted.to_vec(),
            (false, false) => wanted.iter().copied().filter(|one| *one == own).collect(),
        };
        let by_day = !matches!(self.frequency, Frequency::Hourly | Frequency::Minutely);
        let hours = single(&self.hours, from.hour(), by_day);
        let finer = self.frequency != Frequency::Minutely;
        let own_minute = if finer { first.minute() } else { from.minute() };
        let minutes = single(&self.minutes, own_minute, finer);
        let mut found = Vec::new();
        for offset in 0..days {
            let Ok(date) = from.date().checked_add(offset.days()) else { break };
            if !self.allows(date) {
                continue;
            }
            for hour in &hours {
                for minute in &minutes {
                    for second in &self.seconds {
                        if let Ok(clock) = Clock::new(*hour, *minute, *second, 0) {
                            found.push(date.to_datetime(clock));
                        }
                    }
                }
            }
        }
        if self.positions.is_empty() {
            return found;
        }
        let count = i16::try_from(found.len()).unwrap_or(i16::MAX);
        let mut picked: Vec<DateTime> = self
            .positions
            .iter()
            .map(|position| if *position > 0 { position - 1 } else { count + position })
            .filter_map(|place| found.get(usize::try_from(place).ok()?).copied())
            .collect();
        picked.sort_unstable();
        picked.dedup();
        picked
    }

    fn allows(&self, date: Date) -> bool {
        let signed = |list: &[i16], own: i16, of: i16| {
            list.is_empty() || list.contains(&own) || list.contains(&(own - of - 1))
        };
        let wide = |list: &[i8]| list.iter().map(|number| i16::from(*number)).collect::<Vec<_>>();
        if !self.months.is_empty() && !self.months.contains(&date.month()) {
            return false;
        }
        let month = i16::from(date.days_in_month());
        if !signed(&wide(&self.month_days), i16::from(date.day()), month)
            || !signed(&self.year_days, date.day_of_year(), date.days_in_year())
        {
            return false;
        }
        if !self.weeks.is_empty() {
            let (week, of) = self.week(date);
            if !signed(&wide(&self.weeks), week, of) {
                return false;
            }
        }
        self.days.is_empty()
            || self.days.iter().any(|(number, day)| self.is_day(date, *number, *day))
    }

    fn is_day(&self, date: Date, number: Option<i8>, day: Weekday) -> bool {
        if date.weekday() != day {
            return false;
        }
        let Some(number) = number else { return true };
        let (place, of) = match self.frequency {
            Frequency::Monthly => (i16::from(date.day()), i16::from(date.days_in_month())),
            Frequency::Yearly if !self.months.is_empty() => {
                (i16::from(date.day()), i16::from(date.days_in_month()))
            }
            Frequency::Yearly => (date.day_of_year(), date.days_in_year()),
            // A number has no meaning in a week or a day.
            _ => return true,
        };
        let from_begin = (place - 1) / 7 + 1;
        let from_end = -((of - place) / 7 + 1);
        i16::from(number) == from_begin || i16::from(number) == from_end
    }

    /// Returns the number of a date's week and the number of weeks in that year. The first week has
    /// at least four days in the year.
    fn week(&self, date: Date) -> (i16, i16) {
        let into_week = |date: Date| i16::from(date.weekday().since(self.week_start));
        // The fourth day of a week decides to which year the week belongs.
        let middle = |date: Date| date.checked_add(i64::from(3 - into_week(date)).days());
        let Ok(middle) = middle(date) else { return (1, 52) };
        let week = (middle.day_of_year() - 1) / 7 + 1;
        let last = middle.last_of_year();
        let Ok(last_middle) = last.checked_add(i64::from(3 - into_week(last)).days()) else {
            return (week, 52);
        };
        let weeks = match last_middle.year() == middle.year() {
            true => (last_middle.day_of_year() - 1) / 7 + 1,
            false => (last_middle.checked_sub(7.days()).map_or(358, Date::day_of_year) - 1) / 7 + 1,
        };
        (week, weeks)
    }
}
