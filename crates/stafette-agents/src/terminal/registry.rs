//! The terminals of a daemon: one for each agent in each run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::Serialize;
use stafette_core::redact::Redactor;
use stafette_core::wire::frame::Word;
use stafette_core::{AgentName, Failure, RunId};
use tokio::sync::broadcast;

use super::news::{Follow, SessionNews, Teller, WAITING};
use super::{Setup, State, Terminal, recording};
use crate::process::Launch;

/// A summary of a terminal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TerminalInfo {
    pub run: RunId,
    pub agent: AgentName,
    pub state: State,
    /// The title that its program has set, if any.
    pub title: Option<String>,
    /// Width in columns.
    pub cols: u16,
    pub rows: u16,
    /// The id of its process, while it runs.
    pub pid: Option<i32>,
    /// The time at which it entered this state.
    pub since: SystemTime,
    /// A message for people: how its program died, with its last screen.
    pub note: Option<String>,
}

type Key = (RunId, AgentName);

/// The terminals of a daemon. A handle: clones share them.
#[derive(Clone, Debug)]
pub struct Terminals {
    all: Arc<Mutex<BTreeMap<Key, Terminal>>>,
    setup: Arc<Setup>,
    recordings: Option<Arc<(PathBuf, Redactor)>>,
    /// Locked while a terminal is started, so that no agent gets two.
    starting: Arc<tokio::sync::Mutex<()>>,
    news: broadcast::Sender<SessionNews>,
    /// The largest number of a signed frame in the terminals that were ended, while their run
    /// lasts: another terminal of the agent may have the same token, and show the same frames
    /// again.
    sealed: Arc<Mutex<BTreeMap<Key, u64>>>,
}

impl Default for Terminals {
    fn default() -> Self {
        Terminals {
            all: Arc::default(),
            setup: Arc::default(),
            recordings: None,
            starting: Arc::default(),
            news: broadcast::Sender::new(WAITING),
            sealed: Arc::default(),
        }
    }
}

impl Terminals {
    /// A registry without terminals.
    #[must_use]
    pub fn new() -> Self {
        Terminals::default()
    }

    /// Sets the settings for terminals that are started from now on.
    #[must_use]
    pub fn with_setup(mut self, setup: Setup) -> Self {
        self.setup = Arc::new(setup);
        self
    }

    /// Records their output without secrets, each in a file `RUN/AGENT.cast` of this folder.
    #[must_use]
    pub fn recorded_in(mut self, folder: PathBuf, redactor: Redactor) -> Self {
        self.recordings = Some(Arc::new((folder, redactor)));
        self
    }

    /// Follows the sessions of a run from now on.
    #[must_use]
    pub fn follow(&self, run: RunId) -> Follow {
        Follow { run, news: self.news.subscribe() }
    }

    fn sealed(&self) -> MutexGuard<'_, BTreeMap<Key, u64>> {
        self.sealed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<Key, Terminal>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The terminal of an agent in a run.
    pub fn get(&self, run: RunId, agent: &AgentName) -> Option<Terminal> {
        self.all().get(&(run, agent.clone())).cloned()
    }

    /// Marks that an agent has reported the outcome of its turn through a channel of its own. For a
    /// program that stays, this is the only sign that its turn has ended.
    pub fn told(&self, run: RunId, agent: &AgentName) {
        if let Some(terminal) = self.get(run, agent) {
            terminal.told();
        }
    }

    /// Marks that an agent was given a message in its turn: a turn that would have ended with what its
    /// screen shows goes on.
    pub fn given(&self, run: RunId, agent: &AgentName) {
        if let Some(terminal) = self.get(run, agent) {
            terminal.given();
        }
    }

    /// Summaries of all terminals.
    pub fn list(&self) -> Vec<TerminalInfo> {
        let all = self.all();
        all.iter().map(|((run, agent), terminal)| terminal.info(*run, agent)).collect()
    }

    /// Ends every terminal of a run. Returns when nothing of them is left.
    pub async fn end_run(&self, run: RunId) {
        self.end_where(|key| key.0 == run).await;
        self.sealed().retain(|key, _| key.0 != run);
    }

    /// Ends one terminal. Returns when nothing of it is left.
    pub async fn end(&self, run: RunId, agent: &AgentName) {
        self.end_where(|key| key.0 == run && key.1 == *agent).await;
    }

    /// Ends all of them. Returns when nothing of them is left.
    pub async fn end_all(&self) {
        self.end_where(|_| true).await;
        self.sealed().clear();
    }

    async fn end_where(&self, which: impl Fn(&Key) -> bool) {
        let ended: Vec<_> = self.all().extract_if(.., |key, _| which(key)).collect();
        let end = async |(key, terminal): (Key, Terminal)| {
            terminal.end().await;
            (key, terminal.sealed())
        };
        let ending: Vec<_> = ended.into_iter().map(|one| tokio::spawn(end(one))).collect();
        for task in ending {
            // A task that panics has ended its processes on the way out.
            if let Ok((key, number @ 1..)) = task.await {
                self.sealed().insert(key, number);
            }
        }
    }

    /// Ends an agent's program and starts it again; `None` when it has no terminal.
    pub async fn restart(&self, run: RunId, agent: &AgentName) -> Option<Result<(), Failure>> {
        let terminal = self.get(run, agent)?;
        Some(terminal.restart(None).await)
    }

    /// The terminal in which a command runs for an agent: the present one, or a new one. `afresh`
    /// ends the present one; `order` is the order that a program gets with its command; `wishes`
    /// has the special settings of a new one.
    pub(crate) async fn open(
        &self,
        (run, agent): (RunId, &AgentName),
        launch: Launch,
        word: Word,
        afresh: bool,
        order: Option<&str>,
        wishes: impl FnOnce(&mut Setup),
    ) -> Result<Terminal, Failure> {
        let other =
            |terminal: &Terminal| afresh || terminal.status().over || !terminal.runs(&launch);
        if self.get(run, agent).is_some_and(|terminal| other(&terminal)) {
            self.end(run, agent).await;
        }
        let _alone = self.starting.lock().await;
        if let Some(terminal) = self.get(run, agent) {
            return Ok(terminal);
        }
        let path = self.recordings.as_ref().map(|all| recording::file(&all.0, run, agent));
        let recording = path.as_deref().zip(self.recordings.as_ref());
        let recording = recording.map(|(path, all)| (path, agent.as_str(), &all.1));
        let mut setup = Setup::clone(&self.setup);
        wishes(&mut setup);
        let news = self.news.clone();
        let teller = Some(Teller { run, agent: agent.clone(), news });
        let terminal = Terminal::start(launch, &setup, word, order, recording, teller).await?;
        if let Some(number) = self.sealed().get(&(run, agent.clone())) {
            terminal.sealed_up_to(*number);
        }
        self.all().insert((run, agent.clone()), terminal.clone());
        Ok(terminal)
    }
}
