//! What survives a daemon: the store, the processes of agents, and the ledger that the laws go by.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stafette_core::{RunId, Status, Time, TurnKey};
use stafette_engine::Engine;
use stafette_store::MemoryStore;
use tokio::sync::{Notify, watch};

use super::OldFault;
use crate::chance::Chance;
use crate::report::{Counts, Report, Violation};

/// The beginning of every world.
const EPOCH: Time = Time(1_800_000_000_000);

/// The number of lives that may end with a fault.
const LIVES: u64 = 7;

/// What an agent does in its turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// It reports by `stafette emit`, and what it prints is lost.
    Emit,
    Print,
    /// It exits with 1.
    Fail,
    /// It exits with 0 and has said nothing.
    Silence,
    /// It works for ever, and shows no sign of life.
    Hang,
}

/// What an agent reported.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Said {
    Handoff,
    Result,
}

/// How far an agent's process is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Stage {
    Working { until: Time },
    Reporting { until: Time },
    Leaving { at: Time },
}

/// The process of an agent.
#[derive(Debug)]
pub(super) struct Process {
    pub(super) token: String,
    pub(super) way: Way,
    pub(super) stage: Stage,
    pub(super) next: Option<String>,
    /// Its exit status, once it has one.
    pub(super) exit: watch::Sender<Option<i32>>,
}

/// A run of the world.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) id: RunId,
    pub(super) cancelled: bool,
    pub(super) status: Option<Status>,
}

/// Everything that survives a daemon.
#[derive(Debug)]
pub(super) struct State {
    seed: u64,
    pub(super) fault: Option<OldFault>,
    pub(super) chance: Chance,
    pub(super) now: Time,
    pub(super) store: MemoryStore,
    /// The number of agents in the chain, and of runs to begin.
    pub(super) agents: u32,
    pub(super) runs_wanted: u32,
    pub(super) runs: Vec<Known>,
    pub(super) processes: BTreeMap<TurnKey, Process>,
    /// Turns whose report or result is in the store.
    pub(super) stored: BTreeSet<TurnKey>,
    /// Turns whose agent was told that its report is stored.
    acknowledged: BTreeMap<TurnKey, Said>,
    starts: BTreeMap<TurnKey, u32>,
    /// The number of the daemon's life, and whether it is over.
    pub(super) life: u64,
    pub(super) is_dead: bool,
    pub(super) died: Arc<Notify>,
    /// Whether agents may be started: nobody only looks.
    pub(super) is_released: bool,
    /// Where agents reach the daemon.
    pub(super) door: Option<Engine>,
    /// Accesses to the store and crash points until the daemon is killed.
    pub(super) kill_after: Option<u64>,
    /// The slowest access to the store, in milliseconds, and the share of appends that fail.
    pub(super) slowest: u64,
    pub(super) failing: u64,
    pub(super) faulty_lives: u64,
    steps: u64,
    crashes: u64,
    counts: Counts,
    trace: Vec<String>,
    pub(super) violation: Option<Violation>,
    over: bool,
}

/// True if both are turns of one handoff.
fn same_work(one: TurnKey, other: TurnKey) -> bool {
    (one.run, one.handoff) == (other.run, other.handoff)
}

impl State {
    pub(super) fn new(seed: u64, fault: Option<OldFault>) -> Self {
        let mut chance = Chance::new(seed ^ 0x5e11);
        State {
            seed,
            fault,
            now: EPOCH,
            store: MemoryStore::new(),
            agents: chance.count(2, 5),
            runs_wanted: chance.count(1, 3),
            runs: Vec::new(),
            processes: BTreeMap::new(),
            stored: BTreeSet::new(),
            acknowledged: BTreeMap::new(),
            starts: BTreeMap::new(),
            life: 0,
            is_dead: false,
            died: Arc::default(),
            is_released: false,
            door: None,
            kill_after: None,
            slowest: chance.one([0, 3, 40, 300]),
            failing: chance.one([0, 0, 5, 40]),
            faulty_lives: chance.between(1, LIVES),
            steps: 0,
            crashes: 0,
            counts: Counts::default(),
            trace: Vec::new(),
            violation: None,
            over: false,
            chance,
        }
    }

    /// The names of the agents, in the order in which they hand the work on.
    pub(super) fn chain(&self) -> impl Iterator<Item = String> + use<> {
        (1..=self.agents).map(|index| format!("a{index}"))
    }

    pub(super) fn note(&mut self, name: &'static str) {
        self.counts.note(name);
    }

    pub(super) fn tell(&mut self, text: std::fmt::Arguments<'_>) {
        let since = self.now.since(EPOCH).0;
        self.trace.push(format!("{since:>9} life {}: {text}", self.life));
    }

    /// The name of a turn in the trace, without the random id of its run.
    pub(super) fn name(&self, turn: TurnKey) -> String {
        let run = self.runs.iter().position(|known| known.id == turn.run);
        let run = run.map_or("?".to_owned(), |index| index.to_string());
        format!("run {run} {}/{}.{}", turn.handoff, turn.attempt, turn.turn)
    }

    /// Checks a law, and keeps the first violation.
    pub(super) fn law(&mut self, holds: bool, law: &'static str, detail: impl FnOnce() -> String) {
        if holds || self.violation.is_some() {
            return;
        }
        let (seed, step, trace) = (self.seed, self.steps, self.trace.clone());
        self.violation = Some(Violation { seed, step, law, detail: detail(), trace });
        self.kill();
    }

    /// A place where the daemon may be killed.
    pub(super) fn point(&mut self) {
        self.steps += 1;
        match &mut self.kill_after {
            Some(0) => {
                self.note("killed at a point");
                self.kill();
            }
            Some(left) => *left -= 1,
            None => {}
        }
    }

    /// From here on nothing that the daemon does reaches the world.
    pub(super) fn kill(&mut self) {
        self.is_dead = true;
        self.died.notify_one();
    }

    pub(super) fn starts(&mut self, turn: TurnKey, deliveries: u32) {
        let name = self.name(turn);
        self.tell(format_args!("{name} starts, delivery {deliveries}"));
        *self.starts.entry(turn).or_default() += 1;
        self.note("turn started");
        if deliveries > 1 {
            self.note("redelivery");
        }
        let (stored, beside) =
            (self.stored.contains(&turn), self.processes.keys().any(|it| same_work(*it, turn)));
        self.law(!stored, "what was reported is not done again", || name.clone());
        self.law(!beside, "no handoff is worked on twice at once", || name.clone());
        let released = self.is_released;
        self.law(released, "looking at a run starts nothing", || name.clone());
        let cancelled = self.runs.iter().any(|run| run.id == turn.run && run.cancelled);
        self.law(!cancelled, "a cancelled run starts nothing", || name);
    }

    pub(super) fn acknowledge(&mut self, turn: TurnKey, said: Said) {
        self.note("report acknowledged");
        let name = self.name(turn);
        self.tell(format_args!("{name} is told that its report is stored"));
        self.acknowledged.insert(turn, said);
        let stored = self.stored.contains(&turn);
        self.law(stored, "an acknowledged report is stored", || name);
    }

    /// Checks a run that the world is done with.
    pub(super) fn ends(&mut self, index: usize, run: &stafette_core::Run) {
        let status = run.status();
        self.runs[index].status = Some(status);
        self.tell(format_args!("run {index} ends as {}", status.word()));
        self.note(match status {
            Status::Succeeded => "run succeeded",
            Status::Cancelled => "run cancelled",
            _ => "run failed",
        });
        if status == Status::Cancelled {
            return;
        }
        let handed_on = self.acknowledged.iter().filter(|(_, said)| **said == Said::Handoff);
        let of_run = handed_on.map(|(turn, _)| *turn).filter(|turn| turn.run == run.id);
        for turn in of_run.collect::<Vec<_>>() {
            let kept = run.handoffs.values().any(|it| it.cause == Some(turn.handoff));
            let name = self.name(turn);
            self.law(kept, "an acknowledged handoff is not lost", || name);
        }
        let worked =
            |agent: &String| run.handoffs.values().any(|it| it.offer.to.to_string() == *agent);
        let idle: Vec<String> = self.chain().filter(|agent| !worked(agent)).collect();
        let whole = status != Status::Succeeded || idle.is_empty();
        self.law(whole, "a run succeeds when its work is done", || {
            format!("run {index}: {} never worked", idle.join(", "))
        });
    }

    /// What happens to the world between two daemons.
    pub(super) fn between_lives(&mut self) {
        self.door = None;
        self.crashes += u64::from(self.is_dead);
        let pause = self.chance.one([1, 20, 400, 3_000, 40_000]);
        self.now = self.now + stafette_core::Millis(pause);
    }

    pub(super) fn finish(&mut self) {
        self.over = true;
    }

    pub(super) fn is_over(&self) -> bool {
        self.over
    }

    pub(super) fn report(&self) -> Report {
        let starts: u32 = self.starts.values().sum();
        Report {
            seed: self.seed,
            steps: self.steps,
            crashes: self.crashes,
            virtual_ms: self.now.since(EPOCH).0,
            events: 0,
            handoffs: self.acknowledged.len() as u64,
            ended_as: "ended".into(),
            why: format!("{starts} starts of {} turns", self.starts.len()),
            counts: self.counts.clone(),
            trace: self.trace.clone(),
        }
    }
}
