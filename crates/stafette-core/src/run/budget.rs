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

pub use purse::{Account, Day, Grant, Purse};

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
    /// The agent whose own budget is raised too, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// What the agent may use on top of its own budget; in events of older releases nothing, which
    /// is its own budget once more.
    #[serde(default, skip_serializing_if = "Grant::is_nothing")]
    pub own: Grant,
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
    let raise = Raise::needed(draft, id);
    let question = Question {
        reason: "budget".into(),
        details: format!(
            "The budget is reached: {}. Raise it ({}) or stop?",
            reached.why,
            raise.words()
        ),
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

/// What to add to the limits that bind: all of them, so that the next turn can begin.
#[derive(Clone, PartialEq, Debug, Default)]
struct Raise {
    /// For the run.
    run: Grant,
    /// For an agent's own budget.
    own: Option<(String, Grant)>,
}

impl Raise {
    /// Returns what the next turn of `id` needs.
    fn needed(draft: &Draft, id: HandoffId) -> Self {
        let run = &draft.run;
        let time = match run.out_of_time() <= draft.now {
            true => run.workflow.budget.time,
            false => Millis(0),
        };
        let mut raise = Raise { run: Grant { time, ..Grant::default() }, own: None };
        let Some(handoff) = run.handoff(id) else { return raise };
        let Some(more) = expected(run, handoff) else { return raise };
        // A turn that is out needs no more than it has, except time.
        if handoff.state.turn().is_some() {
            return raise;
        }
        let new = handoff.turn == 0;
        raise.run = Grant { time, ..run.purse.missing(&run.workflow.budget, more, new) };
        if let Some((name, agent)) = run.workflow.agent(&handoff.offer.to) {
            let account = run.purse.agents.get(name.as_str()).cloned().unwrap_or_default();
            let own = account.missing(&agent.budget, more, new);
            raise.own = (!own.is_nothing()).then(|| (name.to_string(), own));
        }
        raise
    }

    fn words(&self) -> String {
        let own = self.own.as_ref().map(|(name, own)| format!("{name} by {}", own.words()));
        let run = (!self.run.is_nothing()).then(|| format!("the run by {}", self.run.words()));
        run.into_iter().chain(own).collect::<Vec<_>>().join(", ")
    }

    /// The same with an amount that a person says in place of the one that was suggested. `Err` with
    /// the units that bind if it is of a limit that does not.
    fn by(mut self, said: &str) -> Result<Self, Vec<&'static str>> {
        let grants = [Some(&self.run), self.own.as_ref().map(|(_, own)| own)];
        let binds = |is: fn(&Grant) -> bool| grants.iter().flatten().any(|grant| is(grant));
        let units: Vec<&'static str> = [
            (binds(|grant| !grant.money.is_zero()), "usd"),
            (binds(|grant| grant.tokens > 0), "tokens"),
            (binds(|grant| grant.handoffs > 0), "handoffs"),
        ]
        .into_iter()
        .filter_map(|(binds, unit)| binds.then_some(unit))
        .collect();
        let said = said.trim().to_lowercase();
        let count = |unit: &str| {
            let bare =
                said.strip_suffix(unit).or_else(|| said.strip_suffix(&unit[..unit.len() - 1]));
            bare.and_then(|bare| bare.trim().replace('_', "").parse::<u64>().ok())
        };
        let (unit, amount) = match (count("tokens"), count("handoffs"), Usd::parse(&said)) {
            (Some(tokens), _, _) => ("tokens", tokens),
            (_, Some(handoffs), _) => ("handoffs", handoffs),
            (_, _, Ok(money)) => ("usd", money.0),
            _ => return Err(units),
        };
        if amount == 0 || !units.contains(&unit) {
            return Err(units);
        }
        let set = |grant: &mut Grant| match unit {
            "tokens" if grant.tokens > 0 => grant.tokens = amount,
            "handoffs" if grant.handoffs > 0 => {
                grant.handoffs = u32::try_from(amount).unwrap_or(u32::MAX);
            }
            "usd" if !grant.money.is_zero() => grant.money = Usd(amount),
            _ => {}
        };
        set(&mut self.run);
        self.own.iter_mut().for_each(|(_, own)| set(own));
        Ok(self)
    }
}

/// Says why a text is no answer to the open question about the budget: it is an amount of something
/// that is not exhausted, or none.
pub(crate) fn objection(draft: &Draft, question: HandoffId, text: &str) -> Option<String> {
    let units = Raise::needed(draft, waiting(&draft.run, question)?).by(text).err()?;
    let amounts = units.iter().map(|unit| match *unit {
        "usd" => "`5usd`",
        "tokens" => "`100000tokens`",
        _ => "`10handoffs`",
    });
    let amounts: Vec<&str> = amounts.collect();
    let also = match amounts.is_empty() {
        true => String::new(),
        false => format!("; an amount to add is an answer too, as in {}", amounts.join(" or ")),
    };
    Some(format!("`{text}` is none of the options `raise`, `stop`{also}"))
}

/// Returns the handoff whose turn waits for the answer to a question about the budget.
fn waiting(run: &Run, question: HandoffId) -> Option<HandoffId> {
    run.handoff(question)?.cause
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
    let Some(oldest) = run.open().next().map(|handoff| handoff.id) else { return };
    let why = format!("the run has had its {}", run.purse.limit.time);
    ask(draft, oldest, BudgetReached { part: "time".into(), agent: None, why });
}

pub(crate) fn is_budget_question(handoff: &Handoff) -> bool {
    handoff.offer.question.as_ref().is_some_and(|question| question.about == About::Budget)
}

/// Applies a person's answer: `raise` adds what the question said, or what the next turn needs by
/// now; an amount adds that much; anything else stops the run.
pub(crate) fn answered(draft: &mut Draft, question: HandoffId, word: &str) {
    let needed = waiting(&draft.run, question).map(|id| Raise::needed(draft, id));
    let needed = needed.unwrap_or_default();
    match word {
        "raise" => grow(draft, needed),
        _ => match needed.by(word) {
            Ok(raise) => grow(draft, raise),
            Err(_) => close::end(draft, Status::Failed, "the budget is reached"),
        },
    }
}

pub(crate) fn raise(draft: &mut Draft, mut run: Grant) -> Reply {
    // Granting more of anything also grants the time for it, counted from now.
    if draft.run.out_of_time() <= draft.now {
        run.time = draft.run.workflow.budget.time;
    }
    grow(draft, Raise { run, own: None });
    if let Some(question) = draft.run.open_budget_question() {
        let raised = crate::Response::new(Party::Human, crate::Outcome::Resolved);
        close::answered(draft, question, raised);
    }
    Reply::Recorded
}

fn grow(draft: &mut Draft, Raise { run: more, own }: Raise) {
    let now = &draft.run.purse.limit;
    let elapsed = draft.now.since(draft.run.created_at);
    let time = match more.time.0 > 0 {
        true => Millis(elapsed.0.saturating_add(more.time.0)),
        false => now.time,
    };
    let limit = Budget {
        money: Usd(now.money.0.saturating_add(more.money.0)),
        tokens: now.tokens.saturating_add(more.tokens),
        handoffs: now.handoffs.saturating_add(more.handoffs),
        time,
    };
    let (agent, own) = own.unzip();
    let own = own.unwrap_or_default();
    draft.record(Event::BudgetRaised(BudgetRaised { limit, agent, own }));
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
    let Some(handoff) = run.handoff_mut(id) else { return };
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
            run.purse.agents.entry(agent.clone()).or_default().grant(self.own);
        }
    }
}
