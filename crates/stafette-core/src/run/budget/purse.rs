//! The spending of a run and its agents, and the limits on it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BudgetReached, Forecast};
use crate::workflow::{AgentBudget, Budget};
use crate::{Millis, Party, Time, Unknown, Usage, Usd, is_default};

/// The budget of a run: limit, spending and reservations.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Purse {
    /// The amounts that the run may spend.
    pub limit: Budget,
    /// The amounts spent so far.
    pub spent: Usage,
    /// The amounts reserved for open turns.
    pub reserved: Usage,
    /// The handoffs that agents have started to work on.
    #[serde(default)]
    pub handoffs: u32,
    /// The spending of each agent.
    pub agents: BTreeMap<String, Account>,
    /// The spending of each day, in UTC.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub days: BTreeMap<String, Day>,
    /// The most recent limit that was reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<BudgetReached>,
    /// The expected cost of each agent when the run began; `None` in runs of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecasts: Option<BTreeMap<String, Forecast>>,
}

/// The spending of an agent.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// The turns that ended.
    pub turns: u32,
    /// The turns that ended with a result.
    #[serde(default)]
    pub finished: u32,
    /// Those of them of whose usage nothing is known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unseen: u32,
    /// The total usage of all turns.
    pub spent: Usage,
    /// The largest usage of a single turn.
    pub most: Usage,
    /// The expected usage of the next turn: follows a rise immediately and a fall gradually.
    #[serde(default)]
    pub next: Usage,
    /// The amounts reserved for the agent's open turns.
    #[serde(default)]
    pub reserved: Usage,
    /// The handoffs that the agent has started to work on.
    #[serde(default)]
    pub handoffs: u32,
    /// The total duration of its turns.
    #[serde(default)]
    pub time: Millis,
    /// The number of times that its budget was granted again, in runs of older releases.
    #[serde(default)]
    pub raised: u32,
    /// What was granted on top of its own budget.
    #[serde(default, skip_serializing_if = "is_default")]
    pub granted: Grant,
}

/// Amounts that are added to limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Grant {
    /// Money.
    #[serde(skip_serializing_if = "is_default")]
    pub money: Usd,
    /// Tokens.
    #[serde(skip_serializing_if = "is_default")]
    pub tokens: u64,
    /// Handoffs.
    #[serde(skip_serializing_if = "is_default")]
    pub handoffs: u32,
    /// Time.
    #[serde(skip_serializing_if = "is_default")]
    pub time: Millis,
}

/// The spending of one day.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Day {
    /// The turns that ended on that day.
    pub turns: u32,
    /// The total usage of those turns.
    pub spent: Usage,
}

/// The number of days that a run keeps: more than any run lasts by default.
const DAYS: usize = 400;

/// When a turn used less than expected, the estimate falls by the difference divided by this.
const FALL: u64 = 4;

impl Grant {
    /// True if it adds nothing.
    pub fn is_nothing(&self) -> bool {
        *self == Grant::default()
    }

    /// Returns the amounts in words, such as `$5.00 and 3 handoffs`.
    pub fn words(&self) -> String {
        let some = |is: bool, said: String| is.then_some(said);
        let number = |count: u64, one: &str| match count {
            1 => format!("1 {one}"),
            count => format!("{count} {one}s"),
        };
        let parts = [
            some(!self.money.is_zero(), money(self.money)),
            some(self.tokens > 0, number(self.tokens, "token")),
            some(self.handoffs > 0, number(self.handoffs.into(), "handoff")),
            some(self.time.0 > 0, self.time.to_string()),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }

    fn add(&mut self, more: Grant) {
        self.money = Usd(self.money.0.saturating_add(more.money.0));
        self.tokens = self.tokens.saturating_add(more.tokens);
        self.handoffs = self.handoffs.saturating_add(more.handoffs);
        self.time = Millis(self.time.0.saturating_add(more.time.0));
    }
}

/// An amount as it is, where cents would round it.
fn money(amount: Usd) -> String {
    match amount.0 % 10_000 {
        0 => amount.to_string(),
        _ => format!("{amount:?}"),
    }
}

/// Returns what to add to a `limit` for `after` to fit into it, and for something to be left beside
/// what is `spent`: the `usual` amount, or more where that is not enough. Nothing if it fits.
fn missing(limit: u64, spent: u64, after: u64, usual: u64) -> u64 {
    match after > limit || spent >= limit {
        true => usual.max(after.saturating_sub(limit)).max(spent.saturating_sub(limit) + 1),
        false => 0,
    }
}

/// Returns `own`, or the `other` if that is nothing: no amount of nothing is ever enough.
fn usual(own: u64, other: u64) -> u64 {
    if own == 0 { other } else { own }
}

impl Account {
    /// Counts a turn that ended with a result.
    pub(in crate::run) fn finish(&mut self, used: Usage) {
        self.finished += 1;
        let nothing = used.unknown == Unknown::TURN && used.money == Usd(0);
        self.unseen += u32::from(nothing);
    }

    /// Returns the most that one of its turns has used; `None` until a turn has told what it used,
    /// even if that was nothing.
    pub fn known(&self) -> Option<Usage> {
        (self.finished > self.unseen).then_some(self.most)
    }

    /// Records a turn that ended, with its usage and duration.
    pub(super) fn settle(&mut self, used: Usage, took: Millis) {
        self.turns += 1;
        self.spent += used;
        self.most = self.most.max(used.amounts());
        self.time = Millis(self.time.0.saturating_add(took.0));
        // A turn that failed before it could report its usage says nothing about the next one.
        if used != Usage::default() {
            let moved = |next: u64, used: u64| used.max(next - next.saturating_sub(used) / FALL);
            // What is unknown of this one says nothing either.
            if used.unknown.tokens == 0 {
                self.next.tokens = moved(self.next.tokens, used.tokens);
            }
            if used.unknown.money == 0 {
                self.next.money = Usd(moved(self.next.money.0, used.money.0));
            }
        }
    }

    /// Returns the expected cost of its turns in later runs: the most so far, or what was known
    /// `before` where no turn has told.
    pub fn forecast(&self, before: Option<Forecast>) -> Option<Forecast> {
        // Accounts of older releases do not say which turns have told nothing.
        let is_told = |most: &Usage| *most != Usage::default() || self.spent.unknown.is_empty();
        match (self.known().filter(is_told), before) {
            (Some(most), Some(Forecast::Known(before))) => Some(Forecast::Known(before.max(most))),
            (Some(most), _) => Some(Forecast::Known(most)),
            (None, before) => before,
        }
    }

    /// Returns its limits: those of the workflow, and what was granted on top.
    fn limits(&self, own: &AgentBudget) -> AgentBudget {
        let (times, more) = (u64::from(self.raised) + 1, self.granted);
        let sum = |own: u64, more: u64| own.saturating_mul(times).saturating_add(more);
        let handoffs =
            |own: u32| u32::try_from(sum(own.into(), more.handoffs.into())).unwrap_or(u32::MAX);
        AgentBudget {
            money: own.money.map(|own| Usd(sum(own.0, more.money.0))),
            tokens: own.tokens.map(|own| sum(own, more.tokens)),
            handoffs: own.handoffs.map(handoffs),
            time: own.time.map(|own| Millis(sum(own.0, more.time.0))),
        }
    }

    /// Returns the limit that stops `name` from spending `more`, for a handoff that is `new` to it.
    pub(super) fn obstacle(
        &self,
        name: &str,
        own: &AgentBudget,
        more: Usage,
        new: bool,
    ) -> Option<BudgetReached> {
        let limits = self.limits(own);
        let after = self.spent + self.reserved + more;
        let reached = |part: &str, why: String| {
            let why = format!("{name} has had {why} of its own budget");
            Some(BudgetReached { part: part.into(), agent: Some(name.to_owned()), why })
        };
        if let Some(limit) = limits.money
            && (after.money > limit || self.spent.money >= limit)
        {
            return reached("money", format!("{} of the {limit}", self.spent.money));
        }
        if let Some(limit) = limits.tokens
            && (after.tokens > limit || self.spent.tokens >= limit)
        {
            return reached("tokens", format!("{} of the {limit} tokens", self.spent.tokens));
        }
        if let Some(limit) = limits.handoffs
            && new
            && self.handoffs >= limit
        {
            return reached("handoffs", format!("the {limit} handoffs"));
        }
        if let Some(limit) = limits.time
            && self.time >= limit
        {
            return reached("time", format!("the {limit} at work"));
        }
        None
    }

    /// Returns what to add to its own limits for `more` to fit: the workflow's amount, or more where
    /// that is not enough.
    pub(super) fn missing(&self, own: &AgentBudget, more: Usage, new: bool) -> Grant {
        let limits = self.limits(own);
        let after = self.spent + self.reserved + more;
        let least = Budget::default();
        let mut grant = Grant::default();
        if let (Some(limit), Some(own)) = (limits.money, own.money) {
            let usual = usual(own.0, least.money.0);
            grant.money = Usd(missing(limit.0, self.spent.money.0, after.money.0, usual));
        }
        if let (Some(limit), Some(own)) = (limits.tokens, own.tokens) {
            let usual = usual(own, least.tokens);
            grant.tokens = missing(limit, self.spent.tokens, after.tokens, usual);
        }
        if let (Some(limit), Some(own), true) = (limits.handoffs, own.handoffs, new) {
            let had = self.handoffs.into();
            let more = missing(limit.into(), had, had + 1, usual(own.into(), 1));
            grant.handoffs = u32::try_from(more).unwrap_or(u32::MAX);
        }
        if let (Some(limit), Some(own)) = (limits.time, own.time) {
            let had = self.time.0;
            grant.time = Millis(missing(limit.0, had, had, usual(own.0, least.time.0)));
        }
        grant
    }

    /// Adds to its own limits; what older releases recorded says no amounts, and grants the
    /// workflow's again.
    pub(super) fn grant(&mut self, more: Grant) {
        match more.is_nothing() {
            true => self.raised += 1,
            false => self.granted.add(more),
        }
    }
}

impl Purse {
    /// Returns the expected cost of each agent after this run: the earlier forecast, and the most
    /// that it has used here.
    pub fn learned(&self) -> BTreeMap<String, Forecast> {
        let mut known = self.forecasts.clone().unwrap_or_default();
        for (name, account) in &self.agents {
            let forecast = account.forecast(known.get(name).copied());
            known.extend(forecast.map(|forecast| (name.clone(), forecast)));
        }
        known
    }

    /// Returns the amount that is neither spent nor reserved.
    pub(super) fn left(&self) -> Usage {
        let (spent, reserved, limit) = (self.spent, self.reserved, &self.limit);
        let money = limit.money.0.saturating_sub(spent.money.0).saturating_sub(reserved.money.0);
        let tokens = limit.tokens.saturating_sub(spent.tokens).saturating_sub(reserved.tokens);
        Usage::exactly(tokens, Usd(money))
    }

    /// True if open turns have reserved everything that is left.
    pub(super) fn is_all_set_aside(&self) -> bool {
        let (left, reserved) = (self.left(), self.reserved);
        (left.money == Usd(0) && reserved.money > Usd(0))
            || (left.tokens == 0 && reserved.tokens > 0)
    }

    /// Reserves the cost of a turn of `agent`.
    pub(in crate::run) fn reserve(&mut self, agent: &Party, reserved: Usage, new: bool) {
        self.reserved += reserved;
        let account = self.agents.entry(agent.to_string()).or_default();
        account.reserved += reserved;
        if new {
            account.handoffs += 1;
            self.handoffs += 1;
        }
    }

    /// Releases the reservation for a turn of `agent`.
    pub(in crate::run) fn release(&mut self, agent: &Party, reserved: Usage) {
        let less = |from: &mut Usage| {
            from.tokens = from.tokens.saturating_sub(reserved.tokens);
            from.money = Usd(from.money.0.saturating_sub(reserved.money.0));
        };
        less(&mut self.reserved);
        self.agents.get_mut(agent.as_str()).into_iter().for_each(|a| less(&mut a.reserved));
    }

    /// Records the usage of a turn of `agent` that ended.
    pub(super) fn spend(&mut self, agent: &Party, used: Usage, took: Millis, now: Time) {
        self.spent += used;
        self.agents.entry(agent.to_string()).or_default().settle(used, took);
        let day = self.days.entry(now.day()).or_default();
        day.turns += 1;
        day.spent += used;
        while self.days.len() > DAYS {
            self.days.pop_first();
        }
    }

    /// Resets the spending, which belongs to another run.
    pub(in crate::run) fn begin_anew(&mut self) {
        self.spent = Usage::default();
        self.handoffs = 0;
        self.days.clear();
        for account in self.agents.values_mut() {
            let Account { finished, unseen, most, next, reserved, .. } = *account;
            *account = Account { finished, unseen, most, next, reserved, ..Account::default() };
        }
    }

    /// Returns the limit that stops the run from spending `more`, for a handoff that is `new` to
    /// its agent.
    pub(super) fn obstacle(&self, more: Usage, new: bool) -> Option<BudgetReached> {
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

    /// Returns what to add to the limits for `more` to fit: what the workflow allows a run, or more
    /// where that is not enough. Time is added elsewhere.
    pub(super) fn missing(&self, usually: &Budget, more: Usage, new: bool) -> Grant {
        let after = self.spent + self.reserved + more;
        let (limit, spent, least) = (&self.limit, self.spent, Budget::default());
        let money = usual(usually.money.0, least.money.0);
        let tokens = usual(usually.tokens, least.tokens);
        let handoffs = u64::from(usually.handoffs).max(1);
        let had = u64::from(self.handoffs);
        let more = if new { missing(limit.handoffs.into(), had, had + 1, handoffs) } else { 0 };
        Grant {
            money: Usd(missing(limit.money.0, spent.money.0, after.money.0, money)),
            tokens: missing(limit.tokens, spent.tokens, after.tokens, tokens),
            handoffs: u32::try_from(more).unwrap_or(u32::MAX),
            time: Millis(0),
        }
    }
}
