//! Asking a person.

use super::Draft;
use super::propose::{self, Proposal, Refusal};
use super::resume;
use crate::fields;
use crate::handoff::About;
use crate::text::nearest;
use crate::{HandoffId, Kind, MissingInput, Offer, Party, Question, Reason};

/// Adds a question to an offer that goes to a person without one. If values are requested, it says
/// how to give them.
pub(crate) fn with_question(offer: Offer) -> Offer {
    if offer.to != Party::Human {
        return offer;
    }
    let mut question = question_of(&offer);
    question.answer_with = fields::example(&offer.missing);
    Offer { question: Some(question), ..offer }
}

pub(crate) fn question_of(offer: &Offer) -> Question {
    let details = match said(offer) {
        _ if !offer.missing.is_empty() => format!("{} needs {}", offer.from, wanted(offer)),
        Some(said) => said.to_owned(),
        None => format!("{} hands over to a person, and gives no question", offer.from),
    };
    let plain = Question {
        reason: offer.reason.as_str().to_owned(),
        details,
        context: offer.summary.clone(),
        blocking: offer.kind == Kind::Delegate,
        ..Question::default()
    };
    match offer.question.clone() {
        Some(question) if question.details.trim().is_empty() => {
            Question { details: plain.details, ..question }
        }
        question => question.unwrap_or(plain),
    }
}

/// Returns what an offer says, in the words that a person reads first.
fn said(offer: &Offer) -> Option<&str> {
    let question = offer.question.as_ref();
    let (details, context) = (question.map(|it| &it.details), question.map(|it| &it.context));
    let texts =
        [details, Some(&offer.detail), Some(&offer.summary), offer.instructions.as_ref(), context];
    texts.into_iter().flatten().map(String::as_str).find(|text| !text.trim().is_empty())
}

/// Checks that an offer to a person asks something, and one to the orchestrator, which asks a person
/// too. All offers that agents make pass this, however they come.
///
/// # Errors
/// When it asks nothing.
pub fn check_words(offer: &Offer) -> Result<(), Refusal> {
    let asks = matches!(offer.to, Party::Human | Party::Orchestrator);
    if !asks
        || offer.reason == Reason::Completion
        || !offer.missing.is_empty()
        || said(offer).is_some()
    {
        return Ok(());
    }
    // What has another name is among the outputs.
    let is_meant = |key: &&String| {
        let begins = key.len() > 2 && ["question", "summary"].iter().any(|it| it.starts_with(*key));
        begins || nearest(key, ["question", "summary"]).is_some()
    };
    let meant = offer.outputs.keys().find(is_meant).cloned();
    Err(Refusal::Silent { to: offer.to.clone(), meant })
}

/// Returns the requested inputs, each with its description.
fn wanted(offer: &Offer) -> String {
    let one = |input: &crate::MissingInput| match input.description.as_str() {
        "" => input.key.clone(),
        what => format!("{} ({what})", input.key),
    };
    offer.missing.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Holds `id` back until `question` is answered; the question's `about` determines the effect of
/// the answer.
pub(crate) fn park(draft: &mut Draft, id: HandoffId, question: Question) {
    park_for(draft, id, question, Vec::new());
}

/// Does the same for an answer that fills in inputs. Returns the question; `None` if `id` is
/// unknown.
pub(crate) fn park_for(
    draft: &mut Draft,
    id: HandoffId,
    question: Question,
    missing: Vec<MissingInput>,
) -> Option<HandoffId> {
    let handoff = draft.run.handoff(id)?;
    let offer = Offer {
        detail: question.details.clone(),
        item: handoff.offer.item.clone(),
        priority: handoff.offer.priority,
        question: Some(question),
        missing,
        ..Offer::new(
            handoff.offer.to.clone(),
            Party::Human,
            Kind::Delegate,
            Reason::RequiresHumanDecision,
        )
    };
    // The answer is interpreted, not merged: so nothing returns to `id` automatically.
    let proposal = Proposal { cause: Some(id), ..Proposal::of(offer) };
    let question = propose::ask(draft, proposal);
    resume::block(draft, id, vec![question], Vec::new());
    Some(question)
}

/// Asks about a handoff that failed and that no rule of the workflow can recover.
pub(crate) fn about_failure(draft: &mut Draft, id: HandoffId, failure: &str) {
    let Some(handoff) = draft.run.handoff(id) else { return };
    let question = Question {
        reason: "handoff_failed".into(),
        details: format!("{} could not do its work: {failure}", handoff.offer.to),
        options: vec!["retry".into(), "skip".into(), "stop".into()],
        context: handoff.offer.summary.clone(),
        blocking: true,
        about: About::Recovery(id),
        ..Question::default()
    };
    // A handoff that is waited for can be answered by a person, too.
    let missing = if handoff.returns_to.is_some() { handoff.lacking() } else { Vec::new() };
    park_for(draft, id, question, missing);
}

/// Asks about a loop that ran too often or changed nothing.
pub(crate) fn about_loop(draft: &mut Draft, id: HandoffId, refusal: &Refusal) {
    let reason = match refusal {
        Refusal::NoProgress { .. } => "no_progress",
        _ => "loop_limit",
    };
    let question = Question {
        reason: reason.into(),
        details: format!("{}. Accept the work as it is, stop, or say what to do", refusal.detail()),
        options: vec!["accept".into(), "stop".into()],
        blocking: true,
        about: About::Loop(id),
        ..Question::default()
    };
    park(draft, id, question);
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::run::propose::Refusal;
    use crate::run::story::{RELAY, Story, ask, done, fields, h, pass};
    use crate::run::tell::TurnReport;
    use crate::{FailureKind, Input, Kind, Millis, Offer, Question, Reply, Status, TurnResult};

    /// Returns fields close to the maximum size of a handoff.
    fn full() -> crate::Fields {
        fields(json!({ "notes": "x".repeat(1_048_500) }))
    }

    #[test]
    fn b_02_however_large_the_inputs_are_the_question_about_a_failure_is_asked() {
        let mut story = Story::given(RELAY, full());
        story.breaks(h(1), FailureKind::Fatal);
        assert_eq!((story.state(h(2)), story.status()), ("asked", Status::WaitingForHuman));
        let question = story.run.handoff(h(2)).expect("a question");
        assert!(question.inputs.is_empty(), "it carries its words and nothing else");
        story.person_says(h(2), "retry").done(h(1));
        assert_eq!(story.status(), Status::Succeeded);
    }

    #[test]
    fn b_02_a_value_that_was_cut_is_whole_in_the_record_that_the_note_names() {
        let mut story = Story::given(RELAY, fields(json!({ "small": "x".repeat(600_000) })));
        story.hands(h(1), vec![ask("human")]);
        let values = fields(json!({ "large": "y".repeat(700_000) }));
        let (text, by) = (String::new(), "ada".to_owned());
        story.input(crate::Input::Answer { handoff: h(2), values, text, by });
        let order = story.run.outbox().next().expect("the planner goes on");
        let cut = ["small", "large"].into_iter().find(|key| order.inputs[*key].is_object());
        assert_eq!(cut, Some("large"), "the largest is cut");
        for inputs in [&order.inputs, &order.answers[0].outputs] {
            assert_eq!(inputs["large"]["$cut"]["handoff"], "h2");
        }
        assert_eq!(story.closing(h(2)).response.outputs["large"], "y".repeat(700_000));
    }

    #[test]
    fn b_13_a_person_is_never_asked_with_an_empty_line() {
        let silent = Offer { summary: " ".into(), ..ask("human") };
        for (offer, asked) in [
            (Offer { instructions: Some("Sign it".into()), ..silent.clone() }, "Sign it"),
            (
                Offer {
                    question: Some(Question {
                        context: "line 4".into(),
                        blocking: true,
                        ..Question::default()
                    }),
                    ..silent.clone()
                },
                "line 4",
            ),
        ] {
            let mut story = Story::new(RELAY);
            story.hands(h(1), vec![offer]);
            assert_eq!(story.question(h(2)).details, asked);
        }
        // A question that says nothing is refused, whoever brings it, and its agent may ask again.
        let blank = Question { options: vec!["a".into()], blocking: true, ..Question::default() };
        for (to, question) in [("human", None), ("human", Some(blank)), ("orchestrator", None)] {
            let outputs = fields(serde_json::json!({ "questions": "Which?" }));
            let offer = Offer { to: to.into(), question, outputs, ..silent.clone() };
            let mut story = Story::new(RELAY);
            story.accept(h(1));
            let told = TurnReport { offers: vec![offer.clone()], ..TurnReport::default() };
            let reply = story.reply(Input::Tell { turn: story.key(h(1)), told: Box::new(told) });
            let Reply::Reported { refused } = reply else { panic!("{reply:?}") };
            let meant = Some("questions".to_owned());
            assert_eq!(refused, [Refusal::Silent { to: to.into(), meant }]);
            let proposed = story.reply(Input::Propose { offer: Box::new(offer.clone()) });
            assert!(matches!(proposed, Reply::Refused { .. }), "{proposed:?}");
            let result = TurnResult { offers: vec![offer.clone()], ..done() };
            let why =
                story.run.check_result(story.key(h(1)), &result).expect_err("it says nothing");
            assert!(why[0].starts_with("No question: /"), "{why:?}");
            story.hands(h(1), vec![offer]);
            assert_eq!((story.state(h(1)), story.key(h(1)).turn), ("pending", 2));
        }
    }

    #[test]
    fn b_19_a_result_that_says_nothing_does_not_end_a_turn() {
        let silent = TurnResult { unanswered: true, ..done() };
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        let turn = story.key(h(1));
        let why = story.run.check_result(turn, &silent).expect_err("it says nothing");
        assert!(why[0].starts_with("it says nothing"), "{why:?}");
        // A turn that has handed over before has said something.
        let told = TurnReport { offers: vec![pass("builder")], ..TurnReport::default() };
        story.input(Input::Tell { turn, told: Box::new(told) });
        assert_eq!(story.run.check_result(turn, &silent), Ok(()));
    }

    #[test]
    fn s5_08_a_question_that_nobody_would_see_is_refused_at_the_end_of_the_last_turn() {
        let aside = Offer { kind: Kind::Transfer, ..ask("human") };
        let with = |offers| TurnResult { offers, ..done() };
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        let turn = story.key(h(1));
        let why = story.run.check_result(turn, &with(vec![aside.clone()])).expect_err("it ends");
        assert!(why[0].contains("nobody would see the question"), "{why:?}");
        for offers in
            [vec![aside.clone(), pass("builder")], vec![Offer { kind: Kind::Delegate, ..aside }]]
        {
            assert_eq!(story.run.check_result(turn, &with(offers)), Ok(()));
        }
    }

    #[test]
    fn b_02_when_time_is_over_a_person_is_asked_once() {
        let text = RELAY.to_owned() + "[budget]\ntime = \"1h\"\n";
        let mut story = Story::given(&text, full());
        story.accept(h(1)).later(Millis::hours(2));
        let before = story.log.len();
        for _ in 0..5 {
            story.later(Millis(1));
        }
        assert_eq!(story.log.len(), before, "{}", story.transcript());
        let asked =
            story.run.open().filter(|it| crate::run::budget::is_budget_question(it)).count();
        assert_eq!(asked, 1);
    }

    #[test]
    fn b_02_answers_do_not_grow_the_inputs_past_their_limit() {
        let mut story = Story::given(RELAY, full());
        story.hands(h(1), vec![ask("human")]);
        story.person_says(h(2), &"y".repeat(1_000_000));
        let order = story.run.outbox().next().expect("the planner goes on");
        assert!(crate::fields::size(&order.inputs) <= crate::fields::MAX);
        let note = &order.inputs["notes"]["$cut"];
        assert_eq!(note["key"], "notes", "the largest is cut");
        assert_eq!(note["handoff"], "h1", "the record of that handoff has it whole");
        let whole = &story.run.handoff(h(1)).expect("the first").offer.outputs;
        assert_eq!(note["bytes"], crate::fields::size_of(&whole["notes"]));
        let long = crate::Input::Answer {
            handoff: h(2),
            values: full(),
            text: "z".repeat(1_000_000),
            by: "ada".into(),
        };
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![ask("human")]);
        assert!(matches!(story.reply(long), crate::Reply::Unfit { .. }));
        assert_eq!(story.state(h(2)), "asked", "it stays open");
    }
}
