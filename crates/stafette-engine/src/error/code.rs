//! Stable codes of the errors, each with its HTTP status. HTTP, MCP and files report the same ones.

use stafette_core::lock;
use stafette_core::run::propose::Refusal;
use stafette_store::ReadError;
use stafette_workspace::{ChangeError, RenewalError};

use super::EngineError;

impl EngineError {
    /// Returns a stable code for programs, and the matching HTTP status.
    pub fn code(&self) -> (u16, &'static str) {
        match self {
            EngineError::NoRun { .. } => (404, "no_run"),
            EngineError::NoHandoff { .. } => (404, "no_handoff"),
            EngineError::NoEvent { .. } => (404, "no_event"),
            EngineError::NoMessage { .. } => (404, "no_message"),
            EngineError::NotSent { .. } => (409, "not_sent"),
            EngineError::Ambiguous { .. } => (409, "ambiguous"),
            EngineError::Over { .. } => (409, "run_over"),
            EngineError::Store { .. } | EngineError::LockStore { .. } => (507, "not_stored"),
            EngineError::Damaged { .. }
            | EngineError::Read { source: ReadError::Damaged { .. } } => (500, "damaged"),
            EngineError::Read { .. } | EngineError::Restore { .. } => (500, "not_readable"),
            EngineError::NotYours => (403, "not_yours"),
            EngineError::Taken { .. } => (409, "taken"),
            EngineError::NoRoom { .. } => (409, "many_changes"),
            EngineError::Late { .. } | EngineError::EndedBefore { .. } => (409, "late"),
            EngineError::NotTaken { .. } => (409, "not_taken"),
            EngineError::NothingOut { .. } | EngineError::NoTurn { .. } => (409, "no_turn"),
            EngineError::StartedHere { .. } => (409, "started_here"),
            EngineError::Mistaken { .. }
            | EngineError::Refused { refusal: Refusal::Silent { .. } } => (422, "mistaken"),
            EngineError::OtherRequest { .. } => (422, "key_reused"),
            EngineError::Refused { refusal: Refusal::TooLarge { .. } } => (413, "too_large"),
            EngineError::Refused { .. } => (409, "refused"),
            EngineError::Lock { refusal } => lock_code(refusal),
            EngineError::MayNotWrite { conflict: lock::Conflict::Locked { .. } } => (423, "locked"),
            EngineError::MayNotWrite { conflict: lock::Conflict::Lost { .. } } => {
                (409, "lock_lost")
            }
            EngineError::Blocked { .. } => (409, "blocked"),
            EngineError::Objected { .. } => (409, "objected"),
            EngineError::Change { source } => change_code(source),
            EngineError::Renewal { source } => renewal_code(source),
            EngineError::GoesOn { .. } => (409, "goes_on"),
            EngineError::NobodyHears { .. } => (409, "nobody_hears"),
            // Only an order ends so, and it is tried again.
            EngineError::NotCollected { .. } => (503, "not_collected"),
            EngineError::Stopping => (503, "stopping"),
        }
    }
}

/// Returns the code and status of an error of the change store.
#[must_use]
pub fn change_code(error: &ChangeError) -> (u16, &'static str) {
    match error {
        ChangeError::NoChange { .. } => (404, "no_change"),
        ChangeError::Path(_)
        | ChangeError::Edit { .. }
        | ChangeError::Size { .. }
        | ChangeError::Collision { .. } => (422, "bad_change"),
        ChangeError::Protected { .. } => (403, "protected"),
        ChangeError::NotYours { .. } => (403, "not_yours"),
        ChangeError::NotAFile { .. } => (409, "not_a_file"),
        ChangeError::Changed { .. } | ChangeError::Outdated { .. } | ChangeError::Edited { .. } => {
            (409, "changed_since")
        }
        ChangeError::NeedsPerson { .. } => (409, "needs_person"),
        ChangeError::Status { .. } => (409, "change_status"),
        ChangeError::Later { .. } => (409, "later_changes"),
        ChangeError::Busy => (409, "changes_busy"),
        ChangeError::Revised { .. } => (409, "revised"),
        ChangeError::BeingRevised { .. } => (409, "being_revised"),
        ChangeError::Unreadable { .. } => (500, "not_readable"),
        ChangeError::Files { .. } | ChangeError::Git(_) => (507, "not_written"),
        ChangeError::Stuck { .. } => (500, "not_taken_back"),
    }
}

/// Returns the code and status of a failed renewal.
#[must_use]
pub fn renewal_code(error: &RenewalError) -> (u16, &'static str) {
    match error {
        RenewalError::Change(error) => change_code(error),
        RenewalError::Outside { .. } => (422, "not_a_program"),
        RenewalError::Files { .. } => (500, "files"),
    }
}

fn lock_code(refusal: &lock::Refusal) -> (u16, &'static str) {
    use lock::Refusal;
    match refusal {
        Refusal::Locked { .. } | Refusal::Awaited { .. } | Refusal::Late { .. } => (423, "locked"),
        Refusal::Deadlock { .. } => (409, "deadlock"),
        Refusal::Lost { .. } => (409, "lock_lost"),
        Refusal::NotYours { .. } => (403, "lock_not_yours"),
        Refusal::NoReason => (422, "no_reason"),
        Refusal::Limit { .. } => (422, "lock_limit"),
    }
}
