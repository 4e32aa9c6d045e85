//! The command line as people and programs use it: the real binary, real processes, real files.

<<<<<<< HEAD
#[path = "suite/attach.rs"]
mod attach;
=======
#[path = "suite/a2a.rs"]
mod a2a;
>>>>>>> a2a
#[path = "suite/bad_input.rs"]
mod bad_input;
#[path = "suite/corpus.rs"]
mod corpus;
#[path = "suite/demo.rs"]
mod demo;
#[path = "suite/documents.rs"]
mod documents;
#[path = "suite/echoes.rs"]
mod echoes;
#[path = "suite/frames.rs"]
mod frames;
#[path = "suite/guide.rs"]
mod guide;
#[path = "suite/locks.rs"]
mod locks;
#[path = "suite/hostile_agents.rs"]
mod hostile_agents;
#[path = "suite/project.rs"]
mod project;
#[path = "suite/real_cli.rs"]
mod real_cli;
#[path = "suite/runs.rs"]
mod runs;
#[path = "suite/terminal.rs"]
mod terminal;
#[path = "suite/top.rs"]
mod top;
#[path = "suite/world.rs"]
mod world;
