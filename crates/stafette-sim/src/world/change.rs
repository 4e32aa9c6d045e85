//! Sets of edits: agents propose them, people judge and apply them, and a process may die between
//! any two steps. What is to be done with a set is an order of its run, which whoever finds it
//! carries out.

use std::collections::BTreeMap;

use stafette_core::change::{Author, Change, ChangeId, ChangeStatus};
use stafette_core::team::change::{ChangeWork, Hand, Heard};
use stafette_core::team::order::{Order, OrderKey};
use stafette_core::{Input, Millis, Run, RunId, TeamInput, TurnKey};
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
        if !self.witness.run.as_ref().is_some_and(|run| knows(run, &change)) {
            self.counts.note("set turned away");
            self.sets.turned_away(change.id);
            return Ok(());
        }
        self.point(node, "set recorded")
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
        if !self.introduce(node, id)? {
            return Ok(());
        }
        let said = match self.chance.below(10) {
            0 => self.decision(id, ChangeStatus::Approved),
            1 => self.decision(id, ChangeStatus::Refused),
            2 => {
                let Some(comment) = self.sets.remark(id, "shorter") else { return Ok(()) };
                TeamInput::CommentChange { change: id, comment }
            }
            3 => {
                if let Some(change) = self.sets.get(id).filter(|_| self.chance.percent(40)) {
                    self.counts.note("set obstructed");
                    self.sets.obstruct(&change);
                }
                self.order(id, ChangeWork::Apply)
            }
            4..8 => self.order(id, ChangeWork::Apply),
            _ => self.order(id, ChangeWork::Undo),
        };
        self.point(node, "set wanted")?;
        let of = self.run_of(id);
        self.record(node, of, Input::Team(said)).map(drop)
    }

    /// Returns a person's decision about a revision, which may be an old one by then.
    fn decision(&mut self, change: ChangeId, status: ChangeStatus) -> TeamInput {
        let latest = self.sets.get(change).map_or(1, |change| change.revision);
        let seen = if self.chance.percent(20) { latest.saturating_sub(1) } else { latest };
        let (by, note) = ("ada".to_owned(), String::new());
        TeamInput::DecideChange { change, revision: Some(seen), status, by, note }
    }

    pub(super) fn order(&mut self, change: ChangeId, work: ChangeWork) -> TeamInput {
        // No draw: that would make other stories of all worlds that follow.
        let as_it_is = self.step.is_multiple_of(2);
        let by = Hand::named("ada");
        TeamInput::OrderChange { change, revision: None, work, by, batch: None, as_it_is }
    }

    /// Orders work on a set, and has what is open carried out by the first process.
    pub(super) fn order_and_carry(&mut self, id: ChangeId, order: TeamInput) -> Passage {
        if self.introduce(0, id)? {
            let of = self.run_of(id);
            self.record(0, of, Input::Team(order))?;
            self.find_orders(0)?;
        }
        Ok(())
    }

    /// Carries an order out, as a process does that has started it or found it.
    pub(super) fn carry(&mut self, node: usize, run: RunId, order: Order) -> Passage {
        let Some(state) = self.run_at(node, run) else { return Ok(()) };
        if !state.orders().iter().any(|open| open.key() == order.key()) {
            return Ok(());
        }
        let done = match &order {
            Order::Note { change, upto } => {
                let order = OrderKey::Note { change: *change, upto: *upto };
                if let Some(known) = state.team.changes.get(change) {
                    self.sets.write(*change, known);
                }
                Input::Team(TeamInput::OrderDone { order, heard: None, left: None })
            }
            Order::Forward { .. } => {
                let (order, heard) = (order.key(), Some(Heard::default()));
                Input::Team(TeamInput::OrderDone { order, heard, left: None })
            }
            Order::Change { key, work, revision, by } => {
                let id = key.change;
                let kept = self.sets.get(id);
                let tried = kept.as_ref().and_then(|change| change.tried) == Some(*key);
                let mut note = String::new();
                if kept.is_some_and(|change| change.revision != *revision) {
                    note = "it was revised".to_owned();
                } else if tried {
                    self.counts.note("set moved before");
                } else {
                    if let Some(known) = state.team.changes.get(&id) {
                        self.sets.write(id, known);
                    }
                    let rules = self.cast.workflow.change_rules();
                    let done = self.sets.carry_out(*key, *work, &rules);
                    self.counts.note(match (&done, work) {
                        (Ok(()), ChangeWork::Apply) => "set applied",
                        (Ok(()), _) => "set undone",
                        (Err(_), _) => "set not moved",
                    });
                    note = done.err().map(|error| error.to_string()).unwrap_or_default();
                }
                self.sets.hold()?;
                self.point(node, "set moved")?;
                let Some(Change { status, .. }) = self.sets.get(id) else { return Ok(()) };
                let (order, by) = (*key, by.name.clone());
                Input::Team(TeamInput::SettleChange { change: id, order, status, by, note })
            }
            // Nothing of these is left to do here, or it is done when the run is settled.
            Order::Import | Order::Collect | Order::HandOver | Order::Begin { .. } => return Ok(()),
        };
        self.point(node, "set moved")?;
        if !self.record(node, run, done)? {
            let life = self.nodes[node].life;
            self.plan(Millis::seconds(5), Happening::Carry { node, life, run, order });
        }
        Ok(())
    }

    /// Carries out what is open, in the run and in earlier generations: a process finds it when it
    /// starts.
    pub(super) fn find_orders(&mut self, node: usize) -> Passage {
        let runs: Vec<RunId> = self.earlier_runs.keys().copied().chain([self.run]).collect();
        for run in runs {
            let orders = self.run_at(node, run).map(|run| run.orders()).unwrap_or_default();
            for order in orders {
                self.carry(node, run, order)?;
            }
        }
        Ok(())
    }

    /// Reports a set to the run; returns true if the run knows it.
    fn introduce(&mut self, node: usize, id: ChangeId) -> Result<bool, Stop> {
        let of = self.run_of(id);
        let Some((change, run)) = self.sets.get(id).zip(self.run_at(node, of)) else {
            return Ok(false);
        };
        if knows(&run, &change) {
            return Ok(true);
        }
        let (turn, set) = (None, Box::new(change.proposed()));
        self.record(node, of, Input::Team(TeamInput::ProposeChange { turn, set }))
    }

    /// Reports every set to its run, as the next caller that names it would.
    pub(super) fn introduce_all(&mut self, node: usize) -> Passage {
        for change in self.sets.all() {
            self.introduce(node, change.id)?;
        }
        Ok(())
    }

    /// Returns the run that records the outcome of a set: the one that it was proposed in, even if
    /// a later generation works with it.
    fn run_of(&self, id: ChangeId) -> RunId {
        self.sets.get(id).and_then(|change| change.run()).unwrap_or(self.run)
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
                    let life = self.nodes[node].life;
                    for order in step.orders() {
                        self.plan(Millis(0), Happening::Carry { node, life, run, order });
                    }
                    return Ok(true);
                }
                Err(AppendError::Conflict { .. }) => {}
                Err(_) => return Ok(false),
            }
        }
        Ok(false)
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
            let Some(run) = change.run().and_then(|run| runs.get(&run)) else { continue };
            let known = run.team.changes.get(&change.id);
            let same = known.is_none_or(|known| {
                let (status, revision) = (known.status, known.revision);
                status == change.status && revision == change.revision && known.ordered.is_none()
            });
            must(same, LAW, || {
                format!("{} is {:?}, the run says {known:?}", change.id, change.status)
            })?;
            let said = known.into_iter().flat_map(|known| &known.said);
            let lacks: Vec<_> = said.filter(|it| !change.comments.contains(it)).collect();
            must(lacks.is_empty(), LAW, || format!("{} lacks {lacks:?}", change.id))?;
        }
        for run in runs.values() {
            let open = run.orders().into_iter().find(Order::is_asked_for);
            must(open.is_none(), "an order ends", || format!("{open:?} of {}", run.id))?;
        }
        Ok(())
    }
}

/// True if a run knows a set in its present form.
fn knows(run: &Run, change: &Change) -> bool {
    run.team.changes.get(&change.id).map(|known| known.revision) == Some(change.revision)
}
