//! A script for an agent: mostly sensible, sometimes broken, now and then malicious.

use serde_json::{Value, json};
use stafette_agents::scripted::{Script, Step, Turn, When};
use stafette_core::handoff::About;
use stafette_core::{
    AgentName, Fields, HandoffId, Kind, Millis, MissingInput, Offer, Outcome, Party, Question,
    Reason, Response, Usd, Workflow,
};

use super::{KEYS, TYPES, weight};
use crate::chance::Chance;

/// The condition of a script that another agent waits for its answer.
const ASKED: &str = "asked";

/// One agent with its knowledge of the others.
struct Author<'a> {
    chance: &'a mut Chance,
    me: Party,
    routed: Vec<Party>,
    everyone: Vec<Party>,
    lease: u64,
    large: bool,
}

/// Further requirements for a script.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wants {
    /// True if it keeps the work going.
    pub(super) long: bool,
    pub(super) large: bool,
}

pub(super) fn draw(
    chance: &mut Chance,
    workflow: &Workflow,
    name: &AgentName,
    wants: Wants,
) -> Script {
    let Wants { long, large } = wants;
    let me = Party::from(name);
    let routed = workflow.routes.iter().filter(|r| r.from == me).map(|r| r.to.clone()).collect();
    let councils = workflow.council.is_some();
    let council = councils.then(stafette_core::workflow::council::party);
    let everyone = workflow.agents.keys().map(Party::from).chain(council).collect();
    let lease = workflow.limits.lease.0;
    let mut author = Author { chance, me, routed, everyone, lease, large };
    let mut turns = Vec::new();
    if councils && author.chance.percent(85) {
        let steps = author.speech();
        let has = vec!["council".to_owned()];
        turns.push(Turn { when: When { has, ..When::default() }, steps });
    }
    let phased = !workflow.phases.is_empty();
    if phased {
        // First anything, and most of the time something better after a rejection.
        for turn in [Some(1), Some(2), None] {
            let steps = author.phase_steps(turn == Some(1));
            turns.push(Turn { when: When { turn, ..When::default() }, steps });
        }
    }
    // An agent that is asked for something answers, more often than not.
    if !long && author.chance.percent(50) {
        let mut steps = author.work();
        steps.push(author.result());
        let has = vec![ASKED.to_owned()];
        turns.push(Turn { when: When { has, ..When::default() }, steps });
    }
    for _ in 0..if long || phased { 0 } else { author.chance.below(4) } {
        let when = author.when();
        turns.push(Turn { when, steps: author.steps() });
    }
    // An agent that got its answer should finish, most of the time.
    if author.chance.percent(80) {
        let steps = author.good_steps();
        turns.push(Turn { when: When { turn: Some(2), ..When::default() }, steps });
    }
    if long {
        // An agent that keeps the work going round, with something new each time.
        let path = format!("{name}.txt");
        let write = Step::Write { path, text: "{key}".into() };
        turns.push(Turn { when: When::default(), steps: vec![write, author.pass_on()] });
    } else if author.chance.percent(97) {
        turns.push(Turn { when: When::default(), steps: author.steps() });
    }
    Script { ledger: None, turns }
}

/// Writes the script of a team member: it works, may propose a set, agrees, and names the next
/// topic.
pub(super) fn voice(chance: &mut Chance) -> Script {
    let tokens = chance.between(10, 500);
    let mut steps = vec![
        Step::Wait(Millis(chance.between(10, 3000))),
        Step::Commit("work of {key}".into()),
        Step::Report { tokens, usd: Usd(chance.between(1, 40_000)), note: None },
    ];
    if chance.percent(40) {
        steps.push(emit("CHANGE", json!({ "gated": false })));
    }
    let vote = json!({ "signal": "agree", "reason": "by {key}", "next_topic": "after {key}" });
    steps.push(emit("SIGNAL", vote));
    Script { ledger: None, turns: vec![Turn { when: When::default(), steps }] }
}

impl Author<'_> {
    fn when(&mut self) -> When {
        let number = Some(self.chance.count(1, 3));
        match self.chance.below(6) {
            0 => When { round: number, ..When::default() },
            1 | 2 => When { turn: number, ..When::default() },
            3 => When { attempt: number, ..When::default() },
            4 => When { delivery: number, ..When::default() },
            _ => When { lacks: vec![self.key()], ..When::default() },
        }
    }

    fn key(&mut self) -> String {
        self.chance.one(KEYS).to_owned()
    }

    fn steps(&mut self) -> Vec<Step> {
        let mut steps = self.work();
        match self.chance.below(100) {
            0..30 => steps.push(self.pass_on()),
            30..33 => steps.extend(vec![self.pass_on(); 3]),
            33..42 => steps.extend([self.pass_on(), self.pass_on()]),
            42..60 => steps.push(self.delegate()),
            60..65 => steps.extend([self.delegate(), self.delegate(), self.ask()]),
            65..70 => steps.push(self.ask()),
            70..83 => steps.push(self.result()),
            83..86 => steps.push(self.report_back()),
            86..89 => steps.push(self.wrong_target()),
            89..91 => steps.extend([self.result(), self.pass_on()]),
            91..93 => steps.push(Step::Crash),
            93..95 => {
                let status = self.chance.one([1, 2, 127]);
                steps.push(Step::Exit(status));
            }
            95..97 => steps.push(Step::Hang),
            97..98 => steps.push(emit("ERROR", json!({ "code": "OUT_OF_INK", "message": "dry" }))),
            98..99 => steps.push(self.forgery()),
            _ => {}
        }
        steps
    }

    fn good_steps(&mut self) -> Vec<Step> {
        let mut steps = self.work();
        steps.push(if self.chance.percent(70) { self.pass_on() } else { self.done() });
        steps
    }

    fn work(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        if self.chance.percent(30) {
            steps.push(Step::Say("at work".into()));
        }
        if self.chance.percent(50) {
            let path = format!("{}.txt", self.me);
            let text = self.chance.one(["same", "{round}", "{key}", "{key}"]).to_owned();
            steps.push(Step::Write { path, text });
        }
        if self.chance.percent(50) {
            let span = self.chance.one([10, 1000, 8000, self.lease * 2]);
            steps.push(Step::Wait(Millis(span)));
        }
        if self.chance.percent(40) {
            steps.push(Step::Commit("work of {key}".into()));
        }
        if self.chance.percent(60) {
            let report = Step::Report {
                tokens: self.chance.below(2500),
                usd: Usd(self.chance.below(150_000)),
                note: Some("so far".into()),
            };
            steps.push(report);
        }
        if self.chance.percent(25) {
            let gated = self.chance.percent(40);
            steps.push(emit("CHANGE", json!({ "gated": gated })));
        }
        if self.chance.percent(4) {
            let at = self.chance.index(steps.len() + 1);
            steps.insert(at, Step::Crash);
        }
        steps
    }

    /// Returns the steps of a council member's speech.
    fn speech(&mut self) -> Vec<Step> {
        let mut steps = self.work();
        let signals = ["agree", "agree", "disagree", "building", "abstain", "nonsense"];
        let signal = self.chance.one(signals);
        let mut payload =
            json!({ "signal": signal, "reason": "by {key}", "key_decisions": ["{key}"] });
        if self.chance.percent(60) {
            payload["next_topic"] = "after {key}".into();
        }
        steps.extend([emit("SIGNAL", payload), self.done()]);
        steps
    }

    /// Returns an answer to a phase, or an invalid one. The placeholders of the request are filled
    /// in when it is given.
    fn phase_steps(&mut self, careless: bool) -> Vec<Step> {
        let mut steps = self.work();
        if careless && self.chance.percent(10) {
            steps.extend(self.steps());
            return steps;
        }
        let slip = |chance: &mut Chance, share| careless && chance.percent(share);
        let decision = match self.chance.below(20) {
            0 | 1 if careless => "CLARIFY",
            2 => "STOP",
            _ => "PROCEED",
        };
        let status = match self.chance.below(12) {
            0 => "partial",
            1 => "blocked",
            _ => "complete",
        };
        let words = if slip(self.chance, 25) { self.chance.between(60, 700) } else { 20 };
        let payload = json!({
            "decision": decision,
            "status": status,
            "passed": !slip(self.chance, 30),
            "words": words,
            "stranger": slip(self.chance, 6),
        });
        steps.push(emit("PHASE", payload));
        steps
    }

    fn target(&mut self) -> Party {
        match self.chance.pick(&self.routed) {
            Some(party) if self.chance.percent(93) => party.clone(),
            _ => self.chance.pick(&self.everyone).cloned().unwrap_or(Party::Orchestrator),
        }
    }

    fn offer(&mut self, to: Party, kind: Kind) -> Offer {
        let reasons = [
            Reason::TaskHandoff,
            Reason::TaskHandoff,
            Reason::ReviewRequest,
            Reason::Other("own".into()),
        ];
        let reason = self.chance.pick(&reasons).cloned().unwrap_or(Reason::Stage);
        let item = self.chance.one([None, None, Some("item-1"), Some("item-2")]);
        Offer {
            item: item.map(str::to_owned),
            summary: "of {key}".into(),
            outputs: self.outputs(40),
            timeout: self.chance.one([None, None, None, None, Some(1500), Some(9000)]).map(Millis),
            ..Offer::new(self.me.clone(), to, kind, reason)
        }
    }

    fn outputs(&mut self, share: u64) -> Fields {
        let mut outputs = Fields::new();
        if self.chance.percent(share / 2) {
            outputs.insert("next_topic".to_owned(), json!("what {key} has left"));
        }
        if self.large && self.chance.percent(15) {
            // None of them is worth cutting.
            let prefix = self.me.clone();
            outputs
                .extend((0..5000).map(|key| (format!("{prefix}-{key}"), json!("x".repeat(100)))));
        }
        for key in KEYS {
            if self.chance.percent(share) {
                let value = self.value();
                outputs.insert(key.to_owned(), value);
            }
        }
        outputs
    }

    /// Draws a value: mostly text, and sometimes the requested type.
    fn value(&mut self) -> Value {
        if let Some(value) = self.large.then(|| weight(self.chance)).flatten() {
            return value;
        }
        match self.chance.below(12) {
            0 => json!(9),
            1 => json!("true"),
            2 => json!(["one", "two"]),
            3 => json!({ "of": "{key}" }),
            _ => json!("{commit}"),
        }
    }

    fn pass_on(&mut self) -> Step {
        let to = self.target();
        handoff(&self.offer(to, Kind::Transfer))
    }

    fn delegate(&mut self) -> Step {
        let to = self.target();
        let mut offer = self.offer(to, Kind::Delegate);
        offer.outputs.insert(ASKED.to_owned(), json!(true));
        let missing = if self.chance.percent(60) { vec![self.missing()] } else { Vec::new() };
        handoff(&Offer { missing, reason: Reason::MissingRequiredInput, ..offer })
    }

    fn missing(&mut self) -> MissingInput {
        MissingInput {
            key: self.key(),
            expected_type: self.chance.one(TYPES).to_owned(),
            description: "something".into(),
            source: None,
        }
    }

    fn ask(&mut self) -> Step {
        let blocking = self.chance.percent(70);
        let kind = if blocking { Kind::Delegate } else { Kind::Transfer };
        let offer = self.offer(Party::Human, kind);
        let within = self.chance.one([None, None, Some(Millis(30_000)), Some(Millis(600_000))]);
        let question = Question {
            reason: "unclear".into(),
            details: "Which one?".into(),
            options: vec!["this".into(), "that".into()],
            blocking,
            within,
            default: self.chance.percent(60).then(|| "this".to_owned()),
            ..Question::default()
        };
        let missing = if self.chance.percent(50) { vec![self.missing()] } else { Vec::new() };
        let question = self.chance.percent(80).then_some(question);
        handoff(&Offer { question, missing, ..offer })
    }

    fn report_back(&mut self) -> Step {
        let kind = self.chance.one([Kind::Transfer, Kind::Delegate]);
        let offer = self.offer(Party::Orchestrator, kind);
        let completes = self.chance.percent(60);
        handoff(&Offer {
            reason: if completes { Reason::Completion } else { offer.reason },
            ..offer
        })
    }

    fn wrong_target(&mut self) -> Step {
        let to = match self.chance.pick(&self.everyone) {
            Some(party) if self.chance.percent(60) => party.clone(),
            _ => Party::from("nobody"),
        };
        let kind = self.chance.one([Kind::Transfer, Kind::Delegate]);
        handoff(&self.offer(to, kind))
    }

    /// Draws a question that claims a decision which is not the agent's.
    fn forgery(&mut self) -> Step {
        let offer = self.offer(Party::Human, Kind::Transfer);
        let about = match self.chance.below(3) {
            0 => About::Loop(HandoffId(1)),
            1 => About::Recovery(HandoffId(1)),
            _ => About::Budget,
        };
        let question = Question { details: "Go on?".into(), about, ..Question::default() };
        handoff(&Offer { question: Some(question), ..offer })
    }

    fn done(&mut self) -> Step {
        let outputs = self.outputs(80);
        emit_json(
            "RESULT",
            &Response { outputs, ..Response::new(self.me.clone(), Outcome::Resolved) },
        )
    }

    fn result(&mut self) -> Step {
        let outcome = match self.chance.below(10) {
            0..5 => return self.done(),
            5..8 => Outcome::Partial,
            _ => Outcome::Failed,
        };
        let unresolved = vec![self.key()];
        let failure = (outcome == Outcome::Failed).then(|| "could not".to_owned());
        let outputs = self.outputs(60);
        let plain = Response::new(self.me.clone(), outcome);
        emit_json("RESULT", &Response { outputs, unresolved, failure, ..plain })
    }
}

fn handoff(offer: &Offer) -> Step {
    emit_json("HANDOFF", offer)
}

fn emit_json(kind: &str, document: &impl serde::Serialize) -> Step {
    emit(kind, serde_json::to_value(document).unwrap_or_default())
}

fn emit(kind: &str, payload: Value) -> Step {
    Step::Emit { kind: kind.to_owned(), payload }
}
