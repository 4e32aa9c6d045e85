//! Who may hand to whom, and with what in hand.

use super::{Proposal, Refusal};
use crate::Party;
use crate::run::Run;

pub(super) fn check(run: &Run, proposal: &Proposal) -> Result<(), Refusal> {
    let offer = &proposal.offer;
    let (from, to) = (&offer.from, &offer.to);
    match to {
        // Every agent may turn to a person, and to the arbiter.
        Party::Human | Party::Orchestrator => return Ok(()),
        Party::Council if run.workflow.council.is_none() => {
            return Err(Refusal::UnknownTarget { to: to.clone() });
        }
        Party::Agent(_) if run.workflow.agent(to).is_none() => {
            return Err(Refusal::UnknownTarget { to: to.clone() });
        }
        Party::Agent(_) | Party::Council => {}
    }
    if *from == Party::Human || *from == Party::Orchestrator || proposal.declared {
        return Ok(());
    }
    if let Some(denied) = run.workflow.deny.iter().find(|d| d.from == *from && d.to == *to) {
        let why = denied.why.clone();
        return Err(Refusal::Denied { from: from.clone(), to: to.clone(), why });
    }
    if *to == Party::Council && run.workflow.route(from, to).is_none() {
        // Everyone may put something before the council.
        return Ok(());
    }
    let Some(route) = run.workflow.route(from, to) else {
        let possible = run.workflow.targets(from);
        return Err(Refusal::NoRoute { from: from.clone(), to: to.clone(), possible });
    };
    let held = proposal.cause.and_then(|id| run.handoff(id)).map(|handoff| &handoff.inputs);
    let missing: Vec<String> = route
        .requires
        .iter()
        .filter(|key| !offer.outputs.contains_key(*key))
        .filter(|key| !held.is_some_and(|inputs| inputs.contains_key(*key)))
        .cloned()
        .collect();
    if !missing.is_empty() {
        return Err(Refusal::MissingEvidence { from: from.clone(), to: to.clone(), missing });
    }
    Ok(())
}
