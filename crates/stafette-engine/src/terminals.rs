//! The terminals of agents, for observers and for people who type.

use std::path::PathBuf;

use serde::Serialize;
use stafette_agents::terminal::recording_file;
use stafette_core::workflow::Runner;
use stafette_core::{AgentName, RunId, Time};
use thiserror::Error;

pub use stafette_agents::screen::BadSize;
pub use stafette_agents::terminal::{
    InputError, Piece, Recording, RecordingError, RecordingLines, ResizeError, Snapshot,
    State as TerminalState, Subscription, Terminal,
};

use crate::{Engine, EngineError};

/// A summary of a terminal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TerminalView {
    /// The run that it belongs to.
    pub run: RunId,
    /// The agent that works in it.
    pub agent: AgentName,
    /// The state of its session.
    pub state: TerminalState,
    /// The title that its program has set, if any.
    pub title: Option<String>,
    /// Width in columns.
    pub cols: u16,
    /// Height in rows.
    pub rows: u16,
    /// The id of its process, while it runs.
    pub pid: Option<i32>,
    /// The time at which it entered this state.
    pub since: Time,
    /// A message for people: how its program died, with its last screen.
    pub note: Option<String>,
}

impl TerminalView {
    /// The view of an agent's terminal in a run, as it is now.
    #[must_use]
    pub fn of(terminal: &Terminal, run: RunId, agent: &AgentName) -> Self {
        terminal.info(run, agent).into()
    }
}

impl From<stafette_agents::terminal::TerminalInfo> for TerminalView {
    fn from(info: stafette_agents::terminal::TerminalInfo) -> Self {
        TerminalView {
            run: info.run,
            agent: info.agent,
            state: info.state,
            title: info.title,
            cols: info.cols,
            rows: info.rows,
            pid: info.pid,
            since: Time::of(info.since),
            note: info.note,
        }
    }
}

/// The reason why there is no terminal to show.
#[derive(Debug, Error)]
pub enum TerminalError {
    /// The run has no such agent.
    #[error("run {run} has no agent `{agent}`")]
    NoAgent {
        run: RunId,
        agent: String,
        /// The agents of the run that are in a terminal now.
        there: Vec<AgentName>,
    },
    /// The agent works without a terminal.
    #[error("{agent} is not in a terminal: its runner is `{runner}`")]
    OtherRunner {
        agent: AgentName,
        runner: String,
        /// The agents of the run that are in a terminal now.
        there: Vec<AgentName>,
    },
    /// The agent has no terminal yet, or no longer has one.
    #[error("{agent} has no terminal in run {run} at the moment")]
    NotThere {
        run: RunId,
        agent: AgentName,
        /// True if the run has ended.
        over: bool,
        /// The agents of the run that are in a terminal now.
        there: Vec<AgentName>,
    },
    /// Its program does not start again.
    #[error("{agent} does not start: {why}")]
    NoStart { agent: AgentName, why: String },
    /// The run could not be read.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

/// The terminals of agents: `Engine::terminals`.
#[derive(Clone, Copy, Debug)]
pub struct Terminals<'a> {
    pub(crate) engine: &'a Engine,
}

impl Terminals<'_> {
    /// The present terminals of one run, or of all runs for `None`.
    #[must_use]
    pub fn list(self, run: Option<RunId>) -> Vec<TerminalView> {
        let all = self.engine.shared().terminals.list().into_iter();
        let wanted = all.filter(|info| run.is_none_or(|run| info.run == run));
        wanted.map(TerminalView::from).collect()
    }

    /// The newest run in which an agent of this name has a terminal now.
    #[must_use]
    pub fn newest(self, agent: &str) -> Option<RunId> {
        let all = self.engine.shared().terminals.list().into_iter();
        all.filter(|info| info.agent.as_str() == agent).map(|info| info.run).max()
    }

    /// Returns the terminal of an agent.
    ///
    /// # Errors
    /// When it has none, with the reason.
    pub async fn get(
        self,
        run: RunId,
        agent: &str,
    ) -> Result<(AgentName, Terminal), TerminalError> {
        let name = agent.parse::<AgentName>().ok();
        let state = self.engine.state(run).await?;
        let over = state.status().is_final();
        // The terminals of a run that has ended are about to close.
        if let Some(name) = name.as_ref().filter(|_| !over)
            && let Some(terminal) = self.engine.shared().terminals.get(run, name)
        {
            return Ok((name.clone(), terminal));
        }
        let living = self.list(Some(run)).into_iter().filter(|_| !over);
        let there: Vec<AgentName> = living.map(|terminal| terminal.agent).collect();
        let known = name.and_then(|name| state.workflow.agents.get_key_value(&name));
        let Some((agent, settings)) = known else {
            return Err(TerminalError::NoAgent { run, agent: agent.to_owned(), there });
        };
        let agent = agent.clone();
        if settings.runner != Runner::Pty {
            let runner = serde_json::to_value(settings.runner).ok();
            let runner = runner.as_ref().and_then(|name| name.as_str()).unwrap_or_default();
            return Err(TerminalError::OtherRunner { agent, runner: runner.to_owned(), there });
        }
        Err(TerminalError::NotThere { run, agent, over, there })
    }

    /// Ends the program in an agent's terminal and starts it again.
    ///
    /// # Errors
    /// When there is no terminal, or the program does not start.
    pub async fn restart(self, run: RunId, agent: &str) -> Result<TerminalView, TerminalError> {
        let (agent, terminal) = self.get(run, agent).await?;
        match self.engine.shared().terminals.restart(run, &agent).await {
            Some(Err(failure)) => Err(TerminalError::NoStart { agent, why: failure.message }),
            Some(Ok(())) => Ok(TerminalView::of(&terminal, run, &agent)),
            None => Err(TerminalError::NotThere { run, agent, over: false, there: Vec::new() }),
        }
    }

    /// The path of the recording of an agent's terminal, whether the terminal still exists or not.
    #[must_use]
    pub fn recording(self, run: RunId, agent: &AgentName) -> PathBuf {
        recording_file(&self.engine.shared().settings.recordings(), run, agent)
    }
}
