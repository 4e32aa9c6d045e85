//! What was learned, as versions: an accepted insight makes the next one, and going back makes one
//! more, so that nothing that was ever used is lost.

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

/// What the stages reckon with.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Parameters {
    /// The weights of the return.
    pub weights: Weights,
    /// By kind of work: what estimated hours are multiplied with.
    pub estimates: BTreeMap<String, f64>,
}

/// Why a version was made.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "why", rename_all = "snake_case")]
pub enum Cause {
    /// These were there first.
    Start,
    /// An insight was accepted.
    Accepted {
        /// Which one.
        insight: NodeKey,
        /// What it changed.
        change: Change,
    },
    /// An earlier version was taken up again.
    RolledBack {
        /// Which one.
        to: u32,
    },
}

/// Parameters at one time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Version {
    /// From 1, without gaps.
    pub number: u32,
    /// When it came into force.
    pub at: Time,
    /// Who brought it.
    pub by: Party,
    /// Why.
    #[serde(flatten)]
    pub cause: Cause,
    /// The parameters.
    pub parameters: Parameters,
}

/// All versions; the last one is in force.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "Vec<Version>", into = "Vec<Version>")]
pub struct Ledger {
    versions: Vec<Version>,
}

/// A version cannot be made.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum LedgerError {
    /// There is no such version.
    #[error("there is no version {number}; the newest is {newest}")]
    Unknown {
        /// What was asked for.
        number: u32,
        /// What there is.
        newest: u32,
    },
    /// The insight is in force already.
    #[error("{insight} is in force already, by version {number}")]
    Twice {
        /// Which insight.
        insight: NodeKey,
        /// Since when.
        number: u32,
    },
    /// The factor cannot be meant.
    #[error("a factor of {factor} cannot be meant")]
    Factor {
        /// What was given.
        factor: f64,
    },
    /// There are too many.
    #[error("there are {MOST} versions already")]
    Full,
    /// The versions do not follow each other.
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
    /// Starts with what the workflow says.
    #[must_use]
    pub fn new(parameters: Parameters, at: Time, by: Party) -> Self {
        Ledger { versions: vec![Version { number: 1, at, by, cause: Cause::Start, parameters }] }
    }

    /// The version that is in force.
    #[must_use]
    pub fn current(&self) -> &Version {
        self.versions.last().expect("a ledger is made with a version and never loses one")
    }

    /// All versions, oldest first.
    #[must_use]
    pub fn versions(&self) -> &[Version] {
        &self.versions
    }

    /// Makes a version of what an insight would change.
    ///
    /// # Errors
    /// When the insight is in force, or its factor cannot be meant.
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

    /// Takes up an earlier version again.
    ///
    /// # Errors
    /// When there is no such version.
    pub fn roll_back(&mut self, to: u32, at: Time, by: Party) -> Result<&Version, LedgerError> {
        let found = self.versions.iter().find(|version| version.number == to);
        let newest = self.current().number;
        let found = found.ok_or(LedgerError::Unknown { number: to, newest })?;
        let parameters = found.parameters.clone();
        self.push(at, by, Cause::RolledBack { to }, parameters)
    }

    /// By which version an insight is in force: going back behind it takes it away.
    #[must_use]
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
