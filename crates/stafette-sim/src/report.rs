//! The report of a world: counts, a trace, or a broken law.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

/// The number of occurrences of each kind of event, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    /// Returns the number of occurrences of this kind.
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Adds the counts of another world.
    pub fn add(&mut self, other: &Counts) {
        for (name, count) in &other.0 {
            *self.0.entry(name).or_default() += count;
        }
    }

    pub(crate) fn note(&mut self, name: &'static str) {
        *self.0.entry(name).or_default() += 1;
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, count) in &self.0 {
            writeln!(f, "{count:>8}  {name}")?;
        }
        Ok(())
    }
}

/// The result of a seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    pub seed: u64,
    pub steps: u64,
    pub crashes: u64,
    /// The duration in virtual time, in milliseconds.
    pub virtual_ms: u64,
    pub events: u64,
    pub handoffs: u64,
    /// The outcome of the run.
    pub ended_as: String,
    /// The reason for the outcome, in a sentence.
    pub why: String,
    /// The counts of each kind of event.
    pub counts: Counts,
    /// The trace, one line per event.
    pub trace: Vec<String>,
}

/// The number of trace lines that a violation shows.
const TAIL: usize = 40;

/// A broken law, with the seed and the step.
#[derive(Clone, PartialEq, Debug, Error)]
#[error(
    "seed {seed}, step {step}: {law}: {detail}\n\n{}\n\n\
     replay it with: STAFETTE_SIM_SEED={seed} cargo test -p stafette-sim one_seed -- --nocapture",
    trace[trace.len().saturating_sub(TAIL)..].join("\n")
)]
pub struct Violation {
    pub seed: u64,
    pub step: u64,
    pub law: &'static str,
    /// The difference that was found.
    pub detail: String,
    /// The trace until then; only its end is displayed.
    pub trace: Vec<String>,
}
