//! Money, tokens, handoffs and time: set aside before a turn, settled after it.

mod purse;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::propose::{Proposal, propose};
use super::{Draft, Run, Status, close};
use crate::handoff::About;
use crate::workflow::Budget;
use crate::{
    Event, Handoff, HandoffId, Kind, Millis, Offer, Party, Question, Reason, Reply, TurnKey, Usage,
    Usd,
};

pub use purse::{Account, Day, Purse};

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

/// What the next turn of `handoff` is expected to use: what its agent's turns so far let one
/// expect, else what the workflow says, else a twentieth of the budget, because nothing is for free.
fn expected(run: &Run, handoff: &Handoff) -> Option<Usage> {
    let (name, agent) = run.workflow.agent(&handoff.offer.to)?;
    if let Some(account) = run.purse.agents.get(name.as_str()).filter(|account| account.turns > 0) {
        return Some(account.next);
    }
    let limit = &run.purse.limit;
    let earlier = run.lineage.as_ref().and_then(|lineage| lineage.agents.get(name.as_str()));
    if let Some(service) = earlier.filter(|service| service.turns > 0 && service.cost > Usd(0)) {
        // As in earlier generations, on average.
        let money = Usd(service.cost.0.div_ceil(service.turns));
        return Some(Usage { tokens: agent.estimate.tokens.max(limit.tokens / 20), money });
    }
    if agent.estimate != Usage::default() {
        return Some(agent.estimate);
    }
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

pub(super) fn raise(draft: &mut Draft, money: Usd, tokens: u64) -> Reply {
    grow(draft, money, tokens);
    if let Some(question) = draft.run.open_budget_question() {
        let raised = crate::Response::new(Party::Human, crate::Outcome::Resolved);
        close::answered(draft, question, raised);
    }
    Reply::Recorded
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
    let took = began.map_or(Millis(0), |began| now.since(began));
    purse.spend(&agent, used, took, now);
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
