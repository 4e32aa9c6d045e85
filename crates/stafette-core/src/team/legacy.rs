//! Defaults for coordinators' events of older releases, and for what the kernel did not record of them.
//! Frozen, as `run/legacy.rs` is.

use super::change::{ChangeSettled, MOST_SETS, SetState};
use super::phase;
use super::phase::{Part, PhaseEnded, Saving};
use crate::change::{ChangeId, ChangeStatus};
use crate::handoff::Constraints;
use crate::team::change::ProposedSet;
use crate::wire::phase::Decision;
use crate::workflow::council;
use crate::workflow::phases::PhaseStep;
use crate::{Offer, Party, Run};

/// Returns the constraints of a handoff that was admitted without them.
pub(crate) fn constraints(run: &Run, offer: &Offer) -> Constraints {
    let fixed_taker =
        offer.from.as_str() == council::NAME && offer.reason.as_str() == council::NAME;
    let keeps = offer.from == Party::Orchestrator && offer.reason.as_str() == phase::REASON;
    let shares = |step: &PhaseStep| {
        step.agents.len() > 1 && step.agents.iter().any(|name| Party::from(name) == offer.to)
    };
    let optional = keeps && run.workflow.phases.iter().any(shares);
    Constraints { fresh: keeps, fixed_taker, keeps, optional }
}

/// Returns the number of turns that each member of a reopened council gets.
pub(super) fn turns(run: &Run) -> u32 {
    run.workflow.council.as_ref().map_or(0, |rules| rules.turns_per_agent)
}

/// Returns the tokens that the summary of a phase has saved: it is handed on unless the phase was the
/// last one.
pub(super) fn saving(run: &Run, ended: &PhaseEnded) -> Saving {
    if ended.place + 1 >= run.workflow.phases.len() && ended.decision != Decision::Stop {
        return Saving::default();
    }
    let counted = |part: &Part| part.measured.and_then(|measured| measured.summary);
    let raw = ended.tokens.reported.max(ended.tokens.response);
    Saving { raw, handed_on: ended.parts.iter().filter_map(counted).sum() }
}

/// True if a person has to be asked about a set.
pub(super) fn asks(run: &Run, set: &ProposedSet) -> bool {
    set.status == ChangeStatus::Pending
        && (!set.gates.is_empty() || run.workflow.changes.ask_always)
}

/// Returns the set that a run drops for a new one.
pub(super) fn forgotten(run: &Run, set: &ProposedSet) -> Option<ChangeId> {
    let changes = &run.team.changes;
    let is_full = !changes.contains_key(&set.change) && changes.len() >= MOST_SETS;
    changes.iter().find(|(_, known)| is_full && known.is_settled()).map(|(id, _)| *id)
}

/// True if a comment goes back to the agent of the set. Comments on an applied set are only recorded.
pub(super) fn goes_back(run: &Run, known: &SetState) -> bool {
    known.agent.is_some() && !known.status.is_in() && !run.status().is_final()
}

/// True if the status of a set is a person's decision, for its record.
pub(super) fn is_decided(settled: &ChangeSettled) -> bool {
    let is_decision = matches!(settled.status, ChangeStatus::Approved | ChangeStatus::Refused);
    settled.order.is_none() && is_decision
}
