//! The cost of work: money and tokens.

use std::fmt;
use std::ops::{Add, AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// US dollars, kept in millionths so that sums are exact.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, JsonSchema)]
#[schemars(with = "MoneyText")]
pub struct Usd(pub u64);

#[derive(Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected an amount of money, such as \"5usd\"")]
enum MoneyText {
    Number(f64),
    Text(String),
}

impl Usd {
    /// Parses `5usd`, `$0.30` or `0.30`.
    ///
    /// # Errors
    /// A message with the expected format if the text is not an amount.
    pub fn parse(text: &str) -> Result<Self, String> {
        let bare = text.trim().trim_start_matches('$').to_ascii_lowercase();
        let bare = bare.trim_end_matches("usd").trim();
        bare.parse::<f64>()
            .ok()
            .and_then(Usd::from_dollars)
            .ok_or_else(|| format!("`{text}` is not an amount of money: write 5usd or 0.30usd"))
    }

    /// Converts a number of dollars; `None` if it is negative or not finite.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        (dollars.is_finite() && (0.0..1e12).contains(&dollars))
            .then(|| Usd((dollars * 1e6).round() as u64))
    }

    /// True if it is nothing.
    pub fn is_zero(&self) -> bool {
        self.0 == 0
    }

    /// Returns the amount in dollars.
    pub fn dollars(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match MoneyText::deserialize(deserializer)? {
            MoneyText::Number(n) => Usd::from_dollars(n)
                .ok_or_else(|| serde::de::Error::custom(format!("{n} is not an amount of money"))),
            MoneyText::Text(text) => Usd::parse(&text).map_err(serde::de::Error::custom),
        }
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${:.2}", self.dollars())
    }
}

impl fmt::Debug for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}", self.dollars())
    }
}

/// The resources used by a turn, an agent or a run.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Usage {
    /// The tokens read and written, as far as they are known.
    pub tokens: u64,
    /// The money spent, in US dollars, as far as it is known.
    pub money: Usd,
    /// The part of the money that was calculated from a list of prices or estimated.
    #[serde(skip_serializing_if = "Usd::is_zero")]
    pub estimated: Usd,
    /// The turns whose usage is not known, or only in part.
    #[serde(skip_serializing_if = "Unknown::is_empty")]
    pub unknown: Unknown,
}

/// The number of turns whose usage is not known.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Unknown {
    /// The turns whose tokens are not known.
    pub tokens: u32,
    /// The turns whose cost is not known.
    pub money: u32,
}

impl Unknown {
    /// One turn of which nothing is known.
    pub const TURN: Unknown = Unknown { tokens: 1, money: 1 };

    /// True if there is no such turn.
    pub fn is_empty(&self) -> bool {
        *self == Unknown::default()
    }

    /// Returns the number of turns of which something is not known.
    pub fn turns(self) -> u32 {
        self.tokens.max(self.money)
    }
}

impl Usage {
    /// Returns the usage of a turn of which nothing is known.
    #[must_use]
    pub fn unknown() -> Usage {
        Usage { unknown: Unknown::TURN, ..Usage::default() }
    }

    /// Returns a usage that is known exactly.
    #[must_use]
    pub fn exactly(tokens: u64, money: Usd) -> Usage {
        Usage { tokens, money, ..Usage::default() }
    }

    /// Returns the amounts, whatever else is not known.
    #[must_use]
    pub fn amounts(self) -> Usage {
        Usage::exactly(self.tokens, self.money)
    }

    /// Returns the larger value of each amount of two accounts of the same work. What one of them
    /// knows is known.
    #[must_use]
    pub fn max(self, other: Usage) -> Usage {
        let more = if self.money < other.money { other } else { self };
        let (own, others) = (self.unknown, other.unknown);
        Usage {
            tokens: self.tokens.max(other.tokens),
            money: more.money,
            estimated: more.estimated,
            unknown: Unknown {
                tokens: own.tokens.min(others.tokens),
                money: own.money.min(others.money),
            },
        }
    }

    /// Adds what the agent itself has reported of the same turn: then it is no longer unknown.
    #[must_use]
    pub fn and_reported(mut self, report: Usage) -> Usage {
        if report.tokens > 0 {
            self.unknown.tokens = 0;
        }
        if report.money > Usd(0) {
            self.unknown.money = 0;
        }
        self + report
    }

    /// Returns the cost for people: `$0.10`, `≈ $0.10` where it is an estimate, `≥ $0.10` where some
    /// of it is unknown, or `unknown`.
    pub fn cost(self) -> String {
        match (self.unknown.money, self.money, self.estimated) {
            (0, money, Usd(0)) => money.to_string(),
            (0, money, _) => format!("≈ {money}"),
            (_, Usd(0), _) => "unknown".to_owned(),
            (_, money, _) => format!("≥ {money}"),
        }
    }

    /// Returns the cost for people, with the number of turns whose cost is unknown.
    pub fn cost_and_unknown(self) -> String {
        format!("{}{}", self.cost(), self.unknown_turns())
    }

    /// Returns `, 2 turns unknown` as the end of a cost that is known in part, or nothing.
    pub fn unknown_turns(self) -> String {
        match self.unknown.money {
            0 => String::new(),
            _ if self.money == Usd(0) => String::new(),
            1 => ", 1 turn unknown".to_owned(),
            turns => format!(", {turns} turns unknown"),
        }
    }

    /// Returns the number of tokens for people: `80`, `≥ 80` or `unknown`.
    pub fn count(self) -> String {
        match (self.unknown.tokens, self.tokens) {
            (0, tokens) => tokens.to_string(),
            (_, 0) => "unknown".to_owned(),
            (_, tokens) => format!("≥ {tokens}"),
        }
    }
}

impl Add for Unknown {
    type Output = Unknown;
    fn add(self, other: Unknown) -> Unknown {
        Unknown {
            tokens: self.tokens.saturating_add(other.tokens),
            money: self.money.saturating_add(other.money),
        }
    }
}

impl Add for Usage {
    type Output = Usage;
    fn add(self, other: Usage) -> Usage {
        let sum = |a: Usd, b: Usd| Usd(a.0.saturating_add(b.0));
        Usage {
            tokens: self.tokens.saturating_add(other.tokens),
            money: sum(self.money, other.money),
            estimated: sum(self.estimated, other.estimated),
            unknown: self.unknown + other.unknown,
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Usage) {
        *self = *self + other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_reads_as_people_write_it_and_adds_exactly() {
        assert_eq!(Usd::parse("5usd"), Ok(Usd(5_000_000)));
        assert_eq!(Usd::parse("$0.30"), Ok(Usd(300_000)));
        assert!(Usd::parse("-1usd").is_err());
        assert!(Usd::parse("lots").is_err());
        let third = Usage::exactly(1, Usd::parse("0.1").unwrap_or_default());
        assert_eq!((third + third + third).money, Usd(300_000));
    }

    #[test]
    fn b_05_an_unknown_cost_is_not_shown_as_zero() {
        let known = Usage::exactly(80, Usd(100_000));
        assert_eq!((known.cost(), known.count()), ("$0.10".into(), "80".into()));
        let unknown = Usage::unknown();
        assert_eq!((unknown.cost(), unknown.count()), ("unknown".into(), "unknown".into()));
        let both = known + unknown + unknown;
        assert_eq!((both.cost(), both.count()), ("≥ $0.10".into(), "≥ 80".into()));
        assert_eq!(both.cost_and_unknown(), "≥ $0.10, 2 turns unknown");
        let estimated = Usage { estimated: Usd(50_000), ..known };
        assert_eq!(estimated.cost(), "≈ $0.10");
        assert_eq!(unknown.and_reported(known), known);
        let said = serde_json::to_value(known).unwrap_or_default();
        assert_eq!(said, serde_json::json!({ "tokens": 80, "money": 0.1 }));
        let read: Usage = serde_json::from_value(said).unwrap_or_default();
        assert_eq!(read, known);
    }
}
