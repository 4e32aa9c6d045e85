//! Metrics in the text format of Prometheus (0.0.4).

use std::collections::BTreeMap;
use std::fmt::{Display, Write as _};

use super::Metrics;
use crate::alerts::Alerts;
use crate::book::{Book, Phase};
use crate::histogram::Histogram;

/// Values of this moment and this process, which are in no event.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Live {
    pub locks_held: usize,
    pub locks_waiting: usize,
    /// Counters of the store's writer, if available.
    pub store: Option<StoreTimes>,
    /// Spans that a receiver has accepted.
    pub spans_sent: u64,
    pub spans_dropped: u64,
    /// Position of the last event that the numbers include.
    pub position: u64,
}

/// Counters of the store's writer since the daemon started.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct StoreTimes {
    /// Pairs of a bound in microseconds and the number of commits up to it, in ascending order.
    pub cumulative: Vec<(u64, u64)>,
    pub commits: u64,
    /// Total duration of the commits, in microseconds.
    pub micros: u64,
    pub batches: u64,
}

/// Returns the text that Prometheus scrapes.
pub fn page(metrics: &Metrics, book: &Book, alerts: &Alerts, live: &Live) -> String {
    let mut page = Page::default();
    protocol(&mut page, metrics);
    work(&mut page, metrics);
    present(&mut page, book, alerts);
    machine(&mut page, live);
    page.text
}

/// Writes the six metrics that the protocol names.
fn protocol(page: &mut Page, metrics: &Metrics) {
    page.counter("handoff_total", "Total handoffs attempted", metrics.total);
    page.counter("handoff_success_total", "Handoffs resolved successfully", metrics.success);
    page.counter("handoff_failed_total", "Handoffs that failed", metrics.failed);
    page.counter("handoff_escalated_total", "Handoffs escalated to human", metrics.escalated);
    page.histogram("handoff_duration_ms", "Time to resolve handoffs", &metrics.duration_ms);
    page.counter(
        "handoff_circular_blocked_total",
        "Circular handoffs prevented",
        metrics.circular_blocked,
    );
}

fn work(page: &mut Page, metrics: &Metrics) {
    page.counter("handoff_partial_total", "Handoffs resolved in part", metrics.partial);
    page.counter("handoff_cancelled_total", "Handoffs called off", metrics.cancelled);
    let refused = "Handoffs refused, by rule";
    page.labelled("handoff_refused_total", "counter", refused, "rule", &metrics.refused, |n| *n);
    page.histogram("handoff_answer_duration_ms", "Time people took to answer", &metrics.answer_ms);
    let agents = &metrics.agents;
    let turns = "Turns of an agent that ended";
    page.labelled("agent_turns_total", "counter", turns, "agent", agents, |a| a.turns);
    let broken = "Turns of an agent that broke";
    page.labelled("agent_turns_failed_total", "counter", broken, "agent", agents, |a| a.broken);
    let time = "Time per agent, in seconds";
    let seconds = |ms: u64| ms as f64 / 1000.0;
    page.labelled("agent_time_seconds_total", "counter", time, "agent", agents, |a| {
        seconds(a.time_ms)
    });
    let tokens = "Tokens used by an agent";
    page.labelled("agent_tokens_total", "counter", tokens, "agent", agents, |a| a.tokens);
    let money = "Money used by an agent, in dollars";
    page.labelled("agent_cost_usd_total", "counter", money, "agent", agents, |a| {
        a.micro_usd as f64 / 1e6
    });
    let unknown = "Turns of an agent whose cost is unknown";
    page.labelled("agent_turns_unknown_cost_total", "counter", unknown, "agent", agents, |a| {
        u64::from(a.unknown.money)
    });
    let workflows = &metrics.workflows;
    let began = "Runs begun under a workflow";
    page.labelled("workflow_runs_total", "counter", began, "workflow", workflows, |w| w.runs);
    let handoffs = "Handoffs per workflow";
    page.labelled("workflow_handoffs_total", "counter", handoffs, "workflow", workflows, |w| {
        w.handoffs
    });
    let rounds = "Fix iterations: rounds of a loop after its first";
    page.labelled("workflow_fix_iterations_total", "counter", rounds, "workflow", workflows, |w| {
        w.fix_iterations
    });
    let rate = "Escalation rate: the share of handoffs that went to a person";
    page.labelled("workflow_escalation_ratio", "gauge", rate, "workflow", workflows, |w| {
        w.escalations as f64 / w.handoffs.max(1) as f64
    });
    page.labelled("run_total", "counter", "Runs that ended", "status", &metrics.runs, |n| *n);
    let changes = &metrics.changes;
    page.labelled("change_total", "counter", "Changes settled", "status", changes, |n| *n);
    page.counter("handoff_retries_total", "Attempts after the first", metrics.retries);
    page.counter("lease_renewals_total", "Leases that were prolonged", metrics.leases_renewed);
    page.counter("turn_results_late_total", "Results that came too late", metrics.late);
    let ways = "Ways out of trouble, by strategy";
    let recoveries = &metrics.recoveries;
    page.labelled("handoff_recoveries_total", "counter", ways, "strategy", recoveries, |n| *n);
    let reached = "Budgets that were reached, by part";
    let budgets = &metrics.budgets_reached;
    page.labelled("budget_reached_total", "counter", reached, "part", budgets, |n| *n);
    page.counter("agent_alerts_total", "Alerts raised by agents", metrics.agent_alerts);
}

fn present(page: &mut Page, book: &Book, alerts: &Alerts) {
    let mut open: BTreeMap<&str, u64> = Phase::ALL.map(|phase| (phase.word(), 0)).into();
    let mut sessions: BTreeMap<String, u64> = BTreeMap::new();
    let (mut runs, mut leases, mut fullest) = (0, 0, 0.0_f64);
    for (_, run) in book.runs() {
        runs += 1;
        for handoff in run.handoffs.values() {
            *open.entry(handoff.state.word()).or_default() += 1;
            leases += u64::from(handoff.turn.is_some());
        }
        for state in run.sessions.values() {
            let word = serde_json::to_value(state).ok();
            let word = word.as_ref().and_then(|word| word.as_str()).unwrap_or("unknown");
            *sessions.entry(word.to_owned()).or_default() += 1;
        }
        let money = run.spent.money.0 as f64 / run.limit.money.0.max(1) as f64;
        let tokens = run.spent.tokens as f64 / run.limit.tokens.max(1) as f64;
        fullest = fullest.max(money).max(tokens);
    }
    page.gauge("runs_open", "Runs that are not over", runs);
    page.labelled("handoffs_open", "gauge", "Open handoffs, by state", "state", &open, |n| *n);
    page.gauge("leases_open", "Turns that are out, each under a lease", leases);
    let states = "Processes of agents, by state";
    page.labelled("agent_sessions", "gauge", states, "state", &sessions, |n| *n);
    let spent = "The largest share of its budget that an open run has spent";
    page.gauge("budget_spent_ratio", spent, fullest);
    let firing: BTreeMap<&str, u64> =
        alerts.all().into_iter().map(|alert| (alert.name, u64::from(alert.firing))).collect();
    page.labelled("alert_firing", "gauge", "Whether an alert fires", "alert", &firing, |n| *n);
}

fn machine(page: &mut Page, live: &Live) {
    page.gauge("locks_held", "Locks that are held", live.locks_held);
    page.gauge("locks_waiting", "Places in the line for a lock", live.locks_waiting);
    if let Some(store) = &live.store {
        let name = "store_commit_duration_seconds";
        page.head(name, "histogram", "Time to commit to the store, since the daemon started");
        for (micros, count) in &store.cumulative {
            page.line(&format!("{name}_bucket{{le=\"{}\"}}", *micros as f64 / 1e6), count);
        }
        page.line(&format!("{name}_bucket{{le=\"+Inf\"}}"), store.commits);
        page.line(&format!("{name}_sum"), store.micros as f64 / 1e6);
        page.line(&format!("{name}_count"), store.commits);
        page.counter("store_batches_total", "Batches that were committed", store.batches);
    }
    page.counter("trace_spans_sent_total", "Spans that a receiver took", live.spans_sent);
    page.counter("trace_spans_dropped_total", "Spans that no receiver took", live.spans_dropped);
    page.gauge("events_position", "The last event that these numbers include", live.position);
}

#[derive(Default)]
struct Page {
    text: String,
}

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "# HELP {name} {help}.\n# TYPE {name} {kind}");
    }

    fn line(&mut self, name: &str, value: impl Display) {
        let _ = writeln!(self.text, "{name} {value}");
    }

    fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.head(name, "counter", help);
        self.line(name, value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.line(name, value);
    }

    fn labelled<K: AsRef<str>, T, V: Display>(
        &mut self,
        name: &str,
        kind: &str,
        help: &str,
        label: &str,
        all: &BTreeMap<K, T>,
        value: impl Fn(&T) -> V,
    ) {
        self.head(name, kind, help);
        for (key, item) in all {
            let key = escaped(key.as_ref());
            self.line(&format!("{name}{{{label}=\"{key}\"}}"), value(item));
        }
    }

    fn histogram(&mut self, name: &str, help: &str, all: &Histogram) {
        self.head(name, "histogram", help);
        for (bound, count) in all.cumulative() {
            self.line(&format!("{name}_bucket{{le=\"{bound}\"}}"), count);
        }
        self.line(&format!("{name}_bucket{{le=\"+Inf\"}}"), all.count());
        self.line(&format!("{name}_sum"), all.sum());
        self.line(&format!("{name}_count"), all.count());
    }
}

/// Escapes the value of a label: workflows may have any name.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_others_cannot_add_lines_to_the_page() {
        let mut page = Page::default();
        let odd = BTreeMap::from([("a\"} 1\nb\\", 7)]);
        page.labelled("x_total", "counter", "X", "name", &odd, |n| *n);
        assert_eq!(page.text.lines().last(), Some("x_total{name=\"a\\\"} 1\\nb\\\\\"} 7"));
    }
}
