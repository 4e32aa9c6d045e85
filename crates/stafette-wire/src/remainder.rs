//! Data of a dialect that the model has no field for.
//!
//! A document consists of what the model has, and the remainder. The remainder is a flat map from
//! places to values: a place is a JSON pointer without its first slash (`timestamp`,
//! `missingInputs/0/unit`), so that a top-level field goes by its own name. An absent field, a
//! null and an empty list mean the same to the model; the remainder records which of them it was.

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use stafette_model::Fields;
use stafette_model::Foreign;

/// Converts a document to plain JSON.
pub(super) fn value_of<T: Serialize>(document: &T) -> Value {
    serde_json::to_value(document).expect("wire types hold only strings, numbers, lists and maps")
}

/// Builds the foreign part of a translation: everything in `document` that is not in `known`, which
/// the model would write on its own.
pub(super) fn foreign(dialect: &str, id: &str, document: &Value, known: &Value) -> Foreign {
    let mut fields = Fields::new();
    collect(document, known, String::new(), &mut fields);
    Foreign { dialect: dialect.to_owned(), id: id.to_owned(), fields }
}

fn collect(document: &Value, known: &Value, place: String, rest: &mut Fields) {
    match (document, known) {
        (Value::Object(document), Value::Object(known)) => {
            for (name, value) in document {
                let inner = join(&place, name);
                match known.get(name) {
                    Some(known) => collect(value, known, inner, rest),
                    None => drop(rest.insert(inner, value.clone())),
                }
            }
        }
        (Value::Array(document), Value::Array(known)) if document.len() == known.len() => {
            for (index, (value, known)) in document.iter().zip(known).enumerate() {
                collect(value, known, join(&place, &index.to_string()), rest);
            }
        }
        _ if document == known => {}
        _ => drop(rest.insert(place, document.clone())),
    }
}

fn join(place: &str, name: &str) -> String {
    let name = name.replace('~', "~0").replace('/', "~1");
    // The empty place is the root, so an empty name at the root keeps its slash.
    if place.is_empty() && !name.is_empty() { name } else { format!("{place}/{name}") }
}

/// Rebuilds a document from what the model has. One that came in this dialect gets its remainder
/// back; any other is completed by `complete`, as is one whose remainder does not match.
pub(super) fn rebuild<T: DeserializeOwned>(
    dialect: &str,
    foreign: Option<&Foreign>,
    known: Value,
    complete: impl FnOnce(&mut Value),
) -> T {
    if let Some(foreign) = foreign.filter(|foreign| foreign.dialect == dialect) {
        let mut document = known.clone();
        for (place, value) in &foreign.fields {
            put(&mut document, place, value);
        }
        if let Ok(document) = serde_json::from_value(document) {
            return document;
        }
    }
    let mut document = known;
    complete(&mut document);
    serde_json::from_value(document).expect("`complete` adds every field that the type requires")
}

/// Puts a value back in its place, unless the model no longer has the object that it belonged to.
fn put(document: &mut Value, place: &str, value: &Value) {
    let (parent, name) = match place.rsplit_once('/') {
        Some(("", name)) => (Some(document), name),
        Some((parent, name)) => (document.pointer_mut(&format!("/{parent}")), name),
        None => (Some(document), place),
    };
    match parent {
        Some(Value::Object(fields)) => {
            let name = name.replace("~1", "/").replace("~0", "~");
            fields.insert(name, value.clone());
        }
        Some(Value::Array(items)) => {
            if let Some(item) = name.parse::<usize>().ok().and_then(|index| items.get_mut(index)) {
                *item = value.clone();
            }
        }
        _ => {}
    }
}
