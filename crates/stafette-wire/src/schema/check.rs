//! Checks documents against the schemas that are published.
//!
//! It knows the part of JSON Schema (2020-12) that these schemas use, and no checker is made of a
//! schema that says more: nothing is published that is not enforced. A test of `stafette-core` holds
//! it against a complete implementation.

use serde_json::{Map, Value};
use stafette_model::Time;
use uuid::Uuid;

use super::{MAX_MESSAGE, MAX_QUOTE, Violation, shortened};

/// Keywords that a document need not obey.
const NOTES: [&str; 6] = ["$id", "$schema", "$defs", "title", "description", "default"];

/// A schema that documents are checked against.
#[derive(Debug)]
pub struct Checker {
    schema: Value,
}

impl Checker {
    /// Prepares a published schema.
    ///
    /// # Panics
    /// If the schema uses a keyword that is not enforced. The schemas are our own, and a test makes
    /// a checker of each.
    #[must_use]
    pub fn new(schema: Value) -> Self {
        demand_known(&schema);
        Checker { schema }
    }

    /// Returns all errors of a document, in the order of their places.
    pub fn violations(&self, value: &Value) -> Vec<Violation> {
        let mut walk = Walk { root: &self.schema, path: String::new(), found: Found::All(vec![]) };
        walk.check(&self.schema, value);
        let Found::All(mut violations) = walk.found else { return Vec::new() };
        violations.sort();
        violations.dedup();
        violations
    }
}

/// What a walk wants to know.
enum Found {
    /// Every error.
    All(Vec<Violation>),
    /// Only whether there is one.
    Any(bool),
}

/// One walk through a document.
struct Walk<'a> {
    root: &'a Value,
    /// JSON pointer to the value that is being checked.
    path: String,
    found: Found,
}

impl Walk<'_> {
    fn report(&mut self, message: impl FnOnce() -> String) {
        match &mut self.found {
            Found::Any(found) => *found = true,
            Found::All(found) => found.push(Violation {
                path: self.path.clone(),
                message: shortened(message(), MAX_MESSAGE),
            }),
        }
    }

    /// True if the value obeys a schema; nothing is reported.
    fn obeys(&self, schema: &Value, value: &Value) -> bool {
        let mut walk = Walk { root: self.root, path: String::new(), found: Found::Any(false) };
        walk.check(schema, value);
        matches!(walk.found, Found::Any(false))
    }

    fn descend(&mut self, schema: &Value, key: &str, value: &Value) {
        let parent = self.path.len();
        self.path.push('/');
        self.path.push_str(&key.replace('~', "~0").replace('/', "~1"));
        self.check(schema, value);
        self.path.truncate(parent);
    }

    fn check(&mut self, schema: &Value, value: &Value) {
        match schema {
            Value::Object(rules) => {
                rules.iter().for_each(|(keyword, rule)| self.apply(rules, keyword, rule, value));
            }
            Value::Bool(false) => self.report(|| format!("False schema does not allow {value}")),
            _ => {}
        }
    }

    fn apply(&mut self, rules: &Map<String, Value>, keyword: &str, rule: &Value, value: &Value) {
        match (keyword, value) {
            ("$ref", _) => {
                if let Some(schema) = target(self.root, rule) {
                    self.check(schema, value);
                }
            }
            ("type", _) => self.check_type(rule, value),
            ("const", _) if rule != value => self.report(|| format!("{rule} was expected")),
            ("enum", _) if !list(rule).contains(value) => self.report(|| unlisted(rule, value)),
            ("minimum", Value::Number(number)) if number.as_f64() < rule.as_f64() => {
                self.report(|| format!("{value} is less than the minimum of {rule}"));
            }
            ("maximum", Value::Number(number)) if number.as_f64() > rule.as_f64() => {
                self.report(|| format!("{value} is greater than the maximum of {rule}"));
            }
            ("minLength", Value::String(text)) => {
                let least = rule.as_u64().unwrap_or(0);
                if (text.chars().take(1 << 20).count() as u64) < least {
                    let plural = if least == 1 { "" } else { "s" };
                    self.report(|| format!("{value} is shorter than {least} character{plural}"));
                }
            }
            ("pattern", Value::String(text)) if !matches(rule.as_str().unwrap_or(""), text) => {
                self.report(|| format!("{value} does not match {rule}"));
            }
            ("format", Value::String(text)) if !has_format(rule.as_str().unwrap_or(""), text) => {
                self.report(|| format!("{value} is not a {rule}"));
            }
            ("required", Value::Object(fields)) => {
                for key in list(rule).iter().filter_map(Value::as_str) {
                    if !fields.contains_key(key) {
                        self.report(|| format!("{key:?} is a required property"));
                    }
                }
            }
            ("properties", Value::Object(fields)) => {
                for (key, schema) in rule.as_object().into_iter().flatten() {
                    if let Some(value) = fields.get(key) {
                        self.descend(schema, key, value);
                    }
                }
            }
            ("additionalProperties", Value::Object(fields)) => {
                self.check_others(rules, rule, fields);
            }
            ("items", Value::Array(items)) => {
                for (index, item) in items.iter().enumerate() {
                    self.descend(rule, &index.to_string(), item);
                }
            }
            ("allOf", _) => list(rule).iter().for_each(|schema| self.check(schema, value)),
            ("anyOf", _) if !list(rule).iter().any(|schema| self.obeys(schema, value)) => {
                self.report(|| {
                    format!("{value} is not valid under any of the schemas listed in the 'anyOf' keyword")
                });
            }
            ("not", _) if self.obeys(rule, value) => {
                self.report(|| format!("{rule} is not allowed for {value}"));
            }
            ("if", _) => {
                if let Some(then) = rules.get("then")
                    && self.obeys(rule, value)
                {
                    self.check(then, value);
                }
            }
            _ => {}
        }
    }

    fn check_type(&mut self, rule: &Value, value: &Value) {
        let names = match rule {
            Value::Array(names) => names,
            name => std::slice::from_ref(name),
        };
        if names.iter().filter_map(Value::as_str).any(|name| is_a(name, value)) {
            return;
        }
        self.report(|| {
            let mut quoted: Vec<String> = names.iter().map(Value::to_string).collect();
            quoted.sort();
            let types = if rule.is_array() { "types" } else { "type" };
            format!("{value} is not of {types} {}", quoted.join(", "))
        });
    }

    /// Checks the fields that `properties` does not name.
    fn check_others(
        &mut self,
        rules: &Map<String, Value>,
        rule: &Value,
        fields: &Map<String, Value>,
    ) {
        let named = rules.get("properties").and_then(Value::as_object);
        let others =
            fields.iter().filter(|(key, _)| !named.is_some_and(|it| it.contains_key(*key)));
        if *rule != Value::Bool(false) {
            others.for_each(|(key, value)| self.descend(rule, key, value));
            return;
        }
        let keys: Vec<String> = others.map(|(key, _)| format!("'{key}'")).collect();
        if !keys.is_empty() {
            let were = if keys.len() == 1 { "was" } else { "were" };
            let keys = keys.join(", ");
            let say =
                || format!("Additional properties are not allowed ({keys} {were} unexpected)");
            self.report(say);
        }
    }
}

fn list(rule: &Value) -> &[Value] {
    rule.as_array().map_or(&[], Vec::as_slice)
}

/// Returns the definition that a reference names: `#/$defs/NAME`.
fn target<'a>(root: &'a Value, reference: &Value) -> Option<&'a Value> {
    root.pointer(reference.as_str()?.strip_prefix('#')?)
}

fn is_a(name: &str, value: &Value) -> bool {
    match name {
        "integer" => match value {
            Value::Number(number) => {
                number.is_i64()
                    || number.is_u64()
                    || number.as_f64().is_some_and(|number| number.fract() == 0.0)
            }
            _ => false,
        },
        "number" => value.is_number(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => value.is_null(),
    }
}

/// Describes a word that is none of several, with all of them: the person who has to fix it cannot
/// see the schema.
fn unlisted(options: &Value, found: &Value) -> String {
    let options: Vec<String> = list(options).iter().map(Value::to_string).collect();
    format!("{} is not one of {}", shortened(found.to_string(), MAX_QUOTE), options.join(", "))
}

fn has_format(format: &str, text: &str) -> bool {
    match format {
        "uuid" => text.len() == 36 && Uuid::try_parse(text).is_ok(),
        "date-time" => is_date_time(text),
        // The others name the size of a number.
        _ => true,
    }
}

/// True for RFC 3339; the calendar's parser alone takes other forms too.
fn is_date_time(text: &str) -> bool {
    let shape = |text: &str| -> String {
        text.chars().map(|it| if it.is_ascii_digit() { '0' } else { it }).collect()
    };
    let Some((moment, rest)) = text.split_at_checked(19) else { return false };
    let rest =
        match rest.strip_prefix('.').map(|rest| rest.split_once(|it: char| !it.is_ascii_digit())) {
            None => rest,
            Some(Some((digits, _))) if !digits.is_empty() => &rest[1 + digits.len()..],
            Some(_) => return false,
        };
    shape(moment).eq_ignore_ascii_case("0000-00-00T00:00:00")
        && ["Z", "z", "+00:00", "-00:00"].contains(&&*shape(rest))
        && Time::parse(text).is_some()
}

/// True if all of `text` is one of a pattern's alternatives. The patterns that are known are
/// `^(…|…)$` of plain characters and `[0-9]+`.
fn matches(pattern: &str, text: &str) -> bool {
    alternatives(pattern).is_some_and(|mut all| all.any(|one| is_all_of(one, text)))
}

fn alternatives(pattern: &str) -> Option<impl Iterator<Item = &str>> {
    let inner = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let inner = inner.strip_prefix('(').and_then(|it| it.strip_suffix(')')).unwrap_or(inner);
    let plain = |it: char| it.is_ascii_alphanumeric() || " _-|".contains(it);
    inner.replace(NUMBER, "").chars().all(plain).then(|| inner.split('|'))
}

const NUMBER: &str = "[0-9]+";

fn is_all_of(pattern: &str, text: &str) -> bool {
    if let Some(rest) = pattern.strip_prefix(NUMBER) {
        let after = text.trim_start_matches(|it: char| it.is_ascii_digit());
        return after.len() < text.len() && is_all_of(rest, after);
    }
    match pattern.chars().next() {
        None => text.is_empty(),
        Some(letter) => text
            .strip_prefix(letter)
            .is_some_and(|text| is_all_of(&pattern[letter.len_utf8()..], text)),
    }
}

/// Panics if a part of a schema is not enforced.
fn demand_known(schema: &Value) {
    for (keyword, rule) in schema.as_object().into_iter().flatten() {
        match keyword.as_str() {
            "properties" | "$defs" => {
                rule.as_object().into_iter().flatten().for_each(|(_, schema)| demand_known(schema));
            }
            "allOf" | "anyOf" => list(rule).iter().for_each(demand_known),
            "items" | "additionalProperties" | "not" | "if" | "then" => demand_known(rule),
            "pattern" => {
                let known = rule.as_str().is_some_and(|pattern| alternatives(pattern).is_some());
                assert!(known, "no pattern of the known kind: {rule}");
            }
            "type" | "enum" | "const" | "minimum" | "maximum" | "minLength" | "format"
            | "required" | "$ref" => {}
            "unevaluatedProperties" if *rule == Value::Bool(true) => {}
            other => assert!(NOTES.contains(&other), "no keyword that is enforced: {other}"),
        }
    }
}
