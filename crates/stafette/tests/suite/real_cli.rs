//! Claude Code and Codex themselves, at work for Stafette, with a scripted model behind them.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use stafette_testkit::cli::{Cli, Prepared};
use stafette_testkit::model::{Dialect, ModelServer, Outcome, Reply, Rule, Script, turns};
use stafette_testkit::tools;

use crate::world::{PATIENCE, World, program, until_so};

/// Two agents and the model that both of them ask.
struct Pair {
    world: World,
    model: ModelServer,
    claude: Prepared,
    codex: Prepared,
}

impl Pair {
    /// A builder, Claude Code, may hand to a reviewer, Codex. What comes `before` their work is said
    /// first.
    fn new(before: impl IntoIterator<Item = Rule>) -> Self {
        let world = World::new();
        let plan = world.project().join("plan.md").display().to_string();
        let script = before
            .into_iter()
            .fold(Script::new(), Script::rule)
            .rule(
                Rule::when("You build.")
                    .speaking(Dialect::Messages)
                    .then(Reply::write(plan, "1. Build it.\n"))
                    .then(Reply::text(
                        "The plan is written.\n\n\
                         `<<<ODEI:HANDOFF:{\"to\":\"reviewer\",\"summary\":\"See plan.md\"}>>>`",
                    )),
            )
            .rule(
                Rule::when("You review.")
                    .speaking(Dialect::Responses)
                    .then(Reply::shell("cat plan.md > reviewed.md"))
                    .then(Reply::text(
                        "I have read it.\n\n\
                         `<<<ODEI:RESULT:{\"status\":\"resolved\",\"summary\":\"The plan is good\"}>>>`",
                    )),
            );
        let model = ModelServer::start(script).expect("a model");
        let ready = |cli: Cli| {
            let home = world.home().join("agents");
            match cli.prepare(&home, &world.project(), &model.url()) {
                Ok(ready) => ready,
                Err(trouble) => panic!("{trouble}"),
            }
        };
        let (claude, codex) = (ready(Cli::Claude), ready(Cli::Codex));
        Pair { world, model, claude, codex }
    }

    /// Writes the workflow and trusts it. Each agent notes its process in a file of its name.
    fn trust(&self) {
        self.trust_in("exec");
    }

    /// The same, with the agents where `runner` has them.
    fn trust_in(&self, runner: &str) {
        self.trust_with(runner, false);
    }

    /// The same; agents that are `known` by their profiles can go on with their own sessions.
    fn trust_with(&self, runner: &str, known: bool) {
        let agent = |name: &str, prompt: &str, cli: &Prepared| {
            let profile = match cli.cli {
                _ if !known => "",
                Cli::Claude => "profile = \"claude\"\nmcp = false\n",
                Cli::Codex => "profile = \"codex\"\nmcp = false\n",
            };
            let mut words = if runner == "pty" { cli.terminal() } else { cli.headless() };
            if known {
                words.insert(1, "{resume}".to_owned());
            }
            let noting = format!("echo $$ > {name}.pid; echo \"$*\" >> {name}.args; exec \"$@\"");
            let command: Vec<String> =
                ["sh", "-c", &noting, name].into_iter().map(str::to_owned).chain(words).collect();
            format!(
                "[agents.{name}]\nrunner = \"{runner}\"\nprompt = \"{prompt}\"\n{profile}\
                 command = {}\nenv = {}\n",
                json!(command),
                json!(cli.names()),
            )
        };
        let workflow = [
            "[workflow]\nname = \"pair\"\nentry = \"builder\"\ntrust_bare_frames = true\n"
                .to_owned(),
            agent("builder", "You build.", &self.claude),
            agent("reviewer", "You review.", &self.codex),
            "[[routes]]\nfrom = \"builder\"\nto = \"reviewer\"\n".to_owned(),
            // They take seconds on a quiet machine until anything is heard of them.
            "[limits]\ncooldown = 0\naccept_timeout = \"5m\"\nready_timeout = \"10s\"\n\
             [retries]\nbackoff = \"10ms\"\n"
                .to_owned(),
        ];
        self.world.write("stafette.toml", &workflow.concat());
        self.world.run(&["trust", "--yes"]).ok();
    }

    /// Writes a workflow with the agents as their profiles start them, in a sandbox, and trusts it.
    /// Returns a `PATH` on which they are.
    fn trust_in_sandbox(&self) -> String {
        tools::debian("bwrap", "bubblewrap").expect("bubblewrap");
        let bin = self.world.home().join("bin");
        fs::create_dir_all(&bin).expect("a folder");
        for cli in [&self.claude, &self.codex] {
            std::os::unix::fs::symlink(&cli.program, bin.join(cli.cli.name())).expect("a link");
        }
        let agent = |name: &str, prompt: &str, cli: &Prepared, command: &str| {
            format!(
                "[agents.{name}]\nrunner = \"exec\"\nsandbox = \"auto\"\nprofile = \"{}\"\n\
                 prompt = \"{prompt}\"\n{command}\nenv = {}\n",
                cli.cli.name(),
                json!(cli.names())
            )
        };
        // Its own sandbox does not start inside of ours.
        let codex = format!("command = {}", json!(self.codex.streamed()));
        let workflow = [
            "[workflow]\nname = \"pair\"\nentry = \"builder\"\ntrust_bare_frames = true\n"
                .to_owned(),
            agent("builder", "You build.", &self.claude, ""),
            agent("reviewer", "You review.", &self.codex, &codex),
            "[[routes]]\nfrom = \"builder\"\nto = \"reviewer\"\n\
             [limits]\ncooldown = 0\naccept_timeout = \"5m\"\n[retries]\nmax = 1\n"
                .to_owned(),
        ];
        self.world.write("stafette.toml", &workflow.concat());
        self.world.run(&["trust", "--yes"]).ok();
        format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default())
    }

    /// The environment of both agents: what one of them may not see is left out for it.
    fn env(&self) -> Vec<(&str, &str)> {
        let all = self.claude.env.iter().chain(&self.codex.env);
        all.map(|(name, value)| (name.as_str(), value.as_str())).collect()
    }

    /// Runs a command of Stafette with the agents' environment.
    fn run(&self, arguments: &[&str]) -> crate::world::Said {
        self.world.run_with(arguments, b"", &self.env())
    }

    /// Waits until the model has begun this many turns with this prompt, and then kills the whole
    /// group of the agent.
    fn kill(&self, agent: &str, prompt: &str, count: usize) {
        let begun = self.model.wait(PATIENCE, |all| turns(all, prompt) == count);
        assert!(begun, "{agent} has not asked: {:?}", self.model.exchanges());
        let group = format!("-{}", self.world.read(&format!("{agent}.pid")).trim());
        let killed = Command::new("kill").args(["-KILL", "--", &group]).status();
        assert!(killed.expect("kill starts").success(), "{agent} was there");
    }

    /// Waits until an agent has written this prompt into the notes of its session: they do that when
    /// they find the time, and later than into the history of what was typed.
    fn noted(&self, prompt: &str) {
        fn holds(path: &Path, prompt: &str) -> bool {
            match fs::read_dir(path) {
                Ok(entries) => entries.flatten().any(|entry| holds(&entry.path(), prompt)),
                Err(_) => {
                    path.extension().is_some_and(|end| end == "jsonl")
                        && !path.ends_with("history.jsonl")
                        && fs::read_to_string(path).is_ok_and(|text| text.contains(prompt))
                }
            }
        }
        let home = self.world.home().join("agents");
        until_so(&format!("{prompt} in {}", home.display()), || holds(&home, prompt));
    }

    /// What the model has not foreseen: there must be nothing.
    fn surprises(&self) -> Vec<String> {
        let expected = |outcome| matches!(outcome, Outcome::Rule(_) | Outcome::Aside);
        let exchanges = self.model.exchanges();
        let surprising = exchanges.iter().filter(|exchange| !expected(exchange.outcome));
        surprising.map(|exchange| format!("{} {}", exchange.method, exchange.path)).collect()
    }

    fn reviewed(&self) -> Value {
        let handoffs = self.world.run(&["handoffs", "--json"]).ok().json();
        let all = handoffs.as_array().expect("handoffs").clone();
        let review = all.into_iter().find(|one| one["handoff"]["offer"]["to"] == "reviewer");
        review.expect("a review")
    }
}

#[test]
fn s1_04_claude_code_hands_to_codex_without_a_terminal() {
    let pair = Pair::new([]);
    pair.trust();
    let said = pair.run(&["run", "--foreground", "Add a login", "--json"]).ok();
    assert_eq!(said.json()["status"], "succeeded", "{said:?}");
    assert_eq!(pair.world.read("plan.md"), "1. Build it.\n", "written by Claude Code's own tool");
    assert_eq!(pair.world.read("reviewed.md"), "1. Build it.\n", "read by Codex's own tool");
    assert_eq!(pair.reviewed()["handoff"]["offer"]["summary"], "See plan.md");
    assert_eq!(pair.surprises(), Vec::<String>::new());
    // Each prompt arrived once, whole, and from the one it was for.
    let exchanges = pair.model.exchanges();
    assert_eq!((turns(&exchanges, "You build."), turns(&exchanges, "You review.")), (1, 1));
    assert_eq!(turns(&exchanges, ""), 2);
    let review = exchanges
        .iter()
        .filter_map(|exchange| exchange.ask.as_ref())
        .find(|ask| ask.dialect == Dialect::Responses && ask.prompt.contains("See plan.md"));
    assert!(review.is_some_and(|ask| ask.prompt.contains("Add a login")), "{review:?}");
}

#[test]
fn b_08_claude_code_hands_to_codex_inside_the_sandbox() {
    let pair = Pair::new([]);
    let path = pair.trust_in_sandbox();
    let mut env = pair.env();
    env.push(("PATH", &path));
    let run = ["run", "--foreground", "Add a login", "--json"];
    let said = pair.world.run_with(&run, b"", &env).ok();
    assert_eq!(said.json()["status"], "succeeded", "{said:?}");
    assert_eq!(pair.world.read("plan.md"), "1. Build it.\n", "written by Claude Code's own tool");
    assert_eq!(pair.world.read("reviewed.md"), "1. Build it.\n", "by a command that Codex ran");
    assert_eq!(pair.reviewed()["handoff"]["offer"]["summary"], "See plan.md");
    // Both were inside.
    let listed = pair.world.run(&["trust", "--list"]).ok().out;
    assert_eq!(listed.matches("auto: as much as the system can enforce").count(), 2, "{listed}");
    // Claude Code had our tools there.
    let exchanges = pair.model.exchanges();
    let mut asks = exchanges.iter().filter_map(|exchange| exchange.ask.as_ref());
    let tools = asks.find(|ask| ask.prompt.contains("You build.")).map(|ask| ask.tools.join(" "));
    assert!(tools.is_some_and(|tools| tools.contains("mcp__stafette__complete")));
}

#[test]
fn s1_04_claude_code_hands_to_codex_in_their_terminals() {
    let pair = Pair::new([]);
    pair.trust_in("pty");
    let said = pair.run(&["run", "--foreground", "Add a login", "--json"]);
    assert_eq!(said.json()["status"], "succeeded", "{said:?}");
    assert_eq!(pair.world.read("reviewed.md"), "1. Build it.\n", "read by Codex's own tool");
    assert_eq!(pair.reviewed()["handoff"]["offer"]["summary"], "See plan.md");
}

#[test]
fn s1_15_real_agents_that_are_killed_in_the_middle_of_a_turn_are_started_again() {
    let pair = Pair::new([
        Rule::when("You build.").once().then(Reply::stall()),
        Rule::when("You review.").once().then(Reply::stall()),
    ]);
    pair.trust();
    pair.run(&["run", "Add a login", "--detach"]).ok();
    pair.kill("builder", "You build.", 1);
    pair.kill("reviewer", "You review.", 1);
    let view = pair.run(&["resume", "--json"]).ok().json();
    assert_eq!(view["status"], "succeeded", "{view}");
    assert_eq!(pair.world.read("reviewed.md"), "1. Build it.\n");
    assert_eq!((pair.model.turns("You build."), pair.model.turns("You review.")), (2, 2));
    let log = pair.world.run(&["log", "--json"]).ok().lines();
    let failed: Vec<&Value> = log.iter().filter(|event| event["event"] == "turn_failed").collect();
    assert_eq!(failed.len(), 2, "{failed:?}");
    assert!(
        failed.iter().all(|event| event.to_string().contains("killed by signal 9")),
        "{failed:?}"
    );
    assert_eq!(pair.surprises(), Vec::<String>::new());
}

#[test]
fn s1_15_real_agents_that_are_killed_in_their_terminals_go_on_with_their_own_sessions() {
    let pair = Pair::new([
        Rule::when("You build.").once().then(Reply::stall()),
        Rule::when("You review.").once().then(Reply::stall()),
    ]);
    pair.trust_with("pty", true);
    pair.run(&["run", "Add a login", "--detach"]).ok();
    for (agent, prompt) in [("builder", "You build."), ("reviewer", "You review.")] {
        pair.noted(prompt);
        pair.kill(agent, prompt, 1);
    }
    let view = pair.run(&["resume", "--json"]).json();
    assert_eq!(view["status"], "succeeded", "{view}");
    assert_eq!(pair.world.read("reviewed.md"), "1. Build it.\n");
    for prompt in ["You build.", "You review."] {
        let exchanges = pair.model.exchanges();
        let asks = exchanges.iter().filter(|one| matches!(one.outcome, Outcome::Rule(_)));
        let asks = asks.filter_map(|one| one.ask.as_ref());
        let mut sessions: Vec<_> =
            asks.filter(|ask| ask.prompt.contains(prompt)).map(|ask| &ask.session).collect();
        assert!(sessions.len() > 1, "{exchanges:?}");
        sessions.dedup();
        let args = pair.world.read("builder.args") + &pair.world.read("reviewer.args");
        assert_eq!(sessions.len(), 1, "{prompt}: the same session before and after: {args}");
    }
}

#[test]
fn s1_17_the_frames_of_real_agents_are_seen_in_their_terminals() {
    let pair = Pair::new([]);
    let request = "You build. You review.";
    for (cli, frame) in [(&pair.claude, "HANDOFF"), (&pair.codex, "RESULT")] {
        let mut frames = pair.world.command(program());
        frames.args(["frames", "--screen", "120x40", "--"]).args(cli.terminal()).arg(request);
        frames.envs(pair.env()).env("TERM", "xterm-256color");
        let mut child = frames.stdout(Stdio::piped()).spawn().expect("the program starts");
        let out = BufReader::new(child.stdout.take().expect("standard output"));
        let (tell, told) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            for line in out.lines().map_while(Result::ok) {
                let _ = tell.send(line);
            }
        });
        let line = told.recv_timeout(PATIENCE);
        // It would wait for the next prompt; the hangup of its terminal ends it.
        child.kill().expect("killed");
        child.wait().expect("an end");
        let line =
            line.unwrap_or_else(|_| panic!("{cli:?}: no frame: {:?}", pair.model.exchanges()));
        let seen: Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!((&seen["type"], &seen["tier"]), (&json!(frame), &json!("bare")), "{cli:?}");
        reader.join().expect("read to the end");
    }
    assert_eq!(pair.world.read("reviewed.md"), "1. Build it.\n");
    assert_eq!(pair.surprises(), Vec::<String>::new());
}
