//! Pending notifications and their schedule. The caller passes the time, and nothing is sent from
//! here.

use std::collections::VecDeque;

use jiff::{Timestamp, ToSpan};
use serde::{Deserialize, Serialize};
use stafette_core::workflow::notify::{News, Notify, Quiet, minutes_of};
use stafette_core::{Millis, Time};
use uuid::Uuid;

use super::alarm::Told;
use super::channel::{Channel, Failed};
use super::note::Note;
use crate::schedule;

/// Maximum number of held notes; the oldest are dropped first, and counted.
const HELD: usize = 200;

/// Maximum number of notes in a message; the rest is counted.
const NOTES: usize = 20;

/// Maximum number of messages being sent.
const OUT: usize = 256;

/// Time after which a message is dropped.
const DEADLINE: Millis = Millis::hours(6);

/// First and longest wait between two attempts.
const FIRST_PAUSE: Millis = Millis::seconds(2);
const LONGEST_PAUSE: Millis = Millis::minutes(5);

const HOUR: Millis = Millis::hours(1);

/// Pending notifications, saved across restarts.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct Desk {
    /// Position up to which events were processed.
    pub(super) cursor: Option<u64>,
    /// State of the alerts as last reported.
    pub(super) alerts: Told,
    /// Notes that wait to be part of a message.
    held: Vec<Note>,
    /// Number of notes that were dropped for lack of room.
    dropped: usize,
    /// Messages that are being sent.
    out: Vec<Sending>,
    /// Times of the messages of the last hour.
    made: VecDeque<Time>,
}

/// A message with one or several notes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Message {
    /// The same message has the same id, however often it is sent.
    pub(super) id: Uuid,
    pub(super) at: Time,
    pub(super) notes: Vec<Note>,
    /// Number of further notes that were left out.
    pub(super) more: usize,
    /// Address to open, if no note names one.
    pub(super) link: Option<String>,
}

/// A message that is being sent on one channel.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct Sending {
    pub(super) message: Message,
    pub(super) channel: Channel,
    tries: u32,
    next: Time,
    until: Time,
}

impl Sending {
    pub(super) fn new(message: Message, channel: Channel, now: Time) -> Self {
        Sending { message, channel, tries: 0, next: now, until: now + DEADLINE }
    }
}

impl Message {
    pub(super) fn test(now: Time, link: Option<String>) -> Self {
        Message { id: Uuid::now_v7(), at: now, notes: Vec::new(), more: 0, link }
    }

    fn of(now: Time, mut notes: Vec<Note>, dropped: usize) -> Self {
        let more = notes.len().saturating_sub(NOTES);
        let names: Vec<u8> = notes.iter().flat_map(|note| *note.id.as_bytes()).collect();
        // Keeps the newest notes, in order.
        notes.drain(..more);
        let id = Uuid::new_v5(&Uuid::NAMESPACE_OID, &names);
        Message { id, at: now, notes, more: more + dropped, link: None }
    }

    /// Returns the subject in one line.
    pub(super) fn title(&self) -> String {
        match (self.notes.as_slice(), self.more) {
            ([], 0) => "Stafette can reach you".to_owned(),
            ([one], 0) => one.title.clone(),
            (notes, more) => format!("{} things happened", notes.len() + more),
        }
    }

    pub(super) fn text(&self) -> String {
        match (self.notes.as_slice(), self.more) {
            ([], 0) => "This is a test.".to_owned(),
            ([one], 0) => one.text.clone(),
            (notes, more) => {
                let mut lines: Vec<String> = notes.iter().map(|note| note.title.clone()).collect();
                if more > 0 {
                    lines.push(format!("and {more} more"));
                }
                lines.join("\n")
            }
        }
    }

    /// Returns the address to open.
    pub(super) fn link(&self) -> Option<&str> {
        let link = self.notes.iter().rev().find_map(|note| note.link.as_deref());
        link.or(self.link.as_deref())
    }

    /// Returns true if a person has to act.
    pub(super) fn is_urgent(&self) -> bool {
        self.notes.iter().any(|note| matches!(note.news, News::Question | News::Budget))
    }
}

impl Desk {
    pub(super) fn hold(&mut self, note: Note) {
        if self.held.iter().any(|held| held.id == note.id) {
            return;
        }
        if self.held.len() >= HELD {
            self.held.remove(0);
            self.dropped += 1;
        }
        self.held.push(note);
    }

    /// Drops everything; returns true if there was anything.
    pub(super) fn forget(&mut self) -> bool {
        let was = !self.held.is_empty() || !self.out.is_empty();
        self.held.clear();
        self.out.clear();
        self.dropped = 0;
        was
    }

    /// Builds a message of the notes that may be sent by now; returns true if it did.
    pub(super) fn gather(&mut self, now: Time, notify: &Notify) -> bool {
        self.made.retain(|made| now.since(*made) < HOUR);
        if self.ripe(now, notify).is_none_or(|ripe| ripe > now) {
            return false;
        }
        let passes = passes(now, notify);
        let (told, held) = std::mem::take(&mut self.held).into_iter().partition(|n| passes(n.news));
        self.held = held;
        let dropped = if self.held.is_empty() { std::mem::take(&mut self.dropped) } else { 0 };
        let message = Message::of(now, told, dropped);
        for channel in Channel::of(notify) {
            if self.out.len() >= OUT {
                self.out.remove(0);
            }
            self.out.push(Sending::new(message.clone(), channel, now));
        }
        self.made.push_back(now);
        true
    }

    /// Returns the time when a held note may be sent.
    fn ripe(&self, now: Time, notify: &Notify) -> Option<Time> {
        let passes = passes(now, notify);
        let first = self.held.iter().filter(|note| passes(note.news)).map(|note| note.at).min();
        let quiet = notify.quiet.as_ref().and_then(|quiet| ends(quiet, now));
        let ripe = match first {
            Some(at) => at + notify.batch,
            // Held back for the quiet hours.
            None if !self.held.is_empty() => quiet?,
            None => return None,
        };
        let most = usize::try_from(notify.per_hour.max(1)).unwrap_or(usize::MAX);
        let room = match self.made.len().checked_sub(most) {
            None => now,
            Some(over) => self.made[over] + HOUR,
        };
        Some(ripe.max(room))
    }

    /// Returns the messages to be sent by now.
    pub(super) fn due(&self, now: Time) -> Vec<Sending> {
        self.out.iter().filter(|sending| sending.next <= now).cloned().collect()
    }

    /// Returns the time of the next action.
    pub(super) fn wake(&self, now: Time, notify: &Notify) -> Option<Time> {
        let out = self.out.iter().map(|sending| sending.next).min();
        out.into_iter().chain(self.ripe(now, notify)).min()
    }

    /// Records the result of an attempt.
    pub(super) fn settle(&mut self, tried: &Sending, outcome: Result<(), Failed>, now: Time) {
        let is_it = |sending: &Sending| {
            sending.message.id == tried.message.id && sending.channel == tried.channel
        };
        let Some(at) = self.out.iter().position(is_it) else { return };
        let sending = &mut self.out[at];
        let last = match outcome {
            Ok(()) => true,
            Err(failed) => {
                sending.tries += 1;
                let doubled = FIRST_PAUSE.0.saturating_mul(1 << sending.tries.min(16) >> 1);
                sending.next = now + Millis(doubled.min(LONGEST_PAUSE.0));
                let over = failed.for_good || sending.next > sending.until;
                if over {
                    let channel = sending.channel.word();
                    tracing::error!(channel, why = failed.why, "given up on a message");
                }
                over
            }
        };
        if last {
            self.out.remove(at);
        }
    }
}

/// Returns a filter of the notifications that may be sent now.
fn passes(now: Time, notify: &Notify) -> impl Fn(News) -> bool + '_ {
    let quiet = notify.quiet.as_ref().filter(|quiet| ends(quiet, now).is_some());
    move |news| quiet.is_none_or(|quiet| quiet.except.contains(&news))
}

/// Returns the end of the quiet hours, if it is one of them.
fn ends(quiet: &Quiet, now: Time) -> Option<Time> {
    let (from, to) = (minutes_of(&quiet.from)?, minutes_of(&quiet.to)?);
    let zone = schedule::zone(quiet.timezone.as_deref()).ok()?;
    let here = Timestamp::from_millisecond(now.0).ok()?.to_zoned(zone.clone());
    let minute =
        u16::from(here.hour().unsigned_abs()) * 60 + u16::from(here.minute().unsigned_abs());
    let inside = match from <= to {
        true => (from..to).contains(&minute),
        false => minute >= from || minute < to,
    };
    if !inside {
        return None;
    }
    let day = if minute < to { here.date() } else { here.date().checked_add(1.day()).ok()? };
    let (hours, minutes) = (i8::try_from(to / 60).ok()?, i8::try_from(to % 60).ok()?);
    let end = zone.to_ambiguous_timestamp(day.at(hours, minutes, 0, 0)).compatible().ok()?;
    // Never in the past: on a change of the clock, an hour may occur twice.
    Some(Time(end.as_millisecond()).max(now + Millis(1)))
}

#[cfg(test)]
mod tests {
    use stafette_core::RunId;

    use super::*;

    fn at(text: &str) -> Time {
        Time::parse(text).expect("a moment")
    }

    fn note(news: News, at: Time, n: u64) -> Note {
        let id = Uuid::from_u64_pair(1, n);
        let title = format!("{news:?} {n}").to_lowercase();
        Note { id, news, at, run: Some(RunId(id)), title, text: "text".into(), link: None }
    }

    fn wanted() -> Notify {
        Notify {
            desktop: true,
            quiet: Some(Quiet {
                from: "22:00".into(),
                to: "07:00".into(),
                timezone: Some("Europe/Vienna".into()),
                except: vec![News::Budget],
            }),
            ..Notify::default()
        }
    }

    #[test]
    fn b_13_what_happens_within_seconds_is_one_message() {
        let (notify, now) = (wanted(), at("2026-11-15T12:00:00Z"));
        let mut desk = Desk::default();
        for n in 0..3 {
            desk.hold(note(News::Alert, now + Millis::seconds(n), n));
            desk.hold(note(News::Alert, now + Millis::seconds(n), n));
        }
        assert!(!desk.gather(now + Millis::seconds(4), &notify), "more may come");
        assert_eq!(desk.wake(now, &notify), Some(now + Millis::seconds(5)));
        assert!(desk.gather(now + Millis::seconds(5), &notify));
        let due = desk.due(now + Millis::seconds(5));
        assert_eq!(due.len(), 1, "one channel");
        assert_eq!(due[0].message.title(), "3 things happened");
        desk.settle(&due[0], Ok(()), now);
        assert_eq!(desk.wake(now, &notify), None);
    }

    #[test]
    fn b_13_the_night_is_quiet_but_for_what_is_urgent_and_the_morning_tells_the_rest() {
        let notify = wanted();
        let night = at("2026-11-15T22:30:00Z");
        let mut desk = Desk::default();
        desk.hold(note(News::Finished, night, 1));
        desk.hold(note(News::Question, night, 2));
        assert!(!desk.gather(night + Millis::minutes(5), &notify));
        assert_eq!(desk.wake(night, &notify), Some(at("2026-11-16T06:00:00Z")), "7 in Vienna");
        desk.hold(note(News::Budget, night, 3));
        assert!(desk.gather(night + Millis::minutes(5), &notify));
        let due = desk.due(night + Millis::minutes(5));
        assert_eq!(due[0].message.title(), "budget 3");
        desk.settle(&due[0], Ok(()), night);
        assert!(desk.gather(at("2026-11-16T06:00:00Z"), &notify));
        let due = desk.due(at("2026-11-16T06:00:00Z"));
        assert_eq!(due[0].message.title(), "2 things happened");
        assert_eq!(due[0].message.text(), "finished 1\nquestion 2");
    }

    #[test]
    fn b_13_a_flood_is_told_in_as_many_messages_as_an_hour_may_have() {
        let notify = Notify { per_hour: 2, desktop: true, ..Notify::default() };
        let start = at("2026-11-15T12:00:00Z");
        let mut desk = Desk::default();
        let mut messages = 0;
        for n in 0..600 {
            let now = start + Millis::seconds(n * 6);
            desk.hold(note(News::Alert, now, n));
            messages += usize::from(desk.gather(now + Millis::seconds(5), &notify));
        }
        assert_eq!(messages, 2);
        assert!(desk.held.len() <= HELD);
        let later = start + Millis::hours(2);
        assert!(desk.gather(later, &notify));
        let due = desk.due(later);
        let last = &due.last().expect("a message").message;
        assert_eq!(last.notes.len() + last.more, 598);
    }

    #[test]
    fn b_13_what_is_not_taken_is_tried_again_until_its_time_is_over() {
        let notify = Notify { desktop: true, ..Notify::default() };
        let start = at("2026-11-15T12:00:00Z");
        let mut desk = Desk::default();
        desk.hold(note(News::Alert, start, 1));
        let mut now = start + Millis::seconds(5);
        assert!(desk.gather(now, &notify));
        let first = desk.due(now)[0].message.id;
        let mut waits = Vec::new();
        while let Some(next) = desk.wake(now, &notify) {
            waits.push(next.since(now));
            now = next;
            for sending in desk.due(now) {
                assert_eq!(sending.message.id, first, "receivers can know doubles");
                let failed = Failed { why: "no".into(), for_good: false };
                desk.settle(&sending, Err(failed), now);
            }
        }
        assert_eq!(&waits[1..5], [2, 4, 8, 16].map(Millis::seconds));
        assert!(now.since(start) < Millis::hours(7) && now.since(start) > Millis::hours(5));
        desk.hold(note(News::Alert, now, 2));
        assert!(desk.gather(now + Millis::minutes(1), &notify));
        let sending = desk.due(now + Millis::minutes(1)).remove(0);
        let failed = Failed { why: "401".into(), for_good: true };
        desk.settle(&sending, Err(failed), now);
        assert_eq!(desk.wake(now, &notify), None, "it would end the same way");
    }
}
