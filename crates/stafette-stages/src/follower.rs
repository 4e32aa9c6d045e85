//! Follows the events of all runs, and stores what they mean: handoffs in the graph, messages in
//! the history, and what people approved.
//!
//! The position is stored in the same file, after what was written. An event that is read again
//! after a kill has the same key as before and no effect.

mod talk;
mod watch;

use std::collections::HashMap;
use std::time::Duration;

use stafette_core::{Event, Input, Kind, Offer, Party, Reason, Recorded, Reply, RunId};
use stafette_engine::{Engine, Stored};
use stafette_knowledge::graph::{Graph, GraphError};

use crate::{StageError, Stages};
use watch::Watch;

/// The name of the follower's position.
pub(crate) const CURSOR: &str = "events";

/// The pause before a failed operation is retried.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of runs that are kept in memory.
const REMEMBERED: usize = 256;

/// The reason of a handoff to the agent that looks for patterns beside the others.
const BESIDE: &str = "beside";

/// Follows the events of all runs.
#[derive(Debug)]
pub(crate) struct Follower {
    stages: Stages,
    engine: Engine,
    runs: HashMap<RunId, Watch>,
}

impl Follower {
    pub(crate) fn new(stages: Stages, engine: Engine) -> Self {
        Follower { stages, engine, runs: HashMap::new() }
    }

    /// Runs until `stop` is set or the engine is gone.
    pub(crate) async fn live(mut self, mut stop: tokio::sync::watch::Receiver<bool>) {
        let Some(cursor) = self.begin().await else { return };
        let mut feed = self.engine.feed(cursor);
        loop {
            let page = tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                page = feed.next() => page,
            };
            match page {
                Ok(Some(page)) => {
                    tokio::select! {
                        biased;
                        _ = stop.wait_for(|stop| *stop) => return,
                        () = self.take(&page) => {}
                    }
                }
                Ok(None) => return,
                Err(error) => {
                    tracing::warn!(%error, "the stages cannot follow the store");
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }

    /// Returns the last position; a replaced store starts again.
    async fn begin(&self) -> Option<u64> {
        let head = self.engine.store().head().await.ok()?;
        let kept = self.stages.0.cursors.get(CURSOR).await;
        Some(kept.ok().flatten().filter(|cursor| *cursor <= head).unwrap_or(0))
    }

    async fn take(&mut self, page: &[Stored]) {
        for stored in page {
            // Retried until it is written: later events may build on it.
            while let Err(fault) = self.one(stored).await {
                if !fault.may_pass() {
                    tracing::error!(run = %stored.run, seq = stored.entry.seq, %fault, "not kept");
                    break;
                }
                tracing::warn!(%fault, "tried again");
                tokio::time::sleep(PAUSE).await;
            }
        }
        let Some(last) = page.last() else { return };
        while let Err(error) = self.stages.0.cursors.set(CURSOR, last.position).await {
            tracing::warn!(%error, "tried again");
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn one(&mut self, stored: &Stored) -> Result<(), StageError> {
        let Some(recorded) = parse(stored) else { return Ok(()) };
        let run = stored.run;
        self.know(run, recorded.seq).await?;
        let Some(watch) = self.runs.get_mut(&run) else { return Ok(()) };
        // A copy, so that an event that fails half-way is handled as new again.
        let mut next = watch.clone();
        if let Some(batch) = next.mirror(&recorded) {
            self.stages.mirrored(&batch).await?;
        }
        next.approved(&self.stages, &recorded).await?;
        talk::record(&self.stages, &self.engine, &next, &recorded).await?;
        next.see(&recorded);
        match &recorded.event {
            Event::RunCreated(created) => {
                let beside = created.workflow.knowledge.as_ref().and_then(|k| k.beside.clone());
                if let Some(agent) = beside {
                    self.put_beside(run, Party::from(&agent)).await;
                }
            }
            Event::HandoffAdmitted(admitted) => {
                self.stages.mind_the_hours(&self.engine, run, &recorded, admitted).await;
            }
            Event::RunFinished(_) => {
                if next.minds {
                    self.stages.0.memory.news.notify_one();
                }
                self.runs.remove(&run);
                return Ok(());
            }
            _ => {}
        }
        self.runs.insert(run, next);
        Ok(())
    }

    /// Loads a run as it was before event `seq`, unless it is loaded.
    async fn know(&mut self, run: RunId, seq: u64) -> Result<(), StageError> {
        if self.runs.contains_key(&run) {
            return Ok(());
        }
        if self.runs.len() >= REMEMBERED {
            self.runs.clear();
        }
        let mut watch = Watch::new(run);
        if seq > 1 {
            for recorded in self.engine.log().events(run, 0).await?.iter().filter_map(parse) {
                if recorded.seq >= seq {
                    break;
                }
                let _ = watch.mirror(&recorded);
                watch.see(&recorded);
            }
        }
        self.runs.insert(run, watch);
        Ok(())
    }

    /// Gives the agent that looks for patterns its own handoff, once.
    async fn put_beside(&self, run: RunId, agent: Party) {
        let reason = || Reason::Other(BESIDE.to_owned());
        let Ok(state) = self.engine.state(run).await else { return };
        if state.handoffs.values().any(|handoff| handoff.offer.reason == reason()) {
            return;
        }
        let offer = Offer {
            summary: format!("While others work on it: {}", state.request),
            instructions: Some(
                "Look through what is known for patterns that matter to this request, and say \
                 them as insights. Nobody waits for you."
                    .to_owned(),
            ),
            ..Offer::new(Party::Orchestrator, agent, Kind::Transfer, reason())
        };
        match self.engine.send(run, Input::Propose { offer: Box::new(offer) }).await {
            Ok(Reply::Refused { refusal, .. }) => {
                tracing::warn!(%run, %refusal, "nobody looks beside");
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(%run, %error, "nobody looks beside"),
        }
    }
}

impl Stages {
    /// Mirrors a handoff. If its predecessor is no longer known, it is mirrored without the link.
    async fn mirrored(&self, batch: &stafette_knowledge::graph::Batch) -> Result<(), StageError> {
        let batch = &self.redacted(batch.clone())?;
        match self.0.graph.apply(batch).await {
            Err(GraphError::Missing { node, .. }) => {
                tracing::warn!(key = batch.key, %node, "mirrored without its link");
                let mut alone = batch.clone();
                let put = |w: &stafette_knowledge::graph::Write| {
                    matches!(w, stafette_knowledge::graph::Write::Put(_))
                };
                alone.writes.retain(put);
                self.0.graph.apply(&alone).await?;
                Ok(())
            }
            answer => Ok(answer.map(drop)?),
        }
    }
}

/// Parses a stored event.
pub(crate) fn parse(stored: &Stored) -> Option<Recorded> {
    let entry = &stored.entry;
    let event = Event::from_json(&entry.body).ok()?;
    Some(Recorded { seq: entry.seq, at: entry.at, event })
}
