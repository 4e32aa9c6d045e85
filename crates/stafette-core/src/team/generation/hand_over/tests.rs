mod person;

use serde_json::json;

use crate::run::create::RunCreated;
use crate::run::story::{RELAY, Story, costing, done, fields, h};
use crate::team::Inheritance;
use crate::team::generation::hand_over::GenerationHandedOver;
use crate::team::generation::{
    BRIEFING, Cause, ChangeCounts, Lineage, Plan, briefing, context, import, successor,
};
use crate::wire::context::{NextActionType, OrchestratorContext, TeamPhase};
use crate::{
    Fields, Input, Kind, Millis, Offer, Party, Question, Reason, Run, Status, Time, TurnResult, Usd,
};

const SOLO: &str = r#"
    workflow = { name = "solo", entry = "solo" }
    agents = { solo.runner = "scripted" }
    generations = { }
"#;

const PHASES: &str = r#"
    workflow = { name = "phases", entry = "solo" }
    agents = { solo.runner = "scripted" }
    generations = { }
    phases = [{ phase = "research", agents = ["solo"] }]
"#;

const SIDE_BY_SIDE: &str = r#"
    workflow = { name = "checks", entry = "types" }
    agents = { types.runner = "scripted", lint.runner = "scripted" }
    generations = { }
    phases = [{ phase = "parallel", agents = ["types", "lint"], rule = "all" }]
    limits = { cooldown = 0, handoffs_per_item = 20 }
"#;

fn plan(max_runs: u32, max_cost: Usd, check_in_every: u32) -> Plan {
    Plan {
        max_runs,
        max_cost,
        check_in_every,
        pause: Millis::seconds(2),
        budget: crate::workflow::Budget::default(),
        first: 1,
        spent: Usd(0),
    }
}

fn created(plan: Option<Plan>) -> RunCreated {
    created_by(SOLO, plan)
}

fn created_by(workflow: &str, plan: Option<Plan>) -> RunCreated {
    let workflow = crate::workflow::file::parse(workflow).expect("a workflow");
    let forecasts = Some(crate::run::story::free(&workflow));
    let first = Lineage::first(Time(0), Fields::new());
    let lineage = plan.map_or(first.clone(), |plan| first.planned(plan));
    let run = crate::RunId(uuid::Uuid::from_u128(1));
    RunCreated {
        forecasts,
        team: Inheritance { lineage: Some(Box::new(lineage)) },
        ..RunCreated::new(run, workflow.into(), "Build a cache", "ada")
    }
}

fn begin(now: Time, created: RunCreated) -> Story {
    Story::from_events(now, Run::begin(now, created))
}

/// The only agent does its work for ten cents, and suggests the next topic.
fn work(story: &mut Story, next: Option<&str>) {
    let mut result = TurnResult { usage: costing(0.1), ..done() };
    if let Some(topic) = next {
        result.response.outputs = fields(json!({ "next_topic": topic }));
    }
    story.ends(h(1), result);
}

fn hand_over(story: &mut Story, changes: ChangeCounts) -> GenerationHandedOver {
    story.input(crate::TeamInput::HandOver { changes });
    let lineage = story.run.team.lineage.as_ref().expect("a lineage");
    *lineage.handed_over.clone().expect("handed over")
}

fn told(run: &Run) -> OrchestratorContext {
    context(run, &[], &ChangeCounts::default(), run.updated_at)
}

#[test]
fn s4_02_the_next_one_goes_on_with_what_the_last_one_left() {
    let mut story = begin(Time(0), created(Some(plan(10, Usd(5_000_000), 0))));
    story.input(crate::TeamInput::Note { text: "Keep it small".into(), by: "ada".into() });
    work(&mut story, Some("Prune it"));
    let over = hand_over(&mut story, ChangeCounts::default());
    assert_eq!(over.why, "generation 2 of 10");
    let log = story.log.len();
    story.input(crate::TeamInput::HandOver { changes: ChangeCounts::default() });
    assert_eq!(story.log.len(), log, "it is handed over once");
    // A note that arrives after the end is recorded, too.
    let ended = story.run.updated_at;
    story.now = story.now + Millis::hours(1);
    story.input(crate::TeamInput::Note { text: "And fast".into(), by: "ada".into() });
    assert_eq!(story.run.updated_at, ended, "the end stays where it was");

    let next = successor(&story.run).expect("the next one");
    assert_eq!(next, successor(&story.run).expect("the same one"));
    assert_eq!((next.request.as_str(), next.run), ("Prune it", over.next.expect("one").run));
    assert_eq!(next.inputs["human_notes"], json!(["Keep it small", "And fast"]));
    let text = next.inputs["briefing"].as_str().expect("text");
    assert!(text.contains("BRIEFING FOR GENERATION 2") && text.contains("Keep it small"), "{text}");

    let story = begin(story.now, next);
    let context = told(&story.run);
    assert_eq!((context.run_number.get(), context.history.len()), (2, 1));
    assert_eq!(context.agent_states["solo"].times_processed.get(), 1);
    assert!((context.total_cost.get() - 0.1).abs() < 1e-9);
    assert_eq!(context.human_notes, Some(Some("Keep it small\nAnd fast".into())));
}

#[test]
fn s4_04_generations_end_at_the_limit_the_ceiling_or_when_nothing_is_left() {
    for (plan, next, why) in [
        (plan(1, Usd(5_000_000), 0), Some("more"), "the limit of 1 generations is reached"),
        (plan(9, Usd(100_000), 0), Some("more"), "the ceiling of $0.10 is reached: $0.10 spent"),
        (plan(9, Usd(5_000_000), 0), None, "nothing is left to do"),
    ] {
        let mut story = begin(Time(0), created(Some(plan)));
        work(&mut story, next);
        let over = hand_over(&mut story, ChangeCounts::default());
        assert_eq!((over.why.as_str(), over.next), (why, None));
        assert_eq!(successor(&story.run), None);
    }
    let mut story = begin(Time(0), created(Some(plan(9, Usd(5_000_000), 0))));
    story.input(Input::Cancel { by: "ada".into(), why: "enough".into() });
    let over = hand_over(&mut story, ChangeCounts::default());
    assert_eq!((over.action, over.next), (NextActionType::ManualReview, None));
}

#[test]
fn s4_04_what_the_series_has_left_is_all_that_the_next_one_may_spend() {
    let mut story = begin(Time(0), created(Some(plan(9, Usd(150_000), 0))));
    work(&mut story, Some("more"));
    hand_over(&mut story, ChangeCounts::default());
    assert_eq!(successor(&story.run).expect("one more").budget.money, Usd(50_000));
}

#[test]
fn s4_08_one_dollar_for_a_series_at_thirty_cents_a_turn_is_three_turns() {
    let mut next = Some(created(Some(plan(9, Usd(1_000_000), 0))));
    let (mut now, mut turns) = (Time(0), 0);
    while let Some(created) = next.take() {
        let mut story = begin(now, created);
        if story.run.outbox().count() == 0 {
            assert_eq!(story.status(), Status::WaitingForBudget);
            assert!(story.transcript().contains("$0.00 of $0.10 spent, $0.30 needed"));
            break;
        }
        turns += 1;
        let result = TurnResult { usage: costing(0.3), ..done() };
        let outputs = fields(json!({ "next_topic": "more" }));
        let response = crate::Response { outputs, ..result.response };
        story.ends(h(1), TurnResult { response, ..result });
        hand_over(&mut story, ChangeCounts::default());
        (next, now) = (successor(&story.run), story.now);
    }
    assert_eq!(turns, 3);
}

#[test]
fn s4_04_a_person_is_asked_to_check_in_before_the_next_one_begins() {
    let mut story = begin(Time(0), created(Some(plan(9, Usd(5_000_000), 1))));
    work(&mut story, Some("more"));
    hand_over(&mut story, ChangeCounts::default());
    let next = successor(&story.run).expect("one more");
    for (answer, status) in [("go on", Status::Running), ("stop", Status::Cancelled)] {
        let mut story = begin(story.now, next.clone());
        assert_eq!(story.status(), Status::WaitingForHuman);
        assert_eq!(story.question(h(2)).reason, "check_in");
        assert_eq!(told(&story.run).next_action.kind, NextActionType::ManualReview);
        story.person_says(h(2), answer);
        assert_eq!(story.status(), status);
    }
    let mut story = begin(story.now, next);
    story.person_says(h(2), "Only the tests");
    assert_eq!(story.run.outbox().next().expect("a turn").inputs["check_in"], "Only the tests");
    assert!(told(&story.run).human_notes.flatten().is_some_and(|n| n.contains("Only the tests")));
}

#[test]
fn s4_04_a_team_that_works_in_phases_is_checked_in_on_before_its_first() {
    for (workflow, parts) in [(PHASES, 1), (SIDE_BY_SIDE, 2)] {
        let mut asked = created_by(workflow, Some(plan(9, Usd(5_000_000), 1)));
        let lineage = asked.team.lineage.as_mut().expect("a lineage");
        (lineage.number, lineage.check_in) = (2, true);
        let question = h(parts + 1);
        for (answer, status) in [("go on", Status::Running), ("stop", Status::Cancelled)] {
            let mut story = begin(Time(0), asked.clone());
            assert_eq!((story.status(), story.run.outbox().count()), (Status::WaitingForHuman, 0));
            assert_eq!(story.question(question).reason, "check_in");
            story.person_says(question, answer);
            assert_eq!(story.status(), status);
        }
        let mut story = begin(Time(0), asked);
        story.person_says(question, "Only the tests");
        let heard = story.run.outbox().filter(|order| order.inputs["check_in"] == "Only the tests");
        assert_eq!(heard.count(), parts as usize, "everyone who begins hears it, once");
    }
}

/// The only agent asks a question and waits for the answer.
fn asks(story: &mut Story) {
    let question = Question {
        reason: "spec_ambiguity".into(),
        details: "Which cache?".into(),
        options: vec!["LRU".into(), "LFU".into()],
        blocking: true,
        ..Question::default()
    };
    let offer = Offer::new(Party::from("solo"), Party::Human, Kind::Delegate, Reason::Escalation);
    story.hands(h(1), vec![Offer { question: Some(question), ..offer }]);
}

#[test]
fn s4_03_a_person_is_needed_so_the_generation_ends_and_the_answer_goes_into_the_next_one() {
    let mut story = begin(Time(0), created(Some(plan(9, Usd(5_000_000), 0))));
    asks(&mut story);
    assert_eq!(story.status(), Status::Cancelled, "its work is not done");
    let over = hand_over(&mut story, ChangeCounts::default());
    assert_eq!((over.cause, over.action), (Some(Cause::HumanNeeded), NextActionType::ManualReview));
    assert_eq!(over.reason, "A person is needed: solo asks: Which cache?");
    assert_eq!(over.why, "generation 2 of 9, which waits for the answer");
    let context = told(&story.run);
    assert_eq!(context.next_action.kind, NextActionType::ManualReview);
    let awaits = json!([{ "from": "solo", "question": "Which cache?", "options": ["LRU", "LFU"] }]);
    assert_eq!(context.next_action.extra["awaits"], awaits);
    assert_eq!(context.next_action.extra["cause"], "human_needed");

    let mut story = begin(story.now, successor(&story.run).expect("the next one"));
    assert_eq!((story.status(), story.run.outbox().count()), (Status::WaitingForHuman, 0));
    assert_eq!(story.question(h(2)).options, ["LRU", "LFU"]);
    assert_eq!(told(&story.run).next_action.extra["awaits"].as_array().map(Vec::len), Some(1));
    story.input(crate::TeamInput::Note { text: "Keep it small".into(), by: "ada".into() });
    story.person_says(h(2), "LFU");
    let order = story.run.outbox().next().expect("a turn");
    assert_eq!(order.inputs["answer"], "LFU");
    let notes = json!(["Keep it small", "solo asked: Which cache? — LFU"]);
    assert_eq!(order.inputs["human_notes"], notes, "what was left meanwhile is heard too");
    work(&mut story, Some("more"));
    hand_over(&mut story, ChangeCounts::default());
    let next = successor(&story.run).expect("a third one");
    assert_eq!(next.inputs["human_notes"], notes);
    assert_eq!(begin(story.now, next).status(), Status::Running, "it was asked once");
}

#[test]
fn s4_03_the_last_generation_waits_for_the_answer_itself() {
    for plan in [None, Some(plan(1, Usd(5_000_000), 0))] {
        let mut story = begin(Time(0), created(plan));
        asks(&mut story);
        assert_eq!(story.status(), Status::WaitingForHuman);
        assert_eq!(told(&story.run).next_action.kind, NextActionType::ManualReview);
        story.person_says(h(2), "LRU");
        assert_eq!(story.run.outbox().next().expect("a turn").inputs["answer"], "LRU");
    }
}

#[test]
fn s4_03_the_changes_decide_what_comes_next() {
    use NextActionType::{ApplyChanges, ContinueDiscussion, ManualReview, RestartWithNewCode};
    let none = ChangeCounts::default();
    for (changes, action, phase) in [
        (ChangeCounts { waiting: 1, ready: 1, ..none }, ManualReview, TeamPhase::CodeReview),
        (ChangeCounts { ready: 2, ..none }, ApplyChanges, TeamPhase::ApplyChanges),
        (ChangeCounts { applied: 1, own: 1, ..none }, RestartWithNewCode, TeamPhase::Testing),
        (ChangeCounts { failed: 1, ..none }, ContinueDiscussion, TeamPhase::Discussion),
        (ChangeCounts { applied: 1, ..none }, ContinueDiscussion, TeamPhase::Testing),
    ] {
        let mut story = begin(Time(0), created(None));
        work(&mut story, None);
        let over = hand_over(&mut story, changes);
        assert_eq!((over.action, over.phase), (action, phase), "{}", over.reason);
        assert!(!over.reason.is_empty());
    }
}

#[test]
fn s4_01_a_context_of_another_orchestrator_is_gone_on_from_without_loss() {
    let text = include_str!("../../../../../../fixtures/wire/context.json");
    let theirs: OrchestratorContext = serde_json::from_str(text).expect("a context");
    let imported = import(&theirs, Time(5));
    assert_eq!(imported.request, theirs.discussion_summary.topic);
    let lineage = Some(Box::new(imported.lineage));
    let story = begin(
        Time(5),
        RunCreated { request: imported.request, team: Inheritance { lineage }, ..created(None) },
    );
    let ours = told(&story.run);
    assert_eq!(ours.run_number.get(), theirs.run_number.get());
    assert_eq!(ours.current_phase, theirs.current_phase);
    assert_eq!(ours.code_changes, theirs.code_changes);
    assert_eq!(ours.discussion_summary.topic, theirs.discussion_summary.topic);
    assert_eq!(ours.discussion_summary.key_decisions, theirs.discussion_summary.key_decisions);
    assert_eq!(ours.history.len(), theirs.history.len());
    assert_eq!(ours.total_cost.get(), theirs.total_cost.get());
    assert_eq!(ours.human_notes, theirs.human_notes);
    assert_eq!(ours.started_at.time(), theirs.started_at.time());
    for (name, state) in &theirs.agent_states {
        assert_eq!(ours.agent_states[name].times_processed.get(), state.times_processed.get());
    }
}

#[test]
fn s4_05_a_briefing_has_every_section_and_never_more_than_two_kilobytes() {
    let long = |n: usize| format!("{n} {}", "größer ".repeat(200));
    let mut story = begin(Time(0), created(None));
    for n in 0..20 {
        story.input(crate::TeamInput::Note { text: long(n), by: "ada".into() });
    }
    let mut context = told(&story.run);
    context.discussion_summary.topic = long(0);
    context.discussion_summary.key_decisions = (0..40).map(long).collect();
    context.next_action.reason = long(1);
    for n in 0..60 {
        let name = format!("member-{n}");
        context.discussion_summary.consensus_signals.insert(name.clone(), "building".into());
        let state = context.agent_states["solo"].clone();
        context.agent_states.insert(name, state);
    }
    for context in [told(&story.run), context] {
        let text = briefing(&context);
        assert!(text.len() <= BRIEFING, "{} bytes", text.len());
        for section in [
            "BRIEFING FOR GENERATION 1",
            "PREVIOUS RUN",
            "CURRENT PHASE",
            "DISCUSSION TOPIC",
            "KEY DECISIONS",
            "CONSENSUS",
            "NEXT ACTION",
            "Reason:",
            "AGENT STATES",
            "NOTES FROM PEOPLE",
            "TOTAL COST $0.0000",
        ] {
            assert!(text.contains(section), "{section} in {text}");
        }
    }
}

#[test]
fn s4_10_a_plain_run_takes_notes_too() {
    let mut story = Story::new(RELAY);
    story.input(crate::TeamInput::Note { text: " ".into(), by: "ada".into() });
    assert_eq!(story.run.team.lineage, None);
    story.input(crate::TeamInput::Note { text: "Mind the gap".into(), by: "ada".into() });
    assert_eq!(story.run.team.lineage.as_ref().map(|lineage| lineage.notes.len()), Some(1));
}
