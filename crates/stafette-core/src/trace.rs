//! The place of a run in a trace.

use crate::{Run, TurnKey};

pub use stafette_model::trace::{NotATraceparent, SpanId, TraceId, Traceparent};

impl Run {
    /// Returns the position of a turn in the run's trace, if that trace is exported: a parent that
    /// is never exported is worse than none.
    pub fn traceparent(&self, turn: TurnKey) -> Option<Traceparent> {
        let told = self.workflow.telemetry.otlp.is_some();
        told.then(|| Traceparent::of_turn(turn, self.trace))
    }
}
