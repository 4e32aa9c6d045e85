//! The return on each option, reckoned by a formula that is linear in its weights: the breakdown
//! adds up, and how far a weight must move before another option wins can be said exactly.
//!
//! The formula and why it is this one: `docs/roi.md`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::workflow::weights::LARGEST;
use thiserror::Error;

mod sensitivity;
#[cfg(test)]
mod tests;

pub use sensitivity::{Sensitivity, Tip};
pub use stafette_core::workflow::weights::{Term, Weights};

/// The most options that are compared.
pub const MOST: usize = 100;

/// Two totals that differ by less than this share of the larger are a tie.
const SAME: f64 = 1e-9;

/// How strongly an option serves a goal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GoalLink {
    /// Which goal.
    pub goal: String,
    /// From 0 to 1.
    pub strength: f64,
}

/// Something that could be done. A number that nobody gave is missing, and never taken for 0.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// Its name among the options.
    pub id: String,
    /// What it is.
    pub title: String,
    /// The kind of work, by which learned estimates correct its hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// What it brings when it succeeds, in money.
    #[serde(default)]
    pub benefit: Option<f64>,
    /// What it costs in money, whether it succeeds or not.
    #[serde(default)]
    pub cost: Option<f64>,
    /// The hours of work that go into it.
    #[serde(default)]
    pub hours: Option<f64>,
    /// What is lost on top when it fails, in money.
    #[serde(default)]
    pub risk: Option<f64>,
    /// How likely it succeeds, from 0 to 1.
    #[serde(default)]
    pub probability: Option<f64>,
    /// The goals that it serves; none is a statement, not a gap.
    #[serde(default)]
    pub goals: Vec<GoalLink>,
}

/// The options cannot be compared.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum RoiError {
    /// There are too many.
    #[error("{count} options are too many to compare, the limit is {MOST}")]
    TooMany {
        /// How many.
        count: usize,
    },
    /// A name is there twice.
    #[error("two options are called `{id}`")]
    Twice {
        /// Which name.
        id: String,
    },
    /// A number is out of range.
    #[error("option `{id}`: {field} is {value}, it must be {range}")]
    Number {
        /// Of which option.
        id: String,
        /// Which number.
        field: &'static str,
        /// What was given.
        value: f64,
        /// What would be right.
        range: &'static str,
    },
    /// A weight is out of range.
    #[error("the weight {weight} is {value}, it must be from 0 to 1e12")]
    Weight {
        /// Which one.
        weight: String,
        /// What was given.
        value: f64,
    },
}

/// One part of an option's total.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Which part.
    pub term: Term,
    /// What it amounts to before its weight, in money; what is spent is negative.
    pub amount: f64,
    /// Its weight.
    pub weight: f64,
    /// The two multiplied: these add up to the total.
    pub value: f64,
}

/// An option in its place.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Scored {
    /// Which option.
    pub id: String,
    /// From 1; those that are tied share one.
    pub rank: usize,
    /// Whether another has the same total.
    pub tied: bool,
    /// The return: what comes in less what goes out, in weighted money.
    pub total: f64,
    /// The total for each unit of money and work that goes in; none when nothing does.
    pub ratio: Option<f64>,
    /// What the total is made of.
    pub parts: Vec<Part>,
    /// What its hours were multiplied with, when work of its kind was learned to take longer.
    pub hours_factor: f64,
}

/// An option that cannot be ranked, with what would have to be known.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Incomplete {
    /// Which option.
    pub id: String,
    /// The numbers that nobody gave.
    pub missing: Vec<String>,
}

/// The options by their return.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ranking {
    /// Best first; ties in the order of their names.
    pub ranked: Vec<Scored>,
    /// Those that lack a number, in the order they were given.
    pub incomplete: Vec<Incomplete>,
    /// The best one, unless two share that place or one lacks a number: then a person decides.
    pub winner: Option<String>,
    /// How far each weight can move before another one wins. Empty without a winner and a rival.
    pub sensitivity: Vec<Sensitivity>,
    /// The weights that this was reckoned with.
    pub weights: Weights,
}

/// Ranks options. `estimates` says by kind of work how much longer than estimated it takes; what
/// is not listed takes as long as estimated.
///
/// # Errors
/// When a number cannot be meant, or there are too many options.
pub fn rank(
    options: &[Candidate],
    weights: &Weights,
    estimates: &BTreeMap<String, f64>,
) -> Result<Ranking, RoiError> {
    if options.len() > MOST {
        return Err(RoiError::TooMany { count: options.len() });
    }
    if let Some((weight, value)) = weights.impossible().next() {
        return Err(RoiError::Weight { weight, value });
    }
    let mut ranked = Vec::new();
    let mut incomplete = Vec::new();
    for (place, option) in options.iter().enumerate() {
        if options[..place].iter().any(|other| other.id == option.id) {
            return Err(RoiError::Twice { id: option.id.clone() });
        }
        check(option)?;
        let factor = option.kind.as_ref().and_then(|kind| estimates.get(kind)).copied();
        let factor = factor.filter(|factor| factor.is_finite() && *factor > 0.0).unwrap_or(1.0);
        match score(option, weights, factor) {
            Ok(scored) => ranked.push(scored),
            Err(missing) => incomplete.push(Incomplete { id: option.id.clone(), missing }),
        }
    }
    ranked.sort_by(|a, b| b.total.total_cmp(&a.total).then_with(|| a.id.cmp(&b.id)));
    place(&mut ranked);
    let clear = incomplete.is_empty();
    let winner = ranked.first().filter(|first| clear && !first.tied).map(|first| first.id.clone());
    let sensitivity = if winner.is_some() { sensitivity::of(&ranked) } else { Vec::new() };
    Ok(Ranking { ranked, incomplete, winner, sensitivity, weights: weights.clone() })
}

fn check(option: &Candidate) -> Result<(), RoiError> {
    let money = "a number from 0 to 1e12";
    let fields = [
        ("benefit", option.benefit),
        ("cost", option.cost),
        ("hours", option.hours),
        ("risk", option.risk),
    ];
    let wrong =
        |field, value, range| RoiError::Number { id: option.id.clone(), field, value, range };
    for (field, value) in fields {
        if let Some(value) = value.filter(|value| !(0.0..=LARGEST).contains(value)) {
            return Err(wrong(field, value, money));
        }
    }
    let shares = option.goals.iter().map(|link| ("the strength of a goal", link.strength));
    let probability = option.probability.map(|value| ("probability", value));
    for (field, value) in probability.into_iter().chain(shares) {
        if !(0.0..=1.0).contains(&value) {
            return Err(wrong(field, value, "a number from 0 to 1"));
        }
    }
    Ok(())
}

/// The total and its parts, or what is missing for it.
fn score(option: &Candidate, weights: &Weights, factor: f64) -> Result<Scored, Vec<String>> {
    let numbers = [
        ("benefit", option.benefit),
        ("cost", option.cost),
        ("hours", option.hours),
        ("risk", option.risk),
        ("probability", option.probability),
    ];
    let missing = numbers.iter().filter(|(_, value)| value.is_none());
    let missing: Vec<String> = missing.map(|(name, _)| (*name).to_owned()).collect();
    if !missing.is_empty() {
        return Err(missing);
    }
    let [benefit, cost, hours, risk, probability] =
        numbers.map(|(_, value)| value.unwrap_or_default());
    // A goal counts once, however often an option claims to serve it.
    let mut goals: BTreeMap<&str, f64> = BTreeMap::new();
    for link in &option.goals {
        let strength = goals.entry(&link.goal).or_default();
        *strength = strength.max(link.strength);
    }
    let work = hours * factor * weights.hour_price;
    let amounts = [
        benefit * probability,
        goals.values().sum::<f64>() * weights.goal_price,
        -cost,
        -work,
        -risk * (1.0 - probability),
    ];
    let parts: Vec<Part> = Term::ALL
        .into_iter()
        .zip(amounts)
        .map(|(term, amount)| {
            let weight = weights.of(term);
            // Without the sum, a nothing that is spent would print as -0.
            Part { term, amount: amount + 0.0, weight, value: amount * weight + 0.0 }
        })
        .collect();
    let total = parts.iter().map(|part| part.value).sum::<f64>();
    let outlay = cost + work;
    Ok(Scored {
        id: option.id.clone(),
        rank: 0,
        tied: false,
        total,
        ratio: (outlay > 0.0).then(|| total / outlay),
        parts,
        hours_factor: factor,
    })
}

fn same(a: f64, b: f64) -> bool {
    (a - b).abs() <= SAME * a.abs().max(b.abs())
}

fn place(ranked: &mut [Scored]) {
    for at in 0..ranked.len() {
        let above = at.checked_sub(1).map(|above| (ranked[above].total, ranked[above].rank));
        ranked[at].rank = match above {
            Some((total, rank)) if same(total, ranked[at].total) => {
                ranked[at].tied = true;
                ranked[at - 1].tied = true;
                rank
            }
            _ => at + 1,
        };
    }
}
