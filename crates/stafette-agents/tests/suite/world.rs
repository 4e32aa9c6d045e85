//! A repository with one agent in it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use stafette_agents::scripted::{Entry, Event, read_ledger};
use stafette_agents::{Job, Permissions, Session, Signal, start};
use stafette_core::workflow::{Agent, PromptVia, ResultFormat, Runner, Sandbox};
use stafette_core::{
    Failure, Fields, Kind, Offer, Reason, RunId, Time, TurnKey, TurnOrder, TurnResult,
};
use tempfile::TempDir;
use tokio::sync::mpsc::Receiver;
use tokio::time::timeout;

use crate::a2a_server;

/// Longer than anything here takes, however busy the machine is.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The program that plays scripts.
pub(crate) const PLAYER: &str = env!("CARGO_BIN_EXE_stafette-player");

/// The program that plays them behind the Agent Client Protocol.
pub(crate) const ACP_PLAYER: &str = env!("CARGO_BIN_EXE_stafette-acp-player");

/// A folder with a repository, a script and a ledger.
#[derive(Debug)]
pub(crate) struct World {
    home: TempDir,
    key: TurnKey,
}

impl World {
    /// A fresh one, with a key that nobody else has.
    pub(crate) fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("work")).unwrap();
        // The folder's name is the only chance that a test has, and it is enough for a key.
        let mut digits = [7; 16];
        let name = home.path().file_name().unwrap().to_str().unwrap().as_bytes();
        name.iter().rev().zip(&mut digits).for_each(|(byte, digit)| *digit = *byte);
        let run: RunId = hex(&digits).parse().unwrap();
        let key = format!("{run}/h1/1.1").parse().unwrap();
        let world = World { home, key };
        for line in [
            "git init --quiet -b main",
            "git -c user.name=t -c user.email=t@t commit --quiet --allow-empty -m start",
        ] {
            let done = Command::new("sh").args(["-c", line]).current_dir(world.work()).status();
            assert!(done.unwrap().success(), "{line}");
        }
        world
    }

    /// The folder that the agent works in.
    pub(crate) fn work(&self) -> PathBuf {
        self.home.path().join("work")
    }

    /// The folder for notes about running turns.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.home.path().join("scratch")
    }

    /// A turn that does these steps.
    pub(crate) fn job(&self, runner: Runner, steps: &str) -> Job {
        self.job_of(runner, &format!("[[turn]]\nsteps = [\n{steps}\n]\n"))
    }

    /// A turn of this script.
    pub(crate) fn job_of(&self, runner: Runner, script: &str) -> Job {
        let path = self.home.path().join("builder.toml");
        fs::write(&path, format!("ledger = \"ledger/builder.jsonl\"\n{script}")).unwrap();
        let path = path.to_str().unwrap().to_owned();
        let command = match runner {
            Runner::Acp => vec![ACP_PLAYER.to_owned(), path.clone()],
            _ => vec![PLAYER.to_owned(), "play".to_owned(), path.clone()],
        };
        let url = (runner == Runner::A2a).then(|| a2a_server::serve(&command, &self.work(), true));
        let offer =
            Offer::new("planner".into(), "builder".into(), Kind::Transfer, Reason::TaskHandoff);
        Job {
            order: TurnOrder {
                key: self.key,
                agent: "builder".parse().unwrap(),
                request: "Add user auth".into(),
                offer,
                constraints: stafette_core::handoff::Constraints::default(),
                trace_id: String::new(),
                cause: None,
                inputs: Fields::new(),
                replies: std::collections::BTreeSet::new(),
                answers: Vec::new(),
                permits: Vec::new(),
                messages: Vec::new(),
                routes: vec!["reviewer".into(), "human".into()],
                round: 1,
                finish_by: Time(i64::MAX),
                deliveries: 1,
            },
            agent: Agent {
                role: String::new(),
                prompt: "You build.".into(),
                runner,
                profile: None,
                command,
                script: Some(path),
                url,
                bearer: None,
                prompt_via: PromptVia::Stdin,
                result: ResultFormat::Frames,
                env: Vec::new(),
                ready_timeout: None,
                stall: None,
                sandbox: Sandbox::Off,
                permissions: stafette_core::workflow::PermissionLevel::default(),
                needs: Vec::new(),
                estimate: None,
                budget: stafette_core::workflow::AgentBudget::default(),
                mcp: true,
            },
            profile: None,
            folder: self.work(),
            scratch: self.scratch(),
            frame_word: "ODEI".into(),
            trust_bare_frames: false,
            program: PLAYER.into(),
            given: Vec::new(),
            pulse: Default::default(),
            permissions: Permissions::default(),
            confined: None,
            ready_timeout: Some(PATIENCE),
        }
    }

    /// What the agent says that it did.
    pub(crate) fn ledger(&self) -> Vec<Event> {
        self.entries().iter().map(|entry| entry.event).collect()
    }

    /// The agent's whole account.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        read_ledger(&self.home.path().join("ledger/builder.jsonl")).unwrap()
    }

    /// How many commits there are besides the first.
    pub(crate) fn commits(&self) -> usize {
        let log =
            Command::new("git").args(["log", "--format=%H"]).current_dir(self.work()).output();
        String::from_utf8(log.unwrap().stdout).unwrap().lines().count() - 1
    }

    /// The turn's processes that still run.
    pub(crate) fn alive(&self) -> Vec<String> {
        let wanted = format!("STAFETTE_KEY={}", self.key);
        let mut alive = Vec::new();
        for process in fs::read_dir("/proc").unwrap().flatten() {
            let read = |name: &str| fs::read(process.path().join(name)).unwrap_or_default();
            let carries = read("environ").split(|byte| *byte == 0).any(|v| v == wanted.as_bytes());
            let stat = String::from_utf8_lossy(&read("stat")).into_owned();
            if carries && !stat.contains(") Z ") {
                alive.push(stat);
            }
        }
        alive
    }

    /// Waits until so many of them run: one that is just being started may not be seen yet.
    pub(crate) async fn lives(&self, count: usize) {
        let waiting = async {
            while self.alive().len() != count {
                tokio::task::yield_now().await;
            }
        };
        timeout(PATIENCE, waiting).await.unwrap_or_else(|_| panic!("{:?}", self.alive()));
    }

    /// Whether nothing is left of the turn: neither a process nor a note.
    pub(crate) fn is_clean(&self) -> bool {
        // Sessions may be remembered for the next turn of the run.
        let note = |entry: &fs::DirEntry| entry.file_name() != "sessions";
        let notes = fs::read_dir(self.scratch()).into_iter().flatten().flatten().filter(note);
        self.alive().is_empty() && notes.count() == 0
    }
}

fn hex(bytes: &[u8; 16]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The next signal.
pub(crate) async fn next(signals: &mut Receiver<Signal>) -> Option<Signal> {
    timeout(PATIENCE, signals.recv()).await.expect("a signal in time")
}

/// Waits until the agent says this.
pub(crate) async fn hears(session: &mut Session, note: &str) {
    loop {
        match next(&mut session.signals).await {
            Some(Signal::Alive { note: Some(said) }) if said == note => return,
            Some(Signal::Receipt(_) | Signal::Alive { .. }) => {}
            other => panic!("{other:?} instead of `{note}`"),
        }
    }
}

/// Lets a turn run to its end, as an engine does: the result is acknowledged.
pub(crate) async fn run(job: Job) -> Vec<Signal> {
    to_the_end(start(job)).await
}

/// The same for one that has begun.
pub(crate) async fn to_the_end(mut session: Session) -> Vec<Signal> {
    let mut heard = Vec::new();
    while let Some(signal) = next(&mut session.signals).await {
        if let Signal::Finished(_) = signal {
            session.acknowledge();
        }
        heard.push(signal);
    }
    heard
}

/// The result of a turn.
pub(crate) async fn finished(job: Job) -> TurnResult {
    match run(job).await.pop() {
        Some(Signal::Finished(result)) => *result,
        other => panic!("{other:?}"),
    }
}

/// The failure of a turn.
pub(crate) async fn failed(job: Job) -> Failure {
    match run(job).await.pop() {
        Some(Signal::Failed { failure, .. }) => failure,
        other => panic!("{other:?}"),
    }
}
