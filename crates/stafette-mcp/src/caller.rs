//! The client at the other end.

use stafette_core::AgentName;

/// The caller, as far as the server knows.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Caller {
    /// Name for the record.
    pub name: String,
    /// Token of the session that the caller claims to belong to.
    pub token: Option<String>,
    /// Process id, if the operating system reports it.
    pub pid: Option<i32>,
    /// Agent that the caller is, if its credentials say so.
    pub agent: Option<AgentName>,
    /// Access level of a caller that belongs to no session.
    pub may: AccessLevel,
}

/// Access level of a caller.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum AccessLevel {
    /// May read, but change nothing.
    Look,
    /// Take turns and start runs.
    Act,
}
