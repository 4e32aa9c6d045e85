//! `doctor --try`: Claude Code and Codex themselves, as a new user has them, with the profiles that are
//! shipped, a home that trusts nothing, worktrees, and nobody who has prepared anything.

use std::fs;

use serde_json::{Value, json};
use stafette_testkit::matrix::{Agent, trials};
use stafette_testkit::model::{ModelServer, Reply, Rule, Script};
use stafette_testkit::tools;

use crate::world::{World, program, repository};

/// Tries an agent in one mode, and looks at what is left in the user's home.
fn tried(agent: Agent, runner: &str, words: &[&str]) -> Vec<Value> {
    tools::debian("bwrap", "bubblewrap").expect("bubblewrap");
    let folder = tempfile::tempdir().expect("a folder");
    let trials = trials(program().as_ref(), folder.path(), agent, runner, words);
    let trials = trials.unwrap_or_else(|error| panic!("{agent:?}, {runner}: {error}"));
    let left = fs::read_dir(folder.path().join("user")).expect("the user's home");
    assert_eq!(left.count(), 0, "{agent:?}, {runner}: the user's home is as it was");
    for trial in &trials {
        assert_eq!(trial["version"], trial["proven"], "the version that is pinned");
        assert_eq!(trial["ok"], true, "{trial:#}");
    }
    trials
}

#[test]
fn b_23_claude_code_and_codex_work_at_first_contact_with_nobody() {
    for agent in [Agent::Claude, Agent::Codex] {
        for runner in ["exec", "pty", "acp"] {
            let trial = &tried(agent, runner, &[])[0];
            // Elsewhere they may not do everything, and ask.
            if trial["permissions"] == "all" {
                assert!(trial["ran"] == true && trial["edited"] == true, "{trial:#}");
                assert_eq!(trial["asks"], json!([]), "{trial:#}");
            }
        }
    }
}

/// The words for a trial as a user has it whose system keeps no agent in.
const UNHELD: [&str; 2] = ["--permissions", "edits"];

#[test]
fn b_23_claude_code_asks_once_before_it_runs_a_command_and_that_is_in_the_inbox() {
    for (runner, question) in [("pty", "Do you want to proceed?"), ("acp", "sh ./check.sh")] {
        let trial = &tried(Agent::Claude, runner, &UNHELD)[0];
        assert_eq!(trial["asks"], json!([question]), "{runner}: our own tools do not ask");
        assert!(trial["ran"] == true && trial["edited"] == true, "{trial:#}");
    }
}

#[test]
fn b_23_claude_code_without_a_terminal_tells_what_it_was_denied() {
    let trial = &tried(Agent::Claude, "exec", &UNHELD)[0];
    assert!(trial["edited"] == true && trial["ran"] == false, "{trial:#}");
    let alerts = trial["alerts"].to_string();
    assert!(alerts.contains("PERMISSION_DENIED was denied Bash"), "{trial:#}");
}

#[test]
fn b_05_what_agents_use_in_a_terminal_is_counted_and_a_budget_of_tokens_stops_them() {
    for agent in [Agent::Claude, Agent::Codex] {
        let trial = &tried(agent, "pty", &["--case", "budget"])[0];
        assert_eq!(trial["tokens"], trial["answered"], "{trial:#}");
        assert!(!trial["cost"].as_str().expect("a cost").contains("unknown"), "{trial:#}");
    }
}

#[test]
fn b_23_codex_needs_nobody_in_its_own_sandbox() {
    for runner in ["exec", "pty", "acp"] {
        let trial = &tried(Agent::Codex, runner, &UNHELD)[0];
        assert!(trial["ran"] == true && trial["edited"] == true, "{trial:#}");
        assert_eq!(trial["asks"], json!([]), "{runner}: {trial:#}");
    }
}

#[test]
fn b_23_an_agent_that_is_not_installed_is_named_with_its_package() {
    let world = World::new();
    let env = [("PATH", "/usr/bin:/bin")];
    let said = world.run_with(&["doctor", "--try", "--only", "claude", "--json"], b"", &env).ok();
    let missing = &said.json()["not_installed"];
    assert_eq!(missing[0]["install"], "npm install -g @anthropic-ai/claude-code");
    let adapter = "npm install -g @agentclientprotocol/claude-agent-acp";
    assert_eq!((&missing[2]["runner"], &missing[2]["install"]), (&json!("acp"), &json!(adapter)));
    let said = world.run_with(&["doctor"], b"", &env);
    assert!(said.out.contains("npm install -g @openai/codex"), "{said:?}");
    let said = world.run_with(&["doctor", "--try", "--only", "nobody"], b"", &env);
    assert_eq!(said.code, 2, "{said:?}");
    assert!(said.err.contains("choose from claude, codex"), "{said:?}");
}

/// The trial settings of a profile as it is shipped: the variables and the files of a home that has
/// a key and knows a model, and nothing else.
fn settle(world: &World, name: &str, model: &str) -> Vec<(String, String)> {
    let path = repository().join(format!("crates/stafette-agents/profiles/{name}.toml"));
    let profile: toml::Table =
        fs::read_to_string(path).expect("a profile").parse().expect("a profile is TOML");
    let fill = |text: &toml::Value| {
        let text = text.as_str().expect("text");
        text.replace("{model}", model).replace("{key}", "sk-scripted-key-for-a-model-on-loopback")
    };
    let table = |key: &str| profile["trial"][key].as_table().cloned().unwrap_or_default();
    for (file, text) in table("files") {
        let file = world.home().join(file);
        fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
        fs::write(file, fill(&text)).expect("written");
    }
    table("env").iter().map(|(key, value)| (key.clone(), fill(value))).collect()
}

#[test]
fn b_27_a_new_user_has_an_applied_change_after_two_commands() {
    tools::debian("bwrap", "bubblewrap").expect("bubblewrap");
    let script = Script::new()
        .rule(
            Rule::when("You build.")
                .then(Reply::shell("echo FOLDER=$(pwd)"))
                .then(Reply::write("{folder}/flag.txt", "--json\n"))
                .then(Reply::mcp(
                    "stafette",
                    "handoff",
                    json!({ "to": "reviewer", "summary": "The flag is in flag.txt" }),
                ))
                .then(Reply::text("Built.")),
        )
        .rule(
            Rule::when("You review.")
                .then(Reply::shell("cat flag.txt"))
                .then(Reply::mcp("stafette", "complete", json!({ "summary": "The flag is good" })))
                .then(Reply::text("Reviewed.")),
        );
    let model = ModelServer::start(script).expect("a model");
    let world = World::new();
    world.write("tool.py", "print('hello')\n");
    for words in [&["init", "-q", "-b", "main"][..], &["add", "."], &["commit", "-qm", "Begin"]] {
        let mut git = world.command("git");
        let git = git.args(["-c", "user.name=Mia", "-c", "user.email=mia@example.org"]);
        assert!(git.args(words).status().expect("git").success());
    }
    let mut env = Vec::new();
    let mut path = String::new();
    for agent in [Agent::Claude, Agent::Codex] {
        let program = agent.programs(false).expect("an agent").remove(0);
        path += &format!("{}:", program.parent().expect("a folder").display());
        env.extend(settle(&world, agent.name(), &model.url()));
    }
    path += &std::env::var("PATH").unwrap_or_default();
    env.push(("PATH".to_owned(), path));
    let env: Vec<_> = env.iter().map(|(name, value)| (&**name, &**value)).collect();
    let said = world.run_with(&["run", "--yes", "Add a --json flag"], b"", &env);
    let heard = || format!("{said:?}\n{:?}", model.exchanges());
    assert_eq!(said.code, 0, "{}", heard());
    assert!(said.err.contains("reviewer: The flag is good"), "{}", heard());
    assert!(said.err.contains("Take it: stafette apply c1"), "{}", heard());
    world.run_with(&["apply", "c1", "--yes"], b"", &env).ok();
    assert_eq!(world.read("flag.txt"), "--json\n", "{}", heard());
}
