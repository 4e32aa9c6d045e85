//! An agent asks for permission during its turn, and waits there.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Draft;
use super::propose::{self, Proposal};
use super::{Run, answer, close, turn};
use crate::handoff::{About, State, Way};
use crate::{
    Event, Handoff, HandoffId, Kind, Offer, Party, Question, Reason, Reply, Response, Time, TurnKey,
};

/// The answer to an agent's permission request.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Permit {
    /// The agent's own id of the request.
    pub request: String,
    /// The option that was chosen.
    pub choice: String,
}

/// An agent received the answer to its permission request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PermitGiven {
    /// The turn in which it asked.
    pub turn: TurnKey,
    /// The answer that it received.
    pub permit: Permit,
}

/// Asks a person for permission; a repeated request counts once.
pub(super) fn ask(draft: &mut Draft, turn: TurnKey, request: String, question: Question) -> Reply {
    if !draft.run.is_current(turn) {
        return Reply::Late;
    }
    if let Some((handoff, _)) = open(&draft.run, turn).find(|(_, known)| *known == request) {
        return Reply::Admitted { handoff };
    }
    let Some(handoff) = draft.run.handoff(turn.handoff) else { return Reply::Late };
    let about = About::Permission(turn, request);
    // A turn in progress continues, and only its agent waits; one that its agent has not accepted
    // cannot begin before the answer.
    let blocking = matches!(handoff.state, State::Ordered(_));
    let question = Question { about, blocking, ..question };
    let offer = Offer {
        detail: question.details.clone(),
        question: Some(question),
        ..Offer::new(
            handoff.offer.to.clone(),
            Party::Human,
            Kind::Transfer,
            Reason::RequiresHumanDecision,
        )
    };
    let proposal = Proposal { cause: Some(turn.handoff), ..Proposal::of(offer) };
    Reply::Admitted { handoff: propose::ask(draft, proposal) }
}

pub(super) fn answered(draft: &mut Draft, turn: TurnKey, request: String, choice: String) {
    if draft.run.is_current(turn) {
        let permit = Permit { request, choice };
        draft.record(Event::PermitGiven(PermitGiven { turn, permit }));
    }
}

/// Ends a question that its agent does not ask any more, if a person has not answered it. The option
/// that the agent took by itself counts as the default.
pub(super) fn settle(
    draft: &mut Draft,
    turn: TurnKey,
    request: &str,
    choice: Option<String>,
) -> Reply {
    if !draft.run.is_current(turn) {
        return Reply::Late;
    }
    let asked = open(&draft.run, turn).find(|(_, known)| *known == request);
    let Some((id, _)) = asked else { return Reply::Recorded };
    if let Some(text) = choice {
        let taken = answer::Answer { text, by: "default".into(), ..answer::Answer::default() };
        if answer::decide(draft, id, taken) == Reply::Answered {
            return Reply::Recorded;
        }
    }
    let response = Response::failed("the agent does not ask any more");
    close::close(draft, id, response, Way::Cancelled);
    Reply::Recorded
}

/// Withdraws the questions of a turn that has ended.
pub(super) fn withdraw(draft: &mut Draft, turn: TurnKey) {
    let asked: Vec<HandoffId> = open(&draft.run, turn).map(|(id, _)| id).collect();
    for id in asked {
        let response = Response::failed("the turn that asked is over");
        close::close(draft, id, response, Way::Cancelled);
    }
}

/// Returns the deadline for the next sign of life in a turn. A program may ask before it takes its
/// order: then there is none before the answer, and from the answer on it has its time to accept.
pub(super) fn due(run: &Run, handoff: &Handoff) -> Option<Time> {
    let mut due = handoff.state.turn()?.due;
    if !matches!(handoff.state, State::Ordered(_)) {
        return Some(due);
    }
    let key = handoff.key(run.id);
    let is_its =
        |question: &Question| matches!(&question.about, About::Permission(turn, _) if *turn == key);
    let holds_up = |asked: &&Handoff| {
        let question = asked.offer.question.as_ref();
        question.is_some_and(|question| question.blocking && is_its(question))
    };
    for asked in run.handoffs.values().map(AsRef::as_ref).filter(holds_up) {
        let State::Closed(closing) = &asked.state else { return None };
        due = due.max(closing.at + turn::time_to_accept(run, handoff));
    }
    Some(due)
}

fn open(run: &Run, turn: TurnKey) -> impl Iterator<Item = (HandoffId, &str)> {
    run.open().filter_map(move |handoff| match &handoff.offer.question.as_ref()?.about {
        About::Permission(asking, request) if *asking == turn => {
            Some((handoff.id, request.as_str()))
        }
        _ => None,
    })
}

impl PermitGiven {
    pub(super) fn apply(&self, run: &mut Run) {
        if let Some(handoff) = run.handoff_mut(self.turn.handoff) {
            handoff.permits.push(self.permit.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::run::propose::MAX_QUESTION;
    use crate::run::story::{RELAY, Story, h};
    use crate::{Input, Millis, Question, Status};

    #[test]
    fn b_02_the_options_of_a_permission_are_of_bounded_size() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        let options = (0..100_000).map(|number| format!("option {number}")).collect();
        let question = Question { details: "May I?".into(), options, ..Question::default() };
        let turn = story.key(h(1));
        story.input(Input::Ask { turn, request: "1".into(), question });
        let options = story.question(h(2)).options;
        assert!(options.iter().map(String::len).sum::<usize>() <= MAX_QUESTION);
        assert_eq!(options[0], "option 0");
    }

    fn asks(story: &mut Story, request: &str) {
        let turn = story.key(h(1));
        let question = Question {
            details: "May I run the tests?".into(),
            options: vec!["allow".into(), "reject".into()],
            default: Some("reject".into()),
            within: Some(Millis::minutes(5)),
            ..Question::default()
        };
        story.input(Input::Ask { turn, request: request.into(), question });
    }

    #[test]
    fn b_13_a_turn_whose_agent_asks_before_it_takes_its_order_waits_for_the_answer() {
        let mut story = Story::new(RELAY);
        asks(&mut story, "r1");
        story.later(Millis::minutes(4));
        assert!(!story.transcript().contains("not accepted in time"), "{}", story.transcript());
        // The answer of nobody is no, and the program has its time to go on with that.
        story.later(Millis::minutes(10)).later(Millis::seconds(29));
        assert!(!story.transcript().contains("not accepted in time"), "{}", story.transcript());
        story.later(Millis::seconds(1));
        assert!(story.transcript().contains("not accepted in time"), "{}", story.transcript());
    }

    #[test]
    fn b_13_a_question_that_its_agent_asks_no_more_leaves_the_inbox() {
        let mut story = Story::new(RELAY);
        asks(&mut story, "r1");
        let turn = story.key(h(1));
        let settle = |request: &str, choice: Option<&str>| {
            let (request, choice) = (request.to_owned(), choice.map(str::to_owned));
            Input::Settle { turn, request, choice }
        };
        story.later(Millis::minutes(4)).input(settle("r1", None));
        assert_eq!(story.state(h(2)), "cancelled");
        // It has its time to accept from then on.
        story.later(Millis::seconds(29));
        assert!(!story.transcript().contains("not accepted in time"), "{}", story.transcript());
        story.accept(h(1));
        asks(&mut story, "r2");
        story.input(settle("r2", Some("reject"))).input(settle("r2", None));
        assert_eq!(story.state(h(3)), "resolved");
        assert_eq!(story.run.outbox().next().expect("the turn").permits[0].choice, "reject");
        story.done(h(1));
        assert_eq!(story.status(), Status::Succeeded);
        assert_eq!(story.reply(settle("r2", None)), crate::Reply::Ignored(crate::Ignored::Ended));
    }

    #[test]
    fn b_13_a_question_of_an_agent_that_nobody_answers_does_not_fail_the_run() {
        let mut story = Story::new(RELAY);
        let turn = story.key(h(1));
        let question = Question {
            details: "Its terminal waits for an answer".into(),
            options: vec!["Press Enter".into()],
            within: Some(Millis::minutes(5)),
            ..Question::default()
        };
        story.input(Input::Ask { turn, request: "1.t1".into(), question });
        story.later(Millis::minutes(5));
        assert_eq!((story.state(h(2)), story.status()), ("expired", Status::Running));
        story.later(Millis::seconds(30));
        assert!(story.transcript().contains("not accepted in time"), "{}", story.transcript());
        assert_ne!(story.status(), Status::Failed);
    }

    #[test]
    fn b_13_a_permission_is_asked_for_in_the_inbox_and_reaches_the_turn() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        asks(&mut story, "r1");
        asks(&mut story, "r1");
        assert_eq!(story.run.tally.escalated, 1);
        assert_eq!(story.status(), Status::Running, "the turn is still out");
        story.person_says(h(2), "allow");
        let order = story.run.outbox().next().expect("the turn");
        assert_eq!(order.permits[0].choice, "allow");
        story.done(h(1));
        assert_eq!(story.status(), Status::Succeeded);
    }

    #[test]
    fn b_13_nobody_there_means_no_and_an_ended_turn_takes_its_questions_along() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        asks(&mut story, "r1");
        for _ in 0..5 {
            story.later(Millis::minutes(1)).heartbeat(h(1));
        }
        assert_eq!(story.run.outbox().next().expect("the turn").permits[0].choice, "reject");
        asks(&mut story, "r2");
        story.hands(h(1), vec![crate::run::story::pass("builder")]);
        assert_eq!(story.state(h(3)), "cancelled");
        assert_eq!(story.status(), Status::Running);
    }
}
