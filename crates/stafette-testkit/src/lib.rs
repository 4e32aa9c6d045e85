//! Tools for tests with real agents.
//!
//! [`model`] is a model on loopback that answers by a script, the one of `doctor --try`; [`cli`]
//! installs the agents' own command lines in pinned versions and points them at it; [`matrix`] tries
//! each of them with Stafette as a new user would; [`tools`] installs third-party programs;
//! [`neo4j`], [`postgres`] and [`radicale`] run third-party servers on loopback; [`disk`] provides a
//! nearly full disk; [`program`] writes programs that a test defines itself. Nothing else of this is
//! ever shipped.
//!
//! Invariants: no test connects to anything but loopback once the command lines are installed. A
//! model answers only by its script, and every request to it is recorded. All of it is bounded: an
//! agent that loops is stopped by its model.

pub mod cli;
pub mod disk;
pub mod matrix;
pub mod neo4j;
pub mod postgres;
pub mod program;
pub mod radicale;
mod server;
pub mod tools;

pub use stafette_fake_model as model;
