//! The one definition of a project's own files: those that the team runs on, is steered by, or is
//! judged by. A person has to approve every change to them.
//!
//! Paths are compared as the most forgiving file system sees them: without case, invisible
//! characters and differences in how an accent is written.

use std::path::{Component, Path};

use super::ChangeRules;
use super::path::{FilePath, folded};
use crate::command::{self, Role};
use crate::workflow::Workflow;

/// The path of the workflow file.
const WORKFLOW: &str = "stafette.toml";

/// The folder of the profiles that the project brings.
const PROFILES: &str = "profiles/";

/// Files and folders that can make agents start programs, anywhere in the project.
const LEVERS: [&str; 32] = [
    ".agent",
    ".agents",
    ".aider.conf.yml",
    ".amazonq",
    ".amp",
    ".augment",
    ".claude",
    ".claude-plugin",
    ".coderabbit.yaml",
    ".coderabbit.yml",
    ".codex",
    ".continue",
    ".crush",
    ".crush.json",
    ".cursor",
    ".factory",
    ".gemini",
    ".goose",
    ".junie",
    ".kilocode",
    ".kiro",
    ".mcp.json",
    ".opencode",
    ".openhands",
    ".pr_agent.toml",
    ".qwen",
    ".roo",
    ".trae",
    ".windsurf",
    "crush.json",
    "opencode.json",
    "opencode.jsonc",
];

/// Files and folders that tell agents what to do, anywhere in the project.
const INSTRUCTIONS: [&str; 19] = [
    ".augment-guidelines",
    ".clinerules",
    ".cursorrules",
    ".goosehints",
    ".roomodes",
    ".rules",
    ".windsurfrules",
    "agent.md",
    "agents.md",
    "agents.override.md",
    "claude.local.md",
    "claude.md",
    "conventions.md",
    "copilot-instructions.md",
    "crush.md",
    "gemini.md",
    "qwen.md",
    "skill.md",
    "warp.md",
];

/// Files and folders from which shells, editors and hooks of git start programs that nobody has asked
/// for, anywhere in the project. A `*` matches any part of a name.
const STARTERS: [&str; 37] = [
    "*.code-workspace",
    "*.pth",
    ".autoenv",
    ".autoenv.zsh",
    ".devcontainer",
    ".devcontainer.json",
    ".dir-locals-2.el",
    ".dir-locals.el",
    ".envrc",
    ".exrc",
    ".gdbinit",
    ".githooks",
    ".helix",
    ".husky",
    ".huskyrc*",
    ".idea",
    ".irbrc",
    ".lefthook*",
    ".lintstagedrc*",
    ".lldbinit",
    ".lvimrc",
    ".mise",
    ".mise*.toml",
    ".nvim.lua",
    ".nvimrc",
    ".overcommit.yml",
    ".pre-commit-config.yaml",
    ".pre-commit-hooks.yaml",
    ".pryrc",
    ".simple-git-hooks.*",
    ".vimrc",
    ".vscode",
    ".zed",
    "lefthook*",
    "lint-staged.config.*",
    "mise*.toml",
    "simple-git-hooks.*",
];

/// Files and folders that tell continuous integration what to run, anywhere in the project. A `*`
/// matches any part of a name.
const INTEGRATION: [&str; 40] = [
    ".appveyor.yml",
    ".build.yml",
    ".buildkite",
    ".builds",
    ".circleci",
    ".cirrus.yml",
    ".drone.yml",
    ".gitlab-ci.yml",
    ".gitpod.dockerfile",
    ".gitpod.yml",
    ".renovaterc*",
    ".semaphore",
    ".teamcity",
    ".travis.yml",
    ".woodpecker",
    ".woodpecker.yml",
    ".zuul.d",
    ".zuul.yaml",
    "action.yaml",
    "action.yml",
    "appveyor.yml",
    "azure-pipelines.yml",
    "bitbucket-pipelines.yml",
    "buildkite.yml",
    "buildspec.yml",
    "cloudbuild.yaml",
    "cloudbuild.yml",
    "codemagic.yaml",
    "codeowners",
    "dependabot.yaml",
    "dependabot.yml",
    "jenkinsfile*",
    "netlify.toml",
    "renovate.json",
    "renovate.json5",
    "screwdriver.yaml",
    "vercel.json",
    "wercker.yml",
    "zuul.d",
    "zuul.yaml",
];

/// Files and folders that other tools obey, anywhere in the project: builds and containers. A `*`
/// matches any part of a name.
const TOOLS: [&str; 107] = [
    "*.cmake",
    "*.dockerfile",
    "*.gradle",
    "*.gradle.kts",
    "*.mk",
    "*.rake",
    ".babelrc*",
    ".bazelrc",
    ".bazelversion",
    ".cargo",
    ".commitlintrc*",
    ".eslintrc*",
    ".gitattributes",
    ".gitmodules",
    ".justfile",
    ".mocharc.*",
    ".mvn",
    ".npmrc",
    ".pnp.cjs",
    ".pnpmfile.cjs",
    ".prettierrc*",
    ".pylintrc",
    ".rspec",
    ".stylelintrc*",
    ".tool-versions",
    ".yarn",
    ".yarnrc",
    ".yarnrc.yml",
    "astro.config.*",
    "babel.config.*",
    "build.rs",
    "build.sbt",
    "build.zig",
    "build.zig.zon",
    "bunfig.toml",
    "cmakelists.txt",
    "cmakepresets.json",
    "cmakeuserpresets.json",
    "commitlint.config.*",
    "compose.*.yaml",
    "compose.*.yml",
    "compose.yaml",
    "compose.yml",
    "conftest.py",
    "containerfile*",
    "cypress.config.*",
    "docker-bake.*",
    "docker-compose*",
    "dockerfile*",
    "drizzle.config.*",
    "earthfile",
    "eslint.config.*",
    "flake.nix",
    "gnumakefile",
    "gradle-wrapper.jar",
    "gradle-wrapper.properties",
    "gradlew",
    "gradlew.bat",
    "gruntfile*",
    "gulpfile*",
    "jest.config.*",
    "jest.setup.*",
    "justfile",
    "karma.conf.*",
    "magefile*",
    "makefile",
    "meson.build",
    "metro.config.*",
    "mvnw",
    "mvnw.cmd",
    "next.config.*",
    "noxfile.py",
    "nuxt.config.*",
    "nx.json",
    "playwright.config.*",
    "postcss.config.*",
    "prettier.config.*",
    "procfile",
    "pytest.ini",
    "rails_helper.rb",
    "rakefile*",
    "remix.config.*",
    "rollup.config.*",
    "rust-toolchain",
    "rust-toolchain.toml",
    "sconscript",
    "sconstruct",
    "setup.py",
    "shell.nix",
    "sitecustomize.py",
    "skaffold.yaml",
    "spec_helper.rb",
    "stylelint.config.*",
    "svelte.config.*",
    "tailwind.config.*",
    "taskfile*",
    "tiltfile",
    "tox.ini",
    "turbo.json",
    "usercustomize.py",
    "vagrantfile",
    "vite.config.*",
    "vitest.config.*",
    "vitest.setup.*",
    "vitest.workspace.*",
    "webpack.config.*",
    "wscript",
];

/// Folders of continuous integration inside of folders that also hold other things.
pub const AUTOMATION: [&str; 10] = [
    ".config/mise",
    ".forgejo/workflows",
    ".gitea/workflows",
    ".github/actions",
    ".github/agents",
    ".github/chatmodes",
    ".github/instructions",
    ".github/prompts",
    ".github/workflows",
    ".gitlab/ci",
];

/// Hooks of git, which `core.hooksPath` lets stand in any folder.
const HOOKS: [&str; 20] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "push-to-checkout",
    "reference-transaction",
];

/// Programs, and the files that tell them what to do although the command does not name them.
const IMPLIED: [(&[&str], &[&str]); 11] = [
    (&["bun", "npm", "pnpm", "yarn"], &["package.json"]),
    (&["docker", "podman"], &["dockerfile", "containerfile"]),
    (&["docker"], &["compose.yaml", "compose.yml", "docker-compose.yml"]),
    (&["gmake", "make"], &["makefile", "gnumakefile"]),
    (&["gradle", "gradlew"], &["build.gradle", "build.gradle.kts"]),
    (&["just"], &["justfile", ".justfile"]),
    (&["mvn"], &["pom.xml"]),
    (&["nox"], &["noxfile.py"]),
    (&["pre-commit"], &[".pre-commit-config.yaml"]),
    (&["task"], &["taskfile.yml", "taskfile.yaml"]),
    (&["tox"], &["tox.ini", "pyproject.toml", "setup.cfg"]),
];

/// True if the file or folder of this name can make agents start programs.
pub fn is_lever(name: &str) -> bool {
    let name = folded(name);
    name == WORKFLOW || LEVERS.contains(&name.as_str())
}

/// True if a shell, an editor or a hook of git starts programs from the file or folder of this name
/// unasked.
pub fn is_starter(name: &str) -> bool {
    let name = folded(name);
    STARTERS.iter().any(|pattern| is_like(&name, pattern))
}

/// True if continuous integration runs what the file or folder of this name says.
pub fn is_integration(name: &str) -> bool {
    let name = folded(name);
    INTEGRATION.iter().any(|pattern| is_like(&name, pattern))
}

/// True if the file is part of the orchestrator itself: its workflow, its profiles, or what
/// `[changes]` calls its own.
pub(super) fn is_logic(file: &FilePath, rules: &ChangeRules) -> bool {
    let text = folded(file.as_str());
    folded(file.name()) == WORKFLOW
        || (text.starts_with(PROFILES) && text.ends_with(".toml"))
        || rules.own.iter().any(|pattern| pattern.covers_folded(file.as_str()))
}

/// True if the validation command runs the file, or a program that obeys it.
pub(super) fn judges(file: &FilePath, rules: &ChangeRules) -> bool {
    let name = folded(file.name());
    let programs = command::mentions(&rules.validate).programs;
    let is_run = |names: &[&str]| names.iter().any(|name| programs.contains(*name));
    let mut implied = IMPLIED.iter().filter(|(names, _)| is_run(names));
    implied.any(|(_, files)| files.contains(&name.as_str())) || runs(&rules.validate, file)
}

/// True if the command runs the file, which it names, or which its program finds by a name without an
/// ending. What it only looks at is judged, and judges nothing.
pub fn runs(command: &[String], file: &FilePath) -> bool {
    let path = folded(file.as_str());
    let files = command::mentions(command).files.into_iter();
    let named = files.filter(|file| file.role != Role::Looks).map(|file| folded_path(&file.path));
    named.chain(looked_up(command)).any(|word| names(&word, &path))
}

/// True if tools, hooks or commands of the team obey the file.
pub(super) fn steers(file: &FilePath, rules: &ChangeRules) -> bool {
    let text = folded(file.as_str());
    let known = |name: &str| {
        LEVERS.contains(&name)
            || INSTRUCTIONS.contains(&name)
            || STARTERS
                .iter()
                .chain(&HOOKS)
                .chain(&INTEGRATION)
                .chain(&TOOLS)
                .any(|pattern| is_like(name, pattern))
    };
    let within = |folder: &str| {
        text.starts_with(&format!("{folder}/")) || text.contains(&format!("/{folder}/"))
    };
    let parts: Vec<&str> = text.split('/').collect();
    // Plugins of agents bring hooks along.
    let is_plugin = |three: &[&str]| three[0] == "plugins" && three[2] == "hooks";
    parts.iter().any(|name| known(name))
        || parts.windows(3).any(is_plugin)
        || AUTOMATION.iter().any(|folder| within(folder))
        || rules.named.iter().any(|word| names(word, &text))
}

/// True if a folded name matches a name in which a `*` stands for any part.
pub(super) fn is_like(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((head, tail)) => {
            name.len() >= pattern.len() - 1 && name.starts_with(head) && name.ends_with(tail)
        }
    }
}

/// True if a folded word of a command names the folded path. An absolute one may lead here. A `/` at
/// its end stands for all that is in a folder, and `.*` for any ending.
fn names(word: &str, path: &str) -> bool {
    if let Some(stem) = word.strip_suffix(".*") {
        let ending = path.strip_prefix(stem).and_then(|rest| rest.strip_prefix('.'));
        return ending.is_some_and(|ending| !ending.contains('/'));
    }
    if word.ends_with('/') {
        return path.starts_with(word);
    }
    match word.strip_prefix('/') {
        Some(inner) => inner == path || inner.ends_with(&format!("/{path}")),
        None => word == path,
    }
}

impl Workflow {
    /// Returns the rules for changes, which know the files that the workflow's commands name.
    pub fn change_rules(&self) -> ChangeRules {
        let hooks = self.hooks.iter().map(|hook| &hook.command);
        let agents = self.agents.values().map(|agent| &agent.command);
        let own = self.own.iter().flat_map(|own| [&own.build, &own.prove, &own.start]);
        // Of the validation, `judges` knows what it runs; what it looks at is what it judges.
        let commands = agents.chain(hooks).chain(own);
        let mut named: Vec<String> = commands.flat_map(|command| all_files(command)).collect();
        let program = self.own.iter().map(|own| own.program.clone());
        let context = self.generations.clone().unwrap_or_default().context;
        let files = self.read_files().into_iter().chain(program).chain([context]);
        named.extend(files.map(|file| folded_path(&file)));
        named.extend(self.intake_folder().map(|folder| folded_path(&folder) + "/"));
        // A profile's commands name files as well.
        named.extend(self.profiles.values().flat_map(|text| {
            let text = text.replace(['"', ',', '[', ']'], " ");
            all_files(&["sh".to_owned(), "-c".to_owned(), text])
        }));
        named.sort();
        named.dedup();
        ChangeRules { named, ..self.changes.clone() }
    }

    /// Lists the files that the workflow names for Stafette itself to read, as they are written. Gates,
    /// pins and trust all ask here.
    pub fn read_files(&self) -> Vec<String> {
        let scripts = self.agents.values().filter_map(|agent| agent.script.clone());
        let known = self.knowledge.iter();
        let known = known.flat_map(|known| [known.constitution.clone(), known.goals.clone()]);
        scripts.chain(known.flatten()).collect()
    }

    /// Returns the folder in which a file can start a run, or end a turn; `None` without
    /// `[coordination]`.
    pub fn intake_folder(&self) -> Option<String> {
        let folder = &self.coordination.as_ref()?.folder;
        // Of the project itself only a part is meant.
        let is_whole = Path::new(folder).components().all(|part| part == Component::CurDir);
        Some(if is_whole { "handoffs".to_owned() } else { folder.clone() })
    }

    /// Lists the files whose contents are part of the workflow, as they are written: its profiles
    /// and scripts, what it names for Stafette to read, and what its commands run.
    pub fn parts(&self) -> Vec<String> {
        let hooks = self.hooks.iter().map(|hook| &hook.command);
        let agents = self.agents.values().map(|agent| &agent.command);
        let own = self.own.iter().flat_map(|own| [&own.build, &own.prove, &own.start]);
        let commands = agents.chain(hooks).chain(own).chain([&self.changes.validate]);
        let mut parts: Vec<String> =
            commands.flat_map(|command| command::contents(command)).collect();
        parts.extend(self.read_files());
        parts.extend(self.profiles.keys().map(|name| format!("{PROFILES}{name}.toml")));
        parts.sort();
        parts.dedup();
        parts
    }
}

/// Lists every path that a command names, folded.
fn all_files(command: &[String]) -> Vec<String> {
    let mentions = command::mentions(command);
    let files = mentions.files.iter().map(|file| folded_path(&file.path));
    files.chain(looked_up(command)).collect()
}

/// Lists what a command can run by the names that its program looks up, as [`names`] reads it. One
/// that runs the project's own folder is marked for the person who trusts it.
fn looked_up(command: &[String]) -> Vec<String> {
    let names = command::lookups(command).into_iter().map(|name| folded_path(&name));
    let names = names.filter(|name| !name.is_empty());
    names.flat_map(|name| [format!("{name}/"), format!("{name}.*")]).collect()
}

/// Returns a path in its normal form, folded.
fn folded_path(path: &str) -> String {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    let root = if path.starts_with('/') { "/" } else { "" };
    folded(&format!("{root}{}", names.join("/")))
}

#[cfg(test)]
mod tests;
