//! Finds patterns in past work, with a measure of confidence.
//!
//! [`observe`](observe::observe) makes observations of a run's events; tasks, returns and calendar
//! blocks come from their stores. [`detect`](detect::detect) analyses all of them. A pattern
//! becomes an [`Insight`] only with enough samples, an effect that matters and an interval that
//! excludes "no effect"; the thresholds are [`Limits`], the statistics are in `docs/mind.md`. An
//! insight that a person accepts becomes a version of the [`parameters`].
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

/// A path that work took: from one agent or person to another.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Path {
    /// The name of the one who handed over.
    pub from: String,
    /// The name of the one who took over.
    pub to: String,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} → {}", self.from, self.to)
    }
}

/// The way in which a step ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepEnd {
    /// It delivered all or a part of what was asked for.
    Done,
    /// It did not deliver.
    Failed,
    /// A person had to take it.
    Escalated,
}

/// One observed event, with the node where it can be looked up.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "what", rename_all = "snake_case")]
pub enum Observation {
    /// A task was done: the estimated and the actual time.
    Task {
        /// The kind of work.
        kind: String,
        /// The estimated effort in hours.
        estimated: f64,
        /// The actual effort in hours.
        actual: f64,
        /// The key of the task.
        evidence: NodeKey,
    },
    /// A decision paid off: the expected and the actual return.
    Return {
        /// The expected return, in money.
        expected: f64,
        /// The actual return, in money.
        actual: f64,
        /// The key of the decision.
        evidence: NodeKey,
    },
    /// A handoff ended, successfully or not.
    Step {
        /// The path of the handoff.
        path: Path,
        /// The way in which it ended.
        end: StepEnd,
        /// The time that it was open, in seconds.
        seconds: f64,
        /// The cost in US dollars.
        dollars: f64,
        /// The key of the handoff.
        evidence: NodeKey,
    },
    /// The number of times that one path was taken within one run.
    Rounds {
        /// The path that was taken.
        path: Path,
        /// The number of times.
        count: u32,
        /// The last handoff that took it.
        evidence: NodeKey,
    },
    /// A block in the calendar began or ended later than planned.
    Slip {
        /// The kind of work.
        kind: String,
        /// Hours between the planned and the actual end; negative if early.
        hours: f64,
        /// The task that the block was for.
        evidence: NodeKey,
    },
}

/// The kind of pattern.
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

/// The confidence interval of an effect, at the level of the limits.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// The lower bound of the effect.
    pub low: f64,
    /// The upper bound of the effect.
    pub high: f64,
}

/// The change that an insight makes if it is accepted.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "change", rename_all = "snake_case")]
pub enum Change {
    /// Multiplies the hours of a kind of work.
    Estimate {
        /// The kind of work.
        kind: String,
        /// The factor by which the current factor is multiplied.
        factor: f64,
    },
    /// Multiplies a weight of the return.
    Weight {
        /// The weight to change.
        term: Term,
        /// The factor by which the current weight is multiplied.
        factor: f64,
    },
}

/// A pattern that is certain enough to be reported.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Insight {
    /// The detector that found it.
    pub detector: Detector,
    /// The subject: a kind of work or a path.
    pub subject: String,
    /// The pattern, in a sentence.
    pub pattern: String,
    /// The number of observations that it is based on.
    pub samples: usize,
    /// The size of the effect, in the detector's own unit.
    pub effect: f64,
    /// The confidence interval of the effect.
    pub interval: Interval,
    /// The confidence that there is an effect in this direction at all, from 0 to 1.
    pub confidence: f64,
    /// The observations that show it most, strongest first, bounded by the limits.
    pub evidence: Vec<NodeKey>,
    /// The change that accepting it makes; `None` if it only informs.
    pub change: Option<Change>,
}

/// The thresholds above which a pattern is reported.
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
    /// The smallest ratio at which a path counts as slow.
    pub slower: f64,
    /// The number of rounds in one run from which a path counts as a loop.
    pub rounds: u32,
    /// The smallest multiple of its path's median cost at which a handoff counts as an outlier.
    pub dearer: f64,
    /// The smallest slip, in hours.
    pub slip: f64,
    /// The confidence level of the intervals, from 0 to 1.
    pub level: f64,
    /// The number of draws of the bootstrap.
    pub draws: usize,
    /// The random seed of the bootstrap.
    pub seed: u64,
    /// The most links to evidence of one insight.
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
