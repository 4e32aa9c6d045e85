//! The parts of the engine's interface, each for one subject.

use super::Engine;
use super::stopped::StoppedRuns;
use crate::changes::ChangeSets;
use crate::explain::Explanations;
use crate::external::ExternalTurns;
use crate::generations::Generations;
use crate::locks::Locks;
use crate::log::RunLog;
use crate::sessions::AgentSessions;
use crate::terminals::Terminals;

impl Engine {
    /// The generations of a team.
    #[must_use]
    pub fn generations(&self) -> Generations<'_> {
        Generations { engine: self }
    }

    /// Locks on files.
    #[must_use]
    pub fn locks(&self) -> Locks<'_> {
        Locks { engine: self }
    }

    /// The events and handoffs of runs, as any caller may see them.
    #[must_use]
    pub fn log(&self) -> RunLog<'_> {
        RunLog { engine: self }
    }

    /// Changes of the project's own files.
    #[must_use]
    pub fn changes(&self) -> ChangeSets<'_> {
        ChangeSets { engine: self }
    }

    /// Explanations of what happened.
    #[must_use]
    pub fn explain(&self) -> Explanations<'_> {
        Explanations { engine: self }
    }

    /// Turns that programs take which the daemon does not start.
    #[must_use]
    pub fn external(&self) -> ExternalTurns<'_> {
        ExternalTurns { engine: self }
    }

    /// Agents that report from their sessions.
    #[must_use]
    pub fn sessions(&self) -> AgentSessions<'_> {
        AgentSessions { engine: self }
    }

    /// Runs that do not continue until a person decides.
    #[must_use]
    pub fn stopped(&self) -> StoppedRuns<'_> {
        StoppedRuns { engine: self }
    }

    /// The terminals of agents.
    #[must_use]
    pub fn terminals(&self) -> Terminals<'_> {
        Terminals { engine: self }
    }
}
