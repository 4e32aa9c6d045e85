//! What can be typed about locks.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Lock {
    #[command(subcommand)]
    pub(crate) action: Option<LockAction>,
    /// Files, folders, other names, or globs: `*` within a name, `**` over folders.
    #[arg(required = true, num_args = 1.., value_name = "PATH")]
    pub(crate) patterns: Vec<String>,
    /// For how long; 30m unless the workflow says otherwise.
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) lease: Option<String>,
    /// How long to wait when somebody else has it; 0s does not wait.
    #[arg(long, value_name = "TIME")]
    pub(crate) wait: Option<String>,
    /// Only to read: others may read too.
    #[arg(long)]
    pub(crate) shared: bool,
    /// Take it from whoever has it.
    #[arg(long, requires = "reason", conflicts_with = "wait")]
    pub(crate) take_over: bool,
    /// What for, for the others to see.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// A command to run while it is held; it finds the fencing number in STAFETTE_FENCE.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LockAction {
    /// Say whether files may be written; exit code 6 when somebody else has them.
    Check(LockCheck),
    /// Refuse commits of files that somebody else has locked.
    #[command(subcommand)]
    Hook(LockHook),
}

#[derive(Debug, Args)]
pub(crate) struct LockCheck {
    /// The files.
    #[arg(required_unless_present = "staged", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// What is about to be committed.
    #[arg(long, conflicts_with = "paths")]
    pub(crate) staged: bool,
    /// The fencing number of the lock that they are written with.
    #[arg(long, env = "STAFETTE_FENCE", value_name = "NUMBER")]
    pub(crate) fence: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum LockHook {
    /// Write git's pre-commit hook; one that is there stays in force.
    Install,
    /// Remove it again.
    Uninstall,
}

#[derive(Debug, Args)]
pub(crate) struct Unlock {
    /// What was locked, or the lock's name, such as l7.
    #[arg(required_unless_present = "all", value_name = "PATH")]
    pub(crate) names: Vec<String>,
    /// All that is yours.
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
}
