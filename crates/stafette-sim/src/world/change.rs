//! Sets of edits: agents propose them, people judge and apply them, and a process may die between
//! any two steps. [`stafette_engine::telling`] decides what has to be reported.

use std::collections::BTreeMap;

use stafette_core::change::{Author, Change, ChangeId, ChangeStatus};
use stafette_core::team::change::ChangeWork;
use stafette_core::{Event, Input, Recorded, Run, RunId, TeamEvent, TeamInput, TurnKey};
use stafette_engine::telling;
use stafette_store::AppendError;

use super::{Happening, Passage, Stop, World};
use crate::law::must;

/// The number of tries for something that another process may be doing too.
const TRIES: usize = 8;

impl World {
    /// Proposes a set in an agent's turn.
    pub(super) fn propose_set(&mut self, id: u64, gated: bool) -> Passage {
        let Some(session) = self.sessions.get(&id) else { return Ok(()) };
        let (key, order) = (session.key(), session.order.clone());
        let Some((node, life)) = session.home else { return Ok(()) };
        if !self.is_up(node, life) || !self.is_out(node, key) {
            return Ok(());
        }
        let author = Author {
            run: Some(key.run),
            agent: Some(order.agent.clone()),
            handoff: Some(key.handoff),
            person: String::new(),
        };
        let place = format!("{}/{}", key.run.short(), key.handoff);
        let name = if gated { "package.json" } else { "note.txt" };
        let text = format!("{key} of {}\n", order.agent);
        let rules = self.cast.workflow.change_rules();
        let file = format!("{place}/{}/{name}", order.agent);
        let kept = self.sets.propose(author, &file, &text, order.revises(), &rules);
        let Ok(change) = kept else {
            self.counts.note("set refused at once");
            return Ok(());
        };
        self.counts.note("set kept");
        self.point(node, "set kept")?;
        let set = Box::new(change.proposed());
        if !self.record(
            node,
            key.run,
            Input::Team(TeamInput::ProposeChange { turn: Some(key), set }),
        )? {
            return Ok(());
        }
        let known = self.witness.run.as_ref().is_some_and(|run| telling::knows(run, &change));
        if !known {
            self.counts.note("set turned away");
            self.sets.turned_away(change.id);
            return Ok(());
        }
        self.point(node, "set recorded")?;
        self.sets.told(&change);
        Ok(())
    }

    fn is_out(&mut self, node: usize, key: TurnKey) -> bool {
        self.up(node).is_some_and(|up| up.run().outbox().any(|order| order.key == key))
    }

    /// Plans reviews of a proposed set: one after a while, and another one later.
    pub(super) fn plan_a_review(&mut self, change: ChangeId) {
        for _ in 0..self.chance.below(4) {
            let after = self.chance.between(500, 400_000);
            self.plan(stafette_core::Millis(after), Happening::Review { change });
        }
    }

    /// Lets a person approve, reject, comment on, apply or undo a set.
    pub(super) fn review(&mut self, id: ChangeId) -> Passage {
        let node = self.chance.index(self.nodes.len());
        if self.up(node).is_none() {
            return Ok(());
        }
        let (by, of) = (|| "ada".to_owned(), self.run_of(id));
        match self.chance.below(10) {
            0 => self.decide_set(node, id, ChangeStatus::Approved),
            1 => self.decide_set(node, id, ChangeStatus::Refused),
            2 => {
                let Some(comment) = self.sets.remark(id, "shorter") else { return Ok(()) };
                if self.introduce(node, id)? {
                    let input = Input::Team(TeamInput::CommentChange {
                        change: id,
                        comment: comment.clone(),
                    });
                    if self.record(node, of, input)? {
                        self.sets.comment(id, comment);
                    }
                }
                Ok(())
            }
            3 => {
                if let Some(change) = self.sets.get(id).filter(|_| self.chance.percent(40)) {
                    self.counts.note("set obstructed");
                    self.sets.obstruct(&change);
                }
                self.work_on(node, id, ChangeWork::Apply, by())
            }
            4..8 => self.work_on(node, id, ChangeWork::Apply, by()),
            _ => self.work_on(node, id, ChangeWork::Undo, by()),
        }
    }

    /// Records a person's decision, in the run first.
    fn decide_set(&mut self, node: usize, id: ChangeId, status: ChangeStatus) -> Passage {
        let decidable = self.sets.get(id).filter(|change| telling::follows(change, status));
        if decidable.is_none() || !self.introduce(node, id)? {
            return Ok(());
        }
        let (by, note) = ("ada".to_owned(), String::new());
        let of = self.run_of(id);
        if self.record(
            node,
            of,
            Input::Team(TeamInput::SettleChange { change: id, status, by, note }),
        )? {
            self.point(node, "set recorded")?;
            self.sets.follow(id, status, "ada");
        }
        Ok(())
    }

    /// Records a request, carries it out, and records the outcome.
    pub(super) fn work_on(
        &mut self,
        node: usize,
        id: ChangeId,
        work: ChangeWork,
        by: String,
    ) -> Passage {
        if !self.introduce(node, id)? || !self.sets.untell(id) {
            return Ok(());
        }
        self.point(node, "set wanted")?;
        let (of, by_whom) = (self.run_of(id), by.clone());
        if !self.record(
            node,
            of,
            Input::Team(TeamInput::OrderChange { change: id, work, by: by_whom }),
        )? {
            return Ok(());
        }
        self.point(node, "set wanted")?;
        let rules = self.cast.workflow.change_rules();
        let done = self.sets.carry_out(id, work, &rules);
        self.counts.note(match (&done, work) {
            (Ok(()), ChangeWork::Apply) => "set applied",
            (Ok(()), ChangeWork::Undo) => "set undone",
            (Err(_), _) => "set not moved",
        });
        self.sets.hold()?;
        self.point(node, "set moved")?;
        let note = done.err().map(|error| error.to_string()).unwrap_or_default();
        self.settle_set(node, id, &by, &note)
    }

    /// Reports the status of a set to the run.
    fn settle_set(&mut self, node: usize, id: ChangeId, by: &str, note: &str) -> Passage {
        if !self.introduce(node, id)? {
            return Ok(());
        }
        let of = self.run_of(id);
        let Some((change, run)) = self.sets.get(id).zip(self.run_at(node, of)) else {
            return Ok(());
        };
        if let Some(input) = telling::outcome(&run, &change, by, note)
            && !self.record(node, of, input)?
        {
            return Ok(());
        }
        self.point(node, "set recorded")?;
        self.sets.told(&change);
        Ok(())
    }

    /// Reports a set to the run; returns true if the run knows it.
    fn introduce(&mut self, node: usize, id: ChangeId) -> Result<bool, Stop> {
        let of = self.run_of(id);
        let Some((change, run)) = self.sets.get(id).zip(self.run_at(node, of)) else {
            return Ok(false);
        };
        match telling::introduction(&run, &change) {
            Some(input) => self.record(node, of, input),
            None => Ok(true),
        }
    }

    /// Returns the run that records the outcome of a set: the one that it was proposed in, even if
    /// a later generation works with it.
    fn run_of(&self, id: ChangeId) -> RunId {
        self.sets.get(id).and_then(|change| change.author.run).unwrap_or(self.run)
    }

    /// Returns a run as a process knows it, or from the store if no process drives it.
    fn run_at(&mut self, node: usize, run: RunId) -> Option<Run> {
        let current = run == self.run;
        match self.up(node).filter(|_| current) {
            Some(up) => Some(up.run().clone()),
            None => self.disk.restore(run).map(|driver| driver.run().clone()),
        }
    }

    /// Gives an input to a run, even to one that has ended; returns true if it was stored.
    fn record(&mut self, node: usize, run: RunId, input: Input) -> Result<bool, Stop> {
        for _ in 0..TRIES {
            if run == self.run && self.up(node).is_some() {
                match self.record_now(node, &input)? {
                    Some(stored) => return Ok(stored),
                    None => continue,
                }
            }
            let Some(driver) = self.disk.restore(run) else { return Ok(false) };
            let step = driver.decide(self.now, [input.clone()]);
            if step.is_empty() {
                return Ok(true);
            }
            let appended = self.append(&step);
            if run == self.run {
                self.check()?
            } else {
                self.check_earlier(run)?
            }
            match appended {
                Ok(()) => {
                    self.mirror(&step.events);
                    return Ok(true);
                }
                Err(AppendError::Conflict { .. }) => {}
                Err(_) => return Ok(false),
            }
        }
        Ok(false)
    }

    /// Writes people's decisions in a run to the sets.
    pub(super) fn mirror(&mut self, events: &[Recorded]) {
        for recorded in events {
            match &recorded.event {
                Event::Team(TeamEvent::ChangeSettled(e)) => {
                    self.sets.follow(e.change, e.status, &e.by)
                }
                Event::Team(TeamEvent::ChangeCommented(e)) => {
                    self.sets.comment(e.change, e.comment.clone())
                }
                _ => {}
            }
        }
    }

    /// Repairs, at the start of a process, what a crash has left inconsistent between runs and
    /// sets.
    pub(super) fn mend_sets(&mut self, node: usize) -> Passage {
        let runs: Vec<RunId> = self.earlier_runs.keys().copied().chain([self.run]).collect();
        for run in runs {
            self.mend_sets_of(node, run)?;
        }
        Ok(())
    }

    fn mend_sets_of(&mut self, node: usize, run: RunId) -> Passage {
        let Some(run) = self.run_at(node, run) else { return Ok(()) };
        for (id, known) in &run.team.changes {
            self.sets.follow(*id, known.status, "a person");
        }
        let ours = self.sets.all().into_iter().filter(|change| change.author.run == Some(run.id));
        let ours: Vec<Change> = ours.collect();
        for change in &ours {
            for comment in telling::unwritten(&run, change) {
                self.counts.note("word written late");
                self.sets.comment(change.id, comment);
            }
        }
        for change in ours.into_iter().filter(|change| change.untold) {
            self.counts.note("set mended");
            self.settle_set(node, change.id, "", "")?;
        }
        Ok(())
    }

    /// Checks, after the end of the run and all repairs, that the run and its sets agree, and so do
    /// those of earlier generations.
    pub(super) fn sets_agree(&self) -> Passage {
        const LAW: &str = "a set and its run are of one mind";
        self.sets.hold()?;
        let witnesses = self.earlier_runs.values().chain([&self.witness]);
        let runs: BTreeMap<RunId, &Run> =
            witnesses.filter_map(|witness| witness.run.as_ref()).map(|run| (run.id, run)).collect();
        for change in self.sets.all() {
            let Some(run) = change.author.run.and_then(|run| runs.get(&run)) else { continue };
            let known = run.team.changes.get(&change.id);
            let same = known.is_none_or(|known| {
                let (status, revision) = (known.status, known.revision);
                status == change.status && revision == change.revision && known.ordered.is_none()
            });
            must(same && !change.untold, LAW, || {
                format!("{} is {:?}, the run says {known:?}", change.id, change.status)
            })?;
            let unwritten = telling::unwritten(run, &change);
            must(unwritten.is_empty(), LAW, || format!("{} lacks {unwritten:?}", change.id))?;
        }
        Ok(())
    }
}
