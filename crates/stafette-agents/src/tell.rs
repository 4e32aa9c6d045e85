//! Reports that an agent makes through a channel of its own, and the check that they come from the
//! agent.

use std::path::Path;

use serde_json::Value;
use stafette_core::run::tell::TurnReport;
use stafette_core::{AgentName, TurnKey};

use crate::Signal;
use crate::harvest::{Harvest, KINDS};
use crate::process;

pub(crate) mod meaning;

/// The kinds that `stafette emit` takes. A message goes to another agent and is no signal of the
/// turn, so that it does not come here.
const NAMED: &str = "READY, HANDOFF, RESULT, REPORT, CHANGE, SIGNAL, ERROR or MESSAGE";

/// A report of an agent: for the run, and for people.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Telling {
    /// The proposals, the answer or the consumption in it.
    pub told: TurnReport,
    /// The signal to report immediately, if any.
    pub signal: Option<Signal>,
}

/// Reads a signal of `agent`: a frame's type and its payload.
///
/// # Errors
/// Every mistake in it, with its path.
pub fn read(agent: &AgentName, kind: &str, payload: Value) -> Result<Telling, Vec<String>> {
    if !KINDS.contains(&kind) {
        return Err(vec![format!("`{kind}` is not a signal: it is one of {NAMED}")]);
    }
    meaning::says(kind, &payload)?;
    let mut harvest = Harvest::new(agent, false);
    let signal = harvest.signal(kind, payload.clone());
    let told = harvest.told()?;
    meaning::asks(&told.offers, &payload)?;
    Ok(Telling { told, signal })
}

/// True if process `caller` belongs to the turn of `agent`: it is the agent's process, in its group
/// or session, or a descendant. Where the system does not show that, the token alone has to do.
pub fn belongs(caller: i32, scratch: &Path, turn: TurnKey, agent: &AgentName) -> bool {
    match process::leader(scratch, turn, agent) {
        Some(leader) => process::is_kin(caller, leader),
        None => !cfg!(target_os = "linux"),
    }
}

/// True if process `caller` is related to process `leader`: in its group or session, or a
/// descendant.
pub fn is_kin(caller: i32, leader: i32) -> bool {
    process::is_kin(caller, leader)
}

/// The turn and the agent that a process, or one that started it, was started for, if its session
/// reports to this socket. It holds for processes that left their group and session, as long as
/// they keep their environment.
pub fn marked(process: i32, socket: &Path) -> Option<(TurnKey, AgentName)> {
    process::lineage(process).find_map(|ancestor| {
        let given = |name: &str| process::given(ancestor, name);
        let reports_here = given("STAFETTE_SOCKET").is_some_and(|its| Path::new(&its) == socket);
        let turn = given(process::KEY).filter(|_| reports_here)?.parse().ok()?;
        Some((turn, given("STAFETTE_AGENT")?.parse().ok()?))
    })
}

/// True if this process, or one that started it, is an agent's.
pub fn in_session() -> bool {
    let own = rustix::process::getpid().as_raw_pid();
    process::MARKS.iter().any(|mark| std::env::var_os(mark).is_some()) || is_agents(own)
}

/// True if a process, or one that started it, was started for an agent or by a daemon, of whatever
/// project. A process whose origin cannot be told counts as well.
pub fn is_agents(process: i32) -> bool {
    let is_marked =
        |process: i32| process::MARKS.iter().any(|mark| process::given(process, mark).is_some());
    process::is_daemons(process) || process::lineage(process).any(is_marked)
}
