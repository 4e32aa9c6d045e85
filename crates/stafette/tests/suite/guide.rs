//! The documents are true: every console block in them is typed, and says what it shows.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};

use serde_json::json;
use stafette_testkit::cli::Cli;
use stafette_testkit::matrix::Agent;
use stafette_testkit::model::{ModelServer, Reply, Rule, Script};
use stafette_testkit::tools;

use crate::world::{World, copy, program, repository};

/// The address in documents; tests that run beside each other get one each.
const ADDRESS: &str = "127.0.0.1:7400";

/// What a reader of a document does, in order.
enum Step {
    /// Types a command, and compares the output with what is shown.
    Command { line: usize, command: String, shown: Vec<String> },
    /// Saves a block under the file name beside its language.
    File { name: String, text: String },
}

fn steps(text: &str) -> Vec<Step> {
    enum Block {
        Console,
        File,
        Other,
    }
    let mut steps: Vec<Step> = Vec::new();
    let mut block = None;
    for (number, line) in text.lines().enumerate() {
        match (&block, line.strip_prefix("```")) {
            (None, Some("console")) => block = Some(Block::Console),
            (None, Some(info)) => match info.split_once(' ') {
                Some((_, name)) => {
                    steps.push(Step::File { name: name.to_owned(), text: String::new() });
                    block = Some(Block::File);
                }
                None => block = Some(Block::Other),
            },
            (Some(_), Some("")) => block = None,
            (Some(Block::Console), _) => match (line.strip_prefix("$ "), steps.last_mut()) {
                (Some(command), _) => steps.push(Step::Command {
                    line: number + 1,
                    command: command.to_owned(),
                    shown: Vec::new(),
                }),
                (None, Some(Step::Command { shown, .. })) => shown.push(line.to_owned()),
                (None, _) => panic!("line {}: output before a command", number + 1),
            },
            (Some(Block::File), _) => {
                if let Some(Step::File { text, .. }) = steps.last_mut() {
                    text.push_str(line);
                    text.push('\n');
                }
            }
            (Some(Block::Other) | None, _) => {}
        }
    }
    steps
}

/// `…` stands for anything, within a line or, alone, for any lines.
fn fits(shown: &[String], said: &[&str]) -> bool {
    match (shown.split_first(), said.split_first()) {
        (None, None) => true,
        (Some((wild, rest)), _) if wild == "…" => {
            (0..=said.len()).any(|skip| fits(rest, &said[skip..]))
        }
        (Some((line, rest)), Some((text, more))) => line_fits(line, text) && fits(rest, more),
        _ => false,
    }
}

fn line_fits(shown: &str, said: &str) -> bool {
    let parts: Vec<&str> = shown.split('…').collect();
    let [first, middle @ .., last] = parts.as_slice() else { return shown == said };
    let Some(mut rest) = said.strip_prefix(first) else { return false };
    for part in middle {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
    }
    rest.ends_with(last)
}

/// Does what a document says, as a reader would.
struct Reader {
    world: World,
    path: String,
    folder: PathBuf,
    env: Vec<(String, String)>,
    /// Where a daemon may be left behind.
    visited: Vec<PathBuf>,
}

impl Reader {
    /// A reader with the examples of the repository, and these folders of programs.
    fn new(programs: &[PathBuf]) -> Self {
        let world = World::new();
        copy(&repository().join("examples"), &world.project().join("examples"));
        let own = Path::new(program()).parent().expect("a folder").to_owned();
        let folders = [own].into_iter().chain(programs.iter().cloned());
        let folders: Vec<String> = folders.map(|folder| folder.display().to_string()).collect();
        let path = format!("{}:{}", folders.join(":"), std::env::var("PATH").unwrap_or_default());
        let folder = world.project();
        Reader { world, path, folder, env: Vec::new(), visited: Vec::new() }
    }

    fn act_out(mut self, document: &str) {
        let text = fs::read_to_string(repository().join(document)).expect(document);
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let steps = steps(&text.replace(ADDRESS, &free.expect("a port").to_string()));
        assert!(!steps.is_empty(), "{document} shows nothing");
        let differs: Vec<String> = steps.iter().filter_map(|step| self.act(step)).collect();
        for folder in &self.visited {
            let _ = self.world.command(program()).arg("down").current_dir(folder).output();
        }
        let differs: String = differs.iter().map(|it| format!("\n{document}:{it}\n")).collect();
        assert!(differs.is_empty(), "{differs}");
    }

    /// Returns what differs from the document.
    fn act(&mut self, step: &Step) -> Option<String> {
        let (line, command, shown) = match step {
            Step::Command { line, command, shown } => (line, command, shown),
            Step::File { name, text } => {
                let file = self.folder.join(name);
                fs::create_dir_all(file.parent().expect("a folder")).expect("a folder");
                fs::write(file, text).expect("written");
                return None;
            }
        };
        if let Some(into) = command.strip_prefix("cd ") {
            self.folder = self.folder.join(into);
            self.visited.push(self.folder.clone());
            return None;
        }
        let output = self
            .world
            .command("sh")
            .args(["-c", &format!("{{ {command}\n}} 2>&1")])
            .env("PATH", &self.path)
            .envs(self.env.iter().map(|(name, value)| (name, value)))
            .current_dir(&self.folder)
            .output()
            .expect("sh");
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        // Which a busy machine says, and a guide does not show.
        let is_waiting = |line: &&str| line.starts_with("waiting for the daemon");
        let lines = said.lines().map(str::trim_end).filter(|line| !is_waiting(line));
        let lines: Vec<&str> = lines.collect();
        let differs =
            || format!("{line} `{command}` said:\n{said}\nand not:\n{}", shown.join("\n"));
        (!fits(shown, &lines)).then(differs)
    }
}

#[test]
fn the_guide_is_true() {
    Reader::new(&[]).act_out("docs/guide.md");
}

#[test]
fn b_27_the_first_five_minutes_are_typed() {
    Reader::new(&[]).act_out("docs/five-minutes.md");
}

#[test]
fn b_27_the_first_workflow_is_typed_step_by_step() {
    Reader::new(&[]).act_out("docs/first-workflow.md");
}

#[test]
fn b_27_an_agent_of_ones_own_is_typed_in_every_language() {
    let node = tools::node_24().expect("Node.js").join("bin");
    Reader::new(&[node]).act_out("docs/your-own-agent.md");
}

#[test]
fn b_27_every_template_is_typed() {
    Reader::new(&[]).act_out("docs/templates.md");
}

#[test]
fn b_27_the_examples_of_coordination_are_typed() {
    Reader::new(&[]).act_out("docs/coordination.md");
}

#[test]
fn b_27_the_examples_of_interfaces_are_typed() {
    tools::debian("curl", "curl").expect("curl");
    Reader::new(&[]).act_out("docs/interfaces.md");
}

#[test]
fn b_30_a_team_of_sessions_has_its_mail_by_stafette() {
    let server = "plugin_stafette_stafette";
    let takes = |prompt: &str, name: &str, handoff: &str| {
        let wanted = json!({ "agent": name, "within_seconds": 60 });
        let offered = json!({ "handoff": handoff, "run": "latest", "by": name });
        Rule::when(prompt)
            .then(Reply::mcp(server, "wait", wanted))
            .then(Reply::mcp(server, "accept", offered))
    };
    let message = json!({
        "to": "lead", "text": "The page is in page.md", "turn": "h3/1.1", "run": "latest",
        "within_seconds": 120,
    });
    let script = Script::new()
        .rule(
            takes("You lead. Wait", "lead", "h2")
                .then(Reply::shell("until stafette log | grep message_sent; do sleep 1; done"))
                .then(Reply::text("The page is there.")),
        )
        .rule(
            takes("You write the page", "writer", "h3")
                .then(Reply::shell("echo Welcome > page.md"))
                .then(Reply::mcp(server, "message", message))
                .then(Reply::text("The page is written, and the lead knows.")),
        );
    let model = ModelServer::start(script).expect("a model");
    let mut reader = Reader::new(&[]);
    let (home, project) = (reader.world.home().join("agents"), reader.world.project());
    copy(&repository().join("plugin"), &project.join("plugin"));
    let claude = Cli::Claude.prepare(&home, &project, &model.url()).expect("Claude Code");
    reader.path =
        format!("{}:{}", claude.program.parent().expect("a folder").display(), reader.path);
    reader.env.extend(claude.env);
    reader.act_out("docs/agent-teams.md");
    let exchanges = model.exchanges();
    let heard: String = exchanges.iter().map(|one| one.body.to_string()).collect();
    assert!(heard.contains("delivered at a tool boundary"), "the sender's receipt: {heard}");
}

/// What an assistant does with a request: it gives it to the team, waits, and says how it went.
fn orchestrates(prompt: &str, server: &str, said: &str) -> Rule {
    Rule::when(prompt)
        .then(Reply::mcp(server, "start_run", json!({ "request": "Add a --json flag" })))
        .then(Reply::mcp(server, "status", json!({ "run": "latest", "within_seconds": 120 })))
        .then(Reply::text(said))
}

#[test]
fn b_23_assistants_run_the_team() {
    let done = "The team is done: it was built, and the review found nothing.";
    let script =
        Script::new().rule(orchestrates("Have the team add", "stafette", done)).rule(orchestrates(
            "Have this project's team do the following",
            "plugin_stafette_stafette",
            "The team is done, and nothing waits for you.",
        ));
    let model = ModelServer::start(script).expect("a model");
    let gemini = Agent::Gemini.programs(false).expect("Gemini").remove(0);
    let node = tools::node_24().expect("Node.js").join("bin");
    let mut reader = Reader::new(&[]);
    let (home, project) = (reader.world.home().join("agents"), reader.world.project());
    copy(&repository().join("plugin"), &project.join("plugin"));
    let settings = "{\"security\": {\"auth\": {\"selectedType\": \"gemini-api-key\"}}}";
    reader.world.write("../.gemini/settings.json", settings);
    let mut programs = vec![gemini];
    for cli in Cli::ALL {
        let agent = cli.prepare(&home, &project, &model.url()).expect("an assistant");
        programs.push(agent.program);
        reader.env.extend(agent.env);
    }
    let gemini = [
        ("GOOGLE_GEMINI_BASE_URL", model.url()),
        ("GEMINI_API_KEY", "scripted".to_owned()),
        ("GEMINI_MODEL", "gemini-2.5-pro".to_owned()),
        ("GEMINI_CLI_TRUST_WORKSPACE", "true".to_owned()),
    ];
    reader.env.extend(gemini.map(|(name, value)| (name.to_owned(), value)));
    let folders = programs.iter().filter_map(|program| program.parent()).chain([node.as_path()]);
    for folder in folders {
        reader.path = format!("{}:{}", folder.display(), reader.path);
    }
    reader.act_out("docs/assistants.md");
    let heard: String = model.exchanges().iter().map(|one| one.body.to_string()).collect();
    assert!(heard.contains("The change is good"), "the result of the run: {heard}");
}
