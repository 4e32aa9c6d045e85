//! Orders besides turns: applying sets, keeping and forwarding what people say of them, collecting
//! the outcome of a run, and beginning the next generation.
//!
//! A run lists what is to be done, as it lists its turns. The engine starts what it has not started
//! yet, and every order ends with an event. A crash therefore needs no repair: whatever is listed is
//! started again, and finds what the earlier attempt has done.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::{Builder, Uuid};

use super::TeamEvent;
use super::change::{ChangeWork, Forward, Hand, Heard};
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
    /// Has a comment on a set reach its agent although the run has ended: in the generation that
    /// continues, or in a run that begins with it.
    Forward {
        /// The set that it is about.
        change: ChangeId,
        /// The comment.
        forward: Forward,
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
    /// A comment on a set was forwarded, or nobody is left to receive it.
    Forward {
        /// The set that it is about.
        change: ChangeId,
        /// The number of the event that recorded it.
        comment: u64,
    },
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
            Order::Forward { change, ref forward } => {
                OrderKey::Forward { change, comment: forward.seq }
            }
            Order::Import => OrderKey::Import,
            Order::Collect => OrderKey::Collect,
            Order::HandOver => OrderKey::HandOver,
            Order::Begin { .. } => OrderKey::Begin,
        }
    }

    /// True if a person asked for it, so that it is done even while the run itself is stopped.
    pub fn is_asked_for(&self) -> bool {
        matches!(self, Order::Note { .. } | Order::Change { .. } | Order::Forward { .. })
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
    /// True if everything that follows the end of a run was done by an earlier release.
    pub(super) fn is_old(run: &Run) -> bool {
        run.status().is_final() && !run.team.done.listed
    }
}

/// The maximum number of files named in [`Leftover`].
pub const MOST_LEFT: usize = 100;

/// What the agents of a run left in their worktrees and is in no change, and where it is.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Leftover {
    /// The branch that has it; `None` if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub branch: Option<String>,
    /// The worktree that stays because only it has some of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The reason why nothing of it was looked at; empty if it was.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The number of files.
    pub count: usize,
    /// The first files, up to `MOST_LEFT`.
    pub files: Vec<LeftFile>,
}

/// A file that an agent left and that is in no change.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LeftFile {
    /// The path, relative to the project.
    pub file: String,
    /// The reason why no change has it.
    pub why: String,
}

impl Leftover {
    /// Adds files, of which the first are named.
    pub fn add(&mut self, files: impl IntoIterator<Item = LeftFile>) {
        for file in files {
            self.count += 1;
            if self.files.len() < MOST_LEFT {
                self.files.push(file);
            }
        }
    }

    /// True if everything is in a change.
    pub fn is_empty(&self) -> bool {
        self.count == 0 && self.why.is_empty()
    }

    /// Says in one sentence what there is and where.
    pub fn told(&self) -> String {
        let what = match self.count {
            0 => format!("The work is in no change: {}", self.why),
            1 => "1 file is in no change".to_owned(),
            count => format!("{count} files are in no change"),
        };
        match (&self.branch, &self.folder) {
            (_, Some(folder)) => format!("{what}, but in {folder}"),
            (Some(branch), None) => format!("{what}, but on the branch {branch}"),
            (None, None) => what,
        }
    }
}

/// An order was carried out.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct OrderDone {
    /// The identity of the order.
    #[serde(flatten)]
    pub order: OrderKey,
    /// The receiver of a comment that was forwarded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<Heard>,
    /// What the agents left that is in no change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Box<Leftover>>,
}

/// Records that an order is done, once.
pub(super) fn done(
    draft: &mut Draft,
    order: OrderKey,
    heard: Option<Heard>,
    left: Option<Box<Leftover>>,
) -> Reply {
    if !draft.run.orders().iter().any(|open| open.key() == order) {
        return Reply::Ignored(Ignored::Unchanged);
    }
    draft.record(Event::Team(TeamEvent::OrderDone(OrderDone { order, heard, left })));
    Reply::Recorded
}

/// Ends what would begin other runs after this one has ended.
pub(super) fn cancel(draft: &mut Draft) -> Reply {
    let begins = |order: Order| match order {
        Order::Begin { .. } => Some((order.key(), None)),
        Order::Forward { .. } => {
            Some((order.key(), Some(Heard::Nobody { why: "it was cancelled".to_owned() })))
        }
        _ => None,
    };
    let mut reply = Reply::Ignored(Ignored::Ended);
    // The next comment is to be forwarded only when the one before it is done.
    while let Some((order, heard)) = draft.run.orders().into_iter().find_map(begins) {
        reply = done(draft, order, heard, None);
    }
    reply
}

/// Returns the id of a run that an order of `run` begins: a UUIDv7 of the time `at` whose random part
/// follows from the run and the name of the order, so that beginning it twice begins it once.
pub fn begun_id(run: RunId, order: &str, at: Time) -> RunId {
    let chance = chance_of(Uuid::new_v5(&run.0, order.as_bytes()));
    let moment = u64::try_from(at.0).unwrap_or(0);
    RunId(Builder::from_unix_timestamp_millis(moment, &chance).into_uuid())
}

/// Returns the random part of a UUIDv7 that follows from a hash: both ends of it, because its middle
/// holds the version and variant of the UUID.
pub fn chance_of(hash: Uuid) -> [u8; 10] {
    let mut chance = [0; 10];
    chance[..6].copy_from_slice(&hash.as_bytes()[..6]);
    chance[6..].copy_from_slice(&hash.as_bytes()[12..]);
    chance
}

impl OrderDone {
    pub(super) fn apply(&self, run: &mut Run) {
        let done = &mut run.team.done;
        match self.order {
            OrderKey::Import => done.imported = true,
            OrderKey::Collect => {
                done.collected = true;
                run.team.left.clone_from(&self.left);
            }
            OrderKey::Begin => done.begun = true,
            OrderKey::Note { change, upto } => {
                if let Some(known) = run.team.changes.get_mut(&change)
                    && known.unwritten == Some(upto)
                {
                    known.unwritten = None;
                }
            }
            OrderKey::Forward { change, comment } => {
                if let Some(known) = run.team.changes.get_mut(&change) {
                    known.forward(comment, self.heard.clone().unwrap_or_default());
                }
            }
            // They end with events of their own.
            OrderKey::Change(_) | OrderKey::HandOver => {}
        }
    }
}
