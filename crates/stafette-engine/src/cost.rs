//! Consumption by run, by agent or by day, over all runs of the project.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Millis, Usage};

use crate::{Engine, EngineError, RunView};

/// The number of runs that are read in one page.
const PAGE: usize = 256;

/// The key by which costs are added up.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum By {
    /// Each run, the newest first.
    #[default]
    Run,
    /// Each agent, over all runs.
    Agent,
    /// Each day in UTC, over all runs.
    Day,
}

/// The consumption of the project.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// The key by which the lines are added up.
    pub by: By,
    /// One line for each run, agent or day.
    pub lines: Vec<CostLine>,
    /// The total over all runs.
    pub total: CostLine,
}

/// The consumption of one run, agent or day.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct CostLine {
    /// The run, the agent or the day; empty for all.
    pub of: String,
    /// The request of the run; empty unless the lines are by run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub request: String,
    /// The number of turns that ended.
    pub turns: u64,
    /// The tokens and money that these turns used.
    #[serde(flatten)]
    pub spent: Usage,
    /// The tokens and money set aside for turns in progress.
    pub reserved: Usage,
    /// The working time of agents; zero in a line for a day, where it is not known.
    pub worked: Millis,
}

impl CostLine {
    fn add(&mut self, turns: u32, spent: Usage, reserved: Usage, worked: Millis) {
        self.turns += u64::from(turns);
        self.spent += spent;
        self.reserved += reserved;
        self.worked = Millis(self.worked.0.saturating_add(worked.0));
    }
}

impl Cost {
    /// Returns the consumption of all runs of the project.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn of(engine: &Engine, by: By) -> Result<Self, EngineError> {
        let mut tally = Tally::default();
        let mut after = None;
        loop {
            let page = engine.runs_after(None, after, PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.run);
            page.iter().for_each(|view| tally.take(by, view));
        }
        let lines = match by {
            By::Run => tally.runs,
            By::Agent | By::Day => tally.named.into_values().collect(),
        };
        Ok(Cost { by, lines, total: tally.total })
    }
}

#[derive(Default)]
struct Tally {
    runs: Vec<CostLine>,
    named: BTreeMap<String, CostLine>,
    total: CostLine,
}

impl Tally {
    fn take(&mut self, by: By, view: &RunView) {
        let purse = &view.purse;
        let mut line = CostLine {
            of: view.run.to_string(),
            request: view.request.clone(),
            ..CostLine::default()
        };
        for (name, account) in &purse.agents {
            let (reserved, worked) = (account.reserved, account.time);
            line.add(account.turns, account.spent, reserved, worked);
            self.total.add(account.turns, account.spent, reserved, worked);
            if by == By::Agent {
                self.named(name).add(account.turns, account.spent, reserved, worked);
            }
        }
        match by {
            By::Run => self.runs.push(line),
            By::Agent => {}
            By::Day => {
                for (day, spent) in &purse.days {
                    let nothing = Usage::default();
                    self.named(day).add(spent.turns, spent.spent, nothing, Millis(0));
                }
            }
        }
    }

    fn named(&mut self, name: &str) -> &mut CostLine {
        let fresh = || CostLine { of: name.to_owned(), ..CostLine::default() };
        self.named.entry(name.to_owned()).or_insert_with(fresh)
    }
}
