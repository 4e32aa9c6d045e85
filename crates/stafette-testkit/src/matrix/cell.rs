//! One agent, driven in one way, from a new home to a reviewed change.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use thiserror::Error;

use super::{Agent, Runner};
use crate::cli::InstallError;
use crate::model::{Exchange, ModelServer, Outcome, Reply, Rule, Script, Usage};
use crate::tools::{self, ToolError};

/// The time between two looks at a run.
const LOOK: Duration = Duration::from_millis(250);

/// The text that the builder writes and the reviewer has to find.
const GREETING: &str = "Hello from the builder";

/// The text that the builder's command prints.
const CHECKED: &str = "all checks pass";

/// An agent and the way in which it is driven.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    /// The agent.
    pub agent: Agent,
    /// The way in which it is driven.
    pub runner: Runner,
}

/// The outcome of a first contact.
#[derive(Clone, Debug, Default)]
pub struct Verdict {
    /// The state of the run in the end.
    pub status: String,
    /// True if the builder's command ran and its model saw the output.
    pub ran: bool,
    /// True if the reviewer found what the builder wrote.
    pub edited: bool,
    /// True if the reviewer got the handoff.
    pub handed_over: bool,
    /// The questions that came into the inbox.
    pub questions: Vec<String>,
    /// The alerts and failures of the run.
    pub alerts: Vec<String>,
    /// The requests that the model had no answer for.
    pub surprises: Vec<String>,
    /// The tokens that the model says it has used for the two agents, without those from its cache.
    pub answered: u64,
    /// The tokens that the run has spent; `None` if they are not known.
    pub spent: Option<u64>,
    /// The cost of the run as people read it.
    pub cost: String,
    /// The time from `run` to the end.
    pub time: Duration,
}

impl Verdict {
    /// True if all work was done.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.status == "succeeded" && self.ran && self.edited && self.handed_over
    }

    /// Returns what is to be said about it, on one line.
    #[must_use]
    pub fn remarks(&self) -> String {
        let mut remarks = Vec::new();
        if !self.is_complete() {
            remarks.push(format!("the run is {}", self.status));
            for (done, what) in [
                (self.ran, "its command did not run"),
                (self.handed_over, "no handoff"),
                (self.edited, "its edit was not found"),
            ] {
                remarks.extend((!done).then(|| what.to_owned()));
            }
        }
        remarks.extend(self.questions.iter().map(|question| format!("asked: {question}")));
        remarks.extend(self.alerts.iter().cloned());
        remarks.extend(self.surprises.iter().map(|what| format!("unexpected request: {what}")));
        let short = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let cut = |text: String| text.chars().take(160).collect::<String>();
        remarks.into_iter().map(short).map(cut).collect::<Vec<_>>().join("; ")
    }
}

/// The reason why a first contact could not be tried.
#[derive(Debug, Error)]
pub enum TrialError {
    /// The agent could not be installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// Node.js could not be installed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// A file could not be written, or a program not be started.
    #[error("{0}")]
    System(#[from] io::Error),
    /// A command of Stafette failed.
    #[error("`stafette {command}` failed: {said}")]
    Stafette {
        /// The arguments of the command.
        command: String,
        /// Its output.
        said: String,
    },
}

/// Makes a folder for a new home.
///
/// # Errors
///
/// If it cannot be made.
pub fn new_home() -> io::Result<tempfile::TempDir> {
    // Codex installs no helpers for its sandbox in a home under `/tmp`, where nobody has one.
    tempfile::tempdir_in("/var/tmp")
}

impl Cell {
    /// Returns every agent with every way in which it can be driven.
    #[must_use]
    pub fn all() -> Vec<Cell> {
        let every = |agent: Agent| Runner::ALL.map(|runner| Cell { agent, runner });
        let all = Agent::ALL.into_iter().flat_map(every);
        all.filter(|cell| cell.agent.has(cell.runner)).collect()
    }

    /// Tries it with this program of Stafette in a folder, which becomes the new home. It is given up
    /// after `limit`.
    ///
    /// # Errors
    ///
    /// If the agent cannot be installed, or the trial cannot begin.
    pub fn run(self, stafette: &Path, home: &Path, limit: Duration) -> Result<Verdict, TrialError> {
        self.run_with(stafette, home, limit, "")
    }

    /// Tries it with more lines in the workflow.
    ///
    /// # Errors
    ///
    /// As [`Cell::run`].
    pub fn run_with(
        self,
        stafette: &Path,
        home: &Path,
        limit: Duration,
        more: &str,
    ) -> Result<Verdict, TrialError> {
        let model = ModelServer::start(self.script())?;
        let world = World::new(self, stafette, home, &model.url(), more)?;
        world.say(&["trust", "--yes"])?;
        let since = Instant::now();
        world.say(&["run", "Greet the user", "--detach", "--json"])?;
        let mut verdict = Verdict::default();
        let mut answered = BTreeSet::new();
        let mut stuck = false;
        loop {
            for question in list(&world.json(&["inbox", "--json"])) {
                let text = |path: &str| word(question.pointer(path));
                let id = format!("{}:{}", text("/run"), text("/id"));
                if answered.insert(id.clone()) {
                    let asked = text("/handoff/offer/question/details");
                    // A person would not say yes to the same failure for ever.
                    stuck |= verdict.questions.contains(&asked) && !is_permission(&question);
                    verdict.questions.push(asked);
                    let options = question.pointer("/handoff/offer/question/options");
                    let options: Vec<String> = options
                        .map(list)
                        .unwrap_or_default()
                        .iter()
                        .map(|o| word(Some(o)))
                        .collect();
                    let yes = options.first().cloned().unwrap_or_else(|| "yes".to_owned());
                    // One that was settled meanwhile needs no answer.
                    let _ = world.say(&["answer", &id, &yes]);
                }
            }
            let status = world.json(&["status", "--json"]);
            let run = if status.is_array() { status[0].clone() } else { status };
            verdict.status = word(run.get("status"));
            let spent = run.pointer("/purse/spent").unwrap_or(&Value::Null);
            let is_known = spent.pointer("/unknown/tokens").is_none_or(|turns| *turns == 0);
            verdict.spent = spent["tokens"].as_u64().filter(|_| is_known);
            if ["succeeded", "failed", "cancelled"].contains(&verdict.status.as_str())
                || stuck
                || since.elapsed() > limit
            {
                break;
            }
            std::thread::park_timeout(LOOK);
        }
        verdict.time = since.elapsed();
        let exchanges = model.exchanges();
        verdict.read(&exchanges);
        fs::write(home.join("requests.jsonl"), lines(&exchanges))?;
        verdict.alerts = world.alerts();
        verdict.cost = world.say(&["cost", "--by", "run"]).unwrap_or_default();
        Ok(verdict)
    }

    fn script(self) -> Script {
        if !self.agent.has_tools() {
            return plain();
        }
        // As the prompt says: a signal, only if the tools do not work.
        let tool = |name: &str, signal: &str, input: Value| {
            let text = format!("<<<ODEI:{signal}:{input}>>>\n");
            Reply::mcp("stafette", name, input).or_text(text)
        };
        Script::new()
            .rule(
                Rule::when("You build.")
                    .then(Reply::shell("sh ./check.sh"))
                    .then(Reply::write("{folder}/greeting.txt", format!("{GREETING}\n")))
                    .then(tool(
                        "handoff",
                        "HANDOFF",
                        json!({ "to": "reviewer", "summary": "See greeting.txt" }),
                    ))
                    .then(Reply::text("The greeting is written and handed over.")),
            )
            .rule(
                Rule::when("You review.")
                    .then(Reply::shell("cat greeting.txt").or_read("{folder}/greeting.txt"))
                    .then(tool("complete", "RESULT", json!({ "summary": "The greeting is good" })))
                    .then(Reply::text("The greeting is good.")),
            )
    }
}

/// The same work for an agent that edits and runs what its model writes down.
fn plain() -> Script {
    Script::new()
        .rule(Rule::when("").told("commit messages").then(Reply::text("feat: greet the user")))
        .rule(Rule::when("You build.").then(Reply::text(format!(
            "greeting.txt\n```\n<<<<<<< SEARCH\n=======\n{GREETING}\n>>>>>>> REPLACE\n```\n\n\
             ```bash\nsh ./check.sh\n```\n\n\
             <<<ODEI:HANDOFF:{{\"to\":\"reviewer\",\"summary\":\"See greeting.txt\"}}>>>\n"
        ))))
        .rule(Rule::when("You review.").then(Reply::text(
            "```bash\ncat greeting.txt\n```\n\n\
             <<<ODEI:RESULT:{\"status\":\"resolved\",\"summary\":\"The greeting is good\"}>>>\n",
        )))
}

impl Verdict {
    /// Reads what the model was told.
    fn read(&mut self, exchanges: &[Exchange]) {
        let tells = |prompt: &str, text: &str| {
            exchanges.iter().any(|exchange| {
                let ask = exchange.ask.as_ref().filter(|ask| ask.prompt.contains(prompt));
                ask.is_some() && exchange.body.to_string().contains(text)
            })
        };
        self.ran = tells("You build.", CHECKED);
        self.handed_over = tells("You review.", "You review.");
        self.edited = tells("You review.", GREETING);
        let Usage { input, output, .. } = Usage::default();
        let answered = |it: &&Exchange| matches!(it.outcome, Outcome::Rule(_));
        self.answered = exchanges.iter().filter(answered).map(|_| input + output).sum();
        let surprising = exchanges.iter().filter(|exchange| exchange.is_surprise());
        let mut surprises: Vec<String> =
            surprising.map(|exchange| format!("{} {}", exchange.method, exchange.path)).collect();
        surprises.dedup();
        self.surprises = surprises;
    }
}

/// A project in a new home, with one agent on the search path.
struct World {
    stafette: PathBuf,
    home: PathBuf,
    env: Vec<(&'static str, String)>,
    path: OsString,
}

impl World {
    fn new(
        cell: Cell,
        stafette: &Path,
        home: &Path,
        url: &str,
        more: &str,
    ) -> Result<Self, TrialError> {
        let Cell { agent, runner } = cell;
        let bin = home.join("bin");
        fs::create_dir_all(&bin)?;
        for program in agent.programs(runner)? {
            symlink(&program, bin.join(program.file_name().unwrap_or_default()))?;
        }
        let node = tools::node_24()?;
        symlink(node.join("bin/node"), bin.join("node"))?;
        let env = agent.point(home, url)?;
        let mut path = bin.into_os_string();
        path.push(":/usr/local/bin:/usr/bin:/bin");
        let world = World { stafette: stafette.to_owned(), home: home.to_owned(), env, path };
        let project = world.project();
        fs::create_dir_all(&project)?;
        fs::write(project.join("README.md"), "A project to greet people.\n")?;
        let check = format!("echo \"{CHECKED}\"\necho \"FOLDER=$(pwd)\"\ntouch checked\n");
        fs::write(project.join("check.sh"), check)?;
        fs::write(project.join("stafette.toml"), workflow(cell) + more)?;
        for words in [
            &["init", "-q", "-b", "main"][..],
            &["add", "."],
            &[
                "-c",
                "user.name=Ada",
                "-c",
                "user.email=ada@localhost",
                "commit",
                "-q",
                "-m",
                "Begin",
            ],
        ] {
            world.command("git").args(words).output()?;
        }
        Ok(world)
    }

    fn project(&self) -> PathBuf {
        self.home.join("project")
    }

    /// A command with nothing of the tester's own in its environment.
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.project()).env_clear().stdin(Stdio::null());
        command.env("PATH", &self.path).env("HOME", &self.home).env("USER", "ada");
        command.env("LANG", "C.UTF-8").envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn say(&self, words: &[&str]) -> Result<String, TrialError> {
        let output = self.command(&self.stafette).args(words).output()?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => {
                let said = text(&output.stdout) + &text(&output.stderr);
                Err(TrialError::Stafette { command: words.join(" "), said })
            }
        }
    }

    /// The answer of a command as JSON; null if it failed.
    fn json(&self, words: &[&str]) -> Value {
        let said = self.say(words).unwrap_or_default();
        serde_json::from_str(&said).unwrap_or_default()
    }

    /// What went wrong, by the events of the run.
    fn alerts(&self) -> Vec<String> {
        let said = self.say(&["log", "--json"]).unwrap_or_default();
        let events = said.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        let bad = ["alert_raised", "turn_failed", "handoff_refused"];
        let bad = events.filter(|event| bad.contains(&word(event.get("event")).as_str()));
        let mut said: Vec<String> = bad
            .map(|event| {
                let places = ["/code", "/message", "/failure/message", "/refusal"];
                let parts = places.iter().filter_map(|place| event.pointer(place));
                let parts: Vec<String> = parts.map(|part| word(Some(part))).collect();
                format!("{} {}", word(event.get("event")), parts.join(" "))
            })
            .collect();
        said.dedup();
        said
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Leaves no daemon behind.
        let _ = self.say(&["down"]);
    }
}

fn workflow(cell: Cell) -> String {
    let agent = |name: &str, prompt: &str| {
        format!(
            "[agents.{name}]\nrunner = \"{}\"\nprofile = \"{}\"\nprompt = \"{prompt}\"\n\n",
            cell.runner.name(),
            cell.agent.name(),
        )
    };
    [
        "[workflow]\nname = \"pair\"\nentry = \"builder\"\nworktrees = true\n\n".to_owned(),
        agent("builder", "You build."),
        agent("reviewer", "You review."),
        "[[routes]]\nfrom = \"builder\"\nto = \"reviewer\"\n".to_owned(),
    ]
    .concat()
}

/// The requests to the model, one JSON document on each line.
fn lines(exchanges: &[Exchange]) -> String {
    let line = |exchange: &Exchange| {
        let outcome = format!("{:?}", exchange.outcome);
        let request = json!({ "path": exchange.path, "outcome": outcome, "body": exchange.body });
        format!("{request}\n")
    };
    exchanges.iter().map(line).collect()
}

/// True for a question that has to be asked each time.
fn is_permission(question: &Value) -> bool {
    word(question.pointer("/handoff/offer/question/reason")) == "permission"
}

fn list(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

fn word(value: Option<&Value>) -> String {
    value.and_then(Value::as_str).unwrap_or_default().to_owned()
}
