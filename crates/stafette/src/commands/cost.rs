//! `cost`: prints the consumption by agent, run or day.

use stafette_core::{Usage, Usd};
use stafette_engine::{By, Cost, CostLine};

use super::{Context, daemon};
use crate::cli::{self, CostBy};
use crate::exit::{Exit, Failure};
use crate::output::short;

pub(crate) async fn run(context: &Context, arguments: &cli::Cost) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let by = match arguments.by {
        CostBy::Agent => "agent",
        CostBy::Run => "run",
        CostBy::Day => "day",
    };
    let cost: Cost = client.get(&format!("/v1/cost?by={by}")).await?;
    let output = context.output;
    if output.json {
        output.data(&cost);
        return Ok(Exit::Ok);
    }
    let rows = cost.lines.iter().map(|line| row(cost.by, line));
    let total = CostLine { of: "total".into(), ..cost.total.clone() };
    // Only the days do not have the time at work.
    let sum = if cost.by == By::Day { By::Agent } else { cost.by };
    let rows = rows.chain([row(sum, &total)]).collect();
    output.table(&[by, "turns", "tokens", "spent", "set aside", "at work", "request"], rows);
    Ok(Exit::Ok)
}

/// The cost of a run in a sentence: `$0.10 spent`.
pub(crate) fn spent(usage: Usage) -> String {
    match usage.unknown.money > 0 && usage.money == Usd(0) {
        true => "cost unknown".to_owned(),
        false => format!("{} spent{}", usage.cost(), usage.unknown_turns()),
    }
}

fn row(by: By, line: &CostLine) -> Vec<String> {
    let of = match by {
        // The id that people type is the end of it.
        By::Run => line.of.chars().skip(line.of.len().saturating_sub(8)).collect(),
        By::Agent | By::Day => line.of.clone(),
    };
    vec![
        of,
        match line.spent.unknown.turns() {
            0 => line.turns.to_string(),
            unknown => format!("{}, {unknown} unknown", line.turns),
        },
        line.spent.count(),
        line.spent.cost(),
        line.reserved.money.to_string(),
        match by {
            By::Day => "–".to_owned(),
            By::Run | By::Agent => line.worked.to_string(),
        },
        short(&line.request, 60),
    ]
}
