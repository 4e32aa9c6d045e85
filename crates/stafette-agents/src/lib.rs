//! Turns a session into bytes and signals.
//!
//! A [`Job`] goes in, [`Signal`]s come out. The nature of an agent — a command, a script, a
//! protocol, a terminal — is known only in this crate; its identity is data.
//!
//! Invariants:
//! - [`start`] never blocks and never fails: errors come out as signals.
//! - A session ends with exactly one of [`Signal::Finished`] and [`Signal::Failed`], and nothing
//!   comes after it.
//! - An agent is a process group. When its session ends, is stopped or is dropped, the whole group
//!   is gone, and with it every process that has left the group but carries the environment that it
//!   was given. What left both behind stays a descendant of the daemon ([`orphans`]). Only a terminal outlives its turns: it ends with its run, or when it is dropped.
//! - Work that is delivered again never runs beside what is left of the earlier delivery.
//! - Memory does not grow with an agent's output.
//!
//! Absent on purpose: the store, clocks that decide anything, retries.

pub mod a2a;
pub mod acp;
mod exec;
pub mod frames;
mod harvest;
mod output;
pub mod permission;
mod process;
pub mod profile;
pub mod prompt;
mod pty;
mod receipts;
pub mod screen;
pub mod scripted;
pub mod seal;
pub mod stream;
pub mod tell;
pub mod terminal;
mod transcript;
mod tty;

use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use stafette_core::change::Proposal;
use stafette_core::handoff::Receipt;
use stafette_core::run::session::SessionState;
use stafette_core::workflow::{Agent, Runner};
use stafette_core::{
    AgentName, Failure, FailureKind, PrintedFrame, TurnKey, TurnOrder, TurnResult, Usage,
};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub use permission::{Permission, Permissions};
pub use process::{end_left_behind, orphans};
use profile::Profile;
use receipts::Receipts;

use terminal::Terminals;

/// The interval at which a living agent that prints nothing is reported alive.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// The least time between two reports that an agent is alive.
pub const HEARTBEAT_GAP: Duration = Duration::from_secs(1);

/// The time that a process group has to end when it is asked to, before it is killed.
pub const GRACE: Duration = Duration::from_secs(3);

/// The default time that an agent may go without a sign of life in a turn: real agents think and wait
/// for their tools for minutes without a word.
pub const STALL: Duration = Duration::from_secs(600);

/// The time that a silent agent has after it was interrupted, before its turn has failed.
const LAST_CALL: Duration = GRACE.saturating_mul(2);

/// The number of signals that may wait to be read before the agent is slowed down.
const SIGNALS: usize = 64;

/// The number of answers that may wait to be read by a runner.
const REPLIES: usize = 16;

/// A turn with everything that is needed to carry it out.
#[derive(Clone, Debug)]
pub struct Job {
    pub order: TurnOrder,
    /// The agent that carries it out.
    pub agent: Agent,
    /// The profile of the agent's program, when it names one.
    pub profile: Option<Profile>,
    /// The working folder of the agent; a relative script is looked up there too.
    pub folder: PathBuf,
    /// A folder for notes about running turns.
    pub scratch: PathBuf,
    pub frame_word: String,
    /// True if control frames that are only printed count as the agent's word.
    pub trust_bare_frames: bool,
    /// The program that plays scripts, called as `PROGRAM play SCRIPT`.
    pub program: PathBuf,
    /// Additional environment variables of the agent: how to reach the daemon.
    pub given: Vec<(String, String)>,
    /// Notes the reports that the agent makes through its own channel.
    pub pulse: Pulse,
    /// The actions that the agent may take without asking, where its transport has it ask.
    pub permissions: Permissions,
    /// The sandbox of the agent; `None` when it runs without one.
    pub confined: Option<Confined>,
    /// The time limit for its terminal to take input; `None` for the default.
    pub ready_timeout: Option<Duration>,
}

/// Counts the reports that an agent makes through its own channel: signs of life that its session does
/// not see.
#[derive(Clone, Debug, Default)]
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    /// Notes a report.
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns true if there was a report since the last call.
    fn has_beaten(&self) -> bool {
        self.0.swap(0, Ordering::Relaxed) > 0
    }
}

/// A sandbox that is ready to be entered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Confined {
    /// The words in front of every command of the agent.
    pub prefix: Vec<OsString>,
    /// The environment variables to set for these commands.
    pub variables: Vec<(OsString, OsString)>,
    /// The paths that nothing may be written to in the agent's name either.
    pub pinned: Vec<PathBuf>,
}

impl Job {
    /// The program that carries the turn out and its arguments, as far as the workflow and the
    /// profile say them: the words that the user has trusted.
    pub fn command(&self) -> Vec<String> {
        let of_profile = |profile: &Profile| profile.words_of(&self.agent);
        match (&self.agent.script, self.agent.command.is_empty()) {
            (Some(script), _) => vec!["stafette".to_owned(), "play".to_owned(), script.clone()],
            (None, false) => self.agent.command.clone(),
            (None, true) => self.profile.as_ref().and_then(of_profile).unwrap_or_default(),
        }
    }

    /// A command with the words that have to stand in front of it.
    pub(crate) fn within(&self, command: &[OsString]) -> Vec<OsString> {
        let prefix = self.confined.as_ref().map(|confined| confined.prefix.as_slice());
        match prefix {
            Some(prefix) if !command.is_empty() => [prefix, command].concat(),
            _ => command.to_vec(),
        }
    }

    /// The time that the agent may go without a sign of life.
    pub(crate) fn stall(&self) -> Duration {
        self.agent.stall.map_or(STALL, |stall| Duration::from_millis(stall.0))
    }

    /// The token that the agent's session was given.
    pub(crate) fn token(&self) -> Option<&str> {
        let given = self.given.iter().find(|(name, _)| name == "STAFETTE_TOKEN");
        given.map(|(_, token)| token.as_str())
    }
}

/// The failure of a turn whose agent gave no sign of life for this time.
fn stalled(silence: Duration) -> Failure {
    let message = format!("said nothing for {} s, so its turn was ended", silence.as_secs_f32());
    Failure::new(FailureKind::Recoverable, message)
}

/// An event of a turn.
#[derive(Clone, PartialEq, Debug)]
pub enum Signal {
    /// The turn has reached this step on its way into the agent. Each step comes once, and in
    /// order.
    Receipt(Receipt),
    /// The agent's process changed.
    Session {
        /// The new state of the process.
        state: SessionState,
        /// Details for people: the last output of a process that died.
        note: String,
    },
    /// The agent shows signs of life.
    Alive {
        /// Its last message, if any.
        note: Option<String>,
    },
    /// The agent reports an error that people must see.
    Alert {
        /// The code of the error, in UPPER_SNAKE case.
        code: String,
        /// The error, in a sentence.
        message: String,
    },
    /// Its output shows a frame that changes nothing.
    Printed(PrintedFrame),
    /// The agent proposes a set of edits.
    Change(Box<Proposal>),
    /// The agent asks for permission and waits for an answer by [`Session::reply`].
    Asks {
        /// The id of the question, unique in the turn, also when it is delivered again.
        id: String,
        /// The action that it wants to take, in a line.
        title: String,
        /// Details of the action, for the person who decides.
        detail: String,
        /// The possible answers; never empty.
        options: Vec<String>,
        /// The option that means no, if there is one.
        default: Option<String>,
        /// The time after which the answer is taken to be no.
        within: Duration,
    },
    /// A question needs no answer any more: it has one, it has expired, or the turn has ended.
    Settled {
        id: String,
        /// The option that was chosen; `None` when the question was dropped.
        choice: Option<String>,
    },
    Finished(Box<TurnResult>),
    /// The turn ended with a failure.
    Failed {
        /// The kind and the message of the failure.
        failure: Failure,
        /// The consumption until then.
        usage: Usage,
    },
}

impl Signal {
    /// A failure after which another attempt may succeed.
    fn recoverable(message: impl Into<String>, usage: Usage) -> Self {
        Signal::Failed { failure: Failure::new(FailureKind::Recoverable, message), usage }
    }

    /// A failure that another attempt would repeat.
    fn fatal(message: impl Into<String>, usage: Usage) -> Self {
        Signal::Failed { failure: Failure::new(FailureKind::Fatal, message), usage }
    }
}

/// A request of the session's owner; dropping the sender requests the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// The turn is to be carried out.
    Work,
    /// The result is recorded for good.
    Acknowledge,
}

/// An answer to a question of the agent.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Reply {
    id: String,
    choice: String,
}

/// Carries turns out: [`Programs`] by starting processes, a simulation by agents of its own.
pub trait Agents: fmt::Debug + Send + Sync {
    /// Starts a turn. Called within a tokio runtime; errors come out as signals.
    fn start(&self, job: Job) -> Session;

    /// Returns the turns that an earlier process has left, at work or not.
    fn left_behind(&self) -> Vec<TurnKey>;

    /// Returns what an earlier delivery of the turn has left at work, if anything.
    fn survivors(&self, turn: TurnKey) -> Option<Box<dyn Survivors>>;

    /// True if process `caller` belongs to the turn of `agent`.
    fn belongs(&self, caller: i32, turn: TurnKey, agent: &AgentName) -> bool;
}

/// Agents that an earlier delivery of a turn has left at work.
pub trait Survivors: Send + Sync {
    /// Completes once all of them have ended.
    fn ended(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Ends them.
    fn end(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
}

/// Agents as processes of this machine, and the terminals that some of them live in.
#[derive(Clone, Debug)]
pub struct Programs {
    terminals: Terminals,
    scratch: PathBuf,
}

impl Programs {
    /// Agents whose terminals are kept in this list, and the notes about their turns in this folder.
    #[must_use]
    pub fn new(terminals: Terminals, scratch: PathBuf) -> Self {
        Programs { terminals, scratch }
    }
}

impl Agents for Programs {
    fn start(&self, job: Job) -> Session {
        start_in(job, &self.terminals)
    }

    fn left_behind(&self) -> Vec<TurnKey> {
        process::noted(&self.scratch)
    }

    fn survivors(&self, turn: TurnKey) -> Option<Box<dyn Survivors>> {
        let groups = process::Groups::left_by(turn, &self.scratch)?;
        Some(Box::new(groups))
    }

    fn belongs(&self, caller: i32, turn: TurnKey, agent: &AgentName) -> bool {
        tell::belongs(caller, &self.scratch, turn, agent)
    }
}

/// A turn in progress. Dropping it stops it.
#[derive(Debug)]
pub struct Session {
    /// The events of the turn. The channel closes when nothing of the agent is left.
    pub signals: mpsc::Receiver<Signal>,
    wish: watch::Sender<Wish>,
    replies: mpsc::Sender<Reply>,
    task: JoinHandle<()>,
}

impl Session {
    /// A session that `work` carries out. Must be called within a tokio runtime.
    #[must_use]
    pub fn of<F>(work: impl FnOnce(Link) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let (sender, signals) = mpsc::channel(SIGNALS);
        let (wish, wishes) = watch::channel(Wish::Work);
        let (replies, answers) = mpsc::channel(REPLIES);
        let task = tokio::spawn(work(Link { voice: Voice(sender), wishes, answers }));
        Session { signals, wish, replies, task }
    }

    /// Reports to the agent that its result is recorded for good, if its transport can. It then
    /// leaves automatically, also when the session is dropped right after this.
    pub fn acknowledge(&mut self) {
        self.wish.send_replace(Wish::Acknowledge);
    }

    /// Answers a question of the agent ([`Signal::Asks`]) with one of its options. Anything that is
    /// not an option means no; an answer to a question that is settled is ignored. Returns true if
    /// the agent's side could take the answer: if not, it may be tried again.
    pub fn reply(&self, id: impl Into<String>, choice: impl Into<String>) -> bool {
        self.replies.try_send(Reply { id: id.into(), choice: choice.into() }).is_ok()
    }

    /// Ends the agent's whole process group: it is asked first and killed after [`GRACE`]. Returns
    /// when nothing of it is left.
    pub async fn stop(self) {
        let Session { signals, wish, replies, task } = self;
        drop((signals, wish, replies));
        // A task that panicked has ended its group on the way out.
        drop(task.await);
    }
}

/// Starts a turn. Must be called within a tokio runtime. A terminal that it needs ends with it.
#[must_use]
pub fn start(job: Job) -> Session {
    begin(job, None)
}

/// Starts a turn, in one of these terminals when its agent lives in one. Must be called within a
/// tokio runtime.
#[must_use]
pub fn start_in(job: Job, terminals: &Terminals) -> Session {
    begin(job, Some(terminals.clone()))
}

fn begin(job: Job, terminals: Option<Terminals>) -> Session {
    if let Err(error) = profile::lay(&job) {
        let message = format!("its settings for MCP cannot be written: {error}");
        return Session::of(|link| link.ends(Signal::recoverable(message, Usage::default())));
    }
    match job.agent.runner {
        Runner::Exec => Session::of(|link| exec::run(job, link)),
        Runner::Scripted => Session::of(|link| scripted::run(job, link)),
        Runner::Acp => Session::of(|link| acp::run(job, link)),
        Runner::Pty => Session::of(|link| pty::run(job, link, terminals)),
        Runner::A2a => Session::of(|link| a2a::run(job, link)),
        Runner::External => {
            let message = format!("{} is not started here", job.order.agent);
            Session::of(|link| link.ends(Signal::fatal(message, Usage::default())))
        }
    }
}

/// A message from the owner of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Heard {
    /// A request of the owner.
    Wish(Wish),
    /// An answer to a question.
    Reply(Reply),
    /// The owner wants the end, or is gone.
    Gone,
}

/// Sends signals to the owner of a session.
#[derive(Clone, Debug)]
struct Voice(mpsc::Sender<Signal>);

impl Voice {
    /// Sends a signal that must arrive. Ignored if the owner is gone.
    async fn tell(&self, signal: Signal) {
        drop(self.0.send(signal).await);
    }

    /// Sends a signal that may be dropped when the owner is busy.
    fn mention(&self, signal: Signal) {
        drop(self.0.try_send(signal));
    }

    /// Sends signals; signs of life may be dropped when the owner is busy.
    async fn tell_all(&self, signals: Vec<Signal>) {
        for signal in signals {
            match signal {
                Signal::Alive { .. } => self.mention(signal),
                signal => self.tell(signal).await,
            }
        }
    }
}

/// The runner's end of a session.
#[derive(Debug)]
pub struct Link {
    voice: Voice,
    wishes: watch::Receiver<Wish>,
    answers: mpsc::Receiver<Reply>,
}

impl Link {
    /// Sends a signal that must arrive. Ignored if the owner is gone: the runner learns that from
    /// [`Link::wish`].
    pub async fn tell(&self, signal: Signal) {
        self.voice.tell(signal).await;
    }

    /// Ends the session with a signal.
    async fn ends(self, signal: Signal) {
        self.tell(signal).await;
    }

    /// The reporter for the progress of the turn.
    fn receipts(&self) -> Receipts {
        Receipts::new(self.voice.0.clone())
    }

    fn mention(&self, signal: Signal) {
        self.voice.mention(signal);
    }

    async fn tell_all(&self, signals: Vec<Signal>) {
        self.voice.tell_all(signals).await;
    }

    /// Returns the owner's next request; `None` when it wants the end.
    pub async fn wish(&mut self) -> Option<Wish> {
        self.wishes.changed().await.ok()?;
        Some(*self.wishes.borrow_and_update())
    }

    /// Returns the next request or answer of the owner.
    async fn word(&mut self) -> Heard {
        tokio::select! {
            biased;
            changed = self.wishes.changed() => match changed {
                Ok(()) => Heard::Wish(*self.wishes.borrow_and_update()),
                Err(_) => Heard::Gone,
            },
            Some(reply) = self.answers.recv() => Heard::Reply(reply),
        }
    }
}
