//! The settings that a new user gets for an agent: those with which it needs nobody, as far as this
//! system keeps it in.

use stafette_core::workflow::{PermissionLevel, Sandbox};

use super::Profile;

/// The settings for an agent of a profile.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Recommendation {
    pub sandbox: Sandbox,
    pub permissions: PermissionLevel,
}

impl Profile {
    /// The settings for an agent of this profile: everything without a question where the system
    /// enforces a sandbox as a whole and the program was seen at work in it, and otherwise as much as
    /// a program may do that holds itself.
    pub fn recommendation(&self, is_enforced: bool) -> Recommendation {
        let is_proven = |level| self.sandbox.proven.contains(&level);
        if is_enforced && is_proven(PermissionLevel::All) {
            return Recommendation { sandbox: Sandbox::Auto, permissions: PermissionLevel::All };
        }
        let permissions = PermissionLevel::default();
        let sandbox = if is_proven(permissions) { Sandbox::Auto } else { Sandbox::Off };
        Recommendation { sandbox, permissions }
    }
}

impl Recommendation {
    /// The settings as lines of an agent in a workflow file; none where they are the defaults.
    pub fn lines(self) -> String {
        let mut lines = match self.sandbox {
            Sandbox::Off => String::new(),
            Sandbox::Auto => "sandbox = \"auto\"\n".to_owned(),
            Sandbox::Strict => "sandbox = \"strict\"\n".to_owned(),
        };
        lines += match self.permissions {
            PermissionLevel::Ask => "permissions = \"ask\"\n",
            PermissionLevel::Edits => "",
            PermissionLevel::All => "permissions = \"all\"\n",
        };
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Library;

    #[test]
    fn b_13_everything_is_allowed_only_where_the_sandbox_is_enforced() {
        let library = Library::of(None);
        let lines = |name: &str, is_enforced| {
            library.get(name).expect("a profile").recommendation(is_enforced).lines()
        };
        let all = "sandbox = \"auto\"\npermissions = \"all\"\n";
        assert_eq!((lines("claude", true).as_str(), lines("codex", true).as_str()), (all, all));
        assert_eq!(lines("claude", false), "sandbox = \"auto\"\n");
        // Its own sandbox, which does not start in ours, holds it.
        assert_eq!(lines("codex", false), "");
        for profile in library.all() {
            let unheld = profile.recommendation(false);
            assert_ne!(unheld.permissions, PermissionLevel::All, "{}", profile.name);
        }
    }
}
