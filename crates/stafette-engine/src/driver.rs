//! One run between the core and the store, without any waiting: both the task and the simulation
//! use it.

use std::collections::BTreeSet;
use std::sync::Arc;

use stafette_core::run::create::RunCreated;
use stafette_core::run::permission::Permit;
use stafette_core::run::propose::Refusal;
use stafette_core::team::order::{Order, OrderKey};
use stafette_core::{
    Event, HandoffId, Input, Recorded, Reply, Run, RunId, Time, TurnKey, TurnOrder,
};
use stafette_store::{Batch, Loaded};
use thiserror::Error;

use crate::{measure, record};

/// A run with its turns and other orders in progress.
#[derive(Clone, Debug)]
pub struct Driver {
    run: Run,
    out: BTreeSet<TurnKey>,
    orders: BTreeSet<OrderKey>,
}

/// A decision that is not in effect yet: it has to be stored first.
#[derive(Clone, Debug)]
pub struct Step {
    /// The number of the last event before it.
    pub expected_seq: u64,
    /// The events of this step.
    pub events: Vec<Recorded>,
    /// The reply to each input, in the order of the inputs.
    pub replies: Vec<Reply>,
    /// The handoffs that it changes.
    changed: Vec<HandoffId>,
    next: Run,
}

/// The actions that follow from the stored events.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Plan {
    /// The turns to start now.
    pub start: Vec<TurnOrder>,
    /// Turns to stop: their results are no longer wanted.
    pub stop: Vec<TurnKey>,
    /// Answers for turns in progress that asked; giving one twice is harmless.
    pub permits: Vec<(TurnKey, Permit)>,
    /// The orders besides turns to carry out now.
    pub orders: Vec<Order>,
}

/// The stored data is not a run.
#[derive(Debug, Error)]
pub enum RestoreError {
    /// An event or the snapshot cannot be read.
    #[error("event {seq} of the run cannot be read")]
    Unreadable {
        /// The number of the event; the snapshot's number when it is the snapshot.
        seq: u64,
        /// The error of the JSON parser.
        source: serde_json::Error,
    },
    /// The events do not begin with the creation of a run.
    #[error("the run has no beginning")]
    NoBeginning,
}

impl Step {
    /// The first step of a run.
    fn first(events: Vec<Recorded>, next: Run) -> Self {
        let changed = next.handoffs.keys().copied().collect();
        Step { expected_seq: 0, events, replies: Vec::new(), changed, next }
    }

    /// The batch for the store to write.
    pub fn batch(&self) -> Batch {
        record::batch(self.expected_seq, &self.events, &self.changed, &self.next)
    }

    /// The run after the step.
    pub(crate) fn run(&self) -> &Run {
        &self.next
    }

    /// True if the run has ended after the step.
    pub fn is_end(&self) -> bool {
        self.next.status().is_final()
    }

    /// The orders besides turns that are open after the step.
    pub fn orders(&self) -> Vec<Order> {
        self.next.orders()
    }

    /// The refusal of a handoff that is too large, if the step has one.
    pub fn too_large(&self) -> Option<Refusal> {
        self.events.iter().find_map(|recorded| match &recorded.event {
            Event::HandoffRefused(refused) => {
                let refusal = &refused.refusal;
                matches!(refusal, Refusal::TooLarge { .. }).then(|| refusal.clone())
            }
            _ => None,
        })
    }

    /// True if the step has no events.
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
    }
}

impl Driver {
    /// A driver of this run, with nothing in progress.
    pub(crate) fn of(run: Run) -> Self {
        Driver { run, out: BTreeSet::new(), orders: BTreeSet::new() }
    }

    /// Creates a run. It exists once the step is stored and committed.
    #[must_use]
    pub fn begin(now: Time, created: RunCreated) -> (Driver, Step) {
        let events = number(0, now, Run::begin(now, created));
        let next = Run::replay(&events).expect("a run begins with its creation");
        let driver = Driver::of(next.clone());
        (driver, Step::first(events, next))
    }

    /// Creates a run that continues from another one as it was; `None` when that had ended. It
    /// exists once the step is stored.
    #[must_use]
    pub fn fork(now: Time, from: &Run, run: RunId, by: String) -> Option<(Driver, Step)> {
        let events = number(0, now, from.fork(now, run, by)?);
        let next = Run::replay(&events).expect("a run begins with its fork");
        let driver = Driver::of(next.clone());
        Some((driver, Step::first(events, next)))
    }

    /// Adds what further inputs lead to, to the first step of a run that is not stored yet.
    #[must_use]
    pub(crate) fn begin_with(
        now: Time,
        first: Step,
        inputs: impl IntoIterator<Item = Input>,
    ) -> (Driver, Step) {
        let mut step = Driver::of(first.next).decide(now, inputs);
        step.expected_seq = first.expected_seq;
        step.events.splice(0..0, first.events);
        step.changed = step.next.handoffs.keys().copied().collect();
        (Driver::of(step.next.clone()), step)
    }

    /// Restores a run from the store. None of its turns is in progress yet.
    ///
    /// # Errors
    /// When the stored data is not a run.
    pub fn restore(loaded: &Loaded) -> Result<Driver, RestoreError> {
        let unreadable = |seq| move |source| RestoreError::Unreadable { seq, source };
        let mut events = Vec::with_capacity(loaded.entries.len());
        for stored in &loaded.entries {
            let entry = &stored.entry;
            let event = Event::from_json(&entry.body).map_err(unreadable(entry.seq))?;
            events.push(Recorded { seq: entry.seq, at: entry.at, event });
        }
        let run = match &loaded.snapshot {
            None => Run::replay(&events).ok_or(RestoreError::NoBeginning)?,
            Some(snapshot) => {
                let mut run = Run::from_json(&snapshot.body).map_err(unreadable(snapshot.seq))?;
                for recorded in &events {
                    run.apply(recorded.at, &recorded.event);
                }
                run
            }
        };
        Ok(Driver::of(run))
    }

    /// Replaces the run with the stored one. Turns in progress continue, and the next
    /// [`commit`](Driver::commit) stops those that are no longer wanted.
    ///
    /// # Errors
    /// When the stored data is not a run.
    pub fn reload(&mut self, loaded: &Loaded) -> Result<(), RestoreError> {
        self.run = Driver::restore(loaded)?.run;
        Ok(())
    }

    /// The run as it is now.
    pub fn run(&self) -> &Run {
        &self.run
    }

    /// Decides on these inputs: the events that follow, and the reply to each input. Changes
    /// nothing.
    pub fn decide(&self, now: Time, inputs: impl IntoIterator<Item = Input>) -> Step {
        let mut draft = self.run.draft(now);
        let mut replies = Vec::new();
        for mut input in inputs {
            measure::add(draft.run(), &mut input);
            replies.push(draft.take(input));
        }
        let (expected_seq, now) = (self.run.seq, draft.now());
        let (events, next) = draft.finish();
        let changed = changed(&self.run, &next);
        Step { expected_seq, events: number(expected_seq, now, events), replies, changed, next }
    }

    /// Puts a stored step into effect while the run is stopped. Only what people asked for in this
    /// very step is done; everything else is part of a later plan.
    pub fn take(&mut self, step: Step) -> Plan {
        let known: BTreeSet<OrderKey> = self.run.orders().iter().map(Order::key).collect();
        self.run = step.next;
        let mut orders = self.run.orders();
        orders.retain(|order| order.is_asked_for() && !known.contains(&order.key()));
        self.orders.extend(orders.iter().map(Order::key));
        Plan { orders, ..Plan::default() }
    }

    /// Puts a stored step into effect, and returns the actions to take.
    pub fn commit(&mut self, step: Step) -> Plan {
        self.run = step.next;
        let (mut keys, mut permits) = (BTreeSet::new(), Vec::new());
        for (key, handoff) in self.run.turns_out() {
            keys.insert(key);
            if self.out.contains(&key) {
                permits.extend(handoff.permits.iter().map(|it| (key, it.clone())));
            }
        }
        // An order is a copy of everything that its agent is given, so only those to start are
        // made.
        let start = keys.difference(&self.out).filter_map(|key| self.run.order(*key)).collect();
        let stop = self.out.difference(&keys).copied().collect();
        self.out = keys;
        let mut orders = self.run.orders();
        let open = orders.iter().map(Order::key).collect();
        orders.retain(|order| !self.orders.contains(&order.key()));
        self.orders = open;
        Plan { start, stop, permits, orders }
    }
}

/// The handoffs that differ. A step copies what it changes and shares the rest.
fn changed(before: &Run, next: &Run) -> Vec<HandoffId> {
    let same = |id: &HandoffId, now| before.handoffs.get(id).is_some_and(|it| Arc::ptr_eq(it, now));
    let changed = next.handoffs.iter().filter(|(id, now)| !same(id, now));
    changed.map(|(id, _)| *id).collect()
}

fn number(after: u64, at: Time, events: Vec<Event>) -> Vec<Recorded> {
    (after + 1..).zip(events).map(|(seq, event)| Recorded { seq, at, event }).collect()
}
