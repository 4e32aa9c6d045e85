//! An agent's quota is used up: another agent takes the work, or it waits until the quota is
//! restored. This uses up no attempt.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run, recover};
use crate::handoff::State;
use crate::{Event, Failure, HandoffId, Millis, Time};

/// The time to wait if the agent reports none.
pub const UNKNOWN: Millis = Millis::hours(1);

/// A handoff waits for its agent's quota.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandoffParked {
    /// The handoff that waits.
    pub handoff: HandoffId,
    /// The end of the wait.
    pub until: Time,
    /// The agent's own message.
    pub why: String,
}

/// Handles a turn of `id` that has just ended because the quota is used up.
pub(super) fn decide(draft: &mut Draft, id: HandoffId, failure: Failure) {
    if recover::fail_over(draft, id, &failure.message) {
        return;
    }
    // A time that has (nearly) passed must not cause a busy loop: no attempt is used up that would
    // end it.
    let soonest = draft.now + draft.run.workflow.retries.max_backoff;
    let until = failure.until.unwrap_or(draft.now + UNKNOWN).max(soonest);
    let event = HandoffParked { handoff: id, until, why: failure.message };
    draft.record(Event::HandoffParked(event));
}

impl HandoffParked {
    pub(super) fn apply(&self, run: &mut Run) {
        if let Some(handoff) = run.handoff_mut(self.handoff) {
            handoff.state = State::Parked { until: self.until, why: self.why.clone() };
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::handoff::State;
    use crate::run::story::{RELAY, Story, h, pass};
    use crate::{Failure, Input, Millis, Status, Time};

    fn until(hours: u64) -> Failure {
        Failure::quota(Some(Time(0) + Millis::hours(hours)), "usage limit reached")
    }

    #[test]
    fn b_09_a_used_up_quota_parks_the_work_until_it_resets_and_spends_no_attempt() {
        let mut story = Story::new(RELAY);
        story.accept(h(1)).breaks_with(h(1), until(3));
        assert_eq!((story.state(h(1)), story.status()), ("parked", Status::WaitingForQuota));
        assert_eq!(story.status().to_string(), "waiting for quota");
        assert_eq!(story.run.deadline(), Some(Time(0) + Millis::hours(3)));
        let state = &story.run.handoff(h(1)).expect("it is parked").state;
        assert!(matches!(state, State::Parked { why, .. } if why == "usage limit reached"));
        story.later(Millis::hours(2));
        assert_eq!(story.run.outbox().count(), 0, "not before the reset");
        story.until_due().done(h(1));
        assert_eq!((story.status(), story.run.tally.retries), (Status::Succeeded, 0));
        insta::assert_snapshot!(story.transcript(), @r"
        run created: Add user auth
        h1 human → planner (task_handoff)
        h1 turn 1.1 ordered
        h1 acknowledged
        h1 turn failed: usage limit reached
        h1 parked until 1970-01-01T03:00:00.000Z: usage limit reached
        h1 turn 1.2 ordered
        h1 acknowledged
        h1 turn ended
        h1 Resolved by planner
        run succeeded: nothing is left to do
        ");
    }

    #[test]
    fn b_09_an_unknown_reset_is_an_hour_away() {
        let mut story = Story::new(RELAY);
        story.breaks_with(h(1), Failure::quota(None, "too many requests"));
        assert_eq!(story.run.deadline(), Some(Time(0) + Millis::hours(1)));
    }

    #[test]
    fn b_09_a_reset_in_the_past_is_no_busy_loop() {
        let mut story = Story::new(RELAY);
        story.later(Millis::seconds(10)).breaks_with(h(1), until(0));
        assert_eq!(story.run.deadline(), Some(story.now + Millis::minutes(1)));
        for _ in 0..10 {
            story.until_due().breaks_with(h(1), until(0));
        }
        assert_eq!((story.status(), story.run.tally.retries), (Status::WaitingForQuota, 0));
    }

    const SPARE: &str = r#"
        workflow = { name = "spare", entry = "planner" }
        agents = { planner.runner = "scripted", builder.runner = "scripted", mason.runner = "scripted", carpenter.runner = "scripted" }
        routes = [{ from = "planner", to = "builder", alternatives = ["mason", "carpenter"] }]
        limits = { cooldown = 0 }
    "#;

    #[test]
    fn b_09_the_routes_alternatives_take_over_one_after_the_other() {
        let mut story = Story::new(SPARE);
        story.hands(h(1), vec![pass("builder")]).breaks_with(h(2), until(5));
        let order = story.run.outbox().next().expect("somebody else works at once");
        assert_eq!(order.agent.as_str(), "mason");
        assert_eq!(order.offer.prior_attempts[0].result, "usage limit reached");
        story.breaks_with(h(3), until(2));
        assert_eq!(story.run.outbox().next().expect("a turn").agent.as_str(), "carpenter");
        story.breaks_with(h(4), until(1));
        assert_eq!(story.status(), Status::WaitingForQuota, "nobody is left");
        story.until_due().done(h(4));
        assert_eq!((story.status(), story.run.tally.retries), (Status::Succeeded, 0));
        insta::assert_snapshot!(story.transcript(), @r"
        run created: Add user auth
        h1 human → planner (task_handoff)
        h1 turn 1.1 ordered
        h1 acknowledged
        h1 turn ended
        h2 planner → builder (task_handoff)
        h1 Resolved by planner
        h2 turn 1.1 ordered
        h2 turn failed: usage limit reached
        h2 recovery: RetryDifferentTarget
        h3 planner → mason (task_handoff)
        h2 Failed, [h3] instead
        h3 turn 1.1 ordered
        h3 turn failed: usage limit reached
        h3 recovery: RetryDifferentTarget
        h4 planner → carpenter (task_handoff)
        h3 Failed, [h4] instead
        h4 turn 1.1 ordered
        h4 turn failed: usage limit reached
        h4 parked until 1970-01-01T01:00:00.000Z: usage limit reached
        h4 turn 1.2 ordered
        h4 acknowledged
        h4 turn ended
        h4 Resolved by carpenter
        run succeeded: nothing is left to do
        ");
    }

    #[test]
    fn b_09_parked_work_can_be_called_off_and_held() {
        let mut story = Story::new(RELAY);
        story.breaks_with(h(1), until(3)).input(Input::Pause { by: "ada".into() });
        story.later(Millis::hours(4));
        assert_eq!(story.run.outbox().count(), 0, "a paused run gives out nothing");
        story.input(Input::Unpause { by: "ada".into() });
        assert_eq!(story.run.outbox().count(), 1);
        story.breaks_with(h(1), until(9));
        story.input(Input::Cancel { by: "ada".into(), why: String::new() });
        assert_eq!((story.state(h(1)), story.status()), ("cancelled", Status::Cancelled));
    }
}
