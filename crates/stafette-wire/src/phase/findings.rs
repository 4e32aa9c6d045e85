//! The findings of each phase.
//!
//! The top-level keys of each shape are required, as are names, verdicts and counts within. Fields
//! that an agent omits when it has nothing to report are optional: each of the four checks (not
//! every
//! project has a linter), the lists inside a check, the coverage and its areas, the details of a
//! result.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::Phase;
use crate::present;
use crate::scalar::{Count, Measure};
use stafette_model::Fields;

/// The findings of a phase: `phase` names it, `findings` holds them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "phase", content = "findings", rename_all = "snake_case")]
pub enum Findings {
    Research(ResearchFindings),
    Write(WriteFindings),
    /// The findings of a validation phase.
    Validate(Box<ValidateFindings>),
    Parallel(ParallelFindings),
}

/// One condition for each phase: unlike a choice between four shapes, it lets an error point at its
/// place within the one shape that is meant.
impl JsonSchema for Findings {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Findings".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let shapes = Phase::ALL.map(|phase| {
            let shape = match phase {
                Phase::Research => generator.subschema_for::<ResearchFindings>(),
                Phase::Write => generator.subschema_for::<WriteFindings>(),
                Phase::Validate => generator.subschema_for::<ValidateFindings>(),
                Phase::Parallel => generator.subschema_for::<ParallelFindings>(),
            };
            json_schema!({
                "if": { "properties": { "phase": { "const": phase } }, "required": ["phase"] },
                "then": { "properties": { "findings": shape } },
            })
        });
        json_schema!({
            "type": "object",
            "properties": {
                "phase": generator.subschema_for::<Phase>(),
                "findings": { "description": "In the shape of the phase.", "type": "object" },
            },
            "required": ["phase", "findings"],
            "allOf": shapes,
        })
    }
}

/// The findings of a research phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ResearchFindings {
    /// Existing code that already does the job.
    pub existing_implementations: Vec<ExistingImplementation>,
    /// Conflicts with the planned work.
    pub conflicts: Vec<Conflict>,
    /// Conventions of the project.
    pub patterns_found: Vec<PatternFound>,
    /// Suggested next steps for the task.
    pub recommendations: Vec<String>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// Existing code that already does the job.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExistingImplementation {
    /// The path of the file.
    pub file: String,
    /// A description of what it does.
    pub description: String,
    /// The relevance to the task.
    pub relevance: Relevance,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The relevance to a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Relevance {
    /// Highly relevant to the task.
    High,
    /// Somewhat relevant to the task.
    Medium,
    /// Hardly relevant to the task.
    Low,
}

/// A conflict with the planned work.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// The kind of conflict.
    #[serde(rename = "type")]
    pub kind: ConflictType,
    /// A description of the conflict.
    pub description: String,
    /// The severity of the conflict.
    pub severity: Severity,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The kind of a conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ConflictType {
    /// A name is already taken.
    Naming,
    /// The project uses a different pattern.
    Pattern,
    /// A dependency is not compatible.
    Dependency,
}

/// The severity of a conflict.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Severity {
    /// The work cannot continue.
    Critical,
    /// A person should look at it.
    Warning,
    /// The conflict is for information only.
    Info,
}

/// A convention of the project.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PatternFound {
    /// The path of the file.
    pub file: String,
    /// A description of the convention.
    pub pattern: String,
    /// The resulting recommendation for the task.
    pub recommendation: String,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The findings of a write phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WriteFindings {
    /// The files that were created.
    pub files_created: Vec<CreatedFile>,
    /// The files that were changed.
    pub files_modified: Vec<ModifiedFile>,
    /// The test files that were written.
    pub tests_written: Vec<WrittenTest>,
    /// Notes for the reader of the code.
    pub implementation_notes: Vec<String>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// A file that was created.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CreatedFile {
    /// The path of the file.
    pub path: String,
    /// The purpose of the file.
    pub purpose: String,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// A file that was changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ModifiedFile {
    /// The path of the file.
    pub path: String,
    /// A description of the changes.
    pub changes: String,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// A file with new tests.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WrittenTest {
    /// The path of the file.
    pub path: String,
    /// The number of tests.
    pub test_count: Count,
    /// The areas that the tests cover.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub coverage_areas: Option<Vec<String>>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The findings of a validation phase.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ValidateFindings {
    /// The result of each check.
    pub checks: Checks,
    /// True if everything passed.
    pub overall_passed: bool,
    /// Issues that must be fixed first.
    pub blocking_issues: Vec<String>,
    /// Issues that should be looked at.
    pub warnings: Vec<String>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The checks of a project; absent ones were not run.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Checks {
    /// The result of the type checker.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Check")]
    pub types: Option<Check>,
    /// The result of the linter.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Check")]
    pub lint: Option<Check>,
    /// The result of the tests.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TestCheck")]
    pub tests: Option<TestCheck>,
    /// The result of the security scan.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecurityCheck")]
    pub security: Option<SecurityCheck>,
    /// Further checks of the project.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The result of a type checker or a linter.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// True if the check passed.
    pub passed: bool,
    /// Errors that must be fixed.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub errors: Option<Vec<String>>,
    /// Issues that should be looked at.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub warnings: Option<Vec<String>>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The result of the tests.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TestCheck {
    /// True if all tests passed.
    pub passed: bool,
    /// The number of tests.
    pub total: Count,
    /// The number of tests that passed.
    pub passed_count: Count,
    /// The number of tests that failed.
    pub failed_count: Count,
    /// The test coverage, in the tool's own unit.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Measure")]
    pub coverage: Option<Measure>,
    /// The tests that failed.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub failures: Option<Vec<String>>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The result of a security scan.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SecurityCheck {
    /// True if the scan passed.
    pub passed: bool,
    /// The issues that it found.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub issues: Option<Vec<String>>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The findings of a parallel phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ParallelFindings {
    /// The result of each part.
    pub results: Vec<ParallelResult>,
    /// The combined result of all parts.
    pub aggregation: Aggregation,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The result of one part.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ParallelResult {
    /// The id of the part.
    pub task_id: String,
    /// The kind of work.
    #[serde(rename = "type")]
    pub kind: String,
    /// True if the part passed.
    pub passed: bool,
    /// A summary in a few sentences.
    pub summary: String,
    /// Details in the part's own terms.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fields")]
    pub details: Option<Fields>,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The combined result of all parts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Aggregation {
    /// The number of parts.
    pub total: Count,
    /// The number of parts that passed.
    pub passed: Count,
    /// The number of parts that failed.
    pub failed: Count,
    /// The rule that combines the results.
    pub rule: String,
    /// True if the parts pass by that rule.
    pub overall_passed: bool,
    /// Additional fields of the sender.
    #[serde(flatten)]
    pub extra: Fields,
}
