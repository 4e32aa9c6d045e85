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
use crate::Fields;

/// The name of this dialect in [`Foreign`](crate::handoff::Foreign).
pub const DIALECT: &str = "phase";

/// A part of a larger task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Phase {
    /// Find out what is there.
    Research,
    /// Make it.
    Write,
    /// Check it.
    Validate,
    /// Several at once.
    Parallel,
}

impl Phase {
    /// All of them, in their usual order.
    pub const ALL: [Phase; 4] = [Phase::Research, Phase::Write, Phase::Validate, Phase::Parallel];

    /// The word on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::Research => "research",
            Phase::Write => "write",
            Phase::Validate => "validate",
            Phase::Parallel => "parallel",
        }
    }

    /// What the phase usually returns.
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

/// What a phase usually takes, in tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Typical {
    /// What it is given: from, to.
    pub input: (u64, u64),
    /// What it answers: from, to.
    pub output: (u64, u64),
    /// Both, about.
    pub total: u64,
}

impl Phase {
    /// What it usually takes; several at once have no figure of their own.
    #[must_use]
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

/// What a phase should return.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ExpectedOutput {
    /// What was found.
    StructuredFindings,
    /// What was changed.
    FilesChanged,
    /// What holds and what does not.
    ValidationResult,
    /// What came of all parts.
    AggregatedResults,
}

/// The orchestrator gives out a phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseRequest {
    /// Names the task; the response carries the same.
    pub task_id: String,
    /// Which part of the task.
    pub phase: Phase,
    /// The little that the sub-agent needs to know.
    pub context: PhaseContext,
    /// What to do.
    pub instructions: String,
    /// What to return.
    pub expected_output: ExpectedOutput,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The little that a sub-agent needs to know.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseContext {
    /// What is being built.
    pub feature: String,
    /// Where its specification is.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub spec_path: Option<Option<String>>,
    /// Files to look at.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub relevant_files: Option<Vec<String>>,
    /// What must hold.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub constraints: Option<Vec<String>>,
    /// The summary of the phase before.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub previous_findings: Option<Option<String>>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The answer to a phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseResponse {
    /// That of the request.
    pub task_id: String,
    /// How far it got.
    pub status: PhaseStatus,
    /// What the orchestrator should do now.
    pub decision: Decision,
    /// The `phase` of the request, and the `findings` in its shape.
    #[serde(flatten)]
    pub findings: Findings,
    /// What the next phase needs to know.
    pub context_summary: String,
    /// How many tokens it took, about.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Count")]
    pub tokens_used: Option<Count>,
    /// Problems on the way.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub issues: Option<Vec<String>>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

impl PhaseResponse {
    /// Which phase it answers.
    #[must_use]
    pub fn phase(&self) -> Phase {
        self.findings.phase()
    }
}

/// How far a phase got.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum PhaseStatus {
    /// To its end.
    Complete,
    /// Some of the way.
    Partial,
    /// Something is in the way.
    Blocked,
}

/// What the sub-agent recommends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
#[schemars(inline)]
pub enum Decision {
    /// Go on to the next phase.
    Proceed,
    /// Halt, and report to the user.
    Stop,
    /// Ask the user, and go on with the answer.
    Clarify,
}
