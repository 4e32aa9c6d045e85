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
    /// Look for patterns in all that happened.
    Reflect,
    /// Have an insight count from now on.
    Accept {
        /// The insight.
        id: String,
    },
    /// Show what an insight was learned from.
    Evidence {
        /// The insight.
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
    /// Take up an earlier version again.
    Rollback {
        /// Its number.
        #[arg(value_name = "VERSION")]
        to: u32,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Calendar {
    /// From when, such as 2026-03-02T00:00:00Z; now otherwise.
    #[arg(long, value_name = "TIME")]
    pub(crate) from: Option<String>,
    /// Until when; a week later otherwise.
    #[arg(long, value_name = "TIME")]
    pub(crate) to: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<CalendarCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CalendarCommand {
    /// Say yes to a proposed block.
    Accept {
        /// The block.
        block: String,
    },
    /// Say no to a proposed block.
    Drop {
        /// The block.
        block: String,
    },
    /// Move a block to another time.
    Move {
        /// The block.
        block: String,
        /// From when, such as 2026-03-02T09:00:00Z.
        start: String,
        /// Until when.
        end: String,
    },
    /// Say that a task is done, and how many hours it took.
    Done {
        /// The task.
        task: String,
        /// How many hours.
        hours: f64,
        /// When it was done, such as 2026-03-02T16:30:00Z; now otherwise.
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Roi {
    /// The decision; those that wait to be carried out otherwise.
    pub(crate) decision: Option<String>,
    /// What came of it in the end, in money.
    #[arg(long, value_name = "AMOUNT", requires = "decision", allow_negative_numbers = true)]
    pub(crate) came: Option<f64>,
}

#[derive(Debug, Args)]
pub(crate) struct Threads {
    /// The thread to read; all threads otherwise.
    pub(crate) thread: Option<String>,
    /// Find messages with these words instead.
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
    /// Write all nodes and links to a file, one a line.
    Export {
        /// The file; one that is there already is not touched.
        file: PathBuf,
    },
    /// Put what was exported on top of what is there.
    Import {
        /// The file.
        file: PathBuf,
    },
}
