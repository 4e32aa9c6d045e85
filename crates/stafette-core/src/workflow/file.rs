//! Parses a workflow file, and records the position of each value.

mod diagnostic;
mod spans;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use toml::de::{DeTable, DeValue, Deserializer, Error};

pub(crate) use diagnostic::plain;
pub use diagnostic::{Diagnostic, Position, Severity, render};
pub use spans::Spans;
pub(crate) use spans::child;
pub(crate) use stafette_text::nearest;

use crate::Workflow;

/// The maximum size of a workflow file, in bytes.
pub const MAX_BYTES: usize = 1 << 20;

/// The maximum number of reported syntax errors: further ones follow from the first.
const MAX_SYNTAX_ERRORS: usize = 5;

/// A workflow file that could be parsed.
#[derive(Clone, PartialEq, Debug)]
pub struct Source {
    /// The workflow that the file contains.
    pub workflow: Workflow,
    /// The positions of its values.
    pub spans: Spans,
}

/// Parses a workflow file.
///
/// # Errors
/// All problems that prevent this: syntax, unknown keys, wrong or missing values.
pub fn parse(text: &str) -> Result<Workflow, Vec<Diagnostic>> {
    read(text).map(|source| source.workflow)
}

/// Parses a workflow file and records the position of each value.
///
/// # Errors
/// As for [`parse`].
pub fn read(text: &str) -> Result<Source, Vec<Diagnostic>> {
    document(text).map(|(workflow, spans)| Source { workflow, spans })
}

/// Parses any TOML file whose keys are those of a type, and records the position of each value.
///
/// # Errors
/// As for [`parse`], for that type.
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
    } else if message.ends_with("untagged enum MoneyText") {
        ("bad-value", "expected an amount of money, such as \"5usd\"".to_owned())
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

/// The keys that a workflow file may have, from the published schema.
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

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: &str = r#"[workflow]
name = "small"
entry = "writer"

[agents.writer]
runner = "exec"
command = ["cat"]
"#;

    fn complaints(text: &str) -> String {
        let diagnostics = read(text).expect_err("the file should not be accepted");
        diagnostics.iter().map(|diagnostic| render(diagnostic, "stafette.toml", text)).collect()
    }

    #[test]
    fn s2_11_a_small_file_is_read_and_every_value_has_its_place() {
        let source = read(SMALL).unwrap();
        let shown = |path: &str| source.spans.value(path).map(|span| &SMALL[span]);
        assert_eq!(shown("/workflow/entry"), Some("\"writer\""));
        assert_eq!(shown("/agents/writer/command/0"), Some("\"cat\""));
        assert_eq!(shown("/agents/writer/role"), Some("[agents.writer]"));
        assert_eq!(shown("/limits/lease"), None);
        assert_eq!(source.spans.key("/agents/writer").map(|span| &SMALL[span]), Some("writer"));
        assert_eq!(parse(SMALL), Ok(source.workflow));
    }

    #[test]
    fn s2_11_syntax_errors_point_at_the_line() {
        insta::assert_snapshot!(complaints("[workflow\nname = \"x\"\nentry = = 3\n"), @"
        error[syntax]: unclosed table, expected `]`
         --> stafette.toml:1:10
          |
        1 | [workflow
          |          ^
        error[syntax]: extra `=`, expected nothing
         --> stafette.toml:3:9
          |
        3 | entry = = 3
          |         ^
        error[syntax]: unexpected key or value, expected newline, `#`
         --> stafette.toml:3:11
          |
        3 | entry = = 3
          |           ^
        ");
    }

    #[test]
    fn s2_11_all_unknown_keys_are_named_with_the_nearest_known_one() {
        let text = SMALL.replace("command", "comand")
            + "lease = \"5m\"\nestimate = { tokns = 3 }\n[limit]\nx = 1\n[paint]\n";
        insta::assert_snapshot!(complaints(&text), @r#"
        error[unknown-key]: unknown key `comand`
         --> stafette.toml:7:1
          |
        7 | comand = ["cat"]
          | ^^^^^^
          = help: did you mean `command`?
        error[unknown-key]: unknown key `lease`
         --> stafette.toml:8:1
          |
        8 | lease = "5m"
          | ^^^^^
          = help: `lease` belongs in `[limits]`
        error[unknown-key]: unknown key `tokns`
         --> stafette.toml:9:14
          |
        9 | estimate = { tokns = 3 }
          |              ^^^^^
          = help: did you mean `tokens`?
        error[unknown-key]: unknown key `limit`
          --> stafette.toml:10:2
           |
        10 | [limit]
           |  ^^^^^
           = help: did you mean `limits`?
        error[unknown-key]: unknown key `paint`
          --> stafette.toml:12:2
           |
        12 | [paint]
           |  ^^^^^
           = help: known here: workflow, agents, routes, deny, loops, phases, limits, retries, budget, sources, recovery, coordination, server, store, locks, changes, self, profiles, hooks, triggers, notify, alerts, telemetry, knowledge, council, generations
        "#);
    }

    #[test]
    fn s2_11_a_wrong_value_is_named_in_words_of_the_file() {
        let with = |rest: &str| complaints(&format!("{SMALL}{rest}"));
        insta::assert_snapshot!(with("[limits]\nrefusals = \"two\"\n"), @r#"
        error[bad-value]: invalid type: string "two", expected a whole number
         --> stafette.toml:9:12
          |
        9 | refusals = "two"
          |            ^^^^^
        "#);
        insta::assert_snapshot!(with("[limits]\nlease = true\n"), @r#"
        error[bad-value]: expected a length of time, such as "30s" or "2h"
         --> stafette.toml:9:9
          |
        9 | lease = true
          |         ^^^^
        "#);
        insta::assert_snapshot!(with("[limits]\nlease = \"soon\"\n"), @r#"
        error[bad-value]: `soon` is not a length of time: write 500ms, 30s, 5m, 2h or 7d
         --> stafette.toml:9:9
          |
        9 | lease = "soon"
          |         ^^^^^^
        "#);
        insta::assert_snapshot!(with("[budget]\nmoney = [5]\n"), @r#"
        error[bad-value]: expected an amount of money, such as "5usd"
         --> stafette.toml:9:9
          |
        9 | money = [5]
          |         ^^^
        "#);
        insta::assert_snapshot!(with("[agents.human]\nrunner = \"exec\"\n"), @"
        error[bad-value]: `human` cannot name an agent: use 1 to 64 letters, digits, `-`, `_` or `.`, and not the reserved words `human`, `orchestrator` and `council`
         --> stafette.toml:8:9
          |
        8 | [agents.human]
          |         ^^^^^
        ");
        insta::assert_snapshot!(complaints(&SMALL.replace("\"exec\"", "\"ssh\"")), @r#"
        error[bad-value]: unknown variant `ssh`, expected one of `exec`, `scripted`, `pty`, `acp`, `external`, `a2a`
         --> stafette.toml:6:10
          |
        6 | runner = "ssh"
          |          ^^^^^
        "#);
        insta::assert_snapshot!(complaints(&SMALL.replace("[\"cat\"]", "\"cat\"")), @r#"
        error[bad-value]: invalid type: string "cat", expected a list
         --> stafette.toml:7:11
          |
        7 | command = "cat"
          |           ^^^^^
        "#);
        insta::assert_snapshot!(complaints("agents = 3\nworkflow = 1"), @"
        error[bad-value]: invalid type: integer `3`, expected a table
         --> stafette.toml:1:10
          |
        1 | agents = 3
          |          ^
        ");
    }

    #[test]
    fn s2_11_a_missing_key_points_at_its_section() {
        insta::assert_snapshot!(complaints(&SMALL.replace("entry = \"writer\"\n", "")), @"
        error[missing-key]: missing key `entry`
         --> stafette.toml:1:1
          |
        1 | [workflow]
          | ^^^^^^^^^^
        ");
        insta::assert_snapshot!(complaints(""), @"
        error[missing-key]: missing key `workflow`
         --> stafette.toml:1:1
          |
        1 |
          | ^
        ");
    }

    #[test]
    fn s2_11_an_unknown_key_does_not_hide_a_wrong_value() {
        let text = format!("{SMALL}[limits]\nleese = 3\nrefusals = -1\n");
        let codes: Vec<_> = read(&text).unwrap_err().iter().map(|d| d.code).collect();
        assert_eq!(codes, ["unknown-key", "bad-value"]);
    }

    #[test]
    fn s2_11_a_file_without_end_is_not_read() {
        let text = "#".repeat(MAX_BYTES + 1);
        insta::assert_snapshot!(complaints(&text), @"
        error[too-large]: the file has 1048577 bytes; 1048576 are allowed
         --> stafette.toml
        ");
    }
}
