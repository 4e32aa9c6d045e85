//! What the gate finds in what the stages hand on.

use serde_json::{Value, json};
use stafette_core::handoff::State;
use stafette_core::redact::Redactor;
use stafette_core::{Event, HandoffId, Offer, RunId};
use stafette_engine::{Answered, Gate};
use stafette_stages::{Stages, StagesSettings};

use crate::story::{Story, admitted, answers, fields, offer, workflow};

struct World {
    folder: tempfile::TempDir,
    stages: Stages,
}

fn world() -> World {
    let folder = tempfile::tempdir().expect("a folder");
    let samples = [
        ("constitution.md", include_str!("../../../stafette/templates/odei/constitution.md")),
        ("goals.toml", include_str!("../../../stafette/templates/odei/goals.toml")),
    ];
    for (name, text) in samples {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    let settings = StagesSettings {
        knowledge: workflow().knowledge.expect("the template has knowledge"),
        root: folder.path(),
        state: folder.path(),
        secret: &|_| None,
        redactor: Redactor::new(),
    };
    let stages = Stages::open(settings).expect("opened");
    World { folder, stages }
}

impl World {
    async fn look(&self, story: &Story, offer: Offer) -> Offer {
        self.stages.offer(&story.run, Some(story.at), offer).await
    }
}

fn recommendation(results: Value, word: &str) -> Value {
    json!({ "thread_id": "this", "check_results": results, "score": 0.8, "recommendation": word })
}

#[tokio::test]
async fn s1_07_every_principle_is_answered_before_anything_is_recommended() {
    let world = world();
    let mut story = Story::with("discuss", json!({}));
    let whole = offer("discuss", "decisions", recommendation(answers(), "APPROVE"));
    let looked = world.look(&story, whole.clone()).await;
    assert_eq!(looked.objections, Vec::<String>::new());
    let own = format!("{}.discuss", story.run.id);
    assert_eq!(looked.outputs["thread_id"], own.as_str(), "the talk of this run has a name");

    // Each one that is left out is named, on the way to a person as well.
    for number in 0..4 {
        let mut some = answers();
        some.as_array_mut().expect("a list").remove(number);
        for (to, word) in [("decisions", "APPROVE"), ("human", "REJECT")] {
            let less = offer("discuss", to, recommendation(some.clone(), word));
            let looked = world.look(&story, less).await;
            let expected = format!("principle {} (", number + 1);
            assert_eq!(looked.objections.len(), 1, "{:?}", looked.objections);
            assert!(looked.objections[0].starts_with(&expected), "{:?}", looked.objections);
            assert!(looked.objections[0].ends_with("is not answered"));
        }
    }

    // What violates a principle cannot be approved, and the run refuses it under that rule.
    let mut violated = answers();
    violated[0] =
        json!({ "principle": "1", "verdict": "violated", "reason": "Nobody can undo it." });
    let against = offer("discuss", "decisions", recommendation(violated.clone(), "APPROVE"));
    let looked = world.look(&story, against).await;
    assert!(looked.objections[0].starts_with("APPROVE is refused: principle 1"), "{looked:?}");
    let events = story.hands(looked);
    assert!(admitted(&events).is_none());
    let refused = events.iter().any(|event| match event {
        Event::HandoffRefused(refused) => {
            refused.refusal.to_string().contains("Nobody can undo it")
        }
        _ => false,
    });
    assert!(refused, "{events:?}");
    let story = Story::with("discuss", json!({}));
    let honest = offer("discuss", "human", recommendation(violated, "REJECT"));
    assert_eq!(world.look(&story, honest).await.objections, Vec::<String>::new());

    // Only what is approved goes on, and the talk must exist.
    let revise = offer("discuss", "decisions", recommendation(answers(), "REVISE"));
    assert!(world.look(&story, revise).await.objections[0].contains("only what is approved"));
    let mut nowhere = whole;
    nowhere.outputs.insert("thread_id".into(), json!("no such talk"));
    assert!(world.look(&story, nowhere).await.objections[0].contains("no thread"));
}

#[tokio::test]
async fn s1_13_what_is_not_a_roles_to_write_is_refused_at_the_gate() {
    let world = world();
    let story = Story::with("mind", json!({}));
    let recommends = offer("mind", "human", recommendation(answers(), "APPROVE"));
    let said = world.look(&story, recommends).await.objections;
    assert!(said[0].contains("mind may not write discussions"), "{said:?}");
    let decides = offer("mind", "human", json!({ "candidates": [] }));
    let said = world.look(&story, decides).await.objections;
    assert!(said[0].contains("mind may not write decisions"), "{said:?}");
}

fn candidates() -> Value {
    let one = |id: &str, hours: f64, benefit: f64| {
        json!({
            "id": id, "title": format!("Option {id}"), "kind": "code", "benefit": benefit,
            "cost": 0, "hours": hours, "risk": 0, "probability": 1,
            "goals": [{ "goal": "craft", "strength": 0.5 }],
        })
    };
    json!([one("a", 10.0, 1000.0), one("b", 1.0, 400.0), one("c", 1.0, 300.0)])
}

#[tokio::test]
async fn s1_08_options_are_ranked_for_the_person_whose_answer_is_the_evidence() {
    let world = world();
    let mut story = Story::with("decisions", json!({ "thread_id": "t" }));
    let asked = offer("decisions", "human", json!({ "candidates": candidates() }));
    let mut eager = asked.clone();
    // An agent cannot have its own default taken for a person's yes.
    eager.question = Some(stafette_core::Question {
        details: "Which one?".into(),
        default: Some("b".into()),
        within: Some(stafette_core::Millis(1)),
        ..stafette_core::Question::default()
    });
    let looked = world.look(&story, eager).await;
    let question = looked.question.clone().expect("a question");
    assert_eq!(question.options, ["a", "b", "c", "none"]);
    assert_eq!((question.default, question.within, question.blocking), (None, None, true));
    assert!(question.context.contains("1. a: 750.00"), "{}", question.context);
    let events = story.hands(looked);
    let asked_as = admitted(&events).expect("it is asked");
    let state = &story.run.handoff(asked_as).expect("there").state;
    assert!(matches!(state, State::Asked { .. }));

    let answer = async |text: &str| {
        let values = fields(json!({}));
        let answered = Answered { handoff: asked_as, values: &values, text, by: "ada" };
        world.stages.answer(&story.run, answered).await.expect("nothing is in the way")
    };
    assert!(answer("none").await.is_empty() && answer("what?").await.is_empty());
    let given = answer("A").await;
    assert_eq!(given["option"], "a");
    assert_eq!(given["roi"]["total"], 750.0);
    assert_eq!(given["goals"], json!(["craft"]));
    assert_eq!(given["provenance"]["approved_by"], "ada");
    let decision = given["decision_id"].as_str().expect("an id").to_owned();

    // With it in hand the next stage can be reached; a made-up one is refused.
    let forged = offer("decisions", "execute", json!({ "decision_id": "made up" }));
    let said = world.look(&story, forged).await.objections;
    assert!(said[0].contains("comes from a person's approval"), "{said:?}");
    let held = Story::with("decisions", json!(given));
    let real = offer("decisions", "execute", json!({ "decision_id": decision }));
    assert_eq!(world.look(&held, real).await.objections, Vec::<String>::new());

    // Numbers that cannot be meant and goals that are none waste nobody's time.
    for (field, value, expected) in [
        ("probability", json!(3), "probability is 3"),
        ("goals", json!([{ "goal": "fame", "strength": 1 }]), "`fame`, which is none of"),
    ] {
        let mut odd = candidates();
        odd[0][field] = value;
        let odd = offer("decisions", "human", json!({ "candidates": odd }));
        let said = world.look(&held, odd).await.objections;
        assert!(said[0].contains(expected), "{said:?}");
    }
}

#[tokio::test]
async fn s1_09_tasks_get_free_time_once_there_is_a_decision() {
    let world = world();
    let tasks = json!([
        { "id": "t1", "title": "First", "hours": 2, "kind": "code" },
        { "id": "t2", "title": "Second", "hours": 1, "after": ["t1"] },
    ]);
    let asks = || offer("execute", "human", json!({ "tasks": tasks.clone() }));
    let story = Story::with("execute", json!({}));
    let said = world.look(&story, asks()).await.objections;
    assert!(said[0].contains("no approved decision"), "{said:?}");

    let mut story = Story::with("execute", json!({ "decision_id": "d" }));
    let looked = world.look(&story, asks()).await;
    assert_eq!(looked.objections, Vec::<String>::new());
    let plan = &looked.outputs["plan"];
    assert_eq!(plan["blocks"].as_array().map(Vec::len), Some(2), "{plan}");
    assert!(plan["blocks"][0]["end"].as_str() <= plan["blocks"][1]["start"].as_str());
    let asked_as = admitted(&story.hands(looked)).expect("it is asked");
    let values = fields(json!({}));
    let say = |text| Answered { handoff: asked_as, values: &values, text, by: "ada" };
    assert_eq!(world.stages.answer(&story.run, say("drop")).await, Ok(fields(json!({}))));
    let given = world.stages.answer(&story.run, say("approve")).await.expect("there is room");
    assert_eq!(given["task_ids"].as_array().map(Vec::len), Some(2));
    assert_eq!(given["calendar_events"].as_array().map(Vec::len), Some(2));
    drop(world.folder);
}

/// A run of this number that asks for two hours, and the question.
async fn plan(world: &World, number: u128) -> (Story, HandoffId) {
    let mut story = Story::with("execute", json!({ "decision_id": "d" }));
    story.run.id = RunId(uuid::Uuid::from_u128(number));
    let tasks = json!([{ "id": "t", "title": format!("Plan {number}"), "hours": 2 }]);
    let looked = world.look(&story, offer("execute", "human", json!({ "tasks": tasks }))).await;
    assert_eq!(looked.objections, Vec::<String>::new());
    let question = admitted(&story.hands(looked)).expect("it is asked");
    (story, question)
}

#[tokio::test]
async fn s1_14_of_two_who_approve_the_same_time_at_once_one_is_refused_and_gets_another() {
    let world = world();
    // Both plans are made before either is noted anywhere, so that both have the same time.
    let start = |(story, id): &(Story, HandoffId)| {
        let handoff = story.run.handoff(*id).expect("a question");
        handoff.offer.outputs["plan"]["blocks"][0]["start"].clone()
    };
    let mut both = (plan(&world, 1).await, plan(&world, 2).await);
    if start(&both.0) != start(&both.1) {
        // A quarter of an hour began in between, and the next is far away.
        both = (plan(&world, 1).await, plan(&world, 2).await);
    }
    assert_eq!(start(&both.0), start(&both.1));
    let ((one, first), (two, second)) = both;
    let values = fields(json!({}));
    let yes = |handoff| Answered { handoff, values: &values, text: "approve", by: "ada" };
    let answers = tokio::join!(
        world.stages.answer(&one.run, yes(first)),
        world.stages.answer(&two.run, yes(second)),
    );
    let (refused, again, other) = match answers {
        (Ok(_), Err(why)) => (why, (&two, second), "Plan 1"),
        (Err(why), Ok(_)) => (why, (&one, first), "Plan 2"),
        both => panic!("one of them: {both:?}"),
    };
    assert!(refused.contains(&format!("`{other}` is there")), "{refused}");
    assert!(refused.contains("is proposed for"), "another slot is proposed: {refused}");
    // A yes to the other time is taken.
    let (story, question) = again;
    let taken = world.stages.answer(&story.run, yes(question)).await;
    assert!(taken.is_ok(), "{taken:?}");
}

#[tokio::test]
async fn s1_18_blocked_work_begins_again_without_the_old_evidence() {
    let world = world();
    let held = json!({
        "decision_id": "d", "recommendation": "APPROVE", "check_results": [], "score": 1,
        "thread_id": "t", "roi": {}, "goals": [], "provenance": {},
    });
    let story = Story::with("execute", held);
    let back = offer("execute", "discuss", json!({ "blocked_by": "no budget" }));
    let looked = world.look(&story, back).await;
    assert_eq!(looked.objections, Vec::<String>::new());
    for key in ["decision_id", "recommendation", "check_results", "roi", "thread_id"] {
        assert!(looked.outputs[key].is_null(), "{key}: {looked:?}");
    }
    assert_eq!(looked.outputs["blocked_by"], "no budget");
}
