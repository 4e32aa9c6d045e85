//! Valid documents, changed at random in ways that keep them valid, survive every round trip.

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Number, json};

use super::*;

/// A random change to a document.
#[derive(Clone, Debug)]
struct Edit {
    /// The object to change.
    object: Index,
    /// The field of that object.
    field: Index,
    change: Change,
}

#[derive(Clone, Debug)]
enum Change {
    /// Adds an unknown field.
    Add { name: String, value: Value },
    /// Removes a field.
    Remove,
    /// Replaces a value with an empty one.
    Hollow { with: Value },
    /// Writes a number in another way.
    Float { more: f64 },
}

fn edit() -> impl Strategy<Value = Edit> {
    let name = prop_oneof!["x[a-z~/ ]{0,4}", Just(String::new()), "[0-9]", "ü.{0,3}"];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        (-1e9..1e9).prop_map(|n: f64| json!(n)),
        ".{0,8}".prop_map(Value::from),
    ];
    let value = leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map(".{0,3}", inner, 0..3).prop_map(|fields| json!(fields)),
        ]
    });
    let nothing = prop_oneof![Just(json!(null)), Just(json!([])), Just(json!({})), Just(json!(""))];
    let more = prop_oneof![Just(0.0), Just(0.5)];
    let change = prop_oneof![
        4 => (name, value).prop_map(|(name, value)| Change::Add { name, value }),
        2 => Just(Change::Remove),
        2 => nothing.prop_map(|with| Change::Hollow { with }),
        2 => more.prop_map(|more| Change::Float { more }),
    ];
    (any::<Index>(), any::<Index>(), change).prop_map(|(object, field, change)| Edit {
        object,
        field,
        change,
    })
}

/// Collects the places of all objects within a value.
fn objects(value: &Value, place: String, found: &mut Vec<String>) {
    let escaped = |name: &str| name.replace('~', "~0").replace('/', "~1");
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                objects(value, format!("{place}/{}", escaped(name)), found);
            }
            found.push(place);
        }
        Value::Array(items) => {
            for (index, value) in items.iter().enumerate() {
                objects(value, format!("{place}/{index}"), found);
            }
        }
        _ => {}
    }
}

/// Returns the document after the change, valid or not.
fn edited(document: &Value, edit: &Edit) -> Value {
    let mut document = document.clone();
    let mut places = Vec::new();
    objects(&document, String::new(), &mut places);
    let place = &places[edit.object.index(places.len())];
    let fields = document.pointer_mut(place).and_then(Value::as_object_mut);
    let fields = fields.expect("the place of an object");
    if let Change::Add { name, value } = &edit.change {
        fields.entry(name.clone()).or_insert_with(|| value.clone());
        return document;
    }
    if fields.is_empty() {
        return document;
    }
    let key = fields.keys().nth(edit.field.index(fields.len())).cloned().unwrap_or_default();
    match &edit.change {
        Change::Add { .. } => {}
        Change::Remove => drop(fields.remove(&key)),
        Change::Hollow { with } => drop(fields.insert(key, with.clone())),
        Change::Float { more } => {
            let number = fields[&key].as_f64().and_then(|n| Number::from_f64(n + more));
            if let Some(number) = number {
                fields.insert(key, number.into());
            }
        }
    }
    document
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn s2_01_s3_01_s4_01_s5_01_nothing_of_a_valid_document_is_lost(
        which in any::<Index>(),
        edits in prop::collection::vec(edit(), 1..8),
    ) {
        let goldens = goldens();
        let (_, name, mut document) = goldens[which.index(goldens.len())].clone();
        for edit in &edits {
            let next = edited(&document, edit);
            if validate(name, &next).is_empty() {
                document = next;
            }
        }
        prop_assert_eq!(&through_type(name, &document), &document);
        if let Some(back) = through_model(name, &document) {
            prop_assert_eq!(&back, &document);
        }
    }
}
