//! Follows the feed and keeps the context file of the newest team up to date.

use std::time::Duration;

use stafette_core::RunId;
use stafette_store::Stored;
use tokio::sync::watch;

use super::context_file;
use crate::{Engine, EngineError, clock};

/// The pause before the feed is followed again.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of runs that are searched for the newest generation.
const NEWEST: usize = 64;

/// Writes the context file.
#[derive(Debug)]
pub struct ContextWriter {
    engine: Engine,
    /// The newest generation: the context file describes it.
    newest: Option<RunId>,
}

impl ContextWriter {
    /// Follows `engine`.
    #[must_use]
    pub fn new(engine: Engine) -> Self {
        ContextWriter { engine, newest: None }
    }

    /// Follows until `stop` is set or the engine is gone. The file is drawn anew at first, so it does
    /// not matter how far an earlier process came.
    pub async fn live(mut self, mut stop: watch::Receiver<bool>) {
        loop {
            let followed = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                followed = self.follow() => followed,
            };
            let Err(error) = followed else { return };
            tracing::warn!(%error, "the context file is not kept up to date; it is tried again");
            if tokio::time::timeout(PAUSE, stop.wait_for(|stop| *stop)).await.is_ok() {
                return;
            }
        }
    }

    async fn follow(&mut self) -> Result<(), EngineError> {
        let mut feed = self.engine.feed(self.engine.store().head().await?);
        let runs = self.engine.runs(NEWEST).await?;
        self.newest = runs.iter().find(|view| view.generation.is_some()).map(|view| view.run);
        self.draw().await;
        while let Some(page) = feed.next().await? {
            self.hear(&page).await?;
        }
        Ok(())
    }

    async fn hear(&mut self, page: &[Stored]) -> Result<(), EngineError> {
        let mut touched = false;
        for stored in page {
            match stored.entry.name.as_str() {
                "run_created" | "run_forked" => {
                    let is_newer = self.newest.is_none_or(|run| run < stored.run);
                    if is_newer && self.engine.state(stored.run).await?.team.lineage.is_some() {
                        self.newest = Some(stored.run);
                    }
                }
                "note_left" if self.newest.is_none() => self.newest = Some(stored.run),
                _ => {}
            }
            touched |= self.newest == Some(stored.run);
        }
        if touched {
            self.draw().await;
        }
        Ok(())
    }

    /// Writes the context file of the newest generation.
    async fn draw(&self) {
        let Some(run) = self.newest else { return };
        let state = match self.engine.state(run).await {
            Ok(state) => state,
            Err(error) => return tracing::warn!(%run, %error, "no picture of the team"),
        };
        let changes = match self.engine.generations().changes_of(&state).await {
            Ok(changes) => changes,
            Err(error) => return tracing::warn!(%run, %error, "no picture of the team"),
        };
        let disk = context_file::System::of(&self.engine.settings().project);
        let now = clock::now();
        let written =
            tokio::task::spawn_blocking(move || context_file::draw(&disk, &state, &changes, now));
        match written.await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%run, %error, "the context file cannot be written"),
            Err(error) => tracing::warn!(%run, %error, "the context file was not written"),
        }
    }
}
