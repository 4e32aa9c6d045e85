//! Generations: a run that has ended hands over, once, however often it is tried, and the next one
//! follows.

use stafette_core::change::ChangeStatus;
use stafette_core::run::create::RunCreated;
use stafette_core::team::change::{ChangeWork, Hand};
use stafette_core::team::generation::{Lineage, Plan, successor};
use stafette_core::wire::context::NextActionType;
use stafette_core::{Fields, Input, Millis, Run, TeamInput, Usd};
use stafette_engine::generations::counts;

use super::node::{Node, Stand};
use super::{Passage, Stop, World};
use crate::law::must;

/// The number of times that the store may fail before it accepts something.
const TRIES: usize = 100;

impl World {
    /// Makes every other run one of a series; before some of those a person is asked. A long run is
    /// never part of one: a generation ends if a person is needed.
    pub(super) fn lineage(&self) -> Option<Box<Lineage>> {
        let first = Lineage::first(self.began, Fields::new());
        let check_in = !self.options.team && self.seed.is_multiple_of(4);
        let plan = Plan {
            max_runs: 10,
            max_cost: Usd(5_000_000),
            check_in_every: u32::from(check_in),
            pause: Millis::seconds(2),
            budget: self.cast.workflow.budget.clone(),
            first: 1,
            spent: Usd(0),
        };
        let lineage = Lineage { check_in, ..first.planned(plan) };
        let drawn = self.seed.is_multiple_of(2) && !self.cast.long;
        (self.options.team || drawn).then(|| Box::new(lineage))
    }

    /// Hands over after the end of the run, by two processes that both believe it is theirs to do;
    /// then writes the team's file once more. Returns what follows.
    pub(super) fn hand_over(&mut self) -> Result<Option<RunCreated>, Stop> {
        self.finish_orders()?;
        for _ in 0..TRIES {
            let Some(driver) = self.disk.restore(self.run) else { break };
            let changes = counts(driver.run(), &self.sets.of_team(driver.run()));
            let inputs = [Input::Team(TeamInput::HandOver { changes })];
            let (one, other) =
                (driver.decide(self.now, inputs.clone()), driver.decide(self.now, inputs));
            if one.is_empty() {
                break;
            }
            let _ = (self.append(&one), self.append(&other));
            self.check()?;
            // A full disk stays full for a while.
            self.now = self.now + Millis::seconds(10);
        }
        let Some(run) = self.witness.run.clone() else { return Ok(None) };
        let is_one = run.team.lineage.is_some();
        self.witness.history.has_handed_over(is_one)?;
        let next = successor(&run);
        let again = self.disk.restore(self.run).map(|driver| successor(driver.run()));
        must(
            again.as_ref() == Some(&next),
            "the next generation follows from events alone",
            || format!("{again:?}"),
        )?;
        if is_one {
            self.land(&run)?;
            let run = self.witness.run.clone().unwrap_or(run);
            self.sketch(&run, self.now, None)?;
        }
        Ok(next)
    }

    /// Applies sets that are ready before the next generation begins, with as many tries as it
    /// takes.
    fn land(&mut self, run: &Run) -> Passage {
        let over = run.team.lineage.as_ref().and_then(|lineage| lineage.handed_over.as_ref());
        if over.map(|over| over.action) != Some(NextActionType::ApplyChanges) {
            return Ok(());
        }
        let by = format!("generation {}", over.map_or(0, |over| over.number));
        for _ in 0..TRIES {
            let ready = self.sets.of_team(run).into_iter().find(|change| {
                let open = matches!(change.status, ChangeStatus::Pending | ChangeStatus::Approved);
                open && !change.waits_for_person()
            });
            let Some(change) = ready else { break };
            let work = TeamInput::OrderChange {
                change: change.id,
                revision: None,
                work: ChangeWork::Apply,
                by: Hand::named(&by),
                batch: None,
                as_it_is: false,
            };
            match self.order_and_carry(change.id, work) {
                Ok(()) => {}
                // The next process finds what this one has left, and continues.
                Err(Stop::Crashed) => self.counts.note("crash while landing"),
                Err(broken) => return Err(broken),
            }
            self.nodes[0].stand = Stand::Done;
            self.now = self.now + Millis::seconds(10);
        }
        self.finish_orders()
    }

    /// Finishes what was interrupted, by a process that finds it.
    fn finish_orders(&mut self) -> Passage {
        for _ in 0..TRIES {
            let mended = self.introduce_all(0).and_then(|()| self.find_orders(0));
            self.nodes[0].stand = Stand::Done;
            match mended {
                Ok(()) if self.sets_agree().is_ok() => return Ok(()),
                Ok(()) | Err(Stop::Crashed) => {}
                Err(broken) => return Err(broken),
            }
            self.now = self.now + Millis::seconds(10);
        }
        self.sets_agree()
    }

    /// Begins the next generation: only the store, the agents' ledgers and the project's files
    /// remain of the last one.
    pub(super) fn follow(&mut self, created: RunCreated) -> Passage {
        self.counts.note("generation follows");
        let over = std::mem::take(&mut self.witness);
        let spent = over.history.spent.money;
        self.earlier_runs.insert(self.run, over);
        self.earlier = Usd(self.earlier.0 + spent.0);
        let told = created.team.lineage.as_ref().map_or(Usd(0), |lineage| lineage.spent);
        must(told == self.earlier, "the total cost is the sum of the turns", || {
            format!("the next one is told {told}, the turns cost {}", self.earlier)
        })?;
        let last = self.run;
        self.tell(format_args!("the generation after {last} begins"));
        self.run = created.run;
        self.created = Some(created);
        self.queue.clear();
        self.sessions.clear();
        self.ledger.acknowledged.clear();
        self.nodes =
            (0..self.cast.faults.nodes).map(|number| Node::new(&mut self.chance, number)).collect();
        (self.generation_began, self.steps_before) = (self.now, self.step);
        self.set_up();
        Ok(())
    }
}
