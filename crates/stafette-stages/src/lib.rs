//! The four stages: what agents and people ask of threads, graph, calendar, decisions and insights,
//! and what Stafette itself writes there.
//!
//! `stafette-knowledge` keeps and reckons; here it meets the runs. A follower of the events mirrors
//! handoffs, records talk, and writes down what people approved. A gate looks at what the stages
//! hand on: recommendations against the constitution, options by their return, tasks against the
//! calendar.
//!
//! Invariants:
//! - Everything that is asked for passes [`Actor::may`], and so the one table of rights.
//! - The gate changes nothing but where a block is proposed that lost its place: what it finds
//!   becomes part of what arrives, and is written down by the follower once it is an event.
//! - No two blocks that people said yes to overlap, also when they say it at once; and none that is
//!   moved here begins before what it has to wait for.
//! - The follower keeps its place in the file that it writes to, and all that it writes has a key:
//!   after a kill nothing is lost and nothing is there twice.
//! - A decision and a block of time become real by a person's answer, and by nothing else.
//! - Only a person changes what the stages reckon with.

mod actor;
mod booking;
mod fault;
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
pub use fault::Fault;
pub use gate::CHANGED;
pub use graph::Health;
pub use insights::{InsightView, Reading, Reflection};
pub use planner::{Estimate, PlanView, Planned, TaskWish, WeekView};
pub use ranking::{Learned, Ranked};
pub use stages::{Stages, StagesSettings};
pub use tasks::TaskReport;
pub use threads::Saying;
