//! A turn fails: it is retried after a delay, or recovered once the attempts are used up.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run, alert, budget, escalate, finish, park, permission, recover, tell};
use crate::handoff::State;
use crate::workflow::{RecoveryCause, Retries};
use crate::{
    Event, Failure, FailureKind, HandoffId, Millis, Reply, Response, Time, TurnKey, TurnResult,
    Usage,
};

/// A turn failed before it had a result.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnFailed {
    /// The turn that failed.
    pub turn: TurnKey,
    /// The cause of the failure.
    pub failure: Failure,
    /// The usage until the failure.
    #[serde(default)]
    pub usage: Usage,
}

/// Another attempt is scheduled. Fences all earlier ones: their results are late from now on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RetryScheduled {
    /// The handoff that is retried.
    pub handoff: HandoffId,
    /// The number of the next attempt.
    pub attempt: u32,
    /// The earliest time of the next attempt.
    pub not_before: Time,
}

pub(super) fn decide(draft: &mut Draft, turn: TurnKey, failure: Failure, usage: Usage) -> Reply {
    if !draft.run.is_current(turn) {
        return Reply::Late;
    }
    // A report was acknowledged: whatever happens to its agent after that, it counts.
    match tell::answer(&draft.run, turn.handoff) {
        Some(result) => {
            if failure.kind != FailureKind::Invalid {
                let message = format!(
                    "{turn} has told its result, which counts, and failed after that: {}",
                    failure.message
                );
                alert::decide(draft, "FAILED_AFTER_REPORT".to_owned(), message);
            }
            finish::decide(draft, turn, TurnResult { usage, ..result })
        }
        None => {
            broke(draft, turn, failure, usage, RecoveryCause::Failed);
            Reply::Recorded
        }
    }
}

/// Handles a failure of the open turn, reported by the agent or detected by a deadline.
pub(super) fn broke(
    draft: &mut Draft,
    turn: TurnKey,
    failure: Failure,
    usage: Usage,
    trouble: RecoveryCause,
) {
    let usage = budget::lost(&draft.run, turn.handoff, usage);
    draft.record(Event::TurnFailed(TurnFailed { turn, failure: failure.clone(), usage }));
    permission::withdraw(draft, turn);
    let id = turn.handoff;
    if failure.kind == FailureKind::Fatal {
        return escalate::about_failure(draft, id, &failure.message);
    }
    if failure.kind == FailureKind::Quota {
        return park::decide(draft, id, failure);
    }
    let retries = &draft.run.workflow.retries;
    if trouble == RecoveryCause::Expired || turn.attempt >= retries.max {
        return recover::decide(draft, id, Response::failed(failure.message), trouble);
    }
    let pause = backoff(retries, turn).max(draft.run.workflow.limits.cooldown);
    let not_before = draft.now + pause;
    let attempt = turn.attempt + 1;
    draft.record(Event::RetryScheduled(RetryScheduled { handoff: id, attempt, not_before }));
}

/// Returns a delay that doubles after each attempt and differs a little for each turn, so that many
/// turns do not return in the same moment. The difference is derived from the key: the core uses no
/// randomness.
fn backoff(retries: &Retries, turn: TurnKey) -> Millis {
    let doublings = turn.attempt.saturating_sub(1).min(32);
    let plain = retries.backoff.0.saturating_mul(1 << doublings).min(retries.max_backoff.0);
    let hash = turn.to_string().bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let swing = (hash >> 11) as f64 / (1_u64 << 53) as f64 * 2.0 - 1.0;
    Millis((plain as f64 * (1.0 + swing * retries.jitter.clamp(0.0, 1.0))) as u64)
}

impl TurnFailed {
    pub(super) fn apply(&self, run: &mut Run) {
        budget::settle(run, self.turn.handoff, Some(self.usage));
        run.mail.take_back(self.turn);
        let again = matches!(self.failure.kind, FailureKind::Invalid | FailureKind::Recoverable);
        if let Some(handoff) = run.handoff_mut(self.turn.handoff) {
            handoff.permits.clear();
            handoff.told = super::tell::TurnReport::default();
            handoff.ignored.clear();
            if again && handoff.constraints.keeps {
                // The next attempt receives the error of this one.
                handoff.answers.push(Response::failed(self.failure.message.clone()));
            }
            handoff.state = State::Undecided;
        }
    }
}

impl RetryScheduled {
    pub(super) fn apply(&self, run: &mut Run) {
        run.tally.retries += 1;
        if let Some(handoff) = run.handoff_mut(self.handoff) {
            handoff.attempt = self.attempt;
            handoff.state = State::Pending { not_before: self.not_before };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::story::{RELAY, Story, h, pass};
    use crate::{FailureKind, Input, Status};

    #[test]
    fn b_19_an_agent_that_fails_after_its_report_has_reported() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        let (turn, offers) = (story.key(h(1)), vec![pass("builder")]);
        let told = tell::TurnReport { offers, ..Default::default() };
        story.input(Input::Tell { turn, told: Box::new(told) });
        story.breaks(h(1), FailureKind::Recoverable);
        assert_eq!((story.state(h(1)), story.state(h(2))), ("resolved", "pending"));
        assert_eq!(story.run.tally.retries, 0);
    }

    #[test]
    fn s5_07_a_turn_is_tried_three_times_with_growing_pauses_and_then_recovery_decides() {
        let mut story = Story::new(RELAY);
        let mut pauses = Vec::new();
        for _ in 0..2 {
            story.breaks(h(1), FailureKind::Recoverable);
            pauses.push(story.run.deadline().expect("a deadline").since(story.now).0);
            story.until_due();
        }
        assert!((800..=1200).contains(&pauses[0]), "{pauses:?}");
        assert!((1600..=2400).contains(&pauses[1]), "{pauses:?}");
        story.breaks(h(1), FailureKind::Recoverable);
        insta::assert_snapshot!(story.transcript(), @r"
        run created: Add user auth
        h1 human → planner (task_handoff)
        h1 turn 1.1 ordered
        h1 turn failed: it broke
        h1 attempt 2 later
        h1 turn 2.2 ordered
        h1 turn failed: it broke
        h1 attempt 3 later
        h1 turn 3.3 ordered
        h1 turn failed: it broke
        h1 recovery: Escalate
        h2 planner → human (handoff_failed)
        h1 waits for [h2]
        ");
    }

    #[test]
    fn s5_07_a_fatal_failure_goes_to_a_person_at_once() {
        let mut story = Story::new(RELAY);
        story.breaks(h(1), FailureKind::Fatal);
        assert_eq!(story.run.tally.retries, 0);
        assert_eq!(story.question(h(2)).options, ["retry", "skip", "stop"]);
        assert_eq!(story.status(), Status::WaitingForHuman);
        story.person_says(h(2), "retry").hands(h(1), vec![]);
        assert_eq!(story.status(), Status::Succeeded);
    }

    #[test]
    fn a_retry_waits_for_the_cooldown_too_and_is_never_refused_for_it() {
        let mut story = Story::new(&RELAY.replace("cooldown = \"0s\"", "cooldown = \"30s\""));
        story.breaks(h(1), FailureKind::Recoverable);
        assert_eq!(story.run.deadline(), Some(story.now + Millis::seconds(30)));
        assert_eq!(story.run.tally.refused, 0);
    }

    #[test]
    fn b_04_the_late_result_of_a_fenced_attempt_is_kept_and_changes_nothing() {
        let mut story = Story::new(RELAY);
        let stale = story.key(h(1));
        story.breaks(h(1), FailureKind::Recoverable).until_due();
        let before = story.run.handoff(h(1)).cloned();
        let result =
            crate::TurnResult { offers: vec![pass("builder")], ..crate::run::story::done() };
        story.input(Input::Finish { turn: stale, result: Box::new(result) });
        assert_eq!(story.run.handoff(h(1)).cloned(), before);
        assert!(story.transcript().ends_with("h1 late result of 1.1 kept\n"));
        story.done(h(1));
        assert_eq!(story.status(), Status::Succeeded);
        story.input(Input::Finish { turn: stale, result: Box::new(crate::run::story::done()) });
        assert_eq!(story.run.tally.late, 2);
    }
}
