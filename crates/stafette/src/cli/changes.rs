//! What can be typed about changes.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Changes {
    #[command(subcommand)]
    pub(crate) command: Option<ChangesCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ChangesCommand {
    /// Approve a change that needs a person: deletions, orchestrator code, dependencies.
    Approve {
        /// Change, such as c3.
        change: String,
    },
    /// Reject a change.
    #[command(name = "reject", alias = "refuse")]
    Refuse {
        /// Change, such as c3.
        change: String,
        /// Reason, for its author.
        why: Option<String>,
    },
    /// Propose a change from a JSON document.
    Propose {
        /// Document with the edits; `-` is standard input.
        file: PathBuf,
    },
    /// Comment on a change, for the agent that proposed it.
    Comment {
        /// Change, such as c3.
        change: String,
        /// Text of the comment.
        text: String,
        /// File of the change to comment on.
        #[arg(long)]
        file: Option<String>,
        /// Line of that file, as numbered after the change.
        #[arg(long, requires = "file")]
        line: Option<u32>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// Change, such as c3 [default: the newest one waiting].
    pub(crate) change: Option<String>,
    /// Print only the number of changed lines for each file.
    #[arg(long)]
    pub(crate) stat: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Pr {
    /// The change, such as c3 [default: the newest that waits]
    pub(crate) change: Option<String>,
    /// The branch to push [default: stafette/CHANGE]
    #[arg(long)]
    pub(crate) branch: Option<String>,
    /// The branch to merge into [default: that of the repository]
    #[arg(long)]
    pub(crate) base: Option<String>,
    /// The remote to push to
    #[arg(long, default_value = "origin")]
    pub(crate) remote: String,
    /// Open it as a draft
    #[arg(long)]
    pub(crate) draft: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Apply {
    /// Change, such as c3.
    #[arg(required_unless_present = "all")]
    pub(crate) change: Option<String>,
    /// Apply all changes that need no approval, leaving out those that do not validate.
    #[arg(long, conflicts_with = "change")]
    pub(crate) all: bool,
    /// Apply a change as it is, although an agent is revising it.
    #[arg(long)]
    pub(crate) as_it_is: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// Change, such as c3.
    pub(crate) change: String,
    /// Undo later changes of the same files too.
    #[arg(long)]
    pub(crate) with_later: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SelfUpdate {
    /// Change with the new code, such as c3.
    pub(crate) change: String,
}
