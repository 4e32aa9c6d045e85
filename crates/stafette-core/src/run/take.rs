//! An external agent claims the turn of an agent that is not started here: from then on the turn is
//! theirs until they answer, or until their lease expires.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run};
use crate::handoff::{Receipt, State, Taken};
use crate::workflow::Runner;
use crate::{Event, Ignored, Millis, Reply, Time, TurnKey};

/// An external agent claimed a turn.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnTaken {
    /// The turn that was claimed.
    pub turn: TurnKey,
    /// The claim: its owner and lease.
    pub taken: Taken,
    /// The deadline for the next sign of life.
    pub due: Time,
    /// The deadline for the end of the turn.
    pub finish_by: Time,
}

/// Gives the turn to the first claimant. The reply names the holder, so that the same caller may
/// claim it again and a second one finds another name.
pub(super) fn decide(draft: &mut Draft, turn: TurnKey, by: String, lease: Option<Millis>) -> Reply {
    if !draft.run.is_current(turn) {
        return Reply::Late;
    }
    let Some(handoff) = draft.run.handoff(turn.handoff) else { return Reply::Late };
    let agent = draft.run.workflow.agent(&handoff.offer.to).map(|(_, agent)| agent);
    if !agent.is_some_and(|agent| agent.runner == Runner::External) {
        return Reply::Ignored(Ignored::NotExternal);
    }
    if let Some(taken) = handoff.state.turn().and_then(|out| out.taken.as_ref()) {
        return Reply::Taken { by: taken.by.clone() };
    }
    let limits = &draft.run.workflow.limits;
    let lease = lease.unwrap_or(limits.lease).min(limits.finish_timeout);
    let latest = handoff.deadline.unwrap_or(Time::MAX);
    let (due, finish_by) = (draft.now + lease, (draft.now + limits.finish_timeout).min(latest));
    let taken = Taken { by: by.clone(), lease };
    draft.record(Event::TurnTaken(TurnTaken { turn, taken, due, finish_by }));
    Reply::Taken { by }
}

impl TurnTaken {
    pub(super) fn apply(&self, run: &mut Run) {
        let Some(handoff) = run.handoff_mut(self.turn.handoff) else { return };
        let Some(turn) = handoff.state.turn() else { return };
        let mut turn = turn.clone();
        turn.receipt = Receipt::Acknowledged;
        turn.due = self.due;
        turn.finish_by = self.finish_by;
        turn.taken = Some(self.taken.clone());
        handoff.state = State::Accepted(turn);
    }
}

#[cfg(test)]
mod tests {
    use crate::run::story::{RELAY, Story, h};
    use crate::{Input, Millis, Status};

    fn outside() -> Story {
        Story::new(&RELAY.replacen("scripted", "external", 1))
    }

    fn takes(story: &mut Story, by: &str, lease: Option<Millis>) -> Option<String> {
        let turn = story.key(h(1));
        story.input(Input::Take { turn, by: by.into(), lease });
        let out = story.run.handoff(h(1)).and_then(|handoff| handoff.state.turn());
        out.and_then(|out| out.taken.as_ref()).map(|taken| taken.by.clone())
    }

    #[test]
    fn b_11_whoever_comes_first_has_the_turn_and_ends_it() {
        let mut story = outside();
        assert_eq!(takes(&mut story, "alice", None).as_deref(), Some("alice"));
        assert_eq!(takes(&mut story, "bob", None).as_deref(), Some("alice"));
        story.done(h(1));
        assert_eq!(story.status(), Status::Succeeded);
    }

    #[test]
    fn b_11_an_agent_that_comes_by_itself_may_come_late_but_must_not_stay_away() {
        let mut story = outside();
        story.later(Millis::hours(5)).input(Input::Tick);
        assert!(takes(&mut story, "alice", Some(Millis::minutes(10))).is_some());
        story.later(Millis::minutes(9)).heartbeat(h(1));
        story.later(Millis::minutes(9)).input(Input::Tick);
        assert_eq!(story.state(h(1)), "running");
        story.later(Millis::minutes(2)).until_due();
        assert!(story.transcript().contains("no sign of life for 10m"), "{}", story.transcript());
        let next = story.key(h(1));
        assert_eq!((next.attempt, takes(&mut story, "bob", None).as_deref()), (2, Some("bob")));
    }

    #[test]
    fn b_11_a_new_daemon_leaves_the_turn_with_whoever_has_it() {
        let mut story = outside();
        takes(&mut story, "alice", None);
        // No process was running to let the lease expire.
        story.now = story.now + Millis::hours(1);
        story.input(Input::Adopt { by: "node 2".into() });
        story.input(Input::Tick);
        assert_eq!(takes(&mut story, "bob", None).as_deref(), Some("alice"));
        assert_eq!(story.run.tally.redelivered, 0);
    }

    #[test]
    fn b_11_nobody_takes_the_turn_of_an_agent_that_is_started_here() {
        let mut story = Story::new(RELAY);
        assert_eq!(takes(&mut story, "mallory", None), None);
    }
}
