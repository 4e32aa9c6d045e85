//! Background tasks beside the runs: the follower, the queue of the graph, and the calendar.

use std::time::Duration;

use stafette_core::Input;
use stafette_engine::Engine;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::Stages;
use crate::follower::Follower;

/// The pause before the graph is tried again.
const PAUSE: Duration = Duration::from_secs(2);

impl Stages {
    /// Starts the background tasks; they run until `stop` is set.
    pub fn live(&self, engine: &Engine, tasks: &mut JoinSet<()>, stop: &watch::Receiver<bool>) {
        tasks.spawn(Follower::new(self.clone(), engine.clone()).live(stop.clone()));
        tasks.spawn(until(stop.clone(), self.clone().keep_graph(engine.clone())));
        tasks.spawn(until(stop.clone(), self.clone().keep_calendar()));
        tasks.spawn(until(stop.clone(), self.clone().keep_learning(engine.clone())));
    }

    /// Drains the queue of the graph, and alerts the runs when the graph becomes unreachable.
    async fn keep_graph(self, engine: Engine) {
        if let Err(fault) = self.known_goals().await {
            tracing::warn!(%fault, "the goals are not known yet");
        }
        let mut away = false;
        loop {
            self.0.graph.probe().await;
            if let Err(error) = self.0.graph.drain().await {
                tracing::error!(%error, "the graph's queue cannot be read");
            }
            if let Ok(condition) = self.0.graph.condition().await {
                if condition.why.is_some() && !away {
                    let why = condition.why.unwrap_or_default();
                    self.alert(&engine, &why).await;
                    away = true;
                } else if condition.code.is_none() {
                    away = false;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// Reports to every unfinished run that uses the knowledge base that the graph is unreachable.
    async fn alert(&self, engine: &Engine, why: &str) {
        let Ok(unfinished) = engine.store().unfinished().await else { return };
        for run in unfinished {
            let minds =
                engine.state(run).await.is_ok_and(|state| state.workflow.knowledge.is_some());
            if minds {
                let code = "MCP_CONNECTION_FAILED".to_owned();
                let alert = Input::Alert { code, message: why.to_owned() };
                let _ = engine.send(run, alert).await;
            }
        }
    }

    /// Looks for patterns when runs have ended, and once at the start, because a run may have ended
    /// while the daemon was down. Nothing waits for it, and runs that end meanwhile are handled
    /// together.
    async fn keep_learning(self, engine: Engine) {
        loop {
            match self.look_back(&engine).await {
                Ok(found) => tracing::debug!(?found, "looked back"),
                Err(fault) => tracing::warn!(%fault, "nothing is learned from these runs yet"),
            }
            self.0.memory.news.notified().await;
        }
    }

    async fn keep_calendar(self) {
        let Some(home) = &self.0.settings.calendar else { return };
        let pause = Duration::from(home.look);
        loop {
            if let Err(fault) = self.look_at_calendar().await {
                tracing::warn!(%fault, "the calendar was not looked at");
            }
            tokio::time::sleep(pause).await;
        }
    }
}

async fn until(mut stop: watch::Receiver<bool>, work: impl Future<Output = ()>) {
    tokio::select! {
        _ = stop.wait_for(|stop| *stop) => {}
        () = work => {}
    }
}
