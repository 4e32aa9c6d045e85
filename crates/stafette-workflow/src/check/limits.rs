//! Limits: timeouts are in the right order, and everything fits into the time limit of a run.

use super::{NO_ESCALATION, Report};
use stafette_config::Diagnostic;
use stafette_core::lock::LONGEST_LEASE;
use stafette_core::workflow::Retries;
use stafette_core::{Millis, Workflow};

pub(super) fn check(report: &mut Report<'_>) {
    let Workflow { limits, retries, budget, .. } = report.workflow;
    for (name, clock) in [
        ("accept_timeout", limits.accept_timeout),
        ("lease", limits.lease),
        ("finish_timeout", limits.finish_timeout),
    ] {
        let path = format!("/limits/{name}");
        if clock == Millis(0) {
            let message = format!("`{name}` is zero: no turn could ever be done");
            report.add(Diagnostic::error("zero-limit", &path, message));
        } else if clock > limits.finish_timeout {
            let message = format!(
                "`{name}` ({clock}) is longer than `finish_timeout` ({})",
                limits.finish_timeout
            );
            report.add_or(Diagnostic::error("clock-order", &path, message), "/limits");
        }
    }
    if limits.answer_timeout == Millis(0) {
        let message = "nobody can be asked: there is no time to answer";
        report.add(Diagnostic::error(NO_ESCALATION, "/limits/answer_timeout", message));
    }
    if limits.handoffs_per_item > limits.handoffs_per_run {
        let message = format!(
            "an item may have {} handoffs, but a run only {}",
            limits.handoffs_per_item, limits.handoffs_per_run
        );
        report.add(Diagnostic::warning("never-reached", "/limits/handoffs_per_item", message));
    }
    let locks = &report.workflow.locks;
    if locks.lease == Millis(0) || locks.lease > LONGEST_LEASE {
        let message = format!("a lock's lease lasts from 1ms to {LONGEST_LEASE}");
        report.add(
            Diagnostic::error("bad-lease", "/locks/lease", message)
                .help("who needs a lock for longer renews it"),
        );
    }
    if retries.max == 0 {
        let message = "every turn needs at least one attempt";
        report.add(Diagnostic::error("zero-limit", "/retries/max", message));
    }
    if !(0.0..=1.0).contains(&retries.jitter) {
        let message =
            format!("the jitter is a part of the wait, from 0 to 1, not {}", retries.jitter);
        report.add(Diagnostic::error("bad-jitter", "/retries/jitter", message));
    }
    if retries.backoff > retries.max_backoff {
        let message = format!(
            "the first wait ({}) is longer than the longest ({})",
            retries.backoff, retries.max_backoff
        );
        report.add(Diagnostic::error("clock-order", "/retries/backoff", message));
    }
    let one = worst_case(report.workflow);
    let all = Millis(one.0.saturating_mul(u64::from(limits.handoffs_per_run)));
    if one > budget.time {
        let message = format!(
            "one handoff can take {one} ({} attempts of {}, and the waits between them), \
             but a run has only {}",
            retries.max, limits.finish_timeout, budget.time
        );
        let diagnostic = Diagnostic::error("time-budget", "/budget/time", message)
            .help("lower `finish_timeout` or `retries.max`, or give the run more time");
        report.add_or(diagnostic, "/limits/finish_timeout");
    } else if all > budget.time {
        let message = format!(
            "{} handoffs can take {all} at worst, but a run has only {}",
            limits.handoffs_per_run, budget.time
        );
        let diagnostic = Diagnostic::warning("time-budget", "/budget/time", message)
            .help("a run that meets every timeout is cut short by its budget");
        report.add_or(diagnostic, "/limits/handoffs_per_run");
    }
    if limits.answer_timeout > budget.time {
        let message = format!(
            "a person has {} to answer, but a run ends after {}",
            limits.answer_timeout, budget.time
        );
        let diagnostic = Diagnostic::warning("late-answer", "/budget/time", message)
            .help("lower `answer_timeout` in `[limits]`: waits for people count as time");
        report.add_or(diagnostic, "/limits/answer_timeout");
    }
}

/// Returns the longest possible duration of one handoff: every attempt times out, and every wait is
/// the longest.
pub(crate) fn worst_case(workflow: &Workflow) -> Millis {
    let Retries { max, backoff, max_backoff, jitter } = workflow.retries;
    let stretched = |wait: u64| (wait as f64 * (1.0 + jitter.clamp(0.0, 1.0))) as u64;
    let longest = |wait: u64| stretched(wait).max(workflow.limits.cooldown.0);
    let (mut total, mut wait, mut left) =
        (0_u64, backoff.0.min(max_backoff.0), max.saturating_sub(1));
    while left > 0 && wait > 0 && wait < max_backoff.0 {
        total = total.saturating_add(longest(wait));
        wait = wait.saturating_mul(2).min(max_backoff.0);
        left -= 1;
    }
    let work = workflow.limits.finish_timeout.0.saturating_mul(u64::from(max));
    Millis(work.saturating_add(total).saturating_add(longest(wait).saturating_mul(u64::from(left))))
}
