//! Knowledge and plans: threads of discussion, a graph of their results, a calendar, and the
//! computations of the four stages.
//!
//! Pure parts, which decide: [`rights`], [`constitution`], [`roi`], [`mind`]. Parts that store:
//! history and graph in SQLite, the graph in Neo4j, the calendar in files or behind CalDAV.
//!
//! Invariants:
//! - One function decides about every read and write: [`rights::check`].
//! - Every node of the graph records who wrote it, when, and for which handoff.
//! - Two writes under one key have the effect of one.
//! - Time is passed in; nothing here reads a clock.
//! - Foreign types (`rusqlite`, `roxmltree`) stop in the module that wraps them.

pub mod calendar;
pub mod constitution;
pub mod graph;
pub mod history;
pub mod mind;
mod neo4j;
pub mod rights;
pub mod roi;
mod sqlite;

pub use neo4j::{Neo4jGraph, Neo4jSettings};
pub use sqlite::{Base, CursorError, Cursors, OpenError, SqliteGraph, Versions, VersionsError};
