//! Rules that say what a JSON document means.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// What one kind of document means.
///
/// Places are JSON pointers. With [`Rule::each`] everything but [`Rule::when`], [`Rule::exists`] and
/// [`Rule::absent`] is looked up in each of the values found there.
#[derive(Clone, PartialEq, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// What the document must say, by place; one of several when it is a list.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub when: BTreeMap<String, Wanted>,
    /// Places where the document must have something other than null.
    #[serde(default)]
    pub exists: Vec<String>,
    /// Places where the document must have nothing, or null.
    #[serde(default)]
    pub absent: Vec<String>,
    /// Where the values are that it means something for; `*` is each item of a list.
    #[serde(default)]
    pub each: Option<String>,
    /// What such a value must say.
    #[serde(default, rename = "where")]
    #[schemars(with = "BTreeMap<String, Value>")]
    pub inside: BTreeMap<String, Wanted>,
    /// What it means.
    pub emit: Emit,
    /// Where the text is, for `text` and `final`.
    #[serde(default)]
    pub text: Option<String>,
    /// Whether the text goes on where the last one ended.
    #[serde(default)]
    pub partial: bool,
    /// Where the name is, for `tool`, or the name itself when it is no place.
    #[serde(default)]
    pub name: Option<String>,
    /// Where the id is, for `session`.
    #[serde(default)]
    pub id: Option<String>,
    /// Where the model's name is.
    #[serde(default)]
    pub model: Option<String>,
    /// Where the counts of tokens read are; they are added up.
    #[serde(default)]
    pub input: Vec<String>,
    /// Where the counts of tokens written are; they are added up.
    #[serde(default)]
    pub output: Vec<String>,
    /// Where the counts of tokens read from a cache are; they are added up.
    #[serde(default)]
    pub cached: Vec<String>,
    /// Where the cost is, in dollars.
    #[serde(default)]
    pub cost: Option<String>,
    /// Where the name of what the usage is of stands: a later usage of the same replaces it.
    #[serde(default)]
    pub of: Option<String>,
    /// Whether the usage is all so far, and not what was added.
    #[serde(default)]
    pub total: bool,
    /// Where the message is, for `error` and `quota`.
    #[serde(default)]
    pub message: Option<String>,
    /// Where the moment is at which a quota is there again.
    #[serde(default)]
    pub resets: Option<String>,
    /// Whether no further try would help.
    #[serde(default)]
    pub fatal: bool,
    /// Where it says whether the end is a bad one, for `final`.
    #[serde(default)]
    pub is_error: Option<String>,
    /// Whether the end is a bad one, where the document does not say.
    #[serde(default)]
    pub failed: bool,
}

/// What a document can mean.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Emit {
    /// The agent speaks.
    Text,
    /// It uses a tool.
    Tool,
    /// It has used tokens or money.
    Usage,
    /// Its own session has an id.
    Session,
    /// Its quota is used up.
    Quota,
    /// Something went wrong.
    Error,
    /// It is done.
    Final,
}

/// A value that is wanted, or several of which one is.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(untagged)]
pub enum Wanted {
    /// One of these.
    OneOf(Vec<Value>),
    /// This one.
    Exactly(Value),
}

impl Wanted {
    fn is(&self, value: &Value) -> bool {
        match self {
            Wanted::OneOf(values) => values.contains(value),
            Wanted::Exactly(wanted) => wanted == value,
        }
    }
}

impl Rule {
    /// Whether it is about this document.
    pub(super) fn fits(&self, document: &Value) -> bool {
        let exists = |place: &String| document.pointer(place).is_some_and(|value| !value.is_null());
        says(document, &self.when)
            && self.exists.iter().all(exists)
            && !self.absent.iter().any(exists)
    }

    /// The values of a document that it means something for.
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

    /// What is wrong with it.
    pub(crate) fn mistakes(&self) -> Vec<String> {
        let mut mistakes = Vec::new();
        let counts = !(self.input.is_empty() && self.output.is_empty() && self.cost.is_none());
        let missing = match self.emit {
            Emit::Text => self.text.is_none().then_some("text"),
            Emit::Tool => self.name.is_none().then_some("name"),
            Emit::Session => self.id.is_none().then_some("id"),
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
            .chain([&self.message, &self.resets, &self.is_error])
            .flatten()
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

fn says(value: &Value, wanted: &BTreeMap<String, Wanted>) -> bool {
    wanted.iter().all(|(place, wanted)| value.pointer(place).is_some_and(|value| wanted.is(value)))
}
