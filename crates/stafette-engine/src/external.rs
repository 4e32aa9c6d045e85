//! External agents: programs that the daemon does not start. They connect through an interface,
//! take a turn and bring its result.
//!
//! The key of the turn is their proof. With a key that is no longer current nothing can be changed:
//! its result is kept as evidence. Nothing is done in a turn before it was taken: the hooks are asked
//! when it is, and until then another agent may take it.

mod repeat;

use std::time::Duration;

use stafette_core::handoff::State;
use stafette_core::run::propose::Refusal;
use stafette_core::run::tell::TurnReport;
use stafette_core::team::Said;
use stafette_core::team::council::vote::Vote;
use stafette_core::workflow::Runner;
use stafette_core::{
    AgentName, Failure, FailureKind, HandoffId, Input, Millis, Offer, Reply, Run, RunId, TurnKey,
    TurnOrder, TurnResult, Usage,
};

use crate::measure;
use crate::{Engine, EngineError};

/// A filter for the turns that an external agent would take.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// Only turns of this run; `None` for all runs.
    pub run: Option<RunId>,
    /// Only turns of this agent; `None` for all agents.
    pub agent: Option<AgentName>,
}

/// The consequences of a turn that ended.
#[derive(Clone, PartialEq, Debug)]
pub struct Finished {
    /// The handoffs and questions that its proposals became.
    pub admitted: Vec<HandoffId>,
    /// The proposals that a rule refused.
    pub refused: Vec<Refusal>,
}

/// The turns of external agents: `Engine::external`.
#[derive(Clone, Copy, Debug)]
pub struct ExternalTurns<'a> {
    pub(crate) engine: &'a Engine,
}

impl ExternalTurns<'_> {
    /// The turns that wait for an external agent now.
    fn free(self, wanted: &Wanted) -> Vec<TurnOrder> {
        let mut runs = self.engine.living();
        runs.retain(|run| wanted.run.is_none_or(|id| id == run.id));
        runs.sort_by_key(|run| run.id);
        let is_wanted =
            |order: &TurnOrder| wanted.agent.as_ref().is_none_or(|agent| *agent == order.agent);
        let free =
            |run: &Run, order: &TurnOrder| is_outside(run, order) && is_taken(run, order).is_err();
        let of = |run: &Run| {
            let orders = run.outbox().filter(|order| is_wanted(order) && free(run, order));
            orders.collect::<Vec<_>>()
        };
        runs.iter().flat_map(|run| of(run)).collect()
    }

    /// Returns the turns that wait for an external agent, those of the oldest run first, as soon as
    /// there is one, or an empty list after `within`.
    pub async fn offered(self, wanted: &Wanted, within: Duration) -> Vec<TurnOrder> {
        let mut head = self.engine.head_changes();
        let found = async {
            loop {
                // Marked before reading, so that a change in between wakes this task again.
                head.borrow_and_update();
                let offered = self.free(wanted);
                if !offered.is_empty() || head.changed().await.is_err() {
                    return offered;
                }
            }
        };
        tokio::time::timeout(within, found).await.unwrap_or_default()
    }

    /// Takes a turn for `by`, who promises to report at least once in each `lease`. Taking it again
    /// returns the same order.
    ///
    /// # Errors
    /// When there is no such turn, or another agent holds it.
    pub async fn accept(
        self,
        run: RunId,
        handoff: HandoffId,
        by: &str,
        lease: Option<Millis>,
    ) -> Result<TurnOrder, EngineError> {
        // The turn is held under the redacted name, which is the one that is stored.
        let by = &*self.engine.redacted(by.to_owned());
        let order = self.order(run, handoff).await?;
        let turn = order.key;
        self.may_begin(run, &order).await?;
        match self.engine.send(run, Input::Take { turn, by: by.to_owned(), lease }).await? {
            Reply::Taken { by: holder } if holder == by => Ok(order),
            Reply::Taken { by } => Err(EngineError::Taken { turn, by }),
            _ => Err(EngineError::Late { turn }),
        }
    }

    /// Asks the hooks before a turn is taken for the first time; one that they refuse has failed.
    async fn may_begin(self, run: RunId, order: &TurnOrder) -> Result<(), EngineError> {
        let Some(interceptor) = &self.engine.shared().interceptor else { return Ok(()) };
        let state = self.engine.state(run).await?;
        if is_taken(&state, order).is_ok() {
            return Ok(());
        }
        let folder = &self.engine.settings().project;
        let verdict = interceptor.before_turn(&state.workflow, order, folder).await;
        self.engine.alert(run, verdict.alerts).await;
        let Some(why) = verdict.refusal else { return Ok(()) };
        let why = self.engine.redacted(why);
        let failure = Failure::new(FailureKind::Fatal, format!("a hook said no: {why}"));
        let turn = order.key;
        self.engine.send(run, Input::Fail { turn, failure, usage: Usage::default() }).await?;
        Err(EngineError::Blocked { why })
    }

    /// Reports that the holder still works on the turn, and its consumption since the last report.
    ///
    /// # Errors
    /// When the caller no longer holds the turn.
    pub async fn report(
        self,
        turn: TurnKey,
        note: Option<String>,
        usage: Usage,
    ) -> Result<(), EngineError> {
        self.held(turn).await?;
        match self.engine.send(turn.run, Input::Heartbeat { turn, note }).await? {
            Reply::Late => Err(EngineError::Late { turn }),
            _ if usage == Usage::default() => Ok(()),
            _ => self.record(turn, TurnReport { usage, ..TurnReport::default() }).await,
        }
    }

    /// Proposes a handoff during the turn; it moves when the turn ends.
    ///
    /// # Errors
    /// When the caller no longer holds the turn, or a rule refuses the proposal.
    pub async fn propose(self, turn: TurnKey, offer: Offer) -> Result<(), EngineError> {
        self.held(turn).await?;
        let offers = vec![offer];
        self.record(turn, TurnReport { offers, ..TurnReport::default() }).await
    }

    /// Records the report of a turn in progress.
    ///
    /// # Errors
    /// When the turn has ended, or a rule refuses one of its handoffs.
    pub(crate) async fn record(self, turn: TurnKey, told: TurnReport) -> Result<(), EngineError> {
        let told = Box::new(told);
        match self.engine.send(turn.run, Input::Tell { turn, told }).await? {
            Reply::Reported { refused } => match refused.into_iter().next() {
                Some(refusal) => Err(EngineError::Refused { refusal }),
                None => Ok(()),
            },
            Reply::Unfit { complaints } => Err(EngineError::Mistaken { mistakes: complaints }),
            _ => Err(EngineError::Late { turn }),
        }
    }

    /// Records the vote of a council member; it counts when the turn ends.
    ///
    /// # Errors
    /// When the caller no longer holds the turn, or the turn is not one of a council.
    pub async fn vote(self, turn: TurnKey, vote: Vote) -> Result<(), EngineError> {
        self.held(turn).await?;
        self.may_vote(turn).await?;
        let said = Said { vote: Some(vote), ..Said::default() };
        self.record(turn, TurnReport { said, ..TurnReport::default() }).await
    }

    /// Checks that the turn is one of a council.
    pub(crate) async fn may_vote(self, turn: TurnKey) -> Result<(), EngineError> {
        let state = self.engine.state(turn.run).await?;
        let sits = state
            .handoff(turn.handoff)
            .is_some_and(|h| stafette_core::team::council::is_turn(&h.constraints));
        let mistakes = vec!["SIGNAL: no council hears this turn".to_owned()];
        if sits { Ok(()) } else { Err(EngineError::Mistaken { mistakes }) }
    }

    /// Ends a turn with its result, and returns the handoffs that its proposals became. The same
    /// result again changes nothing and returns the same.
    ///
    /// # Errors
    /// When the caller does not hold the turn: a result that comes after the end of the turn is kept
    /// as evidence.
    pub async fn complete(
        self,
        turn: TurnKey,
        result: TurnResult,
    ) -> Result<Finished, EngineError> {
        let state = self.engine.state(turn.run).await?;
        self.hold(&state, turn)?;
        // It is measured in the form in which it is stored.
        let mut result = self.engine.redacted(result);
        match state.order(turn) {
            Some(order) => is_taken(&state, &order)?,
            None => {
                let result = Box::new(result.clone());
                if let Some(first) = self.repeated(Input::Finish { turn, result }, turn).await? {
                    return Ok(first);
                }
            }
        }
        let checked = state.check_result(turn, &result);
        checked.map_err(|mistakes| EngineError::Mistaken { mistakes })?;
        if result.offers.is_empty() {
            measure::check(&state, turn, &result.response)?;
        }
        let offered_to = state.handoff(turn.handoff).map(|handoff| &handoff.offer.to);
        let agent = offered_to.and_then(|party| state.workflow.agent(party)).map(|(name, _)| name);
        let loops = &state.workflow.loops;
        if result.fingerprint.is_none()
            && agent.is_some_and(|agent| loops.iter().any(|l| l.between.contains(agent)))
        {
            result.fingerprint =
                stafette_workspace::fingerprint(&self.engine.settings().project).await;
        }
        let input = Input::Finish { turn, result: Box::new(result) };
        match self.engine.send(turn.run, input.clone()).await {
            Ok(Reply::Finished { admitted, refused }) => Ok(Finished { admitted, refused }),
            Ok(_) | Err(EngineError::Over { .. }) => match self.repeated(input, turn).await? {
                Some(first) => Ok(first),
                None => Err(self.ended(turn).await?),
            },
            Err(error) => Err(error),
        }
    }

    /// Rejects a turn, taken or not: it cannot be done, and another attempt would end the same way.
    /// The same rejection again changes nothing.
    ///
    /// # Errors
    /// When the turn has ended otherwise.
    pub async fn reject(self, turn: TurnKey, why: String) -> Result<(), EngineError> {
        let failure = Failure::new(FailureKind::Fatal, self.engine.redacted(why));
        let input = Input::Fail { turn, failure, usage: Usage::default() };
        let sent = match self.current(turn).await {
            Ok(_) => self.engine.send(turn.run, input.clone()).await,
            Err(EngineError::Late { .. }) => Ok(Reply::Late),
            Err(error) => return Err(error),
        };
        match sent {
            Ok(Reply::Late) | Err(EngineError::Over { .. }) => {
                match self.repeated(input, turn).await? {
                    Some(_) => Ok(()),
                    None => Err(self.ended(turn).await?),
                }
            }
            other => other.map(drop),
        }
    }

    /// Reads a document of any dialect that `agent` hands in: `HANDOFF` for a proposal, `RESULT`
    /// for an answer, `REPORT` for consumption.
    ///
    /// # Errors
    /// Every mistake in it.
    pub fn understand(
        agent: &AgentName,
        kind: &str,
        document: serde_json::Value,
    ) -> Result<TurnReport, EngineError> {
        let telling = stafette_agents::tell::read(agent, kind, document);
        let telling = telling.map_err(|mistakes| EngineError::Mistaken { mistakes })?;
        Ok(telling.told)
    }

    /// The turn that an external agent has taken, in this run or in the only one where it has one.
    ///
    /// # Errors
    /// When it has taken none, or one in several runs.
    pub async fn turn_of(
        self,
        run: Option<RunId>,
        agent: &AgentName,
    ) -> Result<TurnKey, EngineError> {
        let runs = match run {
            Some(run) => vec![self.engine.state(run).await?],
            None => self.engine.living(),
        };
        let turns = runs.iter().flat_map(|run| {
            let orders = run.outbox().filter(|order| order.agent == *agent);
            let outside = orders.filter(|order| is_outside(run, order));
            outside.map(|order| (order.key, is_taken(run, &order).is_ok())).collect::<Vec<_>>()
        });
        let turns: Vec<(TurnKey, bool)> = turns.collect();
        let taken: Vec<TurnKey> =
            turns.iter().filter(|(_, taken)| *taken).map(|(turn, _)| *turn).collect();
        match (taken.as_slice(), turns.first()) {
            ([turn], _) => Ok(*turn),
            ([], Some((turn, _))) => Err(EngineError::NotTaken { turn: *turn }),
            ([], None) => Err(EngineError::NoTurn { agent: agent.clone() }),
            (several, _) => {
                let found = several.iter().map(|turn| turn.run).collect();
                Err(EngineError::Ambiguous { text: agent.to_string(), found })
            }
        }
    }

    /// The turn in progress of a handoff to an external agent.
    async fn order(self, run: RunId, handoff: HandoffId) -> Result<TurnOrder, EngineError> {
        let state = self.engine.state(run).await?;
        let out = state.handoff(handoff).and_then(|handoff| state.order(handoff.key(run)));
        let order = out.ok_or(EngineError::NothingOut { run })?;
        match is_outside(&state, &order) {
            true => Ok(order),
            false => Err(EngineError::StartedHere { agent: order.agent }),
        }
    }

    /// Checks that a turn of an external agent was taken and is still in progress.
    async fn held(self, turn: TurnKey) -> Result<(), EngineError> {
        let order = self.current(turn).await?;
        is_taken(&*self.engine.state(turn.run).await?, &order)
    }

    /// The order of a turn of an external agent that has not ended.
    async fn current(self, turn: TurnKey) -> Result<TurnOrder, EngineError> {
        match self.order(turn.run, turn.handoff).await {
            Ok(order) if order.key == turn => Ok(order),
            Ok(_) | Err(EngineError::NothingOut { .. }) => Err(EngineError::Late { turn }),
            Err(error) => Err(error),
        }
    }

    /// A result may come late, but only from an external agent.
    fn hold(self, run: &Run, turn: TurnKey) -> Result<(), EngineError> {
        let handoff = run.handoff(turn.handoff);
        let agent = handoff.and_then(|handoff| run.workflow.agent(&handoff.offer.to));
        match agent {
            Some((name, agent)) if agent.runner != Runner::External => {
                Err(EngineError::StartedHere { agent: name.clone() })
            }
            _ => Ok(()),
        }
    }
}

fn is_outside(run: &Run, order: &TurnOrder) -> bool {
    let agent = run.workflow.agents.get(&order.agent);
    agent.is_some_and(|agent| agent.runner == Runner::External)
}

/// Checks that a turn in progress was taken.
fn is_taken(run: &Run, order: &TurnOrder) -> Result<(), EngineError> {
    let turn = order.key;
    let is_offered =
        run.handoff(turn.handoff).is_some_and(|handoff| matches!(handoff.state, State::Ordered(_)));
    if is_offered { Err(EngineError::NotTaken { turn }) } else { Ok(()) }
}
