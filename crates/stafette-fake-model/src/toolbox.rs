//! The agent's own tools, found by what a request offers: every agent names them otherwise.

use serde_json::{Map, Value};

use super::ask::{Ask, list};
use super::script::Act;
use super::wire;

/// True if the request offers a tool for an act, as far as that can be told.
pub(super) fn has(act: &Act, ask: &Ask) -> bool {
    match act {
        _ if ask.schemas.is_empty() => true,
        Act::Shell(_) | Act::Write { .. } | Act::Read { .. } => own(act, ask).is_some(),
        Act::Mcp { server, tool, .. } => {
            wire::offered(ask, server, tool).is_some() || ask.tools.iter().any(|t| t == "tool_call")
        }
        _ => true,
    }
}

/// Returns the name and input of the agent's own tool for an act; `None` if it offers none.
pub(super) fn own(act: &Act, ask: &Ask) -> Option<(String, Value)> {
    let (words, fields): (&[&str], Vec<(&[&str], &String)>) = match act {
        Act::Shell(command) => (&["shell", "bash"], vec![(&["command"], command)]),
        Act::Write { path, text } => (
            &["write"],
            vec![(&["file_path", "filePath", "path"], path), (&["content", "file_text"], text)],
        ),
        Act::Read { path } => {
            (&["read"], vec![(&["file_path", "filePath", "absolute_path", "path"], path)])
        }
        _ => return None,
    };
    let mut offered = ask.tools.iter().zip(&ask.schemas);
    offered.find_map(|(name, schema)| {
        let is_meant = words.iter().any(|word| name.contains(word));
        Some((name.clone(), input(schema, &fields)?)).filter(|_| is_meant)
    })
}

/// Fills in the fields under the names that the schema has, and anything else that it requires.
fn input(schema: &Value, fields: &[(&[&str], &String)]) -> Option<Value> {
    let properties = schema["properties"].as_object()?;
    let mut input = Map::new();
    for (names, value) in fields {
        let name = names.iter().find(|name| properties.contains_key(**name))?;
        input.insert((*name).to_owned(), value.as_str().into());
    }
    for name in list(&schema["required"]).filter_map(Value::as_str) {
        let kind = properties.get(name).and_then(|property| property["type"].as_str());
        input.entry(name).or_insert_with(|| match kind.unwrap_or_default() {
            "boolean" | "BOOLEAN" => false.into(),
            "integer" | "number" | "INTEGER" | "NUMBER" => 0.into(),
            _ => "As the script says".into(),
        });
    }
    Some(input.into())
}
