//! The checker finds what a complete implementation of JSON Schema finds, in the same words.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, ValidationError, Validator};
use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

/// Documents of every kind, valid and invalid, with the names of their schemas.
static DOCUMENTS: LazyLock<Vec<(Name, Value)>> = LazyLock::new(|| {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let mut found = Vec::new();
    for folder in ["wire", "wire/invalid", "workflows"] {
        for file in files(&fixtures.join(folder)) {
            let text = fs::read_to_string(&file).expect("a file that can be read");
            let file = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let name = list()
                .into_iter()
                .filter(|name| file.starts_with(name.as_str()))
                .max_by_key(|name| name.as_str().len());
            match (name, file.rsplit_once('.')) {
                (Some(name), Some((_, "json"))) => {
                    found.push((name, serde_json::from_str(&text).expect("JSON")));
                }
                (_, Some((_, "toml"))) => {
                    found.push((Name::Workflow, toml::from_str(&text).expect("TOML")));
                }
                _ => {}
            }
        }
    }
    assert!(found.len() > 40, "{} documents", found.len());
    found
});

static ORACLES: LazyLock<BTreeMap<&'static str, Validator>> = LazyLock::new(|| {
    let options = jsonschema::options().with_draft(Draft::Draft202012);
    let options = options.should_validate_formats(true);
    let oracle = |name: Name| (name.as_str(), options.build(&schema(name)).expect("a schema"));
    list().into_iter().map(oracle).collect()
});

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> =
        fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path()).collect();
    files.retain(|path| path.is_file());
    files.sort();
    files
}

/// Returns what the oracle finds, in our order, and with all valid words where it shows three.
fn expected(name: Name, value: &Value) -> Vec<Violation> {
    let words = |error: &ValidationError<'_>| match error.kind() {
        ValidationErrorKind::Enum { options } => {
            let options: Vec<String> =
                options.as_array().into_iter().flatten().map(Value::to_string).collect();
            let found = clipped(error.instance().to_string(), 80);
            format!("{found} is not one of {}", options.join(", "))
        }
        _ => error.to_string(),
    };
    let mut found: Vec<Violation> = ORACLES[name.as_str()]
        .iter_errors(value)
        .map(|error| Violation {
            path: error.instance_path().to_string(),
            message: clipped(words(&error), 400),
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

fn clipped(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// One change of a document.
#[derive(Clone, Debug)]
enum Edit {
    Replace(Value),
    Remove,
    Add(&'static str, Value),
}

fn value() -> impl Strategy<Value = Value> {
    select(vec![
        json!(null),
        json!(true),
        json!(-1),
        json!(0),
        json!(0.5),
        json!(1.0),
        json!(3),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("x"),
        json!("all"),
        json!("3 of 5"),
        json!("3 of 5 of 7"),
        json!(" of 5"),
        json!("human"),
        json!("1.0.0"),
        json!("escalation"),
        json!("research"),
        json!("validate"),
        json!("2026-02-28T23:59:59Z"),
        json!("2026-02-30T00:00:00Z"),
        json!("2026-01-01t00:00:00.25+01:30"),
        json!("2026-01-01 00:00:00Z"),
        json!("2026-01-01T00:00:00"),
        json!("2026-01-01T00:00:00.Z"),
        json!("2026-01-01T24:00:00+0100"),
        json!("2026-01-01T00:00:00Z[UTC]"),
        json!("5e3a3d53-9a0f-4a3c-8c3e-52f0c2b6a7d1"),
        json!("5E3A3D539A0F4A3C8C3E52F0C2B6A7D1"),
        json!("{5e3a3d53-9a0f-4a3c-8c3e-52f0c2b6a7d1}"),
        json!([]),
        json!([1, "x", null]),
        json!({}),
        json!({ "a/b~c": 1, "phase": "write" }),
        json!("ü".repeat(500)),
    ])
}

fn edit() -> impl Strategy<Value = Edit> {
    let keys = vec!["x", "a/b~c", "phase", "type", "findings", "payload", "details", "if"];
    prop_oneof![
        4 => value().prop_map(Edit::Replace),
        2 => Just(Edit::Remove),
        1 => (select(keys), value()).prop_map(|(key, value)| Edit::Add(key, value)),
    ]
}

/// Returns the pointers to all values of a document.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    match value {
        Value::Object(fields) => {
            for (key, value) in fields {
                places(
                    value,
                    &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")),
                    found,
                );
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places(item, &format!("{at}/{index}"), found);
            }
        }
        _ => {}
    }
}

fn apply(document: &mut Value, place: &Index, edit: &Edit) {
    let mut all = Vec::new();
    places(document, "", &mut all);
    let place = place.get(&all);
    match edit {
        Edit::Replace(value) => {
            if let Some(found) = document.pointer_mut(place) {
                *found = value.clone();
            }
        }
        Edit::Remove => {
            let Some((parent, key)) = place.rsplit_once('/') else { return };
            if let Some(Value::Object(fields)) = document.pointer_mut(parent) {
                fields.remove(&key.replace("~1", "/").replace("~0", "~"));
            }
        }
        Edit::Add(key, value) => {
            if let Some(Value::Object(fields)) = document.pointer_mut(place) {
                fields.insert((*key).to_owned(), value.clone());
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn s2_01_what_is_wrong_is_what_a_complete_implementation_says(
        document in any::<Index>(),
        edits in prop::collection::vec((any::<Index>(), edit()), 0..4),
    ) {
        let (name, mut value) = document.get(&DOCUMENTS).clone();
        for (place, edit) in &edits {
            apply(&mut value, place, edit);
        }
        let found = Checker::new(schema_of(name)).violations(&value);
        prop_assert_eq!(found, expected(name, &value), "{} {}", name, value);
    }
}

/// Returns the schema without building it anew each time.
fn schema_of(name: Name) -> Value {
    static SCHEMAS: LazyLock<BTreeMap<&'static str, Value>> =
        LazyLock::new(|| list().into_iter().map(|name| (name.as_str(), schema(name))).collect());
    SCHEMAS[name.as_str()].clone()
}
