//! The weight of each term of a return: initially from `[knowledge.roi]`, then adjusted by
//! learning.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest accepted number; beyond it sums lose precision.
pub const LARGEST: f64 = 1e12;

/// A term of the formula, each with its weight.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Term {
    /// The benefit, times its probability.
    Benefit,
    /// The goals that it serves.
    Goals,
    /// The money that is spent.
    Cost,
    /// The hours that are spent.
    Hours,
    /// The loss in case of failure, times its probability.
    Risk,
}

impl Term {
    /// All terms, in the order of the breakdown.
    pub const ALL: [Term; 5] = [Term::Benefit, Term::Goals, Term::Cost, Term::Hours, Term::Risk];
}

impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Term::Benefit => "benefit",
            Term::Goals => "goals",
            Term::Cost => "cost",
            Term::Hours => "hours",
            Term::Risk => "risk",
        })
    }
}

/// The weight of each term, and the value of hours and goals in money.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Weights {
    /// The weight of the benefit.
    pub benefit: f64,
    /// The weight of the goals that it serves.
    pub goals: f64,
    /// The weight of the money that it costs.
    pub cost: f64,
    /// The weight of the hours that it takes.
    pub hours: f64,
    /// The weight of the possible loss.
    pub risk: f64,
    /// The value of an hour of work, in money.
    pub hour_price: f64,
    /// The value of serving a goal fully, in money.
    pub goal_price: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Weights {
            benefit: 1.0,
            goals: 1.0,
            cost: 1.0,
            hours: 1.0,
            risk: 1.0,
            hour_price: 50.0,
            goal_price: 500.0,
        }
    }
}

impl Weights {
    /// Returns the weight of a term.
    pub fn of(&self, term: Term) -> f64 {
        match term {
            Term::Benefit => self.benefit,
            Term::Goals => self.goals,
            Term::Cost => self.cost,
            Term::Hours => self.hours,
            Term::Risk => self.risk,
        }
    }

    /// Returns the same weights with one of them changed.
    #[must_use]
    pub fn with(mut self, term: Term, weight: f64) -> Self {
        *match term {
            Term::Benefit => &mut self.benefit,
            Term::Goals => &mut self.goals,
            Term::Cost => &mut self.cost,
            Term::Hours => &mut self.hours,
            Term::Risk => &mut self.risk,
        } = weight;
        self
    }

    /// Returns the numbers that are out of range, with their names.
    pub fn impossible(&self) -> impl Iterator<Item = (String, f64)> + use<> {
        let prices = [("hour_price", self.hour_price), ("goal_price", self.goal_price)];
        let weights = Term::ALL.map(|term| (term.to_string(), self.of(term)));
        let all = weights.into_iter().chain(prices.map(|(name, price)| (name.to_owned(), price)));
        all.filter(|(_, value)| !(0.0..=LARGEST).contains(value))
    }
}
