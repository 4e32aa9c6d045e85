//! Settings files: parses a TOML file whose keys are those of a type, and records the position of
//! each value.
//!
//! Invariant: all mistakes are reported, each at its line and column, and no text of the file can
//! steer the terminal that shows them.

mod diagnostic;
mod spans;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::de::{DeTable, DeValue, Deserializer, Error};

use stafette_text::nearest;

pub use diagnostic::{Diagnostic, Position, Severity, plain, render};
pub use spans::{Spans, child};

/// The maximum size of a file, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// The maximum number of reported syntax errors: further ones follow from the first.
const MAX_SYNTAX_ERRORS: usize = 5;

/// Parses a TOML file whose keys are those of a type, and records the position of each value.
///
/// # Errors
/// All problems that prevent this: syntax, unknown keys, wrong or missing values.
pub fn document<T: DeserializeOwned + JsonSchema>(
    text: &str,
) -> Result<(T, Spans), Vec<Diagnostic>> {
    if text.len() > MAX_BYTES {
        let message = format!("the file has {} bytes; {MAX_BYTES} are allowed", text.len());
        return Err(vec![Diagnostic::error("too-large", "", message)]);
    }
    let (mut table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        return Err(errors.iter().take(MAX_SYNTAX_ERRORS).map(syntax_error).collect());
    }
    let spans = Spans::of(table.get_ref());
    // Unknown keys are removed one by one, so that all of them are reported and none hides a
    // mistake in a value.
    let mut diagnostics = Vec::new();
    let schema = schemars::schema_for!(T).to_value();
    let keys = Keys { root: &schema };
    keys.prune(table.get_mut(), &schema, "", &mut diagnostics);

    match T::deserialize(Deserializer::from(table)) {
        Ok(value) if diagnostics.is_empty() => return Ok((value, spans)),
        Ok(_) => {}
        Err(error) => diagnostics.push(value_error(&error, &spans)),
    }
    diagnostics.sort_by_key(|diagnostic| diagnostic.span.as_ref().map(|span| span.start));
    Err(diagnostics)
}

fn syntax_error(error: &Error) -> Diagnostic {
    Diagnostic::error("syntax", "", error.message()).at(error.span())
}

fn value_error(error: &Error, spans: &Spans) -> Diagnostic {
    let message = error.message();
    let (code, message) = if message.starts_with("missing field") {
        ("missing-key", message.replacen("missing field", "missing key", 1))
    } else if message.ends_with("untagged enum SpanText") {
        ("bad-value", "expected a length of time, such as \"30s\" or \"2h\"".to_owned())
    } else {
        ("bad-value", in_words_of_the_file(message))
    };
    let path = error.span().map(|span| spans.path_at(&span)).unwrap_or_default();
    Diagnostic::error(code, &path, message).at(error.span())
}

/// Translates type names of the parser to those that people know from the file.
fn in_words_of_the_file(message: &str) -> String {
    const WORDS: [(&str, &str); 6] = [
        ("u32", "a whole number"),
        ("u64", "a whole number"),
        ("f64", "a number"),
        ("a sequence", "a list"),
        ("a map", "a table"),
        ("a boolean", "true or false"),
    ];
    let Some((found, expected)) = message.rsplit_once(", expected ") else {
        return message.to_owned();
    };
    // "struct Header" and similar: only tables are structs.
    let word = WORDS.iter().find(|(theirs, _)| *theirs == expected).map(|(_, ours)| *ours);
    let word = word.or_else(|| expected.starts_with("struct ").then_some("a table"));
    format!("{found}, expected {}", word.unwrap_or(expected))
}

/// The keys that a file may have, from the schema of its type.
struct Keys<'a> {
    root: &'a Value,
}

impl Keys<'_> {
    /// Removes and reports the keys that are not in the schema.
    fn prune(
        &self,
        table: &mut DeTable<'_>,
        schema: &Value,
        path: &str,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        let schema = self.resolve(schema);
        let properties = schema.get("properties").and_then(Value::as_object);
        let mut unknown = Vec::new();
        for (key, value) in table.iter_mut() {
            let path = child(path, key.get_ref());
            let known = properties.and_then(|properties| properties.get(&**key.get_ref()));
            match (known.or_else(|| schema.get("additionalProperties")), properties) {
                (Some(inner), _) if *inner != Value::Bool(false) => {
                    self.descend(value.get_mut(), inner, &path, diagnostics);
                }
                (_, Some(properties)) => {
                    let message = format!("unknown key `{}`", key.get_ref());
                    let help = self.advice(key.get_ref(), properties);
                    let diagnostic = Diagnostic::error("unknown-key", &path, message).help(help);
                    diagnostics.push(diagnostic.at(Some(key.span())));
                    unknown.push(key.clone());
                }
                _ => {}
            }
        }
        for key in &unknown {
            table.remove(key);
        }
    }

    fn descend(
        &self,
        value: &mut DeValue<'_>,
        schema: &Value,
        path: &str,
        diagnostics: &mut Vec<Diagnostic>,
    ) {
        match value {
            DeValue::Table(table) => self.prune(table, schema, path, diagnostics),
            DeValue::Array(items) => {
                let Some(inner) = self.resolve(schema).get("items") else {
                    return;
                };
                for (index, item) in items.iter_mut().enumerate() {
                    self.descend(item.get_mut(), inner, &format!("{path}/{index}"), diagnostics);
                }
            }
            _ => {}
        }
    }

    fn resolve<'s>(&'s self, schema: &'s Value) -> &'s Value {
        // An optional value is written as a choice between itself and null.
        let optional = schema.pointer("/anyOf/0/$ref");
        let pointer = schema.get("$ref").or(optional).and_then(Value::as_str);
        pointer
            .and_then(|pointer| self.root.pointer(pointer.trim_start_matches('#')))
            .unwrap_or(schema)
    }

    fn advice(&self, key: &str, properties: &serde_json::Map<String, Value>) -> String {
        let known = || properties.keys().map(String::as_str);
        if let Some(meant) = nearest(key, known()) {
            return format!("did you mean `{meant}`?");
        }
        let sections = self.root.get("properties").and_then(Value::as_object);
        let home = sections.into_iter().flatten().find(|(_, schema)| {
            self.resolve(schema).get("properties").is_some_and(|inside| inside.get(key).is_some())
        });
        match home {
            Some((section, _)) => format!("`{key}` belongs in `[{section}]`"),
            None => format!("known here: {}", known().collect::<Vec<_>>().join(", ")),
        }
    }
}
