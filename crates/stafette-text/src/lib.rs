//! Text from outside: its secrets are removed before it is kept, and it is shown in a form that
//! cannot steer a terminal.
//!
//! Invariants:
//! - No clock, no randomness, no file, no socket.
//! - The time is linear in the length of the text.

pub mod clean;
mod clip;
pub mod hex;
pub mod redact;
mod spelling;

pub use clip::clip;
pub use spelling::nearest;
