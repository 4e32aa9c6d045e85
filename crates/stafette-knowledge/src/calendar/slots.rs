//! Finds free time: blocks for tasks inside working hours, with buffers, before deadlines, the most
//! urgent first, and never over an existing event.
//!
//! A block is a proposal until a person approves it; approving checks again, because the calendar
//! may have changed meanwhile.

use std::collections::BTreeMap;

use jiff::civil::{Date, Time as Clock, Weekday};
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Millis, Priority, Time};
use thiserror::Error;

use super::occurrence::Occurrence;
use crate::graph::NodeKey;

/// The longest span that is searched, in days.
pub const FURTHEST: i64 = 400;

/// The most tasks that are placed together.
pub const MOST: usize = 500;

/// A part of a day in minutes after midnight: start and end.
pub type Hours = (u16, u16);

/// Working hours and the rules for blocks.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Week {
    /// The IANA name of the user's time zone.
    pub zone: String,
    /// The hours of each day, from Monday; the parts of a day are in order.
    pub days: [Vec<Hours>; 7],
    /// The time that stays free before and after every other event.
    pub buffer: Millis,
    /// The shortest useful block.
    pub least: Millis,
    /// The longest block; longer tasks are split.
    pub most: Millis,
    /// Blocks begin at multiples of this within an hour.
    pub step: Millis,
}

impl Default for Week {
    fn default() -> Self {
        let day = || vec![(9 * 60, 12 * 60), (13 * 60, 17 * 60)];
        Week {
            zone: "UTC".into(),
            days: [day(), day(), day(), day(), day(), Vec::new(), Vec::new()],
            buffer: Millis::minutes(10),
            least: Millis::minutes(30),
            most: Millis::hours(3),
            step: Millis::minutes(15),
        }
    }
}

/// A task that needs time in the calendar.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Wanted {
    /// The key of the task.
    pub task: NodeKey,
    /// The title of the task.
    pub title: String,
    /// The amount of time that the task needs.
    pub length: Millis,
    /// The urgency of the task.
    #[serde(default)]
    pub priority: Priority,
    /// The moment by which it must be done; `None` without a deadline.
    #[serde(default)]
    pub deadline: Option<Time>,
    /// The earliest start; `None` if it can begin immediately.
    #[serde(default)]
    pub not_before: Option<Time>,
    /// The tasks that must be done first.
    #[serde(default)]
    pub after: Vec<NodeKey>,
}

/// A block of time that is proposed for a task.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Block {
    /// The task that the block is for.
    pub task: NodeKey,
    /// The title of the task.
    pub title: String,
    /// The start of the block.
    pub start: Time,
    /// The end of the block.
    pub end: Time,
}

/// A task for which no time was found.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct UnplacedTask {
    /// The key of the task.
    pub task: NodeKey,
    /// The reason, in a sentence.
    pub why: String,
}

/// Blocks that wait for approval.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The proposed blocks, by start.
    pub blocks: Vec<Block>,
    /// The tasks for which no time was found.
    pub homeless: Vec<UnplacedTask>,
}

/// The search for blocks cannot start.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum SlotError {
    #[error("the time zone `{zone}` is not known")]
    Zone { zone: String },
    #[error("the hours of day {day} overlap, end before they begin, or go beyond the day")]
    Hours {
        /// The day of the week, 1 for Monday.
        day: usize,
    },
    #[error(
        "the shortest block must not be longer than the longest, and the step is 1 min or more"
    )]
    Lengths,
    #[error("{count} tasks are too many to place together, the limit is {MOST}")]
    TooMany { count: usize },
}

/// Start and end, in milliseconds.
type Span = (i64, i64);

/// Returns a length in milliseconds.
fn ms(length: Millis) -> i64 {
    i64::try_from(length.0).unwrap_or(i64::MAX)
}

impl Week {
    fn check(&self) -> Result<TimeZone, SlotError> {
        let zone =
            TimeZone::get(&self.zone).map_err(|_| SlotError::Zone { zone: self.zone.clone() })?;
        for (day, pieces) in (1..).zip(&self.days) {
            let ordered = pieces.windows(2).all(|pair| pair[0].1 <= pair[1].0);
            if !ordered || pieces.iter().any(|(from, to)| from >= to || *to > 24 * 60) {
                return Err(SlotError::Hours { day });
            }
        }
        let lengths =
            self.least.0 > 0 && self.least <= self.most && self.step >= Millis::minutes(1);
        if lengths { Ok(zone) } else { Err(SlotError::Lengths) }
    }

    /// Returns the next moment at which a block may begin.
    fn stepped(&self, from: i64) -> i64 {
        let step = ms(self.step);
        from.div_euclid(step) * step + i64::from(from.rem_euclid(step) != 0) * step
    }

    /// Returns the parts of working time between two moments that no event takes, without buffers.
    ///
    /// # Errors
    /// If the working hours are invalid.
    pub fn free(
        &self,
        busy: &[Occurrence],
        from: Time,
        to: Time,
    ) -> Result<Vec<(Time, Time)>, SlotError> {
        let mut open = self.open(&self.check()?, from, to);
        for event in busy.iter().filter(|event| event.busy) {
            take(&mut open, (event.start.0, event.end.0), 0);
        }
        Ok(open.into_iter().map(|(from, to)| (Time(from), Time(to))).collect())
    }

    /// Returns the working time between two moments.
    fn open(&self, zone: &TimeZone, from: Time, to: Time) -> Vec<Span> {
        let mut open = Vec::new();
        let date = |moment: Time| -> Option<Date> {
            Some(zone.to_datetime(Timestamp::from_millisecond(moment.0).ok()?).date())
        };
        let (Some(mut day), Some(last)) = (date(from), date(to)) else { return open };
        for _ in 0..=FURTHEST {
            let place = match day.weekday() {
                Weekday::Monday => 0,
                other => usize::try_from(other.since(Weekday::Monday)).unwrap_or(0),
            };
            for (begin, end) in &self.days[place] {
                let moment = |minutes: u16| {
                    let clock = day.to_datetime(Clock::midnight()) + i64::from(minutes).minutes();
                    let zoned = zone.to_ambiguous_zoned(clock).compatible().ok()?;
                    Some(zoned.timestamp().as_millisecond())
                };
                if let (Some(begin), Some(end)) = (moment(*begin), moment(*end)) {
                    let piece = (begin.max(from.0), end.min(to.0));
                    if piece.0 < piece.1 {
                        open.push(piece);
                    }
                }
            }
            match day.tomorrow() {
                Ok(next) if day < last => day = next,
                _ => break,
            }
        }
        open
    }
}

/// Removes a span, with a buffer around it, from the open time.
fn take(open: &mut Vec<Span>, (from, to): Span, buffer: i64) {
    let (from, to) = (from.saturating_sub(buffer), to.saturating_add(buffer));
    let mut left = Vec::with_capacity(open.len() + 1);
    for (begin, end) in open.drain(..) {
        if to <= begin || from >= end {
            left.push((begin, end));
            continue;
        }
        if begin < from {
            left.push((begin, from));
        }
        if to < end {
            left.push((to, end));
        }
    }
    *open = left;
}

/// Proposes blocks between two moments around busy time.
///
/// # Errors
/// If the working hours are invalid or there are too many tasks.
pub fn propose(
    wanted: &[Wanted],
    busy: &[Occurrence],
    week: &Week,
    (from, to): (Time, Time),
) -> Result<Plan, SlotError> {
    if wanted.len() > MOST {
        return Err(SlotError::TooMany { count: wanted.len() });
    }
    let zone = week.check()?;
    let buffer = ms(week.buffer);
    let mut open = week.open(&zone, from, to);
    for event in busy.iter().filter(|event| event.busy) {
        take(&mut open, (event.start.0, event.end.0), buffer);
    }
    let mut order: Vec<&Wanted> = wanted.iter().collect();
    order.sort_by_key(|task| {
        (std::cmp::Reverse(task.priority), task.deadline.unwrap_or(Time(i64::MAX)))
    });
    let mut plan = Plan::default();
    let mut done: BTreeMap<&NodeKey, Option<Time>> = BTreeMap::new();
    // Each round places the most urgent task whose predecessors have been placed.
    while !order.is_empty() {
        let ready = |task: &&Wanted| {
            let known = |key: &NodeKey| wanted.iter().any(|other| other.task == *key);
            task.after.iter().all(|key| done.contains_key(key) || !known(key))
        };
        let Some(place) = order.iter().position(ready) else {
            let circle = |task: &Wanted| UnplacedTask {
                task: task.task.clone(),
                why: "it waits for itself, by way of what must be done first".to_owned(),
            };
            plan.homeless.extend(order.into_iter().map(circle));
            break;
        };
        let task = order.remove(place);
        let ended = match place_one(&open, task, &done, week) {
            Ok(blocks) => {
                let end = blocks.iter().map(|block| block.end).max();
                for block in &blocks {
                    take(&mut open, (block.start.0, block.end.0), buffer);
                }
                plan.blocks.extend(blocks);
                end
            }
            Err(why) => {
                plan.homeless.push(UnplacedTask { task: task.task.clone(), why });
                None
            }
        };
        done.insert(&task.task, ended);
    }
    plan.blocks.sort_by(|a, b| (a.start, &a.task).cmp(&(b.start, &b.task)));
    Ok(plan)
}

/// Returns the earliest blocks that are long enough together, or the reason why there are none.
fn place_one(
    open: &[Span],
    task: &Wanted,
    done: &BTreeMap<&NodeKey, Option<Time>>,
    week: &Week,
) -> Result<Vec<Block>, String> {
    let (earliest, length) = (earliest(task, done)?, ms(task.length));
    if length == 0 {
        return Err("it has no length".to_owned());
    }
    let latest = task.deadline.map_or(i64::MAX, |time| time.0);
    let rooms: Vec<Span> = open
        .iter()
        .map(|(begin, end)| (week.stepped((*begin).max(earliest)), (*end).min(latest)))
        .collect();
    // In one piece if possible: interruptions cost time.
    let whole = rooms.iter().find(|(from, until)| until.saturating_sub(*from) >= length);
    let (pieces, left) = match whole.filter(|_| length <= ms(week.most)) {
        Some((from, _)) => (vec![(*from, length)], 0),
        None => pieces(&rooms, length, week),
    };
    let block = |(from, length): (i64, i64)| Block {
        task: task.task.clone(),
        title: task.title.clone(),
        start: Time(from),
        end: Time(from + length),
    };
    let left = Millis(u64::try_from(left).unwrap_or(0));
    match (left, task.deadline) {
        (Millis(0), _) => Ok(pieces.into_iter().map(block).collect()),
        (left, Some(deadline)) => Err(format!("{left} of it find no place before {deadline}")),
        (left, None) => Err(format!("{left} of it find no place")),
    }
}

/// Returns the earliest start of a task, given the tasks that must be done first.
fn earliest(task: &Wanted, done: &BTreeMap<&NodeKey, Option<Time>>) -> Result<i64, String> {
    let mut earliest = task.not_before.map_or(i64::MIN, |time| time.0);
    for key in &task.after {
        match done.get(key) {
            Some(None) => return Err(format!("{key}, which must be done first, has no place")),
            Some(Some(end)) => earliest = earliest.max(end.0),
            None => {}
        }
    }
    Ok(earliest)
}

/// Splits a task: returns the parts with their lengths, and the time that found no room.
fn pieces(rooms: &[Span], length: i64, week: &Week) -> (Vec<(i64, i64)>, i64) {
    let (shortest, mut left) = (ms(week.least), length);
    let mut pieces = Vec::new();
    for (mut from, until) in rooms.iter().copied() {
        while left > 0 {
            let mut room = until.saturating_sub(from).min(ms(week.most)).min(left);
            // A remainder that is shorter than the shortest block still gets a block.
            let least = shortest.min(left);
            if room < least {
                break;
            }
            // The remainder must not be too short for a block.
            let rest = left - room;
            if rest > 0 && rest < shortest && room - (shortest - rest) >= least {
                room -= shortest - rest;
            }
            pieces.push((from, room));
            left -= room;
            from = week.stepped(from + room + ms(week.buffer));
        }
    }
    (pieces, left)
}

/// Returns the first event that a block would overlap. Approving a block checks this against the
/// calendar as it is then.
pub fn overlap<'a>(block: &Block, busy: &'a [Occurrence]) -> Option<&'a Occurrence> {
    busy.iter().find(|event| event.busy && event.start < block.end && block.start < event.end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn time(text: &str) -> Time {
        Time::parse(text).expect("a moment")
    }

    fn week() -> Week {
        Week { zone: "Europe/Berlin".into(), ..Week::default() }
    }

    fn want(id: &str, minutes: u64, priority: Priority) -> Wanted {
        Wanted {
            task: NodeKey::task(id),
            title: id.into(),
            length: Millis::minutes(minutes),
            priority,
            deadline: None,
            not_before: None,
            after: Vec::new(),
        }
    }

    fn event(start: Time, end: Time) -> Occurrence {
        Occurrence {
            entry: "e.ics".into(),
            uid: "e".into(),
            recurrence: None,
            title: "Meeting".into(),
            notes: String::new(),
            start,
            end,
            all_day: false,
            busy: true,
            task: None,
        }
    }

    /// Returns Monday to Friday of a week in November.
    fn span() -> (Time, Time) {
        (time("2026-11-16T00:00:00Z"), time("2026-11-21T00:00:00Z"))
    }

    fn shown(plan: &Plan) -> Vec<String> {
        let show = |block: &Block| {
            let (start, end) = (block.start.rfc3339(), block.end.rfc3339());
            format!("{} {}-{}", block.title, &start[8..16], &end[11..16])
        };
        plan.blocks.iter().map(show).collect()
    }

    #[test]
    fn s1_09_urgent_tasks_come_first_and_meetings_keep_their_buffer() {
        let busy = [event(time("2026-11-16T09:00:00Z"), time("2026-11-16T10:00:00Z"))];
        let wanted = [want("later", 60, Priority::Low), want("now", 50, Priority::Critical)];
        let plan = propose(&wanted, &busy, &week(), span()).expect("a plan");
        // 9:00 in Berlin is 8:00 UTC; the meeting is from 10:00 to 11:00 there.
        assert_eq!(shown(&plan), ["now 16T08:00-08:50", "later 16T12:00-13:00"]);
    }

    #[test]
    fn s1_09_a_long_task_is_cut_and_a_deadline_is_kept_or_named() {
        let mut long = want("long", 300, Priority::Medium);
        let plan = propose(std::slice::from_ref(&long), &[], &week(), span()).expect("a plan");
        assert_eq!(shown(&plan), ["long 16T08:00-11:00", "long 16T12:00-14:00"]);
        long.deadline = Some(time("2026-11-16T12:30:00Z"));
        let plan = propose(&[long], &[], &week(), span()).expect("a plan");
        assert!(plan.blocks.is_empty());
        assert_eq!(
            plan.homeless[0].why,
            "1h 30m of it find no place before 2026-11-16T12:30:00.000Z"
        );
    }

    #[test]
    fn s1_09_what_must_be_done_first_is_first_and_a_circle_is_told() {
        let mut second = want("second", 60, Priority::Critical);
        second.after = vec![NodeKey::task("first")];
        let first = want("first", 60, Priority::Low);
        let plan = propose(&[second.clone(), first.clone()], &[], &week(), span()).expect("a plan");
        assert_eq!(shown(&plan), ["first 16T08:00-09:00", "second 16T09:15-10:15"]);
        let mut first = first;
        first.after = vec![NodeKey::task("second")];
        let plan = propose(&[second, first], &[], &week(), span()).expect("a plan");
        assert_eq!((plan.blocks.len(), plan.homeless.len()), (0, 2));
    }

    #[test]
    fn s1_09_weekends_and_nights_stay_free() {
        let weekend = (time("2026-11-21T00:00:00Z"), time("2026-11-22T20:00:00Z"));
        let plan =
            propose(&[want("a", 30, Priority::High)], &[], &week(), weekend).expect("a plan");
        assert!(plan.blocks.is_empty());
        let odd = Week { zone: "Mars/Base".into(), ..Week::default() };
        assert!(propose(&[], &[], &odd, weekend).is_err());
        let mut odd = week();
        odd.days[0] = vec![(600, 500)];
        assert_eq!(propose(&[], &[], &odd, weekend), Err(SlotError::Hours { day: 1 }));
    }

    #[test]
    fn s1_09_a_block_is_looked_at_again_when_it_is_approved() {
        let plan = propose(&[want("a", 60, Priority::High)], &[], &week(), span()).expect("a plan");
        assert!(overlap(&plan.blocks[0], &[]).is_none());
        let meeting = event(time("2026-11-16T08:30:00Z"), time("2026-11-16T08:45:00Z"));
        assert!(overlap(&plan.blocks[0], &[meeting]).is_some());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(128))]

        #[test]
        fn s1_09_nothing_is_ever_booked_twice_or_outside_of_hours(
            lengths in prop::collection::vec((1u64..400, 0u8..4, prop::option::of(0i64..120)), 1..12),
            meetings in prop::collection::vec((0i64..110, 1i64..300), 0..10),
        ) {
            let (from, to) = span();
            let priorities = [Priority::Low, Priority::Medium, Priority::High, Priority::Critical];
            let wanted: Vec<Wanted> = lengths.iter().enumerate().map(|(id, (minutes, rank, hours))| {
                let mut want = want(&format!("t{id}"), *minutes, priorities[usize::from(*rank)]);
                want.deadline = hours.map(|hours| Time(from.0 + hours * 3_600_000));
                want
            }).collect();
            let busy: Vec<Occurrence> = meetings.iter().map(|(hour, minutes)| {
                let start = Time(from.0 + hour * 3_600_000);
                event(start, Time(start.0 + minutes * 60_000))
            }).collect();
            let week = week();
            let plan = propose(&wanted, &busy, &week, (from, to)).expect("a plan");
            let zone = week.check().expect("a zone");
            let open = week.open(&zone, from, to);
            for (place, block) in plan.blocks.iter().enumerate() {
                prop_assert!(overlap(block, &busy).is_none());
                prop_assert!(open.iter().any(|(a, b)| *a <= block.start.0 && block.end.0 <= *b));
                for other in &plan.blocks[place + 1..] {
                    prop_assert!(other.start >= block.end, "{block:?} {other:?}");
                }
            }
            for want in &wanted {
                let own = plan.blocks.iter().filter(|block| block.task == want.task);
                let (mut sum, mut last) = (0, Time(0));
                for block in own {
                    sum += block.end.since(block.start).0;
                    last = last.max(block.end);
                }
                let homeless = plan.homeless.iter().any(|none| none.task == want.task);
                prop_assert_eq!(sum, if homeless { 0 } else { want.length.0 });
                prop_assert!(homeless || want.deadline.is_none_or(|deadline| last <= deadline));
            }
        }
    }
}
