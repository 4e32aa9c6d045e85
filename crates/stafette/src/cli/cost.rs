//! What `cost` can be told.

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
pub(crate) struct Cost {
    /// Group by run, agent or day.
    #[arg(long, value_enum, default_value_t = CostBy::Run)]
    pub(crate) by: CostBy,
}

/// Grouping of costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum CostBy {
    /// each agent, over all runs
    Agent,
    /// each run, the newest first
    Run,
    /// each day in UTC
    Day,
}
