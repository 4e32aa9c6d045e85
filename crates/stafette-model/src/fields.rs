//! Values that agents pass to each other, as a JSON object: their size, their types, and cutting
//! them to the size limit.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

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

/// The name under which a note stands in place of values, or for values that were left out.
pub const CUT: &str = "$cut";

/// What must give way so that values fit together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Surplus {
    /// The keys of the values that must be cut.
    pub cuts: Vec<String>,
    /// The keys of the values that must be left out: what is small is not worth cutting.
    pub drops: Vec<String>,
}

/// Finds what must give way so that `all` fit into `limit` bytes together: the values with the most
/// bytes first, and requested ones last.
pub fn surplus<'a>(
    all: impl IntoIterator<Item = &'a Fields>,
    asked: &[MissingInput],
    limit: usize,
) -> Surplus {
    let mut bytes = 0;
    // What cutting would save of each, and what would be left of it.
    let mut held: BTreeMap<&String, (usize, usize)> = BTreeMap::new();
    for (key, value) in all.into_iter().flatten() {
        let of_value = size_of(value);
        bytes += key.len() + of_value;
        let (spare, rest) = held.entry(key).or_default();
        *spare += of_value.saturating_sub(WORTH);
        *rest += key.len() + of_value.min(WORTH);
    }
    let mut found = Surplus::default();
    if bytes <= limit {
        return found;
    }
    let asked: BTreeSet<&String> = asked.iter().map(|input| &input.key).collect();
    let mut held: Vec<(&String, (usize, usize))> = held.into_iter().collect();
    held.sort_by_key(|(key, (spare, _))| (asked.contains(key), Reverse(*spare)));
    for (key, (spare, _)) in held.iter().filter(|(_, (spare, _))| *spare > 0) {
        if bytes <= limit {
            return found;
        }
        bytes -= spare;
        found.cuts.push((*key).clone());
    }
    held.sort_by_key(|(key, (_, rest))| (asked.contains(key), Reverse(*rest)));
    for (key, (_, rest)) in held.iter().filter(|(key, _)| *key != CUT) {
        if bytes <= limit {
            break;
        }
        bytes -= rest;
        found.drops.push((*key).clone());
    }
    found
}

/// Leaves out these values, and notes how many there were and which handoffs' records have them.
pub fn leave_out(fields: &mut Fields, keys: &[String], whole: impl Fn(&str, &Value) -> HandoffId) {
    let keys: BTreeSet<&String> = keys.iter().collect();
    let (mut holders, mut left_out) = (BTreeSet::new(), 0);
    fields.retain(|key, value| {
        let stays = !keys.contains(key);
        if !stays {
            left_out += 1;
            holders.insert(whole(key, value));
        }
        stays
    });
    if left_out == 0 {
        return;
    }
    let earlier = fields.get(CUT);
    left_out += earlier.and_then(|note| note["keys"].as_u64()).unwrap_or(0);
    let known = earlier.and_then(|note| note["handoffs"].as_array()).into_iter().flatten();
    let known = known.filter_map(|id| id.as_str()?.parse().ok());
    let holders: BTreeSet<HandoffId> = holders.into_iter().chain(known).collect();
    fields.insert(CUT.to_owned(), json!({ "keys": left_out, "handoffs": holders }));
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
        *value = json!({ CUT: { "handoff": from, "key": key, "bytes": bytes, "head": head } });
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
        let Surplus { cuts: keys, drops } = surplus([&fields], &asked, MAX);
        assert_eq!((&*keys, &*drops), (&["large".to_owned()][..], &[][..]));
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
        let keys = surplus(&all, &[], MAX).cuts;
        assert_eq!(keys, ["report"], "two of them are more than the one that is larger");
        all.iter_mut().for_each(|fields| cut(fields, &keys, |_, _| HandoffId(3)));
        assert!(all.iter().map(size).sum::<usize>() <= MAX);
        let noted = all.clone();
        all.iter_mut().for_each(|fields| cut(fields, &keys, |_, _| HandoffId(4)));
        assert_eq!(all, noted, "a note is not cut again");
    }

    #[test]
    fn b_02_values_that_are_too_many_are_left_out() {
        let mut fields: Fields = (0..20_000)
            .map(|key| (format!("key-{key:05}"), Value::String("x".repeat(90))))
            .collect();
        fields.insert("tiny".to_owned(), json!(1));
        let found = surplus([&fields], &[], MAX);
        assert_eq!((&*found.cuts, found.drops.contains(&"tiny".to_owned())), (&[][..], false));
        leave_out(&mut fields, &found.drops, |_, _| HandoffId(3));
        assert!(size(&fields) <= MAX + 100 && size(&fields) > MAX / 2, "{}", size(&fields));
        let keys = found.drops.len();
        assert_eq!(fields[CUT], json!({ "keys": keys, "handoffs": ["h3"] }));
        leave_out(&mut fields, &["tiny".to_owned()], |_, _| HandoffId(2));
        assert_eq!(fields[CUT], json!({ "keys": keys + 1, "handoffs": ["h2", "h3"] }));
    }
}
