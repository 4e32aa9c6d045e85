//! Answers of an agent to a phase, in the shape that the phase requires.

use serde_json::{Value, json};
use stafette_core::wire::phase::{DIALECT, Phase, PhaseResponse, asked};
use stafette_core::{Party, Response, TurnOrder};

/// Returns the answer that a script wants, from an agent of this name; `None` if no phase asked.
pub(super) fn answer(order: &TurnOrder, name: &str, wanted: &Value) -> Option<Response> {
    let foreign = order.offer.foreign.as_ref().filter(|foreign| foreign.dialect == DIALECT)?;
    let (phase, passed) = (asked(&order.offer)?, wanted["passed"] == true);
    let stranger = wanted["stranger"] == true;
    let words = usize::try_from(wanted["words"].as_u64()?).ok()?;
    let document = json!({
        "task_id": if stranger { "another" } else { foreign.id.as_str() },
        "phase": phase,
        "status": wanted["status"],
        "decision": wanted["decision"],
        "findings": findings(phase, passed),
        "context_summary": format!("{name}{}", " found".repeat(words)),
        "tokens_used": 100,
    });
    let response: PhaseResponse = serde_json::from_value(document).ok()?;
    Some(response.into_response(Party::from(&order.agent)))
}

fn findings(phase: Phase, passed: bool) -> Value {
    let issues: &[&str] = if passed { &[] } else { &["a test fails"] };
    match phase {
        Phase::Research => json!({
            "existing_implementations": [],
            "conflicts": [],
            "patterns_found": [],
            "recommendations": [],
        }),
        Phase::Write => json!({
            "files_created": [],
            "files_modified": [],
            "tests_written": [],
            "implementation_notes": [],
        }),
        Phase::Validate | Phase::Parallel => json!({
            "checks": {},
            "overall_passed": passed,
            "warnings": [],
            "blocking_issues": issues,
        }),
    }
}
