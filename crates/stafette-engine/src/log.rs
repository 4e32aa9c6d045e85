//! Everything that leaves the daemon passes here, and what must stay secret for now is taken out.
//! At the moment these are the votes of a council while its first vote is open. A terminal shows
//! the output of its program to people, who know where they look, and to no other agent.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;
use stafette_core::{Event, HandoffId, Run, RunId};
use stafette_store::{HandoffRow, Stored};

use crate::{Engine, EngineError, HandoffView};

/// The field that marks an event or a handoff from which something was taken out.
pub const SEALED: &str = "sealed";

/// The events and handoffs of runs, as any caller may see them: `Engine::log`.
#[derive(Clone, Copy, Debug)]
pub struct RunLog<'a> {
    pub(crate) engine: &'a Engine,
}

impl RunLog<'_> {
    /// The events of a run after `after`, as any caller may see them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn events(self, run: RunId, after: u64) -> Result<Vec<Stored>, EngineError> {
        let mut events = Vec::new();
        let mut after = after;
        loop {
            let page = self.engine.store().entries(run, after, 1024).await?;
            let Some(last) = page.last() else { break };
            after = last.entry.seq;
            events.extend(page);
        }
        self.veil(&mut events).await?;
        Ok(events)
    }

    /// The handoffs of a run, in order, as any caller may see them.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn handoffs(self, run: RunId) -> Result<Vec<HandoffRow>, EngineError> {
        self.veiled_rows(run, self.engine.store().handoffs(run).await?).await
    }

    /// The open questions of all runs, the oldest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn questions(self) -> Result<Vec<HandoffRow>, EngineError> {
        Ok(self.engine.store().questions().await?)
    }

    /// Takes out of events what must stay secret for now. Returns the originals of those that were
    /// changed.
    ///
    /// # Errors
    /// When a run cannot be read.
    pub async fn veil(self, page: &mut [Stored]) -> Result<Vec<Stored>, EngineError> {
        let mut runs: HashMap<RunId, Option<Arc<Run>>> = HashMap::new();
        let mut closed = Vec::new();
        for stored in page {
            if let std::collections::hash_map::Entry::Vacant(place) = runs.entry(stored.run) {
                place.insert(self.blind(stored.run).await?);
            }
            let Some(Some(run)) = runs.get(&stored.run) else { continue };
            let Ok(mut event) = Event::from_json(&stored.entry.body) else { continue };
            if run.veil(&mut event) {
                closed.push(stored.clone());
                stored.entry.body = sealed(&event);
            }
        }
        Ok(closed)
    }

    /// True if some part of this run is still secret.
    ///
    /// # Errors
    /// When the run cannot be read.
    pub async fn is_sealed(self, run: RunId) -> Result<bool, EngineError> {
        Ok(self.blind(run).await?.is_some())
    }

    /// Returns a handoff as any caller may see it.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn handoff(
        self,
        run: RunId,
        handoff: HandoffId,
    ) -> Result<Option<HandoffRow>, EngineError> {
        let Some(row) = self.engine.store().handoff(run, handoff).await? else { return Ok(None) };
        Ok(self.veiled_rows(run, vec![row]).await?.pop())
    }

    async fn veiled_rows(
        self,
        run: RunId,
        mut rows: Vec<HandoffRow>,
    ) -> Result<Vec<HandoffRow>, EngineError> {
        let Some(run) = self.blind(run).await? else { return Ok(rows) };
        for row in &mut rows {
            if let Ok(HandoffView::Admitted(mut handoff)) = serde_json::from_str(&row.body)
                && run.veil_handoff(&mut handoff)
            {
                row.body = sealed(&handoff);
            }
        }
        Ok(rows)
    }

    /// The run, if its members are voting blindly at the moment.
    async fn blind(self, run: RunId) -> Result<Option<Arc<Run>>, EngineError> {
        if !self.engine.shown(run).is_some_and(|run| may_be_blind(&run)) {
            return Ok(None);
        }
        Ok(Some(self.engine.state(run).await?).filter(|run| run.votes_blindly()))
    }
}

fn may_be_blind(run: &Run) -> bool {
    run.workflow.council.as_ref().is_some_and(|rules| rules.blind_first_vote)
}

fn sealed(value: &impl serde::Serialize) -> String {
    let mut value = serde_json::to_value(value).expect("our own types are JSON");
    if let Some(fields) = value.as_object_mut() {
        fields.insert(SEALED.to_owned(), Value::Bool(true));
    }
    value.to_string()
}
