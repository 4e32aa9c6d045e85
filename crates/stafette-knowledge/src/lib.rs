//! What is known and planned: threads of talk, a graph of what came of them, a calendar, and the
//! reckoning that the four stages do with them.
//!
//! Pure parts, which decide: [`rights`], [`constitution`], [`roi`], [`mind`]. Parts that keep
//! something: history and graph in SQLite, the graph in Neo4j, the calendar in files or behind
//! CalDAV.
//!
//! Invariants:
//! - Whether somebody may read or write is asked of one function, [`rights::check`].
//! - Every node of the graph says who wrote it, when, and for which handoff.
//! - What is written twice under one key is there once.
//! - Time is handed in; nothing here reads a clock.
//! - Foreign types (`rusqlite`, `neo4rs`, `roxmltree`) stop in the module that wraps them.

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
