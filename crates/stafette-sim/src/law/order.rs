//! Laws about giving out a turn.

use stafette_core::handoff::About;
use stafette_core::run::Stage;
use stafette_core::run::turn::TurnOrdered;
use stafette_core::{Run, State, Time};

use super::{LawResult, must};

pub(super) fn may_be_given_out(run: &Run, at: Time, ordered: &TurnOrdered) -> LawResult {
    let turn = ordered.turn;
    must(run.stage == Stage::Active, "a paused run gives out nothing", || turn.to_string())?;
    let Some(handoff) = run.handoff(turn.handoff) else {
        return must(false, "a turn belongs to a handoff", || turn.to_string());
    };
    let due = matches!(handoff.state, State::Pending { not_before } if not_before <= at);
    must(due, "a turn is given out when its time has come", || {
        format!("{turn} at {at:?}, and it was {:?}", handoff.state)
    })?;
    let agent = run.workflow.agent(&handoff.offer.to).map(|(_, agent)| agent);
    let lacks = agent.into_iter().flat_map(|agent| &agent.needs).find(|need| {
        run.workflow.recovery.critical.contains(&need.key)
            && !handoff.inputs.contains_key(&need.key)
    });
    must(lacks.is_none(), "a critical input that is missing blocks", || {
        format!("{turn} lacks {lacks:?}")
    })?;
    is_within_the_budget(run, ordered)
}

/// A turn is given out only if the budget allows it, and no person is being asked about it.
fn is_within_the_budget(run: &Run, ordered: &TurnOrdered) -> LawResult {
    const LAW: &str = "a turn is within the budget when it is given out";
    let (purse, limit) = (&run.purse, &run.purse.limit);
    let after = purse.spent + purse.reserved + ordered.reserved;
    let allowed = after.money <= limit.money && after.tokens <= limit.tokens;
    let left = purse.spent.money < limit.money && purse.spent.tokens < limit.tokens;
    must(allowed && left, LAW, || format!("{after:?} of {limit:?}"))?;
    let asked = run.open().find(|handoff| {
        let question = handoff.offer.question.as_ref();
        question.is_some_and(|question| question.about == About::Budget)
    });
    must(asked.is_none(), LAW, || format!("{} is still open", ordered.turn.handoff))
}
