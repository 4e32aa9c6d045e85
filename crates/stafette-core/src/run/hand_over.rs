//! A generation that is over hands over to the next: what comes, by which rule, and whether it comes
//! by itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run, Status, close, escalate, note, resume};
use crate::generation::{self, ChangeCounts, Lineage};
use crate::handoff::About;
use crate::wire::context::{NextActionType, TeamPhase};
use crate::{Event, Fields, HandoffId, Question, RunId, Time, Usd};

/// A generation has handed over.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct GenerationHandedOver {
    /// Which one, from 1.
    pub number: u32,
    /// What the team does next.
    pub phase: TeamPhase,
    /// How it goes on.
    pub action: NextActionType,
    /// Why that.
    pub reason: String,
    /// Whose turn it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_agent: Option<String>,
    /// What about, when it is something new.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub topic: Option<String>,
    /// What the generation did.
    pub summary: String,
    /// What it cost.
    pub cost: Usd,
    /// What all have cost so far.
    pub total_cost: Usd,
    /// The one that follows by itself, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextGeneration>,
    /// Why one follows, or none.
    pub why: String,
}

/// The generation that follows by itself.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NextGeneration {
    /// Its run.
    pub run: RunId,
    /// Not before then.
    pub not_before: Time,
    /// Whether a person is asked first.
    pub check_in: bool,
}

/// Decided once, and only when the run is over.
pub(super) fn decide(draft: &mut Draft, changes: &ChangeCounts) {
    let run = &draft.run;
    let Some(lineage) = run.lineage.as_deref() else { return };
    if lineage.handed_over.is_some() || !run.status().is_final() {
        return;
    }
    let ahead = generation::next(run, changes);
    let cost = run.purse.spent.money;
    let total = Usd(lineage.spent.0.saturating_add(cost.0));
    let (goes_on, why) = goes_on(run, lineage, &ahead, total);
    let next = goes_on.map(|pause| NextGeneration {
        run: generation::successor_id(run.id, draft.now),
        not_before: draft.now + pause,
        check_in: check_in(lineage),
    });
    let event = GenerationHandedOver {
        number: lineage.number,
        phase: ahead.phase,
        action: ahead.action,
        reason: ahead.reason,
        target_agent: ahead.target,
        topic: ahead.topic,
        summary: generation::narrative(run),
        cost,
        total_cost: total,
        next,
        why,
    };
    draft.record(Event::GenerationHandedOver(Box::new(event)));
}

/// How many generations of the series there have been, this one included.
fn count(lineage: &Lineage) -> u32 {
    let first = lineage.plan.as_ref().map_or(lineage.number, |plan| plan.first);
    lineage.number.saturating_sub(first).saturating_add(1)
}

fn check_in(lineage: &Lineage) -> bool {
    let every = lineage.plan.as_ref().map_or(0, |plan| plan.check_in_every);
    every > 0 && count(lineage).is_multiple_of(every)
}

/// The pause before the next one, if one follows; and why.
fn goes_on(
    run: &Run,
    lineage: &Lineage,
    ahead: &generation::Next,
    total: Usd,
) -> (Option<crate::Millis>, String) {
    let ends = |why: &str| (None, why.to_owned());
    let Some(plan) = &lineage.plan else {
        return ends("generations follow when a person begins them");
    };
    let spent = Usd(total.0.saturating_sub(plan.spent.0));
    if ahead.done {
        return ends("nothing is left to do");
    }
    if ahead.action == NextActionType::ManualReview || run.status() != Status::Succeeded {
        return ends("a person is needed");
    }
    if count(lineage) >= plan.max_runs {
        return (None, format!("the limit of {} generations is reached", plan.max_runs));
    }
    if spent >= plan.max_cost {
        return (None, format!("the ceiling of {} is reached: {spent} spent", plan.max_cost));
    }
    (Some(plan.pause), format!("generation {} of {}", count(lineage) + 1, plan.max_runs))
}

/// A run begins: when it is time for that, a person is asked first whether the team goes on.
pub(super) fn ask_first(draft: &mut Draft, entry: HandoffId) {
    let Some(lineage) = draft.run.lineage.as_deref().filter(|lineage| lineage.check_in) else {
        return;
    };
    let last = lineage.past.last().map(|past| past.summary.clone()).unwrap_or_default();
    let question = Question {
        reason: "check_in".into(),
        details: format!(
            "{} generations have followed each other and cost {}. Should generation {} go on with \
             “{}”? Anything else than stop is a note for it",
            lineage.number.saturating_sub(1),
            lineage.spent,
            lineage.number,
            super::vote::clip(&draft.run.request, 120),
        ),
        options: vec!["go on".into(), "stop".into()],
        context: last,
        blocking: true,
        about: About::CheckIn(entry),
        ..Question::default()
    };
    escalate::park(draft, entry, question);
}

/// A person has checked in.
pub(super) fn checked_in(draft: &mut Draft, entry: HandoffId, word: &str, text: &str, by: String) {
    let mut said = Fields::new();
    match word {
        "stop" => {
            return close::end(draft, Status::Cancelled, "stopped by a person at the check-in");
        }
        "" | "go on" | "yes" | "continue" => {}
        _ => {
            note::decide(draft, text, by);
            said.insert("check_in".into(), text.into());
        }
    }
    resume::resume(draft, entry, said);
}

impl GenerationHandedOver {
    pub(super) fn apply(&self, run: &mut Run) {
        if let Some(lineage) = &mut run.lineage {
            lineage.handed_over = Some(Box::new(self.clone()));
        }
    }
}

#[cfg(test)]
mod tests;
