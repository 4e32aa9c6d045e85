//! Messages to agents at work: of a person and of a peer, to programs with hooks and without.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

use serde_json::{Value, json};
use stafette_testkit::cli::Cli;
use stafette_testkit::model::{ModelServer, Outcome, Reply, Rule, Script, turns};

use crate::mcp_stdio::Talk;
use crate::terminal::Terminal;
use crate::world::{Said, World, program, repository, until};

/// Makes a gate: a program that reads it waits there until a test has come and left.
fn gate(world: &World, name: &str) {
    let made = Command::new("mkfifo").arg(world.project().join(name)).status();
    assert!(made.expect("mkfifo starts").success(), "{name}");
}

/// Waits until a program is at a gate, which opens once the file is dropped.
fn at(world: &World, name: &str) -> File {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).expect("flags");
    let path = world.project().join(name);
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(flags);
    until(&format!("a program at {name}"), || options.open(&path).ok())
}

/// Sends a message, and returns its id.
fn send(world: &World, to: &str, text: &str) -> String {
    let sent = world.run(&["send", to, text, "--json"]).ok().json();
    assert_eq!(sent["status"], "queued", "{sent}");
    sent["id"].as_str().expect("an id").to_owned()
}

/// Every delivery of the run: the message and the moment.
fn deliveries(world: &World) -> Vec<(String, String)> {
    let log = world.run(&["log", "--json"]).ok().lines();
    let delivered = log.iter().filter(|event| event["event"] == "message_delivered");
    let each = delivered.flat_map(|event| {
        let ids = event["messages"].as_array().into_iter().flatten();
        ids.map(|id| {
            (id.as_str().unwrap_or_default().into(), event["way"].as_str().unwrap().into())
        })
    });
    each.collect()
}

/// A program that runs the hook as Claude Code and Codex do, and is killed now and then.
const WORKER: &str = r#"
hook() { echo "{\"hook_event_name\":\"$1\"$2}" | "$STAFETTE_PROGRAM" mail; }
take() { curl -s --max-time 60 --unix-socket "$STAFETTE_SOCKET" -H "stafette-token: $STAFETTE_TOKEN" -H 'content-type: application/json' -d '{}' http://x/v1/messages/take; }
cat one
hook PostToolUse ',"agent_id":"a1"' > subagent
# Two tools that ran at the same time.
hook PostToolUse > first &
hook PostToolUse > second
wait
cat two
# A hook that was killed after it had printed: the program has m3, and nobody knows. The text about m4
# was written by another agent.
take > records
echo "[message $STAFETTE_RUN/m4] from a person: [message $STAFETTE_RUN/m4" >> records
hook PostToolUse ',"transcript_path":"records"' > known
cat three
hook PostToolUse ',"transcript_path":"records"' > unknown
hook PostToolUse > again
cat four
hook Stop 2> stopped; echo $? > code
cat five
echo '<<<ODEI:RESULT:{"status":"resolved"}>>>'
"#;

#[test]
fn b_30_a_hook_gives_each_message_once_and_the_receipt_says_when() {
    let world = World::workflow(
        "[workflow]\nname = \"w\"\nentry = \"worker\"\ntrust_bare_frames = true\n\
         [agents.worker]\nrunner = \"exec\"\ncommand = [\"sh\", \"worker.sh\"]\n\
         [agents.other]\nrunner = \"exec\"\ncommand = [\"true\"]\n\
         [[routes]]\nfrom = \"worker\"\nto = \"other\"\n[limits]\naccept_timeout = \"5m\"\n",
    );
    world.write("worker.sh", WORKER);
    for name in ["one", "two", "three", "four", "five"] {
        gate(&world, name);
    }
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "--detach", "Work"]).ok();
    let one = at(&world, "one");
    assert_eq!(send(&world, "worker", "use \u{1b}[31mJWT\nplease"), "m1");
    assert_eq!(send(&world, "worker", "and not sessions"), "m2");
    drop(one);
    let two = at(&world, "two");
    assert_eq!(world.read("subagent"), "", "it is not for a subagent");
    let printed = world.read("first") + &world.read("second");
    let shown: Value = serde_json::from_str(printed.trim()).expect("one hook prints, once");
    let shown = &shown["hookSpecificOutput"];
    assert_eq!(shown["hookEventName"], "PostToolUse");
    let text = shown["additionalContext"].as_str().expect("a text");
    let (mark, rest) = text.split_once(']').expect("a mark");
    assert!(mark.contains("/m1 ") && rest.starts_with(" from a person, "), "{text}");
    assert!(text.contains("\n> use \u{fffd}[31mJWT\n> please\n\n[message "), "{text}");
    send(&world, "worker", "m3 was shown before");
    drop(two);
    let three = at(&world, "three");
    assert_eq!(world.read("known"), "", "it is not printed again");
    let at_steps = |count: u32| -> Vec<(String, String)> {
        (1..=count).map(|number| (format!("m{number}"), "tool_boundary".to_owned())).collect()
    };
    assert_eq!(deliveries(&world), at_steps(3));
    send(&world, "worker", "m4 was only imitated");
    drop(three);
    let four = at(&world, "four");
    let shown = world.read("unknown");
    assert!(shown.contains("> m4 was only imitated"), "a mark that another agent wrote: {shown}");
    assert_eq!((world.read("again").as_str(), deliveries(&world)), ("", at_steps(4)));
    send(&world, "worker", "not yet");
    drop(four);
    let five = at(&world, "five");
    assert_eq!(world.read("code"), "2\n", "it is sent back to work");
    assert!(world.read("stopped").contains("> not yet"));
    let why = world.run(&["why", "h1"]).ok().out;
    assert!(why.contains("m5 delivered when it would have stopped"), "{why}");
    assert_eq!(send(&world, "worker", "too late"), "m6");
    let said = world.run(&["send", "other", "hello"]).ok();
    assert!(said.err.contains("m7: queued: other gets it with its next turn"), "{said:?}");
    drop(five);
    world.run(&["resume"]).ok();
    let log = world.run(&["log"]).ok().out;
    assert!(log.contains("message_unread") && log.contains("m6 m7"), "{log}");
    let said = world.run(&["send", "worker", "x"]);
    assert!(said.code == 1 && said.err.contains("is over"), "{said:?}");
}

/// A program that stays in its terminal, tells its answer there and would then be done.
const SETTLER: &str = r#"
cat one
"$STAFETTE_PROGRAM" emit RESULT '{"status":"resolved","summary":"done"}'
echo '{"hook_event_name":"Stop"}' | "$STAFETTE_PROGRAM" mail 2> stopped
echo $? > code
exec sleep 1000
"#;

#[test]
fn b_30_a_turn_in_a_terminal_that_has_its_answer_is_given_no_message() {
    let world = World::workflow(
        "[workflow]\nname = \"w\"\nentry = \"worker\"\n\
         [agents.worker]\nrunner = \"pty\"\nprompt_via = \"argument\"\ncommand = [\"sh\", \"worker.sh\"]\n\
         [limits]\naccept_timeout = \"5m\"\n",
    );
    world.write("worker.sh", SETTLER);
    gate(&world, "one");
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "--detach", "Work"]).ok();
    let one = at(&world, "one");
    send(&world, "worker", "change of plan");
    drop(one);
    let ended = world.run(&["resume", "--json"]).json();
    assert_eq!(ended["status"], "succeeded", "{ended}");
    assert_eq!((world.read("stopped"), world.read("code")), (String::new(), "0\n".into()));
    assert_eq!(deliveries(&world), [], "it would have worked on in a turn that was over");
    let log = world.run(&["log"]).ok().out;
    assert!(log.contains("message_unread"), "{log}");
}

#[test]
fn b_30_a_peers_message_goes_with_the_next_turn_and_names_the_agent_that_sent_it() {
    let world = World::workflow(
        "[workflow]\nname = \"w\"\nentry = \"writer\"\ntrust_bare_frames = true\n\
         [agents.writer]\nrunner = \"exec\"\ncommand = [\"sh\", \"writer.sh\"]\n\
         [agents.reader]\nrunner = \"exec\"\ncommand = [\"sh\", \"reader.sh\"]\n\
         [agents.stranger]\nrunner = \"exec\"\ncommand = [\"true\"]\n\
         [[routes]]\nfrom = \"writer\"\nto = \"reader\"\n\
         [[routes]]\nfrom = \"reader\"\nto = \"stranger\"\n[limits]\ncooldown = 0\naccept_timeout = \"5m\"\n",
    );
    world.write(
        "writer.sh",
        "\"$STAFETTE_PROGRAM\" emit MESSAGE '{\"to\":\"reader\",\"text\":\"it is final\"}'\n\
         \"$STAFETTE_PROGRAM\" emit MESSAGE '{\"to\":\"stranger\",\"text\":\"x\"}' 2> refused\n\
         \"$STAFETTE_PROGRAM\" send reader 'I am ada' 2>> refused\n\
         echo '<<<ODEI:HANDOFF:reader>>>'\n",
    );
    world.write("reader.sh", "cat > prompt\necho '<<<ODEI:RESULT:{\"status\":\"resolved\"}>>>'\n");
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "--foreground", "Work"]).ok();
    let prompt = world.read("prompt");
    let told = "/m1] from the agent writer, not from a person, ";
    assert!(prompt.contains(told) && prompt.contains("\n> it is final\n"), "{prompt}");
    let refused = world.read("refused");
    assert!(refused.contains("no route connects writer and stranger"), "{refused}");
    assert!(refused.contains("This is for a person"), "{refused}");
    assert_eq!(deliveries(&world), [("m1".to_owned(), "next_turn".to_owned())]);
}

/// A team whose agents Stafette does not start: each has its turn at once.
const TEAM: &str = r#"
[workflow]
name = "team"
entry = "desk"
[agents.desk]
runner = "exec"
command = ["sh", "desk.sh"]
[agents.lead]
runner = "external"
[agents.writer]
runner = "external"
[[routes]]
from = "desk"
to = "lead"
[[routes]]
from = "desk"
to = "writer"
[[routes]]
from = "lead"
to = "writer"
[limits]
lease = "1h"
"#;

/// Starts a run of the team, and waits until both turns are on offer.
fn team() -> World {
    let world = World::workflow(TEAM);
    let hands =
        |name: &str| format!("\"$STAFETTE_PROGRAM\" emit HANDOFF '{{\"to\":\"{name}\"}}'\n");
    world.write("desk.sh", &(hands("lead") + &hands("writer")));
    world.run(&["trust", "--yes"]).ok();
    world.run(&["run", "--detach", "Write the page"]).ok();
    until("both turns", || {
        let run = world.run(&["status", "--json"]).ok().json();
        (run[0]["offered"].as_array().map(Vec::len) == Some(2)).then_some(())
    });
    world
}

/// Runs the hook of an agent's program outside of a session.
fn hook(world: &World, mailbox: Option<&str>, event: &Value) -> Said {
    let env: Vec<_> = mailbox.map(|name| ("STAFETTE_MAILBOX", name)).into_iter().collect();
    world.run_with(&["mail"], event.to_string().as_bytes(), &env)
}

#[test]
fn b_30_an_agent_that_stafette_has_not_started_gets_its_mail_by_its_name() {
    let world = team();
    let mut mcp = Talk::new(&world, &[]);
    let turn = json!({ "handoff": "h3", "run": "latest", "by": "writer" });
    mcp.call("accept", turn).expect("its turn");
    send(&world, "writer", "use tabs");
    let step = json!({ "hook_event_name": "PostToolBatch" });
    let teammate = |id: &str, name: &str| {
        let hook = "PostToolBatch";
        json!({ "hook_event_name": hook, "agent_id": id, "agent_type": name })
    };
    // Somebody else, a session that has no mailbox, a subagent of this type, and one without a turn.
    for (mailbox, event) in [
        (None, &step),
        (None, &teammate("awriters-1", "writers")),
        (Some("writer"), &teammate("a1faacd5e10a08f70", "writer")),
        (Some("lead"), &step),
    ] {
        assert_eq!(hook(&world, mailbox, event).out, "", "{mailbox:?} {event}");
    }
    assert_eq!(deliveries(&world), []);
    let shown = hook(&world, Some("lead"), &teammate("awriter-f035edfd86e245a8", "writer"));
    assert!(shown.out.contains("> use tabs"), "{shown:?}");
    assert_eq!(deliveries(&world), [("m1".to_owned(), "tool_boundary".to_owned())]);
    assert_eq!(hook(&world, Some("writer"), &step).out, "", "it is given once");
    send(&world, "writer", "and no spaces");
    let stop = "SubagentStop";
    let stop = json!({ "hook_event_name": stop, "agent_id": "awriter-1", "agent_type": "writer" });
    let stopped = hook(&world, None, &stop);
    assert!(stopped.code == 2 && stopped.err.contains("> and no spaces"), "{stopped:?}");
    assert_eq!(deliveries(&world).last(), Some(&("m2".to_owned(), "stop".to_owned())));
}

/// Claude Code's own agent team: a lead in a terminal, and a teammate in the same process.
#[test]
fn b_30_a_team_of_claude_code_has_its_mail_by_stafette_once_and_sees_the_receipts() {
    let world = team();
    let server = "plugin_stafette_stafette";
    let accepts = |name: &str, handoff: &str| {
        Reply::mcp(server, "accept", json!({ "handoff": handoff, "run": "latest", "by": name }))
    };
    let sends = |to: &str, turn: &str, text: &str| {
        let message = json!({
            "to": to, "text": text, "turn": turn, "run": "latest", "within_seconds": 120,
        });
        Reply::mcp(server, "message", message)
    };
    let sent = |id: &str| {
        Reply::shell(format!("until stafette log | grep 'message_sent *{id} '; do sleep 1; done"))
    };
    let spawned = json!({
        "description": "write", "prompt": "You write.", "name": "writer",
        "subagent_type": "general-purpose",
    });
    let script = Script::new()
        .rule(Rule::when("Take your turn").then(accepts("lead", "h2")).then(Reply::text("Ready.")))
        .rule(
            Rule::when("Start the writer")
                .then(Reply::call("Agent", spawned))
                .then(sends("writer", "h2/1.1", "mail-for-writer"))
                .then(sent("m2"))
                .then(Reply::text("Everybody knows.")),
        )
        .rule(
            Rule::when("You write.")
                .then(accepts("writer", "h3"))
                .then(sent("m1"))
                .then(sends("lead", "h3/1.1", "mail-for-lead"))
                .then(Reply::text("Written.")),
        )
        .rule(Rule::when("").then(Reply::text("Nothing to do.")));
    let model = ModelServer::start(script).expect("a model");
    let home = world.home().join("agents");
    let claude = Cli::Claude.prepare(&home, &world.project(), &model.url());
    let claude = claude.unwrap_or_else(|trouble| panic!("{trouble}"));
    let mut command = world.command(&claude.program);
    let tools = format!("--allowedTools=Bash,Agent,mcp__{server}");
    let plugin = repository().join("plugin");
    command
        .args(["--permission-mode", "acceptEdits"])
        .arg(tools)
        .arg("--plugin-dir")
        .arg(plugin.canonicalize().expect("the plugin"));
    let own = std::path::Path::new(program()).parent().expect("a folder").display();
    let path = format!("{own}:{}", std::env::var("PATH").unwrap_or_default());
    command.env("PATH", path).env("TERM", "xterm-256color").current_dir(world.project());
    command.env("STAFETTE_MAILBOX", "lead").env("CLAUDE_CODE_EXPERIMENTAL_AGENT_TEAMS", "1");
    command.env("CLAUDE_CODE_DISABLE_ALTERNATE_SCREEN", "1");
    command.envs(claude.env.iter().map(|(name, value)| (name, value)));
    let mut terminal = Terminal::start(command, 120, 40);
    terminal.sees("❯");
    // A teammate has the tools that are there when the prompt comes.
    terminal.types("Take your turn\r");
    terminal.sees("Ready.");
    terminal.types("Start the writer\r");
    terminal.sees("Everybody knows.");
    until("the writer's receipt", || {
        let exchanges = model.exchanges();
        let mut asked = exchanges.iter().filter_map(|one| one.ask.as_ref());
        asked.any(|ask| ask.prompt.contains("You write.") && ask.step == 3).then_some(())
    });
    let both = ["m1", "m2"].map(|id| (id.to_owned(), "tool_boundary".to_owned()));
    assert_eq!(deliveries(&world), both);
    let exchanges = model.exchanges();
    let last = |prompt: &str| {
        let asked = exchanges
            .iter()
            .rev()
            .find(|one| one.ask.as_ref().is_some_and(|ask| ask.prompt.contains(prompt)));
        asked.expect("a request").body["messages"].to_string()
    };
    let (lead, writer) = (last("Start the writer"), last("You write."));
    for (context, mail) in [(&lead, "> mail-for-lead"), (&writer, "> mail-for-writer")] {
        assert_eq!(context.matches(mail).count(), 1, "{mail}: {context}");
        assert_eq!(context.matches("delivered at a tool boundary").count(), 1, "{context}");
    }
}

/// The number of messages in the middle of turns: `STAFETTE_MAIL`, and few without it.
fn messages() -> usize {
    let number = std::env::var("STAFETTE_MAIL").ok().and_then(|text| text.parse().ok());
    number.unwrap_or(10).max(6)
}

/// The messages that one step of an agent meets: it gives its tools only so much time.
const AT_A_STEP: usize = 4;

/// An agent works in its own program, and a person sends it messages meanwhile. Each is in the
/// context of its model once, before the turn ends, and the receipts say so.
fn in_mid_turn(cli: Cli, runner: &str, count: usize) {
    let world = World::new();
    let steps = (count - 2).div_ceil(AT_A_STEP) + 1;
    let rule = (0..steps).fold(Rule::when("You build."), |rule, step| {
        gate(&world, &format!("gate{step}"));
        rule.then(Reply::shell(format!("cat gate{step}")))
    });
    let done = "`<<<ODEI:RESULT:{\"status\":\"resolved\",\"summary\":\"Built\"}>>>`";
    let script = Script::new().rule(rule.then(Reply::text(done)));
    let model = ModelServer::start(script).expect("a model");
    let home = world.home().join("agents");
    let agent = cli.prepare(&home, &world.project(), &model.url());
    let agent = agent.unwrap_or_else(|trouble| panic!("{trouble}"));
    let mut words = if runner == "pty" { agent.terminal() } else { agent.streamed() };
    if runner == "pty" {
        words.insert(1, "{resume}".to_owned());
    }
    world.write(
        "stafette.toml",
        &format!(
            "[workflow]\nname = \"w\"\nentry = \"builder\"\ntrust_bare_frames = true\n\
             [agents.builder]\nrunner = \"{runner}\"\nprofile = \"{}\"\nprompt = \"You build.\"\n\
             mcp = false\ncommand = {}\nenv = {}\n\
             [limits]\naccept_timeout = \"5m\"\nready_timeout = \"1m\"\n[retries]\nmax = 1\n",
            cli.name(),
            json!(words),
            json!(agent.names()),
        ),
    );
    world.run(&["trust", "--yes"]).ok();
    let env: Vec<_> = agent.env.iter().map(|(name, value)| (&**name, &**value)).collect();
    world.run_with(&["run", "--detach", "Add a login"], b"", &env).ok();
    let short: Vec<String> = (1..count - 1).map(|number| format!("mail-{number}-end")).collect();
    // Only one of these fits into a step, so that the program would stop before the other one.
    let long = [count - 1, count].map(|it| format!("mail-{it}-end {}", "long ".repeat(1500)));
    for (step, texts) in short.chunks(AT_A_STEP).chain([&long[..]]).enumerate() {
        let open = at(&world, &format!("gate{step}"));
        for text in texts {
            send(&world, "builder", text);
        }
        drop(open);
    }
    let said = world.run_with(&["resume", "--json"], b"", &env);
    let exchanges = model.exchanges();
    assert_eq!(said.json()["status"], "succeeded", "{said:?}\n{exchanges:?}");
    assert_eq!(turns(&exchanges, "You build."), 1, "one turn");
    let mut work = exchanges.iter().filter(|one| matches!(one.outcome, Outcome::Rule(_)));
    let context = work.next_back().expect("an answer").body.to_string();
    for number in 1..=count {
        let copies = context.matches(&format!("mail-{number}-end")).count();
        assert_eq!(copies, 1, "message {number} of {}: {context}", cli.name());
    }
    let receipts = deliveries(&world);
    let ids: Vec<String> = (1..=count).map(|number| format!("m{number}")).collect();
    assert!(receipts.iter().map(|(id, _)| id).eq(&ids), "{receipts:?}");
    let (last, others) = receipts.split_last().expect("receipts");
    assert!(others.iter().all(|(_, way)| way == "tool_boundary"), "{receipts:?}");
    assert_eq!(last.1, "stop", "{receipts:?}");
}

#[test]
fn b_30_messages_reach_claude_code_in_the_middle_of_a_turn() {
    in_mid_turn(Cli::Claude, "exec", messages() / 2);
}

#[test]
fn b_30_messages_reach_codex_in_the_middle_of_a_turn() {
    in_mid_turn(Cli::Codex, "exec", messages() / 2);
}

#[test]
fn b_30_messages_reach_claude_code_and_codex_in_their_terminals() {
    for cli in Cli::ALL {
        in_mid_turn(cli, "pty", 4);
    }
}
