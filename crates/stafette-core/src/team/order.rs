//! Orders besides turns: applying sets, keeping what people say of them, collecting the outcome of
//! a run, and beginning the next generation.
//!
//! A run lists what is to be done, as it lists its turns. The engine starts what it has not started
//! yet, and every order ends with an event. A crash therefore needs no repair: whatever is listed is
//! started again, and finds what the earlier attempt has done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::TeamEvent;
use super::change::{ChangeWork, Hand};
use crate::change::ChangeId;
use crate::{Draft, Event, Ignored, Reply, Run, RunId, Time};

/// Work that a run wants done.
#[derive(Clone, PartialEq, Debug)]
pub enum Order {
    /// Writes what people decided and said about a set to its record.
    Note {
        /// The set that they spoke about.
        change: ChangeId,
        /// The number of the last event about it.
        upto: u64,
    },
    /// Applies a set, or takes it back.
    Change {
        key: WorkKey,
        /// The action that is wanted.
        work: ChangeWork,
        revision: u32,
        /// The party that wants it.
        by: Hand,
    },
    /// Proposes the changes that another orchestrator left.
    Import,
    /// Leaves the outcome of the worktrees on a branch, and proposes it as a set.
    Collect,
    /// Counts the changes of a run that has ended, so that it can hand over.
    HandOver,
    /// Begins the run that follows, and applies first what is ready.
    Begin { not_before: Time },
}

/// The identity of an order to apply a set or to take it back.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
pub struct WorkKey {
    /// The run that recorded the order.
    pub run: RunId,
    /// The set that it is about.
    pub change: ChangeId,
    /// The number of the event that ordered it.
    pub seq: u64,
}

/// The place of an order among those that are carried out together.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
pub struct OrderBatch {
    /// The identity of the batch, the same for all of its orders.
    #[schemars(with = "String")]
    pub id: Uuid,
    /// The position of the set in it, from 0.
    pub place: u32,
}

/// The identity of an order: the same key is the same work.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(tag = "order", rename_all = "snake_case")]
pub enum OrderKey {
    /// What people said about a set is in its record.
    Note {
        /// The set that they spoke about.
        change: ChangeId,
        /// The number of the last event about it.
        upto: u64,
    },
    /// An order for a set; it ends with the status of the set.
    Change(WorkKey),
    /// The changes that another orchestrator left were proposed, or cannot be.
    Import,
    /// The outcome of the worktrees was collected.
    Collect,
    /// The handover; it ends with an event of its own.
    HandOver,
    /// The run that follows has begun, or was not allowed to.
    Begin,
}

impl Order {
    /// Returns the identity of the order.
    pub fn key(&self) -> OrderKey {
        match *self {
            Order::Note { change, upto } => OrderKey::Note { change, upto },
            Order::Change { key, .. } => OrderKey::Change(key),
            Order::Import => OrderKey::Import,
            Order::Collect => OrderKey::Collect,
            Order::HandOver => OrderKey::HandOver,
            Order::Begin { .. } => OrderKey::Begin,
        }
    }

    /// True if a person asked for it, so that it is done even while the run itself is stopped.
    pub fn is_asked_for(&self) -> bool {
        matches!(self, Order::Note { .. } | Order::Change { .. })
    }
}

/// The orders that a run gives once, and that are done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DoneOrders {
    /// True if the run has ended under a release that gives these orders; an earlier one did their
    /// work without a record.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub listed: bool,
    /// True once the changes of another orchestrator were proposed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
    /// True once the outcome of the worktrees was collected.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub collected: bool,
    /// True once the run that follows has begun.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub begun: bool,
}

impl DoneOrders {
    /// True if none of them is done.
    pub(super) fn is_none(&self) -> bool {
        *self == DoneOrders::default()
    }

    /// True if everything that follows the end of a run was done by an earlier release.
    pub(super) fn is_old(run: &Run) -> bool {
        run.status().is_final() && !run.team.done.listed
    }
}

/// An order was carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OrderDone {
    /// The identity of the order.
    #[serde(flatten)]
    pub order: OrderKey,
}

/// Records that an order is done, once.
pub(super) fn done(draft: &mut Draft, order: OrderKey) -> Reply {
    if !draft.run.orders().iter().any(|open| open.key() == order) {
        return Reply::Ignored(Ignored::Unchanged);
    }
    draft.record(Event::Team(TeamEvent::OrderDone(OrderDone { order })));
    Reply::Recorded
}

impl OrderDone {
    pub(super) fn apply(self, run: &mut Run) {
        let done = &mut run.team.done;
        match self.order {
            OrderKey::Import => done.imported = true,
            OrderKey::Collect => done.collected = true,
            OrderKey::Begin => done.begun = true,
            OrderKey::Note { change, upto } => {
                if let Some(known) = run.team.changes.get_mut(&change)
                    && known.unwritten == Some(upto)
                {
                    known.unwritten = None;
                }
            }
            // They end with events of their own.
            OrderKey::Change(_) | OrderKey::HandOver => {}
        }
    }
}
