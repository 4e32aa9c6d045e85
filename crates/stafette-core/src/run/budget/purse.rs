//! What a run and its agents have spent, and what stands in the way of more.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BudgetReached, Forecast};
use crate::workflow::{AgentBudget, Budget};
use crate::{Millis, Party, Time, Usage, Usd};

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
    /// What was known about each agent's cost when the run began; runs of older releases have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecasts: Option<BTreeMap<String, Forecast>>,
}

/// What an agent has spent.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Account {
    /// Turns that ended.
    pub turns: u32,
    /// Those of them that ended with a result, and so with what they cost.
    #[serde(default)]
    pub finished: u32,
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

/// The days that a run remembers: longer than any run by default.
const DAYS: usize = 400;

/// A turn falls back by so much of the difference when one used less than expected.
const FALL: u64 = 4;

impl Account {
    /// A turn ended after so long.
    pub(super) fn settle(&mut self, used: Usage, took: Millis) {
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

    /// What is known about each agent's cost after this run: what it was known to cost before, and the
    /// most that it has cost here.
    #[must_use]
    pub fn learned(&self) -> BTreeMap<String, Forecast> {
        let mut known = self.forecasts.clone().unwrap_or_default();
        for (name, account) in self.agents.iter().filter(|(_, account)| account.finished > 0) {
            let before = match known.get(name) {
                Some(Forecast::Known(most)) => *most,
                _ => Usage::default(),
            };
            known.insert(name.clone(), Forecast::Known(before.max(account.most)));
        }
        known
    }

    /// What is neither spent nor set aside.
    pub(super) fn left(&self) -> Usage {
        let (spent, reserved, limit) = (self.spent, self.reserved, &self.limit);
        let money = limit.money.0.saturating_sub(spent.money.0).saturating_sub(reserved.money.0);
        let tokens = limit.tokens.saturating_sub(spent.tokens).saturating_sub(reserved.tokens);
        Usage { tokens, money: Usd(money) }
    }

    /// Whether turns that are out have set aside all that is left.
    pub(super) fn is_all_set_aside(&self) -> bool {
        let (left, reserved) = (self.left(), self.reserved);
        (left.money == Usd(0) && reserved.money > Usd(0))
            || (left.tokens == 0 && reserved.tokens > 0)
    }

    /// A turn of `agent` is given out.
    pub(in crate::run) fn reserve(&mut self, agent: &Party, reserved: Usage, new: bool) {
        self.reserved += reserved;
        let account = self.agents.entry(agent.to_string()).or_default();
        account.reserved += reserved;
        if new {
            account.handoffs += 1;
            self.handoffs += 1;
        }
    }

    /// A turn of `agent` is not out any more.
    pub(in crate::run) fn release(&mut self, agent: &Party, reserved: Usage) {
        let less = |from: &mut Usage| {
            from.tokens = from.tokens.saturating_sub(reserved.tokens);
            from.money = Usd(from.money.0.saturating_sub(reserved.money.0));
        };
        less(&mut self.reserved);
        self.agents.get_mut(agent.as_str()).into_iter().for_each(|a| less(&mut a.reserved));
    }

    /// A turn of `agent` ended after it had used so much.
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

    /// What was spent is another run's expense.
    pub(in crate::run) fn begin_anew(&mut self) {
        self.spent = Usage::default();
        self.handoffs = 0;
        self.days.clear();
        for account in self.agents.values_mut() {
            let Account { finished, most, next, reserved, .. } = *account;
            *account = Account { finished, most, next, reserved, ..Account::default() };
        }
    }

    /// What stands in the way of spending `more`, for a handoff that is `new` to its agent.
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
