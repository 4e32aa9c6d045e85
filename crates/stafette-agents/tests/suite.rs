//! What the crate promises to those who use it.

#[path = "suite/a2a.rs"]
mod a2a;
#[path = "suite/a2a_server.rs"]
mod a2a_server;
#[path = "suite/acp.rs"]
mod acp;
#[path = "suite/contract.rs"]
mod contract;
#[path = "suite/dialogs.rs"]
mod dialogs;
#[path = "suite/exec.rs"]
mod exec;
#[path = "suite/long_frames.rs"]
mod long_frames;
#[path = "suite/profiles.rs"]
mod profiles;
#[path = "suite/pty.rs"]
mod pty;
#[path = "suite/scripts.rs"]
mod scripts;
#[path = "suite/terminals.rs"]
mod terminals;
#[path = "suite/world.rs"]
mod world;
