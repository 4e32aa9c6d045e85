//! How far a weight can move before another option wins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Scored, Term};

/// Where a weight would have to be for another option to catch up with the winner.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Tip {
    /// The weight at which both have the same total; beyond it the rival wins.
    pub at: f64,
    /// Who catches up.
    pub rival: String,
}

/// What one weight can do to the ranking, all others staying as they are.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sensitivity {
    /// Which weight.
    pub term: Term,
    /// What it is.
    pub weight: f64,
    /// The first place below it where the winner changes, not under 0.
    pub below: Option<Tip>,
    /// The first place above it where the winner changes.
    pub above: Option<Tip>,
}

/// Totals are linear in each weight, so two of them meet in one place at most.
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
