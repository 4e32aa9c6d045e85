//! Gates that a person has to approve, and files that no change may touch.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::path::folded;
use super::{Action, ChangeRules, Edit, FilePath, own};

/// Dependency manifests and lock files of the common ecosystems. A `*` matches any part of a name.
const DEPENDENCIES: [&str; 54] = [
    "Cargo.toml",
    "Cargo.lock",
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "yarn.lock",
    ".yarnrc.yml",
    ".npmrc",
    "pnpm-lock.yaml",
    "pnpm-workspace.yaml",
    "bun.lock",
    "bun.lockb",
    "deno.json",
    "deno.jsonc",
    "deno.lock",
    "pyproject.toml",
    "poetry.lock",
    "uv.lock",
    "pdm.lock",
    "Pipfile",
    "Pipfile.lock",
    "setup.py",
    "setup.cfg",
    "requirements*.txt",
    "constraints*.txt",
    "environment.yml",
    "go.mod",
    "go.sum",
    "go.work",
    "Gemfile",
    "Gemfile.lock",
    "*.gemspec",
    "composer.json",
    "composer.lock",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "gradle.lockfile",
    "libs.versions.toml",
    "build.sbt",
    "*.csproj",
    "*.fsproj",
    "packages.lock.json",
    "Directory.Packages.props",
    "Package.swift",
    "Package.resolved",
    "Podfile",
    "Podfile.lock",
    "mix.exs",
    "mix.lock",
    "pubspec.yaml",
    "flake.lock",
];

/// The reason why a person has to approve a change.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum GateKind {
    /// A file is deleted.
    Deletion,
    /// The file is part of the orchestrator itself.
    OwnLogic,
    /// The file declares the dependencies of a program.
    Dependencies,
    /// The validation command runs the file, or a program that obeys it: the set changes its judge.
    Validation,
    /// Agents, tools, hooks or commands of the team obey the file.
    Steering,
    /// The change was left by another orchestrator.
    Foreign,
    /// The change was read from plain output, which any printed file can imitate.
    Printed,
}

impl GateKind {
    /// True if the gate is about the origin of the set, whatever its edits are.
    pub fn is_of_origin(self) -> bool {
        matches!(self, GateKind::Foreign | GateKind::Printed)
    }
}

/// A requirement for a person's approval.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// The reason for the gate.
    pub kind: GateKind,
    /// The file that it is about.
    pub file: FilePath,
}

/// Returns the gates that a person has to approve before these edits are applied.
pub fn gates(edits: &[Edit], rules: &ChangeRules) -> Vec<Gate> {
    let mut gates = Vec::new();
    for edit in edits {
        if edit.action == Action::Delete {
            gates.push(Gate { kind: GateKind::Deletion, file: edit.file.clone() });
        }
        for file in edit.from.iter().chain([&edit.file]) {
            let mut kinds = Vec::new();
            if own::is_logic(file, rules) {
                kinds.push(GateKind::OwnLogic);
            }
            if is_dependency(file) {
                kinds.push(GateKind::Dependencies);
            }
            if own::judges(file, rules) {
                kinds.push(GateKind::Validation);
            }
            if kinds.is_empty() && own::steers(file, rules) {
                kinds.push(GateKind::Steering);
            }
            gates.extend(kinds.into_iter().map(|kind| Gate { kind, file: file.clone() }));
        }
    }
    gates
}

/// Returns the setting that protects a file from every change, if there is one.
pub fn protection<'r>(file: &FilePath, rules: &'r ChangeRules) -> Option<&'r str> {
    let mut patterns = rules.protected.iter();
    patterns.find(|pattern| pattern.covers_folded(file.as_str())).map(|pattern| pattern.as_str())
}

/// True if the file declares the dependencies of a program.
pub fn is_dependency(file: &FilePath) -> bool {
    let name = folded(file.name());
    DEPENDENCIES.iter().any(|known| own::is_like(&name, &folded(known)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(action: Action, file: &str, from: Option<&str>) -> Edit {
        let path = |text: &str| text.parse().expect("a path");
        Edit { file: path(file), action, from: from.map(path), before: None, after: None }
    }

    #[test]
    fn s4_07_deletions_own_logic_and_dependencies_need_a_person() {
        let rules = ChangeRules {
            own: vec!["crates/engine/**".parse().expect("a pattern")],
            ..ChangeRules::default()
        };
        let kinds = |edit: Edit| {
            gates(&[edit], &rules).into_iter().map(|gate| gate.kind).collect::<Vec<_>>()
        };
        assert_eq!(kinds(edit(Action::Modify, "src/lib.rs", None)), []);
        assert_eq!(kinds(edit(Action::Delete, "src/lib.rs", None)), [GateKind::Deletion]);
        assert_eq!(kinds(edit(Action::Modify, "stafette.toml", None)), [GateKind::OwnLogic]);
        assert_eq!(kinds(edit(Action::Create, "crates/engine/a.rs", None)), [GateKind::OwnLogic]);
        assert_eq!(
            kinds(edit(Action::Rename, "old.toml", Some("Stafette.toml"))),
            [GateKind::OwnLogic],
            "a rename is asked about on both ends"
        );
        for file in ["Cargo.toml", "web/package-lock.json", "a/requirements-dev.txt", "X.csproj"] {
            assert_eq!(kinds(edit(Action::Modify, file, None)), [GateKind::Dependencies], "{file}");
        }
        assert_eq!(kinds(edit(Action::Modify, "cargo.TOML", None)), [GateKind::Dependencies]);
        assert_eq!(kinds(edit(Action::Modify, "requirements.md", None)), []);
    }

    #[test]
    fn s4_07_a_protected_file_is_protected_in_every_spelling_and_at_every_length() {
        let protected = vec!["secret/**".parse().expect("a pattern")];
        let rules = ChangeRules { protected, ..ChangeRules::default() };
        let deep = format!("Secret/{}x", "deep/".repeat(60));
        let long = format!("secret/{0}/{0}/{0}", "x".repeat(200));
        for file in ["secret/x", "SECRET/x", "Secret/a/b", "\u{17f}ecret/x", &deep, &long] {
            let file: FilePath = file.parse().expect("a path");
            assert_eq!(protection(&file, &rules), Some("secret/**"), "{file}");
        }
        assert_eq!(protection(&"secrets/x".parse().expect("a path"), &rules), None);
    }
}
