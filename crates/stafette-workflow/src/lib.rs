//! Workflow files: reading them, checking them, and listing what they can do.
//!
//! What a file can say is defined by `stafette_core::workflow`.
//!
//! Invariants:
//! - No clock, no randomness, no file, no socket: the caller brings the text.
//! - Every problem of a file is reported, with its line and column.
//! - No setting is hidden from the person who has to trust a file.

pub mod check;
mod file;
pub mod gate;
pub mod powers;

pub use file::{Source, parse, read};
