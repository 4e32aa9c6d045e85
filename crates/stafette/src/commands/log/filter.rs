//! Selects the events to show, and their vocabulary.

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde_json::Value;
use stafette_core::{Event, Millis, RunId, Time};
use stafette_telemetry::book::Book;
use stafette_telemetry::journal;

use crate::cli;
use crate::exit::Failure;

/// Selects the events to show.
#[derive(Debug)]
pub(super) struct Filter {
    after: u64,
    since: Option<Time>,
    agent: Option<String>,
    protocol: bool,
    book: Book,
    /// The giver and the taker of each handoff.
    parties: BTreeMap<String, [String; 2]>,
}

impl Filter {
    pub(super) fn new(arguments: &cli::Log) -> Result<Self, Failure> {
        let since = arguments
            .since
            .as_deref()
            .map(|text| moment(text, Time::of(SystemTime::now())))
            .transpose()?;
        Ok(Filter {
            after: arguments.after,
            since,
            agent: arguments.agent.clone(),
            protocol: arguments.protocol,
            book: Book::default(),
            parties: BTreeMap::new(),
        })
    }

    /// True if earlier events are needed to understand later ones.
    pub(super) fn needs_all(&self) -> bool {
        self.agent.is_some() || self.protocol
    }

    /// The entries to show for an event.
    pub(super) fn shown(&mut self, event: &Value) -> Vec<Value> {
        let told = self.tell(event);
        let at = event["at"].as_str().and_then(Time::parse);
        let late = event["seq"].as_u64().is_some_and(|seq| seq > self.after)
            && self.since.is_none_or(|since| at.is_some_and(|at| at >= since));
        if !late {
            return Vec::new();
        }
        told.into_iter().filter(|(_, who)| self.wanted(who)).map(|(shown, _)| shown).collect()
    }

    fn wanted(&self, who: &[String]) -> bool {
        self.agent.as_ref().is_none_or(|agent| who.contains(agent))
    }

    /// The event in the requested vocabulary, with the parties that it concerns.
    fn tell(&mut self, event: &Value) -> Vec<(Value, Vec<String>)> {
        if self.protocol {
            let (Some(run), Some(at), Ok(known)) = (
                event["run"].as_str().and_then(|run| run.parse::<RunId>().ok()),
                event["at"].as_str().and_then(Time::parse),
                serde_json::from_value::<Event>(event.clone()),
            ) else {
                return Vec::new();
            };
            let position = event["position"].as_u64().unwrap_or_default();
            let facts = self.book.apply(run, at, &known);
            let lines = facts.iter().flat_map(|fact| journal::lines(position, run, at, fact));
            let who = |line: &Value| {
                let words = [&line["agent"], &line["context"]["to"]];
                words.iter().filter_map(|word| word.as_str().map(str::to_owned)).collect()
            };
            return lines.map(|line| (line.clone(), who(&line))).collect();
        }
        let text = |path: &str| event.pointer(path).and_then(Value::as_str);
        if let (Some(id), Some(from), Some(to)) =
            (text("/id"), text("/offer/from"), text("/offer/to"))
        {
            self.parties.insert(id.to_owned(), [from.to_owned(), to.to_owned()]);
        }
        let turn = text("/turn").and_then(|turn| turn.split('/').rev().nth(1));
        let about = [text("/handoff"), text("/id"), turn].into_iter().flatten().next();
        let parties = about.and_then(|id| self.parties.get(id)).into_iter().flatten().cloned();
        let who = parties.chain(text("/agent").map(str::to_owned)).collect();
        vec![(event.clone(), who)]
    }
}

/// A time, or a duration before now.
fn moment(text: &str, now: Time) -> Result<Time, Failure> {
    if let Some(at) = Time::parse(text) {
        return Ok(at);
    }
    let ago: Millis = Millis::parse(text).map_err(|why| {
        Failure::usage(format!("Invalid time `{text}`"))
            .why(why)
            .fix("write how long ago, such as 10m, or a time such as 2026-02-03T04:05:06Z")
    })?;
    Ok(Time(now.0.saturating_sub(i64::try_from(ago.0).unwrap_or(i64::MAX))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_moment_is_said_or_counted_back() {
        let now = Time(1_700_000_000_000);
        assert_eq!(moment("10m", now).ok(), Some(Time(now.0 - 600_000)));
        assert_eq!(moment("2023-11-14T22:13:20Z", now).ok(), Some(now));
        assert!(moment("yesterday", now).is_err());
    }
}
