//! Laws about the events of a run, one by one.

use std::collections::{BTreeMap, BTreeSet};

use stafette_core::change::ChangeId;
use stafette_core::handoff::{About, Way};
use stafette_core::run::propose::HandoffAdmitted;
use stafette_core::{
    Event, HandoffId, Party, Recorded, Response, Run, State, Status, TeamEvent, Time, TurnKey,
    Usage,
};

use super::budget::Costs;
use super::deadline::Deadlines;
use super::order::may_be_given_out;
use super::part::Parts;
use super::path::Paths;
use super::phase::Phases;
use super::set::Sets;
use super::{LawResult, must};

/// The past of a run, as far as a law needs it.
#[derive(Debug, Default)]
pub(crate) struct History {
    pub(super) ordered: BTreeSet<TurnKey>,
    pub(super) ended: BTreeSet<TurnKey>,
    /// Turns of each handoff, since a person restarted it.
    turns: BTreeMap<HandoffId, u32>,
    /// The session whose result ended each turn.
    finished: BTreeMap<TurnKey, String>,
    late: BTreeSet<(TurnKey, String)>,
    /// The turns whose answer was told by a channel of its own, which counts instead of the result.
    told: BTreeSet<TurnKey>,
    admitted: BTreeSet<HandoffId>,
    refused: BTreeSet<HandoffId>,
    closed: BTreeMap<HandoffId, Closed>,
    /// The times at which handoffs were closed since the last one was admitted, or in the same
    /// moment.
    pub(super) closed_since: Vec<Time>,
    answered: BTreeSet<HandoffId>,
    awaited_by: BTreeMap<HandoffId, HandoffId>,
    overdue: BTreeSet<HandoffId>,
    /// Handoffs whose offers wait for a person's confirmation.
    unconfirmed: BTreeSet<HandoffId>,
    pub(super) paths: Paths,
    phases: Phases,
    pub(crate) spent: Usage,
    pub(super) costs: Costs,
    pub(crate) deadlines: Deadlines,
    parts: Parts,
    over: bool,
    /// The number of times it handed over: a process that does not know of the end may do it too.
    handed_over: u32,
    /// Sets that have not been reported yet.
    pub(crate) proposed: Vec<ChangeId>,
    sets: Sets,
    /// Questions that have not been reported yet.
    pub(crate) asked: Vec<HandoffId>,
}

/// Returns the author of a response: its summary begins with the name of the session.
fn session_of(response: &Response) -> String {
    response.summary.split(' ').next().unwrap_or_default().to_owned()
}

#[derive(Clone, PartialEq, Eq, Debug)]
struct Closed {
    way: Way,
    succeeded_by: Vec<HandoffId>,
}

impl History {
    pub(crate) fn handoffs(&self) -> u64 {
        self.admitted.len() as u64
    }

    /// A result that was acknowledged to an agent is stored: as its turn's result, or as late.
    pub(crate) fn has_result(&self, key: TurnKey, by: &str) -> LawResult {
        let told = self.told.contains(&key);
        let applied = self.finished.get(&key).is_some_and(|name| told || name == by);
        let kept = self.late.contains(&(key, by.to_owned()));
        must(applied || kept, "an acknowledged result is in the store", || {
            format!("the result of {key} by {by} is not")
        })
    }

    /// A run of a series that has ended has handed over, and once.
    pub(crate) fn has_handed_over(&self, is_one: bool) -> LawResult {
        must(self.handed_over == u32::from(is_one), "a generation hands over once", || {
            format!("{} times", self.handed_over)
        })
    }

    /// Work that is about to be carried out was recorded first, and has not ended.
    pub(crate) fn is_ordered(&self, key: TurnKey) -> LawResult {
        must(self.ordered.contains(&key), "nothing acts before it is recorded", || {
            format!("{key} was never ordered")
        })
    }

    pub(super) fn hear(&mut self, before: Option<&Run>, recorded: &Recorded) -> LawResult {
        let event = &recorded.event;
        // After the end come only evidence, a message for the next generation, or its beginning;
        // sets are reviewed long after.
        let late = matches!(
            event,
            Event::LateResultKept(_)
                | Event::Team(TeamEvent::NoteLeft(_))
                | Event::Team(TeamEvent::GenerationHandedOver(_))
                | Event::Team(TeamEvent::ChangeProposed(_))
                | Event::Team(TeamEvent::ChangeCommented(_))
                | Event::Team(TeamEvent::ChangeOrdered(_))
                | Event::Team(TeamEvent::ChangeSettled(_))
                | Event::Team(TeamEvent::OrderDone(_))
        );
        must(!self.over || late, "a finished run changes no more", || format!("{event:?}"))?;
        let first = recorded.seq == 1;
        must(first == matches!(event, Event::RunCreated(_)), "a run is created once", || {
            format!("{event:?}")
        })?;
        // Checked first, so that it is reported even if the first result closed its handoff.
        if let Event::TurnFinished(e) = event {
            must(!self.finished.contains_key(&e.turn), "a turn has one result", || {
                format!("{} has two", e.turn)
            })?;
        }
        if let Some(id) = event.handoff() {
            self.is_about_open(id, event)?;
        }
        self.deadlines.hear(before, recorded.at, event)?;
        if let Some(run) = before {
            self.phases.hear(run, event)?;
            self.sets.hear(run, event)?;
            self.parts.hear(run, event)?;
        }
        match event {
            Event::TurnOrdered(e) => {
                must(self.ordered.insert(e.turn), "a key names one turn", || e.turn.to_string())?;
                let turns = self.turns.entry(e.turn.handoff).or_default();
                *turns += 1;
                if let Some(run) = before {
                    may_be_given_out(run, recorded.at, e)?;
                    self.costs.ordered(run, e)?;
                    self.paths.use_one(run, recorded.at, e.turn)?;
                    let limit = run.workflow.limits.turns_per_handoff;
                    must(*turns <= limit, "a handoff has a limit of turns", || {
                        format!("{} is number {turns} of {limit}", e.turn)
                    })?;
                }
            }
            Event::ReceiptGiven(e) => self.is_out(e.turn)?,
            Event::PermitGiven(e) => self.is_out(e.turn)?,
            Event::MessageDelivered(e) => self.is_out(e.turn)?,
            Event::LeaseRenewed(e) => self.is_out(e.turn)?,
            Event::TurnTold(e) => {
                self.is_out(e.turn)?;
                self.told.extend(e.told.response.is_some().then_some(e.turn));
            }
            Event::TurnFinished(e) => {
                self.end(e.turn, e.result.usage)?;
                if let Some(run) = before {
                    self.costs.finished(run, e.turn, e.result.usage);
                }
                self.finished.insert(e.turn, session_of(&e.result.response));
                let trusting = before.is_some_and(|run| run.workflow.workflow.trust_bare_frames);
                if e.result.bare && !trusting {
                    self.unconfirmed.insert(e.turn.handoff);
                }
            }
            Event::TurnFailed(e) => self.end(e.turn, e.usage)?,
            Event::LateResultKept(e) => {
                let out = |run: &Run| run.outbox().any(|order| order.key == e.turn);
                must(!before.is_some_and(out), "a result in time is not late", || {
                    e.turn.to_string()
                })?;
                self.late.insert((e.turn, session_of(&e.result.response)));
            }
            Event::RetryScheduled(e) => {
                let max = before.map_or(0, |run| run.workflow.retries.max);
                must(e.attempt <= max, "retries have a limit", || {
                    format!("attempt {} of {max} of {}", e.attempt, e.handoff)
                })?;
            }
            Event::HandoffAdmitted(e) => {
                self.closed_since.retain(|at| *at == recorded.at);
                self.admit(before, e)?;
            }
            Event::Team(TeamEvent::GenerationHandedOver(_)) => self.handed_over += 1,
            Event::Team(TeamEvent::ChangeProposed(e)) => self.proposed.push(e.set.change),
            Event::HandoffRefused(e) => {
                let new = !self.admitted.contains(&e.id) && self.refused.insert(e.id);
                must(new, "a handoff has one number", || e.id.to_string())?;
            }
            Event::HandoffResumed(e) if e.afresh => {
                self.paths.begin_afresh(e.handoff);
                self.turns.remove(&e.handoff);
            }
            Event::HandoffOverdue(e) => {
                self.overdue.insert(e.handoff);
            }
            Event::HandoffClosed(e) => {
                let way = e.way;
                let closed = Closed { way, succeeded_by: e.succeeded_by.clone() };
                self.closed.insert(e.handoff, closed);
                self.closed_since.push(recorded.at);
                // A turn in progress is cancelled with it.
                let out = |run: &Run| {
                    let handoff = run.handoff(e.handoff)?;
                    handoff.state.turn().map(|_| handoff.key(run.id))
                };
                match (before.and_then(out), e.used) {
                    // It had begun, so it has cost something.
                    (Some(turn), Some(used)) => self.end(turn, used)?,
                    (Some(turn), None) => {
                        self.costs.called_off(turn);
                        self.ended.insert(turn);
                    }
                    (None, used) => must(used.is_none(), "only a turn has a cost", || {
                        format!("{} has {used:?}", e.handoff)
                    })?,
                }
            }
            Event::QuestionAnswered(e) => {
                let first = self.answered.insert(e.handoff);
                must(first, "an answer counts once", || e.handoff.to_string())?;
                let asked = before.and_then(|run| run.handoff(e.handoff));
                let question = asked.and_then(|handoff| handoff.offer.question.as_ref());
                if let Some(About::Unconfirmed(source)) = question.map(|question| &question.about) {
                    self.unconfirmed.remove(source);
                }
            }
            Event::RunFinished(e) => {
                self.over = true;
                if e.ending.status == Status::Succeeded {
                    self.succeeds_with_nothing_dropped()?;
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A handoff ends once: only late results are recorded for it afterwards.
    fn is_about_open(&self, id: HandoffId, event: &Event) -> LawResult {
        let known = self.admitted.contains(&id) && !self.closed.contains_key(&id);
        let fine = match event {
            Event::HandoffAdmitted(_) | Event::HandoffRefused(_) => true,
            Event::LateResultKept(_)
            | Event::Team(TeamEvent::ChangeProposed(_))
            | Event::Team(TeamEvent::ChangeCommented(_))
            | Event::Team(TeamEvent::ChangeReturned(_))
            | Event::Team(TeamEvent::ChangeOrdered(_))
            | Event::Team(TeamEvent::ChangeSettled(_)) => self.admitted.contains(&id),
            _ => known,
        };
        must(fine, "a handoff is closed once, and for good", || {
            format!("{} of {id}, which is not open", event.name())
        })
    }

    fn is_out(&self, turn: TurnKey) -> LawResult {
        let out = self.ordered.contains(&turn) && !self.ended.contains(&turn);
        must(out, "a turn that is not out does nothing", || turn.to_string())
    }

    fn end(&mut self, turn: TurnKey, usage: Usage) -> LawResult {
        self.is_out(turn)?;
        self.ended.insert(turn);
        self.spent += usage;
        self.costs.ended(turn, usage);
        Ok(())
    }

    fn admit(&mut self, before: Option<&Run>, e: &HandoffAdmitted) -> LawResult {
        let new = !self.refused.contains(&e.id) && self.admitted.insert(e.id);
        must(new, "a handoff has one number", || e.id.to_string())?;
        if let Some(above) = e.returns_to {
            self.awaited_by.insert(e.id, above);
        }
        if matches!(e.state, State::Asked { .. }) {
            self.asked.push(e.id);
        }
        let by_agent = e.cause.filter(|_| e.offer.to != Party::Human);
        let unconfirmed = by_agent.is_some_and(|cause| self.unconfirmed.contains(&cause));
        must(!unconfirmed, "what is read off plain output only proposes", || e.id.to_string())?;
        match before {
            Some(run) => self.paths.admit(run, e),
            None => Ok(()),
        }
    }

    /// True if the handoff that waited for it, directly or indirectly, has run out of time.
    fn nobody_waits(&self, id: HandoffId) -> bool {
        let above = self.awaited_by.get(&id);
        above.is_some_and(|above| self.overdue.contains(above) || self.nobody_waits(*above))
    }

    /// Work that failed and was given to another agent had a result before the run succeeded.
    fn succeeds_with_nothing_dropped(&self) -> LawResult {
        for (id, closed) in &self.closed {
            for successor in &closed.succeeded_by {
                let done = self.closed.get(successor).is_some_and(|it| it.way == Way::Answered)
                    || self.nobody_waits(*successor);
                must(done, "a run succeeds when its work is done", || {
                    format!("{id} was given to {successor}, which was called off")
                })?;
            }
        }
        Ok(())
    }
}
