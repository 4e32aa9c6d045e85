//! What an agent's processes may touch, and a launcher that sees to it.
//!
//! A [`Policy`] is data: what may be changed, what may be read, what must not be in any case. The
//! launcher (`stafette sandboxed --spec FILE -- COMMAND`) restricts itself and becomes the command,
//! so that all its descendants are restricted too, and nothing of ours has to be `unsafe`. What the
//! kernel does not offer cannot be enforced; [`Report`] says what was, and [`Mode::Strict`] runs
//! nothing when it is not all of it.
//!
//! Invariants:
//! - What is not granted is denied. A grant that has something hidden in it is split into grants
//!   that have not.
//! - A report says what the kernel confirmed, never what was only asked for.
//! - The launcher has one thread, and does not return once it has begun to restrict itself.

mod bubblewrap;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod fence;
mod launch;
#[cfg(target_os = "linux")]
mod mounts;
mod offer;
mod policy;

pub use bubblewrap::find_bubblewrap;
pub use launch::{Prepared, SandboxError, Spec, prepare, sandboxed};
pub use offer::{Enforced, Offer, Report};
pub use policy::{Mode, Network, Places, Policy};
