//! Alerts: the protocol's four conditions, over a window of time that ends now. The caller passes
//! the time.

mod rules;
mod window;

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::handoff::Way;
use stafette_core::workflow::alerts::{AlertRules, Threshold};
use stafette_core::{Millis, Outcome, Party, Time};

use crate::book::Fact;
use crate::histogram::Histogram;
use window::Window;

pub use rules::prometheus;

/// Number of the latest changes that are kept.
const CHANGES: usize = 100;

/// One of the four conditions.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Condition {
    /// Too many handoffs failed.
    Failed,
    /// Too many handoffs were escalated.
    Escalated,
    /// A circular handoff was prevented.
    CircularBlocked,
    /// The 95th percentile of the handoff duration is too high.
    DurationMsP95,
}

/// Severity of an alert.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// For information only.
    Info,
    /// Someone should act on it.
    Warning,
}

impl Condition {
    /// All conditions, in order.
    pub const ALL: [Condition; 4] = [
        Condition::Failed,
        Condition::Escalated,
        Condition::CircularBlocked,
        Condition::DurationMsP95,
    ];

    /// Returns the name of the alert.
    pub fn name(self) -> &'static str {
        match self {
            Condition::Failed => "HandoffFailed",
            Condition::Escalated => "HandoffEscalated",
            Condition::CircularBlocked => "HandoffCircularBlocked",
            Condition::DurationMsP95 => "HandoffSlow",
        }
    }

    /// Returns the name of the metric, as in the protocol.
    pub fn measure(self) -> &'static str {
        match self {
            Condition::Failed => "handoff.failed",
            Condition::Escalated => "handoff.escalated",
            Condition::CircularBlocked => "handoff.circular_blocked",
            Condition::DurationMsP95 => "handoff.duration_ms p95",
        }
    }

    /// Returns the severity of the alert.
    #[must_use]
    pub fn severity(self) -> Severity {
        match self {
            Condition::Escalated => Severity::Info,
            _ => Severity::Warning,
        }
    }

    /// Returns the recommended action.
    pub fn action(self) -> &'static str {
        match self {
            Condition::Failed => "Investigate agent health",
            Condition::Escalated => "Review escalation patterns",
            Condition::CircularBlocked => "Review handoff logic",
            Condition::DurationMsP95 => "Optimize handoff handlers",
        }
    }

    /// Returns the threshold of the condition.
    #[must_use]
    pub fn threshold(self, rules: &AlertRules) -> Threshold {
        match self {
            Condition::Failed => rules.failed,
            Condition::Escalated => rules.escalated,
            Condition::CircularBlocked => rules.circular_blocked,
            Condition::DurationMsP95 => rules.duration_ms_p95,
        }
    }
}

/// State of an alert.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct Alert {
    /// Name of the alert.
    pub name: &'static str,
    /// Name of the metric, as in the protocol.
    pub measure: &'static str,
    /// Severity of the alert.
    pub severity: Severity,
    /// True while the alert fires.
    pub firing: bool,
    /// Start of firing (RFC 3339); left out while it does not fire.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Measured value within the window.
    pub value: u64,
    /// Threshold; the alert fires above it.
    pub above: u64,
    /// Length of the window that is measured.
    pub within: Millis,
    /// Recommended action for people.
    pub action: &'static str,
}

/// An alert began to fire, or stopped.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Time of the change.
    pub at: Time,
    /// Condition that changed.
    pub condition: Condition,
    /// True if it fires now.
    pub firing: bool,
    /// Measured value within the window.
    pub value: u64,
    /// Threshold; the alert fires above it.
    pub above: u64,
}

impl Change {
    /// Returns the change as a sentence.
    pub fn sentence(&self) -> String {
        let (name, measure) = (self.condition.name(), self.condition.measure());
        match self.firing {
            true => format!("{name}: {measure} is {}, more than {}", self.value, self.above),
            false => format!("{name} is over: {measure} is {}", self.value),
        }
    }
}

/// State of all alerts: what fires, the measurements, and the rules.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Alerts {
    rules: AlertRules,
    counts: BTreeMap<Condition, Window<u64>>,
    durations: Window<Histogram>,
    firing: BTreeMap<Condition, Time>,
    values: BTreeMap<Condition, u64>,
    changes: VecDeque<Change>,
}

impl Alerts {
    /// Takes in a fact. The rules are those of the run that began last.
    pub fn hear(&mut self, at: Time, fact: &Fact) {
        match fact {
            Fact::RunBegan { alerts, .. } => self.rules = (**alerts).clone(),
            Fact::Made(about) if about.counts() && about.to == Party::Human => {
                self.count(Condition::Escalated, at);
            }
            Fact::Refused { circular: true, .. } => self.count(Condition::CircularBlocked, at),
            Fact::Closed(about, closed) if about.counts() && closed.way != Way::Cancelled => {
                if closed.way == Way::Expired || closed.outcome == Outcome::Failed {
                    self.count(Condition::Failed, at);
                }
                if about.to != Party::Human && closed.outcome != Outcome::Escalated {
                    let within = self.rules.duration_ms_p95.within;
                    let took = at.since(about.admitted).0;
                    self.durations.at(at, within, |durations| durations.add(took));
                }
            }
            _ => {}
        }
    }

    fn count(&mut self, condition: Condition, at: Time) {
        let within = condition.threshold(&self.rules).within;
        self.counts.entry(condition).or_default().at(at, within, |count| *count += 1);
    }

    /// Evaluates all conditions, and returns the alerts that began to fire or stopped.
    pub fn evaluate(&mut self, now: Time) -> Vec<Change> {
        let mut changes = Vec::new();
        for condition in Condition::ALL {
            let Threshold { above, within } = condition.threshold(&self.rules);
            let value = self.measure(condition, now, within);
            self.values.insert(condition, value);
            let (firing, fired) = (value > above, self.firing.contains_key(&condition));
            if firing == fired {
                continue;
            }
            match firing {
                true => drop(self.firing.insert(condition, now)),
                false => drop(self.firing.remove(&condition)),
            }
            changes.push(Change { at: now, condition, firing, value, above });
        }
        self.changes.extend(changes.iter().cloned());
        let surplus = self.changes.len().saturating_sub(CHANGES);
        self.changes.drain(..surplus);
        changes
    }

    fn measure(&mut self, condition: Condition, now: Time, within: Millis) -> u64 {
        if condition == Condition::DurationMsP95 {
            let mut all = Histogram::default();
            self.durations.within(now, within).for_each(|some| all.merge(some));
            return all.quantile(0.95).map_or(0, |ms| ms.ceil() as u64);
        }
        let window = self.counts.entry(condition).or_default();
        window.within(now, within).sum()
    }

    /// Returns the state of all four alerts.
    pub fn all(&self) -> Vec<Alert> {
        let alert = |condition: Condition| {
            let Threshold { above, within } = condition.threshold(&self.rules);
            let since = self.firing.get(&condition);
            Alert {
                name: condition.name(),
                measure: condition.measure(),
                severity: condition.severity(),
                firing: since.is_some(),
                since: since.map(|since| since.rfc3339()),
                value: self.values.get(&condition).copied().unwrap_or_default(),
                above,
                within,
                action: condition.action(),
            }
        };
        Condition::ALL.map(alert).into()
    }

    /// Returns the current state of each alert as a change.
    pub fn standing(&self, now: Time) -> impl Iterator<Item = Change> {
        Condition::ALL.into_iter().map(move |condition| Change {
            at: now,
            condition,
            firing: self.firing.contains_key(&condition),
            value: self.values.get(&condition).copied().unwrap_or_default(),
            above: condition.threshold(&self.rules).above,
        })
    }

    /// Returns the latest changes, the oldest first.
    pub fn changes(&self) -> impl Iterator<Item = &Change> {
        self.changes.iter()
    }
}

#[cfg(test)]
mod tests;
