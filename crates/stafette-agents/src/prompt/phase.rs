//! The prompt of a phase: the request as it stands, and the format of the answer.

use stafette_core::Offer;
use stafette_core::wire::phase::{Phase, PhaseRequest, asked};
use stafette_core::workflow::ResultFormat;

use super::signal;
use crate::{Job, profile};

/// The request for a phase, as its document; `None` when the offer is none.
pub(super) fn request(offer: &Offer) -> Option<String> {
    let request = PhaseRequest::from_offer(offer, "", asked(offer)?);
    serde_json::to_string_pretty(&request).ok()
}

/// The format of a phase's answer; `None` when the offer is none.
pub(super) fn ending(job: &Job) -> Option<String> {
    let phase = asked(&job.order.offer)?;
    let tools = profile::knows_tools(job);
    let way = match job.agent.result {
        ResultFormat::Frames | ResultFormat::Exit => format!(
            "End with a signal: {}. TYPE is RESULT, and PAYLOAD is this document, on one line:",
            signal(job)
        ),
        ResultFormat::Json => "End your output with this document and nothing after it:".to_owned(),
    };
    let way = match tools {
        true => format!(
            "You have Stafette's tools (MCP server `stafette`): `report`, `escalate`, and `complete` at \
             the end, with the document below as its `response`. Only if they do not work: {way}"
        ),
        false => way,
    };
    Some(format!(
        "{way}\n{{\"task_id\": that of the request, \"phase\": \"{phase}\", \"status\": \
         \"complete|partial|blocked\", \"decision\": \"PROCEED|STOP|CLARIFY\", \"findings\": {}, \
         \"context_summary\": TEXT, \"tokens_used\": N, \"issues\": [TEXT]}}\n\
         PROCEED when the work is done and nothing stands against it, STOP when something critical \
         does, CLARIFY when the user has to say more: ask in `issues`, with `options` to choose from.\n\
         `context_summary` is all that the next phase gets: files, patterns and decisions, no raw \
         data, and no more tokens than the request's `max_summary_tokens`.",
        shape(phase)
    ))
}

fn shape(phase: Phase) -> &'static str {
    match phase {
        Phase::Research => {
            r#"{"existing_implementations": [{"file", "description", "relevance": "high|medium|low"}], "conflicts": [{"type": "naming|pattern|dependency", "description", "severity": "critical|warning|info"}], "patterns_found": [{"file", "pattern", "recommendation"}], "recommendations": [TEXT]}"#
        }
        Phase::Write => {
            r#"{"files_created": [{"path", "purpose"}], "files_modified": [{"path", "changes"}], "tests_written": [{"path", "test_count": N, "coverage_areas": [TEXT]}], "implementation_notes": [TEXT]}"#
        }
        Phase::Validate => {
            r#"{"checks": {"types": {"passed", "errors", "warnings"}, "lint": {"passed", "errors", "warnings"}, "tests": {"passed", "total", "passed_count", "failed_count", "coverage", "failures"}, "security": {"passed", "issues"}}, "overall_passed": BOOL, "blocking_issues": [TEXT], "warnings": [TEXT]}"#
        }
        Phase::Parallel => {
            r#"{"results": [{"task_id", "type", "passed", "summary", "details"}], "aggregation": {"total", "passed", "failed", "rule", "overall_passed"}}"#
        }
    }
}
