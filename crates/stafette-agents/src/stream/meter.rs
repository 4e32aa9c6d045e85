//! Adds up what a turn has used.

use serde::{Deserialize, Serialize};
use stafette_core::{Usage, Usd};

use super::Count;
use crate::profile::Profile;

/// Tokens, by what happened to them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Tokens {
    /// Read anew.
    pub input: u64,
    /// Written.
    pub output: u64,
    /// Read from a cache.
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

/// What a session has used so far, by its own account.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Totals {
    /// Tokens.
    pub tokens: Tokens,
    /// Money.
    pub cost: Option<Usd>,
}

impl Totals {
    /// The larger of the two, part by part: a session that counts anew has not given anything back.
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

/// Adds up what a turn has used.
#[derive(Clone, Debug, Default)]
pub struct Meter {
    settled: Totals,
    /// The last count, and what it was of: the same may be counted again.
    last: Option<(String, Totals)>,
    model: Option<String>,
    counted: bool,
    /// The last count was one of everything so far.
    whole: bool,
}

impl Meter {
    /// Takes a count.
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

    /// What the session has used, when the program has said so at last.
    #[must_use]
    pub fn totals(&self) -> Option<Totals> {
        self.whole.then_some(self.settled)
    }

    /// What this turn has used, after a session that had used `before`. What is read from a cache
    /// costs money, and is no token that anybody wrote: it would drown all others.
    #[must_use]
    pub fn usage(&self, profile: &Profile, before: Totals) -> Option<Usage> {
        let mut whole = self.clone();
        whole.settle();
        let mut own = self.counted.then_some(whole.settled)?;
        // A program that was cut short has counted only what it added itself.
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
