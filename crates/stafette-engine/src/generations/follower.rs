//! Follows the feed: hands over from runs that have ended, starts those that follow, and writes the
//! context file.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use stafette_core::team::generation::successor;
use stafette_core::{Input, Run, RunId, TeamInput, Time};
use stafette_store::Stored;
use tokio::sync::watch;

use super::{context_file, counts, imported, landing};
use crate::{Engine, EngineError, clock, crash};

/// The pause before a failed step is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of runs that are searched for the newest generation.
const NEWEST: usize = 64;

/// Starts each generation after the one before it.
#[derive(Debug)]
pub struct Generations {
    engine: Engine,
    /// The file that records how far the feed was followed.
    memory: PathBuf,
    /// The generations to start, by the run that they follow: the start time, and the position of
    /// the event in the feed.
    due: BTreeMap<RunId, (Time, u64)>,
    /// The newest generation: the context file describes it.
    newest: Option<RunId>,
}

impl Generations {
    /// Follows `engine`; `memory` is the file that records its progress.
    #[must_use]
    pub fn new(engine: Engine, memory: PathBuf) -> Self {
        Generations { engine, memory, due: BTreeMap::new(), newest: None }
    }

    /// Follows until `stop` is set or the engine is gone.
    pub async fn live(mut self, mut stop: watch::Receiver<bool>) {
        self.look_back().await;
        let mut cursor = self.cursor().await;
        let mut feed = self.engine.feed(cursor);
        loop {
            let due = self.due.values().map(|(at, _)| *at).min();
            let page = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = clock::reach(due, Duration::from_secs(3600)), if due.is_some() => None,
                page = feed.next() => Some(page),
            };
            let heard = match page {
                None => self.begin_due().await,
                Some(Ok(Some(page))) => self.hear(&page, &mut cursor).await,
                Some(Ok(None)) => return,
                Some(Err(error)) => Err(error.into()),
            };
            if let Err(error) = heard {
                tracing::warn!(%error, "generations cannot follow; it is tried again");
                if tokio::time::timeout(PAUSE, stop.wait_for(|stop| *stop)).await.is_ok() {
                    return;
                }
                // Begins where everything was done: doing it again does no harm.
                self.due.clear();
                cursor = self.cursor().await;
                feed = self.engine.feed(cursor);
            }
        }
    }

    /// The context file describes the newest generation, whatever was written last.
    async fn look_back(&mut self) {
        let runs = self.engine.runs(NEWEST).await.unwrap_or_default();
        self.newest = runs.iter().find(|view| view.generation.is_some()).map(|view| view.run);
        self.draw().await;
    }

    async fn hear(&mut self, page: &[Stored], cursor: &mut u64) -> Result<(), EngineError> {
        let mut touched = false;
        let mut acted = false;
        for stored in page {
            match stored.entry.name.as_str() {
                "run_created" | "run_forked" => {
                    let state = self.engine.state(stored.run).await?;
                    imported::propose(&self.engine, &state).await?;
                    if state.team.lineage.is_some()
                        && self.newest.is_none_or(|run| run < stored.run)
                    {
                        self.newest = Some(stored.run);
                    }
                }
                "run_finished" => acted |= self.hand_over(stored.run).await?,
                "generation_handed_over" => {
                    acted = true;
                    let state = self.engine.state(stored.run).await?;
                    if let Some((_, from)) = following(&state) {
                        self.due.insert(stored.run, (from, stored.position));
                    }
                }
                "note_left" if self.newest.is_none() => self.newest = Some(stored.run),
                _ => {}
            }
            touched |= self.newest == Some(stored.run);
            *cursor = stored.position;
        }
        if touched {
            self.draw().await;
        }
        if acted {
            self.keep(*cursor);
        }
        Ok(())
    }

    /// Decides once, for a run that has ended, what follows it.
    async fn hand_over(&self, run: RunId) -> Result<bool, EngineError> {
        let state = self.engine.state(run).await?;
        let Some(lineage) = &state.team.lineage else { return Ok(false) };
        if lineage.handed_over.is_some() {
            return Ok(true);
        }
        crash::point();
        let changes = counts(&state, &self.engine.changes_of(&state).await);
        self.engine.record(run, Input::Team(TeamInput::HandOver { changes })).await?;
        crash::point();
        Ok(true)
    }

    /// Starts the generations that are due.
    async fn begin_due(&mut self) -> Result<(), EngineError> {
        let now = clock::now();
        let ripe: Vec<(RunId, u64)> = self
            .due
            .iter()
            .filter(|(_, (at, _))| *at <= now)
            .map(|(run, (_, position))| (*run, *position))
            .collect();
        let mut last = 0;
        for (run, position) in ripe {
            self.begin(run).await?;
            self.due.remove(&run);
            last = last.max(position);
        }
        self.keep(last);
        Ok(())
    }

    async fn begin(&self, run: RunId) -> Result<(), EngineError> {
        let state = self.engine.state(run).await?;
        if let Err(why) = self.engine.trusts(&state.workflow) {
            tracing::warn!(%run, why, "the generation after it does not begin");
            return Ok(());
        }
        // Repeated after a crash: changes that are applied by then are no longer ready.
        landing::land(&self.engine, &state).await;
        // Notes that arrive now are for the generation that begins, or too late for it.
        let _turn = self.engine.once.wait().await;
        let state = self.engine.state(run).await?;
        let Some(created) = successor(&state) else { return Ok(()) };
        if self.engine.store().run(created.run).await?.is_some() {
            return Ok(());
        }
        crash::point();
        match self.engine.begin_once(created).await {
            Err(EngineError::Blocked { why }) => {
                tracing::warn!(%run, why, "the generation after it does not begin");
                Ok(())
            }
            Err(error) => Err(error),
            Ok(_) => {
                crash::point();
                Ok(())
            }
        }
    }

    /// Writes the context file of the newest generation.
    async fn draw(&self) {
        let Some(run) = self.newest else { return };
        let state = match self.engine.state(run).await {
            Ok(state) => state,
            Err(error) => return tracing::warn!(%run, %error, "no picture of the team"),
        };
        let changes = self.engine.changes_of(&state).await;
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

    /// The position to begin at: everything before it is done.
    async fn cursor(&self) -> u64 {
        let noted = fs::read_to_string(&self.memory).ok();
        let noted = noted.and_then(|text| text.trim().parse().ok()).unwrap_or(0);
        // If the store was replaced, following begins anew.
        match self.engine.store().head().await {
            Ok(head) if noted > head => 0,
            _ => noted,
        }
    }

    /// Records how far everything is done: up to the first start that is still due, or up to
    /// `cursor`.
    fn keep(&self, cursor: u64) {
        let open = self.due.values().map(|(_, position)| position.saturating_sub(1)).min();
        let done = open.map_or(cursor, |open| open.min(cursor));
        if let Err(error) = context_file::replace(&self.memory, &format!("{done}\n")) {
            // The only effect is that the next start reads from further back.
            tracing::warn!(%error, "how far generations were followed cannot be noted");
        }
    }
}

/// The run that follows, and its start time.
fn following(run: &Run) -> Option<(RunId, Time)> {
    let over = run.team.lineage.as_ref()?.handed_over.as_ref()?;
    let next = over.next.as_ref()?;
    Some((next.run, next.not_before))
}
