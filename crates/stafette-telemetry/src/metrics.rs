//! Metrics: a fold over the facts, so that the same events always give the same numbers.

mod page;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use stafette_core::handoff::Way;
use stafette_core::{Outcome, Party, Time, Unknown};

use crate::book::{About, Closed, Fact};
use crate::histogram::Histogram;

pub use page::{Live, StoreTimes, page};

/// Maximum number of names with separate counts; all further ones count as `other`.
pub const NAMES: usize = 64;

/// All counters. The names of the first part are the protocol's.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Metrics {
    /// `handoff.total`: handoffs that were attempted, including refused ones.
    pub total: u64,
    /// `handoff.success`: handoffs that were resolved.
    pub success: u64,
    /// `handoff.failed`: handoffs that failed or expired. A refused one never began.
    pub failed: u64,
    /// `handoff.escalated`: handoffs to a person.
    pub escalated: u64,
    /// `handoff.duration_ms`: duration of handoffs to agents.
    pub duration_ms: Histogram,
    /// `handoff.circular_blocked`: circular handoffs that were prevented.
    pub circular_blocked: u64,

    /// Handoffs that were partially resolved.
    pub partial: u64,
    pub cancelled: u64,
    /// Time that people took to answer, in milliseconds.
    pub answer_ms: Histogram,
    /// Refusals by rule.
    pub refused: BTreeMap<String, u64>,
    pub agents: BTreeMap<String, AgentCounts>,
    pub workflows: BTreeMap<String, WorkflowCounts>,
    /// Ended runs, by status.
    pub runs: BTreeMap<String, u64>,
    /// Settled changes, by status.
    pub changes: BTreeMap<String, u64>,
    /// Attempts after the first.
    pub retries: u64,
    pub leases_renewed: u64,
    /// Results that came too late.
    pub late: u64,
    /// Recoveries, by strategy.
    pub recoveries: BTreeMap<String, u64>,
    /// Reached budgets, by part.
    pub budgets_reached: BTreeMap<String, u64>,
    pub agent_alerts: u64,
}

/// Counts of an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct AgentCounts {
    pub turns: u64,
    /// Turns that failed, among those that ended.
    pub broken: u64,
    /// Total duration of the turns, in milliseconds.
    pub time_ms: u64,
    pub tokens: u64,
    /// Cost of the turns, in millionths of a dollar.
    pub micro_usd: u64,
    /// Turns that are missing in these sums.
    #[serde(default)]
    pub unknown: Unknown,
}

/// Counts of a workflow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct WorkflowCounts {
    pub runs: u64,
    pub handoffs: u64,
    /// Rounds of a loop after its first.
    pub fix_iterations: u64,
    /// Handoffs to a person.
    pub escalations: u64,
}

impl Metrics {
    /// Counts a fact.
    pub fn apply(&mut self, at: Time, fact: &Fact) {
        match fact {
            Fact::RunBegan { workflow, .. } => named(&mut self.workflows, workflow).runs += 1,
            Fact::RunEnded { status, .. } => {
                *self.runs.entry((*status).to_owned()).or_default() += 1;
            }
            Fact::Made(about) if about.counts() => self.made(about),
            Fact::Refused { about, circular, rule, .. } => {
                self.made(about);
                self.circular_blocked += u64::from(*circular);
                *self.refused.entry(rule.clone()).or_default() += 1;
            }
            Fact::Closed(about, closed) if about.counts() => self.closed(at, about, closed),
            Fact::TurnEnded { about, began, usage, failure, .. } => {
                let agent = named(&mut self.agents, about.to.as_str());
                agent.turns += 1;
                agent.broken += u64::from(failure.is_some());
                agent.time_ms += at.since(*began).0;
                agent.tokens += usage.tokens;
                agent.micro_usd += usage.money.0;
                agent.unknown = agent.unknown + usage.unknown;
            }
            Fact::LeaseRenewed => self.leases_renewed += 1,
            Fact::Retried(_) => self.retries += 1,
            Fact::ChangeEnded(ended) => *named(&mut self.changes, &ended.change.status) += 1,
            Fact::Late => self.late += 1,
            Fact::Recovered(action) => {
                *self.recoveries.entry((*action).to_owned()).or_default() += 1;
            }
            Fact::BudgetReached(part) => {
                *self.budgets_reached.entry(part.clone()).or_default() += 1;
            }
            Fact::Alerted { .. } => self.agent_alerts += 1,
            Fact::Made(_) | Fact::Closed(..) | Fact::Accepted(_) | Fact::TurnBegan(..) => {}
        }
    }

    fn made(&mut self, about: &About) {
        self.total += 1;
        let workflow = named(&mut self.workflows, &about.workflow);
        workflow.handoffs += 1;
        workflow.fix_iterations += u64::from(about.again);
        if about.to == Party::Human {
            self.escalated += 1;
            workflow.escalations += 1;
        }
    }

    fn closed(&mut self, at: Time, about: &About, closed: &Closed) {
        let count = match (closed.way, closed.outcome) {
            (Way::Cancelled, _) => &mut self.cancelled,
            (Way::Expired, _) | (_, Outcome::Failed) => &mut self.failed,
            (_, Outcome::Partial) => &mut self.partial,
            // Handed to a person, which is counted where that handoff is made.
            (_, Outcome::Escalated) => return,
            (_, Outcome::Resolved) => &mut self.success,
        };
        *count += 1;
        let took = at.since(about.admitted).0;
        match (closed.way, &about.to) {
            (Way::Cancelled, _) => {}
            (_, Party::Human) => self.answer_ms.add(took),
            _ => self.duration_ms.add(took),
        }
    }
}

/// Returns the counts of a name, or of `other` if there are too many names.
fn named<'a, T: Default>(all: &'a mut BTreeMap<String, T>, name: &str) -> &'a mut T {
    let known = all.contains_key(name) || all.len() < NAMES;
    let name = if known { name } else { "other" };
    all.entry(name.to_owned()).or_default()
}

/// Returns the names of all metrics in the protocol's notation: `handoff.total`.
pub fn names() -> Vec<String> {
    let page = page(
        &Metrics::default(),
        &crate::book::Book::default(),
        &crate::alerts::Alerts::default(),
        &Live::default(),
    );
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    types
        .map(|name| match name.strip_suffix("_total") {
            Some(short) if short.contains('_') => short.replacen('_', ".", 1),
            _ => name.replacen('_', ".", 1),
        })
        .collect()
}

#[cfg(test)]
mod tests;
