//! A process takes the run over: open turns are delivered again, under the same keys and with fresh
//! deadlines, because the agents are not to blame for the time without a process.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run, legacy, resume, turn};
use crate::handoff::{Receipt, State};
use crate::{Event, Fields, Handoff, HandoffId, Ignored, Millis, Reply, Time};

/// A process took the run over.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunAdopted {
    /// The process that took it over.
    pub by: String,
    /// The turns that are delivered again.
    #[serde(default)]
    pub redelivered: Vec<HandoffId>,
    /// The turns that stay with external agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<HandoffId>,
    /// The new deadlines of both; `None` in events of older releases, where they are computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clocks: Option<Vec<Clock>>,
}

/// The deadlines of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Clock {
    /// The handoff that the turn belongs to.
    pub handoff: HandoffId,
    /// The deadline for the next sign of life.
    pub due: Time,
    /// The deadline for the end of the turn.
    pub finish_by: Time,
}

/// Returns fresh deadlines, within the handoff's own, for an open turn that gets `due` for its next
/// sign of life, unless it is taken for a time of its own.
fn clock(run: &Run, now: Time, handoff: &Handoff, due: Millis) -> Option<Clock> {
    let limits = &run.workflow.limits;
    let turn = handoff.state.turn()?;
    let due = now + turn.taken.as_ref().map_or(due, |taken| taken.lease);
    let finish_by = (now + limits.finish_timeout).min(handoff.deadline.unwrap_or(Time::MAX));
    Some(Clock { handoff: handoff.id, due, finish_by })
}

pub(crate) fn decide(draft: &mut Draft, by: String) -> Reply {
    let (mut redelivered, mut kept) = (Vec::new(), Vec::new());
    for handoff in draft.run.open() {
        match handoff.state.turn() {
            Some(turn) if turn.taken.is_some() => kept.push(handoff.id),
            Some(_) => redelivered.push(handoff.id),
            None => {}
        }
    }
    let run = &draft.run;
    let clock = |it| clock(run, draft.now, it, turn::time_to_accept(run, it));
    let clocks = Some(run.open().filter_map(clock).collect());
    // A fork may begin in the middle of another run's step: undecided handoffs are decided again.
    let undecided: Vec<HandoffId> =
        draft.run.open().filter(|it| it.is_undecided()).map(|it| it.id).collect();
    draft.record(Event::RunAdopted(RunAdopted { by, redelivered, kept, clocks }));
    for id in undecided {
        resume::resume(draft, id, Fields::new());
    }
    Reply::Recorded
}

/// Gives every turn in progress fresh deadlines: the agents are not to blame for the time that was
/// skipped either.
pub(crate) fn after_a_jump(draft: &mut Draft, by: Millis) -> Reply {
    let run = &draft.run;
    let due = |it: &Handoff| match it.state {
        State::Ordered(_) => turn::time_to_accept(run, it),
        _ => run.workflow.limits.lease,
    };
    let clocks: Vec<Clock> =
        run.open().filter_map(|it| clock(run, draft.now, it, due(it))).collect();
    if clocks.is_empty() {
        return Reply::Ignored(Ignored::Unchanged);
    }
    let kept = clocks.iter().map(|clock| clock.handoff).collect();
    let by = format!("the same process; its clock went forward by {by}");
    let (redelivered, clocks) = (Vec::new(), Some(clocks));
    draft.record(Event::RunAdopted(RunAdopted { by, redelivered, kept, clocks }));
    Reply::Recorded
}

impl RunAdopted {
    pub(crate) fn apply(&self, run: &mut Run, at: Time) {
        let clocks = self.clocks.clone().unwrap_or_else(|| legacy::clocks(run, at));
        for clock in clocks {
            let handoff = run.handoff_mut(clock.handoff);
            if let Some(turn) = handoff.and_then(|handoff| handoff.state.turn_mut()) {
                turn.due = clock.due;
                turn.finish_by = clock.finish_by;
            }
        }
        for id in &self.redelivered {
            run.tally.redelivered += 1;
            let Some(handoff) = run.handoff_mut(*id) else { continue };
            if let Some(turn) = handoff.state.turn() {
                let mut turn = turn.clone();
                turn.deliveries += 1;
                turn.receipt = Receipt::Queued;
                handoff.permits.clear();
                handoff.state = State::Ordered(turn);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::run::story::{RELAY, Story, h};
    use crate::{Input, Millis};

    #[test]
    fn b_22_a_machine_that_slept_blames_no_agent() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        let before = (story.state(h(1)), story.key(h(1)));
        story.now = story.now + Millis::hours(8);
        story.input(Input::ClockJumped { by: Millis::hours(8) }).input(Input::Tick);
        assert_eq!((story.state(h(1)), story.key(h(1))), before);
        story.later(Millis::minutes(2));
        assert!(story.transcript().contains("no sign of life"), "it has its lease, and no more");
    }
}
