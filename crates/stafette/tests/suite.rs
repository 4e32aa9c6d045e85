//! The command line as people and programs use it: the real binary, real processes, real files.

#[path = "suite/bad_input.rs"]
mod bad_input;
#[path = "suite/demo.rs"]
mod demo;
#[path = "suite/documents.rs"]
mod documents;
#[path = "suite/frames.rs"]
mod frames;
#[path = "suite/guide.rs"]
mod guide;
#[path = "suite/project.rs"]
mod project;
#[path = "suite/real_cli.rs"]
mod real_cli;
#[path = "suite/runs.rs"]
mod runs;
#[path = "suite/sandbox.rs"]
mod sandbox;
#[path = "suite/terminal.rs"]
mod terminal;
#[path = "suite/top.rs"]
mod top;
#[path = "suite/world.rs"]
mod world;
