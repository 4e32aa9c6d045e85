//! The four stages: operations of agents and people on threads, graph, calendar, decisions and
//! insights, and what Stafette itself writes there.
//!
//! `stafette-knowledge` stores and computes; this crate connects it to the runs. A follower of the
//! events mirrors handoffs, records messages, and stores what people approved. A gate checks what
//! the stages hand on: recommendations against the constitution, options by their return, tasks
//! against the calendar.
//!
//! Invariants:
//! - Every request passes [`Actor::may`], and so the one table of rights.
//! - The gate changes nothing but the proposed time of a block that lost its own: its findings
//!   become part of what arrives, and the follower stores them once they are an event.
//! - No two approved blocks overlap, even if they are approved in parallel; and no block that is
//!   moved here begins before what it has to wait for.
//! - The follower stores its position in the file that it writes to, and all that it writes has a
//!   key: after a kill nothing is lost and nothing is stored twice.
//! - A decision and a block of time become real by a person's answer, and by nothing else.
//! - Only a person changes the parameters of the stages.

mod actor;
mod booking;
mod error;
mod follower;
mod gate;
mod goals;
mod graph;
mod insights;
mod keeper;
mod people;
mod planner;
mod ranking;
mod stages;
mod tasks;
mod threads;

use stafette_engine::clock;

pub use actor::Actor;
pub use booking::Moved;
pub use error::StageError;
pub use gate::CHANGED;
pub use graph::Health;
pub use insights::{InsightView, Reading, Reflection};
pub use planner::{Estimate, PlanView, Planned, TaskWish, WeekView};
pub use ranking::{Learned, Ranked};
pub use stages::{Stages, StagesSettings};
pub use tasks::TaskReport;
pub use threads::Saying;
