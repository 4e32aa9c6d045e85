//! Hooks after the fact: they follow the feed from their last position.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_core::{RunId, Workflow};
use stafette_engine::{ALERT, Engine, Stored};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::command::{self, Outcome};
use crate::memory::Memory;
use crate::payload::{self, Context};

/// Maximum number of hooks that run in parallel.
const AT_ONCE: usize = 4;

/// Pause before a store that cannot be read is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// Number of runs whose workflows are cached.
const REMEMBERED: usize = 256;

/// Progress of the hooks.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
struct Progress {
    /// Position up to which everything is done; `None` at first.
    cursor: Option<u64>,
    /// Positions beyond the cursor that are done.
    done: BTreeSet<u64>,
}

/// Cached data of a run.
#[derive(Debug)]
struct Known {
    workflow: Arc<Workflow>,
    request: String,
}

/// Runs hooks for stored events.
#[derive(Debug)]
pub struct Follower {
    engine: Engine,
    project: PathBuf,
    progress: Arc<Mutex<Memory<Progress>>>,
    known: HashMap<RunId, Arc<Known>>,
}

impl Follower {
    /// Follows `engine` from the last position, or from now on; `memory` is the file that keeps the
    /// position.
    pub async fn open(engine: Engine, project: PathBuf, memory: PathBuf) -> Self {
        let progress = Arc::new(Mutex::new(Memory::open(memory)));
        let follower = Follower { engine, project, progress, known: HashMap::new() };
        // Saved now and not in `live`, so that events in between are reported, too.
        let _ = follower.begin().await;
        follower
    }

    /// Follows until `stop` is set or the engine is gone. Waits for a hook that is running; the
    /// others run when the next follower starts.
    pub async fn live(mut self, mut stop: watch::Receiver<bool>) {
        let Some(cursor) = self.begin().await else { return };
        let mut feed = self.engine.feed(cursor);
        loop {
            let page = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return lock(&self.progress).save(),
                page = feed.next() => page,
            };
            match page {
                Ok(Some(mut page)) => match self.engine.log().veil(&mut page).await {
                    Ok(_) => self.tell(&page, &stop).await,
                    Err(error) => {
                        tracing::warn!(%error, "hooks cannot follow a run");
                        feed = self.engine.feed(self.begin().await.unwrap_or(cursor));
                        tokio::time::sleep(PAUSE).await;
                    }
                },
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "hooks cannot follow the store");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Returns the start position: the last one, or the present.
    async fn begin(&self) -> Option<u64> {
        let head = self.engine.store().head().await.ok()?;
        let mut memory = lock(&self.progress);
        // A replaced store starts anew.
        let cursor = memory.value.cursor.filter(|cursor| *cursor <= head).unwrap_or(head);
        if memory.value.cursor != Some(cursor) {
            memory.value = Progress { cursor: Some(cursor), done: BTreeSet::new() };
            memory.save();
        }
        Some(cursor)
    }

    /// Runs are handled in parallel, the events of each in order.
    async fn tell(&mut self, page: &[Stored], stop: &watch::Receiver<bool>) {
        let mut runs: BTreeMap<RunId, Vec<Call>> = BTreeMap::new();
        for stored in page {
            if lock(&self.progress).value.done.contains(&stored.position) {
                continue;
            }
            if let Some(call) = self.call(stored).await {
                runs.entry(stored.run).or_default().push(call);
            }
        }
        let room = Arc::new(Semaphore::new(AT_ONCE));
        let mut tasks = JoinSet::new();
        for calls in runs.into_values() {
            let (room, stop) = (room.clone(), stop.clone());
            let (engine, progress) = (self.engine.clone(), self.progress.clone());
            let project = self.project.clone();
            tasks.spawn(async move {
                for call in calls {
                    let Ok(_place) = room.acquire().await else { return };
                    if *stop.borrow() {
                        return;
                    }
                    call.make(&engine, &project).await;
                    let mut memory = lock(&progress);
                    memory.value.done.insert(call.position);
                    memory.save();
                }
            });
        }
        while tasks.join_next().await.is_some() {}
        if let Some(last) = page.last().filter(|_| !*stop.borrow()) {
            let mut memory = lock(&self.progress);
            let quiet = memory.value.done.is_empty();
            memory.value = Progress { cursor: Some(last.position), done: BTreeSet::new() };
            // No hook was started: reading the event again after a crash does no harm.
            if !quiet {
                memory.save();
            }
        }
    }

    /// Returns the hooks for an event, if any.
    async fn call(&mut self, stored: &Stored) -> Option<Call> {
        let known = self.known(stored.run).await?;
        let workflow = &known.workflow;
        if workflow.hooks.iter().all(|hook| hook.is_before()) {
            return None;
        }
        let name = stored.entry.name.as_str();
        let data: Value = serde_json::from_str(&stored.entry.body).ok()?;
        // Errors of hooks are not sent to hooks: that would never end.
        if name == "alert_raised" && data["code"] == ALERT {
            return None;
        }
        let question = payload::is_question(name, &data);
        let hears = |hook: &&_| stafette_core::workflow::hooks::Hook::hears(hook, name, question);
        if !workflow.hooks.iter().any(|hook| hears(&hook)) {
            return None;
        }
        let agent = self.agent(stored).await;
        let hooks: Vec<usize> = (0..workflow.hooks.len())
            .filter(|index| {
                let hook = &workflow.hooks[*index];
                hears(&hook) && hook.concerns(agent.as_deref())
            })
            .collect();
        let request = known.request.clone();
        let context = Context { workflow: workflow.workflow.name.clone(), request, agent };
        let input = payload::event(stored, &data, &context);
        let (run, position, workflow) = (stored.run, stored.position, workflow.clone());
        (!hooks.is_empty()).then_some(Call { run, position, workflow, hooks, input })
    }

    async fn known(&mut self, run: RunId) -> Option<Arc<Known>> {
        if let Some(known) = self.known.get(&run) {
            return Some(known.clone());
        }
        let state = match self.engine.state(run).await {
            Ok(state) => state,
            Err(error) => {
                tracing::warn!(%run, %error, "hooks of a run that cannot be read are left out");
                return None;
            }
        };
        if let Err(why) = self.engine.trusts(&state.workflow) {
            tracing::warn!(%run, why, "hooks of a run that is not trusted are left out");
            return None;
        }
        let known = Known { workflow: state.workflow.clone(), request: state.request.clone() };
        if self.known.len() >= REMEMBERED {
            self.known.clear();
        }
        let known = Arc::new(known);
        self.known.insert(run, known.clone());
        Some(known)
    }

    /// Returns the agent that the event is about.
    async fn agent(&self, stored: &Stored) -> Option<String> {
        let row = self.engine.store().handoff(stored.run, stored.entry.handoff?).await.ok()??;
        let body: Value = serde_json::from_str(&row.body).ok()?;
        let to = body.pointer("/offer/to")?.as_str()?;
        Some(to.to_owned())
    }
}

/// An event, and the hooks that want it.
struct Call {
    run: RunId,
    position: u64,
    workflow: Arc<Workflow>,
    hooks: Vec<usize>,
    input: Value,
}

impl Call {
    async fn make(&self, engine: &Engine, project: &std::path::Path) {
        for index in &self.hooks {
            let hook = &self.workflow.hooks[*index];
            // An agent may have changed its files since the run began.
            let trusted = engine.trusts_command(&self.workflow, &hook.command, project);
            let outcome = match trusted {
                Ok(()) => command::run(hook, project, &self.input).await,
                Err(why) => Outcome::Broken { why },
            };
            // The event has already happened: a refusal is treated as a failure.
            let why = match outcome {
                Outcome::Passed => continue,
                Outcome::Refused { why } => format!("it says no, too late: {why}"),
                Outcome::Broken { why } => why,
            };
            tracing::warn!(run = %self.run, on = hook.on, why, "a hook broke");
            let message = format!("the hook on {} broke: {why}", hook.on);
            engine.alert(self.run, vec![message]).await;
        }
    }
}

fn lock(memory: &Mutex<Memory<Progress>>) -> std::sync::MutexGuard<'_, Memory<Progress>> {
    memory.lock().unwrap_or_else(PoisonError::into_inner)
}
