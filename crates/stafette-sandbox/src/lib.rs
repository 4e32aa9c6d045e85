//! Restricts what an agent's processes may touch, and contains the launcher that enforces it.
//!
//! A [`Policy`] is data: what may be changed, what may be read, what must stay out of reach in any
//! case. The launcher (`stafette sandboxed --spec FILE -- COMMAND`) restricts itself and becomes
//! the command, so that all its descendants are restricted too, and none of our code has to be
//! `unsafe`. Where it makes the namespaces itself, it stays beside the command as their first
//! process, so that nothing in them outlives it. What the kernel does not support cannot be
//! enforced; [`Report`] lists what was, and [`Mode::Strict`] runs nothing unless that is everything.
//!
//! Invariants:
//! - What is not granted is denied. A grant that contains something hidden is split into grants
//!   that do not.
//! - A report lists what the kernel confirmed, never what was only requested.
//! - The launcher has one thread, and does nothing but wait once it has restricted itself.

mod bubblewrap;
#[cfg(target_os = "linux")]
mod calls;
#[cfg(target_os = "linux")]
mod fence;
#[cfg(target_os = "linux")]
mod init;
mod launch;
#[cfg(target_os = "linux")]
mod mounts;
mod offer;
mod policy;
mod view;

pub use bubblewrap::find_bubblewrap;
pub use launch::{Prepared, SandboxError, Spec, prepare, sandboxed, try_out};
pub use offer::{Enforced, Offer, Report};
pub use policy::{Mode, Network, Pin, Places, Policy, Swap};
