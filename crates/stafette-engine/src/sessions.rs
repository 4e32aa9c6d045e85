//! Agents that Stafette started, known by the token of their turn or by their process.

use serde::Deserialize;
use stafette_agents::{Signal, tell};
use stafette_core::workflow::Runner;
use stafette_core::{AgentName, Input, Party, RunId, TurnKey};

use crate::{Caller, Engine, EngineError, measure};

/// The sessions of agents: `Engine::sessions`.
#[derive(Clone, Copy, Debug)]
pub struct AgentSessions<'a> {
    pub(crate) engine: &'a Engine,
}

impl AgentSessions<'_> {
    /// Returns the agent that a process belongs to: to its turn, to its terminal, or, when it left
    /// both, by what it and the processes that started it were given.
    #[must_use]
    pub fn of_process(self, process: i32) -> Option<Caller> {
        if !cfg!(target_os = "linux") {
            return None;
        }
        let agents = &self.engine.shared().agents;
        let at_work = self.engine.living().iter().find_map(|run| {
            let mut orders = run.outbox();
            let order = orders.find(|order| agents.belongs(process, order.key, &order.agent))?;
            let handoff = Some(order.key.handoff);
            Some(Caller::Agent { run: order.key.run, agent: order.agent.clone(), handoff })
        });
        let in_terminal = || {
            // A process in an agent's terminal belongs to that agent between its turns as well.
            let mut all = self.engine.shared().terminals.list().into_iter();
            let own = all.find(|it| it.pid.is_some_and(|pid| tell::is_kin(process, pid)))?;
            Some(Caller::Agent { run: own.run, agent: own.agent, handoff: None })
        };
        let marked = || {
            let (turn, agent) = tell::marked(process, &self.engine.settings().socket)?;
            Some(Caller::Agent { run: turn.run, agent, handoff: None })
        };
        // It may be of another project, hide its variables, or have outlived its turn.
        let unknown = || tell::is_agents(process).then_some(Caller::Nobody);
        at_work.or_else(in_terminal).or_else(marked).or_else(unknown)
    }

    /// Returns the agent whose turn has this token, for a process of its session.
    ///
    /// # Errors
    /// When the token is unknown, or the process is of another session.
    pub fn of_token(self, token: &str, process: Option<i32>) -> Result<Caller, EngineError> {
        let (first, agent) =
            self.engine.shared().tokens.owner(token).ok_or(EngineError::NotYours)?;
        let run = first.run;
        let living = self.engine.living();
        let orders = living.iter().filter(|living| living.id == run).flat_map(|run| run.outbox());
        let own = orders.filter(|order| order.agent == agent).map(|order| order.key);
        let turns: Vec<_> = own.collect();
        // A terminal keeps the token of its first turn for all that follow.
        let turn = turns.iter().find(|turn| **turn == first).or(turns.first()).copied();
        let kin = |pid| self.engine.shared().agents.belongs(pid, turn.unwrap_or(first), &agent);
        match process.is_some_and(kin) {
            true => Ok(Caller::Agent { run, agent, handoff: turn.map(|turn| turn.handoff) }),
            false => Err(EngineError::NotYours),
        }
    }

    /// The agent that a token belongs to, and its turn in progress. The caller must be a process of
    /// its session.
    ///
    /// # Errors
    /// When the token is unknown, or the agent has no turn.
    pub async fn turn(
        self,
        token: &str,
        caller: Option<i32>,
    ) -> Result<(RunId, AgentName, TurnKey), EngineError> {
        let (first, agent) =
            self.engine.shared().tokens.owner(token).ok_or(EngineError::NotYours)?;
        let run = first.run;
        let state = self.engine.state(run).await?;
        // A terminal keeps the token of its first turn for all that follow.
        let stays = state.workflow.agents.get(&agent).is_some_and(|it| it.runner == Runner::Pty);
        let later = || state.outbox().find(|order| stays && order.agent == agent);
        let order = state.order(first).or_else(later);
        let Some(turn) = order.map(|order| order.key) else {
            return Err(EngineError::NoTurn { agent });
        };
        let kin = |pid| self.engine.shared().agents.belongs(pid, turn, &agent);
        if !caller.is_some_and(kin) {
            return Err(EngineError::NotYours);
        }
        Ok((run, agent, turn))
    }

    /// An agent tells something by its own channel: its session's token, from a process of its
    /// own. Returns once it is stored.
    ///
    /// # Errors
    /// When it is not the agent, cannot be understood or is refused; the agent may think again.
    pub async fn tell(
        self,
        token: &str,
        caller: Option<i32>,
        kind: &str,
        payload: serde_json::Value,
    ) -> Result<RunId, EngineError> {
        let (run, agent, turn) = self.turn(token, caller).await?;
        self.engine.shared().tokens.beat(turn);
        if kind == "MESSAGE" {
            let message: PeerMessage = serde_json::from_value(payload)
                .map_err(|error| EngineError::Mistaken { mistakes: vec![error.to_string()] })?;
            let (PeerMessage { to, text }, from) = (message, Party::from(&agent));
            self.engine.messages().send(run, &to, from, String::new(), text).await?;
            return Ok(run);
        }
        let mut telling = tell::read(&agent, kind, payload)
            .map_err(|mistakes| EngineError::Mistaken { mistakes })?;
        // It is measured as it will be kept.
        telling.told = self.engine.redacted(telling.told);
        match telling.signal {
            Some(Signal::Change(proposal)) => {
                self.engine.changes().propose(turn, *proposal).await?;
            }
            signal => {
                if let Some(input) = signal.and_then(|signal| heard(turn, signal)) {
                    self.engine.send(run, input).await?;
                }
            }
        }
        if let Some(response) = &telling.told.response {
            measure::check(&*self.engine.state(run).await?, turn, response)?;
        }
        if telling.told.said.vote.is_some() {
            self.engine.external().may_vote(turn).await?;
        }
        let told = telling.told;
        let ends = !told.offers.is_empty() || told.response.is_some();
        self.engine.external().record(turn, told).await?;
        if ends {
            self.engine.shared().terminals.told(run, &agent);
        }
        Ok(run)
    }
}

/// A message of an agent to another one of its run.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PeerMessage {
    to: String,
    text: String,
}

/// What a signal that was told by itself means to the run.
fn heard(turn: TurnKey, signal: Signal) -> Option<Input> {
    match signal {
        Signal::Alert { code, message } => Some(Input::Alert { code, message }),
        Signal::Alive { note } => Some(Input::Heartbeat { turn, note }),
        _ => None,
    }
}
