//! Laws about the state of a run.

use std::collections::BTreeSet;

use stafette_core::handoff::About;
use stafette_core::run::Stage;
use stafette_core::workflow::council;
use stafette_core::{Handoff, HandoffId, Millis, Party, Response, Run, State, Time, Usage, fields};

use super::{History, LawResult, must};

/// The longest allowed wait.
const LONGEST_WAIT: Millis = Millis::hours(24 * 60);

/// The number of closed handoffs that a run keeps when it admits one.
const CLOSED_KEPT: usize = 64;

/// The bytes that notes in place of cut values may add.
const SMALL_CHANGE: usize = 4096;

/// The interval, in events, at which the state is written and read back to check that it stays the
/// same.
const WRITTEN_EVERY: u64 = 32;

pub(super) fn holds(run: &Run, history: &History) -> LawResult {
    purse_is_right(run, history)?;
    history.costs.are_within(run)?;
    outbox_is_recorded(run, history)?;
    state_is_bounded(run, history)?;
    if run.status().is_final() {
        return it_is_over(run);
    }
    let deadline = run.deadline();
    let far = run.updated_at + LONGEST_WAIT;
    must(deadline.is_some_and(|at| at <= far), "every wait has a deadline", || {
        format!("{deadline:?}")
    })?;
    for handoff in run.open() {
        has_an_owner(run, handoff)?;
        is_decided_about(handoff)?;
        is_of_bounded_size(handoff)?;
        waits_for_what_can_happen(run, handoff.id, &mut BTreeSet::new())?;
    }
    if run.seq.is_multiple_of(WRITTEN_EVERY) {
        survives_writing(run)?;
    }
    Ok(())
}

/// A tick at its deadline changes something, or the process would repeat it forever.
pub(crate) fn tick_moves_on(run: &Run, now: Time) -> LawResult {
    let deadline = run.deadline();
    must(deadline.is_none_or(|at| at > now), "a tick moves on", || {
        let pending: Vec<String> = run.open().map(|h| format!("{} {:?}", h.id, h.state)).collect();
        format!("at {now:?} the next is due at {deadline:?}: {}", pending.join(", "))
    })
}

/// A run that has been handed on does not fail because of the giver's own words.
pub(crate) fn keeps_the_baton(run: &Run, passed_on: Option<HandoffId>) -> LawResult {
    let failed = matches!(&run.stage, Stage::Finished(_));
    must(!(failed && passed_on.is_some()), "a baton that was passed on is not dropped", || {
        format!("{passed_on:?} was admitted and called off in one step: {:?}", run.stage)
    })
}

fn purse_is_right(run: &Run, history: &History) -> LawResult {
    must(run.purse.spent == history.spent, "what is spent is what turns used", || {
        format!("{:?}, but turns used {:?}", run.purse.spent, history.spent)
    })?;
    let out = run.open().filter_map(|handoff| handoff.state.turn());
    let reserved = out.fold(Usage::default(), |sum, turn| sum + turn.reserved);
    must(run.purse.reserved == reserved, "what is set aside is for turns that are out", || {
        format!("{:?}, but turns out have {reserved:?}", run.purse.reserved)
    })
}

fn outbox_is_recorded(run: &Run, history: &History) -> LawResult {
    let mut keys = BTreeSet::new();
    for order in run.outbox() {
        let key = order.key;
        let out = history.ordered.contains(&key) && !history.ended.contains(&key);
        must(out && keys.insert(key), "the outbox has what is recorded, once", || key.to_string())?;
    }
    Ok(())
}

fn state_is_bounded(run: &Run, history: &History) -> LawResult {
    let open = run.open().count();
    // What was closed since then was open then, and the end closes everything.
    let kept = CLOSED_KEPT + history.closed_since.len();
    must(run.handoffs.len() <= open + kept, "the state is bounded", || {
        format!("{} handoffs, {open} of them open, {kept} may be closed", run.handoffs.len())
    })?;
    let parties = run.workflow.agents.len() + 3;
    must(run.last_use.len() <= parties * parties, "the state is bounded", || {
        format!("{} paths between {parties} parties", run.last_use.len())
    })?;
    let tally = &run.tally;
    let right = tally.handoffs == history.paths.counted && tally.per_item == history.paths.per_item;
    must(right, "counts are right", || format!("{tally:?}, counted {}", history.paths.counted))
}

fn it_is_over(run: &Run) -> LawResult {
    let over = run.open().next().is_none() && run.outbox().next().is_none();
    must(over && run.deadline().is_none(), "a finished run wants nothing", || {
        format!("open: {:?}", run.open().map(|handoff| handoff.id).collect::<Vec<_>>())
    })
}

/// A step decides about everything that it touches.
fn is_decided_about(handoff: &Handoff) -> LawResult {
    let decided = !matches!(handoff.state, State::Undecided);
    must(decided, "a step leaves nothing undecided", || handoff.id.to_string())
}

/// The inputs of a handoff stay within the size limit, however much its givers have.
fn is_of_bounded_size(handoff: &Handoff) -> LawResult {
    const LAW: &str = "inputs and answers are of bounded size";
    let limit = fields::MAX + SMALL_CHANGE;
    let bytes = fields::size(&handoff.inputs);
    must(bytes <= limit, LAW, || format!("{} has inputs of {bytes} bytes", handoff.id))?;
    // Notes in place of values, and the beginnings of texts, add up.
    let limit = limit + SMALL_CHANGE * handoff.answers.len();
    let values: usize = handoff.answers.iter().map(|answer| fields::size(&answer.outputs)).sum();
    let words: usize = handoff.answers.iter().map(Response::words).sum();
    must(values.max(words) <= limit, LAW, || {
        format!("{} has answers of {values} bytes, and {words} beside their values", handoff.id)
    })?;
    let limit = fields::MAX + SMALL_CHANGE * (handoff.gathered.len() + 1);
    let gathered: usize = handoff.gathered.iter().map(Response::size).sum();
    must(gathered <= limit, LAW, || format!("{} has gathered {gathered} bytes", handoff.id))?;
    let offer = handoff.offer.size();
    let about = handoff.offer.question.as_ref().map(|question| &question.about);
    let is_ours =
        matches!(about, Some(About::Permission(..) | About::Recovery(_) | About::Loop(_)));
    let limit = if is_ours { 64 * 1024 } else { limit };
    must(offer <= limit, LAW, || format!("{} was offered with {offer} bytes", handoff.id))
}

fn has_an_owner(run: &Run, handoff: &Handoff) -> LawResult {
    let to = &handoff.offer.to;
    let asked = matches!(handoff.state, State::Asked { .. });
    let owned = match to {
        Party::Human => asked,
        Party::Orchestrator => !asked,
        to if *to == council::party() => !asked && run.workflow.council.is_some(),
        Party::Agent(_) => !asked && run.workflow.agent(to).is_some(),
    };
    must(owned, "every open handoff has an owner", || {
        format!("{} is for {to} and {:?}", handoff.id, handoff.state)
    })
}

/// A waiting handoff waits for something that is open and has a deadline at its end.
fn waits_for_what_can_happen(
    run: &Run,
    id: HandoffId,
    on_the_way: &mut BTreeSet<HandoffId>,
) -> LawResult {
    const LAW: &str = "whoever waits, waits for something that is open";
    must(on_the_way.insert(id), LAW, || format!("{id} waits for itself"))?;
    let Some(handoff) = run.handoff(id).filter(|handoff| handoff.is_open()) else {
        return must(false, LAW, || format!("{id} is over, and {on_the_way:?} wait for it"));
    };
    if let State::Blocked { on } = &handoff.state {
        must(!on.is_empty(), LAW, || format!("{id} waits for nothing"))?;
        for other in on {
            waits_for_what_can_happen(run, *other, &mut on_the_way.clone())?;
        }
    }
    Ok(())
}

fn survives_writing(run: &Run) -> LawResult {
    let read: Option<Run> =
        serde_json::to_string(run).ok().and_then(|text| serde_json::from_str(&text).ok());
    must(read.as_ref() == Some(run), "a snapshot reads back as it was written", || {
        format!("{run:?} became {read:?}")
    })
}
