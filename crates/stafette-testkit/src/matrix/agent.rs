//! The agents, and the packages that they are installed from.

use std::path::PathBuf;

use crate::cli::install::{self, InstallError};
use crate::cli::package::Package;
use crate::tools;

/// An agent whose command line is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Agent {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
    /// Gemini CLI.
    Gemini,
    /// The agent opencode.
    Opencode,
    /// Qwen Code.
    Qwen,
    /// The agent goose.
    Goose,
    /// The agent aider.
    Aider,
}

impl Agent {
    /// All of them.
    pub const ALL: [Agent; 7] = [
        Agent::Claude,
        Agent::Codex,
        Agent::Gemini,
        Agent::Opencode,
        Agent::Qwen,
        Agent::Goose,
        Agent::Aider,
    ];

    /// Returns the name of its profile, which is also that of its program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Agent::Claude => "claude",
            Agent::Codex => "codex",
            Agent::Gemini => "gemini",
            Agent::Opencode => "opencode",
            Agent::Qwen => "qwen",
            Agent::Goose => "goose",
            Agent::Aider => "aider",
        }
    }

    /// Returns its programs, installed, with those for the Agent Client Protocol if `acp` says so.
    ///
    /// # Errors
    ///
    /// If a package cannot be installed.
    pub fn programs(self, acp: bool) -> Result<Vec<PathBuf>, InstallError> {
        let packages: &[Package] = match self {
            Agent::Claude if acp => &[Package::CLAUDE, Package::CLAUDE_ACP],
            Agent::Claude => &[Package::CLAUDE],
            Agent::Codex if acp => &[Package::CODEX, Package::CODEX_ACP],
            Agent::Codex => &[Package::CODEX],
            Agent::Gemini => &[Package::GEMINI],
            Agent::Opencode => &[Package::OPENCODE],
            Agent::Qwen => &[Package::QWEN],
            Agent::Goose => &[Package::GOOSE],
            Agent::Aider => {
                let folder = tools::python("aider", "aider-chat==0.86.2\n")?;
                return Ok(vec![folder.join("bin/aider")]);
            }
        };
        packages.iter().map(|package| install::program(*package)).collect()
    }
}
