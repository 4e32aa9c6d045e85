//! Finds patterns in what happened, and says how sure it is.
//!
//! [`observe`](observe::observe) makes observations of a run's events; tasks, returns and calendar
//! blocks come from whoever keeps them. [`detect`](detect::detect) looks through all of them. A
//! pattern becomes an [`Insight`] only with enough samples, an effect that matters and an interval
//! that leaves out "no effect"; the thresholds are [`Limits`], the statistics are in `docs/mind.md`.
//! An insight that somebody accepts becomes a version of the [`parameters`].
//!
//! All of it is pure: the same observations give the same insights, the bootstrap included.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::graph::NodeKey;
use crate::roi::Term;

pub mod detect;
pub mod observe;
pub mod parameters;
pub mod statistics;
#[cfg(test)]
mod tests;

pub use detect::detect;
pub use observe::observe;

/// A way that work took: who gave to whom.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Path {
    /// Who gave.
    pub from: String,
    /// Who took.
    pub to: String,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.from, self.to)
    }
}

/// How a step ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepEnd {
    /// It brought what was asked for, or a part of it.
    Done,
    /// It did not.
    Failed,
    /// A person had to take it.
    Escalated,
}

/// One thing that happened, with where it can be looked up.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Observation {
    /// A task was done: how long it was thought to take, and how long it took.
    Task {
        /// The kind of work.
        kind: String,
        /// Hours that were estimated.
        estimated: f64,
        /// Hours that it took.
        actual: f64,
        /// The task.
        evidence: NodeKey,
    },
    /// A decision bore fruit: what was expected of it, and what came.
    Return {
        /// What was expected, in money.
        expected: f64,
        /// What came.
        actual: f64,
        /// The decision.
        evidence: NodeKey,
    },
    /// A handoff ended.
    Step {
        /// Its way.
        path: Path,
        /// How it ended.
        end: StepEnd,
        /// How long it was open, in seconds.
        seconds: f64,
        /// What it used, in dollars.
        dollars: f64,
        /// The handoff.
        evidence: NodeKey,
    },
    /// How often one way was taken within one run.
    Rounds {
        /// The way.
        path: Path,
        /// How often.
        count: u32,
        /// The last handoff that took it.
        evidence: NodeKey,
    },
    /// A block in the calendar began or ended later than planned.
    Slip {
        /// The kind of work.
        kind: String,
        /// Hours between the planned and the real end; early is negative.
        hours: f64,
        /// The task that the block was for.
        evidence: NodeKey,
    },
}

/// What a pattern is about.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Detector {
    /// Work of a kind takes longer or shorter than estimated.
    Estimate,
    /// Decisions bring more or less than expected.
    Return,
    /// A path fails more often than the others.
    FailingPath,
    /// A path is slower than the others.
    SlowPath,
    /// A path ends with a person more often than the others.
    Escalation,
    /// A path is taken again and again within one run.
    Loop,
    /// A handoff cost far more than others on its path.
    CostOutlier,
    /// Blocks in the calendar end late.
    CalendarSlip,
}

/// From where to where the truth lies, at the level of the limits.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Not lower than this.
    pub low: f64,
    /// Not higher than this.
    pub high: f64,
}

/// What an insight would change if it is accepted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// Hours of this kind of work are multiplied by this from now on.
    Estimate {
        /// The kind of work.
        kind: String,
        /// What the present factor is multiplied with.
        factor: f64,
    },
    /// A weight of the return is multiplied by this.
    Weight {
        /// Which weight.
        term: Term,
        /// What the present weight is multiplied with.
        factor: f64,
    },
}

/// A pattern that holds well enough to be told.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Insight {
    /// Who found it.
    pub detector: Detector,
    /// What it is about: a kind of work or a path.
    pub subject: String,
    /// The pattern in a sentence.
    pub pattern: String,
    /// How many observations it rests on.
    pub samples: usize,
    /// How large it is, in the detector's own unit.
    pub effect: f64,
    /// Where the effect lies.
    pub interval: Interval,
    /// From 0 to 1: how sure it is that there is an effect in this direction at all.
    pub confidence: f64,
    /// The observations that show it most, strongest first, bounded by the limits.
    pub evidence: Vec<NodeKey>,
    /// What it would change.
    pub change: Option<Change>,
}

/// From when on a pattern is told.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The fewest samples for times, estimates, returns and slips.
    pub samples: usize,
    /// The fewest samples for shares: failures, escalations, loops.
    pub share_samples: usize,
    /// The fewest samples for outliers.
    pub outlier_samples: usize,
    /// The smallest deviation of a factor from 1, as a share.
    pub factor: f64,
    /// The smallest difference of two shares.
    pub share: f64,
    /// How many times slower a slow path is.
    pub slower: f64,
    /// From how many rounds in one run on a path counts as a loop.
    pub rounds: u32,
    /// How many times dearer than the median of its path an outlier is at least.
    pub dearer: f64,
    /// The smallest slip, in hours.
    pub slip: f64,
    /// The level of the intervals.
    pub level: f64,
    /// How often the bootstrap draws.
    pub draws: usize,
    /// What the bootstrap's chance starts from.
    pub seed: u64,
    /// The most links to evidence on one insight.
    pub evidence: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            samples: 5,
            share_samples: 8,
            outlier_samples: 10,
            factor: 0.15,
            share: 0.15,
            slower: 1.5,
            rounds: 3,
            dearer: 3.0,
            slip: 0.25,
            level: 0.95,
            draws: 1000,
            seed: 1,
            evidence: 20,
        }
    }
}
