//! Routes: allowed pairs of giver and taker, and the evidence they require.

use super::{Proposal, Refusal};
use crate::run::Run;
use crate::team;
use crate::{Offer, Party};

pub(crate) fn check(run: &Run, proposal: &Proposal) -> Result<(), Refusal> {
    let offer = &proposal.offer;
    let (from, to) = (&offer.from, &offer.to);
    if *to == Party::Human {
        // An offer with objections would only waste the person's time.
        objected(offer)?;
    }
    let group = team::takes(run, to);
    match to {
        // Every agent may turn to a person and to the orchestrator.
        Party::Human | Party::Orchestrator => return Ok(()),
        Party::Agent(_) if run.workflow.agent(to).is_none() && !group => {
            return Err(Refusal::UnknownTarget { to: to.clone() });
        }
        Party::Agent(_) => {}
    }
    if *from == Party::Human || *from == Party::Orchestrator || proposal.declared {
        return Ok(());
    }
    if let Some(denied) = run.workflow.deny.iter().find(|d| d.from == *from && d.to == *to) {
        let why = denied.why.clone();
        return Err(Refusal::Denied { from: from.clone(), to: to.clone(), why });
    }
    if group && run.workflow.route(from, to).is_none() {
        // Every agent may submit something to a group that decides together.
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
        .filter(|key| {
            // The offer's values override inherited inputs, and null counts as missing.
            let held = held.and_then(|inputs| inputs.get(*key));
            offer.outputs.get(*key).or(held).is_none_or(serde_json::Value::is_null)
        })
        .cloned()
        .collect();
    if !missing.is_empty() {
        return Err(Refusal::MissingEvidence { from: from.clone(), to: to.clone(), missing });
    }
    objected(offer)
}

/// Refuses an offer with objections. Checked last: missing or impossible parts are reported first.
fn objected(offer: &Offer) -> Result<(), Refusal> {
    if offer.objections.is_empty() || offer.from == Party::Human {
        return Ok(());
    }
    let (from, to) = (offer.from.clone(), offer.to.clone());
    Err(Refusal::Objected { from, to, objections: offer.objections.clone() })
}
