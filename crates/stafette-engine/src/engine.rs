//! All runs of one project.

mod handles;
pub(crate) mod reads;
pub(crate) mod stopped;

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stafette_core::redact::Redactor;
use stafette_core::run::create::RunCreated;
use stafette_core::wire::schema::MAX_DEPTH;
use stafette_core::{Ignored, Input, Reply, Run, RunId, TurnKey};
use stafette_store::{AppendError, Batch, RunFilter, Store, Stored};
use tokio::sync::{mpsc, oneshot, watch};
use uuid::Uuid;

use self::stopped::DamagedRuns;
use crate::changes::Requests;
use crate::context::{EngineContext, Plugins};
use crate::dispatch::Sessions;
use crate::driver::RestoreError;
use crate::idempotency::Once;
use crate::locks::LockManager;
use crate::orders::Orders;
use crate::task::{First, Message, QUEUE, Shown, Task, end_survivors};
use crate::{Driver, EngineError, Source, clock, crash};

/// The levels of lists and objects in a value.
fn levels(value: &serde_json::Value) -> usize {
    use serde_json::Value::{Array, Object};
    match value {
        Array(items) => 1 + items.iter().map(levels).max().unwrap_or_default(),
        Object(fields) => 1 + fields.values().map(levels).max().unwrap_or_default(),
        _ => 0,
    }
}

/// Whether an input means that runs are to continue. To look, to pause and to cancel does not.
fn continues(input: &Input) -> bool {
    match input {
        Input::Answer { .. }
        | Input::Unpause { .. }
        | Input::Propose { .. }
        | Input::RaiseBudget(_)
        | Input::Take { .. }
        | Input::Finish { .. } => true,
        // An agent that has survived its daemon reports to whoever is there: that continues nothing.
        Input::Tell { .. }
        | Input::Tick
        | Input::ClockJumped { .. }
        | Input::Adopt { .. }
        | Input::Receipt { .. }
        | Input::Ask { .. }
        | Input::Settle { .. }
        | Input::Session { .. }
        | Input::Heartbeat { .. }
        | Input::Fail { .. }
        | Input::Postpone { .. }
        | Input::Printed { .. }
        | Input::Alert { .. }
        | Input::Send { .. }
        | Input::Deliver { .. }
        | Input::Pause { .. }
        | Input::Cancel { .. }
        | Input::Team(_) => false,
    }
}

/// How long everything may take to end when the engine stops.
const STOP: Duration = Duration::from_secs(8);

/// How long a task may be behind the store before the store is read instead.
const BEHIND: Duration = Duration::from_secs(1);

/// Where the work happens.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The folder that agents work in.
    pub project: PathBuf,
    /// The folder for what is kept beside the runs: changes, worktrees, the team's own program.
    pub state: PathBuf,
    /// A folder for notes about running turns.
    pub scratch: PathBuf,
    /// This program, to play scripts with.
    pub program: PathBuf,
    /// The socket that agents are given.
    pub socket: PathBuf,
    /// Sockets that no agent in a sandbox may reach, such as the one for people.
    pub closed: Vec<PathBuf>,
    /// Takes secrets out of everything that somebody says before it is stored.
    pub redactor: Redactor,
    /// Who we are, when we take a run over.
    pub node: String,
}

impl Settings {
    /// Where what terminals show is recorded.
    pub fn recordings(&self) -> PathBuf {
        self.scratch.join("recordings")
    }
}

/// All runs of one project. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    store: Arc<dyn Store>,
    context: EngineContext,
    runs: Arc<Mutex<HashMap<RunId, Handle>>>,
    damaged: DamagedRuns,
    source: Source,
    stopping: watch::Sender<bool>,
    /// Whether runs that were taken over continue.
    released: watch::Sender<bool>,
    alive: watch::Sender<()>,
    pub(crate) once: Once,
    requests: Requests,
}

#[derive(Clone, Debug)]
struct Handle {
    queue: mpsc::Sender<Message>,
    shown: watch::Receiver<Shown>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("settings", &self.context.settings).finish_non_exhaustive()
    }
}

impl Engine {
    /// Takes over every run that is not finished; they continue after [`Engine::release`].
    ///
    /// # Errors
    /// When the store cannot be read. A single run that cannot is left alone, and logged.
    pub async fn open(
        store: Arc<dyn Store>,
        settings: Settings,
        plugins: Plugins,
    ) -> Result<Engine, EngineError> {
        let head = store.head().await?;
        let desk = LockManager::open(store.clone()).await?;
        let engine = Engine {
            source: Source::new(store.clone(), head),
            store,
            context: EngineContext::new(settings, desk, plugins),
            runs: Arc::default(),
            damaged: DamagedRuns::default(),
            stopping: watch::Sender::new(false),
            released: watch::Sender::new(false),
            alive: watch::Sender::new(()),
            once: Once::default(),
            requests: Requests::default(),
        };
        let unfinished = engine.store.unfinished().await?;
        engine.locks().free_ended(&unfinished).await;
        let (timer, alive) = (engine.context.locks.clone(), engine.alive.subscribe());
        let stopping = engine.stopping.subscribe();
        tokio::spawn(async move {
            timer.keep_time(stopping).await;
            drop(alive);
        });
        let left = engine.context.agents.left_behind();
        for run in &unfinished {
            if let Err(error) = engine.adopt(*run, &left).await {
                tracing::error!(%run, error = &error as &dyn std::error::Error, "cannot be taken over");
                engine.damaged.note(*run, &error);
            }
        }
        engine.end_left(left.into_iter().filter(|turn| !unfinished.contains(&turn.run)).collect());
        let alive = engine.alive.subscribe();
        let clearing = engine.clone();
        tokio::spawn(async move {
            clearing.clear_away().await;
            drop(alive);
        });
        engine.changes().recover().await;
        Ok(engine)
    }

    /// The id in a [`RunCreated`] for which the engine chooses one.
    pub const NEW_RUN: RunId = RunId(Uuid::nil());

    /// Begins a run. One that exists already under an id of the caller's choice stays as it is, so
    /// that asking twice is harmless.
    ///
    /// # Errors
    /// When a hook refuses it, or the store does not take it.
    pub async fn start(&self, created: RunCreated) -> Result<RunId, EngineError> {
        let is_new = created.run == Self::NEW_RUN;
        let run = if is_new { RunId(Uuid::now_v7()) } else { created.run };
        let created = self.clean_start(RunCreated { run, ..created });
        let alerts = self.ask(&created).await?;
        match self.begin_allowed(created, alerts).await {
            Err(EngineError::Store { source: AppendError::Conflict { .. } })
                if !is_new && self.store.run(run).await?.is_some() =>
            {
                Ok(run)
            }
            begun => begun,
        }
    }

    /// Begins a run that the hooks have allowed. Every new run comes by here.
    pub(crate) async fn begin_allowed(
        &self,
        created: RunCreated,
        alerts: Vec<String>,
    ) -> Result<RunId, EngineError> {
        if created.inputs.values().map(levels).max().unwrap_or_default() >= MAX_DEPTH {
            let mistake =
                format!("/inputs: lists and objects are nested more than {MAX_DEPTH} deep");
            return Err(EngineError::Mistaken { mistakes: vec![mistake] });
        }
        let created = self.redacted(created);
        let run = created.run;
        self.release();
        let forecasts = self.forecasts(&created).await?;
        let created = RunCreated { forecasts: Some(forecasts), ..created };
        let now = clock::now();
        let (_, step) = Driver::begin(now, created);
        if let Some(refusal) = step.too_large() {
            // The run would have ended with its beginning.
            return Err(EngineError::Refused { refusal });
        }
        // What the hooks have to say is stored with the beginning: nobody says it again.
        let (driver, step) = Driver::begin_with(now, step, self.alerts(alerts));
        let position = self.store.append(step.batch()).await?;
        crash::point();
        self.bump(position);
        self.spawn(driver, First::Stored(Box::new(step)));
        Ok(run)
    }

    /// Gives an input to a run, and returns what became of it once that is stored.
    ///
    /// # Errors
    /// When there is no such run, it is over, or the store does not take it.
    pub async fn send(&self, run: RunId, input: Input) -> Result<Reply, EngineError> {
        let Some(handle) = self.handle(run) else {
            return match self.store.run(run).await? {
                Some(row) => Err(match self.damaged.of(run) {
                    Some(damage) if row.finished_at.is_none() => {
                        EngineError::Damaged { run, damage }
                    }
                    _ => EngineError::Over { run },
                }),
                None => Err(EngineError::NoRun { run: run.to_string() }),
            };
        };
        if continues(&input) {
            self.release();
        }
        let (reply, answer) = oneshot::channel();
        let gone = || match *self.stopping.borrow() {
            true => EngineError::Stopping,
            false => EngineError::Over { run },
        };
        handle.queue.send(Message::asked(input, reply)).await.map_err(|_| gone())?;
        match answer.await.map_err(|_| gone())?? {
            Reply::Ignored(Ignored::Ended) => Err(gone()),
            reply => Ok(reply),
        }
    }

    /// Whether work would be taken now: the store can be written, and the engine is open.
    ///
    /// # Errors
    /// When it would not.
    pub async fn ready(&self) -> Result<(), EngineError> {
        if *self.stopping.borrow() {
            return Err(EngineError::Stopping);
        }
        self.store.head().await?;
        let newest = self.store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await?;
        let Some(row) = newest.into_iter().next() else { return Ok(()) };
        // Nothing is added, but it goes all the way to the disk.
        let (run, expected_seq) = (row.run, row.seq);
        let nothing =
            Batch { run, expected_seq, entries: vec![], row, handoffs: vec![], snapshot: None };
        match self.store.append(nothing).await {
            // Someone else just wrote, so that it can be written.
            Ok(_) | Err(AppendError::Conflict { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Where the work happens.
    pub fn settings(&self) -> &Settings {
        &self.context.settings
    }

    /// What keeps the runs.
    pub fn store(&self) -> &Arc<dyn Store> {
        &self.store
    }

    /// Ends every session and every task, within 8 seconds. The runs continue when the next engine opens
    /// the store. What does not end in time is named in the log and left: nothing that is stored
    /// depends on it.
    pub async fn stop(&self) {
        self.stopping.send_replace(true);
        if tokio::time::timeout(STOP, self.alive.closed()).await.is_err() {
            let stuck: Vec<String> = self.lock().keys().map(ToString::to_string).collect();
            tracing::error!(runs = stuck.join(", "), "did not end in time; left as they are");
        }
    }

    /// Lets runs that were taken over continue. Until then they are there to be looked at: nothing is
    /// started, and nothing of them is recorded.
    pub fn release(&self) {
        self.released.send_replace(true);
    }

    /// Takes a run over, with the turns of all runs that an earlier process has left.
    async fn adopt(&self, run: RunId, left: &[TurnKey]) -> Result<(), EngineError> {
        let loaded = self.store.load(run).await?;
        let loaded = loaded.ok_or_else(|| EngineError::NoRun { run: run.to_string() })?;
        let driver = Driver::restore(&loaded)?;
        clock::at_least(driver.run().updated_at);
        for (turn, handoff) in driver.run().turns_out() {
            // Agents that have survived the last daemon may report before the run continues.
            if let Some((agent, _)) = driver.run().workflow.agent(&handoff.offer.to) {
                self.context.tokens.issue(turn, agent);
            }
        }
        let by = self.context.settings.node.clone();
        let left = left.iter().filter(|turn| turn.run == run).copied().collect();
        self.spawn(driver, First::Adopt { by, left });
        Ok(())
    }

    /// Ends what is left of runs that are over: their daemon was killed before it could.
    fn end_left(&self, turns: Vec<TurnKey>) {
        let (engine, alive) = (self.clone(), self.alive.subscribe());
        tokio::spawn(async move {
            engine.stopped().released().await;
            end_survivors(&*engine.context.agents, &turns).await;
            drop(alive);
        });
    }

    pub(crate) fn spawn(&self, driver: Driver, first: First) {
        let run = driver.run().id;
        self.learn_variables(&driver.run().workflow);
        let (queue, receiver) = mpsc::channel(QUEUE);
        // What is stored already is shown from the start.
        let (run_now, is_stopped) = match &first {
            First::Stored(step) => (step.run(), false),
            // Until it may continue.
            First::Adopt { .. } => (driver.run(), true),
        };
        let run_now = Arc::new(run_now.clone());
        let shown = Shown { run: run_now, trouble: None, undone: BTreeMap::new(), is_stopped };
        let (show, shown) = watch::channel(shown);
        let task = Task {
            driver,
            store: self.store.clone(),
            context: self.context.clone(),
            queue: receiver,
            back: queue.downgrade(),
            shown: show,
            source: self.source.clone(),
            sessions: Sessions::default(),
            orders: Orders::default(),
            engine: self.clone(),
            stopping: self.stopping.subscribe(),
            released: self.released.subscribe(),
            held: false,
            has_ended: false,
            distrust: None,
            skipped: clock::skipped(),
        };
        let own = queue.downgrade();
        self.lock().insert(run, Handle { queue, shown });
        let engine = self.clone();
        let alive = self.alive.subscribe();
        tokio::spawn(async move {
            task.live(first).await;
            engine.forget_task(run, &own);
            if !*engine.stopping.borrow() {
                engine.clear_away().await;
            }
            drop(alive);
        });
    }

    /// Forgets a task that has ended, unless the run has another one by now.
    fn forget_task(&self, run: RunId, task: &mpsc::WeakSender<Message>) {
        let mut runs = self.lock();
        let is_it =
            |handle: &Handle| task.upgrade().is_some_and(|queue| queue.same_channel(&handle.queue));
        if runs.get(&run).is_some_and(is_it) {
            runs.remove(&run);
        }
    }

    /// Clears away the worktrees of runs that are over, within their quota.
    async fn clear_away(&self) {
        let Ok(unfinished) = self.store.unfinished().await else { return };
        let is_living = |run| unfinished.contains(&run) || self.lock().contains_key(&run);
        self.context.places.clear(is_living).await;
    }

    pub(crate) fn bump(&self, position: u64) {
        self.source.tell(position);
    }

    pub(crate) fn requests(&self) -> &Requests {
        &self.requests
    }

    /// Keeps the engine from having stopped for as long as it is held.
    pub(crate) fn holds(&self) -> watch::Receiver<()> {
        self.alive.subscribe()
    }

    pub(crate) fn stopping(&self) -> watch::Receiver<bool> {
        self.stopping.subscribe()
    }

    /// Waits until a run is as wanted, has no task any more, or the time is up.
    pub(crate) async fn shows(
        &self,
        run: RunId,
        is_wanted: impl Fn(&Run) -> bool,
        within: Duration,
    ) {
        if let Some(mut handle) = self.handle(run) {
            let shows = handle.shown.wait_for(|shown| is_wanted(&shown.run));
            let _ = tokio::time::timeout(within, shows).await;
        }
    }

    pub(crate) fn head_changes(&self) -> watch::Receiver<u64> {
        self.source.head()
    }

    /// The runs that have a task, as they are now.
    pub(crate) fn living(&self) -> Vec<Arc<Run>> {
        self.lock().values().map(|handle| handle.shown.borrow().run.clone()).collect()
    }

    /// A run that has a task, as it was shown last.
    pub(crate) fn shown(&self, run: RunId) -> Option<Arc<Run>> {
        self.handle(run).map(|handle| handle.shown.borrow().run.clone())
    }

    pub(crate) fn shared(&self) -> &EngineContext {
        &self.context
    }

    /// What a run's task shows once it knows what is stored. An event is stored a moment before its
    /// task shows it, and that moment is waited for; a task that stays behind has been overtaken by
    /// another process, and the store knows better.
    async fn caught_up(&self, run: RunId, stored: u64) -> Option<Shown> {
        let mut handle = self.handle(run)?;
        let knows = handle.shown.wait_for(|shown| shown.run.seq >= stored);
        tokio::time::timeout(BEHIND, knows).await.ok()?.ok().map(|shown| shown.clone())
    }

    fn handle(&self, run: RunId) -> Option<Handle> {
        self.lock().get(&run).cloned()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<RunId, Handle>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn parse<T: serde::de::DeserializeOwned>(
    seq: u64,
    body: &str,
) -> Result<T, EngineError> {
    serde_json::from_str(body)
        .map_err(|source| EngineError::Restore { source: RestoreError::Unreadable { seq, source } })
}

pub(crate) fn event_json(stored: &Stored) -> Result<serde_json::Value, EngineError> {
    let mut value: serde_json::Value = parse(stored.entry.seq, &stored.entry.body)?;
    if let Some(fields) = value.as_object_mut() {
        fields.insert("seq".into(), stored.entry.seq.into());
        fields.insert("at".into(), stored.entry.at.rfc3339().into());
    }
    Ok(value)
}
