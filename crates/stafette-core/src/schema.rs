//! The published documents: those of the dialects, and the workflow.

use std::fmt;
use std::str::FromStr;
use std::sync::LazyLock;

use serde_json::Value;
use thiserror::Error;

use crate::Workflow;
use crate::wire::schema::{self, Checker, Violation};

pub use crate::wire::schema::{MAX_BYTES, read};

const WORKFLOW: &str = "workflow";

/// The top-level fields that identify a workflow.
const MARKS: [&str; 6] = [WORKFLOW, "agents", "routes", "deny", "loops", "limits"];

/// A type of document that has a schema.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Name {
    Dialect(schema::Name),
    /// A [`Workflow`] as a file.
    Workflow,
}

/// No document type has this name.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("there is no schema `{text}`: there are {}", names().join(", "))]
pub struct UnknownName {
    pub text: String,
}

impl Name {
    /// Returns the name as text.
    pub fn as_str(self) -> &'static str {
        match self {
            Name::Dialect(name) => name.as_str(),
            Name::Workflow => WORKFLOW,
        }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Name {
    type Err = UnknownName;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let found = list().into_iter().find(|name| name.as_str() == text);
        found.ok_or_else(|| UnknownName { text: text.to_owned() })
    }
}

/// Returns all document types that have a schema.
pub fn list() -> Vec<Name> {
    schema::list().iter().copied().map(Name::Dialect).chain([Name::Workflow]).collect()
}

/// Returns the names of all document types that have a schema.
pub fn names() -> Vec<&'static str> {
    list().into_iter().map(Name::as_str).collect()
}

/// Returns the JSON Schema (2020-12) of a document.
pub fn schema(name: Name) -> Value {
    match name {
        Name::Dialect(name) => schema::schema(name),
        Name::Workflow => schema::publish::<Workflow>(WORKFLOW),
    }
}

/// Returns all errors of a document, in the order of their places; empty if it is valid.
pub fn validate(name: Name, value: &Value) -> Vec<Violation> {
    static CHECKER: LazyLock<Checker> = LazyLock::new(|| Checker::new(schema(Name::Workflow)));
    match name {
        Name::Dialect(name) => schema::validate(name, value),
        Name::Workflow => CHECKER.violations(value),
    }
}

/// Returns the document type that a value is meant to be, by its top-level fields. `None` if fewer
/// than two fields match, or several types match equally well.
pub fn recognise(value: &Value) -> Option<Name> {
    let dialects = schema::list().iter().map(|name| (Name::Dialect(*name), name.marks()));
    schema::best(value, dialects.chain([(Name::Workflow, &MARKS[..])]))
}

#[cfg(test)]
mod tests;
