//! What a system offers, and what was enforced with it.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Whether a part of a policy holds.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "state", content = "note")]
pub enum Enforced {
    /// The kernel holds it.
    Fully,
    /// The kernel holds some of it; the note says what is missing.
    Partly(String),
    /// Nothing holds it; the note says why.
    Not(String),
    /// The policy does not ask for it.
    Unasked,
}

impl Enforced {
    /// Whether nothing of it is missing.
    #[must_use]
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

/// What the launcher could enforce, as the kernel confirmed it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Report {
    /// What may be read and changed (Landlock).
    pub files: Enforced,
    /// What stays as it is in the midst of what may be changed, and sockets that are out of reach
    /// (mounts).
    pub mounts: Enforced,
    /// Where connections may go to (Landlock).
    pub network: Enforced,
    /// No signals and no abstract sockets out of the sandbox (Landlock).
    pub scope: Enforced,
    /// System calls and powers that no agent needs (seccomp, capabilities).
    pub calls: Enforced,
    /// Why the launcher could not become the command, if it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_command: Option<String>,
}

impl Report {
    /// Its parts by name.
    #[must_use]
    pub fn parts(&self) -> [(&'static str, &Enforced); 5] {
        [
            ("files", &self.files),
            ("mounts", &self.mounts),
            ("network", &self.network),
            ("scope", &self.scope),
            ("calls", &self.calls),
        ]
    }

    /// Whether the whole policy holds.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.parts().iter().all(|(_, part)| part.is_whole())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().iter().try_for_each(|(name, part)| writeln!(f, "  {name}: {part}"))
    }
}

/// What the system at hand offers.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Offer {
    /// Landlock restricts files.
    pub files: bool,
    /// Landlock restricts TCP.
    pub network: bool,
    /// Landlock restricts signals and abstract sockets.
    pub scope: bool,
    /// Landlock restricts sockets in the file system.
    pub sockets: bool,
    /// Seccomp filters system calls.
    pub calls: bool,
    /// Where bubblewrap is.
    pub bubblewrap: Option<std::path::PathBuf>,
}

impl Offer {
    /// Looks what there is. Whether a user may have namespaces of one's own shows only when it is
    /// tried, so that is in the report alone.
    #[must_use]
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

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |is: bool| if is { "yes" } else { "no" };
        writeln!(f, "  files (Landlock): {}", yes(self.files))?;
        writeln!(f, "  TCP ports (Landlock): {}", yes(self.network))?;
        writeln!(f, "  signals and abstract sockets (Landlock): {}", yes(self.scope))?;
        writeln!(f, "  sockets in folders (Landlock): {}", yes(self.sockets))?;
        writeln!(f, "  system calls (seccomp): {}", yes(self.calls))?;
        match &self.bubblewrap {
            Some(path) => writeln!(f, "  bubblewrap: {}", path.display()),
            None => writeln!(f, "  bubblewrap: no"),
        }
    }
}
