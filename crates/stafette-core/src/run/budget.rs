//! Money, tokens, handoffs and time: reserved before a turn, settled after it.

mod purse;
#[cfg(test)]
mod tests;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::propose::{self, Proposal};
use super::{Draft, Run, Status, close};
use crate::handoff::{About, State};
use crate::workflow::{Budget, Runner};
use crate::{
    Event, Handoff, HandoffId, Kind, Millis, Offer, Party, Question, Reason, Reply, Usage, Usd,
};

pub use purse::{Account, Day, Purse};

/// The run would exceed a budget.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BudgetReached {
    /// The exhausted part: `money`, `tokens`, `handoffs` or `time`.
    pub part: String,
    /// The agent, if it is an agent's own budget.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The reason, in a sentence.
    pub why: String,
}

/// The run or an agent may spend more.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct BudgetRaised {
    /// The run's new budget.
    pub limit: Budget,
    /// The agent whose own budget is granted once more, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
}

/// The expected cost of one turn of an agent, as known before a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Forecast {
    /// The runner cannot report costs: handoffs and time bound the agent, and it never waits for
    /// money.
    Unmetered,
    /// The most that one of its turns used in earlier runs of the project.
    Known(Usage),
}

/// Returns the most that the next turn of `handoff` is expected to use, from the agent's turns in
/// this run, the workflow's estimate or earlier runs. `None` if there is no data: a turn of which
/// nothing is known is none.
fn known(run: &Run, handoff: &Handoff) -> Option<Usage> {
    let (name, agent) = run.workflow.agent(&handoff.offer.to)?;
    if let Some(most) = run.purse.agents.get(name.as_str()).and_then(Account::known) {
        return Some(most);
    }
    if let Some(estimate) = agent.estimate {
        return Some(estimate.into());
    }
    let Some(forecasts) = &run.purse.forecasts else {
        // Runs of older releases have no forecasts, and count on a twentieth of their budget.
        let limit = &run.purse.limit;
        return Some(Usage::exactly(limit.tokens / 20, Usd(limit.money.0 / 20)));
    };
    match forecasts.get(name.as_str())? {
        Forecast::Unmetered => Some(Usage::default()),
        Forecast::Known(most) => Some(*most),
    }
}

/// True if the cost of the open turn of `handoff` was known when it began.
pub(crate) fn is_known(run: &Run, handoff: &Handoff) -> bool {
    known(run, handoff).is_some()
}

/// Returns the amount to reserve for the next turn of `handoff`. If the cost of its agent is
/// unknown, that is the entire remaining budget, so that no other paid turn begins beside it: at
/// most one turn can exceed a budget.
fn expected(run: &Run, handoff: &Handoff) -> Option<Usage> {
    run.workflow.agent(&handoff.offer.to)?;
    Some(known(run, handoff).unwrap_or_else(|| run.purse.left()))
}

/// Returns the reason why the next turn of `handoff` waits although it is due; `None` if it does
/// not wait.
pub fn waits_because(run: &Run, handoff: &Handoff) -> Option<String> {
    if handoff.state.not_before().is_none() || !waits_for_others(run, handoff) {
        return None;
    }
    Some(match known(run, handoff) {
        None => format!(
            "nobody knows yet what a turn of {} costs, so it waits until no other turn could use up \
             the budget; an `estimate` for the agent avoids that",
            handoff.offer.to
        ),
        Some(_) => "what is left of the budget is set aside for turns that are out".to_owned(),
    })
}

/// Returns the budget that blocks the next turn of `handoff`: the run's, or its agent's own.
fn obstacle(run: &Run, handoff: &Handoff) -> Option<BudgetReached> {
    let more = expected(run, handoff)?;
    let new = handoff.turn == 0;
    let unknown = known(run, handoff).is_none();
    if unknown && (run.purse.is_all_set_aside() || is_unknown_out(run)) {
        let why = format!("{} is set aside for turns that are out", run.purse.reserved.money);
        return Some(BudgetReached { part: "money".into(), agent: None, why });
    }
    let own = || {
        let (name, agent) = run.workflow.agent(&handoff.offer.to)?;
        let account = run.purse.agents.get(name.as_str()).cloned().unwrap_or_default();
        account.obstacle(name.as_str(), &agent.budget, more, new)
    };
    run.purse.obstacle(more, new).or_else(own)
}

/// True if a turn of unknown cost is open. The entire remaining budget is reserved for it, but not
/// what others release or a person adds, and two such turns could exceed the budget twice.
fn is_unknown_out(run: &Run) -> bool {
    run.turns_out().any(|(_, handoff)| known(run, handoff).is_none())
}

/// True if the next turn of `handoff` must wait until an open turn has ended and reported its
/// actual usage, which may be less than was reserved.
pub(crate) fn waits_for_others(run: &Run, handoff: &Handoff) -> bool {
    let others_out = run.open().any(|handoff| handoff.state.turn().is_some());
    others_out && obstacle(run, handoff).is_some()
}

/// Returns the amount to reserve for the next turn of `id`; `None` if the budget does not allow it,
/// and then a person is asked.
pub(crate) fn reserve(draft: &mut Draft, id: HandoffId) -> Option<Usage> {
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
    propose::ask(draft, Proposal { cause: Some(id), ..Proposal::of(offer) });
}

/// Checks the run's time limit; called when time has passed.
pub(crate) fn check_time(draft: &mut Draft) {
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

pub(crate) fn is_budget_question(handoff: &Handoff) -> bool {
    handoff.offer.question.as_ref().is_some_and(|question| question.about == About::Budget)
}

/// Applies a person's answer: `raise` grants the same amount again, a number grants that much more,
/// anything else stops the run.
pub(crate) fn answered(draft: &mut Draft, word: &str) {
    let initial = &draft.run.workflow.budget;
    let own = draft.run.purse.reached.as_ref().is_some_and(|reached| reached.agent.is_some());
    let (money, tokens) = match (word, Usd::parse(word)) {
        // The run has enough; only the agent's budget is granted again.
        ("raise", _) | (_, Ok(_)) if own => (Usd(0), 0),
        ("raise", _) => (initial.money, initial.tokens),
        (_, Ok(money)) => (money, initial.tokens),
        _ => return close::end(draft, Status::Failed, "the budget is reached"),
    };
    grow(draft, money, tokens);
}

pub(crate) fn raise(draft: &mut Draft, money: Usd, tokens: u64) -> Reply {
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
    // Granting more of anything also grants the time for it, counted from now.
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

/// Returns the usage to record for the open turn of `id`. What is not known counts as the estimate of
/// the workflow, if there is one.
pub(crate) fn booked(run: &Run, id: HandoffId, mut used: Usage) -> Usage {
    let agent = run.handoff(id).and_then(|handoff| run.workflow.agent(&handoff.offer.to));
    let Some((_, agent)) = agent else { return used };
    // Nobody sees what an agent uses that comes from elsewhere: it can only report.
    if agent.runner == Runner::External {
        used.unknown.tokens = u32::from(used.tokens == 0);
        used.unknown.money = u32::from(used.money == Usd(0));
    }
    let Some(estimate) = agent.estimate else { return used };
    if std::mem::take(&mut used.unknown.tokens) > 0 {
        used.tokens = used.tokens.max(estimate.tokens);
    }
    if std::mem::take(&mut used.unknown.money) > 0 {
        used.money = used.money.max(estimate.money);
        used.estimated = used.money;
    }
    used
}

/// Returns the usage to record for the open turn of `id`, which failed: what is unknown is nothing if
/// no agent has taken it.
pub(crate) fn lost(run: &Run, id: HandoffId, used: Usage) -> Usage {
    let is_ordered = |handoff: &Handoff| matches!(handoff.state, State::Ordered(_));
    match run.handoff(id).is_some_and(is_ordered) {
        true => used.amounts(),
        false => booked(run, id, used),
    }
}

/// Returns what a turn counts that ends before its agent could say what it used; `None` if no agent has
/// taken one.
pub(crate) fn interrupted(run: &Run, id: HandoffId) -> Option<Usage> {
    let handoff = run.handoff(id)?;
    if !matches!(handoff.state, State::Accepted(_) | State::Running(_)) {
        return None;
    }
    let (_, agent) = run.workflow.agent(&handoff.offer.to)?;
    let used = match agent.runner {
        // A script asks no model.
        Runner::Scripted => Usage::default(),
        _ => Usage::unknown(),
    };
    Some(booked(run, id, used.and_reported(handoff.told.usage)))
}

/// Records that a run ends with more spent than it may: nobody was asked, because no turn followed.
pub(crate) fn note_excess(draft: &mut Draft) {
    let purse = &draft.run.purse;
    let (spent, limit) = (purse.spent, &purse.limit);
    let (part, why) = if spent.money > limit.money {
        ("money", format!("{} of {} are spent", spent.money, limit.money))
    } else if spent.tokens > limit.tokens {
        ("tokens", format!("{} of {} tokens are spent", spent.tokens, limit.tokens))
    } else {
        return;
    };
    if purse.reached.as_ref().is_none_or(|reached| reached.part != part) {
        draft.record(Event::BudgetReached(BudgetReached { part: part.into(), agent: None, why }));
    }
}

/// Settles a turn that has ended: releases its reservation and records what it used, if anything.
pub(crate) fn settle(run: &mut Run, id: HandoffId, used: Option<Usage>) {
    let Some(handoff) = run.handoff_mut(id) else {
        return;
    };
    let out = handoff.state.turn();
    let reserved = out.map_or(Usage::default(), |turn| turn.reserved);
    let began = out.map(|turn| turn.ordered_at);
    handoff.usage += used.unwrap_or_default();
    let agent = handoff.offer.to.clone();
    let now = run.updated_at;
    let purse = &mut run.purse;
    purse.release(&agent, reserved);
    let Some(used) = used else { return };
    let took = began.map_or(Millis(0), |began| now.since(began));
    purse.spend(&agent, used, took, now);
}

impl BudgetReached {
    pub(crate) fn apply(&self, run: &mut Run) {
        run.purse.reached = Some(self.clone());
    }
}

impl BudgetRaised {
    pub(crate) fn apply(&self, run: &mut Run) {
        run.purse.limit = self.limit.clone();
        run.purse.reached = None;
        if let Some(agent) = &self.agent {
            run.purse.agents.entry(agent.clone()).or_default().raised += 1;
        }
    }
}
