//! Redaction of the data from earlier generations, including those of another orchestrator.

use super::{Redact, Redactor};
use crate::team::council::{Dissent, Verdict};
use crate::team::generation::hand_over::GenerationHandedOver;
use crate::team::generation::{Awaited, Lineage, Note, Past};
use crate::team::phase::{Brought, Hop, Part, Phases};
use crate::wire::context::{
    AgentState, CodeChange, DiscussionSummary, NextAction, OrchestratorContext, PastRun,
};

impl Redact for Lineage {
    fn redact(&mut self, redactor: &Redactor) {
        let Lineage {
            number: _,
            since: _,
            previous: _,
            phase: _,
            plan: _,
            check_in: _,
            asks,
            awaits,
            phases,
            past,
            spent: _,
            agents: _,
            decisions,
            notes,
            given,
            changes,
            foreign,
            handed_over,
        } = self;
        asks.redact(redactor);
        awaits.redact(redactor);
        phases.redact(redactor);
        past.redact(redactor);
        decisions.redact(redactor);
        notes.redact(redactor);
        given.redact(redactor);
        changes.redact(redactor);
        foreign.redact(redactor);
        handed_over.redact(redactor);
    }
}

impl Redact for Awaited {
    fn redact(&mut self, redactor: &Redactor) {
        let Awaited { from: _, question, missing, owed: _, verdict } = self;
        question.redact(redactor);
        missing.redact(redactor);
        verdict.redact(redactor);
    }
}

impl Redact for Verdict {
    fn redact(&mut self, redactor: &Redactor) {
        let Verdict {
            decision: _,
            why,
            agreed: _,
            needed: _,
            total: _,
            signals: _,
            dissent,
            key_decisions,
            next_topic,
        } = self;
        why.redact(redactor);
        dissent.redact(redactor);
        key_decisions.redact(redactor);
        next_topic.redact(redactor);
    }
}

impl Redact for Dissent {
    fn redact(&mut self, redactor: &Redactor) {
        let Dissent { member: _, signal: _, reason } = self;
        reason.redact(redactor);
    }
}

impl Redact for Phases {
    fn redact(&mut self, redactor: &Redactor) {
        let Phases { task_id: _, place: _, parts, findings, hops, given } = self;
        parts.redact(redactor);
        findings.redact(redactor);
        hops.redact(redactor);
        given.redact(redactor);
    }
}

impl Redact for Part {
    fn redact(&mut self, redactor: &Redactor) {
        let Part { handoff: _, agent: _, task_id: _, tokens: _, measured: _, brought } = self;
        brought.redact(redactor);
    }
}

impl Redact for Brought {
    fn redact(&mut self, redactor: &Redactor) {
        let Brought { passed: _, decision: _, summary, problem } = self;
        summary.redact(redactor);
        problem.redact(redactor);
    }
}

impl Redact for Hop {
    fn redact(&mut self, redactor: &Redactor) {
        let Hop { place: _, phase: _, rounds: _, decision: _, why, tokens: _, saving: _ } = self;
        why.redact(redactor);
    }
}

impl Redact for Past {
    fn redact(&mut self, redactor: &Redactor) {
        let Past { number: _, run: _, phase: _, summary, cost: _ } = self;
        summary.redact(redactor);
    }
}

impl Redact for Note {
    fn redact(&mut self, redactor: &Redactor) {
        let Note { text, by, at: _ } = self;
        text.redact(redactor);
        by.redact(redactor);
    }
}

impl Redact for GenerationHandedOver {
    fn redact(&mut self, redactor: &Redactor) {
        let GenerationHandedOver {
            number: _,
            phase: _,
            action: _,
            reason,
            cause: _,
            target_agent: _,
            topic,
            summary,
            cost: _,
            total_cost: _,
            next: _,
            why,
            ends: _,
        } = self;
        reason.redact(redactor);
        topic.redact(redactor);
        summary.redact(redactor);
        why.redact(redactor);
    }
}

impl Redact for OrchestratorContext {
    fn redact(&mut self, redactor: &Redactor) {
        let OrchestratorContext {
            version: _,
            run_number: _,
            started_at: _,
            last_updated: _,
            current_phase: _,
            discussion_summary,
            code_changes,
            agent_states,
            next_action,
            history,
            total_cost: _,
            human_notes,
            extra,
        } = self;
        discussion_summary.redact(redactor);
        code_changes.redact(redactor);
        agent_states.values_mut().for_each(|state| state.redact(redactor));
        next_action.redact(redactor);
        history.redact(redactor);
        human_notes.redact(redactor);
        extra.redact(redactor);
    }
}

impl Redact for DiscussionSummary {
    fn redact(&mut self, redactor: &Redactor) {
        let DiscussionSummary {
            topic,
            key_decisions,
            consensus_reached: _,
            consensus_signals,
            extra,
        } = self;
        topic.redact(redactor);
        key_decisions.redact(redactor);
        consensus_signals.values_mut().for_each(|signal| signal.redact(redactor));
        extra.redact(redactor);
    }
}

impl Redact for CodeChange {
    fn redact(&mut self, redactor: &Redactor) {
        let CodeChange {
            file: _,
            action: _,
            // The run keeps it, so it is free text; a redacted file is never applied.
            content,
            applied_at: _,
            validated_at: _,
            status: _,
            extra,
        } = self;
        content.redact(redactor);
        extra.redact(redactor);
    }
}

impl Redact for AgentState {
    fn redact(&mut self, redactor: &Redactor) {
        let AgentState { times_processed: _, total_cost: _, can_process: _, extra } = self;
        extra.redact(redactor);
    }
}

impl Redact for NextAction {
    fn redact(&mut self, redactor: &Redactor) {
        let NextAction { kind: _, reason, target_agent: _, extra } = self;
        reason.redact(redactor);
        extra.redact(redactor);
    }
}

impl Redact for PastRun {
    fn redact(&mut self, redactor: &Redactor) {
        let PastRun { run_number: _, phase: _, summary, cost: _, extra } = self;
        summary.redact(redactor);
        extra.redact(redactor);
    }
}
