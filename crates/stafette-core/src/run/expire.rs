//! Time has passed: whatever was due and did not come is acted upon.

use super::{Draft, answer, budget, close, fail};
use crate::handoff::{State, Way};
use crate::workflow::Trouble;
use crate::{Failure, FailureKind, HandoffId, Reply, Response, Usage};

pub(super) fn decide(draft: &mut Draft) -> Reply {
    let open: Vec<HandoffId> = draft.run.open().map(|handoff| handoff.id).collect();
    for id in open {
        one(draft, id);
    }
    budget::check_time(draft);
    Reply::Recorded
}

fn one(draft: &mut Draft, id: HandoffId) {
    let Some(handoff) = draft.run.handoff(id) else {
        return;
    };
    let limits = &draft.run.workflow.limits;
    let now = draft.now;
    let (message, trouble) = match &handoff.state {
        State::Asked { until } if *until <= now => return unanswered(draft, id),
        state => match state.turn() {
            Some(turn) if turn.finish_by <= now => {
                (format!("not finished within {}", limits.finish_timeout), Trouble::Expired)
            }
            Some(turn) if turn.due <= now => match state {
                State::Ordered(_) => ("not accepted in time".to_owned(), Trouble::Failed),
                _ => {
                    let lease = turn.taken.as_ref().map_or(limits.lease, |taken| taken.lease);
                    (format!("no sign of life for {lease}"), Trouble::Failed)
                }
            },
            _ => return,
        },
    };
    let turn = handoff.key(draft.run.id);
    let failure = Failure::new(FailureKind::Recoverable, message);
    // What it really used is not known: what was set aside for it counts as spent.
    let usage = handoff.state.turn().map_or(Usage::default(), |turn| turn.reserved);
    fail::broke(draft, turn, failure, usage, trouble);
}

/// Nobody answered: the default is taken; without one the run cannot go on.
fn unanswered(draft: &mut Draft, id: HandoffId) {
    let Some(question) = draft.run.handoff(id).and_then(|h| h.offer.question.clone()) else {
        return;
    };
    if let Some(text) = question.default {
        let taken = answer::Answer { text, by: "default".into(), ..answer::Answer::default() };
        answer::decide(draft, id, taken);
        return;
    }
    let why = format!("nobody answered in time: {}", question.details);
    close::close(draft, id, Response::failed(&why), Way::Expired);
    if question.blocking {
        close::end(draft, super::Status::Failed, &why);
    }
}

#[cfg(test)]
mod tests {
    use crate::run::story::{RELAY, Story, h};
    use crate::{Input, Millis, Status};

    #[test]
    fn b_02_a_turn_that_nobody_accepts_is_given_out_again() {
        let mut story = Story::new(RELAY);
        story.later(Millis::seconds(30)).until_due();
        insta::assert_snapshot!(story.transcript(), @r"
        run created: Add user auth
        h1 human → planner (task_handoff)
        h1 turn 1.1 ordered
        h1 turn failed: not accepted in time
        h1 attempt 2 later
        h1 turn 2.2 ordered
        ");
    }

    #[test]
    fn b_02_a_silent_agent_loses_its_lease_and_a_living_one_keeps_it() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        for _ in 0..10 {
            story.later(Millis::seconds(60)).heartbeat(h(1));
        }
        assert_eq!(story.state(h(1)), "running");
        story.later(Millis::seconds(120));
        assert!(story.transcript().contains("no sign of life"));
        assert_eq!(story.run.tally.retries, 1);
    }

    #[test]
    fn heartbeats_are_recorded_only_when_the_lease_needs_them() {
        let mut story = Story::new(RELAY);
        story.accept(h(1)).heartbeat(h(1));
        let before = story.log.len();
        for _ in 0..50 {
            story.later(Millis::seconds(1)).heartbeat(h(1));
        }
        assert_eq!(story.log.len(), before);
        story.later(Millis::seconds(10)).heartbeat(h(1));
        assert_eq!(story.log.len(), before + 1);
    }

    #[test]
    fn b_02_work_that_never_ends_expires_however_alive_it_is() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        for _ in 0..120 {
            story.later(Millis::minutes(1)).heartbeat(h(1));
        }
        assert!(story.transcript().contains("not finished within 2h 00m"));
        assert_eq!(story.status(), Status::WaitingForHuman);
    }

    #[test]
    fn b_02_a_question_without_an_answer_ends_the_run_and_says_so() {
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![crate::run::story::ask("human")]);
        story.later(Millis::hours(7 * 24));
        assert_eq!(story.status(), Status::Failed);
        assert!(story.transcript().contains("nobody answered in time"));
    }

    #[test]
    fn b_13_a_question_takes_its_default_when_nobody_answers() {
        let mut story = Story::new(RELAY);
        let question = crate::Question {
            details: "JWT or sessions?".into(),
            blocking: true,
            default: Some("JWT".into()),
            within: Some(Millis::minutes(10)),
            ..crate::Question::default()
        };
        let offer = crate::Offer { question: Some(question), ..crate::run::story::ask("human") };
        story.hands(h(1), vec![offer]).until_due();
        let order = story.run.outbox().next().expect("a turn");
        assert_eq!(order.inputs["answer"], "JWT");
    }

    #[test]
    fn b_01_a_restart_delivers_the_same_turn_again_with_a_fresh_clock() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        let key = story.key(h(1));
        story.now = story.now + Millis::hours(5);
        story.input(Input::Adopt { by: "node 2".into() });
        let order = story.run.outbox().next().expect("the same turn");
        assert_eq!((order.key, order.deliveries), (key, 2));
        assert_eq!(story.run.tally.redelivered, 1);
        story.input(Input::Tick);
        assert_eq!(story.run.tally.retries, 0);
        story.done(h(1));
        assert_eq!(story.status(), Status::Succeeded);
    }
}
