//! Laws about sets of edits, as their run records them.

use std::collections::BTreeMap;

use stafette_core::change::{ChangeId, ChangeStatus};
use stafette_core::handoff::About;
use stafette_core::team::change::{ChangeWork, MOST_SETS};
use stafette_core::{Event, Run, TeamAbout, TeamEvent};

use super::{LawResult, must};

/// The sets of a run, counted independently.
#[derive(Debug, Default)]
pub(super) struct Sets {
    /// The last revision of each set.
    revisions: BTreeMap<ChangeId, u32>,
    /// The last request for each set that has no outcome yet.
    wanted: BTreeMap<ChangeId, ChangeWork>,
    /// True if the set is in the project, according to the run.
    inside: BTreeMap<ChangeId, bool>,
}

impl Sets {
    pub(super) fn hear(&mut self, run: &Run, event: &Event) -> LawResult {
        let kept = run.team.changes.len() <= MOST_SETS;
        must(kept, "the state is bounded", || format!("{} sets", run.team.changes.len()))?;
        match event {
            Event::Team(TeamEvent::ChangeProposed(e)) => {
                let (id, revision) = (e.set.change, e.set.revision);
                let earlier = self.revisions.insert(id, revision);
                must(earlier < Some(revision), "a set is proposed once", || {
                    format!("{id} as {revision} after {earlier:?}")
                })?;
                let inside = self.inside.get(&id).copied().unwrap_or(false);
                must(!inside, "what is in the project is not revised", || id.to_string())
            }
            Event::Team(TeamEvent::ChangeOrdered(e)) => {
                self.wanted.insert(e.change, e.work);
                Ok(())
            }
            Event::Team(TeamEvent::ChangeSettled(e)) => {
                let is_decision = e.order.is_none();
                self.settle(run, e.change, e.status, is_decision)
            }
            Event::HandoffAdmitted(e) => {
                let about = e.offer.question.as_ref().map(|question| &question.about);
                let Some(About::Team(TeamAbout::Change(id))) = about else { return Ok(()) };
                let asked = run.open().find(|handoff| {
                    let question = handoff.offer.question.as_ref();
                    question.is_some_and(|question| {
                        question.about == About::Team(TeamAbout::Change(*id))
                    })
                });
                must(asked.is_none(), "a person is asked once about a set", || id.to_string())
            }
            _ => Ok(()),
        }
    }

    fn settle(
        &mut self,
        run: &Run,
        id: ChangeId,
        status: ChangeStatus,
        is_decision: bool,
    ) -> LawResult {
        const LAW: &str = "a set gets in and out when somebody wants it, once";
        let wanted = self.wanted.remove(&id);
        must(!(is_decision && wanted.is_some()), "nobody decides about what is under way", || {
            id.to_string()
        })?;
        let inside = self.inside.entry(id).or_default();
        let was = std::mem::replace(inside, status.is_in());
        let moved = was != *inside;
        let right = match status {
            _ if !moved => true,
            ChangeStatus::Applied | ChangeStatus::Validated => wanted == Some(ChangeWork::Apply),
            ChangeStatus::Undone => {
                matches!(wanted, Some(ChangeWork::Undo | ChangeWork::UndoWithLater))
            }
            _ => false,
        };
        must(right, LAW, || format!("{id} is {status:?}, wanted was {wanted:?}"))?;
        let gated = run.team.changes.get(&id).filter(|known| !known.gates.is_empty());
        let refused = gated.is_some_and(|known| known.status == ChangeStatus::Refused);
        must(!(refused && moved && *inside), "what a person refused stays out", || id.to_string())
    }
}
