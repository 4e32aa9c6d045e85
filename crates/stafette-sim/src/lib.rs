//! A seeded world with faults: the core, the engine's logic, a store in memory and scripted agents,
//! in virtual time.
//!
//! A seed draws a workflow, scripts, people and misfortune, and decides everything that could go
//! otherwise: who is slow, which message comes twice, where a process dies. After every step the
//! [laws](Violation) are checked. The same seed always tells the same story.
//!
//! What survives a crash: the store, the agents' ledger (their files, their commits, what they were
//! told), the sets of edits, and of the project's own files what was synced. Everything else is lost
//! with the process, except agents that outlive it.
//!
//! Invariants:
//! - No clock, no thread, no hash map with an order of its own: nothing but the seed decides. (The
//!   records of sets carry the moment they were written at, and nothing depends on it.)
//! - The engine is not imitated where it can be used: [`stafette_engine::Driver`] decides, batches
//!   and commits, and [`stafette_engine::generations::picture`] writes the team's file; only the
//!   waiting around them is written anew.
//! - Every world ends, or breaks the law that says so.

mod agent;
mod cast;
mod chance;
mod disk;
mod law;
mod report;
mod sets;
mod shelf;
mod world;

pub use report::{Counts, Report, Violation};

/// How a world differs from the usual one.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Something that is deliberately broken, to see that the laws notice.
    pub sabotage: Option<Sabotage>,
    /// A team whose generations follow each other without a person, instead of whatever the seed
    /// draws.
    pub team: bool,
}

/// Something that is deliberately broken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sabotage {
    /// Agents are told that their result is recorded before it is.
    AcknowledgeEarly,
    /// The disk loses what has results in it, and says that all is well.
    ForgetResults,
    /// The disk keeps results twice.
    KeepResultsTwice,
    /// Nobody looks at the clock.
    NoClock,
    /// The disk does not sync files before they get their names.
    LazyDisk,
    /// Those who sent something together hear what became of each other's.
    MixUpReplies,
    /// Answers are added to what their askers have, however much that is.
    MergeUnmeasured,
}

/// Lives through a seed.
///
/// # Errors
/// The first law that does not hold, with the end of the trace.
pub fn run(seed: u64, options: Options) -> Result<Report, Box<Violation>> {
    world::World::new(seed, options).live()
}
