//! What can be typed to try the agents.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Start each installed agent in each of its modes with a model on this machine, in a home of
    /// its own: no key, no network.
    #[arg(long = "try")]
    pub(crate) trial: bool,
    /// Try only these agents, such as claude,codex.
    #[arg(long, value_name = "AGENT", value_delimiter = ',', requires = "trial")]
    pub(crate) only: Vec<String>,
    /// Try only these modes.
    #[arg(long, value_enum, value_delimiter = ',', requires = "trial")]
    pub(crate) runner: Vec<TrialRunner>,
    /// What to try.
    #[arg(long, value_enum, value_delimiter = ',', default_value = "handoff", requires = "trial")]
    pub(crate) case: Vec<TrialCase>,
    /// Try with these permissions instead of those that `stafette init` would write here; outside of
    /// the sandbox, unless everything is allowed.
    #[arg(long, value_enum, value_name = "LEVEL", requires = "trial")]
    pub(crate) permissions: Option<TrialPermissions>,
    /// The time limit of each trial, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 180, requires = "trial")]
    pub(crate) limit: u64,
    /// Keep the home of each trial in this folder.
    #[arg(long, value_name = "DIR", requires = "trial")]
    pub(crate) keep: Option<PathBuf>,
}

/// The mode in which an agent is tried.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TrialRunner {
    /// a process for each turn
    Exec,
    /// a terminal that stays
    Pty,
    /// the Agent Client Protocol
    Acp,
}

impl TrialRunner {
    /// Returns its name in a workflow.
    pub(crate) fn name(self) -> &'static str {
        match self {
            TrialRunner::Exec => "exec",
            TrialRunner::Pty => "pty",
            TrialRunner::Acp => "acp",
        }
    }
}

/// What an agent may do without asking.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TrialPermissions {
    /// reading
    Ask,
    /// changing files, too
    Edits,
    /// everything, in the sandbox
    All,
}

/// What an agent has to cope with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum TrialCase {
    /// a command, an edit and a handoff by tool
    Handoff,
    /// the same with a handoff by frame
    Frame,
    /// the same with a budget that is less than the first turn takes
    Budget,
    /// its processes are killed in the middle of a turn
    Kill,
    /// its model refuses it, because a quota is used up
    #[value(name = "429")]
    Limit,
    /// its model is overloaded for a moment
    #[value(name = "529")]
    Overload,
    /// its model refuses its key
    #[value(name = "401")]
    Key,
    /// its model begins to answer, and stops
    Hang,
}

impl TrialCase {
    pub(crate) fn name(self) -> &'static str {
        match self {
            TrialCase::Handoff => "handoff",
            TrialCase::Frame => "frame",
            TrialCase::Budget => "budget",
            TrialCase::Kill => "kill",
            TrialCase::Limit => "429",
            TrialCase::Overload => "529",
            TrialCase::Key => "401",
            TrialCase::Hang => "hang",
        }
    }
}
