//! Carries out the orders of a run that are not turns. The run's task starts them; each is tried
//! until its end is recorded, and the next process starts again whatever is still open.

use std::time::Duration;

use stafette_agents::GRACE;
use stafette_core::change::Change;
use stafette_core::team::change::{ChangeWork, Heard};
use stafette_core::team::generation::successor;
use stafette_core::team::order::{Leftover, Order, OrderKey};
use stafette_core::{Input, Reply, Run, RunId, TeamInput, Time};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::backoff::Backoff;
use crate::generations::{counts, imported, landing};
use crate::task::Shown;
use crate::{Engine, EngineError, clock, crash};

/// The longest pause before an order is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The time that orders have to end when the engine stops.
const PATIENCE: Duration = GRACE.saturating_mul(2);

/// The longest time until a clock is looked at again: clocks are set, machines sleep.
const LONGEST_WAIT: Duration = Duration::from_secs(3600);

/// The orders of one run that are being carried out.
#[derive(Debug, Default)]
pub(crate) struct Orders(JoinSet<()>);

impl Orders {
    /// Starts these orders, each on its own.
    pub(crate) fn start(
        &mut self,
        engine: &Engine,
        shown: &watch::Sender<Shown>,
        run: RunId,
        orders: Vec<Order>,
    ) {
        while self.0.try_join_next().is_some() {}
        for order in orders {
            self.0.spawn(engine.clone().carry_out(shown.clone(), run, order));
        }
    }

    /// Waits for the orders that are being carried out. Those that do not end in time are given up,
    /// and the next process finds them.
    pub(crate) async fn end(mut self) {
        let ended = async { while self.0.join_next().await.is_some() {} };
        if tokio::time::timeout(PATIENCE, ended).await.is_err() {
            tracing::warn!(
                orders = self.0.len(),
                "orders did not end in time; the next start finds them"
            );
        }
    }
}

impl Engine {
    /// Tries until it is done; meanwhile the run shows why it is not.
    async fn carry_out(self, shown: watch::Sender<Shown>, run: RunId, order: Order) {
        let (key, mut pause) = (order.key(), Backoff::new(LONGEST_PAUSE));
        loop {
            crash::point();
            let done = match &order {
                Order::Note { change, upto } => {
                    self.changes().write_down(run, *change, *upto).await
                }
                Order::Change { key, work, revision, by } => {
                    self.changes().work_on(*key, *work, *revision, by).await
                }
                Order::Forward { change, forward } => {
                    self.changes().forward(run, *change, forward).await
                }
                Order::Import => self.import_changes(run).await,
                Order::Collect => self.collect(run).await,
                Order::HandOver => self.hand_over(run).await,
                Order::Begin { not_before } => self.begin_next(run, *not_before).await,
            };
            let Err(error) = done else { break };
            tracing::warn!(%run, ?key, %error, "an order is not carried out yet");
            let why = self.redacted(format!("{} is tried again: {error}", words(&order)));
            shown.send_modify(|shown| drop(shown.undone.insert(key, why)));
            if pause.stops(&mut self.stopping()).await {
                return;
            }
        }
        shown.send_if_modified(|shown| shown.undone.remove(&key).is_some());
    }

    /// Returns once the engine stops and its orders have had their time.
    pub(crate) async fn gives_up(&self) {
        let _ = self.stopping().wait_for(|stop| *stop).await;
        tokio::time::sleep(PATIENCE).await;
    }

    /// Records that an order is done.
    pub(crate) async fn order_done(&self, run: RunId, order: OrderKey) -> Result<(), EngineError> {
        self.order_ended(run, order, None, None).await
    }

    /// Records that an order is done, with the receiver of the comment that it forwarded, or with what
    /// it could not collect.
    pub(crate) async fn order_ended(
        &self,
        run: RunId,
        order: OrderKey,
        heard: Option<Heard>,
        left: Option<Leftover>,
    ) -> Result<(), EngineError> {
        crash::point();
        let left = left.map(Box::new);
        self.record(run, Input::Team(TeamInput::OrderDone { order, heard, left })).await.map(drop)
    }

    /// Proposes the outcome of a run's worktrees.
    async fn collect(&self, run: RunId) -> Result<(), EngineError> {
        let state = self.state(run).await?;
        let left = self.shared().places.leave(&state).await;
        let left =
            left.map_err(|source| EngineError::NotCollected { run, source: Box::new(source) })?;
        crash::point();
        // It may have been kept by a process that could not record it any more.
        let is_outcome = |it: &Change| it.author.run == Some(run) && it.is_outcome();
        for change in self.changes().list().await?.into_iter().filter(is_outcome) {
            let (turn, set) = (None, Box::new(change.proposed()));
            self.record(run, Input::Team(TeamInput::ProposeChange { turn, set })).await?;
        }
        self.order_ended(run, OrderKey::Collect, None, left).await
    }

    /// Proposes what another orchestrator left.
    async fn import_changes(&self, run: RunId) -> Result<(), EngineError> {
        imported::propose(self, &*self.state(run).await?).await?;
        self.order_done(run, OrderKey::Import).await
    }

    /// Decides, for a run that has ended, what follows it.
    async fn hand_over(&self, run: RunId) -> Result<(), EngineError> {
        let state = self.state(run).await?;
        let changes = counts(&state, &self.generations().changes_of(&state).await?);
        crash::point();
        let reply = self.record(run, Input::Team(TeamInput::HandOver { changes })).await?;
        if reply != Reply::Recorded {
            tracing::debug!(%run, ?reply, "handed over before");
        }
        Ok(())
    }

    /// Begins the run that follows: applies what is ready, and then begins it once. A person may
    /// cancel it until then.
    async fn begin_next(&self, run: RunId, not_before: Time) -> Result<(), EngineError> {
        while clock::now() < not_before {
            let mut stopping = self.stopping();
            tokio::select! {
                biased;
                _ = stopping.wait_for(|stop| *stop) => return Err(EngineError::Stopping),
                () = self.shows(run, |run| !begins_next(run), LONGEST_WAIT) => {}
                () = clock::reach(Some(not_before), LONGEST_WAIT) => {}
            }
            match self.shown(run) {
                Some(shown) if !begins_next(&shown) => return Ok(()),
                Some(_) => {}
                None => return Err(EngineError::Over { run }),
            }
        }
        let state = self.state(run).await?;
        if !begins_next(&state) {
            return Ok(());
        }
        self.trusts(&state.workflow).map_err(|why| EngineError::Objected { why })?;
        // Repeated after a crash: changes that are applied by then are no longer ready.
        landing::land(self, &state).await?;
        // Notes that arrive now are for the run that begins, or too late for it.
        let turn = self.once.generation().await;
        let state = self.state(run).await?;
        if !begins_next(&state) {
            return Ok(());
        }
        if let Some(created) = successor(&state)
            && self.store().run(created.run).await?.is_none()
        {
            crash::point();
            match self.start(created).await {
                Err(error @ (EngineError::Blocked { .. } | EngineError::Refused { .. })) => {
                    tracing::warn!(%run, %error, "the run after it does not begin");
                }
                Err(error) => return Err(error),
                Ok(next) if !begins_next(&*self.state(run).await?) => {
                    // It was cancelled while it was being begun.
                    let (by, why) = (String::new(), format!("what follows {run} was cancelled"));
                    return self.send(next, Input::Cancel { by, why }).await.map(drop);
                }
                Ok(_) => {}
            }
        }
        drop(turn);
        self.order_done(run, OrderKey::Begin).await
    }
}

/// The work of an order, for people.
fn words(order: &Order) -> String {
    match order {
        Order::Note { change, .. } => format!("writing down what was said about {change}"),
        Order::Change { key, work: ChangeWork::Apply, .. } => format!("applying {}", key.change),
        Order::Change { key, work: ChangeWork::Renew, .. } => {
            format!("renewing the program with {}", key.change)
        }
        Order::Change { key, .. } => format!("undoing {}", key.change),
        Order::Forward { change, .. } => format!("forwarding a comment on {change}"),
        Order::Import => "proposing what another orchestrator left".to_owned(),
        Order::Collect => "collecting the outcome".to_owned(),
        Order::HandOver => "handing over".to_owned(),
        Order::Begin { .. } => "beginning the next generation".to_owned(),
    }
}

/// True if the run that follows is still to begin.
pub(crate) fn begins_next(run: &Run) -> bool {
    run.orders().iter().any(|order| order.key() == OrderKey::Begin)
}
