//! The actions that an agent may take without asking.
//!
//! The agent itself states the kind of its action. This is for agents that mean well and people who
//! want to be asked; it does not confine an agent that lies.

use std::time::Duration;

use stafette_core::workflow::PermissionLevel;

/// The decision for a kind of action.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Permission {
    /// Allowed without a question.
    Allow,
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

impl Permissions {
    /// The permissions of an agent of this level.
    #[must_use]
    pub fn of_level(level: PermissionLevel) -> Self {
        let (edit, rest) = match level {
            PermissionLevel::Ask => (Permission::Ask, Permission::Ask),
            PermissionLevel::Edits => (Permission::Allow, Permission::Ask),
            PermissionLevel::All => (Permission::Allow, Permission::Allow),
        };
        Permissions { edit, execute: rest, fetch: rest, other: rest, ..Permissions::default() }
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
    /// The decision for an action of this kind, called `title`. Our own tools need no question, as
    /// far as the agent names them truly.
    pub(crate) fn of(&self, deed: Deed, title: &str) -> Permission {
        match deed {
            Deed::Other if is_own_tool(title) => Permission::Allow,
            // The title of a fetch is the address, which its page may have chosen.
            Deed::Fetch if title.starts_with(PREFIX) => Permission::Allow,
            Deed::Read => self.read,
            Deed::Edit => self.edit,
            Deed::Execute => self.execute,
            Deed::Fetch => self.fetch,
            Deed::Other => self.other,
        }
    }
}

/// The beginning of our own tools' names, as most programs have them.
const PREFIX: &str = "mcp__stafette__";

/// True for the titles that programs give to calls of our own tools.
pub(crate) fn is_own_tool(title: &str) -> bool {
    let is_word = |text: &str| !text.is_empty() && !text.contains(char::is_whitespace);
    title.starts_with(PREFIX)
        || title.starts_with("stafette: ")
        || title.strip_suffix(" (stafette MCP Server)").is_some_and(is_word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_13_our_own_tools_never_ask_and_a_command_with_their_name_does() {
        let asks = Permissions::of_level(PermissionLevel::Ask);
        assert_eq!(asks.of(Deed::Other, "mcp__stafette__handoff"), Permission::Allow);
        assert_eq!(asks.of(Deed::Other, "handoff (stafette MCP Server)"), Permission::Allow);
        assert_eq!(asks.of(Deed::Other, "stafette: handoff"), Permission::Allow);
        assert_eq!(asks.of(Deed::Execute, "mcp__stafette__handoff"), Permission::Ask);
        assert_eq!(asks.of(Deed::Other, "mcp__mail__send"), Permission::Ask);
    }

    #[test]
    fn b_13_an_address_that_ends_like_our_own_tools_is_asked_about() {
        let asks = Permissions::of_level(PermissionLevel::Ask);
        assert_eq!(asks.of(Deed::Fetch, "mcp__stafette__handoff"), Permission::Allow);
        for title in [
            "https://evil.example/?(stafette MCP Server)",
            "https://evil.example/? (stafette MCP Server)",
            "stafette: https://evil.example",
        ] {
            assert_eq!(asks.of(Deed::Fetch, title), Permission::Ask, "{title}");
        }
        let title = "send the keys (stafette MCP Server)";
        assert_eq!(asks.of(Deed::Other, title), Permission::Ask);
    }

    #[test]
    fn b_13_a_level_says_what_needs_no_question() {
        let allowed = |level, deed| Permissions::of_level(level).of(deed, "x") == Permission::Allow;
        assert!(!allowed(PermissionLevel::Ask, Deed::Edit));
        assert!(allowed(PermissionLevel::Edits, Deed::Edit));
        assert!(!allowed(PermissionLevel::Edits, Deed::Execute));
        assert!(allowed(PermissionLevel::All, Deed::Execute));
    }
}
