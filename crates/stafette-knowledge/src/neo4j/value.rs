//! Nodes and links as properties, and back.

use serde_json::{Value, json};
use stafette_core::{Fields, HandoffId, Party, RunId, Time};

use crate::graph::{
    Entity, GraphError, Link, Node, NodeKey, Provenance, Relation, corrupt, properties,
};

/// Properties with nested values: Neo4j stores them as text.
const NESTED: [&str; 2] = ["breakdown", "finding"];

/// Returns the origin as properties: who, when and for what.
pub(super) fn provenance_properties(prefix: &str, from: &Provenance) -> Value {
    json!({
        format!("{prefix}_by"): from.by.as_str(),
        format!("{prefix}_at"): from.at.0,
        format!("{prefix}_run"): from.run.map(|run| run.to_string()),
        format!("{prefix}_handoff"): from.handoff.map(|handoff| handoff.to_string()),
    })
}

fn provenance(prefix: &str, fields: &Fields) -> Result<Provenance, GraphError> {
    let text = |name: &str| fields.get(&format!("{prefix}_{name}")).and_then(Value::as_str);
    let wrong = |name: &str| corrupt("provenance", format!("{prefix}_{name}"));
    let at = fields.get(&format!("{prefix}_at")).and_then(Value::as_i64);
    let run = text("run").map(|run| run.parse::<RunId>().map_err(|_| wrong("run")));
    let handoff = text("handoff").map(|h| h.parse::<HandoffId>().map_err(|_| wrong("handoff")));
    Ok(Provenance {
        by: Party::from(text("by").ok_or_else(|| wrong("by"))?),
        at: Time(at.ok_or_else(|| wrong("at"))?),
        run: run.transpose()?,
        handoff: handoff.transpose()?,
    })
}

/// Returns all properties of a node but its first author.
pub(super) fn to_properties(entity: &Entity, changed: &Provenance) -> Fields {
    let mut fields = properties(entity);
    for name in NESTED {
        if let Some(value) = fields.get_mut(name) {
            *value = Value::String(value.to_string());
        }
    }
    fields.insert("key".into(), entity.key().to_string().into());
    if let Some(words) = entity.searched() {
        fields.insert("words".into(), words.into());
    }
    if let Value::Object(changed) = provenance_properties("changed", changed) {
        fields.extend(changed);
    }
    fields
}

pub(super) fn from_properties(found: Option<Value>) -> Result<Node, GraphError> {
    let Some(Value::Object(mut fields)) = found else {
        return Err(corrupt("a node", "it has no properties"));
    };
    let key = fields.remove("key").and_then(|key| key.as_str().map(str::to_owned));
    let key: NodeKey = key
        .unwrap_or_default()
        .parse()
        .map_err(|error: crate::graph::NotANode| corrupt("a node", error))?;
    for name in NESTED {
        if let Some(value) = fields.get_mut(name) {
            let text = value.as_str().unwrap_or("{}");
            *value = serde_json::from_str(text).map_err(|error| corrupt(&key, error))?;
        }
    }
    let (made, changed) = (provenance("made", &fields)?, provenance("changed", &fields)?);
    fields.insert("label".into(), key.label.as_str().into());
    let entity: Entity =
        serde_json::from_value(Value::Object(fields)).map_err(|error| corrupt(&key, error))?;
    Ok(Node { entity, made, changed })
}

pub(super) fn link_from(row: &Fields) -> Result<Link, GraphError> {
    let text = |name: &str| row.get(name).and_then(Value::as_str).unwrap_or_default();
    let key = |name: &str| text(name).parse::<NodeKey>().map_err(|error| corrupt("a link", error));
    let Some(Value::Object(made)) = row.get("made") else {
        return Err(corrupt("a link", "it has no properties"));
    };
    Ok(Link {
        from: key("from")?,
        relation: Relation::named(text("relation")).ok_or_else(|| corrupt("a link", "relation"))?,
        to: key("to")?,
        made: provenance("made", made)?,
    })
}
