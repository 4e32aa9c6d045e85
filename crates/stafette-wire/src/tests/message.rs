use serde_json::json;

use super::*;
use crate::message::MessageType;
use stafette_model::{Kind, Question, Reason};

#[test]
fn s5_01_a_message_passes_the_baton() {
    let document = fixture("message-fix-request.json");
    let offer: Offer = typed::<Message>(&document).into_offer();
    assert_eq!((&offer.from, &offer.to), (&agent("reviewer"), &agent("fixer")));
    assert_eq!((offer.kind, &offer.reason), (Kind::Transfer, &Reason::FixRequest));
    assert_eq!(offer.item.as_deref(), Some("specs/20260211-auth.md"));
    assert_eq!(offer.outputs["issues"][0]["line"], 45);
    let foreign = offer.foreign.expect("it came from outside");
    assert_eq!(foreign.id, "c2e7d1f4-6a90-4d3b-a815-90f3be4c7a28");
    assert_eq!(
        json!(foreign.fields),
        json!({
            "timestamp": "2026-02-11T08:03:00Z", "context/workflow": "feature",
            "context/iteration": 1, "status": "completed",
        })
    );
}

#[test]
fn s5_01_an_escalation_asks_a_person_and_blocks_unless_it_says_otherwise() {
    let offer: Offer = typed::<Message>(&fixture("message-escalation.json")).into_offer();
    assert_eq!((offer.to, offer.kind), (Party::Human, Kind::Delegate));
    let question = offer.question.expect("it asks something");
    assert_eq!(question.reason, "spec_ambiguity");
    assert_eq!(question.options, ["JWT", "Session", "OAuth"]);
    assert_eq!(question.context, "spec line 45");

    let offer: Offer = typed::<Message>(&fixture("message-escalation-open.json")).into_offer();
    assert_eq!((offer.to, offer.kind), (Party::Human, Kind::Transfer));
    assert_eq!(json!(offer.outputs), json!({ "screenshot": "shots/1.png" }));

    let mut document = fixture("message-escalation.json");
    document["payload"].as_object_mut().expect("an object").remove("blocking");
    assert_eq!(complaints(Name::Message, &document), "");
    assert_eq!(typed::<Message>(&document).into_offer::<()>().kind, Kind::Delegate);
    assert_eq!(through_model(Name::Message, &document), Some(document));
}

#[test]
fn s5_01_each_type_goes_only_between_its_roles() {
    let everyone = ["planner", "builder", "reviewer", "fixer", "orchestrator", "human"];
    let mut allowed = String::new();
    for kind in MessageType::ALL {
        let (sender, receiver) = kind.ends();
        for from in everyone.into_iter().filter(|from| sender.includes(&(*from).into())) {
            for to in everyone {
                if receiver.includes(&to.into()) {
                    allowed.push_str(&format!("{} {from} {to}\n", kind.as_str()));
                }
            }
        }
    }
    insta::assert_snapshot!(allowed, @r#"
    task_handoff planner builder
    review_request builder reviewer
    fix_request reviewer fixer
    rereview_request fixer reviewer
    completion planner orchestrator
    completion builder orchestrator
    completion reviewer orchestrator
    completion fixer orchestrator
    completion orchestrator orchestrator
    completion human orchestrator
    escalation planner orchestrator
    escalation builder orchestrator
    escalation reviewer orchestrator
    escalation fixer orchestrator
    escalation orchestrator orchestrator
    escalation human orchestrator
    "#);
}

#[test]
fn s5_01_an_invalid_message_is_refused_with_every_place_and_reason() {
    let misdirected = fixture("invalid/message-misdirected.json");
    insta::assert_snapshot!(complaints(Name::Message, &misdirected), @r#"
    /from: a task_handoff is sent by `planner`, not `reviewer`
    /to: a task_handoff is sent to `builder`, not `human`
    "#);
    assert!(Document::read(&misdirected).is_err());

    let escalation = fixture("invalid/message-escalation.json");
    assert_eq!(recognise(&escalation), Some(Name::Message));
    insta::assert_snapshot!(complaints(Name::Message, &escalation), @r#"
    document: "context" is a required property
    document: "message_id" is a required property
    document: "priority" is a required property
    document: "schema_version" is a required property
    document: "status" is a required property
    document: "timestamp" is a required property
    /payload: "details" is a required property
    /payload/blocking: "yes" is not of type "boolean"
    /payload/options: "JWT or sessions" is not of type "array"
    "#);
}

#[test]
fn s5_01_native_work_goes_out_as_valid_messages() {
    let id = Uuid::nil();
    let mut offer = Offer::new(agent("planner"), agent("builder"), Kind::Transfer, Reason::Stage);
    offer.summary = "The plan is ready".into();
    offer.item = Some("specs/a.md".into());
    let message = value(&Message::from_offer(&offer, id, Time(0), refactoring()));
    assert_eq!(complaints(Name::Message, &message), "");
    assert_eq!(message["type"], "task_handoff");
    assert_eq!(message["payload"], json!({ "summary": "The plan is ready" }));
    assert_eq!(message["context"], json!({ "workflow": "refactor", "spec": "specs/a.md" }));

    let mut offer =
        Offer::new(agent("builder"), Party::Human, Kind::Delegate, Reason::RequiresHumanDecision);
    let message = value(&Message::from_offer(&offer, id, Time(0), refactoring()));
    assert_eq!(complaints(Name::Message, &message), "");
    assert_eq!((&message["type"], &message["to"]), (&json!("escalation"), &json!("orchestrator")));
    assert_eq!(message["payload"]["blocking"], true);

    offer.question = Some(Question {
        reason: "choice".into(),
        details: "Which?".into(),
        options: vec!["A".into(), "B".into()],
        blocking: false,
        ..Question::default()
    });
    offer.outputs.insert("options".into(), json!(7));
    let message = value(&Message::from_offer(&offer, id, Time(0), refactoring()));
    assert_eq!(complaints(Name::Message, &message), "");
    assert_eq!(message["payload"]["options"], json!(["A", "B"]));
    assert_eq!(message["payload"]["blocking"], false);
}
