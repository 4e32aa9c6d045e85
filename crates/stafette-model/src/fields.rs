//! Values that agents pass to each other, as a JSON object: their size, their types, and cutting
//! them to the size limit.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::{Fields, HandoffId, MissingInput};

/// The maximum size of a handoff's inputs, or of one answer, in bytes.
pub const MAX: usize = 1024 * 1024;

/// The number of bytes that remain of a value that was cut.
const HEAD: usize = 512;

/// Smaller values are not worth cutting: the note in their place would be as long.
const WORTH: usize = 2 * HEAD;

/// Returns the approximate size of the fields as JSON, in bytes, without serialising them.
pub fn size(fields: &Fields) -> usize {
    fields.iter().map(|(key, value)| key.len() + size_of(value)).sum()
}

/// Returns the approximate size of the value as JSON, in bytes, without serialising it.
pub fn size_of(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size_of(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(key, value)| key.len() + size_of(value) + 4).sum::<usize>() + 2
        }
    }
}

/// Returns the keys whose values must be cut so that `all` fit together: those with the most bytes
/// first, and requested ones last.
pub fn surplus<'a>(
    all: impl IntoIterator<Item = &'a Fields>,
    asked: &[MissingInput],
) -> Vec<String> {
    let mut bytes = 0;
    let mut spare: BTreeMap<&String, usize> = BTreeMap::new();
    for (key, value) in all.into_iter().flatten() {
        let of_value = size_of(value);
        bytes += key.len() + of_value;
        if of_value > WORTH {
            *spare.entry(key).or_default() += of_value - WORTH;
        }
    }
    let is_asked = |key: &str| asked.iter().any(|input| input.key == key);
    let mut largest: Vec<(&String, usize)> = spare.into_iter().collect();
    largest.sort_by_key(|(key, spare)| (is_asked(key), Reverse(*spare)));
    let mut found = Vec::new();
    for (key, spare) in largest {
        if bytes <= MAX {
            break;
        }
        bytes -= spare;
        found.push(key.clone());
    }
    found
}

/// Replaces the values of these keys that are too large with a note: their size, their beginning,
/// and the handoff whose record has them whole.
pub fn cut(fields: &mut Fields, keys: &[String], whole: impl Fn(&str, &Value) -> HandoffId) {
    for (key, value) in fields.iter_mut().filter(|(key, _)| keys.contains(*key)) {
        let bytes = size_of(value);
        if bytes <= WORTH {
            continue;
        }
        let from = whole(key, value);
        let text = match &*value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let head = &text[..text.floor_char_boundary(HEAD)];
        *value = json!({ "$cut": { "handoff": from, "key": key, "bytes": bytes, "head": head } });
    }
}

/// Converts a value to the requested type where possible: people type text, and agents quote
/// numbers.
///
/// # Errors
/// The expected type.
pub fn fit(expected: &str, value: &Value) -> Result<Value, String> {
    let wanted = expected.trim().to_ascii_lowercase();
    if let Some(item) = wanted.strip_suffix("[]") {
        let items: Vec<Value> = match value {
            Value::Array(items) => items.clone(),
            Value::String(text) => {
                text.split(',').map(|part| Value::String(part.trim().to_owned())).collect()
            }
            _ => return Err("a list".to_owned()),
        };
        let items: Result<Vec<Value>, String> = items.iter().map(|it| fit(item, it)).collect();
        return items
            .map(Value::Array)
            .map_err(|expected| format!("a list, each of it {expected}"));
    }
    let read = |text: &str| serde_json::from_str::<Value>(text.trim()).ok();
    let parsed = match value {
        Value::String(text) if !matches!(wanted.as_str(), "string" | "text") => read(text),
        _ => None,
    };
    let value = parsed.as_ref().unwrap_or(value);
    let (fits, expected) = match wanted.as_str() {
        "string" | "text" => (!value.is_array() && !value.is_object() && !value.is_null(), "text"),
        "number" | "float" => (value.is_number(), "a number"),
        "integer" | "int" => (value.is_i64() || value.is_u64(), "a whole number"),
        "boolean" | "bool" => (value.is_boolean(), "true or false"),
        "object" => (value.is_object(), "an object"),
        "array" | "list" => (value.is_array(), "a list"),
        // A type name of the workflow's own: its meaning is unknown here.
        _ => (true, ""),
    };
    if fits { Ok(value.clone()) } else { Err(expected.to_owned()) }
}

/// Converts the requested values to their types.
///
/// # Errors
/// A complaint for each value that cannot be converted.
pub fn fit_all(asked: &[MissingInput], fields: &mut Fields) -> Result<(), Vec<String>> {
    let mut complaints = Vec::new();
    for input in asked {
        let Some(value) = fields.get_mut(&input.key) else { continue };
        match fit(&input.expected_type, value) {
            Ok(fitting) => *value = fitting,
            Err(expected) => complaints.push(format!("{} should be {expected}", input.key)),
        }
    }
    if complaints.is_empty() { Ok(()) } else { Err(complaints) }
}

/// Returns an example of how a person can enter the requested values.
pub fn example(asked: &[MissingInput]) -> String {
    let one = |input: &MissingInput| {
        let value = match input.expected_type.trim().to_ascii_lowercase().as_str() {
            "number" | "float" | "integer" | "int" => "1".to_owned(),
            "boolean" | "bool" => "true".to_owned(),
            "object" => "'{}'".to_owned(),
            list if list.ends_with("[]") => "A,B".to_owned(),
            _ => "…".to_owned(),
        };
        format!("{}={value}", shell_word(&input.key))
    };
    asked.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// Returns `text` as one word of a command line: what agents wrote must not act when a person copies
/// the line to a shell.
pub fn shell_word(text: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./=:@%+,…".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_17_a_word_of_a_command_line_is_one_word() {
        for (text, word) in [
            ("keep", "keep"),
            ("a b", "'a b'"),
            ("yes; touch x", "'yes; touch x'"),
            ("it's $(x)", r"'it'\''s $(x)'"),
            ("", "''"),
        ] {
            assert_eq!(shell_word(text), word);
        }
        let key = "a; b".to_owned();
        let (expected_type, description) = (String::new(), String::new());
        let asked = MissingInput { key, expected_type, description, source: None };
        assert_eq!(example(&[asked]), "'a; b'=…");
    }

    #[test]
    fn s2_07_values_are_read_as_what_was_asked_for() {
        for (expected, given, read) in [
            ("number", json!("9"), Ok(json!(9))),
            ("number", json!("9 bn"), Err("a number".to_owned())),
            ("string[]", json!("A, B"), Ok(json!(["A", "B"]))),
            ("string[]", json!(["A"]), Ok(json!(["A"]))),
            ("number[]", json!("1,x"), Err("a list, each of it a number".to_owned())),
            ("boolean", json!("true"), Ok(json!(true))),
            ("string", json!("12"), Ok(json!("12"))),
            ("string", json!({}), Err("text".to_owned())),
            ("object", json!("{\"a\":1}"), Ok(json!({ "a": 1 }))),
            ("currency", json!([1]), Ok(json!([1]))),
        ] {
            assert_eq!(fit(expected, &given), read, "{expected}: {given}");
        }
    }

    #[test]
    fn b_02_what_is_too_large_is_cut_from_the_largest_on_and_asked_for_values_stay() {
        let big = |bytes: usize| Value::String("x".repeat(bytes));
        let mut fields = Fields::from_iter([
            ("asked".to_owned(), big(MAX / 2)),
            ("large".to_owned(), big(MAX / 2)),
            ("small".to_owned(), json!("kept")),
            ("middle".to_owned(), big(MAX / 4)),
        ]);
        let asked = [MissingInput {
            key: "asked".into(),
            expected_type: "string".into(),
            description: String::new(),
            source: None,
        }];
        let keys = surplus([&fields], &asked);
        assert_eq!(keys, ["large"]);
        cut(&mut fields, &keys, |_, _| HandoffId(3));
        assert!(size(&fields) <= MAX);
        assert_eq!(fields["large"]["$cut"]["bytes"], MAX / 2 + 2);
        assert_eq!(fields["small"], "kept");
    }

    #[test]
    fn b_02_what_several_have_under_one_name_is_measured_together() {
        let holds = |key: &str, bytes| {
            Fields::from_iter([(key.to_owned(), Value::String("\u{4e2d}".repeat(bytes / 3)))])
        };
        let mut all =
            vec![holds("report", MAX / 3), holds("plan", MAX / 2), holds("report", MAX / 3)];
        let keys = surplus(&all, &[]);
        assert_eq!(keys, ["report"], "two of them are more than the one that is larger");
        all.iter_mut().for_each(|fields| cut(fields, &keys, |_, _| HandoffId(3)));
        assert!(all.iter().map(size).sum::<usize>() <= MAX);
        let noted = all.clone();
        all.iter_mut().for_each(|fields| cut(fields, &keys, |_, _| HandoffId(4)));
        assert_eq!(all, noted, "a note is not cut again");
    }
}
