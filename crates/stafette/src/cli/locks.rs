//! What can be typed about locks.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct Lock {
    #[command(subcommand)]
    pub(crate) action: Option<LockAction>,
    /// Files, folders, globs (`*` in a name, `**` over folders) or other names.
    #[arg(required = true, num_args = 1.., value_name = "PATH")]
    pub(crate) patterns: Vec<String>,
    /// Lease of the lock [default: the workflow's, or 30m].
    #[arg(long = "for", value_name = "TIME")]
    pub(crate) lease: Option<String>,
    /// Limit on waiting for another holder; 0s does not wait [default: the workflow's].
    #[arg(long, value_name = "TIME")]
    pub(crate) wait: Option<String>,
    /// Lock for reading: other readers may lock it too.
    #[arg(long)]
    pub(crate) shared: bool,
    /// Take it from its present holder.
    #[arg(long, requires = "reason", conflicts_with = "wait")]
    pub(crate) take_over: bool,
    /// Reason, shown to others.
    #[arg(long, value_name = "TEXT")]
    pub(crate) reason: Option<String>,
    /// Command to run while holding the lock; STAFETTE_FENCE is its fencing number.
    #[arg(last = true, value_name = "CMD")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LockAction {
    /// Check whether files may be written (exit code 6: another holder has them).
    Check(LockCheck),
    /// Manage the git hook that refuses commits of files locked by others.
    #[command(subcommand)]
    Hook(LockHook),
}

#[derive(Debug, Args)]
pub(crate) struct LockCheck {
    /// Files to check.
    #[arg(required_unless_present = "staged", value_name = "PATH")]
    pub(crate) paths: Vec<String>,
    /// Check the files staged for the next commit.
    #[arg(long, conflicts_with = "paths")]
    pub(crate) staged: bool,
    /// Fencing number of the lock that they are written under.
    #[arg(long, env = "STAFETTE_FENCE", value_name = "NUMBER")]
    pub(crate) fence: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Subcommand)]
pub(crate) enum LockHook {
    /// Install git's pre-commit hook; an existing one keeps running.
    Install,
    /// Uninstall it.
    Uninstall,
}

#[derive(Debug, Args)]
pub(crate) struct Unlock {
    /// Locked paths, or lock ids such as l7.
    #[arg(required_unless_present = "all", value_name = "PATH")]
    pub(crate) names: Vec<String>,
    /// Release all of your locks.
    #[arg(long, conflicts_with = "names")]
    pub(crate) all: bool,
}
