//! Tools for tests with real agents.
//!
//! [`model`] is a model server on loopback that answers by a script; [`cli`] installs the agents'
//! own command lines in pinned versions and points them at it; [`matrix`] tries each of them with
//! Stafette as a new user would; [`tools`] installs third-party
//! programs; [`neo4j`], [`postgres`] and [`radicale`] run third-party servers on loopback; [`disk`]
//! provides a nearly full disk; [`program`] writes programs that a test defines itself. Nothing of
//! this is ever shipped.
//!
//! Invariants: no test connects to anything but loopback once the command lines are installed. A
//! model answers only by its script, and every request to it is recorded. All of it is bounded: an
//! agent that loops is stopped by its model.

pub mod cli;
pub mod disk;
pub mod matrix;
pub mod model;
pub mod neo4j;
pub mod postgres;
pub mod program;
pub mod radicale;
mod server;
pub mod tools;
