//! The one who calls: some decisions are a person's, and no agent makes them.

use std::fs;

use crate::exit::Failure;

/// The variable that every process of an agent has.
const KEY: &str = "STAFETTE_KEY";

/// Refuses what only a person may do when an agent's process asks for it.
///
/// # Errors
/// When this process, or one that it descends from, belongs to an agent.
pub(crate) fn person_only(what: &str) -> Result<(), Failure> {
    match std::env::var_os(KEY).is_some() || ancestors().any(belongs_to_agent) {
        false => Ok(()),
        true => Err(Failure::usage(format!("An agent may not `{what}`"))
            .why("this is a process of an agent, and only a person decides that")
            .fix(format!("run `stafette {what}` in a terminal of your own"))),
    }
}

/// The processes that this one descends from, as far as the system shows them.
fn ancestors() -> impl Iterator<Item = u32> {
    // Processes that are started and end meanwhile could make a circle.
    std::iter::successors(parent(std::process::id()), |id| parent(*id)).take(1024)
}

fn parent(id: u32) -> Option<u32> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("PPid:"))?;
    line.trim().parse().ok().filter(|id| *id > 1)
}

fn belongs_to_agent(id: u32) -> bool {
    let environment = fs::read(format!("/proc/{id}/environ")).unwrap_or_default();
    let named =
        |entry: &[u8]| entry.strip_prefix(KEY.as_bytes()).is_some_and(|v| v.starts_with(b"="));
    environment.split(|byte| *byte == 0).any(named)
}
