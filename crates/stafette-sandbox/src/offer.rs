//! The restrictions that a system supports, and those that took effect.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The state of one part of a policy.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "note")]
pub enum Enforced {
    /// The kernel enforces it completely.
    Fully,
    /// The kernel enforces some of it; the note says what is missing.
    Partly(String),
    /// It is not enforced; the note says why.
    Not(String),
    /// The policy does not require it.
    Unasked,
}

impl Enforced {
    /// True if nothing of it is missing.
    pub fn is_whole(&self) -> bool {
        matches!(self, Enforced::Fully | Enforced::Unasked)
    }
}

impl fmt::Display for Enforced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Enforced::Fully => write!(f, "enforced"),
            Enforced::Partly(missing) => write!(f, "enforced in part: {missing}"),
            Enforced::Not(why) => write!(f, "not enforced: {why}"),
            Enforced::Unasked => write!(f, "not asked for"),
        }
    }
}

/// The restrictions that took effect, as the kernel confirmed them.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// The limits on reading and changing files (Landlock).
    pub files: Enforced,
    /// Nothing but the granted paths, with read-only ones inside writable ones, and processes and
    /// devices of its own (namespaces).
    pub mounts: Enforced,
    /// The limits on network connections (Landlock).
    pub network: Enforced,
    /// No signals and no abstract sockets out of the sandbox (Landlock).
    pub scope: Enforced,
    /// The limits on system calls and capabilities (seccomp, capabilities).
    pub calls: Enforced,
    /// The reason why the launcher could not become the command; `None` if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_command: Option<String>,
}

impl Report {
    /// Returns the parts with their names.
    pub fn parts(&self) -> [(&'static str, &Enforced); 5] {
        [
            ("files", &self.files),
            ("mounts", &self.mounts),
            ("network", &self.network),
            ("scope", &self.scope),
            ("calls", &self.calls),
        ]
    }

    /// True if the whole policy is enforced.
    pub fn is_whole(&self) -> bool {
        self.parts().iter().all(|(_, part)| part.is_whole())
    }

    /// The parts that are not enforced as a whole, each with its reason; empty if there are none.
    pub fn gaps(&self) -> String {
        let parts = self.parts();
        let gaps = parts.iter().filter(|(_, part)| !part.is_whole());
        gaps.map(|(name, part)| format!("{name} {part}")).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().iter().try_for_each(|(name, part)| writeln!(f, "  {name}: {part}"))
    }
}

/// The restrictions that this system supports.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Offer {
    /// True if Landlock can restrict files.
    pub files: bool,
    /// True if Landlock can restrict TCP.
    pub network: bool,
    /// True if Landlock can restrict signals and abstract sockets.
    pub scope: bool,
    /// True if Landlock can restrict sockets in the file system.
    pub sockets: bool,
    /// True if seccomp can filter system calls.
    pub calls: bool,
    /// The path of bubblewrap; `None` if it is missing or does not work.
    pub bubblewrap: Option<std::path::PathBuf>,
}

impl Offer {
    /// Detects what this system supports. Only an attempt shows if a user may have private
    /// namespaces, so that is in the report alone.
    pub fn look() -> Offer {
        let bubblewrap = crate::find_bubblewrap();
        #[cfg(target_os = "linux")]
        let offer =
            Offer { calls: crate::calls::are_filtered(), bubblewrap, ..crate::fence::offer() };
        #[cfg(not(target_os = "linux"))]
        let offer = Offer { bubblewrap, ..Offer::default() };
        offer
    }
}
