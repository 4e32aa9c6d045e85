//! What each part of a return counts: what `[knowledge.roi]` says, and what is learned changes.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest number that is taken for one; beyond it sums lose what they are made of.
pub const LARGEST: f64 = 1e12;

/// A part of the formula, each with its weight.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Term {
    /// What it brings, times how likely.
    Benefit,
    /// The goals that it serves.
    Goals,
    /// Money that is spent.
    Cost,
    /// Hours that are spent.
    Hours,
    /// What is lost when it fails, times how likely that is.
    Risk,
}

impl Term {
    /// All of them, in the order of the breakdown.
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

/// What each part counts, and what hours and goals are worth in money.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(deny_unknown_fields)]
pub struct Weights {
    /// Of what it brings.
    pub benefit: f64,
    /// Of the goals that it serves.
    pub goals: f64,
    /// Of the money that it costs.
    pub cost: f64,
    /// Of the hours that it takes.
    pub hours: f64,
    /// Of what can be lost.
    pub risk: f64,
    /// What an hour of work is worth.
    pub hour_price: f64,
    /// What it is worth to serve a goal fully.
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
    /// The weight of a part.
    #[must_use]
    pub fn of(&self, term: Term) -> f64 {
        match term {
            Term::Benefit => self.benefit,
            Term::Goals => self.goals,
            Term::Cost => self.cost,
            Term::Hours => self.hours,
            Term::Risk => self.risk,
        }
    }

    /// The same weights with one of them changed.
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

    /// The numbers that cannot be meant, with their names.
    pub fn impossible(&self) -> impl Iterator<Item = (String, f64)> + use<> {
        let prices = [("hour_price", self.hour_price), ("goal_price", self.goal_price)];
        let weights = Term::ALL.map(|term| (term.to_string(), self.of(term)));
        let all = weights.into_iter().chain(prices.map(|(name, price)| (name.to_owned(), price)));
        all.filter(|(_, value)| !(0.0..=LARGEST).contains(value))
    }
}
