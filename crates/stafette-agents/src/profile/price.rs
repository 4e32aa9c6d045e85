//! The prices of models, for programs that report only tokens.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use stafette_core::Usd;

use crate::stream::Tokens;

/// The prices of models.
#[derive(Clone, PartialEq, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Price {
    /// The model to assume when the program does not name one.
    pub model: Option<String>,
    /// Dollars per million tokens, by the beginning of a model's name.
    pub models: BTreeMap<String, Rate>,
}

/// The price of a million tokens, in dollars.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rate {
    /// Dollars per million input tokens.
    pub input: f64,
    /// Dollars per million output tokens.
    pub output: f64,
    /// Dollars per million tokens read from a cache.
    #[serde(default)]
    pub cached: f64,
}

impl Price {
    /// The cost of these tokens of a model; `None` for a model that is not listed.
    pub fn of(&self, model: Option<&str>, tokens: Tokens) -> Option<Usd> {
        let model = model.or(self.model.as_deref()).unwrap_or_default();
        let listed = self.models.iter().filter(|(name, _)| model.starts_with(name.as_str()));
        let (_, rate) = listed.max_by_key(|(name, _)| name.len())?;
        let millionths = tokens.input as f64 * rate.input
            + tokens.output as f64 * rate.output
            + tokens.cached as f64 * rate.cached;
        Usd::from_dollars(millionths / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_name_that_fits_decides() {
        let price: Price = toml::from_str(
            "model = \"big\"\n[models]\nbig = { input = 1, output = 10, cached = 0.1 }\n\
             big-mini = { input = 0.5, output = 1 }\n",
        )
        .unwrap();
        let tokens = Tokens { input: 1_000_000, output: 100_000, cached: 1_000_000 };
        assert_eq!(price.of(Some("big-2026"), tokens), Some(Usd(2_100_000)));
        assert_eq!(price.of(Some("big-mini-2"), tokens), Some(Usd(600_000)));
        assert_eq!(price.of(None, tokens), Some(Usd(2_100_000)));
        assert_eq!(price.of(Some("other"), tokens), None);
    }
}
