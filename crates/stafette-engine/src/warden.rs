//! Somebody who is asked before something begins, and may say no.

use std::fmt::Debug;
use std::path::Path;
use std::pin::Pin;

use stafette_core::{RunId, TurnOrder, Workflow};

/// What a warden thinks of something.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Verdict {
    /// Why it must not be, when it must not.
    pub refusal: Option<String>,
    /// What people should hear of, though nothing is held back for it.
    pub alerts: Vec<String>,
}

/// The code of alerts that a warden raises.
pub const ALERT: &str = "HOOK_FAILED";

/// A verdict that takes its time. It comes within a bounded time.
pub type Asked<'a> = Pin<Box<dyn Future<Output = Verdict> + Send + 'a>>;

/// A run that is about to begin.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'a> {
    /// The name that it will have.
    pub run: RunId,
    /// By which workflow.
    pub workflow: &'a Workflow,
    /// What is asked for.
    pub request: &'a str,
    /// Who asks.
    pub by: &'a str,
}

/// Is asked before something begins.
pub trait Warden: Debug + Send + Sync {
    /// Before a run begins: nothing of it is stored yet.
    fn before_run<'a>(&'a self, beginning: Beginning<'a>) -> Asked<'a>;

    /// Before an agent gets a turn. `folder` is where it would work.
    fn before_turn<'a>(
        &'a self,
        workflow: &'a Workflow,
        order: &'a TurnOrder,
        folder: &'a Path,
    ) -> Asked<'a>;
}
