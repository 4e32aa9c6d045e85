//! What happens around the runs: commands that hear of them and may say no, times and webhooks that
//! begin them, and news for people who look elsewhere.
//!
//! Invariants:
//! - What a hook is told was stored first, or has not begun yet.
//! - A hook after the fact is started for each event that it wants, in the order of its run; what
//!   was done is noted, so that only a crash can repeat one.
//! - A trigger begins one run for each of its times and each delivery, however often it is tried.
//! - News is kept until its channel took it or its time is over; each has an id for receivers to
//!   know doubles by.
//! - Commands, answers and queues have limits, and every wait has an end.
//!
//! Absent on purpose: rules about runs. They are the engine's.

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

/// How the project's workflow is read: it may have changed, and must be trusted.
pub type ReadWorkflow = dyn Fn() -> Result<Workflow, String> + Send + Sync;
