//! What each phase finds.
//!
//! The keys at the top of each shape are required, as are names, verdicts and counts within. What
//! an agent leaves out when it has nothing to say is optional: each of the four checks (not every
//! project has a linter), the lists inside a check, the coverage and its areas, the details of a
//! result.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::Phase;
use crate::Fields;
use crate::wire::present;
use crate::wire::scalar::{Count, Measure};

/// The findings of a phase: `phase` says which, `findings` holds them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(tag = "phase", content = "findings", rename_all = "snake_case")]
pub enum Findings {
    /// What is there.
    Research(ResearchFindings),
    /// What was made.
    Write(WriteFindings),
    /// What holds.
    Validate(Box<ValidateFindings>),
    /// What came of all parts.
    Parallel(ParallelFindings),
}

impl Findings {
    /// Which phase they are of.
    #[must_use]
    pub fn phase(&self) -> Phase {
        match self {
            Findings::Research(_) => Phase::Research,
            Findings::Write(_) => Phase::Write,
            Findings::Validate(_) => Phase::Validate,
            Findings::Parallel(_) => Phase::Parallel,
        }
    }
}

/// One condition for each phase: unlike a choice between four shapes, it lets an error point at
/// its place within the one shape that is meant.
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

/// What research finds.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ResearchFindings {
    /// What does it already.
    pub existing_implementations: Vec<ExistingImplementation>,
    /// What stands against it.
    pub conflicts: Vec<Conflict>,
    /// How things are done here.
    pub patterns_found: Vec<PatternFound>,
    /// What to do.
    pub recommendations: Vec<String>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// Something that does it already.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ExistingImplementation {
    /// Where.
    pub file: String,
    /// What it does.
    pub description: String,
    /// How much it matters.
    pub relevance: Relevance,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// How much something matters.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Relevance {
    /// A lot.
    High,
    /// Somewhat.
    Medium,
    /// Hardly.
    Low,
}

/// Something that stands against it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Conflict {
    /// Of which kind.
    #[serde(rename = "type")]
    pub kind: ConflictType,
    /// What it is.
    pub description: String,
    /// How bad it is.
    pub severity: Severity,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// Of which kind a conflict is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum ConflictType {
    /// A name is taken.
    Naming,
    /// It is done differently here.
    Pattern,
    /// Something that it needs does not fit.
    Dependency,
}

/// How bad a conflict is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Severity {
    /// Nothing can go on.
    Critical,
    /// Somebody should look.
    Warning,
    /// Good to know.
    Info,
}

/// How something is done here.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PatternFound {
    /// Where.
    pub file: String,
    /// How.
    pub pattern: String,
    /// What follows from it.
    pub recommendation: String,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// What writing made.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct WriteFindings {
    /// New files.
    pub files_created: Vec<CreatedFile>,
    /// Changed files.
    pub files_modified: Vec<ModifiedFile>,
    /// New tests.
    pub tests_written: Vec<WrittenTest>,
    /// What the reader should know.
    pub implementation_notes: Vec<String>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// A new file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CreatedFile {
    /// Where.
    pub path: String,
    /// What for.
    pub purpose: String,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// A changed file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ModifiedFile {
    /// Where.
    pub path: String,
    /// How.
    pub changes: String,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// A file of new tests.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WrittenTest {
    /// Where.
    pub path: String,
    /// How many.
    pub test_count: Count,
    /// Of what.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub coverage_areas: Option<Vec<String>>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// What validation found to hold.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ValidateFindings {
    /// Check by check.
    pub checks: Checks,
    /// Whether all is well.
    pub overall_passed: bool,
    /// What must be repaired first.
    pub blocking_issues: Vec<String>,
    /// What should be looked at.
    pub warnings: Vec<String>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// The checks of a project, those that it has.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Checks {
    /// The type checker.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Check")]
    pub types: Option<Check>,
    /// The linter.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Check")]
    pub lint: Option<Check>,
    /// The tests.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "TestCheck")]
    pub tests: Option<TestCheck>,
    /// The security scan.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "SecurityCheck")]
    pub security: Option<SecurityCheck>,
    /// Checks of the project's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// What a type checker or a linter says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Check {
    /// Whether it is content.
    pub passed: bool,
    /// What must be repaired.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub errors: Option<Vec<String>>,
    /// What should be looked at.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub warnings: Option<Vec<String>>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// What the tests say.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TestCheck {
    /// Whether all passed.
    pub passed: bool,
    /// How many there are.
    pub total: Count,
    /// How many passed.
    pub passed_count: Count,
    /// How many failed.
    pub failed_count: Count,
    /// How much they cover, in the tool's own unit.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Measure")]
    pub coverage: Option<Measure>,
    /// Which ones failed.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub failures: Option<Vec<String>>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// What a security scan says.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SecurityCheck {
    /// Whether it is content.
    pub passed: bool,
    /// What it found.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Vec<String>")]
    pub issues: Option<Vec<String>>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// What came of several at once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ParallelFindings {
    /// Part by part.
    pub results: Vec<ParallelResult>,
    /// All of them together.
    pub aggregation: Aggregation,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// What came of one part.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ParallelResult {
    /// Which part.
    pub task_id: String,
    /// Of which kind.
    #[serde(rename = "type")]
    pub kind: String,
    /// Whether it went well.
    pub passed: bool,
    /// In a few sentences.
    pub summary: String,
    /// In the part's own terms.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Fields")]
    pub details: Option<Fields>,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}

/// What came of all parts together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Aggregation {
    /// How many parts.
    pub total: Count,
    /// How many went well.
    pub passed: Count,
    /// How many did not.
    pub failed: Count,
    /// By which rule they count together.
    pub rule: String,
    /// Whether they do.
    pub overall_passed: bool,
    /// Fields of the sender's own.
    #[serde(flatten)]
    pub extra: Fields,
}
