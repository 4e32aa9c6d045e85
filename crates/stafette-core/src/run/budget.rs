//! Money, tokens, handoffs and time: set aside before a turn, settled after it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::propose::{Proposal, propose};
use super::{Draft, Run, Status, close};
use crate::handoff::About;
use crate::workflow::{AgentBudget, Budget};
use crate::{
    Event, Handoff, HandoffId, Kind, Millis, Offer, Party, Question, Reason, TurnKey, Usage, Usd,
};

/// What a run may spend, has spent and has set aside.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Purse {
    /// What it may spend.
    pub limit: Budget,
    /// What it has spent.
    pub spent: Usage,
    /// What is set aside for turns that are out.
    pub reserved: Usage,
    /// Handoffs that agents have begun to work on.
    #[serde(default)]
    pub handoffs: u32,
    /// What each agent has spent.
    pub agents: BTreeMap<String, Account>,
    /// What was spent on each day, in UTC.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub days: BTreeMap<String, Day>,
    /// What stood in the way last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<BudgetReached>,
}

/// What an agent has spent.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// Turns that ended.
    pub turns: u32,
    /// What they used together.
    pub spent: Usage,
    /// The most that one used.
    pub most: Usage,
    /// What the next one is expected to use: follows a rise at once and a fall by and by.
    #[serde(default)]
    pub next: Usage,
    /// What is set aside for its turns that are out.
    #[serde(default)]
    pub reserved: Usage,
    /// Handoffs that it has begun to work on.
    #[serde(default)]
    pub handoffs: u32,
    /// How long its turns took together.
    #[serde(default)]
    pub time: Millis,
    /// How often it was allowed as much again.
    #[serde(default)]
    pub raised: u32,
}

/// What was spent on one day.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Day {
    /// Turns that ended.
    pub turns: u32,
    /// What they used together.
    pub spent: Usage,
}

/// The run would spend more than it may.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BudgetReached {
    /// Which part: `money`, `tokens`, `handoffs` or `time`.
    pub part: String,
    /// Whose budget, when it is an agent's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// In a sentence.
    pub why: String,
}

/// The run may spend more.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BudgetRaised {
    /// What it may spend now.
    pub limit: Budget,
    /// Which agent may spend as much again as it might before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// The days that a run remembers: longer than any run by default.
const DAYS: usize = 400;

/// A turn falls back by so much of the difference when one used less than expected.
const FALL: u64 = 4;

impl Account {
    /// A turn ended after so long.
    fn settle(&mut self, used: Usage, took: Millis) {
        self.turns += 1;
        self.spent += used;
        self.most = self.most.max(used);
        self.time = Millis(self.time.0.saturating_add(took.0));
        // A turn that broke before it could say what it used tells nothing about the next one.
        if used != Usage::default() {
            let moved = |next: u64, used: u64| used.max(next - next.saturating_sub(used) / FALL);
            self.next = Usage {
                tokens: moved(self.next.tokens, used.tokens),
                money: Usd(moved(self.next.money.0, used.money.0)),
            };
        }
    }

    /// What stands in the way of `name` spending `more`, for a handoff that is `new` to it.
    fn obstacle(
        &self,
        name: &str,
        own: &AgentBudget,
        more: Usage,
        new: bool,
    ) -> Option<BudgetReached> {
        let times = u64::from(self.raised) + 1;
        let after = self.spent + self.reserved + more;
        let reached = |part: &str, why: String| {
            let why = format!("{name} has had {why} of its own budget");
            Some(BudgetReached { part: part.into(), agent: Some(name.to_owned()), why })
        };
        if let Some(Usd(limit)) = own.money.map(|limit| Usd(limit.0.saturating_mul(times)))
            && (after.money.0 > limit || self.spent.money.0 >= limit)
        {
            return reached("money", format!("{} of the {}", self.spent.money, Usd(limit)));
        }
        if let Some(limit) = own.tokens.map(|limit| limit.saturating_mul(times))
            && (after.tokens > limit || self.spent.tokens >= limit)
        {
            return reached("tokens", format!("{} of the {limit} tokens", self.spent.tokens));
        }
        if let Some(limit) = own.handoffs.map(|limit| u64::from(limit).saturating_mul(times))
            && new
            && u64::from(self.handoffs) >= limit
        {
            return reached("handoffs", format!("the {limit} handoffs"));
        }
        if let Some(limit) = own.time.map(|limit| Millis(limit.0.saturating_mul(times)))
            && self.time >= limit
        {
            return reached("time", format!("the {limit} at work"));
        }
        None
    }
}

impl Purse {
    pub(super) fn new(limit: Budget) -> Self {
        let nothing = Usage::default();
        Purse {
            limit,
            spent: nothing,
            reserved: nothing,
            handoffs: 0,
            agents: BTreeMap::new(),
            days: BTreeMap::new(),
            reached: None,
        }
    }

    /// A turn of `agent` is given out.
    pub(super) fn reserve(&mut self, agent: &Party, reserved: Usage, new: bool) {
        self.reserved += reserved;
        let account = self.agents.entry(agent.to_string()).or_default();
        account.reserved += reserved;
        if new {
            account.handoffs += 1;
            self.handoffs += 1;
        }
    }

    /// A turn of `agent` is not out any more.
    pub(super) fn release(&mut self, agent: &Party, reserved: Usage) {
        let less = |from: &mut Usage| {
            from.tokens = from.tokens.saturating_sub(reserved.tokens);
            from.money = Usd(from.money.0.saturating_sub(reserved.money.0));
        };
        less(&mut self.reserved);
        self.agents.get_mut(agent.as_str()).into_iter().for_each(|a| less(&mut a.reserved));
    }

    /// What was spent is another run's expense.
    pub(super) fn begin_anew(&mut self) {
        self.spent = Usage::default();
        self.handoffs = 0;
        self.days.clear();
        for account in self.agents.values_mut() {
            let Account { most, next, reserved, .. } = *account;
            *account = Account { most, next, reserved, ..Account::default() };
        }
    }

    /// What stands in the way of spending `more`, for a handoff that is `new` to its agent.
    fn obstacle(&self, more: Usage, new: bool) -> Option<BudgetReached> {
        let after = self.spent + self.reserved + more;
        let (limit, spent) = (&self.limit, self.spent);
        let reached =
            |part: &str, why: String| Some(BudgetReached { part: part.into(), agent: None, why });
        if after.money > limit.money || spent.money >= limit.money {
            let why = format!(
                "{} of {} spent, {} needed for the next turn",
                spent.money, limit.money, more.money
            );
            return reached("money", why);
        }
        if after.tokens > limit.tokens || spent.tokens >= limit.tokens {
            let why = format!(
                "{} of {} tokens used, {} needed for the next turn",
                spent.tokens, limit.tokens, more.tokens
            );
            return reached("tokens", why);
        }
        if new && self.handoffs >= limit.handoffs {
            return reached("handoffs", format!("the run has had its {} handoffs", limit.handoffs));
        }
        None
    }
}

/// What the next turn of `handoff` is expected to use: what its agent's turns so far let one
/// expect, else what the workflow says, else a twentieth of the budget, because nothing is for free.
fn expected(run: &Run, handoff: &Handoff) -> Option<Usage> {
    let (name, agent) = run.workflow.agent(&handoff.offer.to)?;
    if let Some(account) = run.purse.agents.get(name.as_str()).filter(|account| account.turns > 0) {
        return Some(account.next);
    }
    if agent.estimate != Usage::default() {
        return Some(agent.estimate);
    }
    let limit = &run.purse.limit;
    Some(Usage { tokens: limit.tokens / 20, money: Usd(limit.money.0 / 20) })
}

/// What stands in the way of the next turn of `handoff`: the run's budget, or its agent's own.
fn obstacle(run: &Run, handoff: &Handoff) -> Option<BudgetReached> {
    let more = expected(run, handoff)?;
    let new = handoff.turn == 0;
    let own = || {
        let (name, agent) = run.workflow.agent(&handoff.offer.to)?;
        let account = run.purse.agents.get(name.as_str()).cloned().unwrap_or_default();
        account.obstacle(name.as_str(), &agent.budget, more, new)
    };
    run.purse.obstacle(more, new).or_else(own)
}

/// Whether the next turn of `handoff` has to wait until a turn that is out has ended and shown
/// what it really used: it may be less than was set aside.
pub(super) fn waits_for_others(run: &Run, handoff: &Handoff) -> bool {
    let others_out = run.open().any(|handoff| handoff.state.turn().is_some());
    others_out && obstacle(run, handoff).is_some()
}

/// What to set aside for the next turn of `id`; nothing when the budget does not allow it, and
/// then a person is asked.
pub(super) fn reserve(draft: &mut Draft, id: HandoffId) -> Option<Usage> {
    if draft.run.open_budget_question().is_some() {
        return None;
    }
    let handoff = draft.run.handoff(id)?;
    let more = expected(&draft.run, handoff)?;
    let Some(reached) = obstacle(&draft.run, handoff) else { return Some(more) };
    if !waits_for_others(&draft.run, handoff) {
        ask(draft, id, reached);
    }
    None
}

fn ask(draft: &mut Draft, id: HandoffId, reached: BudgetReached) {
    let question = Question {
        reason: "budget".into(),
        details: format!("The budget is reached: {}. Raise it or stop?", reached.why),
        options: vec!["raise".into(), "stop".into()],
        blocking: true,
        about: About::Budget,
        ..Question::default()
    };
    draft.record(Event::BudgetReached(reached));
    let offer = Offer {
        detail: question.details.clone(),
        question: Some(question),
        ..Offer::new(Party::Orchestrator, Party::Human, Kind::Delegate, Reason::ResourceExhausted)
    };
    // A question to a person is never refused.
    let _ = propose(draft, Proposal { cause: Some(id), ..Proposal::of(offer) });
}

/// Called when time has passed: a run has only so much of it.
pub(super) fn check_time(draft: &mut Draft) {
    let run = &draft.run;
    if run.status().is_final()
        || run.out_of_time() > draft.now
        || run.open_budget_question().is_some()
    {
        return;
    }
    let Some(oldest) = run.open().next().map(|handoff| handoff.id) else {
        return;
    };
    let why = format!("the run has had its {}", run.purse.limit.time);
    ask(draft, oldest, BudgetReached { part: "time".into(), agent: None, why });
}

pub(super) fn is_budget_question(handoff: &Handoff) -> bool {
    handoff.offer.question.as_ref().is_some_and(|question| question.about == About::Budget)
}

/// `raise` allows as much again, an amount allows that much more, anything else stops.
pub(super) fn answered(draft: &mut Draft, word: &str) {
    let initial = &draft.run.workflow.budget;
    let own = draft.run.purse.reached.as_ref().is_some_and(|reached| reached.agent.is_some());
    let (money, tokens) = match (word, Usd::parse(word)) {
        // The run has enough; it is the agent who may spend as much again.
        ("raise", _) | (_, Ok(_)) if own => (Usd(0), 0),
        ("raise", _) => (initial.money, initial.tokens),
        (_, Ok(money)) => (money, initial.tokens),
        _ => return close::end(draft, Status::Failed, "the budget is reached"),
    };
    grow(draft, money, tokens);
}

pub(super) fn raise(draft: &mut Draft, money: Usd, tokens: u64) {
    grow(draft, money, tokens);
    if let Some(question) = draft.run.open_budget_question() {
        let raised = crate::Response::new(Party::Human, crate::Outcome::Resolved);
        close::answered(draft, question, raised);
    }
}

fn grow(draft: &mut Draft, money: Usd, tokens: u64) {
    let run = &draft.run;
    let now = &run.purse.limit;
    // Whoever allows more of anything allows the time for it, counted from now.
    let elapsed = draft.now.since(run.created_at);
    let time = match run.out_of_time() <= draft.now {
        true => Millis(elapsed.0.saturating_add(run.workflow.budget.time.0)),
        false => now.time,
    };
    let reached = run.purse.reached.as_ref();
    let more = match reached {
        Some(BudgetReached { part, agent: None, .. }) if part == "handoffs" => {
            run.workflow.budget.handoffs
        }
        _ => 0,
    };
    let agent = reached.and_then(|reached| reached.agent.clone());
    let limit = Budget {
        money: Usd(now.money.0.saturating_add(money.0)),
        tokens: now.tokens.saturating_add(tokens),
        handoffs: now.handoffs.saturating_add(more),
        time,
    };
    draft.record(Event::BudgetRaised(BudgetRaised { limit, agent }));
}

/// The turn is over: what was set aside for it is free again, what it used is spent.
pub(super) fn settle(run: &mut Run, turn: TurnKey, used: Usage) {
    let Some(handoff) = run.handoff_mut(turn.handoff) else {
        return;
    };
    let out = handoff.state.turn();
    let reserved = out.map_or(Usage::default(), |turn| turn.reserved);
    let began = out.map(|turn| turn.ordered_at);
    handoff.usage += used;
    let agent = handoff.offer.to.clone();
    let now = run.updated_at;
    let purse = &mut run.purse;
    purse.release(&agent, reserved);
    purse.spent += used;
    let took = began.map_or(Millis(0), |began| now.since(began));
    purse.agents.entry(agent.to_string()).or_default().settle(used, took);
    let day = purse.days.entry(now.day()).or_default();
    day.turns += 1;
    day.spent += used;
    while purse.days.len() > DAYS {
        purse.days.pop_first();
    }
}

impl BudgetReached {
    pub(super) fn apply(&self, run: &mut Run) {
        run.purse.reached = Some(self.clone());
    }
}

impl BudgetRaised {
    pub(super) fn apply(&self, run: &mut Run) {
        run.purse.limit = self.limit.clone();
        run.purse.reached = None;
        if let Some(agent) = &self.agent {
            run.purse.agents.entry(agent.clone()).or_default().raised += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::run::story::{Story, costing, done, h, pass};
    use crate::{Millis, Offer, Status, TurnResult, Usd};

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
    fn b_05_a_turn_that_waits_for_others_to_settle_does_not_make_the_clock_spin() {
        let fan = ONE_AGENT.replace("loops =", "#").replace(
            "agents = { solo.runner = \"scripted\", twin.runner = \"scripted\" }",
            "agents.solo.runner = \"scripted\"
             agents.twin = { runner = \"scripted\", estimate = { money = 0.6 } }",
        );
        let mut story = Story::new(&fan.replace(", { from = \"twin\", to = \"solo\" }", ""));
        let twice =
            vec![pass("twin"), Offer { reason: crate::Reason::ReviewRequest, ..pass("twin") }];
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
}
