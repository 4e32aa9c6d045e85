//! The world: one queue of future events, and the faults in between.

mod change;
mod generation;
mod node;
mod person;
mod picture;
mod session;
mod tally;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use stafette_core::change::ChangeId;
use stafette_core::run::Stage;
use stafette_core::run::create::RunCreated;
use stafette_core::team::order::Order;
use stafette_core::{Input, Millis, RunId, Time, TurnKey, Usd};
use uuid::Uuid;

use crate::agent::{Ledger, Phase, Session};
use crate::cast::Cast;
use crate::chance::Chance;
use crate::disk::Disk;
use crate::law::{Breach, Witness, must, rows_tell_what_events_tell};
use crate::report::Counts;
use crate::sets::Sets;
use crate::shelf::Shelf;
use crate::{Options, Report, Sabotage, Violation};
use node::{Node, Stand};

/// The most steps of a run; with more it would never end.
const MAX_STEPS: u64 = 20_000;

/// The longest life of a run in virtual time.
const MAX_LIFE: Millis = Millis::hours(24 * 90);

/// The most events in one moment.
const MAX_AT_ONCE: u64 = 1000;

/// The longest line of the trace, in characters.
const LINE: usize = 2000;

/// The interval, in appends, at which the rows are compared with the events.
const ROWS_EVERY: u64 = 5;

/// An event that is going to happen.
#[derive(Clone, Debug)]
enum Happening {
    /// A process starts or restarts.
    Boot { node: usize },
    /// A process handles its queue.
    Work { node: usize, life: u32 },
    /// A process checks the clock.
    Alarm { node: usize, life: u32 },
    /// A process dies while it is idle.
    Crash { node: usize, life: u32 },
    /// A message arrives: at the process it was sent to, or at any.
    Arrive { to: Option<(usize, u32)>, message: Message, tries: u32 },
    /// A process writes the team's file.
    Draw { node: usize, life: u32 },
    /// An agent receives its order.
    Start { session: u64 },
    /// An agent takes its next step.
    Act { session: u64 },
    /// An agent sends a heartbeat.
    Beat { session: u64 },
    /// An agent that outlived its process dies too.
    Die { session: u64 },
    /// An agent receives the acknowledgement of its result.
    Acknowledge { node: usize, life: u32, session: u64, key: TurnKey, name: String },
    /// A process carries out an order that is no turn.
    Carry { node: usize, life: u32, run: RunId, order: Order },
    /// A person looks at a set of edits.
    Review { change: ChangeId },
    /// A person sends an input, after this many tries.
    Say { input: Input, tries: u32 },
    /// Several people send inputs in one moment.
    Crowd { inputs: Vec<Input> },
}

/// An input for a process, and the sender that waits for its outcome.
#[derive(Clone, Debug)]
struct Message {
    input: Input,
    reply: Reply,
}

#[derive(Clone, Debug)]
enum Reply {
    Told,
    /// The agent that gave a result.
    Kept {
        session: u64,
        key: TurnKey,
        name: String,
    },
    /// A person, who tries again if it was not stored.
    Asked {
        tries: u32,
    },
}

/// The reason why a step stops early.
#[derive(Debug)]
enum Stop {
    /// The process died in the middle of the step.
    Crashed,
    Broken(Breach),
}

impl From<Breach> for Stop {
    fn from(breach: Breach) -> Self {
        Stop::Broken(breach)
    }
}

type Passage = Result<(), Stop>;

/// The complete state of the world.
#[derive(Debug)]
pub(crate) struct World {
    seed: u64,
    options: Options,
    chance: Chance,
    cast: Cast,
    run: RunId,
    /// The first event of the run, if it follows another one.
    created: Option<RunCreated>,
    now: Time,
    began: Time,
    /// The time at which this generation began; `steps_before` counts the steps until then.
    generation_began: Time,
    steps_before: u64,
    /// The cost of earlier generations.
    earlier: Usd,
    queue: BTreeMap<(Time, u64), Happening>,
    /// The number of events that were ever planned.
    planned: u64,
    step: u64,
    at_once: u64,
    disk: Disk,
    shelf: Shelf,
    /// Every version of the team's file that was correct when it was written; `drawn` is true once
    /// one was completed.
    pictures: BTreeSet<String>,
    drawn: bool,
    sets: Sets,
    ledger: Ledger,
    witness: Witness,
    /// The observers of earlier generations, whose sets may still change.
    earlier_runs: BTreeMap<RunId, Witness>,
    appends: u64,
    nodes: Vec<Node>,
    sessions: BTreeMap<u64, Session>,
    started: u64,
    crashes: u64,
    patience: u32,
    counts: Counts,
    trace: Vec<String>,
}

impl World {
    pub(crate) fn new(seed: u64, options: Options) -> Self {
        let mut chance = Chance::new(seed);
        let heavy = options.sabotage == Some(Sabotage::MergeUnmeasured);
        let cast =
            if options.team { Cast::team(&mut chance) } else { Cast::draw(&mut chance, heavy) };
        let began = Time(1_760_000_000_000);
        let nodes = (0..cast.faults.nodes).map(|number| Node::new(&mut chance, number)).collect();
        World {
            run: RunId(Uuid::from_u64_pair(0x0199_0000_0000_7000, 0x8000_0000_0000_0000 | seed)),
            disk: Disk::new(options.sabotage),
            shelf: Shelf::new(&context(&cast), options.sabotage),
            pictures: BTreeSet::new(),
            drawn: false,
            sets: Sets::default(),
            patience: cast.people.patience,
            seed,
            options,
            chance,
            cast,
            created: None,
            now: began,
            began,
            generation_began: began,
            steps_before: 0,
            earlier: Usd(0),
            queue: BTreeMap::new(),
            planned: 0,
            step: 0,
            at_once: 0,
            ledger: Ledger::default(),
            witness: Witness::default(),
            earlier_runs: BTreeMap::new(),
            appends: 0,
            nodes,
            sessions: BTreeMap::new(),
            started: 0,
            crashes: 0,
            counts: Counts::default(),
            trace: Vec::new(),
        }
    }

    pub(crate) fn live(mut self) -> Result<Report, Box<Violation>> {
        let guard = Guard { seed: self.seed };
        let lived = self.until_the_end();
        drop(guard);
        match lived {
            Err(Stop::Broken(Breach { law, detail })) => {
                let World { seed, step, trace, .. } = self;
                Err(Box::new(Violation { seed, step, law, detail, trace }))
            }
            Ok(()) | Err(Stop::Crashed) => Ok(self.report()),
        }
    }

    fn until_the_end(&mut self) -> Passage {
        self.set_up();
        while let Some(next) = self.live_a_generation()? {
            self.follow(next)?;
        }
        Ok(())
    }

    /// Runs one generation from beginning to end; returns the next one, if one follows.
    fn live_a_generation(&mut self) -> Result<Option<RunCreated>, Stop> {
        while !self.is_over() {
            let Some(((at, _), happening)) = self.queue.pop_first() else {
                return Err(no_end("nothing happens any more").into());
            };
            self.at_once = if at > self.now { 0 } else { self.at_once + 1 };
            self.now = self.now.max(at);
            self.step += 1;
            match self.happen(happening) {
                Ok(()) | Err(Stop::Crashed) => {}
                Err(broken) => return Err(broken),
            }
            self.goes_on()?;
        }
        self.settle()
    }

    pub(super) fn set_up(&mut self) {
        for node in 0..self.nodes.len() {
            let after = if node == 0 { 0 } else { self.chance.below(120_000) };
            self.plan(Millis(after), Happening::Boot { node });
        }
        for _ in 0..self.cast.people.whims {
            self.plan_a_whim();
        }
        let loops: Vec<String> = self
            .cast
            .workflow
            .loops
            .iter()
            .map(|l| format!("{:?} × {}", l.between, l.max_rounds))
            .collect();
        let agents: Vec<&str> =
            self.cast.workflow.agents.keys().map(|name| name.as_str()).collect();
        self.tell(format_args!("{}; loops {}", agents.join(", "), loops.join(", ")));
        self.tell(format_args!("{:?}", self.cast.faults.clone()));
    }

    fn happen(&mut self, happening: Happening) -> Passage {
        match happening {
            Happening::Boot { node } => self.boot(node),
            Happening::Work { node, life } => self.work(node, life),
            Happening::Alarm { node, life } => self.alarm(node, life),
            Happening::Crash { node, life } if self.is_up(node, life) => self.crash(node, "idle"),
            Happening::Crash { .. } => Ok(()),
            Happening::Arrive { to, message, tries } => {
                self.arrive(to, message, tries);
                Ok(())
            }
            Happening::Draw { node, life } => self.draw(node, life),
            Happening::Start { session } => self.begin_session(session),
            Happening::Act { session } => self.act(session),
            Happening::Beat { session } => self.beat(session),
            Happening::Die { session } => {
                if self.sessions.remove(&session).is_some() {
                    self.tell(format_args!("s{session} dies alone"));
                }
                Ok(())
            }
            Happening::Acknowledge { node, life, session, key, name } => {
                self.acknowledge(node, life, session, key, name)
            }
            Happening::Carry { node, life, run, order } => {
                let lives =
                    self.nodes[node].life == life && !matches!(self.nodes[node].stand, Stand::Down);
                if lives { self.carry(node, run, order) } else { Ok(()) }
            }
            Happening::Review { change } => self.review(change),
            Happening::Crowd { inputs } => {
                self.crowd(inputs);
                Ok(())
            }
            Happening::Say { input, tries } => {
                self.say(input, tries);
                Ok(())
            }
        }
    }

    /// True if the run has ended and every process knows it.
    fn is_over(&self) -> bool {
        self.nodes.iter().all(|node| matches!(node.stand, Stand::Done))
    }

    fn goes_on(&self) -> Passage {
        let lived = self.now.since(self.generation_began);
        let fault = if self.step - self.steps_before > MAX_STEPS {
            format!("{MAX_STEPS} steps were not enough")
        } else if lived > MAX_LIFE {
            format!("{lived} were not enough")
        } else if self.at_once > MAX_AT_ONCE {
            format!("{MAX_AT_ONCE} steps in one moment")
        } else {
            return Ok(());
        };
        Err(no_end(&fault).into())
    }

    /// Checks the laws about the whole trace.
    fn settle(&mut self) -> Result<Option<RunCreated>, Stop> {
        self.check()?;
        let next = self.hand_over()?;
        self.check_rows()?;
        for (key, name) in &self.ledger.acknowledged {
            self.witness.history.has_result(*key, name)?;
        }
        let restored = self.disk.restore(self.run);
        let same = restored.as_ref().map(|driver| driver.run()) == self.witness.run.as_ref();
        must(same, "live state equals replayed state", || "at the end".to_owned())?;
        Ok(next)
    }

    /// Reads new events of the store, and checks every law.
    fn check(&mut self) -> Passage {
        let added = self.disk.entries_after(self.run, self.witness.seq());
        if added.is_empty() {
            return Ok(());
        }
        for stored in &added {
            let about = stored.entry.handoff.map(|id| id.to_string()).unwrap_or_default();
            self.tell(format_args!("  #{} {} {about}", stored.entry.seq, stored.entry.name));
        }
        let read = self.witness.read(&added);
        self.count(&added);
        read?;
        for id in std::mem::take(&mut self.witness.history.asked) {
            self.plan_an_answer(id);
        }
        for change in std::mem::take(&mut self.witness.history.proposed) {
            self.plan_a_review(change);
        }
        self.appends += 1;
        if self.appends.is_multiple_of(ROWS_EVERY) {
            self.check_rows()?;
        }
        Ok(())
    }

    /// Reads new events of an earlier generation, and checks every law.
    fn check_earlier(&mut self, run: RunId) -> Passage {
        let Some(witness) = self.earlier_runs.get_mut(&run) else { return Ok(()) };
        let added = self.disk.entries_after(run, witness.seq());
        let read = witness.read(&added);
        if !added.is_empty() {
            self.counts.note("set of an earlier generation");
        }
        self.count(&added);
        Ok(read?)
    }

    fn check_rows(&self) -> Passage {
        // The rows are written by the kernel as it should be.
        let misjudged = self.options.sabotage.is_some_and(Sabotage::is_in_the_kernel);
        let Some(run) = self.witness.run.as_ref().filter(|_| !misjudged) else { return Ok(()) };
        let (row, handoffs) = (self.disk.row(self.run), self.disk.handoffs(self.run));
        Ok(rows_tell_what_events_tell(run, row.as_ref(), &handoffs)?)
    }

    /// A point where a process may die.
    fn point(&mut self, node: usize, place: &'static str) -> Passage {
        let faults = &self.cast.faults;
        if self.crashes < faults.crashes && self.chance.per_mille(faults.crash) {
            return self.crash(node, place);
        }
        Ok(())
    }

    /// Kills a process: its memory is lost; some of its agents may live on.
    fn crash(&mut self, node: usize, place: &'static str) -> Passage {
        self.crashes += 1;
        self.counts.note(match place {
            "decided" => "crash before the store",
            "stored" => "crash after the store",
            "committed" => "crash before sessions start",
            "starting" => "crash between two starts",
            "answering" => "crash before acknowledging",
            "acknowledging" => "crash while acknowledging",
            "adopting" => "crash while adopting",
            "drawing" => "crash while drawing",
            "set kept" | "set wanted" | "set moved" | "set recorded" => "crash about a set",
            _ => "crash while idle",
        });
        self.tell_of(node, format_args!("crashes: {place}"));
        let life = self.nodes[node].life;
        self.nodes[node].life += 1;
        self.nodes[node].stand = Stand::Down;
        let theirs: Vec<u64> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.home == Some((node, life)))
            .map(|(id, _)| *id)
            .collect();
        for id in theirs {
            let survives = self.chance.percent(self.cast.faults.orphan);
            match self.sessions.get_mut(&id) {
                Some(session) if survives && session.phase != Phase::Waiting => {
                    session.home = None;
                    self.counts.note("orphan");
                    let life = self.chance.between(100, 120_000);
                    self.plan(Millis(life), Happening::Die { session: id });
                }
                _ => drop(self.sessions.remove(&id)),
            }
        }
        let down = match self.chance.below(10) {
            0..6 => self.chance.between(50, 5000),
            6..9 => self.chance.between(5000, 120_000),
            _ => self.chance.between(120_000, 4 * 3_600_000),
        };
        self.plan(Millis(down), Happening::Boot { node });
        Err(Stop::Crashed)
    }

    fn is_up(&self, node: usize, life: u32) -> bool {
        self.nodes[node].life == life && matches!(self.nodes[node].stand, Stand::Up(_))
    }

    fn plan(&mut self, after: Millis, happening: Happening) {
        self.planned += 1;
        self.queue.insert((self.now + after, self.planned), happening);
    }

    fn tell(&mut self, line: fmt::Arguments<'_>) {
        let at = self.now.since(self.began).0;
        // Long values are cut to their beginning.
        let line: String = line.to_string().chars().take(LINE).collect();
        self.trace.push(format!("{:>9}.{:03} {line}", at / 1000, at % 1000));
    }

    fn tell_of(&mut self, node: usize, line: fmt::Arguments<'_>) {
        let name = self.nodes[node].name;
        self.tell(format_args!("{name} {line}"));
    }

    fn report(self) -> Report {
        let run = self.witness.run.as_ref();
        let ending = run.and_then(|run| match &run.stage {
            Stage::Finished(ending) => Some(ending.why.clone()),
            Stage::Active | Stage::Paused => None,
        });
        Report {
            why: ending.unwrap_or_default(),
            seed: self.seed,
            steps: self.step,
            crashes: self.crashes,
            virtual_ms: self.now.since(self.began).0,
            events: self.witness.seq(),
            handoffs: self.witness.history.handoffs(),
            ended_as: run.map_or_else(String::new, |run| run.status().to_string()),
            counts: self.counts,
            trace: self.trace,
        }
    }
}

/// Returns the path of the team's file.
fn context(cast: &Cast) -> String {
    cast.workflow.generations.clone().unwrap_or_default().context
}

fn no_end(how: &str) -> Breach {
    Breach { law: "every run ends", detail: how.to_owned() }
}

/// Prints the seed if something panics.
struct Guard {
    seed: u64,
}

impl Drop for Guard {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("it was seed {}", self.seed);
        }
    }
}
