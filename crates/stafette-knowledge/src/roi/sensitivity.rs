//! Computes the change of a weight after which another option wins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Scored, Term};

/// The value of a weight at which another option catches up with the winner.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tip {
    /// The weight at which both have the same total; beyond it the rival wins.
    pub at: f64,
    /// The id of the option that catches up.
    pub rival: String,
}

/// The influence of one weight on the ranking while all others stay the same.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sensitivity {
    /// The name of the weight.
    pub term: Term,
    /// The current value of the weight.
    pub weight: f64,
    /// The first value below it at which the winner changes, not less than 0; `None` if there is
    /// none.
    pub below: Option<Tip>,
    /// The first value above it at which the winner changes; `None` if there is none.
    pub above: Option<Tip>,
}

/// Finds the tipping points. Totals are linear in each weight, so two of them meet at most once.
pub(super) fn of(ranked: &[Scored]) -> Vec<Sensitivity> {
    let Some((winner, rivals)) = ranked.split_first().filter(|(_, rivals)| !rivals.is_empty())
    else {
        return Vec::new();
    };
    let per_term = Term::ALL.into_iter().enumerate();
    per_term
        .map(|(place, term)| {
            let weight = winner.parts[place].weight;
            let mut below: Option<Tip> = None;
            let mut above: Option<Tip> = None;
            for rival in rivals {
                let slope = winner.parts[place].amount - rival.parts[place].amount;
                let at = weight - (winner.total - rival.total) / slope;
                if slope == 0.0 || !at.is_finite() {
                    continue;
                }
                let tip = || Some(Tip { at, rival: rival.id.clone() });
                // A rival that gains as the weight falls catches up below it.
                if slope > 0.0 {
                    if at >= 0.0 && below.as_ref().is_none_or(|tip| at > tip.at) {
                        below = tip();
                    }
                } else if above.as_ref().is_none_or(|tip| at < tip.at) {
                    above = tip();
                }
            }
            Sensitivity { term, weight, below, above }
        })
        .collect()
}
