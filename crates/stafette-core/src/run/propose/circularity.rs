//! Cycles: refused, unless the workflow declares the loop.

use std::collections::BTreeMap;

use super::{Proposal, Refusal};
use crate::Party;
use crate::handoff::{Lap, Trail};
use crate::run::Run;
use crate::workflow::Loop;

/// The number of recent steps that the contract's rule considers.
pub const WINDOW: usize = 3;

/// Applies the contract's rule: refuses the same source, target and reason twice in the last three.
pub(crate) fn check_window(run: &Run, proposal: &Proposal) -> Result<(), Refusal> {
    let offer = &proposal.offer;
    // A coordinator orders the same work as often as its own rules allow.
    if proposal.constraints.fresh || shared_loop(run, &offer.from, &offer.to).is_some() {
        return Ok(());
    }
    let same = |step: &&crate::run::Step| {
        step.from == offer.from && step.to == offer.to && step.reason == offer.reason
    };
    if run.recent.iter().filter(same).count() >= 2 {
        return Err(Refusal::Repeated { from: offer.from.clone(), to: offer.to.clone() });
    }
    Ok(())
}

/// Returns the path of the request after this step; a cycle must be a declared loop with rounds
/// left, and the last round must have changed something.
pub(crate) fn extend(run: &Run, proposal: &Proposal, by_person: bool) -> Result<Trail, Refusal> {
    let offer = &proposal.offer;
    let mut trail = proposal
        .cause
        .filter(|_| !proposal.constraints.fresh)
        .and_then(|id| run.handoff(id))
        .map(|handoff| handoff.trail.clone())
        .unwrap_or_default();
    let fixed = proposal.constraints.fixed_taker;
    if matches!(offer.to, Party::Human | Party::Orchestrator) || fixed {
        return Ok(trail);
    }
    if offer.from == offer.to {
        let path = vec![offer.from.clone(), offer.to.clone()];
        return Err(Refusal::Cycle { path });
    }
    let declared = shared_loop(run, &offer.from, &offer.to);
    let held = trail.held_by.iter().position(|party| *party == offer.to);
    // The parties from here on had the work since the target had it.
    if let Some(start) = held.or(trail.passed.get(&offer.to).copied()) {
        let since = trail.held_by.get(start..).unwrap_or_default();
        let meant = declared.is_some_and(|l| since.iter().all(|party| is_in(l, party)));
        if !meant && !by_person {
            let first = held.is_none().then_some(&offer.to);
            let path = first.into_iter().chain(since).chain([&offer.to]).cloned().collect();
            return Err(Refusal::Cycle { path });
        }
    }
    if let Some(start) = held {
        trail.passed.values_mut().for_each(|since| *since = start.min(*since));
        let dropped: Vec<Party> = trail.held_by.drain(start..).skip(1).collect();
        trail.passed.extend(dropped.into_iter().map(|party| (party, start)));
    }
    trail.passed.remove(&offer.to);
    trail.within = declared.map(|declared| declared.name.clone());
    if let Some(declared) = declared {
        let lap = trail.laps.remove(&declared.name);
        trail.laps.insert(declared.name.clone(), go_round(declared, lap, proposal)?);
    }
    trail.held_by.push(offer.to.clone());
    Ok(trail)
}

fn go_round(declared: &Loop, lap: Option<Lap>, proposal: &Proposal) -> Result<Lap, Refusal> {
    let (from, to) = (&proposal.offer.from, &proposal.offer.to);
    let mut lap = lap.unwrap_or_else(|| Lap {
        head: from.clone(),
        round: 1,
        away: false,
        visits: BTreeMap::from([(from.clone(), 1)]),
        seen: BTreeMap::new(),
    });
    let rounds = |party: &Party| lap.visits.get(party).copied().unwrap_or(0);
    let name = || declared.name.clone();
    // The head does not start a round that it may not see the end of.
    let last = (*from == lap.head && lap.round >= declared.max_rounds)
        || rounds(to) >= declared.max_rounds;
    if last {
        return Err(Refusal::LoopExhausted { name: name(), rounds: declared.max_rounds });
    }
    if let Some(look) = &proposal.fingerprint
        && lap.seen.insert(from.clone(), look.clone()).as_ref() == Some(look)
    {
        return Err(Refusal::NoProgress { name: name(), round: lap.round });
    }
    lap.away = false;
    lap.visit(to);
    Ok(lap)
}

fn shared_loop<'a>(run: &'a Run, from: &Party, to: &Party) -> Option<&'a Loop> {
    run.workflow.loops.iter().find(|l| is_in(l, from) && is_in(l, to))
}

fn is_in(declared: &Loop, party: &Party) -> bool {
    declared.between.iter().any(|name| name.as_str() == party.as_str())
}
