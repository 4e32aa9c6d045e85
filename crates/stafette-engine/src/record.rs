//! What is written besides the events: a row for the run, rows for the handoffs that changed, and
//! a snapshot from time to time.

use crate::{CouncilView, PhasesView};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::run::Tally;
use stafette_core::run::budget::{self, Purse};
use stafette_core::run::propose::HandoffRefused;
use stafette_core::{Event, Handoff, HandoffId, Recorded, Run, RunId, State, Time};
use stafette_store::{Batch, Entry, HandoffRow, RunRow, Snapshot};

/// Opening a run never replays more events than this, plus those of one step.
const SNAPSHOT_EVERY: u64 = 256;

/// A run as people and programs see it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunView {
    /// Its name.
    pub run: RunId,
    /// The workflow's name.
    pub workflow: String,
    /// What the user asked for.
    pub request: String,
    /// Where it stands, in a word.
    pub status: String,
    /// What it waits for, when it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waiting_on: Option<String>,
    /// Why it ended, when it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Which generation of its team it is, when it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub generation: Option<u32>,
    /// Who is at work.
    pub working: Vec<String>,
    /// Its last event.
    pub seq: u64,
    /// When it began.
    pub created_at: String,
    /// When it last changed.
    pub updated_at: String,
    /// Handoffs that wait for the budget, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub held: Vec<Held>,
    /// Counts.
    pub tally: Tally,
    /// Money and tokens.
    pub purse: Purse,
    /// How it gets on in its phases, when its workflow has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<PhasesView>,
    /// How its council stands, when one has met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub council: Option<CouncilView>,
}

/// A handoff whose next turn waits although its moment has come.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Held {
    /// The handoff.
    pub handoff: HandoffId,
    /// The agent whose turn it would be.
    pub agent: String,
    /// What it waits for, in a sentence.
    pub why: String,
}

fn held(run: &Run) -> Vec<Held> {
    let one = |handoff: &Handoff| {
        let why = budget::waits_because(run, handoff)?;
        Some(Held { handoff: handoff.id, agent: handoff.offer.to.to_string(), why })
    };
    run.open().filter_map(one).collect()
}

impl RunView {
    /// Whether the run has ended, well or not.
    #[must_use]
    pub fn is_over(&self) -> bool {
        matches!(self.status.as_str(), "succeeded" | "failed" | "cancelled")
    }

    /// The view of `run`.
    #[must_use]
    pub fn of(run: &Run) -> Self {
        let status = run.status();
        let ending = match &run.stage {
            stafette_core::run::Stage::Finished(ending) => Some(ending.why.clone()),
            _ => None,
        };
        RunView {
            run: run.id,
            workflow: run.workflow.workflow.name.clone(),
            request: run.request.clone(),
            status: status.word().to_owned(),
            waiting_on: status.waiting_on().map(str::to_owned),
            why: ending,
            generation: run.team.lineage.as_ref().map(|lineage| lineage.number),
            working: run
                .open()
                .filter(|handoff| handoff.state.turn().is_some())
                .map(|handoff| handoff.offer.to.to_string())
                .collect(),
            seq: run.seq,
            created_at: run.created_at.rfc3339(),
            updated_at: run.updated_at.rfc3339(),
            held: held(run),
            tally: run.tally.clone(),
            purse: run.purse.clone(),
            phases: PhasesView::of(run),
            council: CouncilView::of(run),
        }
    }
}

/// A handoff as people and programs see it: admitted, or refused with the rule.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum HandoffView {
    /// It was refused.
    Refused(Box<HandoffRefused>),
    /// It was admitted.
    Admitted(Box<Handoff>),
}

pub(crate) fn batch(
    expected_seq: u64,
    events: &[Recorded],
    changed: &[HandoffId],
    next: &Run,
) -> Batch {
    Batch {
        run: next.id,
        expected_seq,
        entries: events.iter().map(entry).collect(),
        row: row(next),
        handoffs: handoffs(events, changed, next),
        snapshot: snapshot(expected_seq, next),
    }
}

pub(crate) fn entry(recorded: &Recorded) -> Entry {
    Entry {
        seq: recorded.seq,
        at: recorded.at,
        name: recorded.event.name().to_owned(),
        handoff: recorded.event.handoff(),
        body: json(&recorded.event),
    }
}

fn row(run: &Run) -> RunRow {
    let view = RunView::of(run);
    RunRow {
        run: run.id,
        title: view.request.clone(),
        status: view.status.clone(),
        waiting_on: view.waiting_on.clone(),
        seq: run.seq,
        created_at: run.created_at,
        updated_at: run.updated_at,
        finished_at: run.status().is_final().then_some(run.updated_at),
        body: json(&view),
        workflow: view.workflow,
    }
}

fn handoffs(events: &[Recorded], changed: &[HandoffId], next: &Run) -> Vec<HandoffRow> {
    let admitted = changed.iter().filter_map(|id| next.handoff(*id)).map(|h| admitted(next, h));
    let refused = events.iter().filter_map(|recorded| match &recorded.event {
        Event::HandoffRefused(event) => Some(refused(next.id, recorded.at, event)),
        _ => None,
    });
    admitted.chain(refused).collect()
}

fn admitted(run: &Run, handoff: &Handoff) -> HandoffRow {
    let closed_at = match &handoff.state {
        State::Closed(closing) => Some(closing.at),
        _ => None,
    };
    HandoffRow {
        run: run.id,
        id: handoff.id,
        from: handoff.offer.from.to_string(),
        to: handoff.offer.to.to_string(),
        reason: handoff.offer.reason.as_str().to_owned(),
        state: handoff.state.word().to_owned(),
        question: matches!(handoff.state, State::Asked { .. }),
        opened_at: handoff.admitted_at,
        updated_at: run.updated_at,
        closed_at,
        body: json(handoff),
    }
}

fn refused(run: RunId, at: Time, event: &HandoffRefused) -> HandoffRow {
    HandoffRow {
        run,
        id: event.id,
        from: event.offer.from.to_string(),
        to: event.offer.to.to_string(),
        reason: event.offer.reason.as_str().to_owned(),
        state: "refused".to_owned(),
        question: false,
        opened_at: at,
        updated_at: at,
        closed_at: Some(at),
        body: json(event),
    }
}

fn snapshot(before: u64, run: &Run) -> Option<Snapshot> {
    let due = before / SNAPSHOT_EVERY != run.seq / SNAPSHOT_EVERY;
    due.then(|| Snapshot { seq: run.seq, body: json(run) })
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("our own types are JSON")
}
