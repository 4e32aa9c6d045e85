//! The life of one run: take inputs, decide, store, and have the decisions carried out.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use stafette_agents::Agents;
use stafette_core::redact::Redact;
use stafette_core::team::order::{Order, OrderKey};
use stafette_core::{Input, Millis, Recorded, Reply, Run, TurnKey};
use stafette_store::{AppendError, ReadError, Store};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;

use crate::backoff::Backoff;
use crate::confine;
use crate::context::EngineContext;
use crate::dispatch::{Sessions, name};
use crate::gate::{self, Gate};
use crate::orders::Orders;
use crate::{Driver, Engine, EngineError, Fresh, Source, Step, clock, crash};

/// The number of messages that may wait for a run before their senders have to wait.
pub(crate) const QUEUE: usize = 256;

/// The maximum number of inputs that are decided and stored in one step.
const AT_ONCE: usize = 64;

/// The longest pause before a failed store is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// An input for a run, with its sender.
#[derive(Debug)]
pub(crate) struct Message {
    input: Input,
    sender: Sender,
}

/// The receiver of a reply.
#[derive(Debug)]
enum Sender {
    /// A caller that handles a refusal.
    Asked(oneshot::Sender<Result<Reply, EngineError>>),
    /// An agent's runner; the input is kept until it is stored.
    Heard(Option<oneshot::Sender<()>>),
}

impl Message {
    pub(crate) fn asked(input: Input, reply: oneshot::Sender<Result<Reply, EngineError>>) -> Self {
        Message { input, sender: Sender::Asked(reply) }
    }

    pub(crate) fn heard(input: Input, stored: Option<oneshot::Sender<()>>) -> Self {
        Message { input, sender: Sender::Heard(stored) }
    }
}

impl Message {
    fn is_waited_for(&self) -> bool {
        matches!(self.sender, Sender::Asked(_) | Sender::Heard(Some(_)))
    }
}

/// The state that a run's task publishes.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) run: Arc<Run>,
    /// The reason why it cannot continue at the moment; `None` when it can.
    pub(crate) trouble: Option<String>,
    /// The orders that were tried and are not done yet, each with the error of the last attempt.
    pub(crate) undone: BTreeMap<OrderKey, String>,
    /// True if it waits to be continued, whatever the others do.
    pub(crate) is_stopped: bool,
}

impl Shown {
    /// The reason why the run does not go on: its own, or that of an order that is tried again.
    pub(crate) fn why_not(&self) -> Option<String> {
        self.trouble.clone().or_else(|| self.undone.values().next().cloned())
    }
}

/// The way a task begins.
#[derive(Debug)]
pub(crate) enum First {
    /// A new run, stored already.
    Stored(Box<Step>),
    /// A run of an earlier process, and the turns that it has left.
    Adopt { by: String, left: Vec<TurnKey> },
}

pub(crate) struct Task {
    pub(crate) driver: Driver,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) context: EngineContext,
    pub(crate) queue: mpsc::Receiver<Message>,
    pub(crate) back: mpsc::WeakSender<Message>,
    pub(crate) shown: watch::Sender<Shown>,
    pub(crate) source: Source,
    pub(crate) sessions: Sessions,
    pub(crate) orders: Orders,
    /// Carries out what is no turn.
    pub(crate) engine: Engine,
    pub(crate) stopping: watch::Receiver<bool>,
    pub(crate) released: watch::Receiver<bool>,
    /// True while it waits for the engine to let it continue.
    pub(crate) held: bool,
    /// True once the run and all of its sessions have ended.
    pub(crate) has_ended: bool,
    /// Why the gate does not trust what it would start; `None` when it does, or was not asked yet.
    pub(crate) distrust: Option<String>,
    /// The time skipped by the clock that the run has accounted for.
    pub(crate) skipped: Millis,
}

/// Returns once the engine lets its runs continue; with `again`, once it does so another time.
async fn released(released: &mut watch::Receiver<bool>, again: bool) {
    // An engine that is gone stops its tasks another way.
    let _ = match again {
        true => released.changed().await.map(drop),
        false => released.wait_for(|released| *released).await.map(drop),
    };
}

impl Task {
    /// Lives until the run has ended or the engine stops. A new run begins with a step that is
    /// stored already; one that is adopted records that first.
    pub(crate) async fn live(mut self, first: First) {
        if self.driver.run().team.phases.is_some() {
            // Loading the vocabulary takes a moment, which no run should wait for.
            drop(tokio::task::spawn_blocking(stafette_tokens::prepare));
        }
        match first {
            First::Stored(step) => self.carry_out(*step),
            First::Adopt { by, left } => {
                self.held = true;
                self.hold().await;
                if !*self.stopping.borrow() {
                    self.handle(vec![Message::heard(Input::Adopt { by }, None)]).await;
                }
                if *self.stopping.borrow() {
                    return end_survivors(&*self.context.agents, &left).await;
                }
                // Of a turn that is over by now, nothing may go on beside the next attempt.
                let run = self.driver.run();
                let is_over = |turn: &TurnKey| run.turns_out().all(|(out, _)| out != *turn);
                let over: Vec<TurnKey> = left.into_iter().filter(is_over).collect();
                end_survivors(&*self.context.agents, &over).await;
                self.held = false;
                let nothing = self.driver.decide(clock::now(), []);
                self.carry_out(nothing);
            }
        }
        while !self.driver.run().status().is_final() {
            let Some(messages) = self.next().await else { break };
            self.handle(messages).await;
        }
        self.wind_down().await;
        self.finish_orders().await;
    }

    /// Ends every session.
    async fn wind_down(&mut self) {
        self.context.tokens.forget(self.driver.run().id);
        let ending = std::mem::take(&mut self.sessions).end();
        self.handle_until(ending).await;
        let run = self.driver.run().id;
        self.context.terminals.end_run(run).await;
        if self.driver.run().status().is_final() {
            stafette_agents::a2a::leave(&self.context.settings.scratch, run).await;
            confine::leave(&self.context.settings, run);
        }
    }

    /// Carries out what is left to do for a run that has ended.
    async fn finish_orders(&mut self) {
        self.has_ended = self.driver.run().status().is_final();
        if self.has_ended && *self.stopping.borrow() {
            // Whoever waited for the run finds its outcome, although the engine stops.
            let mut orders = self.driver.run().orders();
            orders.retain(|order| *order == Order::Collect);
            self.orders.start(&self.engine, &self.shown, self.driver.run().id, orders);
        }
        'open: while self.has_ended && !self.driver.run().is_settled() && !*self.stopping.borrow() {
            self.held = false;
            let nothing = self.driver.decide(clock::now(), []);
            self.carry_out(nothing);
            while !self.driver.run().is_settled() {
                let Some(messages) = self.next().await else { break 'open };
                self.handle(messages).await;
            }
            // Until the last of them has ended, another one may be ordered.
            let ending = std::mem::take(&mut self.orders).end();
            self.handle_until(ending).await;
        }
        let ending = std::mem::take(&mut self.orders).end();
        self.handle_until(ending).await;
    }

    /// Handles inputs until something has ended: sessions and orders wait until their signals are
    /// stored. Nothing is started for these inputs.
    async fn handle_until(&mut self, ending: impl Future<Output = ()>) {
        self.held = true;
        let mut ending = std::pin::pin!(ending);
        loop {
            let mut messages = Vec::new();
            let count = tokio::select! {
                biased;
                () = &mut ending => return,
                count = self.queue.recv_many(&mut messages, AT_ONCE), if !crash::is_put_back() => count,
            };
            if count == 0 {
                // Nobody is left who could send something.
                return ending.await;
            }
            self.handle(messages).await;
        }
    }

    /// Waits until the engine lets its runs continue, and the gate trusts this one. Inputs that
    /// arrive meanwhile are recorded, and nothing is started for them.
    async fn hold(&mut self) {
        while !self.driver.run().is_settled() {
            let mut messages = Vec::new();
            let again = self.distrust.is_some();
            let count = tokio::select! {
                biased;
                _ = self.stopping.wait_for(|stop| *stop) => return,
                () = released(&mut self.released, again) => None,
                count = self.queue.recv_many(&mut messages, AT_ONCE) => Some(count),
            };
            match count {
                None if self.is_trusted() => break,
                None => self.show(None),
                Some(0) => break,
                Some(_) => self.handle(messages).await,
            }
        }
    }

    /// Asks the gate whether what the run would start is trusted, and notes why not.
    fn is_trusted(&mut self) -> bool {
        let (run, gate) = (self.driver.run(), self.context.gate.as_ref());
        self.distrust = gate.and_then(|gate| gate.trusts(&run.workflow).err());
        if let Some(why) = &self.distrust {
            tracing::warn!(run = %run.id, why, "it stays stopped");
        }
        self.distrust.is_none()
    }

    /// Waits for messages or for the deadline. `None` when it is time to stop.
    async fn next(&mut self) -> Option<Vec<Message>> {
        let deadline = self.driver.run().deadline();
        let mut messages = Vec::new();
        tokio::select! {
            biased;
            _ = self.stopping.wait_for(|stop| *stop) => None,
            count = self.queue.recv_many(&mut messages, AT_ONCE) => (count > 0).then_some(messages),
            () = clock::reach(deadline, Duration::from_secs(3600)) => {
                Some(vec![Message::heard(Input::Tick, None)])
            }
        }
    }

    /// Decides and stores. When the store fails, callers receive the error, and the signals of
    /// agents are kept and tried again until the store takes them.
    async fn handle(&mut self, mut messages: Vec<Message>) {
        let mut pause = Backoff::new(LONGEST_PAUSE);
        let mut fresh = false;
        self.clean(&mut messages);
        if let Some(gate) = self.context.gate.clone() {
            messages = self.looked_at(&*gate, messages).await;
            // The fields that it adds come from outside as well.
            self.clean(&mut messages);
        }
        let now = clock::now();
        if clock::skipped() > self.skipped {
            let by = Millis(clock::skipped().0 - self.skipped.0);
            self.skipped = clock::skipped();
            tracing::warn!(run = %self.driver.run().id, %by, at = %now.rfc3339(), "the clock went forward");
            messages.insert(0, Message::heard(Input::ClockJumped { by }, None));
        }
        loop {
            let inputs: Vec<Input> = messages.iter().map(|message| message.input.clone()).collect();
            let mut step = self.driver.decide(clock::now(), inputs);
            if step.is_empty() && !fresh && messages.iter().any(Message::is_waited_for) {
                // It means nothing to the run as this task knows it. Before the sender is told so,
                // check whether another process has moved the run on.
                if self.reload().await {
                    fresh = true;
                    continue;
                }
            }
            crash::point();
            let error = match self.store(&step).await {
                Ok(stored) => {
                    let events: Arc<[Recorded]> = std::mem::take(&mut step.events).into();
                    let replies = std::mem::take(&mut step.replies);
                    self.carry_out(step);
                    self.context.locks.mind(self.driver.run()).await;
                    self.announce(stored, &events);
                    return answer(messages, replies);
                }
                Err(error) => error,
            };
            tracing::warn!(run = %self.driver.run().id, %error, "not stored");
            messages = refuse(messages, &error);
            self.show(Some(error.to_string()));
            if !matches!(error, AppendError::Conflict { .. }) {
                // When asked to stop, leave what is not stored: the next daemon does it again, as
                // after a crash.
                if pause.stops(&mut self.stopping).await {
                    return;
                }
            }
            if !self.reload().await || messages.is_empty() {
                return;
            }
        }
    }

    /// Takes the secrets out of messages. Every input of an active run passes here.
    fn clean(&self, messages: &mut [Message]) {
        for message in messages {
            message.input.redact(&self.context.settings.redactor);
        }
    }

    /// Has the gate inspect each message, in the light of those before it.
    async fn looked_at(&self, gate: &dyn Gate, messages: Vec<Message>) -> Vec<Message> {
        let run = self.driver.run();
        if !gate.minds(run) {
            return messages;
        }
        let mut looked = Vec::with_capacity(messages.len());
        for Message { input, sender } in messages {
            match (gate::look(gate, run, input).await, sender) {
                (Ok(input), sender) => looked.push(Message { input, sender }),
                (Err(error), Sender::Asked(reply)) => drop(reply.send(Err(error))),
                (Err(error), Sender::Heard(_)) => {
                    tracing::warn!(run = %run.id, %error, "not taken")
                }
            }
        }
        looked
    }

    /// Returns the position of the last event, and the length of the text of all of them.
    async fn store(&self, step: &Step) -> Result<Option<(u64, usize)>, AppendError> {
        if step.is_empty() {
            return Ok(None);
        }
        let batch = step.batch();
        let bytes = batch.entries.iter().map(|entry| entry.body.len()).sum();
        let position = self.store.append(batch).await?;
        crash::point();
        Ok(Some((position, bytes)))
    }

    /// Wakes the followers. This comes last, so that a reader of an event finds its run in the
    /// state after it.
    fn announce(&self, stored: Option<(u64, usize)>, events: &Arc<[Recorded]>) {
        if let Some((position, bytes)) = stored {
            let (run, events) = (self.driver.run().id, Arc::clone(events));
            self.source.give(position, &Fresh { run, events, bytes });
        }
    }

    fn carry_out(&mut self, step: Step) {
        // What follows the end of a run waits until its sessions have ended.
        let is_ending = step.is_end() && !self.has_ended;
        let mut plan = match self.held || is_ending {
            true => self.driver.take(step),
            false => self.driver.commit(step),
        };
        for order in &plan.start {
            tracing::debug!(turn = %name(order), "starting");
        }
        crash::point();
        self.show(None);
        let run = self.driver.run();
        let orders = std::mem::take(&mut plan.orders);
        self.orders.start(&self.engine, &self.shown, run.id, orders);
        self.sessions.carry_out(plan, run, &self.context, &self.back, &self.shown);
    }

    fn show(&self, trouble: Option<String>) {
        let (run, is_stopped) = (Arc::new(self.driver.run().clone()), self.distrust.is_some());
        let trouble =
            trouble.or_else(|| self.distrust.as_ref().map(|why| format!("stopped: {why}")));
        self.shown.send_modify(|shown| {
            (shown.run, shown.trouble, shown.is_stopped) = (run, trouble, is_stopped);
        });
    }

    /// Loads the run as the store has it: after a failure that is the only truth. Turns in progress
    /// stay so, unless they are no longer wanted.
    async fn reload(&mut self) -> bool {
        let run = self.driver.run().id;
        match self.store.load(run).await {
            Ok(Some(loaded)) => match self.driver.reload(&loaded) {
                Ok(()) => true,
                Err(error) => {
                    tracing::error!(%run, %error, "cannot be read back");
                    false
                }
            },
            Ok(None) => false,
            Err(ReadError::Damaged { source }) => {
                tracing::error!(%run, damage = %source, "cannot be read back");
                self.show(Some(source.to_string()));
                false
            }
            // Not readable either: continue with the known state; the sequence number keeps it
            // safe.
            Err(_) => true,
        }
    }
}

/// Ends what earlier deliveries of these turns have left at work.
pub(crate) async fn end_survivors(agents: &dyn Agents, turns: &[TurnKey]) {
    let mut ending = JoinSet::new();
    for survivors in turns.iter().filter_map(|turn| agents.survivors(*turn)) {
        ending.spawn(survivors.end());
    }
    while ending.join_next().await.is_some() {}
}

/// Sends each sender the reply to its own input.
fn answer(messages: Vec<Message>, replies: Vec<Reply>) {
    for (message, reply) in messages.into_iter().zip(replies) {
        match message.sender {
            Sender::Asked(sender) => drop(sender.send(Ok(reply))),
            Sender::Heard(stored) => drop(stored.map(|stored| stored.send(()))),
        }
    }
}

/// Sends the error to callers, and returns the other messages.
fn refuse(messages: Vec<Message>, error: &AppendError) -> Vec<Message> {
    let retried = matches!(error, AppendError::Conflict { .. });
    let mut kept = Vec::new();
    for message in messages {
        match message.sender {
            Sender::Asked(reply) if !retried => {
                let error = EngineError::Store { source: error.clone() };
                drop(reply.send(Err(error)));
            }
            sender => kept.push(Message { input: message.input, sender }),
        }
    }
    kept
}
