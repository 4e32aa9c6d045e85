//! Laws about handoffs that have a deadline of their own.

use std::collections::{BTreeMap, BTreeSet};

use stafette_core::run::propose::HandoffAdmitted;
use stafette_core::{Event, HandoffId, Run, State, Time};

use super::{LawResult, must};

/// The deadlines of handoffs, counted independently.
#[derive(Debug, Default)]
pub(crate) struct Deadlines {
    due: BTreeMap<HandoffId, Time>,
    /// Handoffs whose time ended in the step that is being read.
    ended: Vec<HandoffId>,
    /// All handoffs whose time ever ended.
    ever_ended: BTreeSet<HandoffId>,
}

impl Deadlines {
    pub(super) fn hear(&mut self, run: Option<&Run>, at: Time, event: &Event) -> LawResult {
        match event {
            Event::HandoffAdmitted(e) => self.admit(run, at, e),
            Event::HandoffClosed(e) => drop(self.due.remove(&e.handoff)),
            Event::TurnFinished(e) => {
                let due = self.due.get(&e.turn.handoff);
                must(
                    due.is_none_or(|due| at < *due),
                    "a result after the deadline is late",
                    || format!("{} at {at:?}, due at {due:?}", e.turn),
                )?;
            }
            Event::HandoffOverdue(e) => {
                let due = self.due.remove(&e.handoff);
                must(due.is_some_and(|due| due <= at), "what is overdue was due", || {
                    format!("{} at {at:?}, due at {due:?}", e.handoff)
                })?;
                self.ended.push(e.handoff);
                self.ever_ended.insert(e.handoff);
            }
            _ => {}
        }
        Ok(())
    }

    /// True if the time of a handoff has ended at some point.
    pub(crate) fn has_ended(&self, id: HandoffId) -> bool {
        self.ever_ended.contains(&id)
    }

    fn admit(&mut self, run: Option<&Run>, at: Time, e: &HandoffAdmitted) {
        if !matches!(e.state, State::Asked { .. }) {
            // A replacement gets the remaining time of its predecessor.
            let before = e.terms.as_ref().and_then(|terms| terms.continues);
            let left = before.and_then(|id| self.due.get(&id)).copied();
            let due = left.or(e.offer.timeout.map(|timeout| at + timeout));
            self.due.extend(due.map(|due| (e.id, due)));
        } else if e.offer.question.as_ref().is_some_and(|question| question.blocking) {
            // The time of handoffs that wait for a person's answer does not run.
            let mut next = e.returns_to.or(e.cause);
            while let Some(id) = next {
                self.due.remove(&id);
                next = run.and_then(|run| run.handoff(id)).and_then(|it| it.returns_to);
            }
        }
    }

    /// A handoff whose time has ended is closed, or waits for a person's decision.
    pub(super) fn are_kept(&mut self, run: &Run) -> LawResult {
        for id in std::mem::take(&mut self.ended) {
            let state = run.handoff(id).map(|handoff| &handoff.state);
            let decided = matches!(state, None | Some(State::Closed(_) | State::Blocked { .. }));
            must(decided, "what is overdue is decided about", || format!("{id} is {state:?}"))?;
        }
        Ok(())
    }

    /// After a process has checked the clock, no handoff is past its deadline.
    pub(crate) fn none_is_past(&self, now: Time) -> LawResult {
        let past = self.due.iter().find(|(_, due)| **due <= now);
        must(past.is_none(), "a deadline that has passed is acted upon", || {
            format!("at {now:?}: {past:?}")
        })
    }
}
