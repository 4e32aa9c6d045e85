//! Tools, resources and prompts for agents over the Model Context Protocol.
//!
//! An agent that supports the protocol takes part with it: it reads what its turn is about, hands
//! work on, asks, answers and reports, and learns immediately whether that is accepted. Agents that
//! Stafette started are known by their session; others name the agent whose turns they take.
//!
//! Invariants:
//! - Nothing is decided here: a tool turns its arguments into an input of the engine, and returns
//!   the result.
//! - A mistake that an agent can correct is a tool error with advice; only a request that cannot be
//!   routed is an error of the protocol.
//! - Every tool declares the right that it needs. A session speaks for its own agent and for no
//!   other, and reads its own briefing, prompt and run.
//! - Every wait has an end, reports progress, and can be cancelled.
//! - The protocol's own types stay in `wire`.

mod call_context;
mod caller;
mod prompts;
mod resources;
mod tool_error;
mod tools;
mod turn_handle;
mod wire;

pub use caller::Caller;
pub use tool_error::ToolError;
pub use tools::rights;
pub use wire::{Mcp, Place};

use stafette_core::Workflow;

/// Reads the project's workflow each time it is needed: it may have changed, and must be trusted.
pub type ReadWorkflow = dyn Fn() -> Result<Workflow, ToolError> + Send + Sync;
