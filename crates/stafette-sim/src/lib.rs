//! A seeded world with faults: the core, the engine's logic, a store in memory and scripted agents,
//! in virtual time.
//!
//! A seed draws a workflow, scripts, people and faults, and decides everything that could go
//! otherwise: who is slow, which message arrives twice, where a process dies. After every step the
//! [laws](Violation) are checked. The same seed always gives the same trace.
//!
//! A crash leaves: the store, the agents' ledger (their files, their commits, their
//! acknowledgements), the sets of edits, and the synced parts of the project's files. Everything
//! else is lost with the process, except agents that outlive it.
//!
//! Invariants:
//! - No clock, no thread, no hash map with an order of its own: nothing but the seed decides. (The
//!   records of sets contain the time of writing, and nothing depends on it.)
//! - The engine is not imitated where it can be used: [`stafette_engine::Driver`] decides, batches
//!   and commits, and [`stafette_engine::generations::context_file`] writes the team's file; only the
//!   waiting around them is written anew.
//! - Every world ends, or breaks the law that requires it.

mod agent;
mod cast;
mod chance;
mod disk;
mod law;
mod report;
mod sets;
mod shelf;
pub mod shell;
mod world;

pub use report::{Counts, Report, Violation};

/// Options of a world.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A deliberate defect, to check that the laws notice it; `None` for a correct world.
    pub sabotage: Option<Sabotage>,
    /// True for a team whose generations follow each other without a person, instead of a drawn
    /// workflow.
    pub team: bool,
}

/// A deliberate defect that the laws must notice.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Sabotage {
    /// Agents get the acknowledgement of a result before it is stored.
    AcknowledgeEarly,
    /// The disk loses batches with results, and reports success.
    ForgetResults,
    /// The disk stores results twice.
    KeepResultsTwice,
    /// No process checks the clock.
    NoClock,
    /// The disk does not sync files before they get their names.
    LazyDisk,
    /// Senders of the same step get each other's replies.
    MixUpReplies,
    /// Answers are merged into the inputs of the handoff that asked, without a size limit.
    MergeUnmeasured,
    /// The kernel takes answers after the deadline of their handoff.
    TakeLateAnswers,
    /// The kernel forgets the partial answer of a handoff that another party continues.
    LoseParts,
    /// The kernel reserves nothing for turns of unknown cost.
    ReserveNothing,
    /// The kernel counts the cooldown of a path from the admission of its last handoff.
    CoolFromAdmission,
}

impl Sabotage {
    /// True if the kernel decides wrongly. It then lives with its decision, as the store has it.
    pub(crate) fn is_in_the_kernel(self) -> bool {
        use Sabotage::{CoolFromAdmission, LoseParts, ReserveNothing, TakeLateAnswers};
        matches!(self, TakeLateAnswers | LoseParts | ReserveNothing | CoolFromAdmission)
    }
}

/// Runs a seed to its end.
///
/// # Errors
/// The first broken law, with the end of the trace.
pub fn run(seed: u64, options: Options) -> Result<Report, Box<Violation>> {
    world::World::new(seed, options).live()
}
