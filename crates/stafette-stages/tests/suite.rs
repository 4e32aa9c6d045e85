//! The stages on a real file and a run of the template, without any process.

#[path = "suite/edges.rs"]
mod edges;
#[path = "suite/gate.rs"]
mod gate;
#[path = "suite/story.rs"]
mod story;
