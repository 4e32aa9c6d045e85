//! Rules for the meaning of a JSON document.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// The meaning of one kind of document.
///
/// Places are JSON pointers. With [`Rule::each`] everything but [`Rule::when`], [`Rule::exists`]
/// and [`Rule::absent`] is looked up in each of the values found there.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// The values that the document must have, by place; a list means one of several, a text with `*`
    /// at its end all that begin with it.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub when: BTreeMap<String, Wanted>,
    /// Places where the document must have a value other than null.
    #[serde(default)]
    pub exists: Vec<String>,
    /// Places where the document must have no value, or null.
    #[serde(default)]
    pub absent: Vec<String>,
    /// The place of the values that the rule is about; `*` is each item of a list.
    #[serde(default)]
    pub each: Option<String>,
    /// The fields that such a value must have.
    #[serde(default, rename = "where")]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub inside: BTreeMap<String, Wanted>,
    /// The event that the document stands for.
    pub emit: Emit,
    /// The place of the text, for `text` and `final`.
    #[serde(default)]
    pub text: Option<String>,
    /// True if the text continues where the last one ended.
    #[serde(default)]
    pub partial: bool,
    /// The place of the name, for `tool`, or the name itself when it is no place.
    #[serde(default)]
    pub name: Option<String>,
    /// The place of the id, for `session`.
    #[serde(default)]
    pub id: Option<String>,
    /// The place of the model's name.
    #[serde(default)]
    pub model: Option<String>,
    /// The places of the counts of input tokens; they are added up.
    #[serde(default)]
    pub input: Vec<String>,
    /// The places of the counts of output tokens; they are added up.
    #[serde(default)]
    pub output: Vec<String>,
    /// The places of the counts of tokens read from a cache; they are added up.
    #[serde(default)]
    pub cached: Vec<String>,
    /// The place of the cost, in dollars.
    #[serde(default)]
    pub cost: Option<String>,
    /// The place of the name of the counted item: a later count of the same item replaces it.
    #[serde(default)]
    pub of: Option<String>,
    /// True if the usage is the total so far, and not an addition.
    #[serde(default)]
    pub total: bool,
    /// The place of the message, for `error` and `quota`, or the message itself when it is a
    /// sentence.
    #[serde(default)]
    pub message: Option<String>,
    /// The place of the time at which a quota is available again.
    #[serde(default)]
    pub resets: Option<String>,
    /// True if no further attempt would help.
    #[serde(default)]
    pub fatal: bool,
    /// True if the program tries the same again and again: its turn ends with this error or quota.
    #[serde(default)]
    pub ends: bool,
    /// The place of the flag for an end with an error, for `final`.
    #[serde(default)]
    pub is_error: Option<String>,
    /// True if the end is an error, where the document has no flag.
    #[serde(default)]
    pub failed: bool,
}

/// The event that a document stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Emit {
    /// The agent prints text.
    Text,
    /// The agent uses a tool.
    Tool,
    /// The agent was denied a tool.
    Denied,
    /// The agent has used tokens or money.
    Usage,
    /// The program's own session has an id.
    Session,
    /// The quota is used up.
    Quota,
    /// The program reports an error.
    Error,
    /// The program is done.
    Final,
}

/// A required value, or several of which one is required.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Wanted {
    OneOf(Vec<Value>),
    Exactly(Value),
}

impl Wanted {
    fn is(&self, value: &Value) -> bool {
        match self {
            Wanted::OneOf(values) => values.iter().any(|wanted| is(wanted, value)),
            Wanted::Exactly(wanted) => is(wanted, value),
        }
    }
}

impl Rule {
    /// True if the rule matches this document.
    pub(super) fn fits(&self, document: &Value) -> bool {
        let exists = |place: &String| document.pointer(place).is_some_and(|value| !value.is_null());
        says(document, &self.when)
            && self.exists.iter().all(exists)
            && !self.absent.iter().any(exists)
    }

    /// The values of a document that the rule is about.
    pub(super) fn values<'a>(&self, document: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![document];
        for part in self.each.iter().flat_map(|each| each.split('/').skip(1)) {
            found = match part {
                "*" => found.into_iter().filter_map(Value::as_array).flatten().collect(),
                part => {
                    let place = format!("/{part}");
                    found.into_iter().filter_map(|value| value.pointer(&place)).collect()
                }
            };
        }
        found.retain(|value| says(value, &self.inside));
        found
    }

    /// The mistakes in the rule.
    pub(crate) fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let counts = !(self.input.is_empty() && self.output.is_empty() && self.cost.is_none());
        let missing = match self.emit {
            Emit::Text => self.text.is_none().then_some("text"),
            Emit::Tool | Emit::Denied => self.name.is_none().then_some("name"),
            Emit::Session => (self.id.is_none() && self.model.is_none()).then_some("id or model"),
            Emit::Usage => (!counts).then_some("input, output or cost"),
            Emit::Quota | Emit::Error | Emit::Final => None,
        };
        mistakes.extend(missing.map(|key| format!("it does not say where its {key} is")));
        if self.when.is_empty() && self.exists.is_empty() {
            mistakes.push("it fits every document: say `when`".to_owned());
        }
        if self.each.is_none() && !self.inside.is_empty() {
            mistakes.push("`where` needs `each`".to_owned());
        }
        let places = [&self.each, &self.text, &self.id, &self.model, &self.cost, &self.of]
            .into_iter()
            .chain([&self.resets, &self.is_error])
            .flatten()
            .chain(self.message.as_ref().filter(|message| !message.contains(' ')))
            .chain(self.when.keys())
            .chain(self.inside.keys())
            .chain(
                [&self.exists, &self.absent, &self.input, &self.output, &self.cached]
                    .into_iter()
                    .flatten(),
            );
        for place in places.filter(|place| !place.starts_with('/')) {
            mistakes.push(format!("`{place}` is no place: write it with a slash, as in `/type`"));
        }
        mistakes
    }
}

fn is(wanted: &Value, value: &Value) -> bool {
    match wanted.as_str().and_then(|text| text.strip_suffix('*')) {
        Some(start) => value.as_str().is_some_and(|text| text.starts_with(start)),
        None => wanted == value,
    }
}

fn says(value: &Value, wanted: &BTreeMap<String, Wanted>) -> bool {
    wanted.iter().all(|(place, wanted)| value.pointer(place).is_some_and(|value| wanted.is(value)))
}
