//! The dependencies between crates: cargo's view must match `ARCHITECTURE.md`.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::architecture::{PATH, table};
use super::{Finding, Tree};
use crate::shell;

/// Crates that must not depend on each other, not even in their tests.
const STRANGERS: [(&str, &str); 1] = [("stafette-store", "stafette-agents")];

/// The crates of the workspace and their dependencies.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) crates: BTreeMap<String, Uses>,
}

/// The dependencies of one crate.
#[derive(Debug, Default)]
pub(super) struct Uses {
    /// Crates of the workspace that are part of it or of its build.
    ours: BTreeSet<String>,
    /// Crates of the workspace that only its tests use.
    in_tests: BTreeSet<String>,
    /// All direct and indirect dependencies, each with the path by which it came in.
    pub(super) everything: BTreeMap<String, Vec<String>>,
}

impl Graph {
    /// Reads the dependencies from cargo.
    pub(super) fn read(root: &Path) -> Result<Graph, String> {
        let said = shell::output(Command::new("rustc").current_dir(root).arg("-vV"));
        let said = said.map_err(|error| error.to_string())?;
        let host = said.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or_default();
        let mut cargo = shell::cargo(root);
        cargo.args(["metadata", "--format-version", "1", "--filter-platform", host]);
        let text = shell::output(&mut cargo).map_err(|error| error.to_string())?;
        let metadata: Value = serde_json::from_str(&text)
            .map_err(|error| format!("cargo metadata cannot be understood: {error}"))?;
        Ok(Graph::of(&metadata))
    }

    fn of(metadata: &Value) -> Graph {
        let names: BTreeMap<&str, &str> = list(&metadata["packages"])
            .map(|package| (text(&package["id"]), text(&package["name"])))
            .collect();
        let nodes: BTreeMap<&str, &Value> =
            list(&metadata["resolve"]["nodes"]).map(|node| (text(&node["id"]), node)).collect();
        let members: BTreeSet<&str> = list(&metadata["workspace_members"]).map(text).collect();
        let ours = |id: &str, wanted: fn(&str) -> bool| {
            uses(&nodes, id, wanted)
                .filter(|used| members.contains(used))
                .filter_map(|used| names.get(used))
                .map(|name| (*name).to_owned())
                .collect()
        };
        let crates = members
            .iter()
            .filter_map(|id| Some((id, names.get(id)?)))
            .map(|(id, name)| {
                let uses = Uses {
                    ours: ours(id, |kind| kind != "dev"),
                    in_tests: ours(id, |kind| kind == "dev"),
                    everything: reach(&nodes, &names, id),
                };
                ((*name).to_owned(), uses)
            })
            .collect();
        Graph { crates }
    }
}

/// Returns the ids of a package's dependencies of some kind: `normal`, `build` or `dev`.
fn uses<'a>(
    nodes: &BTreeMap<&'a str, &'a Value>,
    id: &str,
    wanted: fn(&str) -> bool,
) -> impl Iterator<Item = &'a str> {
    let deps = nodes.get(id).map(|node| &node["deps"]);
    deps.into_iter()
        .flat_map(list)
        .filter(move |dep| {
            list(&dep["dep_kinds"]).any(|kind| wanted(kind["kind"].as_str().unwrap_or("normal")))
        })
        .map(|dep| text(&dep["pkg"]))
}

fn reach(
    nodes: &BTreeMap<&str, &Value>,
    names: &BTreeMap<&str, &str>,
    from: &str,
) -> BTreeMap<String, Vec<String>> {
    let mut found = BTreeMap::new();
    let mut open = vec![(from.to_owned(), Vec::new())];
    while let Some((id, way)) = open.pop() {
        for used in uses(nodes, &id, |kind| kind == "normal") {
            let name = names.get(used).copied().unwrap_or(used).to_owned();
            let way = [way.clone(), vec![name.clone()]].concat();
            if let Entry::Vacant(place) = found.entry(name) {
                place.insert(way.clone());
                open.push((used.to_owned(), way));
            }
        }
    }
    found
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

pub(super) fn check(tree: &Tree, graph: &Graph) -> Vec<Finding> {
    let Some(rows) = table(tree, "crates") else {
        let message =
            "has no table after `<!-- tidy: crates -->`: one row a crate, what it uses last";
        return vec![Finding::new(PATH, 0, message)];
    };
    let mut findings = Vec::new();
    for row in &rows {
        let Some(uses) = graph.crates.get(&row.name) else {
            let message = format!("there is no crate `{}`: remove its row", row.name);
            findings.push(Finding::new(PATH, row.line, message));
            continue;
        };
        for used in uses.ours.difference(&row.values) {
            let message = format!(
                "`{}` uses `{used}`, which its row does not allow: find a way without it, or add \
                 it to the row and say why",
                row.name
            );
            findings.push(Finding::new(PATH, row.line, message));
        }
        for unused in row.values.difference(&uses.ours) {
            let message = format!("`{}` does not use `{unused}`: remove it from its row", row.name);
            findings.push(Finding::new(PATH, row.line, message));
        }
    }
    for name in graph.crates.keys().filter(|name| rows.iter().all(|row| row.name != **name)) {
        let message = format!("`{name}` has no row in the table of crates: add one");
        findings.push(Finding::new(PATH, 0, message));
    }
    findings.extend(strangers(graph));
    findings
}

fn strangers(graph: &Graph) -> impl Iterator<Item = Finding> {
    let pairs = STRANGERS.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
    pairs.filter_map(|(one, other)| {
        let uses = graph.crates.get(one)?;
        let known = uses.ours.contains(other) || uses.in_tests.contains(other);
        let message = format!("`{one}` must not know `{other}`: what both need belongs below them");
        known.then(|| Finding::new(format!("crates/{one}/Cargo.toml"), 0, message))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn world() -> Graph {
        let uses = |name: &str, kind: Value| json!({"pkg": name, "dep_kinds": [{"kind": kind}]});
        let names = ["stafette-store", "stafette-agents", "core", "far"];
        let packages = names.map(|name| json!({"id": name, "name": name}));
        Graph::of(&json!({
            "packages": packages,
            "workspace_members": ["stafette-store", "stafette-agents", "core"],
            "resolve": {"nodes": [
                {"id": "stafette-store", "deps": [uses("core", Value::Null), uses("stafette-agents", json!("dev"))]},
                {"id": "stafette-agents", "deps": [uses("core", json!("build"))]},
                {"id": "core", "deps": [uses("far", Value::Null)]},
                {"id": "far", "deps": []},
            ]},
        }))
    }

    fn told(rows: &str) -> Vec<String> {
        let text = format!("<!-- tidy: crates -->\n\n| crate | uses |\n|---|---|\n{rows}");
        let tree = Tree::of([(PATH, &text)]);
        check(&tree, &world()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_table_must_be_the_graph() {
        let found =
            told("| `stafette-store` | `core` |\n| `stafette-agents` | `core` |\n| `core` | |\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].contains("`stafette-store` must not know `stafette-agents`"));
        let found = told("| `stafette-store` | |\n| `core` | `far` |\n| `gone` | |\n").join("\n");
        assert!(found.contains("`stafette-store` uses `core`"), "{found}");
        assert!(found.contains("`core` does not use `far`"), "{found}");
        assert!(found.contains("no crate `gone`"), "{found}");
        assert!(found.contains("`stafette-agents` has no row"), "{found}");
    }

    #[test]
    fn what_is_far_is_known_with_its_way() {
        let world = world();
        let way = &world.crates["stafette-store"].everything["far"];
        assert_eq!(way.join(" → "), "core → far");
        assert!(!world.crates["stafette-store"].everything.contains_key("stafette-agents"));
    }
}
