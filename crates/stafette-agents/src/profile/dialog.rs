//! What a program shows in its terminal when it waits for a decision, and the keys that answer it.

use schemars::JsonSchema;
use serde::Deserialize;

use super::phrase;

/// A question of a program that is answered without a person: whether to trust the folder of a
/// workflow that its user has trusted, or which colours to use.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dialog {
    /// Phrases on its screen, of which one shows that it is there.
    pub shows: Vec<String>,
    /// The beginning of the option to choose from its menu; without it, Enter is pressed.
    #[serde(default)]
    pub choose: Option<String>,
}

/// A possible answer to a question that has no menu.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DialogAnswer {
    /// The name that people see.
    pub name: String,
    /// The keys to press, one after the other.
    pub keys: Vec<Press>,
}

/// A key to press.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Press {
    /// The key Enter.
    Enter,
    /// The key Escape.
    Esc,
    /// The arrow that points down.
    Down,
    /// The arrow that points up.
    Up,
    /// The arrow that points to the right.
    Right,
    /// The letter Y.
    Y,
    /// The letter N.
    N,
}

impl Press {
    /// The bytes that the terminal sends for it.
    pub(crate) fn bytes(self) -> &'static [u8] {
        match self {
            Press::Enter => b"\r",
            Press::Esc => b"\x1b",
            Press::Down => b"\x1b[B",
            Press::Up => b"\x1b[A",
            Press::Right => b"\x1b[C",
            Press::Y => b"y",
            Press::N => b"n",
        }
    }
}

impl Dialog {
    /// True if the screen shows it.
    pub(crate) fn is_shown(&self, screen: &str) -> bool {
        phrase::any(&self.shows, screen)
    }
}
