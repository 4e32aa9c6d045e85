//! A person answers a question; the question's `about` determines the effect.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Draft, Status, budget, close, finish, permission, recover, resume};
use crate::fields;
use crate::handoff::{ANSWER, About, Question, State};
use crate::team;
use crate::text::nearest;
use crate::workflow::RecoveryCause;
use crate::{
    Event, Fields, Handoff, HandoffId, Ignored, Outcome, Party, Reply, Response, Run, TurnResult,
};

/// A person answered a question.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QuestionAnswered {
    /// The handoff that asks the question.
    pub handoff: HandoffId,
    /// The answer with its values.
    #[serde(flatten)]
    pub answer: Answer,
}

/// A person's answer to a question.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Answer {
    /// The answer as values by name.
    pub values: Fields,
    /// The answer as free text.
    pub text: String,
    /// The name of the person.
    pub by: String,
}

pub(crate) fn decide(draft: &mut Draft, id: HandoffId, answer: Answer) -> Reply {
    let asked = |handoff: &&Handoff| matches!(handoff.state, State::Asked { .. });
    let Some(handoff) = draft.run.handoff(id).filter(asked) else {
        return Reply::Ignored(Ignored::NotOpen);
    };
    let question = handoff.offer.question.clone().unwrap_or_default();
    if let Some(complaint) = objection(draft, id, &question, &answer) {
        return Reply::Unfit { complaints: vec![complaint] };
    }
    let about = question.about;
    let response = match response(handoff, &answer) {
        Ok(response) => response,
        Err(complaints) => return Reply::Unfit { complaints },
    };
    let result = match &about {
        About::Unconfirmed(source) => {
            draft.run.handoff(*source).and_then(|it| it.unconfirmed.clone())
        }
        _ => None,
    };
    let event = QuestionAnswered { handoff: id, answer: answer.clone() };
    draft.record(Event::QuestionAnswered(event));
    close::answered(draft, id, response.clone());
    let word = answer.text.trim().to_lowercase();
    match about {
        // Closing the question has passed the inputs to the asker.
        About::Inputs => {}
        About::Recovery(failed) => go_on(draft, failed, &answer, response.outputs),
        About::Loop(parked) => go_round(draft, parked, &word, response.outputs),
        About::Unconfirmed(source) => confirm(draft, source, &word, result),
        About::Confirm(source, result) => confirm(draft, source, &word, Some(result)),
        About::Permission(turn, request) => {
            permission::answered(draft, turn, request, answer.text);
        }
        About::Budget => budget::answered(draft, id, &word),
        About::Team(about) => team::answered(draft, id, &about, &answer, response.outputs),
    }
    Reply::Answered
}

/// Says why a text is no answer to a question of the system: it decides something, so only its
/// options are answers, and own words only where they help an agent.
fn objection(draft: &Draft, id: HandoffId, question: &Question, answer: &Answer) -> Option<String> {
    let run = &draft.run;
    let (text, options) = (answer.text.trim(), question.options.as_slice());
    if options.iter().any(|option| option.eq_ignore_ascii_case(text)) {
        return None;
    }
    let is_answer = match &question.about {
        About::Inputs | About::Team(_) => return None,
        About::Loop(_) => misspelled(options, text).is_none(),
        About::Recovery(failed) => {
            !answer.values.is_empty()
                || advice(text).is_some()
                || (is_waited_for(run, *failed) && misspelled(options, text).is_none())
        }
        About::Budget => return budget::objection(draft, id, text),
        About::Unconfirmed(_) | About::Confirm(..) | About::Permission(..) => false,
    };
    let more = match &question.about {
        About::Recovery(_) => "; words for the agent follow `retry`, as in `retry use port 8081`",
        _ => "",
    };
    let options: Vec<String> = options.iter().map(|option| format!("`{option}`")).collect();
    let complaint = format!("`{text}` is none of the options {}{more}", options.join(", "));
    (!is_answer).then_some(complaint)
}

/// True if the text says how to continue after a failure, and gives no value.
fn is_choice(text: &str) -> bool {
    let word = text.trim().to_lowercase();
    matches!(word.as_str(), "retry" | "skip" | "stop") || advice(text.trim()).is_some()
}

/// The words for the agent that follow `retry`.
fn advice(text: &str) -> Option<&str> {
    let (word, advice) = text.split_once([' ', ':'])?;
    word.eq_ignore_ascii_case("retry").then(|| advice.trim_start_matches([' ', ':']))
}

/// True if another handoff waits for the result of this one.
fn is_waited_for(run: &Run, id: HandoffId) -> bool {
    run.handoff(id).is_some_and(|handoff| handoff.returns_to.is_some())
}

/// The option that somebody meant who typed nearly that: any other text is an answer in their own words,
/// and `sotp` would be one.
fn misspelled<'a>(options: &'a [String], text: &str) -> Option<&'a str> {
    let word = text.to_lowercase();
    if word.len() < 4 || word.contains(char::is_whitespace) {
        return None;
    }
    nearest(&word, options.iter().map(String::as_str))
}

/// Builds the response: the text fills the one input that was asked for, or `answer` if none was
/// named.
fn response(handoff: &Handoff, answer: &Answer) -> Result<Response, Vec<String>> {
    let missing = &handoff.offer.missing;
    let mut outputs = answer.values.clone();
    let about = handoff.offer.question.as_ref().map(|question| &question.about);
    let chooses = matches!(about, Some(About::Recovery(_))) && is_choice(&answer.text);
    if !answer.text.is_empty() && !chooses {
        let open: Vec<&str> = missing
            .iter()
            .map(|input| input.key.as_str())
            .filter(|key| !outputs.contains_key(*key))
            .collect();
        let key = match open.as_slice() {
            [only] => only,
            _ => ANSWER,
        };
        outputs.insert(key.to_owned(), Value::String(answer.text.clone()));
    }
    if fields::size(&outputs) > fields::MAX {
        return Err(vec![format!("it is more than {} bytes", fields::MAX)]);
    }
    fields::fit_all(missing, &mut outputs)?;
    let unresolved: Vec<String> = missing
        .iter()
        .map(|input| input.key.clone())
        .filter(|key| !outputs.contains_key(key))
        .collect();
    let outcome = if unresolved.is_empty() { Outcome::Resolved } else { Outcome::Partial };
    let summary = answer.text.clone();
    let asked = handoff.offer.question.as_ref().map(|question| question.details.clone());
    let question = asked.filter(|asked| !asked.is_empty());
    Ok(Response { outputs, unresolved, summary, question, ..Response::new(Party::Human, outcome) })
}

fn go_on(draft: &mut Draft, failed: HandoffId, answer: &Answer, outputs: Fields) {
    let text = answer.text.trim();
    if let Some(advice) = advice(text) {
        let advice = Fields::from_iter([(ANSWER.to_owned(), Value::from(advice))]);
        return resume::afresh(draft, failed, advice);
    }
    match text.to_lowercase().as_str() {
        "retry" => resume::afresh(draft, failed, Fields::new()),
        "skip" => {
            let skipped = Response::new(Party::Human, Outcome::Partial);
            close::answered(draft, failed, skipped);
        }
        "stop" => close::end(draft, Status::Failed, "stopped by a person"),
        // Another handoff waits for a result, and this is it, or a part of it.
        _ if is_waited_for(&draft.run, failed) => {
            let lacking = draft.run.handoff(failed).map(Handoff::lacking).unwrap_or_default();
            let keys = lacking.into_iter().map(|input| input.key);
            let unresolved: Vec<String> = keys.filter(|key| !outputs.contains_key(key)).collect();
            if unresolved.is_empty() {
                let done = Response::new(Party::Human, Outcome::Resolved);
                return close::answered(draft, failed, Response { outputs, ..done });
            }
            let part = Response::new(Party::Human, Outcome::Partial);
            let part = Response { outputs, unresolved, ..part };
            recover::decide(draft, failed, part, RecoveryCause::Partial);
        }
        _ => resume::afresh(draft, failed, outputs),
    }
}

fn go_round(draft: &mut Draft, parked: HandoffId, word: &str, outputs: Fields) {
    match word {
        "accept" => close::answered(draft, parked, Response::new(Party::Human, Outcome::Resolved)),
        "stop" => close::end(draft, Status::Failed, "stopped by a person"),
        _ => resume::afresh(draft, parked, outputs),
    }
}

fn confirm(draft: &mut Draft, source: HandoffId, word: &str, result: Option<Box<TurnResult>>) {
    if let Some(result) = result.filter(|_| word == "allow") {
        finish::hand_on(draft, source, *result);
        return;
    }
    let refusal = Response::failed("A person did not confirm the handoff");
    resume::refused(draft, source, vec![refusal]);
}

impl QuestionAnswered {
    pub(super) fn apply(&self, run: &mut Run) {
        let about = |asked: &Handoff| match asked.offer.question.as_ref()?.about {
            About::Unconfirmed(source) => Some(source),
            _ => None,
        };
        let source = run.handoff(self.handoff).and_then(about);
        if let Some(source) = source.and_then(|id| run.handoff_mut(id)) {
            source.unconfirmed = None;
        }
        if let Some(asked) = run.handoff_mut(self.handoff) {
            asked.answered_by = Some(self.answer.by.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::run::story::{RELAY, Story, ask, done, h, pass};
    use crate::{Fields, Input, Kind, Offer, Party, Question, Reason, Reply, Status, TurnResult};

    fn escalation(blocking: bool) -> Offer {
        let question = Question {
            reason: "spec_ambiguity".into(),
            details: "Cannot determine auth method".into(),
            options: vec!["JWT".into(), "Session".into(), "OAuth".into()],
            context: "spec line 45".into(),
            blocking,
            ..Question::default()
        };
        let kind = if blocking { Kind::Delegate } else { Kind::Transfer };
        let offer = Offer::new(Party::from("?"), Party::Human, kind, Reason::Escalation);
        Offer { question: Some(question), ..offer }
    }

    #[test]
    fn b_19_a_misspelled_option_is_not_an_answer_in_own_words() {
        let mut story = Story::new(RELAY);
        story.breaks(h(1), crate::FailureKind::Fatal);
        let answer = |text: &str| Input::Answer {
            handoff: h(2),
            values: Fields::new(),
            text: text.into(),
            by: "ada".into(),
        };
        for text in ["sotp", "no way, give up", "maybe", ""] {
            assert!(matches!(story.reply(answer(text)), Reply::Unfit { .. }), "{text}");
        }
        assert_eq!(story.reply(answer("stop")), Reply::Answered);
        assert_eq!(story.status(), Status::Failed);
    }

    #[test]
    fn b_19_words_for_the_agent_follow_the_choice_to_try_again() {
        let mut story = Story::new(RELAY);
        story.breaks(h(1), crate::FailureKind::Fatal).person_says(h(2), "retry: use port 8081");
        let order = story.run.outbox().next().expect("the planner tries again");
        assert_eq!(order.inputs["answer"], "use port 8081");
    }

    #[test]
    fn s2_06_a_run_waits_for_a_person_whose_answer_resumes_it() {
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![ask("human")]);
        assert_eq!(story.status(), Status::WaitingForHuman);
        story.person_says(h(2), "JWT");
        let order = story.run.outbox().next().expect("the planner goes on");
        assert_eq!(order.inputs["answer"], "JWT");
    }

    #[test]
    fn s2_06_a_persons_answer_is_for_the_agent_that_asked_and_for_no_other() {
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![escalation(true)]).person_says(h(2), "JWT");
        let order = story.run.outbox().next().expect("the planner goes on");
        let back = order.answers.first().and_then(|it| it.question.as_deref());
        assert_eq!(back, Some("Cannot determine auth method"), "it knows what was answered");
        assert_eq!(order.inputs["answer"], "JWT");
        story.hands(h(1), vec![pass("builder")]);
        let order = story.run.outbox().next().expect("the builder starts");
        assert_eq!(order.inputs.get("answer"), None, "nobody has answered the builder");
        let values = Fields::from_iter([("answer".to_owned(), "42".into())]);
        story.hands(h(3), vec![Offer { outputs: values, ..pass("reviewer") }]);
        let order = story.run.outbox().next().expect("the reviewer starts");
        assert_eq!(order.inputs["answer"], "42", "it was handed over by name");
    }

    #[test]
    fn s2_06_what_an_agent_names_answer_is_not_taken_for_a_persons_word() {
        let replies = |story: &Story| {
            let order = story.run.outbox().next().expect("a turn");
            (order.inputs["answer"].clone(), order.replies.contains("answer"))
        };
        let mut story = Story::new(
            r#"
            workflow = { name = "pair", entry = "a" }
            agents = { a.runner = "scripted", b.runner = "scripted" }
            routes = [{ from = "a", to = "b" }]
            limits = { cooldown = 0, handoffs_per_item = 9 }
            "#,
        );
        story.hands(h(1), vec![ask("human")]).person_says(h(2), "JWT");
        assert_eq!(replies(&story), ("JWT".into(), true));
        story.hands(h(1), vec![ask("b")]);
        story.answers(h(3), crate::Outcome::Resolved, serde_json::json!({ "answer": "none" }));
        assert_eq!(replies(&story), ("none".into(), false), "b has said that");
        story.hands(h(1), vec![ask("orchestrator")]).person_says(h(5), "OAuth");
        assert_eq!(replies(&story), ("OAuth".into(), true), "a person told the orchestrator");
        let values = Fields::from_iter([("answer".to_owned(), "yes".into())]);
        story.hands(h(1), vec![Offer { outputs: values, ..pass("b") }]);
        assert_eq!(replies(&story), ("yes".into(), false));
    }

    #[test]
    fn s5_08_a_blocking_escalation_stops_its_asker_and_carries_everything() {
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![escalation(true)]);
        let question = story.question(h(2));
        assert_eq!(question.options, ["JWT", "Session", "OAuth"]);
        assert_eq!(question.context, "spec line 45");
        assert_eq!(story.state(h(1)), "blocked");
    }

    #[test]
    fn s5_08_a_non_blocking_escalation_does_not_stop_the_run() {
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![escalation(false), pass("builder")]);
        assert_eq!(story.state(h(1)), "resolved");
        story.done(h(3));
        assert_eq!(story.status(), Status::Succeeded);
        assert_eq!(story.state(h(2)), "cancelled");
    }

    #[test]
    fn s2_07_an_answer_is_read_as_what_was_asked_for_or_comes_back() {
        let missing = crate::MissingInput {
            key: "competitors".into(),
            expected_type: "string[]".into(),
            description: "the largest sellers".into(),
            source: None,
        };
        let size = crate::MissingInput {
            key: "size".into(),
            expected_type: "number".into(),
            ..missing.clone()
        };
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![Offer { missing: vec![missing, size], ..ask("human") }]);
        let question = story.question(h(2));
        assert_eq!(question.answer_with, "competitors=A,B size=1");
        let says = |values: serde_json::Value| crate::Input::Answer {
            handoff: h(2),
            values: crate::run::story::fields(values),
            text: String::new(),
            by: "ada".into(),
        };
        let wrong = story.reply(says(serde_json::json!({ "competitors": "A,B", "size": "big" })));
        assert_eq!(
            wrong,
            crate::Reply::Unfit { complaints: vec!["size should be a number".into()] }
        );
        assert_eq!(story.state(h(2)), "asked", "it stays open");
        let right = story.reply(says(serde_json::json!({ "competitors": "A,B", "size": "9" })));
        assert_eq!(right, crate::Reply::Answered);
        let order = story.run.outbox().next().expect("the planner goes on");
        assert_eq!(order.inputs["competitors"], serde_json::json!(["A", "B"]));
        assert_eq!(order.inputs["size"], 9);
    }

    #[test]
    fn an_answer_counts_once() {
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![ask("human")]).person_says(h(2), "JWT");
        let before = story.log.len();
        story.person_says(h(2), "OAuth").person_says(h(99), "x").person_says(h(1), "x");
        assert_eq!(story.log.len(), before);
    }

    #[test]
    fn b_07_handoffs_read_off_plain_output_only_propose() {
        let bare = || TurnResult { offers: vec![pass("builder")], bare: true, ..done() };
        let mut story = Story::new(RELAY);
        story.ends(h(1), bare());
        assert_eq!(story.question(h(2)).options, ["allow", "refuse"]);
        let kept = |story: &Story| story.run.handoff(h(1)).and_then(|it| it.unconfirmed.clone());
        assert_eq!(kept(&story), Some(Box::new(bare())), "what it is about stays where it is");
        story.person_says(h(2), "refuse").ends(h(1), bare()).person_says(h(3), "allow");
        assert_eq!((story.state(h(1)), story.state(h(4))), ("resolved", "pending"));
        assert_eq!(kept(&story), None);

        let trusting =
            RELAY.replace("entry = \"planner\"", "entry = \"planner\"\ntrust_bare_frames = true");
        let mut story = Story::new(&trusting);
        story.ends(h(1), bare());
        assert_eq!(story.state(h(2)), "pending");
    }
}
