//! The tasks beside the runs: hooks that follow them, the context file, triggers and notifications.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use stafette_engine::{ContextWriter, Engine};
use stafette_hooks::{Alarms, Follower, Notifier, ReadWorkflow, Triggers};
use stafette_server::Edge;
use stafette_stages::Stages;
use tokio::sync::watch;
use tokio::task::JoinSet;

/// The time that tasks in progress have to end.
const END: Duration = Duration::from_secs(12);

/// The tasks beside the runs.
#[derive(Debug)]
pub(super) struct BackgroundTasks {
    stop: watch::Sender<bool>,
    tasks: JoinSet<()>,
}

impl BackgroundTasks {
    /// Starts them. A run in the foreground has its hooks, generations and notifications, and no
    /// schedules.
    pub(super) async fn begin(
        engine: &Engine,
        edge: Edge,
        read: Arc<ReadWorkflow>,
        alarms: Alarms,
        places: (&Path, &Path),
        private: bool,
    ) -> (Self, Edge) {
        let (root, state) = places;
        let (stop, stopped) = watch::channel(false);
        let mut tasks = JoinSet::new();
        let memory = state.join("hooks.json");
        let follower = Follower::open(engine.clone(), root.to_owned(), memory).await;
        after_release(&mut tasks, engine, &stopped, follower.live(stopped.clone()));
        let context_file = ContextWriter::new(engine.clone());
        after_release(&mut tasks, engine, &stopped, context_file.live(stopped.clone()));
        let memory = state.join("triggers.json");
        let triggers = Arc::new(Triggers::open(engine.clone(), read.clone(), memory));
        if !private {
            let live = triggers.clone().live(stopped.clone());
            after_release(&mut tasks, engine, &stopped, live);
        }
        let redactor = engine.settings().redactor.clone();
        let memory = state.join("notify.json");
        let notifier = Notifier::open(engine.clone(), read, edge.page(), alarms, redactor, memory);
        let notifier = Arc::new(notifier.await);
        tasks.spawn(notifier.clone().live(stopped));
        (BackgroundTasks { stop, tasks }, edge.with(triggers, notifier))
    }

    /// Adds the tasks for knowledge and plans.
    pub(super) fn with(&mut self, stages: &Stages, engine: &Engine) {
        stages.live(engine, &mut self.tasks, &self.stop.subscribe());
    }

    /// Starts nothing new, and waits for tasks in progress.
    pub(super) async fn end(mut self) {
        self.stop.send_replace(true);
        let ended = async { while self.tasks.join_next().await.is_some() {} };
        if tokio::time::timeout(END, ended).await.is_err() {
            tracing::warn!("a hook did not end; it is told again when the daemon starts");
        }
    }
}

/// Starts once the user has acted: until then the daemon only shows what exists.
fn after_release(
    tasks: &mut JoinSet<()>,
    engine: &Engine,
    stopped: &watch::Receiver<bool>,
    work: impl Future<Output = ()> + Send + 'static,
) {
    let (engine, mut stopped) = (engine.clone(), stopped.clone());
    tasks.spawn(async move {
        let released = tokio::select! {
            () = engine.stopped().released() => true,
            _ = stopped.wait_for(|stopped| *stopped) => false,
        };
        if released {
            work.await;
        }
    });
}
