//! A run of the template, driven by hand.

use serde_json::{Value, json};
use stafette_core::Workflow;
use stafette_core::run::create::RunCreated;
use stafette_core::{
    Event, Fields, HandoffId, Input, Kind, Offer, Outcome, Party, Reason, Response, Run, RunId,
    Time, TurnResult,
};

/// What `stafette init --template odei` starts from.
pub(crate) const TEMPLATE: &str = include_str!("../../../stafette/templates/odei.toml");

pub(crate) fn workflow() -> Workflow {
    stafette_workflow::parse(TEMPLATE).expect("the template can be read")
}

/// A run in which `agent` has the work, with these things in hand.
pub(crate) struct Story {
    pub(crate) run: Run,
    pub(crate) at: HandoffId,
    now: Time,
}

pub(crate) fn fields(value: Value) -> Fields {
    value.as_object().cloned().expect("an object")
}

impl Story {
    pub(crate) fn with(agent: &str, inputs: Value) -> Self {
        let run: RunId = "01890000-0000-7000-8000-000000000001".parse().expect("a run");
        let now = Time(1_000_000);
        let workflow = std::sync::Arc::new(workflow());
        let created = RunCreated::new(run, workflow, "Work four days a week", "ada");
        let events = Run::begin(now, created);
        let events: Vec<_> = (1..)
            .zip(events)
            .map(|(seq, event)| stafette_core::Recorded { seq, at: now, event })
            .collect();
        let run = Run::replay(&events).expect("a run");
        let mut story = Story { run, at: HandoffId(1), now };
        // A person may hand to anyone, with anything.
        let outputs = fields(inputs);
        let given = Offer {
            outputs,
            ..Offer::new(Party::Human, Party::from(agent), Kind::Transfer, Reason::TaskHandoff)
        };
        let events = story.input(Input::Propose { offer: Box::new(given) });
        story.at = admitted(&events).expect("the person's handoff is admitted");
        story
    }

    pub(crate) fn input(&mut self, input: Input) -> Vec<Event> {
        let events = self.run.decide(self.now, input).events;
        for event in &events {
            self.run.apply(self.now, event);
        }
        events
    }

    /// The agent ends its turn with this offer.
    pub(crate) fn hands(&mut self, offer: Offer) -> Vec<Event> {
        let order = self.run.outbox().find(|order| order.key.handoff == self.at);
        let turn = order.expect("its turn is out").key;
        let by = offer.from.clone();
        let response = Response::new(by, Outcome::Resolved);
        let result = TurnResult { offers: vec![offer], ..TurnResult::new(response) };
        self.input(Input::Finish { turn, result: Box::new(result) })
    }
}

pub(crate) fn admitted(events: &[Event]) -> Option<HandoffId> {
    events.iter().find_map(|event| match event {
        Event::HandoffAdmitted(admitted) => Some(admitted.id),
        _ => None,
    })
}

pub(crate) fn offer(from: &str, to: &str, outputs: Value) -> Offer {
    let reason = if to == "discuss" { Reason::Other("blocked".into()) } else { Reason::Stage };
    let plain = Offer::new(Party::from(from), Party::from(to), Kind::Transfer, reason);
    Offer { outputs: fields(outputs), summary: "On it goes".into(), ..plain }
}

/// The answers that the sample constitution asks for.
pub(crate) fn answers() -> Value {
    let answer = |number: usize| json!({ "principle": number.to_string(), "verdict": "holds", "reason": "It does." });
    Value::Array((1..=4).map(answer).collect())
}
