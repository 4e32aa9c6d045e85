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
    /// Say yes to what a person has to: deletions, own logic, dependencies.
    Approve {
        /// The change, such as c3.
        change: String,
    },
    /// Say no to a change.
    Refuse {
        /// The change, such as c3.
        change: String,
        /// Why.
        why: Option<String>,
    },
    /// Propose the set of edits in a JSON document.
    Propose {
        /// The document; `-` is the standard input.
        file: PathBuf,
    },
    /// Say something about a change; the agent that proposed it gets it back.
    Comment {
        /// The change, such as c3.
        change: String,
        /// What.
        text: String,
        /// About which file.
        #[arg(long)]
        file: Option<String>,
        /// About which line of it as it would be.
        #[arg(long, requires = "file")]
        line: Option<u32>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Diff {
    /// The change, such as c3.
    pub(crate) change: Option<String>,
    /// Only how many lines of which files.
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
    /// The change, such as c3.
    #[arg(required_unless_present = "all")]
    pub(crate) change: Option<String>,
    /// All that wait for nobody; those that break the project are found and left out.
    #[arg(long, conflicts_with = "change")]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Undo {
    /// The change, such as c3.
    pub(crate) change: String,
    /// Later changes on the same files, too.
    #[arg(long)]
    pub(crate) with_later: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Renew {
    /// The change with the new code, such as c3.
    pub(crate) change: String,
}
