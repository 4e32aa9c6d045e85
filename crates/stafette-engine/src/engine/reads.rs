//! What can be read of the runs: views, states and the feed.

use std::sync::Arc;

use stafette_core::{Run, RunId};
use stafette_store::RunFilter;

use super::{Engine, parse};
use crate::record::is_collecting;
use crate::task::Shown;
use crate::{Driver, EngineError, Feed, RunView};

/// The status of [`Engine::runs_after`] that names all runs that have not ended.
pub const UNFINISHED: &str = "unfinished";

impl Engine {
    /// A run as it is now, and why it cannot go on at the moment, if it cannot.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn view(&self, run: RunId) -> Result<(RunView, Option<String>), EngineError> {
        let row = self.store.run(run).await?;
        let stored = row.as_ref().map_or(0, |row| row.seq);
        let damage = self.damaged.of(run).map(|damage| format!("stopped: {damage}"));
        let (view, trouble) = match (row, self.caught_up(run, stored).await) {
            (_, Some(shown)) => (RunView::of(&shown.run), shown.why_not().or(damage)),
            (Some(row), None) => (parse(row.seq, &row.body)?, damage),
            (None, None) => return Err(EngineError::NoRun { run: run.to_string() }),
        };
        Ok((self.or_stopped(view), trouble))
    }

    /// The view, marked if nothing of its run is started at the moment.
    fn or_stopped(&self, view: RunView) -> RunView {
        let waits = self.stopped().contains(view.run) || self.damaged.of(view.run).is_some();
        match waits && !view.is_over() {
            true => view.stopped(),
            false => view,
        }
    }

    /// The state of a run, from memory or from the store.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn state(&self, run: RunId) -> Result<Arc<Run>, EngineError> {
        let stored = self.store.run(run).await?.map_or(0, |row| row.seq);
        if let Some(shown) = self.caught_up(run, stored).await {
            return Ok(shown.run);
        }
        let loaded = self.store.load(run).await?;
        let loaded = loaded.ok_or_else(|| EngineError::NoRun { run: run.to_string() })?;
        Ok(Arc::new(Driver::restore(&loaded)?.run().clone()))
    }

    /// Returns once the run is over and its outcome is collected, or it waits for a person, with its
    /// view.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn settled(&self, run: RunId) -> Result<RunView, EngineError> {
        if let Some(mut handle) = self.handle(run) {
            let settled = |shown: &Shown| {
                let status = shown.run.status();
                (status.is_final() && !is_collecting(&shown.run))
                    || matches!(status.waiting_on(), Some("human" | "budget"))
            };
            if let Ok(shown) = handle.shown.wait_for(settled).await {
                return Ok(RunView::of(&shown.run));
            }
        }
        Ok(self.view(run).await?.0)
    }

    /// Runs, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn runs(&self, limit: usize) -> Result<Vec<RunView>, EngineError> {
        self.runs_after(None, None, limit).await
    }

    /// Runs of one status, [`UNFINISHED`] or of any, the newest first, going on after one of them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn runs_after(
        &self,
        status: Option<String>,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<RunView>, EngineError> {
        if status.as_deref() == Some(UNFINISHED) {
            return self.unfinished(after, limit).await;
        }
        let rows = self.store.runs(RunFilter { status, after, limit }).await?;
        rows.iter().map(|row| Ok(self.or_stopped(parse(row.seq, &row.body)?))).collect()
    }

    /// The runs that have not ended, however many have ended since.
    async fn unfinished(
        &self,
        after: Option<RunId>,
        limit: usize,
    ) -> Result<Vec<RunView>, EngineError> {
        // Not by their ids: those of runs that begin with a key say nothing of their age.
        let before = match after {
            Some(after) => self.store.run(after).await?.map(|row| (row.created_at, after)),
            None => None,
        };
        let mut views = Vec::new();
        for run in self.store.unfinished().await? {
            // It may have been removed since.
            let Some(row) = self.store.run(run).await? else { continue };
            let view: RunView = parse(row.seq, &row.body)?;
            let age = (row.created_at, run);
            if !view.is_over() && before.is_none_or(|before| age < before) {
                views.push((age, self.or_stopped(view)));
            }
        }
        views.sort_unstable_by(|(a, _), (b, _)| b.cmp(a));
        views.truncate(limit);
        Ok(views.into_iter().map(|(_, view)| view).collect())
    }

    /// The runs that have not ended, and the newest `limit` of all, the newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn overview(&self, limit: usize) -> Result<Vec<RunView>, EngineError> {
        let mut views = self.runs(limit).await?;
        let listed = views.last().map(|view| view.run);
        views.extend(self.unfinished(listed, usize::MAX).await?);
        Ok(views)
    }

    /// The run that a person means: its id, some of its digits, or the newest one for `None`.
    ///
    /// # Errors
    /// When there is none, or more than one.
    pub async fn find(&self, text: Option<&str>) -> Result<RunId, EngineError> {
        let Some(text) = text else {
            let newest = self.store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await?;
            let none = || EngineError::NoRun { run: "at all yet".to_owned() };
            return newest.first().map(|row| row.run).ok_or_else(none);
        };
        let mut found = self.store.find_run(text.to_owned()).await?;
        match (found.pop(), found.is_empty()) {
            (Some(run), true) => Ok(run),
            (None, _) => Err(EngineError::NoRun { run: text.to_owned() }),
            (Some(run), false) => {
                found.push(run);
                Err(EngineError::Ambiguous { text: text.to_owned(), found })
            }
        }
    }

    /// Everything that happens after `cursor`, in all runs.
    pub fn feed(&self, cursor: u64) -> Feed {
        self.source.feed(cursor)
    }
}
