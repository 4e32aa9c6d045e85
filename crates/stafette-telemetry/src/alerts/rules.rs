//! The same conditions as rules for a Prometheus server that scrapes our metrics.

use stafette_core::Millis;
use stafette_core::workflow::alerts::{AlertRules, Threshold};

use super::{Condition, Severity};

/// Returns a file of alerting rules.
pub fn prometheus(rules: &AlertRules) -> String {
    let mut text = String::from("groups:\n  - name: stafette\n    rules:\n");
    for condition in Condition::ALL {
        let severity = match condition.severity() {
            Severity::Info => "info",
            Severity::Warning => "warning",
        };
        text.push_str(&format!(
            "      - alert: {name}\n        expr: {expression}\n        labels:\n          \
             severity: {severity}\n        annotations:\n          summary: \"{measure} is {{{{ \
             $value }}}}, more than {above}\"\n          action: {action}\n",
            name = condition.name(),
            expression = expression(condition, condition.threshold(rules)),
            measure = condition.measure(),
            above = condition.threshold(rules).above,
            action = condition.action(),
        ));
    }
    text
}

fn expression(condition: Condition, Threshold { above, within }: Threshold) -> String {
    let within = duration(within);
    match condition {
        Condition::Failed => format!("increase(handoff_failed_total[{within}]) > {above}"),
        Condition::Escalated => format!("increase(handoff_escalated_total[{within}]) > {above}"),
        Condition::CircularBlocked => {
            format!("increase(handoff_circular_blocked_total[{within}]) > {above}")
        }
        Condition::DurationMsP95 => format!(
            "histogram_quantile(0.95, sum by (le) (rate(handoff_duration_ms_bucket[{within}]))) > {above}"
        ),
    }
}

/// Formats a duration as Prometheus does.
fn duration(time: Millis) -> String {
    match time.0 {
        ms if ms % 3_600_000 == 0 && ms > 0 => format!("{}h", ms / 3_600_000),
        ms if ms % 60_000 == 0 && ms > 0 => format!("{}m", ms / 60_000),
        ms if ms % 1000 == 0 && ms > 0 => format!("{}s", ms / 1000),
        ms => format!("{}ms", ms.max(1)),
    }
}
