//! The briefing that the next generation, and a person, read first: short but complete.

use std::fmt::Write as _;

use serde_json::Value;

use super::context::UNKNOWN;
use crate::team::council::Decision;
use crate::text::clip;
use crate::wire::context::{AgentState, OrchestratorContext};
use crate::{Run, Usd};

/// The maximum size of a briefing, in bytes.
pub const BRIEFING: usize = 2048;

/// Maximum length and number of the entries: smaller and smaller, until the briefing fits.
const MEASURES: [(usize, usize); 7] =
    [(400, 12), (240, 10), (160, 8), (100, 6), (60, 4), (30, 3), (12, 1)];

/// Returns the briefing: every section, in at most [`BRIEFING`] bytes.
pub fn briefing(context: &OrchestratorContext) -> String {
    let mut last = String::new();
    for (length, items) in MEASURES {
        last = written(context, length, items);
        if last.len() <= BRIEFING {
            return last;
        }
    }
    // Multi-byte characters: the surplus is cut at the end.
    last.truncate(last.floor_char_boundary(BRIEFING));
    last
}

fn written(context: &OrchestratorContext, length: usize, items: usize) -> String {
    let mut text = format!("BRIEFING FOR GENERATION {}\n", context.run_number.get());
    let previous = context.history.last();
    let before = previous
        .map_or_else(|| "This is the first one".to_owned(), |past| said(&past.summary, length));
    section(&mut text, "PREVIOUS RUN", &before);
    section(&mut text, "CURRENT PHASE", &word(&context.current_phase));
    let discussion = &context.discussion_summary;
    section(&mut text, "DISCUSSION TOPIC", &said(&discussion.topic, length));
    // The newest decisions matter most.
    let known = discussion.key_decisions.len();
    let decided: Vec<String> = discussion
        .key_decisions
        .iter()
        .enumerate()
        .skip(known.saturating_sub(items))
        .map(|(number, decision)| format!("{}. {}", number + 1, more(decision, length / 2)))
        .collect();
    section(&mut text, "KEY DECISIONS", &or_none(decided));
    let reached = if discussion.consensus_reached { "reached" } else { "not reached" };
    let signals = discussion.consensus_signals.iter();
    let signals = listed(
        signals.map(|(name, signal)| {
            let turns = context.agent_states.get(name).map(|state| state.times_processed.get());
            let signal = match (signal.as_str(), turns) {
                // What the format calls so is also where everybody begins.
                ("building", Some(0) | None) => "yet to speak".to_owned(),
                (signal, _) => more(signal, 12),
            };
            format!("{}: {signal}", more(name, 24))
        }),
        items * 2,
    );
    section(&mut text, "CONSENSUS", &format!("{reached}\n{signals}"));
    let action = &context.next_action;
    let mut next = format!("{}\nReason: {}", word(&action.kind), more(&action.reason, length));
    if let Some(Some(target)) = &action.target_agent {
        let _ = write!(next, "\nNext: {}", more(target, 24));
    }
    section(&mut text, "NEXT ACTION", &next);
    let agents = context.agent_states.iter().map(|(name, state)| {
        let turns = state.times_processed.get();
        format!(
            "{}: {turns} turns, {}",
            more(name, 24),
            cost(state.total_cost.get(), unknown(state))
        )
    });
    section(&mut text, "AGENT STATES", &listed(agents, items * 2));
    if let Some(Some(notes)) = &context.human_notes {
        section(&mut text, "NOTES FROM PEOPLE", &said(notes, length));
    }
    let unknown = context.agent_states.values().map(unknown).sum();
    let _ = write!(text, "\nTOTAL COST {}\n", cost(context.total_cost.get(), unknown));
    text
}

/// The number of turns of an agent whose cost is not known.
fn unknown(state: &AgentState) -> u64 {
    state.extra.get(UNKNOWN).and_then(Value::as_u64).unwrap_or(0)
}

/// The cost of turns in dollars, of some of which it is not known.
fn cost(dollars: f64, unknown: u64) -> String {
    match unknown {
        0 => format!("${dollars:.4}"),
        _ if dollars > 0.0 => format!("${dollars:.4} and what is unknown"),
        _ => "unknown".to_owned(),
    }
}

fn section(text: &mut String, title: &str, body: &str) {
    let _ = write!(text, "\n{title}\n{}\n", body.trim_end());
}

/// A text of somebody, with a mark in front of each line: it is not taken for a part of the briefing.
fn said(text: &str, length: usize) -> String {
    format!("> {}", more(text, length))
}

/// A text behind words of ours, with a mark in front of each further line.
fn more(text: &str, length: usize) -> String {
    clip(text, length).lines().collect::<Vec<_>>().join("\n> ")
}

fn or_none(lines: Vec<String>) -> String {
    if lines.is_empty() { "none yet".to_owned() } else { lines.join("\n") }
}

fn listed(lines: impl Iterator<Item = String>, items: usize) -> String {
    let mut lines: Vec<String> = lines.map(|line| format!("- {line}")).collect();
    let surplus = lines.len().saturating_sub(items);
    if surplus > 0 {
        lines.truncate(items);
        lines.push(format!("- and {surplus} more"));
    }
    or_none(lines)
}

/// Returns the value as it is written on the wire.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(Value::String(word)) => word,
        _ => String::new(),
    }
}

/// Summarises a generation in a few sentences.
pub fn narrative(run: &Run) -> String {
    let number = run.team.lineage.as_ref().map_or(1, |lineage| lineage.number);
    let topic = run.team.council.as_ref().map_or(&run.request, |council| &council.topic);
    let turns: u32 = run.purse.agents.values().map(|account| account.turns).sum();
    let mut text = format!(
        "Generation {number} took up “{}” in {turns} {}.",
        clip(topic, 120),
        if turns == 1 { "turn" } else { "turns" }
    );
    if let Some(verdict) = run.team.council.as_ref().and_then(|council| council.verdict.as_ref()) {
        let ended = match verdict.decision {
            Decision::Consensus => "It agreed",
            Decision::Exhausted => "It did not agree",
            Decision::Accepted => "A person accepted what it had",
        };
        let _ = write!(text, " {ended} ({} of {} for it).", verdict.agreed, verdict.total);
        if let Some(decision) = verdict.key_decisions.last() {
            let _ =
                write!(text, " Its last decision: {}.", clip(decision, 160).trim_end_matches('.'));
        }
        let against = verdict.dissent.iter().find(|dissent| !dissent.reason.is_empty());
        if let Some(dissent) = against {
            let _ = write!(text, " {} objects: {}.", dissent.member, clip(&dissent.reason, 120));
        }
    }
    let spent = run.purse.spent;
    let cost = match spent.unknown.money {
        0 => format!("cost ${:.4}", spent.money.dollars()),
        _ if spent.money == Usd(0) => "cost an unknown amount".to_owned(),
        _ => format!("cost {}", spent.cost_and_unknown()),
    };
    let ended = match run.team.lineage.as_ref().is_some_and(|lineage| !lineage.awaits.is_empty()) {
        true => "waits for a person".to_owned(),
        false => match run.status().waiting_on() {
            Some(on) => format!("is waiting for {on}"),
            None => run.status().to_string(),
        },
    };
    let _ = write!(text, " It {ended} and {cost}.");
    text
}
