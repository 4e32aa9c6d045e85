//! What tests bring along to meet real agents.
//!
//! [`model`] is a model server on loopback that says what a script tells it to say; [`cli`] brings
//! the agents' own command lines, pinned, and points them at it; [`tools`] installs programs of others;
//! [`neo4j`], [`postgres`] and [`radicale`] are servers of others, on loopback for the tests; [`disk`]
//! is one that is full soon; [`program`] writes those that a test makes up.
//! Nothing of this is ever shipped.
//!
//! Invariants: no test talks to anything but loopback once the command lines are installed. A model
//! says nothing that its script does not say, and everything that it was asked is on record. All of
//! it is bounded: an agent that runs in circles is stopped by its model.

pub mod cli;
pub mod disk;
pub mod model;
pub mod neo4j;
pub mod postgres;
pub mod program;
pub mod radicale;
mod server;
pub mod tools;
