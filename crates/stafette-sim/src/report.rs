//! What a world tells when it is over: counts, a trace, or a law that did not hold.

use std::collections::BTreeMap;
use std::fmt;

use thiserror::Error;

/// How often each kind of thing happened, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Counts(BTreeMap<&'static str, u64>);

impl Counts {
    /// How often it happened.
    #[must_use]
    pub fn of(&self, name: &str) -> u64 {
        self.0.get(name).copied().unwrap_or(0)
    }

    /// Adds those of another world.
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

/// What became of a seed.
#[derive(Clone, PartialEq, Debug)]
pub struct Report {
    /// Which seed.
    pub seed: u64,
    /// Happenings in all.
    pub steps: u64,
    /// How often a process died.
    pub crashes: u64,
    /// How long it took in its own time, in milliseconds.
    pub virtual_ms: u64,
    /// Events in the store.
    pub events: u64,
    /// Handoffs that were admitted.
    pub handoffs: u64,
    /// How the run ended.
    pub ended_as: String,
    /// Why, in a sentence.
    pub why: String,
    /// How often each kind of thing happened.
    pub counts: Counts,
    /// Everything that happened, a line each.
    pub trace: Vec<String>,
}

/// The lines of the trace that a violation shows.
const TAIL: usize = 40;

/// A law that did not hold.
#[derive(Clone, PartialEq, Debug, Error)]
#[error(
    "seed {seed}, step {step}: {law}: {detail}\n\n{}\n\n\
     replay it with: STAFETTE_SIM_SEED={seed} cargo test -p stafette-sim one_seed -- --nocapture",
    trace[trace.len().saturating_sub(TAIL)..].join("\n")
)]
pub struct Violation {
    /// Which seed.
    pub seed: u64,
    /// After which happening.
    pub step: u64,
    /// Which law.
    pub law: &'static str,
    /// What was found instead.
    pub detail: String,
    /// Everything that happened until then; only its end is displayed.
    pub trace: Vec<String>,
}
