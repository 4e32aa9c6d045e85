//! Integrations around the runs: commands that receive events and may refuse, schedules and
//! webhooks that start runs, and notifications for people.
//!
//! Invariants:
//! - An event is stored before a hook receives it; a hook that may refuse runs before anything
//!   begins.
//! - A hook after the fact runs for each event that it wants, in the order of its run; progress is
//!   saved, so that only a crash can repeat one.
//! - A trigger starts one run for each of its times and each delivery, however often it is tried.
//! - A notification is kept until its channel accepts it or its time has run out; each has an id by
//!   which receivers recognise duplicates.
//! - Commands, responses and queues have limits, and every wait has an end.
//!
//! Absent on purpose: rules about runs. They belong to the engine.

mod command;
mod follower;
mod interceptor;
mod memory;
mod notify;
mod payload;
mod schedule;
mod signature;
mod triggers;

use stafette_core::Workflow;
use stafette_engine::clock;

pub use follower::Follower;
pub use interceptor::Hooks;
pub use notify::{Alarms, Alert, Notifier, Page, Tried};
pub use schedule::{BadZone, next_after, zone};
pub use signature::{sign_message, sign_payload, verify_payload};
pub use triggers::{Delivery, Fired, TriggerError, TriggerView, Triggers};

/// Reads the project's workflow: it may have changed, and must be trusted.
pub type ReadWorkflow = dyn Fn() -> Result<Workflow, String> + Send + Sync;
