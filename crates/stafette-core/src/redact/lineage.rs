//! Redaction of the data from earlier generations, including those of another orchestrator.

use super::{Redact, Redactor};
use crate::team::council::{Dissent, Verdict};
use crate::team::generation::hand_over::GenerationHandedOver;
use crate::team::generation::{Awaited, Lineage, Note, Past};
use crate::team::phase::{Brought, Hop, Part, Phases};
use crate::wire::context::{
    AgentState, CodeChange, DiscussionSummary, NextAction, OrchestratorContext, PastRun,
};

redact! {
    Lineage {
        clean: asks, awaits, phases, past, decisions, notes, given, changes, foreign, handed_over;
        keep: number, since, previous, phase, plan, check_in, spent, agents
    }
    Awaited { clean: question, missing, verdict; keep: from, owed }
    Verdict {
        clean: why, dissent, key_decisions, next_topic;
        keep: decision, agreed, needed, total, signals
    }
    Dissent { clean: reason; keep: member, signal }
    Phases { clean: parts, findings, hops, given; keep: task_id, place }
    Part { clean: brought; keep: handoff, agent, task_id, tokens, measured }
    Brought { clean: summary, problem; keep: passed, decision }
    Hop { clean: why; keep: place, phase, rounds, decision, tokens, saving }
    Past { clean: summary; keep: number, run, phase, cost }
    Note { clean: text, by; keep: at }
    GenerationHandedOver {
        clean: reason, topic, summary, why;
        keep: number, phase, action, cause, target_agent, cost, total_cost, next, ends
    }
    OrchestratorContext {
        clean: discussion_summary, code_changes, agent_states, next_action, history, human_notes,
            extra;
        keep: version, run_number, started_at, last_updated, current_phase, total_cost
    }
    DiscussionSummary {
        clean: topic, key_decisions, consensus_signals, extra;
        keep: consensus_reached
    }
    // The run keeps the content, so it is free text; a redacted file is never applied.
    CodeChange { clean: content, extra; keep: file, action, applied_at, validated_at, status }
    AgentState { clean: extra; keep: times_processed, total_cost, can_process }
    NextAction { clean: reason, extra; keep: kind, target_agent }
    PastRun { clean: summary, extra; keep: run_number, phase, cost }
}
