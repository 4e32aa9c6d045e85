use super::*;
use crate::context::NextActionType;

#[test]
fn s4_01_the_context_of_a_team_is_read_whole() {
    let context: OrchestratorContext = typed(&fixture("context.json"));
    assert_eq!(context.run_number.get(), 3);
    assert_eq!(context.discussion_summary.consensus_signals.len(), 5);
    assert_eq!(context.code_changes[0].applied_at, Some(None));
    assert_eq!(context.code_changes[2].content, None);
    assert_eq!(context.agent_states["Pierre"].times_processed.get(), 6);
    assert_eq!(context.next_action.kind, NextActionType::ContinueDiscussion);
    assert_eq!(context.total_cost.get(), 0.33);
}

#[test]
fn s4_01_an_invalid_context_is_refused_with_every_place_and_reason() {
    let document = fixture("invalid/context.json");
    insta::assert_snapshot!(complaints(Name::Context, &document), @r#"
    /agentStates/Alex/totalCost: -0.05 is less than the minimum of 0
    /codeChanges/0/action: "rename" is not one of "create", "modify", "delete"
    /codeChanges/0/appliedAt: "" is not a "date-time"
    /currentPhase: "lunch" is not one of "discussion", "code_review", "apply_changes", "testing"
    /discussionSummary/consensusReached: "no" is not of type "boolean"
    /lastUpdated: "2026-01-06 12:05" is not a "date-time"
    /nextAction: "reason" is a required property
    /version: "v1.0" was expected
    "#);
}

#[test]
fn s5_01_the_shared_state_is_read_whole() {
    let state: SharedState = typed(&fixture("state.json"));
    assert_eq!(state.current_agent, Some(Some("builder".into())));
    assert_eq!(state.locks["src/auth.rs"].extra["token"], 7);
    assert_eq!(state.agents["reviewer"].last_active, None);
    let idle: SharedState = typed(&fixture("state-idle.json"));
    assert_eq!(idle.current_workflow, Some(None));
}

#[test]
fn s5_01_an_invalid_state_is_refused_with_every_place_and_reason() {
    let document = fixture("invalid/state.json");
    insta::assert_snapshot!(complaints(Name::State, &document), @r#"
    /agents/planner: "status" is a required property
    /current_workflow/type: "chore" is not one of "feature", "bugfix", "refactor"
    /locks/src~1auth.rs: "expires" is a required property
    "#);
}
