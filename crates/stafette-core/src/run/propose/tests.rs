use super::*;
use crate::run::story::{RELAY, Story, ask, fields, h, pass};
use crate::{Event, Millis, Reason, Status};
use serde_json::json;

fn refusals(story: &Story) -> Vec<String> {
    story
        .log
        .iter()
        .filter_map(|recorded| match &recorded.event {
            Event::HandoffRefused(e) => Some(e.refusal.to_string()),
            _ => None,
        })
        .collect()
}

/// Planner → builder → reviewer, each with a route, nothing else set: the contract's limits.
const BARE: &str = r#"
    workflow = { name = "bare", entry = "a" }
    agents = { a.runner = "scripted", b.runner = "scripted", c.runner = "scripted" }
    routes = [
        { from = "a", to = "b" }, { from = "b", to = "a" }, { from = "b", to = "c" },
        { from = "c", to = "a" }, { from = "a", to = "c" },
    ]
    limits = { cooldown = 0 }
"#;

#[test]
fn s2_02_only_listed_routes_are_open_and_denied_ones_say_why() {
    let mut story = Story::new(RELAY);
    story.hands(h(1), vec![pass("reviewer")]);
    story.hands(h(1), vec![pass("builder")]).hands(h(3), vec![pass("reviewer")]);
    story.hands(h(4), vec![pass("fixer")]).hands(h(5), vec![pass("planner")]);
    insta::assert_snapshot!(refusals(&story).join("\n"), @r"
    Route not allowed: no route planner → reviewer; possible: builder, orchestrator, human
    Circular handoff detected: planner → builder → reviewer → fixer → planner and no loop declares it
    ");
    // Without the cycle, the deny list applies: its reason beats the plain refusal.
    let mut story = Story::relay_with(
        "[[deny]]\nfrom = \"planner\"\nto = \"fixer\"\nwhy = \"nothing is built yet\"\n",
    );
    story.hands(h(1), vec![pass("fixer")]);
    assert_eq!(
        refusals(&story),
        ["Route not allowed: planner → fixer is denied: nothing is built yet"]
    );
}

#[test]
fn s2_02_every_agent_may_turn_to_a_person_and_to_the_orchestrator() {
    for target in ["human", "orchestrator"] {
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![ask(target)]);
        assert_eq!(refusals(&story), Vec::<String>::new());
        assert_eq!(story.status(), Status::WaitingForHuman);
    }
}

#[test]
fn s2_03_the_fourth_handoff_of_an_item_is_refused_by_the_contracts_default() {
    let mut story = Story::new(BARE);
    let for_item = |to: &str, item: &str| Offer { item: Some(item.into()), ..pass(to) };
    story.hands(h(1), vec![for_item("b", "x"), for_item("c", "x")]);
    story.hands(h(2), vec![for_item("c", "x")]);
    story.hands(h(4), vec![]);
    story.hands(h(3), vec![for_item("a", "x")]);
    assert_eq!(
        refusals(&story),
        ["Handoff limit exceeded: `x` was handed over 3 times, which is its limit"]
    );
}

#[test]
fn s2_03_the_eleventh_handoff_of_a_run_is_refused_by_the_contracts_default() {
    let mut story = Story::new(BARE);
    let offers: Vec<Offer> = (0..11)
        .map(|n| Offer {
            item: Some(format!("item {n}")),
            reason: crate::Reason::Other(format!("reason {n}")),
            ..pass("b")
        })
        .collect();
    story.hands(h(1), offers);
    assert_eq!(
        refusals(&story),
        ["Handoff limit exceeded: the run has had 10 handoffs, which is its limit"]
    );
}

#[test]
fn s2_03_the_same_path_cools_down_for_five_seconds() {
    let mut story = Story::new(&BARE.replace("limits = { cooldown = 0 }", ""));
    let again = Offer { reason: crate::Reason::ReviewRequest, ..pass("b") };
    story.hands(h(1), vec![pass("b"), again]);
    assert!(story.run.handoff(h(2)).is_some_and(|h| h.state.turn().is_some()));
    assert!(story.run.handoff(h(3)).is_some_and(|h| h.state.turn().is_none()));
    story.done(h(2));
    assert_eq!(story.status(), Status::WaitingForCooldown);
    story.later(Millis(4_999));
    assert!(story.run.handoff(h(3)).is_some_and(|h| h.state.turn().is_none()));
    story.later(Millis(1));
    assert!(story.run.handoff(h(3)).is_some_and(|h| h.state.turn().is_some()));
}

#[test]
fn s2_04_refusals_come_back_as_failed_responses_from_the_orchestrator() {
    let mut story = Story::new(RELAY);
    story.hands(h(1), vec![pass("nobody")]);
    let Some(Event::HandoffRefused(refused)) =
        story.log.iter().map(|r| &r.event).find(|e| e.name() == "handoff_refused")
    else {
        panic!("nothing was refused");
    };
    let response = refused.refusal.response();
    assert_eq!(response.by, Party::Orchestrator);
    assert_eq!(response.outcome, crate::Outcome::Failed);
    assert_eq!(response.failure.as_deref(), Some("Unknown target"));
    // The planner receives the refusal and may try again.
    let order = story.run.outbox().next().expect("the planner's next turn");
    assert_eq!(order.key, story.key(h(1)));
    assert_eq!(order.answers[0].failure.as_deref(), Some("Unknown target"));
}

#[test]
fn s2_04_limits_come_before_circularity_and_circularity_before_the_route() {
    // This one breaks every rule: the limit is reported first.
    let mut story = Story::relay_with("").clone_with_limits(1, 20);
    story.hands(h(1), vec![pass("builder")]);
    story.hands(h(2), vec![pass("planner")]);
    assert!(refusals(&story)[0].starts_with("Handoff limit exceeded"));
    let mut story = Story::new(RELAY);
    story.hands(h(1), vec![pass("builder")]);
    story.hands(h(2), vec![pass("planner")]);
    assert!(refusals(&story)[0].starts_with("Circular handoff detected"));
}

#[test]
fn s2_05_the_contracts_window_fires_on_the_third_try_of_one_path() {
    let mut story = Story::new(BARE);
    story.hands(h(1), vec![ask("b")]).done(h(2));
    story.hands(h(1), vec![ask("b")]).done(h(3));
    story.hands(h(1), vec![ask("b")]);
    assert_eq!(
        refusals(&story),
        ["Circular handoff detected: a → b was just tried twice for the same reason"]
    );
    assert_eq!(story.run.tally.circular, 1);
}

#[test]
fn s2_05_work_never_comes_back_to_someone_who_had_it() {
    let mut story = Story::new(BARE);
    story.hands(h(1), vec![pass("b")]).hands(h(2), vec![pass("a")]);
    let mut longer = Story::new(BARE);
    longer.hands(h(1), vec![pass("b")]).hands(h(2), vec![pass("c")]).hands(h(3), vec![pass("a")]);
    insta::assert_snapshot!([refusals(&story), refusals(&longer)].concat().join("\n"), @r"
    Circular handoff detected: a → b → a and no loop declares it
    Circular handoff detected: a → b → c → a and no loop declares it
    ");
}

#[test]
fn s2_05_a_declared_loop_runs_up_to_its_limit_and_then_a_person_decides() {
    let mut story = Story::new(RELAY);
    story.hands(h(1), vec![pass("builder")]).hands(h(2), vec![pass("reviewer")]);
    story.hands(h(3), vec![pass("fixer")]).hands(h(4), vec![pass("reviewer")]);
    story.hands(h(5), vec![pass("fixer")]).hands(h(6), vec![pass("reviewer")]);
    assert_eq!(story.run.tally.rounds, 3);
    story.hands(h(7), vec![pass("fixer")]);
    assert_eq!(refusals(&story), ["Loop limit exceeded: loop `review` has had its 3 rounds"]);
    assert_eq!(story.question(h(9)).options, ["accept", "stop"]);
    story.person_says(h(9), "accept");
    assert_eq!(story.status(), Status::Succeeded);
}

#[test]
fn s2_05_a_loop_is_bounded_for_every_member_and_for_delegations_too() {
    let three = BARE.replace(
        "limits = { cooldown = 0 }",
        "loops = [{ name = \"talk\", between = [\"a\", \"b\", \"c\"], max_rounds = 2 }]
         limits = { cooldown = 0, handoffs_per_item = 99, handoffs_per_run = 99 }",
    );
    let three = three.replace("{ from = \"c\", to = \"a\" }", "{ from = \"c\", to = \"b\" }");
    // b and c never come back to a, who was first.
    let mut story = Story::new(&three);
    story.hands(h(1), vec![pass("b")]).hands(h(2), vec![pass("c")]);
    story.hands(h(3), vec![pass("b")]).hands(h(4), vec![pass("c")]).hands(h(5), vec![pass("b")]);
    assert_eq!(refusals(&story), ["Loop limit exceeded: loop `talk` has had its 2 rounds"]);
    // a asks b again and again instead of handing over.
    let mut story = Story::new(&three);
    story.hands(h(1), vec![ask("b")]).done(h(2)).hands(h(1), vec![ask("b")]);
    assert_eq!(refusals(&story), ["Loop limit exceeded: loop `talk` has had its 2 rounds"]);
}

#[test]
fn s2_05_a_way_round_a_loop_is_not_forgotten_outside_of_it() {
    let one = BARE.replace("{ from = \"c\", to = \"a\" }", "{ from = \"c\", to = \"b\" }").replace(
        "limits = { cooldown = 0 }",
        "loops = [{ name = \"one\", between = [\"a\", \"b\"], max_rounds = 9 }]
             limits = { cooldown = 0, handoffs_per_item = 99, handoffs_per_run = 99 }",
    );
    let mut story = Story::new(&one);
    for (at, to) in (1..).zip(["b", "a", "c", "b"]) {
        story.hands(h(at), vec![pass(to)]);
    }
    let refused = ["Circular handoff detected: b → a → c → b and no loop declares it"];
    assert_eq!(refusals(&story), refused);
    // Nor is it when the last step is in another loop.
    let other = "between = [\"a\", \"b\"], max_rounds = 9 },
                 { name = \"two\", between = [\"b\", \"c\"], max_rounds = 9 }";
    let two = one.replace("between = [\"a\", \"b\"], max_rounds = 9 }", other);
    let mut story = Story::new(&two);
    for (at, to) in (1..).zip(["b", "a", "c", "b"]) {
        story.hands(h(at), vec![pass(to)]);
    }
    assert_eq!(refusals(&story), refused);
}

#[test]
fn s2_05_two_loops_that_share_an_agent_do_not_make_an_endless_one() {
    let two = BARE.replace("{ from = \"c\", to = \"a\" }", "{ from = \"c\", to = \"b\" }").replace(
        "limits = { cooldown = 0 }",
        "loops = [
                { name = \"one\", between = [\"a\", \"b\"], max_rounds = 2 },
                { name = \"two\", between = [\"b\", \"c\"], max_rounds = 2 },
             ]
             limits = { cooldown = 0, handoffs_per_item = 99, handoffs_per_run = 99 }",
    );
    let mut story = Story::new(&two);
    for (at, to) in (1..).zip(["b", "c", "b", "a", "b"]) {
        story.hands(h(at), vec![pass(to)]);
    }
    assert_eq!(refusals(&story), ["Loop limit exceeded: loop `one` has had its 2 rounds"]);
    assert!(story.run.open().all(|h| h.trail.held_by.len() <= 3), "and the trail stays short");
}

#[test]
fn b_03_a_round_that_changes_nothing_is_parked_with_one_question() {
    let look = |to: &str, print: &str| crate::TurnResult {
        offers: vec![pass(to)],
        fingerprint: Some(print.into()),
        ..crate::run::story::done()
    };
    let mut story = Story::new(RELAY);
    story.hands(h(1), vec![pass("builder")]).hands(h(2), vec![pass("reviewer")]);
    story.ends(h(3), look("fixer", "tree 1")).ends(h(4), look("reviewer", "tree 1"));
    story.ends(h(5), look("fixer", "tree 1"));
    assert_eq!(refusals(&story), ["No progress: round 2 of loop `review` changed nothing"]);
    assert_eq!(story.status(), Status::WaitingForHuman);
    let asked = story.run.open().filter(|h| h.offer.to == Party::Human).count();
    assert_eq!(asked, 1);
    // Advice lets the loop begin again, and the agent receives it.
    story.person_says(h(7), "look at the lock file");
    let order = story.run.outbox().next().expect("a turn");
    assert_eq!(order.inputs["answer"], "look at the lock file");
    story.ends(h(5), look("fixer", "tree 1"));
    assert_eq!(story.state(h(8)), "pending");
}

#[test]
fn s1_06_an_edge_lists_the_evidence_that_is_missing() {
    let mut story = Story::new(
        &RELAY.replace("to = \"builder\"", "to = \"builder\"\nrequires = [\"spec\", \"score\"]"),
    );
    story.hands(h(1), vec![Offer { outputs: fields(json!({"score": 1})), ..pass("builder") }]);
    assert_eq!(refusals(&story), ["Missing evidence: planner → builder requires spec"]);
    let outputs = fields(json!({"score": 1, "spec": "specs/auth.md"}));
    story.hands(h(1), vec![Offer { outputs, ..pass("builder") }]);
    assert_eq!(story.state(h(3)), "pending");
    let given = story.run.handoff(h(3)).and_then(|h| h.inputs.get("spec"));
    assert_eq!(given, Some(&json!("specs/auth.md")));
}

#[test]
fn a_handoff_that_carries_too_much_is_refused() {
    let mut story = Story::new(RELAY);
    let outputs = fields(json!({ "blob": "x".repeat(MAX_PAYLOAD + 1) }));
    story.hands(h(1), vec![Offer { outputs, ..pass("builder") }]);
    let options = vec!["o".repeat(MAX_PAYLOAD / 2); 2];
    let question = crate::Question { options, details: "?".into(), ..crate::Question::default() };
    story.hands(h(1), vec![Offer { question: Some(question), ..ask("human") }]);
    let objections = vec!["x".repeat(MAX_PAYLOAD + 1)];
    story.hands(h(1), vec![Offer { objections, ..pass("builder") }]);
    let refusals = refusals(&story);
    assert_eq!(refusals.len(), 3);
    assert!(refusals.iter().all(|refusal| refusal.starts_with("Payload too large")));
}

#[test]
fn the_state_of_a_long_run_stays_small() {
    let mut story = Story::new(BARE).clone_with_limits(100_000, 100_000);
    for n in 0..100 {
        story.now = story.now + Millis(1);
        let reason = crate::Reason::Other(n.to_string());
        let child = story.run.next_handoff;
        story.hands(h(1), vec![Offer { reason, ..ask("b") }]).done(h(child));
    }
    assert!(story.run.handoffs.len() <= crate::run::CLOSED_KEPT + 2);
}

impl Story {
    fn clone_with_limits(self, per_item: u32, per_run: u32) -> Story {
        let mut workflow = (*self.run.workflow).clone();
        workflow.limits.handoffs_per_item = per_item;
        workflow.limits.handoffs_per_run = per_run;
        workflow.limits.turns_per_handoff = per_run;
        Story::new(&toml::to_string(&workflow).expect("TOML"))
    }
}

#[test]
fn s2_03_the_cooldown_counts_from_each_use_of_a_path() {
    let mut story = Story::new(
        r#"
        workflow = { name = "pair", entry = "a" }
        agents = { a.runner = "scripted", b.runner = "scripted" }
        routes = [{ from = "a", to = "b" }]
        limits = { cooldown = "5s" }
        "#,
    );
    let offer = |reason: &str| Offer { reason: Reason::Other(reason.into()), ..pass("b") };
    story.hands(h(1), vec![offer("one"), offer("two"), offer("three")]);
    assert_eq!(story.run.outbox().count(), 1, "all were admitted at the same moment");
    for out in [2, 3] {
        story.later(Millis::seconds(4));
        assert_eq!(story.run.outbox().count(), out - 1);
        story.later(Millis::seconds(1));
        assert_eq!(story.run.outbox().count(), out);
    }
}

#[test]
fn b_19_a_request_from_outside_has_no_special_rules_whatever_reason_it_gives() {
    let reason = Reason::Other(crate::team::phase::REASON.into());
    let offer = Offer { from: Party::Orchestrator, reason, ..pass("builder") };
    let silent = || crate::TurnResult { unanswered: true, ..crate::run::story::done() };
    let mut story = Story::new(RELAY);
    story.input(crate::Input::Propose { offer: Box::new(offer) }).done(h(1));
    story.ends(h(2), silent());
    assert_eq!(story.state(h(2)), "pending", "its agent is asked once more");
    story.ends(h(2), silent());
    assert_eq!(story.status(), Status::WaitingForHuman, "and then a person is");
}
