//! The actions that an agent may take without asking.
//!
//! The agent itself states the kind of its action. This is for agents that mean well and people who
//! want to be asked; it does not confine an agent that lies.

use std::time::Duration;

/// The decision for a kind of action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// Allowed without a question.
    Allow,
    /// A person is asked.
    Ask,
    /// Refused without a question.
    Refuse,
}

/// The permissions of an agent, by the kind of action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permissions {
    /// Reading files, searching, thinking.
    pub read: Permission,
    /// Changing files, also moving and deleting them.
    pub edit: Permission,
    /// Running commands, also in a shell.
    pub execute: Permission,
    /// Fetching from the network.
    pub fetch: Permission,
    /// Every other kind of action.
    pub other: Permission,
    /// The time that a question waits for its answer before the answer is no.
    pub patience: Duration,
}

impl Default for Permissions {
    /// Reading is allowed, everything else needs a question.
    fn default() -> Self {
        Permissions {
            read: Permission::Allow,
            edit: Permission::Ask,
            execute: Permission::Ask,
            fetch: Permission::Ask,
            other: Permission::Ask,
            patience: Duration::from_secs(30 * 60),
        }
    }
}

/// The kind of an action of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deed {
    Read,
    Edit,
    Execute,
    Fetch,
    Other,
}

impl Permissions {
    /// The decision for this kind of action.
    pub(crate) fn of(&self, deed: Deed) -> Permission {
        match deed {
            Deed::Read => self.read,
            Deed::Edit => self.edit,
            Deed::Execute => self.execute,
            Deed::Fetch => self.fetch,
            Deed::Other => self.other,
        }
    }
}
