//! A run whose agents take no time: each turn is accepted and finished as soon as it is given out.

use std::sync::Arc;
use std::time::{Duration, Instant};

use stafette_core::handoff::Receipt;
use stafette_core::run::budget::Forecast;
use stafette_core::run::create::RunCreated;
use stafette_core::{
    Fields, Input, Kind, Millis, Offer, Outcome, Party, Reason, Response, RunId, Status, Time,
    TurnOrder, TurnResult, Workflow,
};
use stafette_engine::{Driver, Fresh, Source, Step};
use stafette_store::{Batch, Store};

use crate::BenchError;

/// Two agents that may hand over to each other without end.
const WORKFLOW: &str = r#"
[workflow]
name = "null"
entry = "reviewer"
[agents.reviewer]
runner = "scripted"
[agents.fixer]
runner = "scripted"
[[routes]]
from = "reviewer"
to = "fixer"
[[routes]]
from = "fixer"
to = "reviewer"
[[loops]]
name = "review"
between = ["reviewer", "fixer"]
max_rounds = 4294967295
[limits]
handoffs_per_item = 4294967295
handoffs_per_run = 4294967295
turns_per_handoff = 4294967295
cooldown = 0
[budget]
handoffs = 4294967295
"#;

/// The start of all runs; no rule depends on the date.
pub(crate) const BEGIN: Time = Time(1_760_000_000_000);

/// The time that passes with every turn; without it a run could not recognise what is old.
pub(crate) const TURN: Millis = Millis(1);

/// The number of handoffs that are written together if only the result matters.
const TOGETHER: u32 = 64;

/// The number of events after a snapshot that is close to the most that opening a run has to
/// replay.
const REPLAYED: u64 = 200;

/// The shape of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shape {
    /// The work goes round a declared loop: one turn per handoff.
    Loop,
    /// One agent asks the other repeatedly: a turn there and a turn back for each handoff.
    Delegations,
}

impl Shape {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Shape::Loop => "loop",
            Shape::Delegations => "delegations",
        }
    }

    fn turns(self) -> u32 {
        match self {
            Shape::Loop => 1,
            Shape::Delegations => 2,
        }
    }
}

/// The cost of one handoff.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cost {
    /// The time to decide the events.
    pub(crate) decide: Duration,
    /// The time to turn them into what the store writes.
    pub(crate) record: Duration,
    /// The time to store them.
    pub(crate) append: Duration,
    /// The time to apply them, and to find the work to do.
    pub(crate) commit: Duration,
    /// Bytes of text for the store, without a snapshot that happened to be due.
    pub(crate) bytes: u64,
    /// The size of the snapshot, in bytes.
    pub(crate) snapshot_bytes: u64,
}

impl Cost {
    /// Returns the total time.
    pub(crate) fn total(&self) -> Duration {
        self.computing() + self.append
    }

    /// Returns the time without the store.
    pub(crate) fn computing(&self) -> Duration {
        self.decide + self.record + self.commit
    }
}

/// A run with agents that take no time.
#[derive(Debug)]
pub(crate) struct NullRun {
    driver: Driver,
    shape: Shape,
    orders: Vec<TurnOrder>,
    now: Time,
    made: u32,
    position: u64,
}

impl NullRun {
    pub(crate) async fn begin(
        store: &dyn Store,
        number: u32,
        shape: Shape,
    ) -> Result<Self, BenchError> {
        Self::begin_traced(store, number, shape, None).await
    }

    /// Begins a run, with a receiver of its traces.
    pub(crate) async fn begin_traced(
        store: &dyn Store,
        number: u32,
        shape: Shape,
        otlp: Option<String>,
    ) -> Result<Self, BenchError> {
        let mut created = created(number)?;
        Arc::make_mut(&mut created.workflow).telemetry.otlp = otlp;
        let (mut driver, step) = Driver::begin(BEGIN, created);
        let position = store.append(step.batch()).await?;
        let orders = driver.commit(step).start;
        Ok(NullRun { driver, shape, orders, now: BEGIN, made: 0, position })
    }

    pub(crate) fn id(&self) -> RunId {
        self.driver.run().id
    }

    /// Returns the number of handoffs between agents so far.
    pub(crate) fn made(&self) -> u32 {
        self.made
    }

    /// Returns the position of its last event that was stored alone.
    pub(crate) fn position(&self) -> u64 {
        self.position
    }

    /// Makes one handoff, durably.
    pub(crate) async fn hand_over(&mut self, store: &dyn Store) -> Result<Cost, BenchError> {
        self.hand_over_seen(store, None).await
    }

    /// Makes one handoff, and passes what was stored to the followers, as the engine does.
    pub(crate) async fn hand_over_seen(
        &mut self,
        store: &dyn Store,
        source: Option<&Source>,
    ) -> Result<Cost, BenchError> {
        let mut cost = Cost::default();
        for _ in 0..self.shape.turns() {
            let (mut step, batch) = self.prepare(&mut cost)?;
            let begin = Instant::now();
            let bytes = batch.entries.iter().map(|entry| entry.body.len()).sum();
            self.position = store.append(batch).await?;
            cost.append += begin.elapsed();
            if let Some(source) = source {
                let (run, events) = (self.id(), std::mem::take(&mut step.events).into());
                source.give(self.position, &Fresh { run, events, bytes });
            }
            self.commit(step, &mut cost);
        }
        self.made += 1;
        Ok(cost)
    }

    /// Makes many handoffs, and stores them a few at a time.
    pub(crate) async fn grow(
        &mut self,
        store: &dyn Store,
        handoffs: u32,
    ) -> Result<(), BenchError> {
        let mut left = handoffs;
        while left > 0 {
            let now = left.min(TOGETHER);
            let mut merged = Merged::default();
            for _ in 0..now {
                self.merge(&mut merged)?;
            }
            merged.store(store).await?;
            left -= now;
        }
        Ok(())
    }

    /// Continues until a snapshot is about to be due: runs after this call are equally far from
    /// theirs.
    pub(crate) async fn near_snapshot(&mut self, store: &dyn Store) -> Result<(), BenchError> {
        let mut merged = Merged::default();
        while merged.behind_snapshot().is_none_or(|events| events < REPLAYED) {
            self.merge(&mut merged)?;
        }
        merged.store(store).await
    }

    /// Ends the run successfully, and returns the number of handoffs that it reports.
    pub(crate) async fn end(mut self, store: &dyn Store) -> Result<u32, BenchError> {
        let inputs = self.orders.iter().flat_map(|order| take_turn(order, None));
        let step = self.driver.decide(self.now + TURN, inputs.collect::<Vec<_>>());
        store.append(step.batch()).await?;
        self.driver.commit(step);
        let run = self.driver.run();
        if run.status() != Status::Succeeded || run.tally.handoffs != self.made {
            let (status, had, made) = (run.status(), run.tally.handoffs, self.made);
            return Err(format!("a run of {made} handoffs {status} after {had}").into());
        }
        Ok(run.tally.handoffs)
    }

    fn merge(&mut self, merged: &mut Merged) -> Result<(), BenchError> {
        for _ in 0..self.shape.turns() {
            let mut cost = Cost::default();
            let (step, batch) = self.prepare(&mut cost)?;
            merged.add(batch);
            self.commit(step, &mut cost);
        }
        self.made += 1;
        Ok(())
    }

    fn prepare(&mut self, cost: &mut Cost) -> Result<(Step, Batch), BenchError> {
        if self.orders.is_empty() {
            let status = self.driver.run().status();
            return Err(format!("nobody has a turn after {} handoffs: {status}", self.made).into());
        }
        let inputs: Vec<Input> = self
            .orders
            .iter()
            .flat_map(|order| take_turn(order, offer(self.shape, order, self.made)))
            .collect();
        self.now = self.now + TURN;
        let begin = Instant::now();
        let step = self.driver.decide(self.now, inputs);
        let decided = Instant::now();
        let batch = step.batch();
        cost.decide += decided - begin;
        cost.record += decided.elapsed();
        let snapshot = batch.snapshot.as_ref().map_or(0, |snapshot| snapshot.body.len());
        cost.bytes += (batch.bytes() - snapshot) as u64;
        cost.snapshot_bytes += snapshot as u64;
        Ok((step, batch))
    }

    fn commit(&mut self, step: Step, cost: &mut Cost) {
        let begin = Instant::now();
        self.orders = self.driver.commit(step).start;
        cost.commit += begin.elapsed();
    }
}

/// Returns the first event of the run with that number.
pub(crate) fn created(number: u32) -> Result<RunCreated, BenchError> {
    let workflow: Workflow =
        stafette_workflow::parse(WORKFLOW).map_err(|found| format!("{found:?}"))?;
    let run = format!("00000000-0000-7000-8000-{number:012x}").parse()?;
    let free = workflow.agents.keys().map(|name| (name.to_string(), Forecast::Unmetered));
    let forecasts = Some(free.collect());
    let created = RunCreated::new(run, Arc::new(workflow), "Measure what a handoff costs", "bench");
    Ok(RunCreated { forecasts, ..created })
}

/// Returns the offer of an agent at the end of a turn, if it makes one.
pub(crate) fn offer(shape: Shape, order: &TurnOrder, round: u32) -> Option<Offer> {
    let (to, kind) = match (shape, order.agent.as_str()) {
        (Shape::Loop, "reviewer") => ("fixer", Kind::Transfer),
        (Shape::Loop, _) => ("reviewer", Kind::Transfer),
        (Shape::Delegations, "reviewer") => ("fixer", Kind::Delegate),
        (Shape::Delegations, _) => return None,
    };
    let mut outputs = Fields::new();
    outputs.insert("commit".into(), format!("{round:040x}").into());
    outputs.insert("tests".into(), true.into());
    Some(Offer {
        summary: format!("Round {round}: two findings in src/login.rs, both about expiry."),
        outputs,
        ..Offer::new(Party::from(&order.agent), to.into(), kind, Reason::TaskHandoff)
    })
}

/// Returns the inputs that accept and finish a turn immediately.
pub(crate) fn take_turn(order: &TurnOrder, offer: Option<Offer>) -> [Input; 2] {
    let turn = order.key;
    // The work looks different after each turn: every round of a loop makes progress.
    let fingerprint = Some(format!("{:08x}{:08x}", turn.handoff.0, turn.turn));
    let response = Response::new(Party::from(&order.agent), Outcome::Resolved);
    let offers = offer.into_iter().collect();
    let result = TurnResult { offers, fingerprint, ..TurnResult::new(response) };
    [
        Input::Receipt { turn, receipt: Receipt::Acknowledged },
        Input::Finish { turn, result: Box::new(result) },
    ]
}

/// Several batches merged into one.
#[derive(Debug, Default)]
struct Merged {
    batch: Option<Batch>,
}

impl Merged {
    fn add(&mut self, next: Batch) {
        let Some(batch) = &mut self.batch else {
            self.batch = Some(next);
            return;
        };
        batch.entries.extend(next.entries);
        batch.handoffs.extend(next.handoffs);
        batch.row = next.row;
        batch.snapshot = next.snapshot.or(batch.snapshot.take());
    }

    /// Returns the number of events after the snapshot, if there is one.
    fn behind_snapshot(&self) -> Option<u64> {
        let batch = self.batch.as_ref()?;
        batch.snapshot.as_ref().map(|snapshot| batch.row.seq - snapshot.seq)
    }

    async fn store(self, store: &dyn Store) -> Result<(), BenchError> {
        if let Some(batch) = self.batch {
            store.append(batch).await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measurement_may_be_longer_than_any_run() {
        let created = created(1).expect("a run");
        assert_eq!(created.budget.handoffs, u32::MAX);
        assert_eq!(created.workflow.limits.handoffs_per_run, u32::MAX);
    }
}
