//! What an agent tells by a channel of its own, and whether it is the agent that tells it.

use std::path::Path;

use serde_json::Value;
use stafette_core::run::tell::TurnReport;
use stafette_core::{AgentName, TurnKey};

use crate::Signal;
use crate::harvest::{Harvest, KINDS};
use crate::process;

/// Something that an agent told: for the run, and for people to see.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Telling {
    /// What it hands on, answers or used.
    pub told: TurnReport,
    /// What is to be said of it at once.
    pub signal: Option<Signal>,
}

/// Reads a signal of `agent`: a frame's type and its payload.
///
/// # Errors
/// Every mistake in it, with its path.
pub fn read(agent: &AgentName, kind: &str, payload: Value) -> Result<Telling, Vec<String>> {
    if !KINDS.contains(&kind) {
        let known = "READY, HANDOFF, RESULT, REPORT, CHANGE, SIGNAL or ERROR";
        return Err(vec![format!("`{kind}` is not a signal: it is one of {known}")]);
    }
    let mut harvest = Harvest::new(agent, false);
    let signal = harvest.signal(kind, payload);
    harvest.told().map(|told| Telling { told, signal })
}

/// Whether process `caller` belongs to the turn that `agent` has: it is the agent's process, in its
/// group or session, or descends from it. Where the system does not tell, the token alone has to do.
#[must_use]
pub fn belongs(caller: i32, scratch: &Path, turn: TurnKey, agent: &AgentName) -> bool {
    match process::leader(scratch, turn, agent) {
        Some(leader) => process::is_kin(caller, leader),
        None => !cfg!(target_os = "linux"),
    }
}

/// Whether process `caller` is of the family of process `leader`: its group, its session or its
/// descendants.
#[must_use]
pub fn is_kin(caller: i32, leader: i32) -> bool {
    process::is_kin(caller, leader)
}
