//! The laws: conditions that must hold after every step, whatever the seed has done.

mod budget;
mod deadline;
mod history;
mod order;
mod part;
mod path;
mod phase;
mod reply;
mod rows;
mod set;
mod state;

use stafette_core::{Event, Recorded, Run};
use stafette_store::Stored;

pub(crate) use history::History;
pub(crate) use reply::Round;
pub(crate) use rows::rows_tell_what_events_tell;
pub(crate) use state::{keeps_the_baton, tick_moves_on};

/// A broken law, with what was found instead.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Breach {
    pub(crate) law: &'static str,
    pub(crate) detail: String,
}

/// The result of checking a law.
pub(crate) type LawResult = Result<(), Breach>;

/// Fails with a law and a detail unless the condition holds.
pub(crate) fn must(holds: bool, law: &'static str, detail: impl FnOnce() -> String) -> LawResult {
    if holds { Ok(()) } else { Err(Breach { law, detail: detail() }) }
}

/// An observer that reads the store from the first event on and forgets nothing.
#[derive(Debug, Default)]
pub(crate) struct Witness {
    /// The run as the store records it.
    pub(crate) run: Option<Run>,
    pub(crate) history: History,
}

impl Witness {
    /// Returns the number of events it has read.
    pub(crate) fn seq(&self) -> u64 {
        self.run.as_ref().map_or(0, |run| run.seq)
    }

    /// Reads the events that one append added.
    pub(crate) fn read(&mut self, added: &[Stored]) -> LawResult {
        for stored in added {
            let entry = &stored.entry;
            must(entry.seq == self.seq() + 1, "events are numbered without gaps", || {
                format!("event {} follows event {}", entry.seq, self.seq())
            })?;
            let event: Event = serde_json::from_str(&entry.body).map_err(|error| Breach {
                law: "what is stored can be read",
                detail: format!("event {}: {error}", entry.seq),
            })?;
            let recorded = Recorded { seq: entry.seq, at: entry.at, event };
            self.history.hear(self.run.as_ref(), &recorded)?;
            match &mut self.run {
                Some(run) => {
                    let late = matches!(recorded.event, Event::LateResultKept(_));
                    let before = late.then(|| run.handoffs.clone());
                    run.apply(recorded.at, &recorded.event);
                    let same = before.is_none_or(|before| run.handoffs == before);
                    must(same, "a late result changes nothing", || format!("#{}", recorded.seq))?;
                }
                None => self.run = Run::replay([&recorded]),
            }
        }
        match &self.run {
            Some(run) if !added.is_empty() => {
                self.history.deadlines.are_kept(run)?;
                state::holds(run, &self.history)
            }
            _ => Ok(()),
        }
    }

    /// A process's state of the run is never ahead of the store, and never different.
    pub(crate) fn agrees_with(&self, live: &Run) -> LawResult {
        let Some(told) = &self.run else {
            return must(false, "nothing lives before it is recorded", String::new);
        };
        must(live.seq <= told.seq, "nothing is true before it is recorded", || {
            format!("the process is at event {}, the store at {}", live.seq, told.seq)
        })?;
        must(live.seq < told.seq || live == told, "live state equals replayed state", || {
            difference(live, told)
        })
    }
}

/// Returns the first difference between two runs, in a few words.
fn difference(live: &Run, told: &Run) -> String {
    for (id, handoff) in &live.handoffs {
        if told.handoffs.get(id) != Some(handoff) {
            return format!("{id}: {handoff:?} is stored as {:?}", told.handoffs.get(id));
        }
    }
    format!("{:?} is stored as {:?}", (&live.purse, &live.tally), (&told.purse, &told.tally))
}
