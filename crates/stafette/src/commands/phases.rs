//! The progress of a run through its phases, for people.

use stafette_core::wire::phase::Decision;
use stafette_engine::{PhaseLine, PhasesView};

use crate::output::Output;

/// A line for each phase: tokens beside the typical size, and the tokens that summaries saved.
pub(crate) fn show(output: Output, view: &PhasesView) {
    for text in lines(view) {
        output.say(&text);
    }
}

fn lines(view: &PhasesView) -> Vec<String> {
    let mut lines: Vec<String> = view.phases.iter().map(line).collect();
    lines.extend(saved(view));
    lines
}

fn line(line: &PhaseLine) -> String {
    let hop = &line.hop;
    let decision = match hop.decision {
        Some(Decision::Proceed) => "PROCEED",
        Some(Decision::Stop) => "STOP",
        Some(Decision::Clarify) => "CLARIFY",
        None => "at work",
    };
    let usual = |range: fn(&stafette_core::wire::phase::Typical) -> (u64, u64)| {
        let range = line.typical.as_ref().map(range);
        range.map(|(from, to)| format!(" (typically {from}–{to})")).unwrap_or_default()
    };
    let used = match (hop.tokens.reported, &line.typical) {
        (0, _) => String::new(),
        (used, Some(typical)) => format!(", {used} used (typically ~{})", typical.total),
        (used, None) => format!(", {used} used"),
    };
    let rounds = if hop.rounds > 1 { format!(", {} rounds", hop.rounds) } else { String::new() };
    format!(
        "  {:<9} {decision:<8} {} tokens in{}, {} out{}{used}{rounds}",
        hop.phase.as_str(),
        hop.tokens.request,
        usual(|typical| typical.input),
        hop.tokens.response,
        usual(|typical| typical.output),
    )
}

fn saved(view: &PhasesView) -> Option<String> {
    let saving = view.saving;
    let less = saving.raw.checked_sub(saving.handed_on).filter(|_| saving.raw > 0)?;
    Some(format!(
        "  summaries handed on {} tokens instead of {}: {} % saved",
        saving.handed_on,
        saving.raw,
        less * 100 / saving.raw
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s3_06_tokens_stand_beside_what_is_typical_and_the_saving_below() {
        let view: PhasesView = serde_json::from_value(serde_json::json!({
            "task_id": "auth-001",
            "phases": [
                { "place": 0, "phase": "research", "rounds": 1, "decision": "PROCEED",
                  "tokens": { "request": 212, "response": 301, "reported": 847 },
                  "saving": { "raw": 847, "handed_on": 40 },
                  "typical": { "input": [200, 500], "output": [500, 1000], "total": 1500 } },
                { "place": 1, "phase": "parallel", "rounds": 2,
                  "tokens": { "request": 90, "response": 0, "reported": 0 },
                  "saving": { "raw": 0, "handed_on": 0 } },
            ],
            "saving": { "raw": 847, "handed_on": 40 },
        }))
        .expect("a view");
        assert_eq!(
            lines(&view).join("\n"),
            "  research  PROCEED  212 tokens in (typically 200–500), 301 out (typically 500–1000), \
             847 used (typically ~1500)\n  \
             parallel  at work  90 tokens in, 0 out, 2 rounds\n  \
             summaries handed on 40 tokens instead of 847: 95 % saved"
        );
    }
}
