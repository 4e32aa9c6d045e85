use crate::run::budget::{Forecast, Grant};
use crate::run::story::{Story, costing, done, h, pass};
use crate::{Millis, Offer, Status, TurnResult, Usage, Usd};

fn spend(story: &mut Story, number: u32, to: &str) {
    let offers: Vec<Offer> = if to.is_empty() { vec![] } else { vec![pass(to)] };
    story.ends(h(number), TurnResult { offers, usage: costing(0.30), ..done() });
}

const ONE_AGENT: &str = r#"
    workflow = { name = "solo", entry = "solo" }
    agents = { solo.runner = "scripted", twin.runner = "scripted" }
    routes = [{ from = "solo", to = "twin" }, { from = "twin", to = "solo" }]
    loops = [{ name = "chat", between = ["solo", "twin"], max_rounds = 99 }]
    limits = { cooldown = 0, handoffs_per_item = 99, handoffs_per_run = 99 }
    budget = { money = "1usd" }
"#;

#[test]
fn b_05_one_dollar_at_thirty_cents_a_turn_is_three_turns() {
    let mut story = Story::new(ONE_AGENT);
    for (number, to) in [(1, "twin"), (2, "solo"), (3, "twin")] {
        spend(&mut story, number, to);
    }
    assert_eq!(story.status(), Status::WaitingForBudget);
    assert_eq!(story.run.purse.spent.money, Usd(900_000));
    assert!(story.transcript().contains("budget reached: $0.90 of $1.00 spent, $0.30 needed"));
    story.person_says(h(5), "raise");
    spend(&mut story, 4, "");
    assert_eq!(story.status(), Status::Succeeded);
    assert_eq!(story.run.purse.spent.money, Usd(1_200_000));
}

#[test]
fn b_05_a_person_may_stop_at_the_budget() {
    let mut story = Story::new(ONE_AGENT);
    for (number, to) in [(1, "twin"), (2, "solo"), (3, "twin")] {
        spend(&mut story, number, to);
    }
    story.person_says(h(5), "stop");
    assert_eq!(story.status(), Status::Failed);
}

#[test]
fn b_05_time_is_a_budget_too() {
    let mut story = Story::relay_with("[budget]\ntime = \"1h\"\n");
    story.accept(h(1));
    for _ in 0..60 {
        story.later(Millis::minutes(1)).heartbeat(h(1));
    }
    assert!(story.transcript().contains("budget reached: the run has had its 1h 00m"));
    assert_eq!(story.run.tally.escalated, 1);
    story.done(h(1));
}

#[test]
fn b_05_when_time_is_up_the_turn_that_is_out_is_the_last() {
    let mut story = Story::new(&ONE_AGENT.replace("1usd\"", "1usd\", time = \"1h\""));
    story.accept(h(1));
    story.now = story.now + Millis::hours(1);
    story.heartbeat(h(1)).later(Millis(0));
    assert_eq!(story.run.outbox().count(), 1, "it may end what it has begun");
    story.hands(h(1), vec![pass("twin")]);
    assert_eq!((story.status(), story.run.outbox().count()), (Status::WaitingForBudget, 0));
}

#[test]
fn b_05_tokens_are_a_budget_too() {
    let mut story = Story::new(&ONE_AGENT.replace("1usd\"", "1usd\", tokens = 1000"));
    let mut spend = |number: u32, to: &str| {
        let usage = Usage::exactly(300, Usd(0));
        story.ends(h(number), TurnResult { offers: vec![pass(to)], usage, ..done() });
    };
    for (number, to) in [(1, "twin"), (2, "solo"), (3, "twin")] {
        spend(number, to);
    }
    assert_eq!((story.status(), story.run.outbox().count()), (Status::WaitingForBudget, 0));
    assert_eq!(story.run.purse.spent.tokens, 900);
}

#[test]
fn b_05_what_a_turn_used_and_nobody_knows_is_counted_as_unknown() {
    let unknown = Usage::unknown();
    let mut story = Story::new(ONE_AGENT);
    spend(&mut story, 1, "twin");
    story.ends(h(2), TurnResult { offers: vec![pass("solo")], usage: unknown, ..done() });
    let spent = story.run.purse.spent;
    assert_eq!(spent.cost_and_unknown(), "≥ $0.30, 1 turn unknown");
    let accounts = &story.run.purse.agents;
    for before in [None, Some(Forecast::Unmetered), Some(Forecast::Known(costing(0.20)))] {
        assert_eq!(accounts["twin"].forecast(before), before, "it has taught nothing");
        assert_eq!(accounts["solo"].forecast(before), Some(Forecast::Known(costing(0.30))));
    }
    story.done(h(3));
    assert_eq!(story.status(), Status::Succeeded, "nothing waits for what it may have cost");
}

#[test]
fn b_05_what_nobody_knows_counts_as_the_estimate_and_the_budget_binds() {
    let guessed = "agents = { solo = { runner = \"scripted\", estimate = { money = 0.6, tokens = 70 } }, \
                   twin.runner = \"scripted\" }";
    let told = "agents = { solo.runner = \"scripted\", twin.runner = \"scripted\" }";
    let mut story = Story::new(&ONE_AGENT.replace(told, guessed));
    let usage = Usage { tokens: 5, ..Usage::unknown() };
    story.ends(h(1), TurnResult { offers: vec![pass("twin")], usage, ..done() });
    let spent = story.run.purse.spent;
    assert_eq!((spent.tokens, spent.cost()), (70, "≈ $0.60".to_owned()));
    story.ends(h(2), TurnResult { offers: vec![pass("solo")], ..done() });
    assert_eq!(story.status(), Status::WaitingForBudget);
}

#[test]
fn b_05_a_turn_that_waits_for_others_to_settle_does_not_make_the_clock_spin() {
    let fan = ONE_AGENT.replace("loops =", "#").replace(
        "agents = { solo.runner = \"scripted\", twin.runner = \"scripted\" }",
        "agents.solo.runner = \"scripted\"
         agents.twin = { runner = \"scripted\", estimate = { money = 0.6 } }",
    );
    let mut story = Story::new(&fan.replace(", { from = \"twin\", to = \"solo\" }", ""));
    let twice = vec![pass("twin"), Offer { reason: crate::Reason::ReviewRequest, ..pass("twin") }];
    story.hands(h(1), twice);
    assert_eq!(story.run.outbox().count(), 1, "only one of them fits the budget");
    let due = story.run.deadline().expect("the turn that is out has one");
    assert!(due > story.now);
    story.ends(h(2), TurnResult { usage: costing(0.1), ..done() });
    assert_eq!(story.run.outbox().count(), 1, "it cost less, so the other one fits now");
}

#[test]
fn b_05_more_time_counts_from_the_moment_it_is_given() {
    let mut story = Story::relay_with("[budget]\ntime = \"1h\"\n");
    story.later(Millis::hours(1));
    let question = story.run.open_budget_question().expect("a question");
    story.now = story.now + Millis::hours(10);
    story.person_says(question, "raise");
    assert_eq!(story.run.open_budget_question(), None);
    assert_eq!(story.run.out_of_time(), story.now + Millis::hours(1));
}

/// Five members whose turns cost thirty cents each, before any turn has run.
fn five_unknown() -> Story {
    five(None)
}

/// Five members with that forecast, each with work.
fn five(forecast: Option<Forecast>) -> Story {
    let names = ["a", "b", "c", "d", "e"];
    let agents: Vec<String> =
        names.iter().map(|name| format!("{name}.runner = \"scripted\"")).collect();
    let routes: Vec<String> =
        names.iter().map(|name| format!("{{ from = \"lead\", to = \"{name}\" }}")).collect();
    let workflow = format!(
        "workflow = {{ name = \"five\", entry = \"lead\" }}
         agents = {{ lead.runner = \"scripted\", {} }}
         routes = [{}]
         limits = {{ cooldown = 0, handoffs_per_item = 99 }}
         budget = {{ money = \"1usd\" }}",
        agents.join(", "),
        routes.join(", "),
    );
    let mut story = Story::new(&workflow);
    let forecasts = story.run.purse.forecasts.as_mut().expect("forecasts");
    forecasts.retain(|name, _| name == "lead");
    forecasts.extend(names.iter().filter_map(|name| Some(((*name).to_owned(), forecast?))));
    story.restart();
    story.hands(h(1), names.iter().map(|name| pass(name)).collect());
    story
}

#[test]
fn b_05_five_at_the_same_time_pass_a_budget_by_one_turn_at_most() {
    let mut story = five_unknown();
    let mut most = 0;
    loop {
        let out: Vec<_> = story.run.turns_out().map(|(key, _)| key.handoff).collect();
        let Some(next) = out.first() else { break };
        most = most.max(out.len());
        story.ends(*next, TurnResult { usage: costing(0.30), ..done() });
    }
    assert_eq!(most, 1, "nothing begins beside a turn of which nobody knows what it costs");
    assert_eq!(story.status(), Status::WaitingForBudget);
    assert!(story.run.purse.spent.money <= Usd(1_300_000), "{:?}", story.run.purse.spent);
}

#[test]
fn b_05_a_turn_that_lost_its_daemon_after_its_report_does_not_make_its_agent_free() {
    let mut story = five_unknown();
    story.accept(h(2));
    let turn = story.key(h(2));
    let response = Some(done().response);
    let told = crate::run::tell::TurnReport { response, ..Default::default() };
    story.input(crate::Input::Tell { turn, told: Box::new(told) });
    let reported = story.run.reported(turn).expect("its report");
    assert_eq!(reported.usage, Usage::unknown(), "nobody has seen what it used");
    story.input(crate::Input::Finish { turn, result: Box::new(reported) });
    for reason in ["one", "two", "three"] {
        asks_for_more(&mut story, reason);
    }
    assert_eq!(story.run.outbox().count(), 1, "its cost is as unknown as before");
    loop {
        let next = story.run.turns_out().next().map(|(key, _)| key);
        let Some(key) = next else { break };
        story.ends(key.handoff, TurnResult { usage: costing(0.30), ..done() });
    }
    assert!(story.run.purse.spent.money <= Usd(1_300_000), "{:?}", story.run.purse.spent);
}

/// A person has more work for the first member.
fn asks_for_more(story: &mut Story, reason: &str) {
    let reason = crate::Reason::Other(reason.into());
    let offer = Offer { from: crate::Party::Human, reason, ..pass("a") };
    story.input(crate::Input::Propose { offer: Box::new(offer) });
}

#[test]
fn b_05_a_turn_that_cost_nothing_is_known() {
    let mut story = five_unknown();
    story.done(h(2));
    assert_eq!(story.run.purse.agents["a"].known(), Some(Usage::default()));
    let unknown = TurnResult { usage: Usage::unknown(), ..done() };
    story.ends(h(3), unknown);
    assert_eq!(story.run.purse.agents["b"].known(), None);
}

#[test]
fn b_05_an_agent_whose_cost_nobody_can_see_never_waits_for_money() {
    let mut story = five(Some(Forecast::Unmetered));
    assert_eq!(story.run.outbox().count(), 5, "handoffs and time bound them");
    story.ends(h(2), TurnResult { usage: Usage::unknown(), ..done() });
    asks_for_more(&mut story, "more");
    assert_eq!(story.run.outbox().count(), 5, "a turn that told nothing changes nothing");
    assert_eq!(story.run.purse.learned()["a"], Forecast::Unmetered, "nor in the next run");
}

#[test]
fn b_05_more_money_does_not_let_a_second_turn_of_unknown_cost_begin() {
    let mut story = five_unknown();
    story.input(crate::Input::RaiseBudget(Grant { money: Usd(1_000_000), ..Grant::default() }));
    assert_eq!(story.run.outbox().count(), 1, "either of them could use all of it");
    story.ends(h(2), TurnResult { usage: costing(0.30), ..done() });
    assert_eq!(story.run.outbox().count(), 1, "the next one has its turn");
}

#[test]
fn b_05_the_wait_for_an_unknown_cost_is_explained_and_what_is_known_goes_on_beside() {
    let story = five_unknown();
    let waiting = story.run.handoff(h(3)).expect("the second member");
    let why = super::waits_because(&story.run, waiting).expect("it waits");
    assert!(why.contains("what a turn of b costs"), "{why}");
    assert_eq!(super::waits_because(&story.run, story.run.handoff(h(2)).expect("it")), None);

    let learned = story.run.purse.learned();
    assert_eq!(learned.len(), 1, "only the lead has finished a turn");
}

#[test]
fn b_05_a_turn_of_unknown_cost_that_dies_does_not_take_the_whole_budget_along() {
    let mut story = five_unknown();
    story.later(Millis::seconds(30));
    assert!(story.transcript().contains("not accepted in time"));
    assert_eq!(story.run.purse.spent.money, Usd(0));
}

fn with_own(budget: &str) -> Story {
    let own = format!("agents.twin = {{ runner = \"scripted\", budget = {budget} }}");
    Story::new(&ONE_AGENT.replace(
        "agents = { solo.runner = \"scripted\", twin.runner = \"scripted\" }",
        &format!("agents.solo.runner = \"scripted\"\n{own}"),
    ))
}

#[test]
fn s4_08_an_agent_has_a_budget_of_its_own() {
    for (budget, why) in [
        ("{ money = 0.5 }", "twin has had $0.30 of the $0.50 of its own budget"),
        ("{ handoffs = 1 }", "twin has had the 1 handoffs of its own budget"),
    ] {
        let mut story = with_own(budget);
        for (number, to) in [(1, "twin"), (2, "solo")] {
            spend(&mut story, number, to);
        }
        story.ends(h(3), TurnResult { offers: vec![pass("twin")], ..done() });
        assert_eq!(story.status(), Status::WaitingForBudget);
        assert!(story.transcript().contains(why), "{}", story.transcript());
        story.person_says(h(5), "raise");
        assert_eq!(story.run.outbox().count(), 1, "it may do as much again: {budget}");
    }
    let mut story = with_own("{ time = \"10m\" }");
    spend(&mut story, 1, "twin");
    story.accept(h(2)).later(Millis::minutes(1)).heartbeat(h(2));
    story.now = story.now + Millis::minutes(9);
    story.ends(h(2), TurnResult { offers: vec![pass("solo")], ..done() });
    story.ends(h(3), TurnResult { offers: vec![pass("twin")], ..done() });
    assert!(story.transcript().contains("twin has had the 10m 00s at work"));
}

#[test]
fn b_05_handoffs_are_a_budget_too() {
    let mut story = Story::new(&ONE_AGENT.replace("1usd\"", "1usd\", handoffs = 2"));
    story.hands(h(1), vec![pass("twin")]).hands(h(2), vec![pass("solo")]);
    assert_eq!(story.status(), Status::WaitingForBudget);
    assert!(story.transcript().contains("budget reached: the run has had its 2 handoffs"));
    story.person_says(h(4), "raise").done(h(3));
    assert_eq!(story.status(), Status::Succeeded);
}

#[test]
fn b_05_the_estimate_follows_a_rise_at_once_and_a_fall_by_and_by() {
    let mut account = super::Account::default();
    let mut next = |cents: u64| {
        account.settle(costing(cents as f64 / 100.0), Millis(0));
        account.next.money.0 / 10_000
    };
    assert_eq!([next(10), next(40), next(20), next(20)], [10, 40, 35, 31]);
    assert_eq!(next(0), 31, "a turn that reported nothing tells nothing");
}

#[test]
fn s4_08_what_was_spent_is_known_by_day() {
    let mut story = Story::new(ONE_AGENT);
    spend(&mut story, 1, "twin");
    story.now = story.now + Millis::hours(20);
    story.accept(h(2));
    story.now = story.now + Millis::hours(1);
    story.heartbeat(h(2));
    let days: Vec<_> = story.run.purse.days.keys().cloned().collect();
    assert_eq!(days, ["1970-01-01"]);
    assert_eq!(story.run.purse.days["1970-01-01"].spent.money, Usd(300_000));
}

/// The run of one agent that is a program of somebody's own.
fn own_program(more: &str) -> Story {
    let program = format!("agents.solo = {{ runner = \"exec\", command = [\"./solo\"]{more} }}");
    let text = format!("workflow = {{ name = \"solo\", entry = \"solo\" }}\n{program}\n");
    Story::new(&format!("{text}budget = {{ money = \"1usd\", tokens = 100 }}\n"))
}

#[test]
fn b_05_a_turn_that_is_cancelled_in_its_midst_has_cost_what_nobody_knows() {
    let cancel = || crate::Input::Cancel { by: "ada".into(), why: String::new() };
    let mut story = own_program("");
    story.accept(h(1)).input(cancel());
    let spent = story.run.purse.spent;
    assert_eq!((spent.cost(), story.run.purse.reserved), ("unknown".to_owned(), Usage::default()));
    assert_eq!(story.run.purse.agents["solo"].turns, 1);

    let mut story = own_program(", estimate = { money = 0.2 }");
    story.accept(h(1)).input(cancel());
    assert_eq!(story.run.purse.spent.cost(), "≈ $0.20");

    let mut story = own_program(", estimate = { money = 0.2 }");
    story.input(cancel());
    assert_eq!(story.run.purse.spent.cost(), "$0.00", "nobody had begun");
}

#[test]
fn b_05_a_turn_that_nobody_took_costs_nothing() {
    let mut story = own_program(", estimate = { money = 0.2 }");
    story.breaks(h(1), crate::FailureKind::Recoverable);
    assert_eq!(story.run.purse.spent.cost(), "$0.00");
    story.until_due().accept(h(1)).breaks(h(1), crate::FailureKind::Recoverable);
    assert_eq!(story.run.purse.spent.cost(), "$0.00", "its failure said that it used nothing");
}

#[test]
fn b_05_a_run_that_ends_above_its_budget_says_so() {
    let mut story = own_program("");
    story.ends(h(1), TurnResult { usage: costing(40.0), ..done() });
    assert_eq!(story.status(), Status::Succeeded);
    assert!(story.transcript().contains("budget reached: $40.00 of $1.00 are spent"));
}

/// Returns what a person reads who is asked about the budget.
fn asked(story: &Story) -> String {
    let question = story.run.open_budget_question().expect("a question about the budget");
    story.question(question).details
}

#[test]
fn b_05_a_raise_is_of_the_limits_that_bind_and_is_enough() {
    for (budget, by) in [
        ("money = 0", "the run by $5.00"),
        ("money = 0.1", "the run by $0.10"),
        ("tokens = 0", "the run by 2000000 tokens"),
        ("money = 0, tokens = 0", "the run by $5.00 and 2000000 tokens"),
        ("handoffs = 0", "the run by 1 handoff"),
    ] {
        let text = ONE_AGENT.replace("money = \"1usd\"", budget);
        let cheap = "agents = { solo = { runner = \"scripted\", estimate = { money = 0.2, tokens = 9 } }, \
                     twin.runner = \"scripted\" }";
        let told = "agents = { solo.runner = \"scripted\", twin.runner = \"scripted\" }";
        let mut story = Story::new(&text.replace(told, cheap));
        assert!(asked(&story).contains(&format!("({by})")), "{budget}: {}", asked(&story));
        let before = story.run.purse.limit.clone();
        story.person_says(h(2), "raise");
        assert_eq!(story.run.outbox().count(), 1, "{budget}: once is enough");
        let after = &story.run.purse.limit;
        let grown = |part: &str, grown: bool| assert_eq!(grown, budget.contains(part), "{budget}");
        grown("money", after.money > before.money);
        grown("tokens", after.tokens > before.tokens);
        grown("handoffs", after.handoffs > before.handoffs);
    }
}

#[test]
fn b_05_a_raise_is_enough_for_a_turn_that_costs_more_than_the_budget() {
    let dear = "agents = { solo = { runner = \"scripted\", estimate = { money = 3 } }, \
                twin.runner = \"scripted\" }";
    let told = "agents = { solo.runner = \"scripted\", twin.runner = \"scripted\" }";
    let mut story = Story::new(&ONE_AGENT.replace(told, dear));
    assert!(asked(&story).contains("(the run by $2.00)"), "{}", asked(&story));
    story.person_says(h(2), "raise");
    assert_eq!((story.run.outbox().count(), story.run.purse.limit.money), (1, Usd(3_000_000)));
}

#[test]
fn b_05_an_amount_is_of_the_limit_that_binds_or_is_refused() {
    let mut story = Story::new(&ONE_AGENT.replace("1usd\"", "1usd\", handoffs = 1"));
    story.hands(h(1), vec![pass("twin")]);
    let answer = |text: &str| crate::Input::Answer {
        handoff: h(3),
        values: crate::Fields::new(),
        text: text.into(),
        by: "ada".into(),
    };
    for text in ["1usd", "5", "100tokens", "0handoffs", "maybe"] {
        let crate::Reply::Unfit { complaints } = story.reply(answer(text)) else {
            panic!("{text} was taken")
        };
        assert!(complaints[0].contains("`10handoffs`"), "{complaints:?}");
    }
    let before = story.run.purse.limit.clone();
    assert_eq!(story.reply(answer("3 handoffs")), crate::Reply::Answered);
    let after = story.run.purse.limit.clone();
    assert_eq!((after.handoffs, after.money), (before.handoffs + 3, before.money));
    assert_eq!(story.run.outbox().count(), 1);
}

#[test]
fn s4_08_an_agent_with_nothing_of_its_own_may_be_given_something() {
    for budget in ["{ money = 0 }", "{ tokens = 0 }", "{ handoffs = 0 }", "{ time = 0 }"] {
        let mut story = with_own(budget);
        spend(&mut story, 1, "twin");
        assert!(asked(&story).contains("(twin by "), "{budget}: {}", asked(&story));
        let before = story.run.purse.limit.clone();
        story.person_says(h(3), "raise");
        assert_eq!(story.run.outbox().count(), 1, "{budget}: once is enough");
        assert_eq!(story.run.purse.limit, before, "the run has enough");
    }
}
