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
#[serde(untagged)]
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
    /// The tokens read and written.
    pub tokens: u64,
    /// The money spent, in US dollars.
    pub money: Usd,
}

impl Usage {
    /// Returns the larger value of each field.
    #[must_use]
    pub fn max(self, other: Usage) -> Usage {
        Usage { tokens: self.tokens.max(other.tokens), money: self.money.max(other.money) }
    }
}

impl Add for Usage {
    type Output = Usage;
    fn add(self, other: Usage) -> Usage {
        Usage {
            tokens: self.tokens.saturating_add(other.tokens),
            money: Usd(self.money.0.saturating_add(other.money.0)),
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
        let third = Usage { money: Usd::parse("0.1").unwrap_or_default(), tokens: 1 };
        assert_eq!((third + third + third).money, Usd(300_000));
    }
}
