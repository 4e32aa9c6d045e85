//! Applies sets of several agents together: the batch is validated once, and if that fails it is
//! halved until the culprits are found. The rest is applied.

use schemars::JsonSchema;
use serde::Serialize;
use stafette_core::change::{Change, ChangeId, ChangeRules, ChangeStatus};

use super::plan::Plan;
use super::validation::Check;
use super::{ChangeError, Changes, End, Terms, now};

/// The longest subject line of a commit, in characters.
const SUBJECT: usize = 72;

/// The outcome of applying sets.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Report {
    /// The sets that are now part of the project.
    pub landed: Vec<Change>,
    /// The sets that were tried and rolled back.
    pub rolled_back: Vec<RolledBack>,
    /// The sets that were not tried, because they do not apply or wait for a person.
    pub left: Vec<Left>,
    /// The number of times that the project's command was run.
    pub validations: usize,
}

/// A set that was tried and rolled back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct RolledBack {
    /// The id of the set.
    pub id: ChangeId,
    /// The reason, in a sentence.
    pub why: String,
    /// The end of the command's output.
    pub output: String,
    /// Remarks about the roll-back.
    pub notes: Vec<String>,
}

/// A set that was not tried.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, JsonSchema)]
pub struct Left {
    /// The id of the set.
    pub id: ChangeId,
    /// The reason, in a sentence.
    pub why: String,
    /// True if only a person's approval is missing.
    pub needs_person: bool,
}

impl Changes {
    /// Applies one set, or rolls it back. If it cannot be tried, that is an error.
    pub async fn apply(&self, id: ChangeId, rules: &ChangeRules) -> Result<Report, ChangeError> {
        let _hold = self.store.hold().await?;
        self.recover_held().await?;
        let change = self.store.get(id)?;
        Self::ready(&change, rules)?;
        Plan::default().apply(&self.project, &change, rules)?;
        self.land_held(vec![change], rules).await
    }

    /// Applies as many of these sets as possible, in this order.
    pub async fn land(&self, ids: &[ChangeId], rules: &ChangeRules) -> Result<Report, ChangeError> {
        let _hold = self.store.hold().await?;
        self.recover_held().await?;
        let mut batch = Vec::new();
        let mut left = Vec::new();
        for id in ids {
            let change = self.store.get(*id)?;
            match Self::ready(&change, rules) {
                Ok(()) => batch.push(change),
                Err(error) => left.push(told(*id, &error)),
            }
        }
        let mut report = self.land_held(batch, rules).await?;
        left.append(&mut report.left);
        Ok(Report { left, ..report })
    }

    /// Returns the sets that were not tried yet, in the order of their proposal.
    pub fn open_sets(&self) -> Result<Vec<Change>, ChangeError> {
        let mut all = self.store.list()?;
        all.retain(|change| {
            matches!(change.status, ChangeStatus::Pending | ChangeStatus::Approved)
        });
        Ok(all)
    }

    async fn land_held(
        &self,
        batch: Vec<Change>,
        rules: &ChangeRules,
    ) -> Result<Report, ChangeError> {
        let mut report = Report::default();
        // Sets that do not apply now may apply once a culprit has been removed.
        let mut later = Vec::new();
        let mut batches = vec![batch];
        while let Some(batch) = batches.pop() {
            let mut plan = Plan::default();
            let mut fitting = Vec::new();
            for change in batch {
                match plan.apply(&self.project, &change, rules) {
                    Ok(actual) => fitting.push((change, actual)),
                    Err(_) => later.push(change),
                }
            }
            if !fitting.is_empty() {
                let (changes, actual) = fitting.into_iter().unzip();
                batches.extend(self.attempt(changes, actual, plan, rules, &mut report).await?);
            }
            if batches.is_empty() && !later.is_empty() {
                batches.extend(self.second_chance(&mut later, rules, &mut report));
            }
        }
        Ok(report)
    }

    /// Returns the first of the postponed sets that applies now, as a batch of its own.
    fn second_chance(
        &self,
        later: &mut Vec<Change>,
        rules: &ChangeRules,
        report: &mut Report,
    ) -> Option<Vec<Change>> {
        let fits = |change: &Change| Plan::default().apply(&self.project, change, rules);
        if let Some(at) = later.iter().position(|change| fits(change).is_ok()) {
            return Some(vec![later.remove(at)]);
        }
        for change in later.drain(..) {
            if let Err(error) = fits(&change) {
                report.left.push(told(change.id, &error));
            }
        }
        None
    }

    /// Tries a batch. Returns the batches to try next, the last first.
    async fn attempt(
        &self,
        mut batch: Vec<Change>,
        actual: Vec<Change>,
        plan: Plan,
        rules: &ChangeRules,
        report: &mut Report,
    ) -> Result<Vec<Vec<Change>>, ChangeError> {
        let (command, env) = (&rules.validate, &rules.env);
        let terms = Terms {
            message: message(&actual),
            check: Check { command, env, setting: "[changes] env", timeout: rules.timeout.into() },
            commit: rules.commit,
            emptied: None,
        };
        let orders = self.store.list()?.into_iter().filter_map(|change| change.order);
        let order = orders.max().unwrap_or(0) + 1;
        let numbers: Vec<ChangeId> = actual.iter().map(|change| change.id).collect();
        let settle = |change: &mut Change, is_validated: bool| {
            let place = numbers.iter().position(|id| *id == change.id).unwrap_or(0);
            change.order = Some(order + place as u64);
            change.applied_at = Some(now());
            change.undone_at = None;
            change.failure = None;
            change.status = ChangeStatus::Applied;
            if is_validated {
                change.status = ChangeStatus::Validated;
                change.validated_at = Some(now());
            }
        };
        report.validations += usize::from(!rules.validate.is_empty());
        let end = self.carry_out(plan.steps(), actual, &terms, settle).await;
        let (why, output, notes) = match end {
            Ok(End::Landed(landed)) => {
                report.landed.extend(landed);
                return Ok(Vec::new());
            }
            Ok(End::TakenBack { why, output, notes }) => (why, output, notes),
            // Halving solves neither a failed roll-back nor a damaged file. With any other error
            // nothing was started.
            Err(error @ (ChangeError::Stuck { .. } | ChangeError::Unreadable { .. })) => {
                return Err(error);
            }
            Err(error) => (error.to_string(), String::new(), Vec::new()),
        };
        if batch.len() > 1 {
            let right = batch.split_off(batch.len() / 2);
            return Ok(vec![right, batch]);
        }
        for mut change in batch {
            let id = change.id;
            change.status = ChangeStatus::Failed;
            self.note_order(&mut change);
            change.failure = Some(match output.is_empty() {
                true => why.clone(),
                false => format!("{why}\n{output}"),
            });
            change.notes.clone_from(&notes);
            let (why, output, mut notes) = (why.clone(), output.clone(), notes.clone());
            if let Err(error) = self.store.put(&change) {
                // The project is restored, which is what counts.
                notes.push(format!("that it failed could not be written down: {error}"));
            }
            report.rolled_back.push(RolledBack { id, why, output, notes });
        }
        Ok(Vec::new())
    }
}

fn told(id: ChangeId, error: &ChangeError) -> Left {
    let needs_person = matches!(error, ChangeError::NeedsPerson { .. });
    Left { id, why: error.to_string(), needs_person }
}

/// Returns the commit message for these sets.
fn message(changes: &[Change]) -> String {
    let ids: Vec<String> = changes.iter().map(|change| change.id.to_string()).collect();
    let reason = match changes {
        [one] => one.reason.lines().next().unwrap_or_default().trim(),
        _ => "applied together",
    };
    let subject = format!("{}: {reason}", ids.join(", "));
    let subject: String = subject.trim_end_matches([':', ' ']).chars().take(SUBJECT).collect();
    let mut text = format!("{subject}\n");
    for change in changes {
        let reason = change.reason.trim();
        text.push_str(&format!("\n{} by {}: {reason}\n", change.id, change.author));
    }
    text
}
