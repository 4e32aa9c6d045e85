//! A person is needed: the generation ends, no matter which agent asks, and the next one continues
//! with the answer.

use super::*;
use crate::handoff::About;
use crate::run::story::{ask, pass};
use crate::team::council::Decision;
use crate::team::council::tests::{says, speak};
use crate::team::council::vote::Stance;
use crate::team::phase::tests::{answer, gives, proceeds};
use crate::{FailureKind, HandoffId, TurnOrder};

const NEEDY: &str = r#"
    workflow = { name = "needy", entry = "solo" }
    generations = { }
    [agents.solo]
    runner = "scripted"
    needs = [{ key = "audience", source = "user" }]
"#;

const COUNCIL: &str = r#"
    workflow = { name = "council", entry = "council" }
    agents = { Alex.runner = "scripted", Sam.runner = "scripted", builder.runner = "scripted" }
    limits = { cooldown = 0 }
    [council]
    members = ["Alex", "Sam"]
    quorum = "2 of 2"
    turns_per_agent = 1
    then = "builder"
"#;

const TWO_PHASES: &str = r#"
    workflow = { name = "phases", entry = "scout" }
    agents = { scout.runner = "scripted", author.runner = "scripted" }
    generations = { }
    phases = [
        { phase = "research", agents = ["scout"] },
        { phase = "write", agents = ["author"] },
    ]
    limits = { cooldown = 0, handoffs_per_item = 20 }
"#;

fn relay() -> String {
    format!("{RELAY}\n[generations]\n")
}

/// Returns the first generation of a series, after `happens`.
fn first(workflow: &str, happens: impl FnOnce(&mut Story)) -> Story {
    let mut story = begin(Time(0), created_by(workflow, Some(plan(9, Usd(5_000_000), 0))));
    happens(&mut story);
    story
}

/// Returns the generation after one that ended because a person is needed: it asks, and no agent
/// works.
fn next(mut story: Story) -> (Story, HandoffId) {
    assert_eq!(story.status(), Status::Cancelled, "{}", story.transcript());
    let over = hand_over(&mut story, ChangeCounts::default());
    assert_eq!((over.cause, over.action), (Some(Cause::HumanNeeded), NextActionType::ManualReview));
    let story = begin(story.now, successor(&story.run).expect("the next one"));
    assert_eq!((story.status(), story.run.outbox().count()), (Status::WaitingForHuman, 0));
    let mut asked = story.run.open().filter(|handoff| handoff.offer.to == Party::Human);
    let question = asked.next().expect("a question").id;
    assert_eq!(asked.count(), 0, "one question");
    (story, question)
}

/// Returns the next generation after a person has answered.
fn answered(story: Story, word: &str) -> Story {
    let (mut story, question) = next(story);
    story.person_says(question, word);
    story
}

/// Returns the open turn.
fn out(story: &Story) -> Option<TurnOrder> {
    story.run.outbox().next()
}

/// Every agent hands on until no one may.
fn goes_round(story: &mut Story) {
    while let Some(order) = out(story) {
        let to = match order.agent.as_str() {
            "planner" => "builder",
            "reviewer" => "fixer",
            _ => "reviewer",
        };
        story.hands(order.key.handoff, vec![pass(to)]);
    }
}

/// The only agent hands to an unknown target, again and again.
fn goes_nowhere(story: &mut Story) {
    while out(story).is_some() {
        story.hands(h(1), vec![pass("nobody")]);
    }
}

fn breaks(story: &mut Story) {
    story.breaks(h(1), FailureKind::Fatal);
}

fn disagrees(story: &mut Story) {
    speak(story, |_| says(Stance::Agree, "it is small"));
    speak(story, |_| says(Stance::Disagree, "it loses data"));
}

/// The agent of this part asks for clarification.
fn clarifies(story: &mut Story, id: u32) {
    let mut document = answer(story, h(id), true, "half of it");
    document["decision"] = "CLARIFY".into();
    document["issues"] = json!(["Which cache?"]);
    gives(story, h(id), &document, 30);
}

fn notes(story: &Story) -> Vec<String> {
    let lineage = story.run.team.lineage.as_ref().expect("a lineage");
    lineage.notes.iter().map(|note| note.text.clone()).collect()
}

#[test]
fn s4_03_whoever_needs_a_person_the_generation_ends_and_the_next_one_asks() {
    let knowing = format!("{SOLO}\nknowledge = {{ }}\n");
    let failed = ["retry", "skip", "stop"];
    for (story, reason, options) in [
        (first(NEEDY, |_| {}), "missing_required_input", &[][..]),
        (first(&relay(), goes_round), "loop_limit", &["accept", "stop"]),
        (first(SOLO, breaks), "handoff_failed", &failed),
        (first(SOLO, goes_nowhere), "handoff_failed", &failed),
        (first(COUNCIL, disagrees), "no_consensus", &["accept", "again", "stop"]),
        (first(PHASES, |story| clarifies(story, 1)), "clarify", &[]),
        (first(&knowing, asks), "spec_ambiguity", &["LRU", "LFU"]),
    ] {
        let (story, question) = next(story);
        let question = story.question(question);
        assert_eq!(question.reason, reason);
        assert_eq!(question.options, options, "{reason}");
        assert!(
            matches!(question.about, About::Team(crate::TeamAbout::CheckIn(_))),
            "{question:?}"
        );
    }
}

#[test]
fn s4_03_what_only_this_run_has_is_answered_in_it() {
    let bare = |story: &mut Story| {
        story.ends(h(1), TurnResult { bare: true, offers: vec![pass("solo")], ..done() });
    };
    let approval = |story: &mut Story| {
        let offer = Offer { outputs: fields(json!({ "plan": 1 })), ..ask("human") };
        story.hands(h(1), vec![offer]);
    };
    let knowing = format!("{SOLO}\nknowledge = {{ }}\n");
    // The work was passed on, and its taker lacks an input.
    let needy = relay().replace(
        "[agents.builder]\n",
        "[agents.builder]\nneeds = [{ key = \"audience\", source = \"user\" }]\n",
    );
    let passes = |story: &mut Story| {
        story.hands(h(1), vec![pass("builder")]);
    };
    for story in [first(SOLO, bare), first(&knowing, approval), first(&needy, passes)] {
        assert_eq!(story.status(), Status::WaitingForHuman, "{}", story.transcript());
    }
}

#[test]
fn s4_03_what_a_person_would_have_decided_in_it_is_decided_in_the_next_one() {
    let failed = || first(SOLO, breaks);
    assert_eq!(answered(failed(), "stop").status(), Status::Failed);
    let skipped = answered(failed(), "Skip");
    assert_eq!(skipped.status(), Status::Succeeded);
    assert!(!skipped.transcript().contains("turn"), "nothing is done again");
    let again = answered(failed(), "retry");
    assert_eq!((again.status(), notes(&again).len()), (Status::Running, 0));
    let advised = answered(failed(), "Use the other disk");
    let order = out(&advised).expect("a turn");
    assert_eq!(order.inputs["answer"], "Use the other disk");
    assert!(notes(&advised)[0].ends_with("— Use the other disk"), "{:?}", notes(&advised));

    assert_eq!(answered(first(&relay(), goes_round), "accept").status(), Status::Succeeded);
    // Another handoff waits for the failed one: continuing without it is that handoff's decision.
    let waits = |story: &mut Story| {
        story.hands(h(1), vec![ask("builder")]).breaks(h(2), FailureKind::Fatal);
    };
    let told = answered(first(&relay(), waits), "skip");
    assert_eq!(out(&told).expect("a turn").agent.as_str(), "planner");
    assert!(notes(&told)[0].ends_with("— skip"), "{:?}", notes(&told));
}

#[test]
fn s4_03_a_person_takes_what_the_council_of_the_last_generation_had() {
    let story = answered(first(COUNCIL, disagrees), "accept");
    let council = story.run.team.council.as_ref().expect("a council");
    let verdict = council.verdict.as_ref().expect("a verdict");
    assert_eq!(verdict.decision, Decision::Accepted);
    assert_eq!(verdict.why, "accepted by a person: 1 of 2 agree, 2 are needed");
    assert_eq!(verdict.key_decisions, ["because it is small"]);
    let order = out(&story).expect("a turn");
    assert_eq!(order.agent.as_str(), "builder", "what was agreed on is carried out");
    assert_eq!(order.inputs["dissent"][0]["reason"], "it loses data");
    let again = answered(first(COUNCIL, disagrees), "again");
    assert_eq!(out(&again).expect("a turn").agent.as_str(), "Alex");
}

#[test]
fn s2_07_what_a_person_gave_one_generation_those_after_it_have() {
    let mut story = answered(first(NEEDY, |_| {}), "founders");
    assert_eq!(out(&story).expect("a turn").inputs["audience"], "founders");
    work(&mut story, Some("more"));
    hand_over(&mut story, ChangeCounts::default());
    let third = begin(story.now, successor(&story.run).expect("a third one"));
    assert_eq!(out(&third).expect("a turn").inputs["audience"], "founders");

    // Requested once and not given: the run continues without it.
    let (mut story, question) = next(first(NEEDY, |_| {}));
    let (values, by) = (fields(json!({ "else": "x" })), "ada".into());
    story.input(Input::Answer { handoff: question, values, text: String::new(), by });
    assert_eq!(story.status(), Status::Running);
}

#[test]
fn s4_02_the_next_one_goes_on_in_the_phase_that_the_last_one_ended_in() {
    let story = first(TWO_PHASES, |story| {
        proceeds(story, 1, "there is none yet");
        clarifies(story, 2);
    });
    let mut story = answered(story, "LFU");
    let order = out(&story).expect("a turn");
    assert_eq!(
        (order.agent.as_str(), order.offer.summary.as_str()),
        ("author", "there is none yet")
    );
    assert_eq!(order.inputs["answer"], "LFU");
    proceeds(&mut story, 1, "written");
    assert_eq!(story.status(), Status::Succeeded);
    let phases = story.run.team.phases.as_ref().expect("phases");
    let rounds: Vec<u32> = phases.hops.iter().map(|hop| hop.rounds).collect();
    assert_eq!(rounds, [1, 1], "each once");
}

#[test]
fn s4_02_what_others_brought_to_a_phase_is_not_done_again() {
    let story = first(SIDE_BY_SIDE, |story| {
        proceeds(story, 1, "types are right");
        clarifies(story, 2);
    });
    let mut story = answered(story, "LFU");
    let agents: Vec<String> = story.run.outbox().map(|order| order.agent.to_string()).collect();
    assert_eq!(agents, ["lint"]);
    proceeds(&mut story, 1, "nothing to complain about");
    assert_eq!(story.status(), Status::Succeeded);
    let phases = story.run.team.phases.as_ref().expect("phases");
    let said = phases.findings.as_deref();
    assert_eq!(said, Some("types passed: types are right\nlint passed: nothing to complain about"));
}
