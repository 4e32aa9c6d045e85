//! Learned parameters, as versions: an accepted insight makes the next one, and a rollback makes
//! one more, so that nothing that was ever used is lost.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Party, Time};
use thiserror::Error;

use super::Change;
use crate::graph::NodeKey;
use crate::roi::Weights;

/// The most versions that are kept.
pub const MOST: usize = 10_000;

/// The parameters that the stages compute with.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Parameters {
    /// The weights of the return.
    pub weights: Weights,
    /// The factor for estimated hours, by kind of work.
    pub estimates: BTreeMap<String, f64>,
}

/// The reason for a version.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Cause {
    /// The first version, made from the workflow's settings.
    Start,
    /// An insight was accepted.
    Accepted {
        /// The key of the insight.
        insight: NodeKey,
        /// The change that it made.
        change: Change,
    },
    /// An earlier version was restored.
    RolledBack {
        /// The number of the restored version.
        to: u32,
    },
}

/// A version of the parameters.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    /// The number, from 1 without gaps.
    pub number: u32,
    /// The time from which it applies.
    pub at: Time,
    /// The person or agent who made it.
    pub by: Party,
    /// The reason for this version.
    #[serde(flatten)]
    pub cause: Cause,
    /// The parameters of this version.
    pub parameters: Parameters,
}

/// All versions; the last one is in force.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<Version>", into = "Vec<Version>")]
pub struct Ledger {
    versions: Vec<Version>,
}

/// A version cannot be created.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum LedgerError {
    #[error("there is no version {number}; the newest is {newest}")]
    Unknown { number: u32, newest: u32 },
    #[error("{insight} is in force already, by version {number}")]
    Twice { insight: NodeKey, number: u32 },
    #[error("a factor of {factor} cannot be meant")]
    Factor { factor: f64 },
    #[error("there are {MOST} versions already")]
    Full,
    #[error("the versions do not count from 1 without gaps")]
    Gap,
}

impl TryFrom<Vec<Version>> for Ledger {
    type Error = LedgerError;
    fn try_from(versions: Vec<Version>) -> Result<Self, LedgerError> {
        let counted = (1..).zip(&versions).all(|(number, version)| version.number == number);
        if versions.is_empty() || !counted {
            Err(LedgerError::Gap)
        } else {
            Ok(Ledger { versions })
        }
    }
}

impl From<Ledger> for Vec<Version> {
    fn from(ledger: Ledger) -> Self {
        ledger.versions
    }
}

impl Ledger {
    /// Starts with the parameters of the workflow.
    #[must_use]
    pub fn new(parameters: Parameters, at: Time, by: Party) -> Self {
        Ledger { versions: vec![Version { number: 1, at, by, cause: Cause::Start, parameters }] }
    }

    /// Returns the version that is in force.
    pub fn current(&self) -> &Version {
        self.versions.last().expect("a ledger is made with a version and never loses one")
    }

    /// Returns all versions, oldest first.
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// Makes a version with the change of an insight.
    ///
    /// # Errors
    /// If the insight is in force, or its factor is not usable.
    pub fn accept(
        &mut self,
        insight: NodeKey,
        change: Change,
        at: Time,
        by: Party,
    ) -> Result<&Version, LedgerError> {
        if let Some(number) = self.in_force(&insight) {
            return Err(LedgerError::Twice { insight, number });
        }
        let mut parameters = self.current().parameters.clone();
        let (Change::Estimate { factor, .. } | Change::Weight { factor, .. }) = change;
        if !(factor.is_finite() && factor > 0.0) {
            return Err(LedgerError::Factor { factor });
        }
        match &change {
            Change::Estimate { kind, factor } => {
                *parameters.estimates.entry(kind.clone()).or_insert(1.0) *= factor;
            }
            Change::Weight { term, factor } => {
                let weight = parameters.weights.of(*term) * factor;
                parameters.weights = parameters.weights.with(*term, weight);
            }
        }
        self.push(at, by, Cause::Accepted { insight, change }, parameters)
    }

    /// Restores an earlier version as a new one.
    ///
    /// # Errors
    /// If there is no such version.
    pub fn roll_back(&mut self, to: u32, at: Time, by: Party) -> Result<&Version, LedgerError> {
        let found = self.versions.iter().find(|version| version.number == to);
        let newest = self.current().number;
        let found = found.ok_or(LedgerError::Unknown { number: to, newest })?;
        let parameters = found.parameters.clone();
        self.push(at, by, Cause::RolledBack { to }, parameters)
    }

    /// Returns the version by which an insight is in force; rolling back to before it ends that.
    pub fn in_force(&self, insight: &NodeKey) -> Option<u32> {
        let mut number = self.current().number;
        loop {
            let version = self.versions.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
            match &version.cause {
                Cause::Accepted { insight: found, .. } if found == insight => return Some(number),
                Cause::RolledBack { to } => number = *to,
                Cause::Accepted { .. } | Cause::Start => number = number.checked_sub(1)?,
            }
        }
    }

    fn push(
        &mut self,
        at: Time,
        by: Party,
        cause: Cause,
        parameters: Parameters,
    ) -> Result<&Version, LedgerError> {
        if self.versions.len() >= MOST {
            return Err(LedgerError::Full);
        }
        let number = self.current().number + 1;
        self.versions.push(Version { number, at, by, cause, parameters });
        Ok(self.current())
    }
}
