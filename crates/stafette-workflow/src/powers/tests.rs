use super::*;
use crate::file;

/// A workflow with everything in it that can act, read, be reached or reach out.
const WHOLE: &str = r#"
[workflow]
name = "whole"
entry = "writer"
trust_bare_frames = true

[agents.writer]
runner = "exec"
role = "Writes"
prompt = "Follow me"
command = ["sh", "-c", "echo one; ./two.sh"]
env = ["GITHUB_TOKEN"]
sandbox = "strict"
budget = { money = 1.5, tokens = 1000 }
[[agents.writer.needs]]
key = "title"
source = "user"
description = "A title"

[agents.known]
runner = "pty"
profile = "claude"

[agents.played]
runner = "scripted"
script = "agents/played.toml"

[agents.far]
runner = "a2a"
url = "http://far.example/agent"
bearer = "FAR_TOKEN"

[[routes]]
from = "writer"
to = "far"
reason = "It knows"

[[deny]]
from = "far"
to = "writer"
why = "Never"

[[hooks]]
on = "before_run"
command = ["./check.sh"]
env = ["HOOK_TOKEN"]

[[triggers]]
name = "nightly"
cron = "0 3 * * *"
timezone = "Europe/Vienna"
catch_up = true
request = "Clean up"

[[triggers]]
name = "issue"
webhook = true
secret_env = "HOOK_SECRET"
request = "Fix {payload.title}"

[coordination]
folder = ".git/hooks"

[server]
bind = "0.0.0.0:7400"
tls_cert = "/etc/tls/cert.pem"
tls_key = "tls/key.pem"
hosts = ["team.example"]
push = ["http://127.0.0.1:9000"]

[store]
url_env = "DATABASE_URL"

[changes]
validate = ["cargo", "test"]

[self]
build = ["make"]
program = "bin/own"
prove = ["make", "prove"]
start = ["bin/own"]

[notify]
link = "https://page.example"
[notify.ntfy]
url = "https://ntfy.example/"
topic = "team"
token_env = "NTFY_TOKEN"
[notify.webhook]
url = "https://hook.example/in"
secret_env = "WEBHOOK_SECRET"

[telemetry]
otlp = "http://127.0.0.1:4318"
headers = { authorization = "OTLP_TOKEN" }

[knowledge]
graph = "neo4j"
constitution = "../constitution.md"
goals = "goals.toml"
[knowledge.neo4j]
uri = "bolt://graph.example:7687"
user_env = "GRAPH_USER"
password_env = "GRAPH_PASSWORD"
[knowledge.calendar]
url = "https://calendar.example/dav"
user_env = "CALENDAR_USER"
password_env = "GITHUB_TOKEN"

[generations]
context = "data/context.json"
max_runs = 100
max_cost = 250

[[recovery.rules]]
action = "fallback_default"
default = { tone = "calm, and run this" }

[budget]
money = 20
time = "2h"
"#;

fn shown(text: &str) -> Vec<String> {
    let workflow = file::parse(text).expect("a workflow");
    let profile = |name: &str, _: &stafette_core::workflow::Agent| {
        Some(vec![name.to_owned(), "--flag".to_owned()])
    };
    let line = |power: Power| {
        let dangers = power.dangers.iter().map(|danger| format!(" ! {danger}"));
        format!("{}: {}{}", power.place, power.text, dangers.collect::<String>())
    };
    powers(&workflow, &profile).into_iter().map(line).collect()
}

#[test]
fn b_20_everything_that_can_act_read_be_reached_or_reach_out_is_shown() {
    let lines = shown(WHOLE);
    let expected = [
        "agents.far.bearer: $FAR_TOKEN ! its value is sent to http://far.example/agent",
        "agents.far.url: http://far.example/agent ! not encrypted",
        "agents.known.profile: claude --flag",
        "agents.played.script: stafette play agents/played.toml",
        "agents.writer.budget: of that at most $1.50, 1000 tokens",
        "agents.writer.command: sh -c 'echo one; ./two.sh'",
        "agents.writer.env: $GITHUB_TOKEN",
        "agents.writer.needs.title: 'A title'",
        "agents.writer.prompt: 'Follow me'",
        "agents.writer.role: Writes",
        "agents.writer.sandbox: strict: complete, or it does not start",
        "budget: a run: at most $20.00, 2000000 tokens, 1000 handoffs, 2h 00m",
        "changes.validate: cargo test ! what else it runs, where agents work, is not checked",
        "coordination.folder: .git/hooks ! in git's own folder",
        "deny[1] far → writer: Never",
        "generations.context: data/context.json",
        "generations: up to 100 runs after each other, $250.00 together; nobody is asked between them",
        "hooks[1] on before_run: $HOOK_TOKEN",
        "hooks[1] on before_run: ./check.sh ! what else it runs, where agents work, is not checked",
        "knowledge.calendar.password_env: $GITHUB_TOKEN ! its value is sent to https://calendar.example/dav",
        "knowledge.calendar.url: https://calendar.example/dav",
        "knowledge.calendar.user_env: $CALENDAR_USER ! its value is sent to https://calendar.example/dav",
        "knowledge.constitution: ../constitution.md ! outside the project",
        "knowledge.goals: goals.toml",
        "knowledge.neo4j.password_env: $GRAPH_PASSWORD ! its value is sent to bolt://graph.example:7687",
        "knowledge.neo4j.uri: bolt://graph.example:7687 ! not encrypted",
        "notify.link: https://page.example",
        "notify.ntfy.token_env: $NTFY_TOKEN ! its value is sent to https://ntfy.example/",
        "notify.ntfy: https://ntfy.example/team",
        "notify.webhook.secret_env: $WEBHOOK_SECRET",
        "notify.webhook: https://hook.example/in",
        "recovery.rules[1].default.tone: '\"calm, and run this\"'",
        "routes[1] writer → far: 'It knows'",
        "self.build: make",
        "self.program: bin/own",
        "self.prove: make prove",
        "self.start: bin/own",
        "server.bind: 0.0.0.0:7400 ! reachable from other machines",
        "server.hosts: team.example ! web pages under this name can talk to the daemon",
        "server.push: http://127.0.0.1:9000",
        "server.tls_cert: /etc/tls/cert.pem ! outside the project",
        "server.tls_key: tls/key.pem",
        "store.url_env: $DATABASE_URL ! its value is connected to",
        "telemetry.headers.authorization: $OTLP_TOKEN ! its value is sent to http://127.0.0.1:4318",
        "telemetry.otlp: http://127.0.0.1:4318",
        "triggers.issue.request: 'Fix {payload.title}'",
        "triggers.issue: $HOOK_SECRET",
        "triggers.issue: by POST /v1/triggers/issue",
        "triggers.nightly.request: 'Clean up'",
        "triggers.nightly: each time it fires, a run: at most $20.00, 2000000 tokens, 1000 handoffs, 2h 00m \
         ! no limit on what all of these runs spend together",
        "triggers.nightly: by the clock: '0 3 * * *' in Europe/Vienna, also for missed times",
        "workflow.trust_bare_frames: true ! text that an agent merely prints moves work",
    ];
    for line in expected {
        assert!(lines.iter().any(|found| found == line), "{line}\n{}", lines.join("\n"));
    }
}

#[test]
fn b_20_a_workflow_without_powers_of_its_own_shows_what_it_may_spend() {
    let text = "[workflow]\nname = \"x\"\nentry = \"one\"\n[agents.one]\nrunner = \"external\"\n";
    assert_eq!(shown(text), ["budget: a run: at most $5.00, 2000000 tokens, 1000 handoffs, 30d"]);
}

#[test]
fn b_20_what_may_run_more_than_it_names_is_marked_where_agents_work() {
    let workflow = |worktrees: bool| {
        format!(
            "[workflow]\nname = \"x\"\nentry = \"one\"\nworktrees = {worktrees}\n\
             [agents.one]\nrunner = \"external\"\n\
             [changes]\nvalidate = [\"node\", \"-e\", \"require('./x.js')\"]\n\
             [[hooks]]\non = \"before_run\"\ncommand = [\"python3\", \"tools/x.py\"]\n\
             [[hooks]]\non = \"before_run\"\ncommand = [\"./x.sh\"]\n\
             [[hooks]]\non = \"before_run\"\ncommand = [\"make\", \"test\"]\n\
             [[hooks]]\non = \"before_run\"\ncommand = [\"sh\", \"-c\", \"test -f x\"]\n"
        )
    };
    let marked = |worktrees| {
        let lines = shown(&workflow(worktrees)).into_iter();
        lines
            .filter(|line| line.ends_with("! what else it runs, where agents work, is not checked"))
            .count()
    };
    assert_eq!((marked(false), marked(true)), (4, 0));
}

#[test]
fn b_20_no_field_is_passed_over_when_it_is_decided_what_is_shown() {
    // Every type of the workflow is taken apart by the names of all its fields: a new one does not
    // compile before somebody has said how it is shown. Two dots would let it through.
    let source = include_str!("../powers.rs");
    let passes_over =
        |line: &&str| line.trim() == ".." || line.contains(".. }") || line.contains("(..)");
    assert_eq!(source.lines().filter(passes_over).collect::<Vec<_>>(), Vec::<&str>::new());
    assert!(source.contains("} = workflow;") && source.contains("} = header;"), "taken apart");
}
