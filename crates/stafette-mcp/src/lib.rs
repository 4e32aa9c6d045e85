//! The tools, resources and prompts that agents find by the Model Context Protocol.
//!
//! An agent that knows the protocol takes part by it: it learns what its turn is about, hands on,
//! asks, answers and reports, and hears at once whether that is taken. Agents that Stafette started
//! are known by their session; others name the agent whose turns they take.
//!
//! Invariants:
//! - Nothing is decided here: a tool turns its arguments into what the engine takes, and says what
//!   became of it.
//! - What an agent may read and try again is a tool's error, with what to do about it; only what
//!   cannot be routed is an error of the protocol.
//! - A session speaks for its own agent and for nobody else.
//! - Every wait has an end, tells that it goes on, and can be called off.
//! - The protocol's own types stop in `wire`.

mod call_context;
mod caller;
mod prompts;
mod resources;
mod tool_error;
mod tools;
mod turn_handle;
mod wire;

pub use caller::{AccessLevel, Caller};
pub use tool_error::ToolError;
pub use wire::{Mcp, Place};

use stafette_core::Workflow;

/// How the project's workflow is read, each time that it is needed: it may have changed, and must
/// be trusted.
pub type ReadWorkflow = dyn Fn() -> Result<Workflow, ToolError> + Send + Sync;
