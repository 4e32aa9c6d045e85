//! Ranks options by their return, with learned parameters.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_knowledge::graph::NodeKey;
use stafette_knowledge::mind::Change;
use stafette_knowledge::mind::parameters::{Cause, Ledger};
use stafette_knowledge::roi::{Candidate, Ranking, Term, rank};

use crate::{Actor, StageError, Stages};

/// An accepted insight that is in force.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Learned {
    /// The key of the insight.
    pub insight: NodeKey,
    /// The version of the parameters since which it applies.
    pub version: u32,
    /// The change that it makes.
    pub change: Change,
    /// The same change, in a sentence.
    pub says: String,
}

/// Options ranked by their return, with the parameters that were used.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Ranked {
    /// The ranked options, with the winner and the sensitivity.
    #[serde(flatten)]
    pub ranking: Ranking,
    /// The version of the parameters that was used.
    pub version: u32,
    /// The insights that made a difference.
    pub learned: Vec<Learned>,
    /// The options as given.
    pub options: Vec<Candidate>,
}

/// Returns the insights in force, those that are `about` something used here.
pub(crate) fn in_force(ledger: &Ledger, about: impl Fn(&Change) -> bool) -> Vec<Learned> {
    let versions = ledger.versions().iter();
    let accepted = versions.filter_map(|version| match &version.cause {
        Cause::Accepted { insight, change } => Some((version.number, insight, change)),
        _ => None,
    });
    accepted
        .filter(|(number, insight, _)| ledger.in_force(insight) == Some(*number))
        .filter(|(_, _, change)| about(change))
        .map(|(version, insight, change)| Learned {
            insight: insight.clone(),
            version,
            change: change.clone(),
            says: says(change),
        })
        .collect()
}

fn says(change: &Change) -> String {
    match change {
        Change::Estimate { kind, factor } => {
            format!("work of the kind `{kind}` takes {factor:.2} times what is estimated")
        }
        Change::Weight { term, factor } => format!("{term} counts {factor:.2} times as much"),
    }
}

impl Stages {
    /// Ranks options with the current parameters. The actor must be allowed to read goals and
    /// insights.
    ///
    /// # Errors
    /// If a number is out of range, or an option serves an unknown goal.
    pub async fn rank(&self, actor: &Actor, options: Vec<Candidate>) -> Result<Ranked, StageError> {
        use stafette_knowledge::rights::{Access, Data};
        actor.may(Access::Read, Data::Goals)?;
        actor.may(Access::Read, Data::Insights)?;
        let goals = self.known_goals().await?;
        for option in &options {
            for link in &option.goals {
                if !goals.iter().any(|goal| goal.id == link.goal) {
                    let known: Vec<&str> = goals.iter().map(|goal| goal.id.as_str()).collect();
                    return Err(StageError::mistaken(format!(
                        "option `{}` serves the goal `{}`, which is none of: {}",
                        option.id,
                        link.goal,
                        known.join(", ")
                    )));
                }
            }
        }
        let ledger = self.ledger().await?;
        let current = ledger.current();
        let parameters = &current.parameters;
        let ranking = rank(&options, &parameters.weights, &parameters.estimates)?;
        let kinds: Vec<&String> = options.iter().filter_map(|o| o.kind.as_ref()).collect();
        let learned = in_force(&ledger, |change| match change {
            Change::Estimate { kind, .. } => kinds.contains(&kind),
            Change::Weight { .. } => true,
        });
        Ok(Ranked { ranking, version: current.number, learned, options })
    }
}

impl Ranked {
    /// Returns the choices, best first; options that lack a number come last.
    pub(crate) fn choices(&self) -> Vec<String> {
        let ranked = self.ranking.ranked.iter().map(|option| option.id.clone());
        let rest = self.ranking.incomplete.iter().map(|option| option.id.clone());
        ranked.chain(rest).collect()
    }

    /// Returns the ranking as a table for people, with its sensitivity.
    pub fn table(&self) -> String {
        let titles: BTreeMap<&str, &str> =
            self.options.iter().map(|option| (option.id.as_str(), option.title.as_str())).collect();
        let title = |id: &str| titles.get(id).copied().unwrap_or_default().to_owned();
        let mut text = String::new();
        for option in &self.ranking.ranked {
            let tie = if option.tied { " (tied)" } else { "" };
            let _ = writeln!(
                text,
                "{}. {}{tie}: {:.2}  {}",
                option.rank,
                option.id,
                option.total,
                title(&option.id)
            );
            let parts: Vec<String> = option
                .parts
                .iter()
                .map(|part| match (part.term, option.hours_factor) {
                    (Term::Hours, factor) if factor != 1.0 => {
                        format!("hours {:.2} (×{factor:.2} learned)", part.value)
                    }
                    _ => format!("{} {:.2}", part.term, part.value),
                })
                .collect();
            let _ = writeln!(text, "   {}", parts.join(", "));
        }
        for option in &self.ranking.incomplete {
            let missing = option.missing.join(", ");
            let _ = writeln!(text, "–  {}: lacks {missing}  {}", option.id, title(&option.id));
        }
        if self.ranking.winner.is_none() {
            let _ = writeln!(text, "There is no clear winner.");
        }
        for tip in &self.ranking.sensitivity {
            let sides = [("below", &tip.below), ("above", &tip.above)];
            for (side, at) in sides.into_iter().filter_map(|(side, at)| Some((side, at.as_ref()?)))
            {
                let (term, rival) = (tip.term, &at.rival);
                let _ = writeln!(text, "{rival} wins when {term} counts {side} {:.2}", at.at);
            }
        }
        for learned in &self.learned {
            let _ = writeln!(
                text,
                "Learned: {} ({}, version {})",
                learned.says, learned.insight, learned.version
            );
        }
        text
    }
}
