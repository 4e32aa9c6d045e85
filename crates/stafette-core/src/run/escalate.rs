//! Asking a person.

use super::Draft;
use super::propose::{self, Proposal, Refusal};
use super::resume;
use crate::fields;
use crate::handoff::About;
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
    let said = [&offer.detail, &offer.summary].into_iter().find(|said| !said.trim().is_empty());
    let details = match said {
        _ if !offer.missing.is_empty() => format!("{} needs {}", offer.from, wanted(offer)),
        Some(said) => said.clone(),
        None => format!("{} hands over to a person, and gives no question", offer.from),
    };
    let plain = Question {
        reason: offer.reason.as_str().to_owned(),
        details,
        context: offer.summary.clone(),
        blocking: offer.kind == Kind::Delegate,
        ..Question::default()
    };
    offer.question.clone().unwrap_or(plain)
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
    let Some(handoff) = draft.run.handoff(id) else {
        return;
    };
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

    use crate::run::story::{RELAY, Story, fields, h};
    use crate::{FailureKind, Millis, Status};

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
        story.hands(h(1), vec![crate::run::story::ask("human")]);
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
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![crate::run::story::ask("human")]);
        let asked = story.question(h(2)).details.clone();
        assert_eq!(asked, "planner hands over to a person, and gives no question");
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
        story.hands(h(1), vec![crate::run::story::ask("human")]);
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
        story.hands(h(1), vec![crate::run::story::ask("human")]);
        assert!(matches!(story.reply(long), crate::Reply::Unfit { .. }));
        assert_eq!(story.state(h(2)), "asked", "it stays open");
    }
}
