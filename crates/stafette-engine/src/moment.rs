//! A run as it was after any of its events, and what each event changed of it.
//!
//! Clients do not fold events themselves: whatever they show of a run's state was computed here, by
//! [`Run::apply`].

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stafette_core::change::ChangeId;
use stafette_core::run::session::SessionState;
use stafette_core::team::change::SetState;
use stafette_core::team::generation::Lineage;
use stafette_core::{AgentName, Event, Handoff, HandoffId, Recorded, Run, RunId};
use stafette_store::Stored;

use crate::engine::parse;
use crate::log::RunLog;
use crate::{Driver, Engine, EngineError, RestoreError, RunView};

/// The maximum number of runs that a [`StateFeed`] keeps in memory; it loads the others again when
/// they change.
const MOST_RUNS: usize = 64;

/// The parts of a run's state that its [`RunView`] leaves out.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunState {
    /// The open handoffs and the last 64 that were closed, by id.
    pub handoffs: BTreeMap<HandoffId, HandoffState>,
    /// The state of each agent's process, for agents that have one.
    pub sessions: BTreeMap<AgentName, SessionState>,
    /// The newest sets of edits that were proposed, by id.
    pub changes: BTreeMap<ChangeId, SetState>,
    /// The run's place among the generations of its team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Box<Lineage>>,
}

/// A handoff within the state of its run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct HandoffState {
    /// The handoff itself.
    #[serde(flatten)]
    pub handoff: Handoff,
    /// True when a blind vote was left out of it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub sealed: bool,
}

impl HandoffState {
    fn of(run: &Run, handoff: &Handoff) -> Self {
        let mut handoff = handoff.clone();
        let sealed = run.veil_handoff(&mut handoff);
        HandoffState { handoff, sealed }
    }
}

impl RunState {
    /// The state of `run`, without the votes that were closed at that moment.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let handoff =
            |(id, handoff): (&HandoffId, &Arc<Handoff>)| (*id, HandoffState::of(run, handoff));
        RunState {
            handoffs: run.handoffs.iter().map(handoff).collect(),
            sessions: run.sessions.clone(),
            changes: run.team.changes.clone(),
            lineage: run.team.lineage.clone(),
        }
    }
}

impl RunLog<'_> {
    /// A run as it is now, or as it was after event `at`.
    pub(crate) async fn state(self, run: RunId, at: Option<u64>) -> Result<Arc<Run>, EngineError> {
        let Some(seq) = at else { return self.engine.state(run).await };
        if let Some(shown) = self.engine.shown(run).filter(|shown| shown.seq == seq) {
            return Ok(shown);
        }
        if seq == 0 {
            let last = self.engine.view(run).await?.0.seq;
            return Err(EngineError::NoEvent { run, seq, last });
        }
        let loaded = self.engine.store().load_at(run, seq).await?;
        let loaded = loaded.ok_or_else(|| EngineError::NoRun { run: run.to_string() })?;
        let last = loaded.entries.last().map(|stored| stored.entry.seq);
        let last = last.or_else(|| loaded.snapshot.as_ref().map(|snapshot| snapshot.seq));
        match last {
            Some(last) if last == seq => Ok(Arc::new(Driver::restore(&loaded)?.run().clone())),
            last => Err(EngineError::NoEvent { run, seq, last: last.unwrap_or_default() }),
        }
    }

    /// A run with its whole state, now or as it was after event `at`.
    ///
    /// # Errors
    /// When there is no such run or no such event, or it cannot be read.
    pub async fn moment(
        self,
        run: RunId,
        at: Option<u64>,
    ) -> Result<(RunView, RunState), EngineError> {
        let state = self.state(run, at).await?;
        Ok((RunView::of(&state), RunState::of(&state)))
    }
}

/// Computes what each event changes of its run, for one client that follows events in order.
#[derive(Debug, Default)]
pub struct StateFeed {
    runs: HashMap<RunId, Kept>,
}

/// A run after the last event that its client was sent, with its view as JSON.
#[derive(Debug)]
struct Kept {
    run: Run,
    view: Map<String, Value>,
}

impl From<Run> for Kept {
    fn from(run: Run) -> Self {
        let view = object(&RunView::of(&run));
        Kept { run, view }
    }
}

impl StateFeed {
    /// The fields of a run's view and state that `stored` changed, relative to the event before it;
    /// all of them for a run's first event. `None` for an event that is not newer than the last
    /// one.
    ///
    /// A field that is gone is null. `handoffs` and `changes` list only those that changed, each
    /// with the fields that changed.
    ///
    /// # Errors
    /// When the run cannot be read.
    pub async fn change(
        &mut self,
        engine: &Engine,
        stored: &Stored,
    ) -> Result<Option<Map<String, Value>>, EngineError> {
        let Stored { run: id, entry, .. } = stored;
        let before = match self.runs.remove(id) {
            Some(kept) if kept.run.seq >= entry.seq => {
                self.runs.insert(*id, kept);
                return Ok(None);
            }
            Some(kept) if kept.run.seq + 1 == entry.seq => Some(kept),
            _ if entry.seq == 1 => None,
            _ => Some(engine.log().state(*id, Some(entry.seq - 1)).await?.as_ref().clone().into()),
        };
        let event: Event = parse(entry.seq, &entry.body)?;
        let recorded = Recorded { seq: entry.seq, at: entry.at, event };
        let (after, changed) = step(before.as_ref(), &recorded)?;
        if self.runs.len() >= MOST_RUNS {
            self.runs.clear();
        }
        if !after.run.status().is_final() {
            self.runs.insert(*id, after);
        }
        Ok(Some(changed))
    }
}

/// The fields that each of `events` changed, from the first one of a run on.
///
/// # Errors
/// When they do not begin with the creation of a run.
pub fn changes(events: &[Recorded]) -> Result<Vec<Map<String, Value>>, RestoreError> {
    let mut before = None;
    let mut all = Vec::with_capacity(events.len());
    for recorded in events {
        let (after, changed) = step(before.as_ref(), recorded)?;
        before = Some(after);
        all.push(changed);
    }
    Ok(all)
}

fn step(
    before: Option<&Kept>,
    recorded: &Recorded,
) -> Result<(Kept, Map<String, Value>), RestoreError> {
    let run = match before {
        None => Run::replay([recorded]).ok_or(RestoreError::NoBeginning)?,
        Some(kept) => {
            let mut run = kept.run.clone();
            run.apply(recorded.at, &recorded.event);
            run
        }
    };
    let after = Kept::from(run);
    let changed = difference(before, &after);
    Ok((after, changed))
}

fn difference(before: Option<&Kept>, after: &Kept) -> Map<String, Value> {
    let nothing = Map::new();
    let mut changed = fields(before.map_or(&nothing, |kept| &kept.view), &after.view);
    let (old, new) = (before.map(|kept| &kept.run), &after.run);
    let handoffs = handoffs(old, new);
    if old.is_none() || !handoffs.is_empty() {
        changed.insert("handoffs".to_owned(), handoffs.into());
    }
    let sets = sets(old, new);
    if old.is_none() || !sets.is_empty() {
        changed.insert("changes".to_owned(), sets.into());
    }
    if old.is_none_or(|old| old.sessions != new.sessions) {
        changed.insert("sessions".to_owned(), json(&new.sessions));
    }
    if old.map_or(new.team.lineage.is_some(), |old| old.team.lineage != new.team.lineage) {
        changed.insert("lineage".to_owned(), json(&new.team.lineage));
    }
    changed
}

/// The handoffs that changed. Those that the run no longer keeps stay as they were: closed.
fn handoffs(old: Option<&Run>, new: &Run) -> Map<String, Value> {
    // When a blind vote is opened, handoffs look different that did not change.
    let opened = old.is_some_and(|old| old.votes_blindly() != new.votes_blindly());
    let mut all = Map::new();
    for (id, handoff) in &new.handoffs {
        let known = old.and_then(|old| Some((old, old.handoffs.get(id)?)));
        if !opened && known.is_some_and(|(_, known)| Arc::ptr_eq(known, handoff)) {
            continue;
        }
        let before = known.map(|(old, known)| object(&HandoffState::of(old, known)));
        let after = object(&HandoffState::of(new, handoff));
        let changed = fields(&before.unwrap_or_default(), &after);
        if !changed.is_empty() {
            all.insert(id.to_string(), changed.into());
        }
    }
    all
}

fn sets(old: Option<&Run>, new: &Run) -> Map<String, Value> {
    let known = |id| old.and_then(|old| old.team.changes.get(id));
    let changed = new.team.changes.iter().filter(|(id, set)| known(id) != Some(*set));
    changed
        .map(|(id, set)| {
            let before = known(id).map(object).unwrap_or_default();
            (id.to_string(), fields(&before, &object(set)).into())
        })
        .collect()
}

/// The fields of `after` that are not the same in `before`, and null for those that are gone.
fn fields(before: &Map<String, Value>, after: &Map<String, Value>) -> Map<String, Value> {
    let gone = before.keys().filter(|name| !after.contains_key(*name));
    let gone = gone.map(|name| (name.clone(), Value::Null));
    let changed = after.iter().filter(|(name, value)| before.get(*name) != Some(value));
    changed.map(|(name, value)| (name.clone(), value.clone())).chain(gone).collect()
}

fn json(value: &impl Serialize) -> Value {
    serde_json::to_value(value).expect("our own types are JSON")
}

fn object(value: &impl Serialize) -> Map<String, Value> {
    match json(value) {
        // Null is a field that is gone.
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        _ => Map::new(),
    }
}
