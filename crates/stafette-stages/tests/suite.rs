//! The stages on a real file, and runs that need no process.

#[path = "suite/edges.rs"]
mod edges;
#[path = "suite/gate.rs"]
mod gate;
#[path = "suite/reading.rs"]
mod reading;
#[path = "suite/secrets.rs"]
mod secrets;
#[path = "suite/story.rs"]
mod story;
