//! Reads a program's JSON by the rules of its profile.
//!
//! Nothing here fails: lines that are not JSON, too long or too deep are left out and counted,
//! since programs print warnings where they should not.

mod meter;
mod rule;
#[cfg(test)]
mod tests;

use serde_json::Value;
use stafette_core::{Time, Usd};

pub(crate) use meter::Item;
pub use meter::{Meter, Tokens, Totals};
pub use rule::{Emit, Rule, Wanted};

use crate::output::Lines;
use crate::profile::{Profile, Wall};

/// The longest line, in bytes.
const LINE: usize = 1024 * 1024;

/// The deepest nesting of a document.
const DEPTH: usize = 64;

/// The longest id of a session, in bytes.
const SESSION: usize = 200;

/// An event that a document stands for.
#[derive(Clone, PartialEq, Debug)]
pub enum Heard {
    /// The agent prints text.
    Text {
        text: String,
        /// True if it continues where the last text ended.
        partial: bool,
    },
    /// The agent was denied a tool.
    Denied { name: String },
    /// The agent uses a tool.
    Tool { name: String },
    /// The agent has used tokens or money.
    Usage(Count),
    /// The id of the program's own session, by which it can be continued.
    Session { id: String },
    Quota {
        /// The time at which it is available again, if it is stated.
        until: Option<Time>,
        message: String,
        /// True if the turn ends with it.
        ends: bool,
    },
    /// The program reports an error.
    Error {
        message: String,
        /// True if no further attempt would help.
        fatal: bool,
        /// True if the turn ends with it.
        ends: bool,
    },
    /// The program is done.
    Final {
        /// Its last text, if any.
        text: Option<String>,
        is_error: bool,
    },
}

/// A count of consumption.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Count {
    /// The tokens, if they are stated.
    pub tokens: Option<Tokens>,
    /// The money, if it is stated.
    pub cost: Option<Usd>,
    /// The model that used it, if it is stated.
    pub model: Option<String>,
    /// The item that is counted: a later count of the same item replaces this one.
    pub of: Option<String>,
    /// True if it is the total so far, and not an addition.
    pub total: bool,
}

/// Reads a stream of JSON documents, one on each line.
#[derive(Debug)]
pub struct Decoder {
    profile: Profile,
    lines: Lines,
    ignored: u64,
}

impl Decoder {
    /// A decoder by the rules of a profile.
    #[must_use]
    pub fn new(profile: &Profile) -> Self {
        Decoder { profile: profile.clone(), lines: Lines::new(LINE), ignored: 0 }
    }

    /// Takes the bytes of one read.
    pub fn push(&mut self, bytes: &[u8], wall: &Wall, mut each: impl FnMut(Heard)) {
        let (profile, ignored) = (&self.profile, &mut self.ignored);
        let dropped = self.lines.push(bytes, |line| read(profile, line, wall, ignored, &mut each));
        self.ignored += dropped;
    }

    /// Called at the end of the stream; its last line may have no line break.
    pub fn end(&mut self, wall: &Wall, mut each: impl FnMut(Heard)) {
        self.push(b"\n", wall, &mut each);
    }

    /// The number of lines that were not documents.
    pub fn ignored(&self) -> u64 {
        self.ignored
    }
}

fn read(
    profile: &Profile,
    line: &[u8],
    wall: &Wall,
    ignored: &mut u64,
    each: &mut impl FnMut(Heard),
) {
    let line = line.trim_ascii();
    if line.is_empty() {
        return;
    }
    match serde_json::from_slice::<Value>(line) {
        Ok(document @ Value::Object(_)) if depth(line) <= DEPTH => {
            decode(profile, &document, wall, each);
        }
        _ => *ignored += 1,
    }
}

/// The nesting depth of a document; brackets in its texts do not count.
fn depth(document: &[u8]) -> usize {
    let (mut depth, mut deepest, mut in_text, mut escaped) = (0_usize, 0, false, false);
    for byte in document {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_text => escaped = true,
            b'"' => in_text = !in_text,
            b'{' | b'[' if !in_text => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Reports the events of a document by the rules of a profile.
pub fn decode(profile: &Profile, document: &Value, wall: &Wall, each: &mut impl FnMut(Heard)) {
    for rule in profile.stream.rules.iter().filter(|rule| rule.fits(document)) {
        for value in rule.values(document) {
            meaning(profile, rule, value, wall, each);
        }
    }
}

fn meaning(
    profile: &Profile,
    rule: &Rule,
    value: &Value,
    wall: &Wall,
    each: &mut impl FnMut(Heard),
) {
    let at = |place: &Option<String>| place.as_ref().and_then(|place| value.pointer(place));
    let text = |place: &Option<String>| at(place).and_then(Value::as_str).map(str::to_owned);
    let sentence = rule.message.as_ref().filter(|message| message.contains(' '));
    let message = || {
        let found = sentence.cloned().or_else(|| text(&rule.message));
        found.or_else(|| text(&rule.text)).unwrap_or_default()
    };
    let mut complain = |message: String| {
        if let Some(used_up) = profile.used_up(&message, wall) {
            each(Heard::Quota { until: used_up.until, message, ends: rule.ends });
        } else {
            let fatal = rule.fatal || profile.is_fatal(&message);
            each(Heard::Error { message, fatal, ends: rule.ends });
        }
    };
    match rule.emit {
        Emit::Text => {
            if let Some(text) = text(&rule.text) {
                each(Heard::Text { text, partial: rule.partial });
            }
        }
        Emit::Tool => {
            let literal = rule.name.clone().filter(|name| !name.starts_with('/'));
            if let Some(name) = text(&rule.name).or(literal) {
                each(Heard::Tool { name });
            }
        }
        Emit::Denied => {
            if let Some(name) = text(&rule.name) {
                each(Heard::Denied { name });
            }
        }
        Emit::Session => {
            // It becomes an argument, so it must not look like an option.
            let plain = |id: &String| {
                id.len() <= SESSION
                    && id.starts_with(|c: char| c.is_ascii_alphanumeric())
                    && id.chars().all(|c| c.is_ascii_alphanumeric() || "-_.:".contains(c))
            };
            if let Some(id) = text(&rule.id).filter(plain) {
                each(Heard::Session { id });
            }
            if rule.model.is_some() {
                each(Heard::Usage(Count { model: text(&rule.model), ..Count::default() }));
            }
        }
        Emit::Usage => {
            if let Some(count) = count(profile, rule, value) {
                each(Heard::Usage(count));
            }
        }
        Emit::Quota => {
            let message = message();
            let said = at(&rule.resets).and_then(|value| crate::profile::reset_value(value, wall));
            let until = said.or_else(|| crate::profile::reset(&message, wall));
            each(Heard::Quota { until, message, ends: rule.ends });
        }
        Emit::Error => complain(message()),
        Emit::Final => {
            let is_error =
                at(&rule.is_error).map_or(rule.failed, |value| *value == Value::Bool(true));
            if is_error {
                complain(message());
            }
            if let Some(count) = count(profile, rule, value) {
                each(Heard::Usage(Count { total: true, ..count }));
            }
            each(Heard::Final { text: text(&rule.text), is_error });
        }
    }
}

fn count(profile: &Profile, rule: &Rule, value: &Value) -> Option<Count> {
    let text = |place: &Option<String>| {
        place.as_ref().and_then(|place| value.pointer(place)?.as_str()).map(str::to_owned)
    };
    let sum = |places: &[String]| -> Option<u64> {
        let counts = places.iter().filter_map(|place| value.pointer(place)?.as_u64());
        counts.reduce(u64::saturating_add)
    };
    let (input, output, cached) = (sum(&rule.input), sum(&rule.output), sum(&rule.cached));
    let tokens = (input.is_some() || output.is_some()).then(|| {
        let cached = cached.unwrap_or(0);
        let input = input.unwrap_or(0);
        let input = match profile.stream.input_includes_cached {
            true => input.saturating_sub(cached),
            false => input,
        };
        Tokens { input, output: output.unwrap_or(0), cached }
    });
    let cost = rule.cost.as_ref().and_then(|place| value.pointer(place)?.as_f64());
    let cost = cost.and_then(Usd::from_dollars);
    (tokens.is_some() || cost.is_some()).then(|| Count {
        tokens,
        cost,
        model: text(&rule.model),
        of: text(&rule.of),
        total: rule.total,
    })
}
