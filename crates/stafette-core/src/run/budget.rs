//! Money, tokens and time: set aside before a turn, settled after it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::propose::{Proposal, propose};
use super::{Draft, Run, Status, close};
use crate::handoff::About;
use crate::workflow::Budget;
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
    /// What each agent has spent.
    pub agents: BTreeMap<String, Account>,
}

/// What an agent has spent.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// Turns that ended.
    pub turns: u32,
    /// What they used together.
    pub spent: Usage,
    /// The most that one used: the best guess at the next one.
    pub most: Usage,
}

/// The run would spend more than it may.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BudgetReached {
    /// Which part: `money`, `tokens` or `time`.
    pub part: String,
    /// In a sentence.
    pub why: String,
}

/// The run may spend more.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BudgetRaised {
    /// What it may spend now.
    pub limit: Budget,
}

impl Purse {
    pub(super) fn new(limit: Budget) -> Self {
        let nothing = Usage::default();
        Purse { limit, spent: nothing, reserved: nothing, agents: BTreeMap::new() }
    }

    pub(super) fn release(&mut self, reserved: Usage) {
        self.reserved.tokens = self.reserved.tokens.saturating_sub(reserved.tokens);
        self.reserved.money = Usd(self.reserved.money.0.saturating_sub(reserved.money.0));
    }

    /// What stands in the way of spending `more`.
    fn obstacle(&self, more: Usage) -> Option<BudgetReached> {
        let after = self.spent + self.reserved + more;
        let (limit, spent) = (&self.limit, self.spent);
        if after.money > limit.money || spent.money >= limit.money {
            let why = format!(
                "{} of {} spent, {} needed for the next turn",
                spent.money, limit.money, more.money
            );
            return Some(BudgetReached { part: "money".into(), why });
        }
        if after.tokens > limit.tokens || spent.tokens >= limit.tokens {
            let why = format!(
                "{} of {} tokens used, {} needed for the next turn",
                spent.tokens, limit.tokens, more.tokens
            );
            return Some(BudgetReached { part: "tokens".into(), why });
        }
        None
    }
}

/// What the next turn of `handoff` is expected to use: the most that its agent has used so far,
/// else what the workflow says, else a twentieth of the budget, because nothing is for free.
fn expected(run: &Run, handoff: &Handoff) -> Option<Usage> {
    let (name, agent) = run.workflow.agent(&handoff.offer.to)?;
    if let Some(account) = run.purse.agents.get(name.as_str()) {
        return Some(account.most);
    }
    if agent.estimate != Usage::default() {
        return Some(agent.estimate);
    }
    let limit = &run.purse.limit;
    Some(Usage { tokens: limit.tokens / 20, money: Usd(limit.money.0 / 20) })
}

/// Whether the next turn of `handoff` has to wait until a turn that is out has ended and shown
/// what it really used: it may be less than was set aside.
pub(super) fn waits_for_others(run: &Run, handoff: &Handoff) -> bool {
    let others_out = run.open().any(|handoff| handoff.state.turn().is_some());
    let obstacle = expected(run, handoff).and_then(|more| run.purse.obstacle(more));
    others_out && obstacle.is_some()
}

/// What to set aside for the next turn of `id`; nothing when the budget does not allow it, and
/// then a person is asked.
pub(super) fn reserve(draft: &mut Draft, id: HandoffId) -> Option<Usage> {
    if draft.run.open_budget_question().is_some() {
        return None;
    }
    let handoff = draft.run.handoff(id)?;
    let more = expected(&draft.run, handoff)?;
    let Some(reached) = draft.run.purse.obstacle(more) else { return Some(more) };
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
    ask(draft, oldest, BudgetReached { part: "time".into(), why });
}

pub(super) fn is_budget_question(handoff: &Handoff) -> bool {
    handoff.offer.question.as_ref().is_some_and(|question| question.about == About::Budget)
}

/// `raise` allows as much again, an amount allows that much more, anything else stops.
pub(super) fn answered(draft: &mut Draft, word: &str) {
    let initial = &draft.run.workflow.budget;
    let (money, tokens) = match (word, Usd::parse(word)) {
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
    let limit = Budget {
        money: Usd(now.money.0.saturating_add(money.0)),
        tokens: now.tokens.saturating_add(tokens),
        time,
    };
    draft.record(Event::BudgetRaised(BudgetRaised { limit }));
}

/// The turn is over: what was set aside for it is free again, what it used is spent.
pub(super) fn settle(run: &mut Run, turn: TurnKey, used: Usage) {
    let Some(handoff) = run.handoff_mut(turn.handoff) else {
        return;
    };
    let reserved = handoff.state.turn().map_or(Usage::default(), |turn| turn.reserved);
    handoff.usage += used;
    let name = handoff.offer.to.to_string();
    run.purse.release(reserved);
    run.purse.spent += used;
    let account = run.purse.agents.entry(name).or_default();
    account.turns += 1;
    account.spent += used;
    account.most = account.most.max(used);
}

impl BudgetRaised {
    pub(super) fn apply(&self, run: &mut Run) {
        run.purse.limit = self.limit.clone();
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
}
