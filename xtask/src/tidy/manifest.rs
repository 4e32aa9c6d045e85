//! Every crate takes its version, its lints and its dependencies from the workspace.

use toml::{Table, Value};

use super::Finding;
use super::tree::{File, Tree};

/// Keys that a crate does not decide for itself.
const INHERITED: [&str; 5] = ["version", "edition", "rust-version", "license", "publish"];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    manifests.filter(|file| file.is_ours()).flat_map(one).collect()
}

fn one(file: &File) -> Vec<Finding> {
    let manifest: Table = match file.text.parse() {
        Ok(manifest) => manifest,
        Err(error) => return vec![Finding::new(&file.path, 0, format!("cannot be read: {error}"))],
    };
    let mut messages = Vec::new();
    let package = manifest.get("package");
    for key in INHERITED {
        if !is_inherited(package.and_then(|package| package.get(key))) {
            messages.push(format!("write `{key}.workspace = true`"));
        }
    }
    if !is_inherited(manifest.get("lints")) {
        messages.push("write `[lints]` and `workspace = true` under it".to_owned());
    }
    let own = package.and_then(|package| package.get("name")).and_then(Value::as_str);
    for (name, dependency) in dependencies(&manifest) {
        // A crate's tests may use the crate itself, with a feature that no other crate needs.
        if !is_inherited(Some(dependency)) && own != Some(name) {
            messages.push(format!(
                "`{name}` must be listed under `[workspace.dependencies]` and be \
                 `{name}.workspace = true` here"
            ));
        }
    }
    messages.into_iter().map(|message| Finding::new(&file.path, 0, message)).collect()
}

fn is_inherited(value: Option<&Value>) -> bool {
    value.and_then(|value| value.get("workspace")).and_then(Value::as_bool) == Some(true)
}

/// Returns all dependencies, also those for one system only.
fn dependencies(manifest: &Table) -> Vec<(&String, &Value)> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    let kinds = ["dependencies", "dev-dependencies", "build-dependencies"];
    [manifest]
        .into_iter()
        .chain(targets)
        .flat_map(|table| kinds.map(|kind| table.get(kind)))
        .filter_map(|table| table?.as_table())
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_decides_little_for_itself() {
        let good = "[package]\nname = \"a\"\nversion.workspace = true\nedition.workspace = true\n\
                    rust-version.workspace = true\nlicense.workspace = true\n\
                    publish.workspace = true\n[dependencies]\nb.workspace = true\n\
                    [lints]\nworkspace = true\n";
        assert_eq!(check(&Tree::of([("crates/a/Cargo.toml", good)])), []);
        let bad = good
            .replace("edition.workspace = true", "edition = \"2024\"")
            .replace("b.workspace = true", "b = \"1\"")
            .replace("[lints]\nworkspace = true", "[target.'cfg(unix)'.dependencies]\nc = \"1\"");
        let found = check(&Tree::of([("crates/a/Cargo.toml", &bad)]));
        let told: Vec<&str> = found.iter().map(|finding| finding.message.as_str()).collect();
        assert_eq!(told.len(), 4, "{told:?}");
        assert_eq!(told[0], "write `edition.workspace = true`");
    }
}
