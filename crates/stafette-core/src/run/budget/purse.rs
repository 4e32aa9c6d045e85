//! The spending of a run and its agents, and the limits on it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BudgetReached, Forecast};
use crate::workflow::{AgentBudget, Budget};
use crate::{Millis, Party, Time, Unknown, Usage, Usd};

/// The budget of a run: limit, spending and reservations.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
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
    #[serde(default, skip_serializing_if = "is_zero")]
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
    /// The number of times that its budget was granted again.
    #[serde(default)]
    pub raised: u32,
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

fn is_zero(count: &u32) -> bool {
    *count == 0
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

    /// Returns the limit that stops `name` from spending `more`, for a handoff that is `new` to it.
    pub(super) fn obstacle(
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
    pub(in crate::run) fn new(
        limit: Budget,
        forecasts: Option<BTreeMap<String, Forecast>>,
    ) -> Self {
        let nothing = Usage::default();
        Purse {
            limit,
            spent: nothing,
            reserved: nothing,
            handoffs: 0,
            agents: BTreeMap::new(),
            days: BTreeMap::new(),
            reached: None,
            forecasts,
        }
    }

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
}
