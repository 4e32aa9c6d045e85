//! The plugin for Claude Code, the registry's entry, and what agents read first.

use std::process::Command;

use serde_json::{Value, json};
use stafette_testkit::cli::{Cli, Prepared};
use stafette_testkit::model::{ModelServer, Reply, Rule, Script};

use crate::world::{World, program, repository};

fn claude(world: &World, model: &ModelServer) -> Prepared {
    let home = world.home().join("agents");
    match Cli::Claude.prepare(&home, &world.project(), &model.url()) {
        Ok(ready) => ready,
        Err(trouble) => panic!("{trouble}"),
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).expect(path)
}

fn parse(path: &str) -> Value {
    serde_json::from_str(&read(path)).expect(path)
}

#[test]
fn claude_code_itself_finds_the_plugin_and_its_marketplace_sound() {
    let world = World::new();
    let model = ModelServer::start(Script::new()).expect("a model");
    let claude = claude(&world, &model);
    for folder in [repository().join("plugin"), repository()] {
        let words = ["plugin", "validate", "--strict"].map(str::to_owned);
        let folder = folder.display().to_string();
        let words: Vec<String> = [claude.program.display().to_string()]
            .into_iter()
            .chain(words)
            .chain([folder])
            .collect();
        let said = claude.command(&words).output().expect("it starts");
        let text = String::from_utf8_lossy(&said.stdout).into_owned();
        assert!(said.status.success(), "{text}{}", String::from_utf8_lossy(&said.stderr));
    }
}

#[test]
fn a_session_with_the_plugin_tells_what_it_does_by_its_own_channel() {
    let world = World::new();
    let plan = world.project().join("plan.md").display().to_string();
    let script = Script::new().rule(
        Rule::when("You plan.")
            .then(Reply::write(plan, "1. Build it.\n"))
            .then(Reply::text("<<<ODEI:RESULT:done>>>")),
    );
    let model = ModelServer::start(script).expect("a model");
    let claude = claude(&world, &model);
    let plugin = repository().join("plugin").canonicalize().expect("the plugin");
    let mut command = claude.headless();
    command.extend(["--plugin-dir".to_owned(), plugin.display().to_string()]);
    world.write(
        "stafette.toml",
        &format!(
            "[workflow]\nname = \"plan\"\nentry = \"planner\"\n\
             [agents.planner]\nrunner = \"exec\"\nprompt = \"You plan.\"\n\
             command = {}\nenv = {}\n[limits]\naccept_timeout = \"5m\"\n",
            json!(command),
            json!(claude.names()),
        ),
    );
    world.run(&["trust", "--yes"]).ok();
    // What is told goes through a program that notes it down and how it was taken.
    let bin = world.home().join("bin");
    let told = world.home().join("told");
    std::fs::create_dir_all(&bin).expect("a folder");
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = emit ] || exec {0} \"$@\"\ninput=$(cat)\n\
         printf '%s' \"$input\" | {0} \"$@\"\necho \"$? $input\" >> {1}\n",
        program(),
        told.display()
    );
    stafette_testkit::program::write(&bin.join("stafette"), &script).expect("a program");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut env: Vec<(&str, &str)> =
        claude.env.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    env.push(("PATH", &path));
    world.run_with(&["run", "--foreground", "Plan it"], b"", &env).ok();
    assert_eq!(world.read("plan.md"), "1. Build it.\n");
    let told = std::fs::read_to_string(told).expect("something was told");
    for note in ["is ready", "reads the request", "uses Write", "used Write", "has answered"] {
        assert!(told.contains(&format!("0 {{\"note\":\"{note}\"}}\n")), "{note}: {told}");
    }
    // Of many notes in a short time the run keeps a few.
    let log = world.run(&["log", "--json"]).ok();
    assert!(log.lines().iter().any(|event| event["note"].is_string()), "{log:?}");
}

#[test]
fn the_plugin_says_nothing_where_stafette_did_not_start_the_session() {
    let world = World::new();
    let script = repository().join("plugin/hooks/report.sh");
    let said = world.command("sh").arg(script).arg("PreToolUse").output().expect("it starts");
    assert!(said.status.success() && said.stdout.is_empty() && said.stderr.is_empty(), "{said:?}");
}

#[test]
fn versions_and_names_are_the_same_everywhere() {
    let version = env!("CARGO_PKG_VERSION");
    let (plugin, market) =
        (parse("plugin/.claude-plugin/plugin.json"), parse(".claude-plugin/marketplace.json"));
    assert_eq!(plugin["version"], version);
    assert_eq!(plugin["name"], market["plugins"][0]["name"]);
    let source = market["plugins"][0]["source"].as_str().expect("a folder");
    assert!(repository().join(source).join(".claude-plugin/plugin.json").is_file());
}

#[test]
fn the_registrys_entry_has_the_shape_of_its_schema() {
    let server = parse("server.json");
    let text = |name: &str| server[name].as_str().expect(name).to_owned();
    assert_eq!(text("version"), env!("CARGO_PKG_VERSION"));
    assert!(text("$schema").ends_with("/2025-12-11/server.schema.json"));
    let (space, name) = server["name"].as_str().and_then(|n| n.split_once('/')).expect("two parts");
    let plain = |text: &str, more: &str| {
        !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    assert!(plain(space, ".-") && plain(name, "._-"));
    assert!((1..=100).contains(&text("description").chars().count()));
    assert!((1..=100).contains(&text("title").chars().count()));
    assert_eq!(server["repository"]["source"], "github");
    let subfolder = server["repository"]["subfolder"].as_str().expect("a folder");
    assert!(repository().join(subfolder).join("Cargo.toml").is_file());
    assert_eq!(registry_says(&read("server.json")), [""; 0]);
    // It would say so if it were otherwise.
    let broken = read("server.json").replace("\"source\": \"github\",", "");
    let said = registry_says(&broken);
    assert!(said.len() == 1 && said[0].contains("'source' is a required property"), "{said:?}");
}

/// What a checker with the registry's released schemas finds wrong with an entry.
fn registry_says(entry: &str) -> Vec<String> {
    let requirements = include_str!("plugin/requirements.txt");
    let home = stafette_testkit::tools::python("skillsaw", requirements).expect("skillsaw");
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("server.json"), entry).expect("written");
    let checked = Command::new(home.join("bin/skillsaw"))
        .args(["lint", "--strict", "--no-color", "--no-progress", "--type", "mcp-registry"])
        .args(["--rule", "mcp-registry-server-json-valid", "--format", "json", "."])
        .current_dir(folder.path())
        .output()
        .expect("skillsaw");
    let report: Value = serde_json::from_slice(&checked.stdout).expect("JSON");
    assert_ne!(report["stats"]["rules_run"], 0, "{report}");
    let found = report["violations"].as_array().expect("violations").iter();
    found.map(|found| found["message"].as_str().unwrap_or_default().to_owned()).collect()
}

#[test]
fn what_agents_read_first_names_only_what_is_there() {
    for document in ["AGENTS.md", "llms.txt"] {
        let text = read(document);
        for part in text.split(['`', '(', ')', '\n', ' ']) {
            let is_path = part.contains('/')
                && !part.contains("://")
                && part.chars().all(|c| c.is_ascii_alphanumeric() || "/._-".contains(c));
            if is_path && !part.starts_with('/') {
                assert!(repository().join(part).exists(), "{document} names `{part}`");
            }
        }
    }
}
