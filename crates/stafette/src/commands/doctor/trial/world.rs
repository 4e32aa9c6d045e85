//! A project in a home of its own, with one agent and a daemon, of which nothing is left at the end.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use stafette_agents::profile::Profile;
use stafette_fake_model::Exchange;
use tokio::process::Command;
use tokio::time::timeout;

use super::case::CHECKED;
use crate::daemon;
use crate::exit::Failure;

/// A key for a model that needs none, as long as real ones are.
const KEY: &str = "sk-scripted-key-for-a-model-on-loopback";

/// The time limit for one of our own commands.
const PATIENCE: Duration = Duration::from_secs(60);

/// What to do where one of our own commands fails.
const LATER: &str =
    "try again when the machine is less busy; `--keep DIR` keeps what there is to see";

/// The time limit for the daemon's end, after which it is killed.
const END: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct World {
    home: PathBuf,
    env: Vec<(String, String)>,
    daemon: Option<Pid>,
}

impl World {
    /// Lays out a project in a new home, which points the program of the profile at the model.
    pub(super) async fn new(
        home: &Path,
        profile: &Profile,
        workflow: &str,
        model: &str,
    ) -> Result<Self, Failure> {
        let fill = |text: &String| text.replace("{model}", model).replace("{key}", KEY);
        let mut env: Vec<(String, String)> =
            profile.trial.env.iter().map(|(name, value)| (name.clone(), fill(value))).collect();
        // What leads out of this machine ends at the model, which refuses it and has it on record.
        for name in ["HTTPS_PROXY", "HTTP_PROXY"] {
            env.push((name.to_owned(), model.to_owned()));
        }
        env.push(("NO_PROXY".to_owned(), "127.0.0.1,localhost".to_owned()));
        let world = World { home: home.to_owned(), env, daemon: None };
        let check = format!("echo \"{CHECKED}\"\necho \"FOLDER=$(pwd)\"\ntouch checked\n");
        let mut files = vec![
            ("project/README.md".to_owned(), "A project to greet people.\n".to_owned()),
            ("project/check.sh".to_owned(), check),
            ("project/stafette.toml".to_owned(), workflow.to_owned()),
            // Some programs write a name into the repository's settings where the user has none.
            (".gitconfig".to_owned(), "[user]\nname = Ada\nemail = ada@localhost\n".to_owned()),
        ];
        files.extend(profile.trial.files.iter().map(|(path, text)| (path.clone(), fill(text))));
        for (path, text) in files {
            let path = home.join(path);
            let written = path.parent().map_or(Ok(()), fs::create_dir_all);
            written.and_then(|()| fs::write(&path, text)).map_err(|error| {
                Failure::failed(format!("Cannot write {}", path.display()))
                    .because(&error)
                    .fix("free some space, or keep the homes elsewhere with --keep")
            })?;
        }
        for words in
            [&["init", "-q", "-b", "main"][..], &["add", "."], &["commit", "-q", "-m", "Begin"]]
        {
            world.said("git", words, PATIENCE).await?;
        }
        Ok(world)
    }

    /// Starts the daemon and the run.
    pub(super) async fn start(&mut self) -> Result<(), Failure> {
        self.stafette(&["trust", "--yes"]).await?;
        let up = self.json(&["up"]).await;
        let pid = up["pid"].as_i64().and_then(|pid| Pid::from_raw(i32::try_from(pid).ok()?));
        self.daemon = pid;
        self.stafette(&["run", "Greet the user", "--detach"]).await?;
        Ok(())
    }

    /// A command with nothing of the user's in its environment but where programs are.
    fn command(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.home.join("project")).env_clear();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.env("HOME", &self.home).env("USER", "ada").env("LANG", "C.UTF-8");
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command.kill_on_drop(true);
        command
    }

    async fn said(
        &self,
        program: impl AsRef<OsStr>,
        words: &[&str],
        limit: Duration,
    ) -> Result<String, Failure> {
        let name = program.as_ref().to_string_lossy().into_owned();
        let failed = || Failure::failed(format!("`{name} {}` failed", words.join(" ")));
        let output = self.command(&program).args(words).output();
        let output =
            timeout(limit, output).await.map_err(|_| failed().why("it did not end").fix(LATER))?;
        let output =
            output.map_err(|error| failed().because(&error).fix("install it and try again"))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        match output.status.success() {
            true => Ok(text(&output.stdout)),
            false => Err(failed().why(text(&output.stdout) + &text(&output.stderr)).fix(LATER)),
        }
    }

    /// Runs a command of this program.
    pub(super) async fn stafette(&self, words: &[&str]) -> Result<String, Failure> {
        self.said(daemon::program()?, words, PATIENCE).await
    }

    /// The answer of a command of this program; null if it failed.
    pub(super) async fn json(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        let said = self.stafette(&words).await.unwrap_or_default();
        serde_json::from_str(&said).unwrap_or_default()
    }

    /// The events of the run.
    pub(super) async fn events(&self) -> Vec<Value> {
        let said = self.stafette(&["log", "--json"]).await.unwrap_or_default();
        said.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// Kills the agent's processes; returns false if there are none.
    pub(super) fn kill_agent(&self) -> bool {
        let notes = notes(&self.home.join(".local/state"));
        let groups = notes.iter().filter_map(|note| {
            let note: Value = serde_json::from_slice(&fs::read(note).ok()?).ok()?;
            Pid::from_raw(i32::try_from(note["group"].as_i64()?).ok().filter(|id| *id > 1)?)
        });
        groups
            .map(|group| kill_process_group(group, Signal::KILL))
            .fold(false, |any, k| any | k.is_ok())
    }

    /// Writes down what the model was asked, for a person who looks into a home that was kept.
    pub(super) fn keep(&self, exchanges: &[Exchange]) {
        let line = |exchange: &Exchange| {
            let outcome = format!("{:?}", exchange.outcome);
            let request =
                json!({ "path": exchange.path, "outcome": outcome, "body": exchange.body });
            format!("{request}\n")
        };
        let lines: String = exchanges.iter().map(line).collect();
        // Nothing depends on it.
        let _ = fs::write(self.home.join("requests.jsonl"), lines);
    }

    /// Ends the daemon with all that it has started.
    pub(super) async fn close(self) {
        let down = match daemon::program() {
            Ok(program) => self.said(program, &["down"], END).await.is_ok(),
            Err(_) => false,
        };
        if let Some(daemon) = self.daemon.filter(|_| !down) {
            // It may have ended by itself.
            let _ = kill_process(daemon, Signal::KILL);
        }
        for left in living_in(&self.home) {
            let _ = kill_process(left, Signal::KILL);
        }
    }
}

/// The notes of the processes that a daemon has started, below a folder.
fn notes(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let below = entries.flat_map(|entry| match entry.file_type() {
        Ok(kind) if kind.is_dir() => notes(&entry.path()),
        _ => vec![entry.path()],
    });
    below.filter(|path| path.extension().is_some_and(|ending| ending == "pid")).collect()
}

/// The processes with this home, where the system shows them.
fn living_in(home: &Path) -> Vec<Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut variable = b"HOME=".to_vec();
    variable.extend(home.as_os_str().as_encoded_bytes());
    let lives = entries.filter_map(|entry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let environment = fs::read(entry.path().join("environ")).ok()?;
        let carries = environment.split(|byte| *byte == 0).any(|entry| entry == variable);
        Pid::from_raw(id).filter(|_| carries)
    });
    lives.collect()
}
