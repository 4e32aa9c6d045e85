//! The return on each option, computed by a formula that is linear in its weights: the terms add
//! up, and the change of a weight after which another option wins can be computed exactly.
//!
//! The formula and the reasons for it: `docs/roi.md`.

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

/// The most options in one comparison.
pub const MOST: usize = 100;

/// Two totals that differ by less than this share of the larger are a tie.
const SAME: f64 = 1e-9;

/// The strength with which an option serves a goal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GoalLink {
    /// The id of the goal.
    pub goal: String,
    /// The strength, from 0 to 1.
    pub strength: f64,
}

/// An option to choose. A number that was not given is missing, and never counts as 0.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Candidate {
    /// The id, unique among the options.
    pub id: String,
    /// The option in a few words.
    pub title: String,
    /// The kind of work; learned estimates correct its hours.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// The benefit if it succeeds, in money.
    #[serde(default)]
    pub benefit: Option<f64>,
    /// The cost in money, whether it succeeds or not.
    #[serde(default)]
    pub cost: Option<f64>,
    /// The hours of work that go into it.
    #[serde(default)]
    pub hours: Option<f64>,
    /// The extra loss if it fails, in money.
    #[serde(default)]
    pub risk: Option<f64>,
    /// The probability of success, from 0 to 1.
    #[serde(default)]
    pub probability: Option<f64>,
    /// The goals that it serves; an empty list means none, not unknown.
    #[serde(default)]
    pub goals: Vec<GoalLink>,
}

/// The options cannot be compared.
#[derive(Clone, PartialEq, Debug, Error)]
pub enum RoiError {
    #[error("{count} options are too many to compare, the limit is {MOST}")]
    TooMany { count: usize },
    #[error("two options are called `{id}`")]
    Twice { id: String },
    #[error("option `{id}`: {field} is {value}, it must be {range}")]
    Number { id: String, field: &'static str, value: f64, range: &'static str },
    #[error("the weight {weight} is {value}, it must be from 0 to 1e12")]
    Weight { weight: String, value: f64 },
}

/// One term of an option's total.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// The name of the term.
    pub term: Term,
    /// The amount before its weight, in money; negative if spent.
    pub amount: f64,
    /// The weight of the term.
    pub weight: f64,
    /// Amount times weight: these add up to the total.
    pub value: f64,
}

/// An option with its rank.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Scored {
    /// The id of the option.
    pub id: String,
    /// The rank from 1; tied options share one.
    pub rank: usize,
    /// True if another option has the same total.
    pub tied: bool,
    /// The return: income less expenses, in weighted money.
    pub total: f64,
    /// The total per unit of money and work that goes in; `None` if nothing does.
    pub ratio: Option<f64>,
    /// The terms that add up to the total.
    pub parts: Vec<Part>,
    /// The learned factor by which its hours were multiplied; 1 if nothing was learned about its
    /// kind.
    pub hours_factor: f64,
}

/// An option that cannot be ranked.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Incomplete {
    /// The id of the option.
    pub id: String,
    /// The names of the numbers that were not given.
    pub missing: Vec<String>,
}

/// The options ranked by their return.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ranking {
    /// The ranked options, best first; ties in the order of their ids.
    pub ranked: Vec<Scored>,
    /// The options that lack a number, in the given order.
    pub incomplete: Vec<Incomplete>,
    /// The best option; `None` if two are tied or one lacks a number: then a person decides.
    pub winner: Option<String>,
    /// The change of each weight after which another option wins. Empty without a winner and a
    /// rival.
    pub sensitivity: Vec<Sensitivity>,
    /// The weights used in the computation.
    pub weights: Weights,
}

/// Ranks options. `estimates` holds a factor for hours by kind of work; kinds that are not listed
/// take as long as estimated.
///
/// # Errors
/// If a number is out of range, or there are too many options.
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

/// Returns the total and its terms, or the names of missing numbers.
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
    // A goal counts once, even if an option lists it several times.
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
            // Adding 0 keeps an expense of nothing from printing as -0.
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
