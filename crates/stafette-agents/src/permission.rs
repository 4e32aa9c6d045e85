//! What an agent may do without asking.
//!
//! An agent says itself what kind of thing it is about to do. This is for agents that mean well and
//! people who want to be asked; it is no wall around an agent that lies.

use std::time::Duration;

/// Whether something may be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// It may, and nobody is asked.
    Allow,
    /// Somebody is asked.
    Ask,
    /// It may not, and nobody is asked.
    Refuse,
}

/// What an agent may do, by the kind of what it does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Permissions {
    /// Looking: reading files, searching, thinking.
    pub read: Permission,
    /// Changing files, also moving and deleting them.
    pub edit: Permission,
    /// Running commands.
    pub execute: Permission,
    /// Fetching from elsewhere.
    pub fetch: Permission,
    /// Everything else.
    pub other: Permission,
    /// How long a question waits for its answer before the answer is no.
    pub patience: Duration,
}

impl Default for Permissions {
    /// To look is free, everything else is asked for.
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

/// The kind of a thing that an agent does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Deed {
    Read,
    Edit,
    Execute,
    Fetch,
    Other,
}

impl Permissions {
    /// Whether this may be done.
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
