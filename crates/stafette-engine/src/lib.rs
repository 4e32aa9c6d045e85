//! The shell around the core: it lets time pass, stores decisions, and has them carried out.
//!
//! Every run has one task. Every input of a run goes through that task's queue, becomes events, is
//! stored, and only then changes what anyone sees or does.
//!
//! Invariants:
//! - Nothing acts before it is stored: [`Driver::commit`] is the only way to an order, and it takes
//!   what was appended.
//! - Starting after a crash is not a second path: a run is loaded, adopted, and its outbox is
//!   carried out, as after every other step.
//! - The result of an agent is kept in memory until the store has it, however long that takes.
//! - Queues are bounded; a run that cannot keep up slows its agents down.

mod access;
mod after_end;
mod agents;
mod backoff;
mod changes;
pub mod clock;
mod confine;
mod context;
mod cost;
mod council;
pub mod crash;
mod dispatch;
mod driver;
mod engine;
mod error;
mod explain;
mod external;
mod feed;
mod forecast;
mod fork;
pub mod garbage;
mod gate;
pub mod generations;
mod idempotency;
mod interceptor;
mod locks;
mod log;
mod measure;
mod messages;
mod moment;
mod orders;
mod phases;
mod place;
mod record;
mod redaction;
mod self_program;
mod serve;
mod sessions;
mod task;
mod terminals;
mod tokens;

pub use access::{Caller, Denied, Right, Scope};
pub use agents::{AgentView, Group, Work};
pub use changes::{ChangeSets, Hand, Heard};
pub use context::Plugins;
pub use cost::{By, Cost, CostLine};
pub use council::{CouncilView, MemberView};
pub use driver::{Driver, Plan, RestoreError, Step};
pub use engine::reads::UNFINISHED;
pub use engine::stopped::{OpenRuns, StoppedRuns};
pub use engine::{Engine, Settings};
pub use error::{EngineError, change_code, renewal_code};
pub use explain::{Explanation, Explanations, Leg};
pub use external::{ExternalTurns, Finished, Wanted};
pub use feed::{Feed, Fresh, Seen, Source};
pub use gate::{Answered, Gate, Looked};
pub use generations::{Ancestry, Briefing, ContextWriter, Generations};
pub use interceptor::{ALERT, Asked, Beginning, HookDecision, Interceptor};
pub use locks::{DeadlockAlert, LockManager, Locks, QueuePlace, restore_locks};
pub use log::{RunLog, SEALED};
pub use messages::{MessageView, Messages, Reader, WaitingMessage};
pub use moment::{HandoffState, RunState, StateFeed, changes as state_changes};
pub use phases::{PhaseLine, PhasesView};
pub use record::{HandoffView, Held, RunView};
pub use sessions::AgentSessions;
pub use stafette_store::{Entry, HandoffRow, Stored};
pub use stafette_workspace::changes::{FileDiff, Hunk, Left, Line, Report};
pub use stafette_workspace::{
    ChangeError, Changes, GitError, Provenance, Renewal, RenewalError, Repository, Stage,
    provenance, provenance_now, run_git,
};
pub use terminals::{
    BadSize, InputError, Piece, Recording, RecordingError, RecordingLines, ResizeError, Snapshot,
    Subscription, Terminal, TerminalError, TerminalState, TerminalView, Terminals,
};
