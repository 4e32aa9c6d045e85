//! Remote agents that speak the Agent2Agent protocol (A2A 1.0, JSON-RPC over HTTP).
//!
//! A turn becomes a message, and the remote agent makes a task of it that is followed until it ends
//! or asks a question. The id of the task is noted down: a turn that is delivered again continues
//! with it, and the same turn always gives its message the same id. A question ends the turn and
//! goes to a person; the answer is the next turn's message to the same task. Messages of the remote
//! agent may hold frames, and may quote files with frames in them, so those only propose.

mod notes;
mod remote;
mod talk;

use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use a2a_types::{
    CancelTaskRequest, GetTaskRequest, Message, SendMessageConfiguration, SendMessageRequest,
    SendMessageResponse, StreamResponse, SubscribeToTaskRequest, Task, TaskState, TaskStatus,
    methods,
};
use stafette_core::handoff::Receipt;
use stafette_core::wire::frame::Word;
use stafette_core::{RunId, Usage};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep, timeout};

use crate::exec::session;
use crate::receipts::Receipts;
use crate::{GRACE, HEARTBEAT, HEARTBEAT_GAP, Job, Link, Signal};
use notes::Notes;
use remote::{Events, Remote, RemoteError};
use talk::Talk;

/// The time for which a task may be silent before it is polled.
const LOOK: Duration = Duration::from_secs(10);

/// The first and the longest wait between two polls of a task that does not stream.
const POLL: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The time for which the remote agent may be unreachable before the turn is given up.
const AWAY: Duration = Duration::from_secs(60);

/// The time at the end of a run to cancel its remote tasks.
const LEAVE: Duration = Duration::from_secs(5);

/// The task to cancel when the turn is no longer wanted.
type Current = Mutex<Option<(Remote, String)>>;

/// Carries out a turn by a remote agent.
pub(crate) async fn run(job: Job, link: Link) {
    let mut wishes = link.wishes.clone();
    let current = Current::default();
    let unwanted = async { while wishes.changed().await.is_ok() {} };
    tokio::select! {
        end = work(&job, &link, &current) => link.tell(end).await,
        () = unwanted => {
            let current = current.into_inner().unwrap_or_else(PoisonError::into_inner);
            if let Some((remote, task)) = current {
                // A remote agent that does not answer in time is not waited for.
                drop(timeout(GRACE, cancel(&remote, &task)).await);
            }
        }
    }
}

/// Called when the run has ended: cancels the remote tasks that it still has, as far as that can be
/// done in a short time, and removes the notes about the sessions of its agents.
pub async fn leave(scratch: &Path, run: RunId) {
    let pages = notes::of_run(scratch, run);
    let call_off = async {
        for page in pages {
            let tasks = page.open();
            if tasks.is_empty() {
                continue;
            }
            let Ok(remote) = Remote::find(&page.url, page.bearer.as_deref()).await else {
                continue;
            };
            for task in tasks {
                drop(cancel(&remote, &task).await);
            }
        }
    };
    drop(timeout(LEAVE, call_off).await);
    session::forget_run(scratch, run);
}

async fn cancel(remote: &Remote, task: &str) -> Result<Task, RemoteError> {
    let wanted = CancelTaskRequest { id: task.to_owned(), metadata: None, tenant: None };
    remote.call(methods::CANCEL_TASK, &wanted).await
}

async fn work(job: &Job, link: &Link, current: &Current) -> Signal {
    let agent = &job.order.agent;
    let Some(url) = &job.agent.url else {
        let message = format!("agent {agent} has no address: give it a `url`");
        return Signal::fatal(message, Usage::default());
    };
    let word: Word = match job.frame_word.parse() {
        Ok(word) => word,
        Err(error) => return Signal::fatal(format!("{error}"), Usage::default()),
    };
    let broken = |trouble: &RemoteError| {
        let message = format!("{agent} at {url}: {trouble}");
        match trouble.may_pass() {
            true => Signal::recoverable(message, Usage::default()),
            false => Signal::fatal(message, Usage::default()),
        }
    };
    let remote = match Remote::find(url, job.agent.bearer.as_deref()).await {
        Ok(remote) => remote.within(traceparent(job)),
        Err(trouble) => return broken(&trouble),
    };
    let notes = Notes::of(job, url);
    let talk = Talk::new(job, word);
    let mut turn = Turn { job, link, current, remote, notes, talk, receipts: link.receipts() };
    match turn.play().await {
        Ok(Settled::Task(task)) => turn.end(*task).await,
        Ok(Settled::Message(message)) => {
            turn.talk.hear(&message, link).await;
            turn.talk.done(link).await
        }
        Ok(Settled::Stalled) => {
            Signal::Failed { failure: crate::stalled(job.stall()), usage: Usage::default() }
        }
        Err(trouble) => broken(&trouble),
    }
}

/// The trace context of the turn, as a local agent finds it in its environment.
fn traceparent(job: &Job) -> Option<String> {
    let mut given = job.given.iter();
    given.find(|(name, _)| name == "TRACEPARENT").map(|(_, value)| value.clone())
}

/// The outcome of a turn.
enum Settled {
    /// A task that has ended, or asks a question.
    Task(Box<Task>),
    /// An answer without a task.
    Message(Message),
    /// There was no news for too long.
    Stalled,
}

/// The way a task is followed.
enum Ear {
    /// The remote agent streams events.
    Events(Box<Events>),
    /// The task is polled.
    Looks,
}

struct Turn<'a> {
    job: &'a Job,
    link: &'a Link,
    current: &'a Current,
    remote: Remote,
    notes: Notes,
    talk: Talk<'a>,
    receipts: Receipts,
}

impl Turn<'_> {
    /// Continues with the task that this turn has already, or has a new one made.
    async fn play(&mut self) -> Result<Settled, RemoteError> {
        let key = self.job.order.key;
        let Some(noted) = self.notes.task(key).cloned() else { return self.send(None).await };
        let task = match self.look(&noted.task).await {
            Ok(task) => task,
            Err(RemoteError::NoTask) => return self.send(None).await,
            Err(trouble) => return Err(trouble),
        };
        let state = &task.status.state;
        let same = (noted.attempt, noted.turn) == (key.attempt, key.turn);
        if noted.attempt != key.attempt {
            // The next attempt begins afresh, and never beside what is left of the last one.
            if !state.is_terminal() {
                drop(cancel(&self.remote, &noted.task).await);
            }
            return self.send(None).await;
        }
        match state {
            // The task failed, and no one has received that result yet.
            TaskState::Canceled | TaskState::Failed if same => self.send(None).await,
            // A question is asked again, and finished work is not done twice.
            _ if same && is_settled(state) => {
                self.note(&task.id, &task.context_id).await?;
                Ok(Settled::Task(Box::new(task)))
            }
            _ if same => {
                self.note(&task.id, &task.context_id).await?;
                self.follow(Ear::Looks, task.id).await
            }
            // This turn is the answer to the question; otherwise it is more work.
            _ if state.is_terminal() => self.send(None).await,
            _ => self.send(Some(task.id)).await,
        }
    }

    /// Sends this turn's message, to a waiting task or for a new one.
    async fn send(&mut self, to: Option<String>) -> Result<Settled, RemoteError> {
        let mut message = self.talk.message(to.is_some());
        message.task_id = to;
        message.context_id = self.notes.context().map(str::to_owned);
        let request = SendMessageRequest {
            message,
            configuration: Some(SendMessageConfiguration {
                accepted_output_modes: None,
                task_push_notification_config: None,
                history_length: None,
                return_immediately: Some(true),
            }),
            metadata: None,
            tenant: None,
        };
        if self.remote.streams {
            let events = self.remote.stream(methods::SEND_STREAMING_MESSAGE, &request).await?;
            return self.follow(Ear::Events(Box::new(events)), String::new()).await;
        }
        match self.remote.call(methods::SEND_MESSAGE, &request).await? {
            SendMessageResponse::Message(message) => Ok(Settled::Message(message)),
            SendMessageResponse::Task(task) => {
                self.note(&task.id, &task.context_id).await?;
                self.status(&task.status).await;
                self.follow(Ear::Looks, task.id).await
            }
        }
    }

    /// Follows a task until it ends or asks a question.
    async fn follow(&mut self, mut ear: Ear, mut task: String) -> Result<Settled, RemoteError> {
        let mut seen = Instant::now();
        // An agent that is asked and answers is there; only news shows that it works.
        let mut works = (Instant::now(), None);
        let mut pause = POLL.0;
        let mut tick = interval(HEARTBEAT_GAP);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut said = Instant::now();
        loop {
            let heard = match &mut ear {
                Ear::Events(events) => tokio::select! {
                    event = events.next() => Some(event),
                    _ = tick.tick() => None,
                },
                Ear::Looks => {
                    sleep(pause).await;
                    pause = (pause * 2).min(POLL.1);
                    None
                }
            };
            if self.talk.is_news() || said.elapsed() >= HEARTBEAT && seen.elapsed() < LOOK {
                said = Instant::now();
                self.link.mention(Signal::Alive { note: self.talk.doing() });
            }
            let settled = match heard {
                Some(Ok(Some(StreamResponse::Message(message)))) => {
                    return Ok(Settled::Message(message));
                }
                Some(Ok(Some(event))) => {
                    seen = Instant::now();
                    works.0 = seen;
                    self.event(&event, &mut task).await?
                }
                // The stream has ended or is broken: the task itself is queried.
                Some(_) => {
                    ear = Ear::Looks;
                    true
                }
                None => matches!(ear, Ear::Looks) || seen.elapsed() >= LOOK,
            };
            if works.0.elapsed() >= self.job.stall() {
                if !task.is_empty() {
                    drop(timeout(GRACE, cancel(&self.remote, &task)).await);
                }
                return Ok(Settled::Stalled);
            }
            if !settled {
                continue;
            }
            if task.is_empty() {
                return Err(RemoteError::Odd {
                    why: "it took the message and named no task".into(),
                });
            }
            match self.look(&task).await {
                Ok(found) => {
                    seen = Instant::now();
                    self.status(&found.status).await;
                    if works.1.as_ref() != Some(&found.status) {
                        works = (seen, Some(found.status.clone()));
                    }
                    if is_settled(&found.status.state) {
                        return Ok(Settled::Task(Box::new(found)));
                    }
                    if matches!(ear, Ear::Looks) && self.remote.streams {
                        ear = self.subscribe(&task).await.unwrap_or(Ear::Looks);
                    }
                }
                Err(trouble) if trouble.is_away() && seen.elapsed() < AWAY => {}
                Err(trouble) => return Err(trouble),
            }
        }
    }

    async fn subscribe(&self, task: &str) -> Option<Ear> {
        let wanted = SubscribeToTaskRequest { id: task.to_owned(), tenant: None };
        let events = self.remote.stream(methods::SUBSCRIBE_TO_TASK, &wanted).await.ok()?;
        Some(Ear::Events(Box::new(events)))
    }

    /// Takes an event. Returns true if the task has ended or asks a question.
    async fn event(
        &mut self,
        event: &StreamResponse,
        task: &mut String,
    ) -> Result<bool, RemoteError> {
        let (id, context, status) = match event {
            StreamResponse::Task(found) => (&found.id, &found.context_id, Some(&found.status)),
            StreamResponse::StatusUpdate(update) => {
                (&update.task_id, &update.context_id, Some(&update.status))
            }
            // Artifacts are read when they are complete.
            StreamResponse::ArtifactUpdate(update) => (&update.task_id, &update.context_id, None),
            StreamResponse::Message(_) => return Ok(false),
        };
        if task.is_empty() {
            task.clone_from(id);
        }
        self.note(id, context).await?;
        let Some(status) = status else { return Ok(false) };
        self.status(status).await;
        Ok(is_settled(&status.state))
    }

    /// Takes the messages that the remote agent sends while it works.
    async fn status(&mut self, status: &TaskStatus) {
        if !matches!(status.state, TaskState::Submitted | TaskState::Unspecified) {
            self.receipts.reach(Receipt::Acknowledged).await;
        }
        if let Some(message) = &status.message
            && !is_settled(&status.state)
        {
            self.talk.hear(message, self.link).await;
        }
    }

    async fn look(&self, task: &str) -> Result<Task, RemoteError> {
        let wanted = GetTaskRequest { id: task.to_owned(), history_length: None, tenant: None };
        self.remote.call(methods::GET_TASK, &wanted).await
    }

    /// Notes down the task id that the remote agent gave the turn.
    async fn note(&mut self, task: &str, context: &str) -> Result<(), RemoteError> {
        let unwritten = |error: std::io::Error| RemoteError::Odd {
            why: format!("the task's name cannot be noted: {error}"),
        };
        self.notes.began(self.job.order.key, task, context).map_err(unwritten)?;
        let now = Some((self.remote.clone(), task.to_owned()));
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = now;
        // A task exists, so the message has been read.
        self.receipts.reach(Receipt::Ingested).await;
        Ok(())
    }

    /// Ends the turn with the outcome of its task.
    async fn end(mut self, task: Task) -> Signal {
        if task.status.state.is_terminal() {
            // A note that stays only costs a needless call at the end of the run.
            drop(self.notes.ended(self.job.order.key));
        }
        self.talk.end(task, self.link).await
    }
}

/// True if a task has ended, or waits for input.
fn is_settled(state: &TaskState) -> bool {
    state.is_terminal() || matches!(state, TaskState::InputRequired | TaskState::AuthRequired)
}
