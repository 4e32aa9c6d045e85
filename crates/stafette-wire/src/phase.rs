//! Phases: an orchestrator's request to a sub-agent and the answer, in snake_case.

mod findings;
mod translation;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use findings::{
    Aggregation, Check, Checks, Conflict, ConflictType, CreatedFile, ExistingImplementation,
    Findings, ModifiedFile, ParallelFindings, ParallelResult, PatternFound, Relevance,
    ResearchFindings, SecurityCheck, Severity, TestCheck, ValidateFindings, WriteFindings,
    WrittenTest,
};
pub use translation::{asked, decision, given};

use super::present;
use super::scalar::Count;
use stafette_model::Fields;

/// The name of this dialect in [`Foreign`](stafette_model::Foreign).
pub const DIALECT: &str = "phase";

/// A phase of a larger task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Phase {
    /// Examines the current state.
    Research,
    /// Makes the changes to the project.
    Write,
    /// Checks the changes that were made.
    Validate,
    /// Runs several parts in parallel.
    Parallel,
}

impl Phase {
    /// All phases, in their usual order.
    pub const ALL: [Phase; 4] = [Phase::Research, Phase::Write, Phase::Validate, Phase::Parallel];

    /// Returns the phase as it is written on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Research => "research",
            Phase::Write => "write",
            Phase::Validate => "validate",
            Phase::Parallel => "parallel",
        }
    }

    /// Returns the usual output of the phase.
    #[must_use]
    pub fn output(self) -> ExpectedOutput {
        match self {
            Phase::Research => ExpectedOutput::StructuredFindings,
            Phase::Write => ExpectedOutput::FilesChanged,
            Phase::Validate => ExpectedOutput::ValidationResult,
            Phase::Parallel => ExpectedOutput::AggregatedResults,
        }
    }
}

/// The typical size of a phase, in tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Typical {
    /// The size of the request: minimum, maximum.
    pub input: (u64, u64),
    /// The size of the answer: minimum, maximum.
    pub output: (u64, u64),
    /// The approximate total of both.
    pub total: u64,
}

impl Phase {
    /// Returns the typical size; `None` for parallel phases, which have no figure of their own.
    pub fn typical(self) -> Option<Typical> {
        let (input, output, total) = match self {
            Phase::Research => ((200, 500), (500, 1000), 1500),
            Phase::Write => ((500, 1000), (500, 1500), 2500),
            Phase::Validate => ((300, 500), (300, 800), 1300),
            Phase::Parallel => return None,
        };
        Some(Typical { input, output, total })
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The kind of output that a phase should return.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ExpectedOutput {
    /// The findings of the research.
    StructuredFindings,
    /// The files that were changed.
    FilesChanged,
    /// The results of the checks.
    ValidationResult,
    /// The combined results of all parts.
    AggregatedResults,
}

/// The orchestrator's order for a phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRequest {
    /// The id of the task; the response carries the same.
    pub task_id: String,
    /// The phase of the task.
    pub phase: Phase,
    /// The minimal context for the sub-agent.
    pub context: PhaseContext,
    /// The task for the sub-agent.
    pub instructions: String,
    /// The kind of output to return.
    pub expected_output: ExpectedOutput,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The minimal context for a sub-agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseContext {
    /// The feature that is being built.
    pub feature: String,
    /// The path of its specification.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub spec_path: Option<Option<String>>,
    /// The paths of files to look at.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub relevant_files: Option<Vec<String>>,
    /// The constraints on the result.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub constraints: Option<Vec<String>>,
    /// The summary of the previous phase.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub previous_findings: Option<Option<String>>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The answer to a phase request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseResponse {
    /// The task id of the request.
    pub task_id: String,
    /// The progress of the phase.
    pub status: PhaseStatus,
    /// The recommendation for the orchestrator.
    pub decision: Decision,
    /// The `phase` of the request, and the `findings` in its shape.
    #[serde(flatten)]
    pub findings: Findings,
    /// The summary for the next phase.
    pub context_summary: String,
    /// The approximate number of tokens used.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Count")]
    pub tokens_used: Option<Count>,
    /// Problems on the way.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub issues: Option<Vec<String>>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The progress of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum PhaseStatus {
    /// The phase is done.
    Complete,
    /// The phase is done in part.
    Partial,
    /// The phase cannot continue.
    Blocked,
}

/// The recommendation of the sub-agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub enum Decision {
    /// Continue with the next phase.
    Proceed,
    /// Halt, and report to the user.
    Stop,
    /// Ask the user, and continue with the answer.
    Clarify,
}
