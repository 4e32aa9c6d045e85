//! What can be typed about what is known and planned.

use std::path::PathBuf;

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct Insights {
    #[command(subcommand)]
    pub(crate) command: Option<InsightsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum InsightsCommand {
    /// Look for new patterns in the history.
    Reflect,
    /// Accept an insight.
    Accept {
        /// Insight id.
        id: String,
    },
    /// Show the evidence of an insight.
    Evidence {
        /// Insight id.
        id: String,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Params {
    #[command(subcommand)]
    pub(crate) command: Option<ParamsCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ParamsCommand {
    /// Roll back to an earlier version.
    Rollback {
        /// Number of the version.
        #[arg(value_name = "VERSION")]
        to: u32,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Calendar {
    /// Start, such as 2026-03-02T00:00:00Z [default: now].
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// End [default: a week after the start].
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<CalendarCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CalendarCommand {
    /// Accept a proposed block.
    Accept {
        /// Block id.
        block: String,
    },
    /// Drop a proposed block.
    Drop {
        /// Block id.
        block: String,
    },
    /// Move a block to another time.
    Move {
        /// Block id.
        block: String,
        /// New start, such as 2026-03-02T09:00:00Z.
        start: String,
        /// New end.
        end: String,
    },
    /// Record a task as done, and how many hours it took.
    Done {
        /// Task id.
        task: String,
        /// Hours that it took.
        hours: f64,
        /// Time of completion, such as 2026-03-02T16:30:00Z [default: now].
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Roi {
    /// Decision id [default: all that wait to be carried out].
    pub(crate) decision: Option<String>,
    /// Record the actual result, in money.
    #[arg(
        long,
        alias = "came",
        value_name = "AMOUNT",
        requires = "decision",
        allow_negative_numbers = true
    )]
    pub(crate) actual: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct Threads {
    /// Thread to read [default: list all].
    pub(crate) thread: Option<String>,
    /// Search messages for these words instead.
    #[arg(long, value_name = "WORDS", conflicts_with = "thread")]
    pub(crate) search: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct Graph {
    #[command(subcommand)]
    pub(crate) command: Option<GraphCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Export all nodes and links to a file, one per line.
    Export {
        /// File to write, which must not exist yet.
        file: PathBuf,
    },
    /// Import an exported file on top of what is there.
    Import {
        /// File to read.
        file: PathBuf,
    },
}
