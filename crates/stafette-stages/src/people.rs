//! Absent people: the time of a question counts while a person could answer it.

use stafette_core::handoff::State;
use stafette_core::run::propose::HandoffAdmitted;
use stafette_core::workflow::knowledge::{WhenAway, span_of};
use stafette_core::{Fields, Input, Millis, Recorded, RunId, Time};
use stafette_engine::Engine;
use stafette_knowledge::calendar::occurrence::Occurrence;

use crate::{StageError, Stages};

/// The span that is searched for a time when a person is present.
const AHEAD: Millis = Millis::hours(60 * 24);

impl Stages {
    /// Gives a question more time, or its default answer, if no person is present in its time.
    pub(crate) async fn mind_the_hours(
        &self,
        engine: &Engine,
        run: RunId,
        recorded: &Recorded,
        admitted: &HandoffAdmitted,
    ) {
        let State::Asked { until } = admitted.state else { return };
        let rule = self.0.settings.people.when_away;
        if rule == WhenAway::Ignore {
            return;
        }
        let (until_now, free) = match self.presence(recorded.at, until).await {
            Ok(found) => found,
            Err(fault) => return tracing::warn!(%fault, "nobody's hours are known"),
        };
        let default = admitted.offer.question.as_ref().and_then(|q| q.default.clone());
        let handoff = admitted.id;
        let input = match (rule, default) {
            (WhenAway::Default, Some(text)) if free == Millis(0) => {
                let (values, by) = (Fields::new(), "default".to_owned());
                Input::Answer { handoff, values, text, by }
            }
            _ if until_now > until => {
                let why = "nobody can answer before: outside of the hours of work".to_owned();
                Input::Postpone { handoff, until: until_now, why }
            }
            _ => return,
        };
        if let Err(error) = engine.send(run, input).await {
            tracing::debug!(%run, %error, "a question that is over needs no time");
        }
    }

    /// Returns the deadline of a question asked at `asked`, and the time until `until` in which a
    /// person is present. People get the time that was meant for them, a working day at most.
    async fn presence(&self, asked: Time, until: Time) -> Result<(Time, Millis), StageError> {
        let to = asked + AHEAD;
        let mut busy = self.agenda(asked, to).await?.occurrences;
        // A meeting keeps no one from an inbox; a day off does.
        busy.retain(|event| event.all_day);
        busy.extend(self.quiet(asked, to));
        let week = self.week();
        let day = week.days.iter().flatten().map(|(from, to)| u64::from(to - from));
        let days = week.days.iter().filter(|pieces| !pieces.is_empty()).count().max(1) as u64;
        let day = Millis::minutes(day.sum::<u64>() / days);
        let wanted = until.since(asked).min(day);
        Ok(deadline(&week.free(&busy, asked, to)?, wanted, until))
    }

    /// Returns the quiet hours of each day as occurrences.
    fn quiet(&self, from: Time, to: Time) -> Vec<Occurrence> {
        let Some((begin, end)) = self.0.settings.people.quiet.as_deref().and_then(span_of) else {
            return Vec::new();
        };
        let zone = self.zone();
        let date = |moment: Time| {
            let moment = jiff::Timestamp::from_millisecond(moment.0).ok()?;
            Some(zone.to_datetime(moment).date())
        };
        let (Some(mut day), Some(last)) = (date(from), date(to)) else { return Vec::new() };
        let mut found = Vec::new();
        // The night before may extend into the first day.
        day = day.yesterday().unwrap_or(day);
        while day <= last {
            let at = |date: jiff::civil::Date, minutes: u16| {
                let hour = i8::try_from(minutes / 60 % 24).ok()?;
                let clock = date.at(hour, i8::try_from(minutes % 60).ok()?, 0, 0);
                let zoned = zone.to_ambiguous_zoned(clock).compatible().ok()?;
                Some(Time(zoned.timestamp().as_millisecond()))
            };
            let Ok(next) = day.tomorrow() else { break };
            let ends = if end > begin && end < 24 * 60 { day } else { next };
            if let (Some(start), Some(end)) = (at(day, begin), at(ends, end)) {
                found.push(hush(start, end));
            }
            day = next;
        }
        found
    }
}

fn hush(start: Time, end: Time) -> Occurrence {
    Occurrence {
        entry: String::new(),
        uid: "quiet".to_owned(),
        recurrence: None,
        title: "quiet".to_owned(),
        notes: String::new(),
        start,
        end,
        all_day: false,
        busy: true,
        task: None,
    }
}

/// Returns the moment at which a person has been present for `wanted`, and the time of presence
/// until `until`. The deadline never gets earlier.
fn deadline(free: &[(Time, Time)], wanted: Millis, until: Time) -> (Time, Millis) {
    let (mut there, mut before, mut moved) = (Millis(0), Millis(0), None);
    for (from, to) in free {
        let piece = to.since(*from);
        before = Millis(before.0 + (*to).min(until).since(*from).0);
        if moved.is_none() && there.0 + piece.0 >= wanted.0 {
            moved = Some(*from + Millis(wanted.0 - there.0));
        }
        there = Millis(there.0 + piece.0);
    }
    (moved.unwrap_or(until).max(until), before)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hours(from: i64, to: i64) -> (Time, Time) {
        (Time(from * 3_600_000), Time(to * 3_600_000))
    }

    #[test]
    fn b_13_a_deadline_waits_until_somebody_was_there_long_enough() {
        let days = [hours(9, 17), hours(33, 41)];
        let hour = Millis::hours(1);
        // Asked at 20:00 for an hour: tomorrow at 10:00.
        let evening = deadline(&days[1..], hour, Time(21 * 3_600_000));
        assert_eq!(evening, (Time(34 * 3_600_000), Millis(0)));
        // Half an hour before the end of the day: the other half is tomorrow.
        let late = [(Time(16 * 3_600_000 + 1_800_000), Time(17 * 3_600_000)), hours(33, 41)];
        let (until, there) = deadline(&late, hour, Time(17 * 3_600_000 + 1_800_000));
        assert_eq!((until, there), (Time(33 * 3_600_000 + 1_800_000), Millis::minutes(30)));
        // In the middle of the day nothing moves.
        let noon = deadline(&days, hour, Time(13 * 3_600_000));
        assert_eq!(noon.0, Time(13 * 3_600_000));
    }
}
