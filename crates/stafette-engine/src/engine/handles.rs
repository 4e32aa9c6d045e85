//! The parts of the engine's interface, each for one subject.

use super::Engine;
use crate::{
    AgentSessions, ChangeSets, Explanations, ExternalTurns, Generations, Locks, Messages, RunLog,
    StoppedRuns, Terminals,
};

impl Engine {
    /// Changes of the project's own files.
    pub fn changes(&self) -> ChangeSets<'_> {
        ChangeSets { engine: self }
    }

    /// Explanations of what happened.
    pub fn explain(&self) -> Explanations<'_> {
        Explanations { engine: self }
    }

    /// Turns that programs take which the daemon does not start.
    pub fn external(&self) -> ExternalTurns<'_> {
        ExternalTurns { engine: self }
    }

    /// The generations of a team.
    pub fn generations(&self) -> Generations<'_> {
        Generations { engine: self }
    }

    /// Locks on files.
    pub fn locks(&self) -> Locks<'_> {
        Locks { engine: self }
    }

    /// The events and handoffs of runs, as any caller may see them.
    pub fn log(&self) -> RunLog<'_> {
        RunLog { engine: self }
    }

    /// Messages to agents.
    pub fn messages(&self) -> Messages<'_> {
        Messages { engine: self }
    }

    /// Agents that report from their sessions.
    pub fn sessions(&self) -> AgentSessions<'_> {
        AgentSessions { engine: self }
    }

    /// Runs that do not continue until a person decides.
    pub fn stopped(&self) -> StoppedRuns<'_> {
        StoppedRuns { engine: self }
    }

    /// The terminals of agents.
    pub fn terminals(&self) -> Terminals<'_> {
        Terminals { engine: self }
    }
}
