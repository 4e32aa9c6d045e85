//! Adds up the consumption of a turn.

use serde::{Deserialize, Serialize};
use stafette_core::{Usage, Usd};

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

/// Adds up the consumption of a turn.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    settled: Totals,
    /// The last count, and its item: the same item may be counted again.
    last: Option<(String, Totals)>,
    model: Option<String>,
    counted: bool,
    /// True if the last count was a total.
    whole: bool,
}

impl Meter {
    /// Adds a count to the sum.
    pub fn take(&mut self, count: &Count) {
        if let Some(model) = &count.model {
            self.model = Some(model.clone());
        }
        if count.tokens.is_none() && count.cost.is_none() {
            return;
        }
        self.counted = true;
        self.whole = count.total;
        if count.total {
            self.settle();
            self.settled.tokens = count.tokens.unwrap_or(self.settled.tokens);
            self.settled.cost = count.cost.or(self.settled.cost);
            return;
        }
        let new = Totals { tokens: count.tokens.unwrap_or_default(), cost: count.cost };
        if self.last.as_ref().is_some_and(|(of, _)| count.of.as_ref() != Some(of)) {
            self.settle();
        }
        match &count.of {
            Some(of) => self.last = Some((of.clone(), new)),
            None => self.add(new),
        }
    }

    fn settle(&mut self) {
        if let Some((_, last)) = self.last.take() {
            self.add(last);
        }
    }

    fn add(&mut self, new: Totals) {
        self.settled.tokens = self.settled.tokens.plus(new.tokens);
        self.settled.cost = match (self.settled.cost, new.cost) {
            (Some(a), Some(b)) => Some(Usd(a.0.saturating_add(b.0))),
            (a, b) => a.or(b),
        };
    }

    /// The consumption of the session, if the program's last count was a total.
    pub fn totals(&self) -> Option<Totals> {
        self.whole.then_some(self.settled)
    }

    /// The consumption of this turn, after a session that had used `before`. Tokens from a cache
    /// cost money, but do not count as tokens: they would drown all others.
    pub fn usage(&self, profile: &Profile, before: Totals) -> Option<Usage> {
        let mut whole = self.clone();
        whole.settle();
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
        let price = || profile.price.of(self.model.as_deref(), own.tokens);
        Some(Usage {
            tokens: own.tokens.input.saturating_add(own.tokens.output),
            money: own.cost.unwrap_or_else(price),
        })
    }
}
