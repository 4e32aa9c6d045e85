//! Laws about answers: given values reach the handoff that waits, even if the rest comes from
//! others.

use std::collections::{BTreeMap, BTreeSet};

use stafette_core::handoff::Way;
use stafette_core::workflow::Strategy;
use stafette_core::{Event, HandoffId, Run};

use super::{LawResult, must};

type Keys = BTreeSet<String>;

/// Values that were given and have not arrived yet.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// The answer that ended the last turn, while it has not been processed.
    last: Option<(HandoffId, Keys)>,
    /// Values that were given for a handoff that another agent continues.
    given: BTreeMap<HandoffId, Keys>,
    /// Values that the waiting handoff must find among its inputs.
    owed: BTreeMap<HandoffId, Keys>,
}

impl Parts {
    pub(super) fn hear(&mut self, run: &Run, event: &Event) -> LawResult {
        match event {
            Event::TurnFinished(e) => {
                let keys = e.result.response.outputs.keys().cloned().collect();
                self.last = Some((e.turn.handoff, keys));
            }
            Event::HandoffBlocked(_) | Event::HandoffOverdue(_) | Event::TurnFailed(_) => {
                self.last = None;
            }
            Event::RecoveryChosen(e) => {
                let goes_on = matches!(
                    e.action,
                    Strategy::RetryDifferentTarget | Strategy::Escalate | Strategy::ProceedPartial
                );
                if let Some((id, keys)) = self.last.take()
                    && id == e.handoff
                    && goes_on
                {
                    self.given.entry(id).or_default().extend(keys);
                }
            }
            Event::HandoffClosed(e) => {
                self.owed.remove(&e.handoff);
                let given = self.given.remove(&e.handoff).unwrap_or_default();
                let Some(closed) = run.handoff(e.handoff) else { return Ok(()) };
                // A council member's contribution is for the council, and may be secret.
                let waits = closed
                    .returns_to
                    .filter(|_| !stafette_core::team::council::is_turn(&closed.constraints));
                let Some(waits) = waits else { return Ok(()) };
                if let Some(successor) = e.succeeded_by.first() {
                    self.given.entry(*successor).or_default().extend(given);
                } else if e.way == Way::Answered {
                    let owed = self.owed.entry(waits).or_default();
                    owed.extend(given);
                    owed.extend(e.response.outputs.keys().cloned());
                }
            }
            Event::HandoffResumed(e) => {
                self.last = None;
                let owed = self.owed.remove(&e.handoff).unwrap_or_default();
                let Some(handoff) = run.handoff(e.handoff) else { return Ok(()) };
                let lost = owed.iter().find(|key| !handoff.inputs.contains_key(*key));
                must(
                    lost.is_none(),
                    "what was given in part is there when the asker goes on",
                    || format!("{} lacks {lost:?}", e.handoff),
                )?;
            }
            _ => {}
        }
        Ok(())
    }
}
