//! Time has passed: handles everything that was due and did not arrive.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run, answer, budget, close, fail, finish, permission, recover, tell};
use crate::handoff::{About, State, Way};
use crate::workflow::RecoveryCause;
use crate::{
    Event, Failure, FailureKind, HandoffId, Reply, Response, Time, TurnResult, Unknown, Usage, Usd,
};

/// A handoff was not answered within the time limit of its document.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandoffOverdue {
    /// The handoff whose deadline has passed.
    pub handoff: HandoffId,
    /// The deadline for the answer.
    pub deadline: Time,
}

pub(crate) fn decide(draft: &mut Draft) -> Reply {
    let open: Vec<HandoffId> = draft.run.open().map(|handoff| handoff.id).collect();
    for id in open {
        one(draft, id);
    }
    budget::check_time(draft);
    Reply::Recorded
}

fn one(draft: &mut Draft, id: HandoffId) {
    // An earlier deadline in the same step may have closed it.
    let Some(handoff) = draft.run.handoff(id).filter(|handoff| handoff.is_open()) else { return };
    let limits = &draft.run.workflow.limits;
    let now = draft.now;
    if let Some(deadline) = handoff.deadline.filter(|deadline| *deadline <= now) {
        return overdue(draft, id, deadline);
    }
    let (message, trouble) = match &handoff.state {
        State::Asked { until } if *until <= now => return unanswered(draft, id),
        state => match state.turn() {
            Some(turn) if turn.finish_by <= now => {
                (format!("not finished within {}", limits.finish_timeout), RecoveryCause::Expired)
            }
            Some(turn) if permission::due(&draft.run, handoff).is_some_and(|due| due <= now) => {
                match state {
                    State::Ordered(_) => ("not accepted in time".to_owned(), RecoveryCause::Failed),
                    _ => {
                        let lease = turn.taken.as_ref().map_or(limits.lease, |taken| taken.lease);
                        (format!("no sign of life for {lease}"), RecoveryCause::Failed)
                    }
                }
            }
            _ => return,
        },
    };
    gone(draft, id, message, trouble);
}

/// Gives up the open turn, unless its agent has reported the outcome already: then that is the result,
/// and no work is repeated. The actual usage is unknown: the reserved amount counts as spent, or what
/// was reported if that is more. The entire remaining budget, reserved because the agent's cost is
/// unknown, does not count.
fn gone(draft: &mut Draft, id: HandoffId, message: String, trouble: RecoveryCause) {
    let Some(handoff) = draft.run.handoff(id) else { return };
    let told = handoff.told.usage;
    let reserved = handoff.state.turn().map_or(Usage::default(), |turn| turn.reserved);
    let counts = budget::is_known(&draft.run, handoff);
    let tokens = if counts { reserved.tokens.saturating_sub(told.tokens) } else { 0 };
    let money = Usd(if counts { reserved.money.0.saturating_sub(told.money.0) } else { 0 });
    let unknown = Unknown { tokens: u32::from(tokens == 0), money: u32::from(money == Usd(0)) };
    let besides = Usage { estimated: money, unknown, ..Usage::exactly(tokens, money) };
    let turn = handoff.key(draft.run.id);
    if let Some(result) = tell::answer(&draft.run, id) {
        finish::decide(draft, turn, TurnResult { usage: besides, ..result });
        return;
    }
    let usage = besides.and_reported(told);
    let failure = Failure::new(FailureKind::Recoverable, message);
    fail::broke(draft, turn, failure, usage, trouble);
}

/// Treats an answer after the deadline as late, even if no tick has arrived since.
pub(crate) fn if_overdue(draft: &mut Draft, id: HandoffId) {
    let deadline = draft.run.handoff(id).and_then(|handoff| handoff.deadline);
    if let Some(deadline) = deadline.filter(|deadline| *deadline <= draft.now) {
        overdue(draft, id, deadline);
    }
}

/// Ends a handoff whose total time has passed, in any state: work on it stops, and recovery decides
/// what its asker gets.
fn overdue(draft: &mut Draft, id: HandoffId, deadline: Time) {
    let Some(handoff) = draft.run.handoff(id) else { return };
    let within = handoff.offer.timeout.unwrap_or(deadline.since(handoff.admitted_at));
    let message = format!("not answered within {within}");
    let is_out = handoff.state.turn().is_some();
    draft.record(Event::HandoffOverdue(HandoffOverdue { handoff: id, deadline }));
    if is_out {
        return gone(draft, id, message, RecoveryCause::Expired);
    }
    close::call_off_below(draft, id, &message);
    recover::decide(draft, id, Response::failed(message), RecoveryCause::Expired);
}

impl HandoffOverdue {
    pub(crate) fn apply(&self, run: &mut Run) {
        let Some(handoff) = run.handoff_mut(self.handoff) else { return };
        handoff.deadline = None;
        if handoff.state.turn().is_none() {
            handoff.state = State::Undecided;
        }
    }
}

/// Handles a question without an answer: takes the default; without one the run cannot continue,
/// unless an agent asked for permission: its turn ends if it cannot do without.
fn unanswered(draft: &mut Draft, id: HandoffId) {
    let Some(question) = draft.run.handoff(id).and_then(|h| h.offer.question.clone()) else {
        return;
    };
    if let Some(text) = question.default {
        let taken = answer::Answer { text, by: "default".into(), ..answer::Answer::default() };
        // A default that does not match the question counts as none: it cannot be corrected by
        // anyone.
        if answer::decide(draft, id, taken) == Reply::Answered {
            return;
        }
    }
    let why = format!("nobody answered in time: {}", question.details);
    close::close(draft, id, Response::failed(&why), Way::Expired);
    if question.blocking && !matches!(question.about, About::Permission(..)) {
        close::end(draft, super::Status::Failed, &why);
    }
}

#[cfg(test)]
mod tests {
    use crate::run::story::{RELAY, Story, ask, h, pass};
    use crate::run::tell::TurnReport;
    use crate::{Input, Millis, Offer, Status};

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
    fn b_19_what_an_agent_reported_before_it_fell_silent_is_its_result() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        let (turn, offers) = (story.key(h(1)), vec![pass("builder")]);
        let told = TurnReport { offers, ..TurnReport::default() };
        story.input(Input::Tell { turn, told: Box::new(told) });
        story.later(Millis::seconds(120));
        assert_eq!((story.state(h(1)), story.state(h(2))), ("resolved", "pending"));
        assert_eq!(story.run.tally.retries, 0);
    }

    const PAIR: &str = r#"
        workflow = { name = "pair", entry = "writer" }
        agents = { writer.runner = "scripted", research.runner = "scripted" }
        routes = [{ from = "writer", to = "research" }]
        limits = { cooldown = 0 }
    "#;

    /// Creates an offer with a `timeoutMs` of two seconds.
    fn within_two_seconds(to: &str) -> Offer {
        Offer { timeout: Some(Millis::seconds(2)), ..ask(to) }
    }

    #[test]
    fn s2_03_a_timeout_bounds_the_whole_handoff_and_a_later_answer_is_kept_as_evidence() {
        let mut story = Story::new(PAIR);
        story.hands(h(1), vec![within_two_seconds("research")]).accept(h(2));
        assert_eq!(story.run.deadline(), Some(story.now + Millis::seconds(2)));
        story.input(Input::Adopt { by: "node 2".into() });
        assert_eq!(
            story.run.deadline(),
            Some(story.now + Millis::seconds(2)),
            "nor does a restart"
        );
        let late = story.key(h(2));
        story.later(Millis::seconds(2)).later(Millis::seconds(6));
        let result = Box::new(crate::run::story::done());
        assert_eq!(story.reply(Input::Finish { turn: late, result }), crate::Reply::Late);
        assert_eq!(story.status(), Status::WaitingForHuman);
        insta::assert_snapshot!(story.transcript(), @r"
        run created: Add user auth
        h1 human → writer (task_handoff)
        h1 turn 1.1 ordered
        h1 acknowledged
        h1 turn ended
        h2 writer → research (missing_required_input)
        h1 waits for [h2]
        h2 turn 1.1 ordered
        h2 acknowledged
        run adopted, redelivered [h2]
        h2 is overdue
        h2 turn failed: not answered within 2s
        h2 recovery: Escalate
        h3 research → human (handoff_failed)
        h2 waits for [h3]
        h2 late result of 1.1 kept
        ");
    }

    #[test]
    fn s2_03_a_result_after_the_timeout_is_late_also_when_it_comes_before_the_clock() {
        let mut story = Story::new(PAIR);
        story.hands(h(1), vec![within_two_seconds("research")]).accept(h(2));
        let turn = story.key(h(2));
        story.now = story.now + Millis::seconds(2);
        let result = Box::new(crate::run::story::done());
        assert_eq!(story.reply(Input::Finish { turn, result }), crate::Reply::Late);
        let told = story.transcript();
        assert!(told.contains("h2 is overdue") && told.contains("h2 late result"), "{told}");
    }

    #[test]
    fn s2_03_a_timeout_counts_before_the_handoff_is_accepted_and_while_it_waits_for_others() {
        let mut story = Story::new(&PAIR.replace("cooldown = 0", "cooldown = \"1h\""));
        story.hands(h(1), vec![within_two_seconds("research"), within_two_seconds("research")]);
        assert_eq!(story.run.outbox().count(), 1, "the other one cools down");
        story.later(Millis::seconds(2));
        assert!(story.transcript().contains("h3 is overdue"), "{}", story.transcript());

        let chain = PAIR
            .replace(
                "research.runner = \"scripted\" }",
                "research.runner = \"scripted\", library.runner = \"scripted\" }",
            )
            .replace(
                "to = \"research\" }",
                "to = \"research\" }, { from = \"research\", to = \"library\" }",
            );
        let mut story = Story::new(&chain);
        story.hands(h(1), vec![within_two_seconds("research")]).hands(h(2), vec![ask("library")]);
        assert_eq!((story.state(h(2)), story.state(h(3))), ("blocked", "pending"));
        story.later(Millis::seconds(2));
        assert_eq!(story.state(h(3)), "cancelled", "nobody waits for the library any more");
    }

    #[test]
    fn s2_03_a_timeout_to_a_person_bounds_the_escalated_answer_and_not_the_question() {
        let mut story = Story::new(PAIR);
        story.hands(h(1), vec![within_two_seconds("human")]);
        assert_eq!(story.state(h(2)), "asked", "immediately");
        story.later(Millis::hours(2));
        assert_eq!(story.state(h(2)), "asked");

        // Nor does the timeout run while a person is asked on the way to the answer.
        let mut story = Story::new(PAIR);
        story.hands(h(1), vec![within_two_seconds("research")]).hands(h(2), vec![ask("human")]);
        story.later(Millis::hours(2)).person_says(h(3), "JWT").done(h(2)).done(h(1));
        assert_eq!(story.status(), Status::Succeeded);
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
    fn b_13_a_default_that_is_not_what_was_asked_for_is_none() {
        let mut story = Story::new(RELAY);
        let question = crate::Question {
            details: "How many?".into(),
            blocking: true,
            default: Some("a few".into()),
            within: Some(Millis::minutes(10)),
            ..crate::Question::default()
        };
        let missing = vec![crate::MissingInput {
            key: "size".into(),
            expected_type: "number".into(),
            description: String::new(),
            source: None,
        }];
        let offer = Offer { question: Some(question), missing, ..ask("human") };
        story.hands(h(1), vec![offer]).later(Millis::minutes(10));
        assert_eq!(story.status(), Status::Failed);
        assert!(story.transcript().contains("nobody answered in time"), "{}", story.transcript());
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
