//! Generations: what is over hands over, once, however often it is tried.

use stafette_core::generation::{ChangeCounts, Lineage, Plan, successor};
use stafette_core::{Fields, Input, Millis, Usd};

use super::{Passage, World};
use crate::law::must;

/// So often the store may fail before it takes something.
const TRIES: usize = 100;

impl World {
    /// Every other run is one of a series, and before some of those a person is asked.
    pub(super) fn lineage(&self) -> Option<Box<Lineage>> {
        let first = Lineage::first(self.began, Fields::new());
        let plan = Plan {
            max_runs: 3,
            max_cost: Usd(5_000_000),
            check_in_every: 1,
            pause: Millis::seconds(2),
            budget: self.cast.workflow.budget.clone(),
            first: 1,
            spent: Usd(0),
        };
        let check_in = self.seed.is_multiple_of(4);
        let lineage = Lineage { check_in, ..first.planned(plan) };
        self.seed.is_multiple_of(2).then(|| Box::new(lineage))
    }

    /// The run is over and hands over, by two who both believe that it is theirs to do.
    pub(super) fn hand_over(&mut self) -> Passage {
        for _ in 0..TRIES {
            let Some(driver) = self.disk.restore(self.run) else { break };
            let inputs = [Input::HandOver { changes: ChangeCounts::default() }];
            let (one, other) =
                (driver.decide(self.now, inputs.clone()), driver.decide(self.now, inputs));
            if one.is_empty() {
                break;
            }
            let _ = (self.append(&one), self.append(&other));
            self.check()?;
            // A disk that is full is so for a while.
            self.now = self.now + Millis::seconds(10);
        }
        let Some(run) = self.witness.run.as_ref() else { return Ok(()) };
        let (times, is_one) = (self.counts.of("generation_handed_over"), run.lineage.is_some());
        must(times == u64::from(is_one), "a generation hands over once", || {
            format!("{times} times")
        })?;
        let next = self.disk.restore(self.run).map(|driver| successor(driver.run()));
        must(
            next == Some(successor(run)),
            "the next generation follows from events alone",
            || format!("{next:?}"),
        )?;
        Ok(())
    }
}
