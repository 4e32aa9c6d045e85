//! What the README says of the real command lines, held against them.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};
use stafette_testkit::cli::{Cli, Prepared};
use stafette_testkit::model::{ModelServer, Outcome, Reply, Rule, Script, Usage};
use tempfile::TempDir;

/// One of them in a folder of its own, and its model.
struct Agent {
    folder: TempDir,
    model: ModelServer,
    ready: Prepared,
}

impl Agent {
    fn new(cli: Cli, script: Script) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let model = ModelServer::start(script).expect("a model");
        let home = folder.path().join("home");
        let ready = match cli.prepare(&home, folder.path(), &model.url()) {
            Ok(ready) => ready,
            Err(trouble) => panic!("{trouble}"),
        };
        Agent { folder, model, ready }
    }

    /// Gives it a prompt; returns whether it ended well, and the lines that it printed.
    fn ask(&self, prompt: &str) -> (bool, Vec<Value>) {
        let mut command = self.ready.command(&self.ready.streamed());
        command.current_dir(self.folder.path()).env("HOME", self.folder.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("it starts");
        let mut input = child.stdin.take().expect("standard input");
        input.write_all(prompt.as_bytes()).expect("written");
        drop(input);
        let output = child.wait_with_output().expect("it ends");
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        let lines = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        (output.status.success(), lines)
    }
}

fn of<'a>(lines: &'a [Value], kind: &str) -> &'a Value {
    let found = lines.iter().rfind(|line| line["type"] == kind);
    found.unwrap_or_else(|| panic!("no {kind} in {lines:#?}"))
}

fn work() -> Script {
    let usage = Usage { input: 1000, cached: 200, output: 30 };
    let say = Reply::text("It is done. `<<<ODEI:RESULT:\"done\">>>`");
    Script::new().rule(
        Rule::when("Do it")
            .then(Reply::shell("echo hello > said.txt").usage(usage))
            .then(say.usage(usage)),
    )
}

#[test]
fn the_stream_of_claude_code_tells_session_text_tokens_and_money() {
    let agent = Agent::new(Cli::Claude, work());
    let (well, lines) = agent.ask("Do it");
    assert!(well, "{lines:#?}");
    let (start, end) = (of(&lines, "system"), of(&lines, "result"));
    assert_eq!((&start["subtype"], &start["session_id"]), (&json!("init"), &end["session_id"]));
    assert_eq!(end["result"], "It is done. `<<<ODEI:RESULT:\"done\">>>`");
    assert_eq!(end["is_error"], false);
    let usage = &end["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(2000), &json!(60)));
    assert_eq!(usage["cache_read_input_tokens"], 400);
    assert!(end["total_cost_usd"].as_f64().is_some_and(|cost| cost > 0.0), "{end}");
    assert!(agent.folder.path().join("said.txt").exists());
    let outcomes: Vec<Outcome> = agent.model.exchanges().iter().map(|e| e.outcome).collect();
    assert_eq!(outcomes, [Outcome::Rule(0); 2], "it asks nothing else");
}

#[test]
fn the_stream_of_codex_tells_session_text_and_tokens() {
    let agent = Agent::new(Cli::Codex, work());
    let (well, lines) = agent.ask("Do it");
    assert!(well, "{lines:#?}");
    assert!(of(&lines, "thread.started")["thread_id"].is_string());
    let said = &of(&lines, "item.completed")["item"];
    assert_eq!(said["type"], "agent_message");
    assert_eq!(said["text"], "It is done. `<<<ODEI:RESULT:\"done\">>>`");
    let usage = &of(&lines, "turn.completed")["usage"];
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(2400), &json!(60)));
    assert_eq!(usage["cached_input_tokens"], 400, "they are part of the input");
    assert!(agent.folder.path().join("said.txt").exists());
    let outcomes: Vec<Outcome> = agent.model.exchanges().iter().map(|e| e.outcome).collect();
    assert_eq!(outcomes, [Outcome::Rule(0); 2], "it asks nothing else");
}

#[test]
fn b_09_both_tell_when_a_quota_is_back() {
    let limited = || Script::new().rule(Rule::when("Do it").then(Reply::limited(1_900_000_000)));
    let mut agent = Agent::new(Cli::Claude, limited());
    agent.ready = agent.ready.with_account();
    let (well, lines) = agent.ask("Do it");
    assert!(!well, "{lines:#?}");
    assert_eq!(of(&lines, "rate_limit_event")["rate_limit_info"]["resetsAt"], 1_900_000_000);
    assert_eq!(of(&lines, "result")["api_error_status"], 429);

    let agent = Agent::new(Cli::Codex, limited());
    let (well, lines) = agent.ask("Do it");
    assert!(!well, "{lines:#?}");
    let message = &of(&lines, "turn.failed")["error"]["message"];
    assert!(
        message.as_str().is_some_and(|said| said.contains("try again at Mar 17th, 2030")),
        "{message}"
    );
}
