//! Adds up the consumption of a turn.

use std::collections::{BTreeMap, VecDeque};

use serde::{Deserialize, Serialize};
use stafette_core::{Unknown, Usage, Usd};

use super::Count;
use crate::profile::Profile;

/// Tokens, divided by kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Input tokens that did not come from a cache.
    pub input: u64,
    pub output: u64,
    /// Input tokens that were read from a cache.
    pub cached: u64,
}

impl Tokens {
    fn plus(self, other: Tokens) -> Tokens {
        Tokens {
            input: self.input.saturating_add(other.input),
            output: self.output.saturating_add(other.output),
            cached: self.cached.saturating_add(other.cached),
        }
    }

    fn minus(self, other: Tokens) -> Tokens {
        Tokens {
            input: self.input.saturating_sub(other.input),
            output: self.output.saturating_sub(other.output),
            cached: self.cached.saturating_sub(other.cached),
        }
    }
}

/// The consumption of a session so far, by its own account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    pub tokens: Tokens,
    /// The money used, if it is stated.
    pub cost: Option<Usd>,
}

impl Totals {
    /// The maximum of both, field by field: a session that counts anew has not returned anything.
    #[must_use]
    pub fn max(self, other: Totals) -> Totals {
        Totals {
            tokens: Tokens {
                input: self.tokens.input.max(other.tokens.input),
                output: self.tokens.output.max(other.tokens.output),
                cached: self.tokens.cached.max(other.tokens.cached),
            },
            cost: self.cost.max(other.cost),
        }
    }
}

/// The items that are remembered, so that a later count of one of them replaces the earlier one.
const ITEMS: usize = 64;

/// An item that is counted: the messages of a turn, usually.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Item {
    of: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    counted: Totals,
    /// The part that an earlier turn has counted.
    #[serde(default)]
    before: Totals,
}

/// Adds up the consumption of a turn.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    settled: Totals,
    /// The settled tokens by the model that used them; empty for one that was not named.
    models: BTreeMap<String, Tokens>,
    recent: VecDeque<Item>,
    model: Option<String>,
    /// True if tokens were stated.
    tells_tokens: bool,
    counted: bool,
    /// True if the last count was a total.
    whole: bool,
}

impl Meter {
    /// A meter for a turn whose session goes on with items that earlier turns have counted.
    pub(crate) fn after(items: Vec<Item>) -> Self {
        let seen = |item: Item| Item { before: item.counted, ..item };
        Meter { recent: items.into_iter().map(seen).collect(), ..Meter::default() }
    }

    /// The last items, for the meter of the next turn.
    pub(crate) fn items(&self) -> Vec<Item> {
        self.recent.iter().cloned().collect()
    }

    /// Adds a count to the sum.
    pub fn take(&mut self, count: &Count) {
        if let Some(model) = &count.model {
            self.model = Some(model.clone());
        }
        if count.tokens.is_none() && count.cost.is_none() {
            return;
        }
        self.counted = true;
        self.tells_tokens |= count.tokens.is_some();
        self.whole = count.total;
        if count.total {
            self.settle(0);
            self.settled.tokens = count.tokens.unwrap_or(self.settled.tokens);
            self.settled.cost = count.cost.or(self.settled.cost);
            return;
        }
        let counted = Totals { tokens: count.tokens.unwrap_or_default(), cost: count.cost };
        let model = count.model.clone().or_else(|| self.model.clone());
        let Some(of) = &count.of else { return self.add(model.as_deref(), counted) };
        match self.recent.iter_mut().find(|item| item.of == *of) {
            Some(item) => (item.model, item.counted) = (model, counted),
            None => {
                let before = Totals::default();
                self.recent.push_back(Item { of: of.clone(), model, counted, before });
                self.settle(ITEMS);
            }
        }
    }

    /// Adds up the oldest items until so many are left.
    fn settle(&mut self, left: usize) {
        while self.recent.len() > left {
            let Some(Item { model, counted, before, .. }) = self.recent.pop_front() else { return };
            let cost = match (counted.cost, before.cost) {
                (Some(now), Some(before)) => Some(Usd(now.0.saturating_sub(before.0))),
                (now, _) => now,
            };
            self.add(
                model.as_deref(),
                Totals { tokens: counted.tokens.minus(before.tokens), cost },
            );
        }
    }

    fn add(&mut self, model: Option<&str>, new: Totals) {
        self.settled.tokens = self.settled.tokens.plus(new.tokens);
        let of_model = self.models.entry(model.unwrap_or_default().to_owned()).or_default();
        *of_model = of_model.plus(new.tokens);
        self.settled.cost = match (self.settled.cost, new.cost) {
            (Some(a), Some(b)) => Some(Usd(a.0.saturating_add(b.0))),
            (a, b) => a.or(b),
        };
    }

    /// The consumption of the session, if the program's last count was a total.
    pub fn totals(&self) -> Option<Totals> {
        self.whole.then_some(self.settled)
    }

    /// The consumption of this turn, after a session that had used `before`; `None` if nothing was
    /// counted. Tokens from a cache cost money, but do not count as tokens: they would drown all
    /// others.
    pub fn usage(&self, profile: &Profile, before: Totals) -> Option<Usage> {
        let mut whole = self.clone();
        whole.settle(0);
        let mut own = self.counted.then_some(whole.settled)?;
        // A program that was cut short has counted only its additions.
        let before = if self.whole { before } else { Totals::default() };
        let scope = &profile.stream.totals;
        if scope.session_tokens {
            own.tokens = own.tokens.minus(before.tokens);
        }
        if scope.session_cost {
            let earlier = before.cost.unwrap_or_default();
            own.cost = own.cost.map(|cost| Usd(cost.0.saturating_sub(earlier.0)));
        }
        if self.whole {
            whole.models = BTreeMap::from([(String::new(), own.tokens)]);
        }
        let priced = |(model, tokens): (&String, &Tokens)| {
            let model = Some(model).filter(|model| !model.is_empty()).or(self.model.as_ref());
            profile.price.of(model.map(String::as_str), *tokens)
        };
        let price = || whole.models.iter().map(priced).collect::<Option<Vec<Usd>>>();
        let price = own.cost.is_none().then(price).flatten();
        let price =
            price.map(|parts| Usd(parts.iter().map(|part| part.0).fold(0, u64::saturating_add)));
        Some(Usage {
            tokens: own.tokens.input.saturating_add(own.tokens.output),
            money: own.cost.or(price).unwrap_or_default(),
            estimated: price.unwrap_or_default(),
            unknown: Unknown {
                tokens: u32::from(!self.tells_tokens),
                money: u32::from(own.cost.or(price).is_none()),
            },
        })
    }
}
