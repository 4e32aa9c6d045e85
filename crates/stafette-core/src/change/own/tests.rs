use super::*;
use crate::change::{Action, Edit, GateKind, gates};

fn path(text: &str) -> FilePath {
    text.parse().expect(text)
}

fn kinds(file: &str, rules: &ChangeRules) -> Vec<GateKind> {
    let (file, action) = (path(file), Action::Modify);
    let edit = Edit { file, action, from: None, before: None, after: None };
    gates(&[edit], rules).into_iter().map(|gate| gate.kind).collect()
}

fn validation(command: &[&str]) -> ChangeRules {
    let validate = command.iter().map(ToString::to_string).collect();
    ChangeRules { validate, ..ChangeRules::default() }
}

#[test]
fn s4_07_what_steers_tools_needs_a_person_in_any_case_and_any_folder() {
    let rules = ChangeRules::default();
    for file in [
        "CLAUDE.md",
        "sub/AGENTS.md",
        ".claude/settings.json",
        ".Claude/Settings.json",
        ".mcp.json",
        ".envrc",
        ".husky/pre-commit",
        ".githooks/pre-push",
        ".github/workflows/ci.yml",
        ".GitHub/Workflows/ci.yml",
        ".gitlab-ci.yml",
        ".pre-commit-config.yaml",
        ".vscode/tasks.json",
        "Makefile",
        "makefile",
        "docker/Dockerfile.dev",
        "docker-compose.override.yml",
        "Justfile",
        "crates/x/build.rs",
        ".cargo/config.toml",
        ".qwen/settings.json",
        "sub/.qwen/settings.json",
        "QWEN.md",
        ".goosehints",
        ".agents/skills/x/SKILL.md",
        "crush.json",
        ".amp/settings.json",
        ".nvim.lua",
        ".dir-locals.el",
        ".mvn/jvm.config",
        ".yarn/releases/y.cjs",
        "gradlew",
        "bunfig.toml",
        "hooks/pre-commit",
        ".lefthook.yaml",
        "lefthook-local.yml",
        ".simple-git-hooks.json",
        "simple-git-hooks.cjs",
        ".overcommit.yml",
        "mise.local.toml",
        ".github/agents/x.md",
        ".github/chatmodes/x.chatmode.md",
        ".openhands/setup.sh",
        ".claude-plugin/plugin.json",
        "plugins/x/hooks/hooks.json",
        "skills/x/SKILL.md",
        "tests/conftest.py",
        "jest.config.ts",
        "eslint.config.mjs",
        ".eslintrc.js",
        "vite.config.ts",
        "webpack.config.js",
        "Rakefile",
        "CMakeLists.txt",
        "noxfile.py",
        "tox.ini",
        "gradle/shared.gradle",
        "Taskfile.yaml",
        ".gitpod.yml",
        ".semaphore/semaphore.yml",
        ".builds/x.yml",
        ".zuul.yaml",
        "action.yml",
        ".github/CODEOWNERS",
        ".github/dependabot.yml",
        "vercel.json",
        "lint-staged.config.js",
        ".stylelintrc.js",
        ".mocharc.js",
        "commitlint.config.js",
        "web/astro.config.mjs",
        "jest.setup.ts",
        ".rspec",
        "spec/spec_helper.rb",
        "pytest.ini",
        "lib/tasks/x.rake",
        "magefile.go",
        "build.zig",
        "SConstruct",
        "turbo.json",
        "CMakePresets.json",
        ".gdbinit",
        ".pryrc",
        "site/x.pth",
        ".agent/rules/x.md",
        "CONVENTIONS.md",
        ".coderabbit.yaml",
    ] {
        assert_eq!(kinds(file, &rules), [GateKind::Steering], "{file}");
    }
    for file in [
        "src/main.rs",
        "README.md",
        ".github/ISSUE_TEMPLATE.md",
        "docs/makefiles.md",
        "src/hooks/use.ts",
    ] {
        assert_eq!(kinds(file, &rules), [], "{file}");
    }
    assert_eq!(kinds("profiles/claude.toml", &rules), [GateKind::OwnLogic]);
}

#[test]
fn s4_07_what_the_validation_runs_needs_a_person_and_what_it_looks_at_does_not() {
    for (command, file) in [
        (&["sh", "check.sh"][..], "check.sh"),
        (&["./check"], "check"),
        (&["sh", "check.sh"], "Check.SH"),
        (&["sh", "-c", "cd tools && ./check.sh -v"], "tools/check.sh"),
        (&["sh", "-c", "set -e; . scripts/env.sh; cargo test"], "scripts/env.sh"),
        (&["sh", "-c", "exec \"$PWD/ci/check\""], "ci/check"),
        (&["bash", "-euo", "pipefail", "ci/../check.sh"], "check.sh"),
        (&["python3", "-m", "tools.check"], "tools/check.py"),
        (&["node", "--import=./hooks.mjs", "test.mjs"], "hooks.mjs"),
        (&["make", "check"], "Makefile"),
        (&["npm", "test"], "package.json"),
    ] {
        let found = kinds(file, &validation(command));
        assert!(found.contains(&GateKind::Validation), "{command:?} {file}: {found:?}");
    }
    for (command, file) in [
        (&["sh", "-c", "test -f src/greet.ts && echo fine"][..], "src/greet.ts"),
        (&["sh", "-c", "! grep -q bad a.txt"], "a.txt"),
        (&["sh", "-c", "make-it > out.txt"], "out.txt"),
        (&["cargo", "test"], "test/a.rs"),
        (&["eslint", "src/"], "src/a.ts"),
    ] {
        assert_eq!(kinds(file, &validation(command)), [], "{command:?} {file}");
    }
}

#[test]
fn s4_07_what_an_interpreter_looks_up_needs_a_person() {
    for (command, file) in [
        (&["node", "q"][..], "q.mjs"),
        (&["node", "q"], "q/index.js"),
        (&["python3", "-m", "pkg"], "pkg/deep/a.py"),
        (&["ruby", "-r./b", "-e1"], "b.rb"),
    ] {
        assert_eq!(kinds(file, &validation(command)), [GateKind::Validation], "{command:?}");
        let named = all_files(&command.iter().map(ToString::to_string).collect::<Vec<_>>());
        let rules = ChangeRules { named, ..ChangeRules::default() };
        assert_eq!(kinds(file, &rules), [GateKind::Steering], "{command:?}");
    }
    assert_eq!(kinds("other/q.js", &validation(&["node", "q"])), []);
}

#[test]
fn s4_07_every_file_that_a_trusted_command_names_is_the_projects_own() {
    let text = r#"
        workflow = { name = "team", entry = "a" }
        agents.a = { runner = "exec", command = ["sh", "agents/a.sh"] }
        agents.b = { runner = "scripted", script = "./agents/b.toml" }
        agents.c = { runner = "exec", command = ["cat", "frames.txt"] }
        changes.validate = ["sh", "check.sh"]
        hooks = [{ on = "run_finished", command = ["tools/done", "--config=tools/done.json"] }]
        self = { build = ["sh", "build.sh"], program = "bin/team", prove = ["bin/prove"] }
    "#;
    let rules = crate::workflow::file::parse(text).expect("a workflow").change_rules();
    for file in [
        "agents/a.sh",
        "AGENTS/A.sh",
        "agents/b.toml",
        "frames.txt",
        "tools/done",
        "tools/done.json",
        "build.sh",
        "bin/team",
        "bin/prove",
    ] {
        assert_eq!(kinds(file, &rules), [GateKind::Steering], "{file}");
    }
    assert_eq!(kinds("check.sh", &rules), [GateKind::Validation]);
    assert_eq!(kinds("agents/c.txt", &rules), []);
    let parts = crate::workflow::file::parse(text).expect("a workflow").parts();
    for file in ["agents/a.sh", "./agents/b.toml", "tools/done", "build.sh", "check.sh"] {
        assert!(parts.iter().any(|part| part == file), "{file} in {parts:?}");
    }
}

#[test]
fn s4_07_what_stafette_reads_in_the_project_is_the_projects_own() {
    let text = r#"
        workflow = { name = "team", entry = "a" }
        agents.a = { runner = "external" }
        coordination.folder = "./Team/box"
        generations.context = "data/context.json"
        knowledge = { constitution = "rules.md", goals = "plans/goals.toml" }
    "#;
    let workflow = crate::workflow::file::parse(text).expect("a workflow");
    let rules = workflow.change_rules();
    let folder = "team/box/handoffs/pending/x.json";
    for file in [folder, "TEAM/box/state.json", "data/context.json", "rules.md", "plans/goals.toml"]
    {
        assert_eq!(kinds(file, &rules), [GateKind::Steering], "{file}");
    }
    assert_eq!(kinds("team/boxes.txt", &rules), []);
    let parts = workflow.parts();
    assert!(["rules.md", "plans/goals.toml"].iter().all(|it| parts.iter().any(|part| part == it)));
    for (folder, intake) in [(".", "handoffs"), ("./", "handoffs"), (".claude", ".claude")] {
        let text = text.replace("./Team/box", folder);
        let workflow = crate::workflow::file::parse(&text).expect("a workflow");
        assert_eq!(workflow.intake_folder().as_deref(), Some(intake));
        let file =
            format!("{intake}/handoffs/pending/x.json").replace("handoffs/handoffs", "handoffs");
        assert_eq!(kinds(&file, &workflow.change_rules()), [GateKind::Steering], "{file}");
    }
}
