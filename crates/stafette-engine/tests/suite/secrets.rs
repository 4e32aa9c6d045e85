//! What a run hears without its secrets, also when somebody else adds to it on the way in.

use std::sync::Arc;

use stafette_core::redact::Redactor;
use stafette_core::run::create::RunCreated;
use stafette_core::{
    Event, Fields, HandoffId, Input, Kind, Offer, Party, Question, Reason, Run, Workflow,
};
use stafette_engine::{Answered, Engine, Gate, Looked, Plugins, Settings};

use crate::flaky::Flaky;
use crate::runs::{opened, settings, start};

const SECRET: &str = "zX9-kkQ2.mm7";

fn says(what: &str) -> String {
    format!("{what} {SECRET}")
}

/// Says of everything that it saw it, and lets slip a secret of its own.
#[derive(Debug)]
struct Talkative;

impl Gate for Talkative {
    fn begins(&self, _: &Workflow) -> Result<(), String> {
        Ok(())
    }

    fn minds(&self, _: &Run) -> bool {
        true
    }

    fn offer<'a>(
        &'a self,
        _: &'a Run,
        _: Option<HandoffId>,
        mut offer: Offer,
    ) -> Looked<'a, Offer> {
        assert!(!offer.summary.contains(SECRET), "nobody sees it");
        offer.objections.push(says("I object:"));
        Box::pin(async { offer })
    }

    fn answer<'a>(
        &'a self,
        _: &'a Run,
        answered: Answered<'a>,
    ) -> Looked<'a, Result<Fields, String>> {
        assert!(!answered.text.contains(SECRET), "nobody sees it");
        let more = Fields::from_iter([("seen".to_owned(), says("it was").into())]);
        Box::pin(async { Ok(more) })
    }
}

#[tokio::test]
async fn b_17_what_a_gate_adds_is_cleaned_and_what_it_sees_is_clean() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let settings = Settings { redactor: Redactor::knowing([SECRET]), ..settings(folder.path()) };
    let gate: Arc<dyn Gate> = Arc::new(Talkative);
    let plugins = Plugins { gate: Some(gate), ..Plugins::default() };
    let engine = Engine::open(Arc::new(store.clone()), settings, plugins);
    let engine = engine.await.expect("opens");
    let run = start(&engine, crate::outside::workflow()).await.expect("a run");
    let offer = |from: Party, to: Party| {
        let question = Question { details: says("which one?"), ..Question::default() };
        let offer = Offer::new(from, to, Kind::Transfer, Reason::RequiresHumanDecision);
        Box::new(Offer { summary: says("look at"), question: Some(question), ..offer })
    };
    let asked = Input::Propose { offer: offer(Party::Human, Party::Human) };
    engine.send(run, asked).await.expect("taken");
    let refused = Input::Propose { offer: offer(Party::Orchestrator, Party::Human) };
    engine.send(run, refused).await.expect("heard");
    let open = engine.log().questions().await.expect("readable");
    let [question] = open.as_slice() else { panic!("{open:?}") };
    let (handoff, values) = (question.id, Fields::new());
    let answer = Input::Answer { handoff, values, text: says("this:"), by: "ada".into() };
    engine.send(run, answer).await.expect("taken");
    let events = engine.log().events(run, 0).await.expect("events");
    let all: String = events.iter().map(|stored| stored.entry.body.as_str()).collect();
    assert!(!all.contains(SECRET), "{all}");
    for kept in ["I object: [redacted:", "it was [redacted:", "this: [redacted:", "look at [red"] {
        assert!(all.contains(kept), "{kept} is not in {all}");
    }
    let is_refused = |stored: &&stafette_store::Stored| {
        let event: Event = serde_json::from_str(&stored.entry.body).expect("an event");
        matches!(event, Event::HandoffRefused(_))
    };
    assert_eq!(events.iter().filter(is_refused).count(), 1);
}

#[tokio::test]
async fn b_17_a_key_finds_its_run_again_though_the_request_is_kept_without_its_secret() {
    let folder = tempfile::tempdir().expect("a folder");
    let settings = Settings { redactor: Redactor::knowing([SECRET]), ..settings(folder.path()) };
    let engine = opened(Arc::new(Flaky::new()), settings).await;
    let created = |request: String| {
        let workflow = crate::outside::workflow();
        RunCreated {
            inputs: Fields::from_iter([("password".to_owned(), "s3cr3t-word".into())]),
            ..RunCreated::new(Engine::NEW_RUN, Arc::new(workflow), request, says("ada"))
        }
    };
    let (run, repeated) = engine.start_keyed("one", created(says("use"))).await.expect("a run");
    assert!(!repeated);
    let again = engine.start_keyed("one", created(says("use"))).await.expect("the same");
    assert_eq!(again, (run, true));
    assert!(engine.start_keyed("one", created(says("do not use"))).await.is_err());
    let first = engine.log().events(run, 0).await.expect("events").remove(0).entry.body;
    assert!(!first.contains(SECRET) && !first.contains("s3cr3t-word"), "{first}");
}
