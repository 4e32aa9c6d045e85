//! Who is at the other end.

use stafette_core::AgentName;

/// Whoever calls, as far as the server knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// What a person would call it, for the record.
    pub name: String,
    /// The token of the session that it says it belongs to.
    pub token: Option<String>,
    /// Its process, where the system tells.
    pub pid: Option<i32>,
    /// The agent that it is, where what it showed says so.
    pub agent: Option<AgentName>,
    /// What it may do when it belongs to no session.
    pub may: AccessLevel,
}

/// What a caller may do.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AccessLevel {
    /// Look, and nothing else.
    Look,
    /// Take turns and begin runs.
    Act,
}
