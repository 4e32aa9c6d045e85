//! Everything that arrives at a run, with a secret in every text that others write.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::{Value, json};
use uuid::Uuid;

use crate::change::{Action, ChangeId, ChangeStatus, Comment, Digest, Gate, GateKind};
use crate::handoff::{About, Foreign, PriorAttempt, Receipt};
use crate::lock::{Ask, Claim, Holder, LockId, Mode, OnConflict};
use crate::redact::{Redact, Redactor, is_marked};
use crate::run::budget::Grant;
use crate::run::create::RunCreated;
use crate::run::message::Way;
use crate::run::session::SessionState;
use crate::run::tell::TurnReport;
use crate::team::change::{ChangeWork, FileNote, Hand, Heard, ProposedSet};
use crate::team::council::vote::{Stance, Vote};
use crate::team::council::{Decision, Dissent, Verdict};
use crate::team::generation::hand_over::GenerationHandedOver;
use crate::team::generation::{Awaited, Cause, ChangeCounts, Lineage, Note, Past};
use crate::team::order::{LeftFile, Leftover, OrderKey, WorkKey};
use crate::team::phase::{Brought, Hop, Measured, Part, Phases, Saving, Tokens};
use crate::team::{Inheritance, Said, TeamAbout, TeamInput};
use crate::wire::context::{
    ChangeAction, CodeChange, NextActionType, OrchestratorContext, TeamPhase,
};
use crate::wire::phase::Phase;
use crate::{
    AgentName, Failure, FailureKind, Fields, HandoffId, Input, Kind, MessageId, Millis,
    MissingInput, Offer, Outcome, Party, PrintedFrame, Priority, Question, Reason, Response, Run,
    RunId, Time, TurnKey, TurnResult, Usage, Usd,
};

const RELAY: &str = include_str!("../../../../../fixtures/workflows/relay.toml");

/// An environment value without any particular shape.
const OWN: &str = "zX9-kkQ2.mm";

/// Assembled here, so that no source file appears to contain a secret.
const TOKEN: &str = concat!("ghp_", "0123456789abcdefghijABCDEFGHIJ012345");

/// A value that only its name marks as a secret.
const NAMED: &str = "s3cr3t-word";

fn redactor() -> Redactor {
    Redactor::knowing([OWN])
}

fn text() -> String {
    format!("use {TOKEN} or {OWN}")
}

fn fields() -> Fields {
    let value = json!({ "password": NAMED, "deep": [{ "er": text() }], (text()): 1 });
    let Value::Object(fields) = value else { unreachable!("it is an object") };
    fields
}

fn turn() -> TurnKey {
    TurnKey { run: RunId(Uuid::nil()), handoff: HandoffId(1), attempt: 1, turn: 1 }
}

fn agent() -> AgentName {
    "builder".parse().expect("a name")
}

fn vote() -> Vote {
    Vote {
        signal: Stance::Agree,
        reason: text(),
        key_decisions: vec![text()],
        next_topic: Some(text()),
    }
}

fn foreign() -> Foreign {
    Foreign { dialect: "contract".into(), id: "7".into(), fields: fields() }
}

fn missing() -> MissingInput {
    MissingInput { key: text(), expected_type: text(), description: text(), source: Some(text()) }
}

fn response() -> Response {
    Response {
        question: Some(text()),
        by: Party::Human,
        outcome: Outcome::Partial,
        outputs: fields(),
        unresolved: vec![text()],
        failure: Some(text()),
        recommendations: vec![text()],
        summary: text(),
        took: Millis(1),
        usage: Usage::default(),
        foreign: Some(foreign()),
    }
}

fn question(about: About) -> Question {
    Question {
        reason: text(),
        details: text(),
        options: vec![text()],
        context: text(),
        blocking: true,
        within: Some(Millis(1)),
        default: Some(text()),
        about,
        answer_with: text(),
    }
}

fn offer() -> Offer {
    Offer {
        from: Party::Human,
        to: Party::from("builder"),
        kind: Kind::Delegate,
        reason: Reason::Other(text()),
        detail: text(),
        item: Some(text()),
        priority: Priority::High,
        summary: text(),
        instructions: Some(text()),
        outputs: fields(),
        missing: vec![missing()],
        prior_attempts: vec![PriorAttempt {
            attempt: 1,
            action: text(),
            result: text(),
            tried: None,
        }],
        timeout: Some(Millis(1)),
        question: Some(question(About::Confirm(HandoffId(1), Box::new(bare())))),
        foreign: Some(foreign()),
        objections: vec![text()],
        trace: None,
    }
}

fn bare() -> TurnResult {
    TurnResult {
        response: response(),
        offers: Vec::new(),
        usage: Usage::default(),
        fingerprint: Some("f1".into()),
        said: Said { vote: Some(vote()), measured: Some(Measured::default()) },
        bare: true,
        unanswered: false,
    }
}

fn inputs() -> Vec<Input> {
    let (handoff, change, by) = (HandoffId(1), ChangeId(1), text);
    let path = || "src/lib.rs".parse().expect("a path");
    let digest = || Digest::of_bytes(&[7; 32]);
    let told = TurnReport {
        offers: vec![offer()],
        response: Some(response()),
        usage: Usage::default(),
        said: Said { vote: Some(vote()), measured: Some(Measured::default()) },
    };
    let set = ProposedSet {
        change,
        agent: Some(agent()),
        handoff: Some(handoff),
        revision: 1,
        reason: text(),
        count: 1,
        files: vec![FileNote {
            file: path(),
            action: Action::Rename,
            from: Some(path()),
            before: Some(digest()),
            after: Some(digest()),
        }],
        gates: vec![Gate { kind: GateKind::Deletion, file: path() }],
        status: ChangeStatus::Pending,
    };
    let comment = Comment {
        by: by(),
        at: "2026-03-02T09:15:00Z".into(),
        file: Some("src/lib.rs".into()),
        line: Some(1),
        revision: 1,
        text: text(),
    };
    let permission = About::Permission(turn(), "delete".into());
    vec![
        Input::Tick,
        Input::ClockJumped { by: crate::Millis(9) },
        Input::Adopt { by: by() },
        Input::Receipt { turn: turn(), receipt: Receipt::Delivered },
        Input::Take { turn: turn(), by: by(), lease: Some(Millis(1)) },
        Input::Tell { turn: turn(), told: Box::new(told) },
        Input::Ask { turn: turn(), request: "delete".into(), question: question(permission) },
        Input::Settle { turn: turn(), request: "delete".into(), choice: Some(text()) },
        Input::Session { agent: agent(), state: SessionState::Crashed, note: text() },
        Input::Heartbeat { turn: turn(), note: Some(text()) },
        Input::Finish {
            turn: turn(),
            result: Box::new(TurnResult { offers: vec![offer()], ..bare() }),
        },
        Input::Fail {
            turn: turn(),
            failure: Failure { kind: FailureKind::Fatal, message: text(), until: Some(Time(1)) },
            usage: Usage::default(),
        },
        Input::Propose { offer: Box::new(offer()) },
        Input::Answer { handoff, values: fields(), text: text(), by: by() },
        Input::Team(TeamInput::ProposeChange { turn: Some(turn()), set: Box::new(set) }),
        Input::Team(TeamInput::CommentChange { change, comment }),
        Input::Team(TeamInput::OrderChange {
            change,
            revision: None,
            work: ChangeWork::Apply,
            by: Hand { name: by(), holder: Holder::person("ann") },
            batch: None,
            as_it_is: false,
        }),
        Input::Team(TeamInput::DecideChange {
            change,
            revision: None,
            status: ChangeStatus::Refused,
            by: by(),
            note: text(),
        }),
        Input::Team(TeamInput::SettleChange {
            change,
            order: WorkKey { run: turn().run, change, seq: 1 },
            status: ChangeStatus::Failed,
            by: by(),
            note: text(),
        }),
        Input::Team(TeamInput::OrderDone { order: OrderKey::Collect, heard: None, left: None }),
        Input::Team(TeamInput::OrderDone {
            order: OrderKey::Forward { change, comment: 1 },
            heard: Some(Heard::Nobody { why: text() }),
            left: Some(Box::new(Leftover {
                branch: Some(text()),
                folder: Some(text()),
                why: text(),
                count: 1,
                files: vec![LeftFile { file: text(), why: text() }],
            })),
        }),
        Input::Postpone { handoff, until: Time(1), why: text() },
        Input::Alert { code: text(), message: text() },
        Input::Send { to: agent(), from: Party::Human, by: by(), text: text() },
        Input::Deliver { turn: turn(), messages: vec![MessageId(1)], way: Way::Stop },
        Input::Printed {
            turn: turn(),
            frame: PrintedFrame::Error { code: text(), message: text() },
        },
        Input::Printed { turn: turn(), frame: PrintedFrame::Unreadable { reason: text() } },
        Input::RaiseBudget(Grant { money: Usd(1), ..Grant::default() }),
        Input::Team(TeamInput::Note { text: text(), by: by() }),
        Input::Team(TeamInput::HandOver { changes: ChangeCounts::default() }),
        Input::Pause { by: by() },
        Input::Unpause { by: by() },
        Input::Cancel { by: by(), why: text() },
    ]
}

fn lineage() -> Lineage {
    let verdict = Verdict {
        decision: Decision::Exhausted,
        why: text(),
        agreed: 1,
        needed: 2,
        total: 2,
        signals: [(agent(), Stance::Agree)].into(),
        dissent: vec![Dissent { member: agent(), signal: None, reason: text() }],
        key_decisions: vec![text()],
        next_topic: Some(text()),
    };
    let awaited = Awaited {
        from: crate::workflow::council::party(),
        question: question(About::Team(TeamAbout::Council(HandoffId(1)))),
        missing: vec![missing()],
        owed: true,
        verdict: Some(Box::new(verdict)),
    };
    let brought = Brought { passed: false, decision: None, summary: text(), problem: Some(text()) };
    let phases = Phases {
        task_id: "7".into(),
        place: 0,
        parts: vec![Part { brought: Some(brought), ..Part::default() }],
        findings: Some(text()),
        hops: vec![Hop {
            place: 0,
            phase: Phase::Research,
            rounds: 1,
            decision: None,
            why: text(),
            tokens: Tokens::default(),
            saving: Saving::default(),
        }],
        given: fields(),
    };
    let handed_over = GenerationHandedOver {
        number: 1,
        phase: TeamPhase::Discussion,
        action: NextActionType::ManualReview,
        reason: text(),
        cause: Some(Cause::ChangesReady),
        target_agent: Some("builder".into()),
        topic: Some(text()),
        summary: text(),
        cost: Usd(1),
        total_cost: Usd(1),
        next: None,
        why: text(),
        ends: None,
    };
    Lineage {
        number: 2,
        since: Time(1),
        previous: Some(RunId(Uuid::nil())),
        phase: TeamPhase::Testing,
        plan: None,
        check_in: false,
        asks: vec![awaited.clone()],
        awaits: vec![awaited],
        phases: Some(phases),
        past: vec![Past {
            number: 1,
            run: None,
            phase: TeamPhase::Discussion,
            summary: text(),
            cost: Usd(1),
        }],
        spent: Usd(1),
        agents: [("builder".to_owned(), crate::team::generation::Service::default())].into(),
        decisions: vec![text()],
        notes: vec![Note { text: text(), by: text(), at: Time(1) }],
        given: fields(),
        changes: vec![CodeChange {
            file: "src/lib.rs".into(),
            action: ChangeAction::Modify,
            content: Some(Some(text())),
            applied_at: None,
            validated_at: None,
            status: crate::wire::context::ChangeStatus::Pending,
            extra: fields(),
        }],
        foreign: fields(),
        handed_over: Some(Box::new(handed_over)),
    }
}

fn created() -> RunCreated {
    let workflow = crate::workflow::file::parse(RELAY).expect("a workflow");
    RunCreated {
        run: RunId(Uuid::nil()),
        budget: workflow.budget.clone(),
        workflow: Arc::new(workflow),
        request: text(),
        inputs: fields(),
        by: text(),
        origin: Some(foreign()),
        trace: None,
        entry: None,
        forecasts: None,
        team: Inheritance { lineage: Some(Box::new(lineage())) },
    }
}

/// Fields with names, ids and our own keywords, which stay as they are.
const NAMES: &[&str] = &[
    "about",
    "order",
    "action",
    "after",
    "agent",
    "at",
    "before",
    "cause",
    "change",
    "decision",
    "dialect",
    "file",
    "fingerprint",
    "from",
    "handoff",
    "id",
    "kind",
    "member",
    "outcome",
    "permission",
    "phase",
    "previous",
    "priority",
    "receipt",
    "request",
    "run",
    "signal",
    "since",
    "state",
    "status",
    "target_agent",
    "task_id",
    "to",
    "turn",
    "work",
    "until",
    "confirm",
    "council",
];

/// Parties and stances, in any field.
const WORDS: [&str; 7] = ["m1", "nobody", "stop", "human", "orchestrator", "agree", "ann"];

/// Collects every text in a value, with the name of its field.
fn texts(name: &str, value: &Value, found: &mut Vec<(String, String)>) {
    match value {
        Value::String(text) => found.push((name.to_owned(), text.clone())),
        Value::Array(items) => items.iter().for_each(|item| texts(name, item, found)),
        Value::Object(fields) => fields.iter().for_each(|(name, field)| texts(name, field, found)),
        _ => {}
    }
}

fn stays(name: &str, text: &str) -> bool {
    name.is_empty() || NAMES.contains(&name) || WORDS.contains(&text)
}

fn has_secret(text: &str) -> bool {
    [TOKEN, OWN, NAMED].iter().any(|secret| text.contains(secret))
}

/// Redacts twice and returns the result.
fn cleaned<T: Redact + Clone + PartialEq + std::fmt::Debug>(mut said: T) -> T {
    said.redact(&redactor());
    let once = said.clone();
    said.redact(&redactor());
    assert_eq!(said, once, "a second time changes nothing");
    said
}

/// Returns the names of an enum's variants, without those that are an enum of their own.
fn variants(schema: &Value) -> BTreeSet<String> {
    let list = schema["oneOf"].as_array().or(schema["anyOf"].as_array()).expect("variants");
    let names = |variant: &Value| match variant["required"][0].as_str() {
        Some(name) => vec![name.to_owned()],
        None => match (&variant["const"], &variant["enum"], &variant["$ref"]) {
            (Value::String(name), _, _) => vec![name.clone()],
            (_, Value::Array(names), _) => {
                names.iter().filter_map(Value::as_str).map(str::to_owned).collect()
            }
            (_, _, Value::String(_)) => Vec::new(),
            _ => panic!("{variant}"),
        },
    };
    list.iter().flat_map(names).collect()
}

#[test]
fn b_17_no_input_keeps_a_secret() {
    let inputs = inputs();
    let names: BTreeSet<String> = inputs
        .iter()
        .map(|input| match json!(input) {
            Value::String(name) => name,
            Value::Object(fields) => fields.keys().next().expect("a name").clone(),
            other => panic!("{other}"),
        })
        .collect();
    let mut known = variants(&schemars::schema_for!(Input).to_value());
    known.extend(variants(&schemars::schema_for!(TeamInput).to_value()));
    assert_eq!(names, known, "every input there is");
    for input in inputs {
        let mut said = Vec::new();
        texts("", &json!(input), &mut said);
        for (name, text) in said {
            assert!(
                stays(&name, &text) || has_secret(&text),
                "no secret yet in {name} of {input:?}"
            );
        }
        let clean = json!(cleaned(input)).to_string();
        assert!(!has_secret(&clean), "{clean}");
    }
}

#[test]
fn b_17_a_run_begins_without_secrets() {
    let created = created();
    let mut said = Vec::new();
    texts("", &json!(created.team.lineage), &mut said);
    for (name, text) in said {
        assert!(stays(&name, &text) || has_secret(&text), "no secret yet in {name}: {text}");
    }
    let clean = cleaned(created);
    assert!(clean.team.lineage.as_ref().is_some_and(|lineage| {
        lineage.changes.iter().all(|change| {
            change.content.as_ref().and_then(|text| text.as_deref()).is_some_and(is_marked)
        })
    }));
    let events = Run::begin(Time(1), clean);
    assert!(events.len() > 1, "{events:?}");
    for event in events {
        let event = json!(event).to_string();
        assert!(!has_secret(&event), "{event}");
    }
}

#[test]
fn b_17_the_workflow_is_the_users_own_and_stays_as_it_is() {
    let mut created = created();
    let mut workflow = (*created.workflow).clone();
    workflow.workflow.name = text();
    created.workflow = Arc::new(workflow);
    assert_eq!(cleaned(created).workflow.workflow.name, text());
}

#[test]
fn b_17_names_and_ids_stay_as_they_are() {
    // Each looks like a secret, and each is used for a look-up.
    let request = Input::Ask {
        turn: turn(),
        request: TOKEN.into(),
        question: Question {
            about: About::Permission(turn(), TOKEN.into()),
            ..Question::default()
        },
    };
    let to = Offer {
        to: Party::from(TOKEN),
        foreign: Some(Foreign { id: TOKEN.into(), ..foreign() }),
        ..offer()
    };
    let Input::Ask { request, question, .. } = cleaned(request) else { panic!("an input") };
    assert_eq!(
        (request.as_str(), &question.about),
        (TOKEN, &About::Permission(turn(), TOKEN.into()))
    );
    let to = cleaned(to);
    assert_eq!(to.to, Party::from(TOKEN));
    assert_eq!(to.foreign.map(|foreign| foreign.id).as_deref(), Some(TOKEN));
}

#[test]
fn b_17_a_context_of_another_orchestrator_brings_no_secret() {
    let mut value: Value =
        serde_json::from_str(include_str!("../../../../../fixtures/wire/context.json"))
            .expect("a context");
    value["humanNotes"] = text().into();
    value["discussionSummary"]["topic"] = text().into();
    value["discussionSummary"]["keyDecisions"][0] = text().into();
    value["discussionSummary"]["consensusSignals"]["Alex"] = text().into();
    value["codeChanges"][0]["content"] = text().into();
    value["codeChanges"][0]["why"] = text().into();
    value["nextAction"]["reason"] = text().into();
    value["history"][0]["summary"] = text().into();
    value["history"][0]["token"] = NAMED.into();
    value["aside"] = text().into();
    let context: OrchestratorContext = serde_json::from_value(value).expect("a context");
    let clean = json!(cleaned(context)).to_string();
    assert!(clean.contains("[redacted:github]") && !has_secret(&clean), "{clean}");
}

#[test]
fn b_17_what_is_asked_of_the_locks_keeps_no_secret() {
    let holder = Holder::person("ada");
    let claim = Claim {
        holder: holder.clone(),
        turn: None,
        patterns: vec!["a.txt".parse().expect("a pattern")],
        mode: Mode::Exclusive,
        lease: Millis(1),
        reason: text(),
    };
    let take = Ask::Take { claim, on_conflict: OnConflict::default(), wait: Millis(1) };
    let over = Ask::TakeOver { id: LockId(1), by: holder, why: text() };
    for ask in [take, over] {
        assert!(!has_secret(&format!("{:?}", cleaned(ask))));
    }
}
