//! Turns a session into bytes and signals.
//!
//! A [`Job`] goes in, [`Signal`]s come out. What an agent is made of — a command, a script, a
//! protocol, a terminal — stops in this crate; who it is, is data.
//!
//! Invariants:
//! - [`start`] never blocks and never fails: what goes wrong comes out as a signal.
//! - A session ends with exactly one of [`Signal::Finished`] and [`Signal::Failed`], and nothing
//!   comes after it.
//! - An agent is a process group. When its session ends, is stopped or is dropped, the whole group
//!   is gone, and whoever has left it with the environment that it was given. Only a terminal
//!   outlives its turns: it ends with its run, or when it is dropped.
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
mod tty;

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use stafette_core::change::Proposal;
use stafette_core::handoff::Receipt;
use stafette_core::run::session::SessionState;
use stafette_core::workflow::{Agent, Runner};
use stafette_core::{Failure, FailureKind, TurnOrder, TurnResult, Usage};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub use permission::{Permission, Permissions};
pub use process::{Survivors, end_left_behind};
use profile::Profile;
use receipts::Receipts;

use terminal::Terminals;

/// How often a living agent that prints nothing is reported alive.
pub const HEARTBEAT: Duration = Duration::from_secs(5);

/// The least time between two reports that an agent is alive.
pub const HEARTBEAT_GAP: Duration = Duration::from_secs(1);

/// How long a process group has to end when it is asked to, before it is killed.
pub const GRACE: Duration = Duration::from_secs(3);

/// Signals that may wait to be read before the agent is held back.
const SIGNALS: usize = 64;

/// Answers that may wait to be read by a runner.
const REPLIES: usize = 16;

/// A turn and everything that is needed to carry it out.
#[derive(Clone, Debug)]
pub struct Job {
    /// What is to be done.
    pub order: TurnOrder,
    /// Who does it.
    pub agent: Agent,
    /// What is known about the program that runs it, when it names a profile.
    pub profile: Option<Profile>,
    /// The folder that the agent works in; a relative script is looked up there too.
    pub folder: PathBuf,
    /// A folder for notes about running turns.
    pub scratch: PathBuf,
    /// The word in control frames.
    pub frame_word: String,
    /// The program that plays scripts, by `PROGRAM play SCRIPT`.
    pub program: PathBuf,
    /// What the agent is given in its environment besides: the way back to us.
    pub given: Vec<(String, String)>,
    /// What the agent may do without asking, where its transport has it ask.
    pub permissions: Permissions,
    /// What stands in front of its command when it is in a sandbox.
    pub confined: Option<Confined>,
    /// How long its terminal is waited for to take input, when somebody has said so.
    pub ready_timeout: Option<Duration>,
}

/// A sandbox that is ready to be entered.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Confined {
    /// What to put in front of every command of the agent.
    pub prefix: Vec<OsString>,
    /// Variables to set for them.
    pub variables: Vec<(OsString, OsString)>,
}

impl Job {
    /// A command with what has to stand in front of it.
    pub(crate) fn within(&self, command: &[OsString]) -> Vec<OsString> {
        let prefix = self.confined.as_ref().map(|confined| confined.prefix.as_slice());
        match prefix {
            Some(prefix) if !command.is_empty() => [prefix, command].concat(),
            _ => command.to_vec(),
        }
    }

    /// The token that the agent's session was given.
    pub(crate) fn token(&self) -> Option<&str> {
        let given = self.given.iter().find(|(name, _)| name == "STAFETTE_TOKEN");
        given.map(|(_, token)| token.as_str())
    }
}

/// What is heard of a turn.
#[derive(Clone, PartialEq, Debug)]
pub enum Signal {
    /// The turn has come so far into the agent. Each step comes once, and in order.
    Receipt(Receipt),
    /// The agent's process changed.
    Session {
        /// How it stands now.
        state: SessionState,
        /// What there is to know about it: the last that was seen of one that died.
        note: String,
    },
    /// The agent shows signs of life.
    Alive {
        /// What it said last.
        note: Option<String>,
    },
    /// The agent says that something went wrong which people must see.
    Alert {
        /// An UPPER_SNAKE code.
        code: String,
        /// In a sentence.
        message: String,
    },
    /// The agent proposes a set of edits.
    Change(Box<Proposal>),
    /// The agent wants to do something and waits for an answer by [`Session::reply`].
    Asks {
        /// Which question this is; no other of the turn has this name, also when it is delivered
        /// again.
        id: String,
        /// What it wants to do, in a line.
        title: String,
        /// What is known about it, for whoever decides.
        detail: String,
        /// What can be answered; never empty.
        options: Vec<String>,
        /// The option that means no, if there is one.
        default: Option<String>,
        /// How long it waits before the answer is taken to be no.
        within: Duration,
    },
    /// A question needs no answer any more: it has one, its time is up, or the turn is over.
    Settled {
        /// Which.
        id: String,
        /// The option that was taken; nothing when the question fell away.
        choice: Option<String>,
    },
    /// The turn came to its end.
    Finished(Box<TurnResult>),
    /// The turn broke.
    Failed {
        /// How.
        failure: Failure,
        /// What it used until then.
        usage: Usage,
    },
}

impl Signal {
    /// The turn broke; another try may go better.
    fn recoverable(message: impl Into<String>, usage: Usage) -> Self {
        Signal::Failed { failure: Failure::new(FailureKind::Recoverable, message), usage }
    }

    /// The turn broke, and so would the next try.
    fn fatal(message: impl Into<String>, usage: Usage) -> Self {
        Signal::Failed { failure: Failure::new(FailureKind::Fatal, message), usage }
    }
}

/// What the owner of a session wants of it; to drop the sender is to want its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wish {
    Work,
    Acknowledge,
}

/// An answer to a question of the agent.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Reply {
    id: String,
    choice: String,
}

/// A turn that is being carried out. To drop it is to stop it.
#[derive(Debug)]
pub struct Session {
    /// What is heard of it. The channel closes when nothing of the agent is left.
    pub signals: mpsc::Receiver<Signal>,
    wish: watch::Sender<Wish>,
    replies: mpsc::Sender<Reply>,
    task: JoinHandle<()>,
}

impl Session {
    /// Tells the agent that its result is recorded for good, if its transport can. It then leaves
    /// by itself, also when the session is dropped right after this.
    pub fn acknowledge(&mut self) {
        self.wish.send_replace(Wish::Acknowledge);
    }

    /// Answers a question of the agent ([`Signal::Asks`]) by one of its options. What is not an
    /// option of it means no; an answer to a question that is settled is ignored. Tells whether
    /// the agent's side could take the answer: when not, it may be tried again.
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
    let (sender, signals) = mpsc::channel(SIGNALS);
    let (wish, wishes) = watch::channel(Wish::Work);
    let (replies, answers) = mpsc::channel(REPLIES);
    let link = Link { sender, wishes, answers };
    if let Err(error) = profile::lay(&job) {
        let task = tokio::spawn(async move {
            let message = format!("its settings for MCP cannot be written: {error}");
            link.tell(Signal::recoverable(message, Usage::default())).await;
        });
        return Session { signals, wish, replies, task };
    }
    let task = match job.agent.runner {
        Runner::Exec => tokio::spawn(exec::run(job, link)),
        Runner::Scripted => tokio::spawn(scripted::run(job, link)),
        Runner::Acp => tokio::spawn(acp::run(job, link)),
        Runner::Pty => tokio::spawn(pty::run(job, link, terminals)),
        Runner::External => tokio::spawn(async move {
            let message = format!("{} is not started here", job.order.agent);
            link.tell(Signal::fatal(message, Usage::default())).await;
        }),
        Runner::A2a => tokio::spawn(a2a::run(job, link)),
    };
    Session { signals, wish, replies, task }
}

/// What is heard of the owner of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
enum Heard {
    /// It wants something.
    Wish(Wish),
    /// It answers a question.
    Reply(Reply),
    /// It wants the end.
    Gone,
}

/// The runner's end of a session.
#[derive(Debug)]
struct Link {
    sender: mpsc::Sender<Signal>,
    wishes: watch::Receiver<Wish>,
    answers: mpsc::Receiver<Reply>,
}

impl Link {
    /// Says something that must be heard. Nobody listening is no trouble: the owner is gone, and
    /// the runner learns it from [`Link::wish`].
    async fn tell(&self, signal: Signal) {
        drop(self.sender.send(signal).await);
    }

    /// Tells step by step how far the turn has come.
    fn receipts(&self) -> Receipts {
        Receipts::new(self.sender.clone())
    }

    /// Says something that may be missed when the owner is busy.
    fn mention(&self, signal: Signal) {
        drop(self.sender.try_send(signal));
    }

    /// The owner's next wish; nothing when it wants the end.
    async fn wish(&mut self) -> Option<Wish> {
        self.wishes.changed().await.ok()?;
        Some(*self.wishes.borrow_and_update())
    }

    /// What the owner wants or answers next.
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
