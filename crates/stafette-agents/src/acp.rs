//! Agents that speak the Agent Client Protocol over their standard input and output.
//!
//! The agent receives its task, reports what it does, and asks for files, commands and permission.
//! Messages may hold frames, and may quote files with frames in them, so those only propose. The
//! output of tools and the replay of an earlier session are never searched for frames.

mod commands;
mod files;
pub(crate) mod hearing;
mod memory;
mod questions;
mod wire;

use std::ffi::OsString;
use std::pin::{Pin, pin};
use std::process::ExitStatus;
use std::time::Duration;

use stafette_core::handoff::Receipt;
use stafette_core::wire::frame::Word;
use stafette_core::{Failure, FailureKind, Usage, Usd};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{
    Instant, Interval, MissedTickBehavior, interval_at, sleep_until, timeout, timeout_at,
};

use crate::exec::DRAIN;
use crate::process::Group;
use crate::profile::Reported;
use crate::receipts::Receipts;
use crate::transcript::Transcript;
use crate::{
    HEARTBEAT, HEARTBEAT_GAP, Heard, Job, Link, Permission, Pulse, Signal, process, profile, prompt,
};
use commands::Commands;
use files::Folder;
use hearing::Hearing;
use memory::{Memory, Past};
use questions::Questions;
use wire::line::State;
use wire::{AcpError, End, Event, Peer};

/// The number of file requests that are served in parallel.
const WORK: usize = 8;

/// The time that an agent has to cancel its turn when it is asked to.
const CANCEL: Duration = Duration::from_secs(1);

/// The time that an agent has to exit on its own when nothing more is asked of it.
const LEAVE: Duration = Duration::from_secs(1);

/// The reason why a turn did not complete.
#[derive(Debug)]
enum Broken {
    /// The turn is no longer wanted.
    Unwanted,
    /// The agent was silent for too long.
    Stalled,
    /// The agent is gone, and its exit status says more.
    Gone,
    /// The agent returned an error, or did not answer in time.
    AcpError(AcpError),
}

type Ended = (End, Option<u64>);

/// Carries out a turn by an agent that speaks the protocol.
pub(crate) async fn run(job: Job, link: Link) {
    let word = match job.frame_word.parse::<Word>() {
        Ok(word) => word,
        Err(error) => {
            return link.tell(Signal::fatal(error.to_string(), Usage::default())).await;
        }
    };
    if let Some(message) = profile::unusable(&job) {
        return link.tell(Signal::fatal(message, Usage::default())).await;
    }
    let command: Vec<OsString> =
        profile::words(&job, None).into_iter().map(OsString::from).collect();
    let (group, pipes) = match Group::start(&job, &command).await {
        Ok(started) => started,
        Err(failed) => return link.tell(*failed).await,
    };
    let pinned = job.confined.as_ref().map(|confined| confined.pinned.as_slice());
    let folder = match Folder::at(&job.folder) {
        Ok(folder) => folder.pinning(pinned.unwrap_or_default()),
        Err(error) => {
            let message = format!("the folder {} cannot be used: {error}", job.folder.display());
            return link.tell(Signal::recoverable(message, Usage::default())).await;
        }
    };
    let state = State::default();
    let (sender, events) = mpsc::channel(wire::EVENTS);
    let (peer, pump) = wire::lay(state.clone(), sender);
    let mut turn = Turn::new(job, link, word, group, folder, state, events);
    let ended = {
        let mut pumping = pin!(pump.run(pipes));
        let mut talking = pin!(turn.talk(peer));
        tokio::select! {
            biased;
            ended = &mut talking => ended,
            () = &mut pumping => talking.await,
        }
    };
    turn.close(ended).await;
}

/// A turn and its state.
struct Turn {
    job: Job,
    link: Link,
    group: Group,
    folder: Folder,
    state: State,
    events: mpsc::Receiver<Event>,
    /// The exit status of the agent's process, and the time of its exit.
    ended: Option<(ExitStatus, Instant)>,
    hearing: Hearing,
    money: Option<Usd>,
    /// True if updates belong to this turn.
    prompted: bool,
    receipts: Receipts,
    /// The time for which it may be silent, and the start of its silence.
    stall: Duration,
    pulse: Pulse,
    heard_at: Instant,
    /// True if it has waited for a command since the last check.
    waited: bool,
    reported: Option<Instant>,
    heartbeat: Interval,
    questions: Questions,
    commands: Commands,
    work: JoinSet<()>,
    memory: Option<Memory>,
    past: Option<Past>,
}

impl Turn {
    fn new(
        job: Job,
        link: Link,
        word: Word,
        group: Group,
        folder: Folder,
        state: State,
        events: mpsc::Receiver<Event>,
    ) -> Self {
        let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Turn {
            hearing: Hearing::new(&job, word),
            questions: Questions::new(job.order.deliveries),
            stall: job.stall(),
            pulse: job.pulse.clone(),
            heard_at: Instant::now(),
            waited: false,
            job,
            receipts: link.receipts(),
            link,
            group,
            folder,
            state,
            events,
            ended: None,
            money: None,
            prompted: false,
            reported: None,
            heartbeat,
            commands: Commands::default(),
            work: JoinSet::new(),
            memory: None,
            past: None,
        }
    }

    /// Initialises the protocol, opens a session, sends the task and listens until the turn has
    /// ended.
    async fn talk(&mut self, peer: Peer) -> Result<Ended, Broken> {
        let peer = peer.told_of(profile::server(&self.job), &self.job.given);
        let mode = self.job.profile.as_ref().and_then(|profile| profile.acp.as_ref());
        let hello = pin!(peer.hello(!mode.is_some_and(|mode| mode.own_files)));
        let hello = self.within(wire::HELLO, "say hello", hello).await??;
        self.memory = Memory::hold(&self.job);
        let folder = self.folder.path().to_owned();
        if let Some(past) = self.memory.as_mut().and_then(Memory::past) {
            let session = past.session.clone();
            let reopening = pin!(peer.reopen(hello, &session, &folder));
            let reopened = self.within(wire::OPENING, "open its session", reopening).await?;
            self.past = reopened.then_some(past);
        }
        let session = match &self.past {
            Some(past) => past.session.clone(),
            None => {
                let opening = pin!(peer.open(&folder));
                let session = self.within(wire::OPENING, "open a session", opening).await??;
                let past = Past::new(session.clone());
                if let Some(memory) = &mut self.memory {
                    memory.keep(&past);
                }
                self.past = Some(past);
                session
            }
        };
        self.prompted = true;
        self.heard_at = Instant::now();
        let mut prompting = pin!(peer.prompt(&session, prompt::text(&self.job)));
        let ended = self.during(None, prompting.as_mut()).await;
        if let Err(Broken::Stalled) = ended {
            self.tell_that_it_stalls().await;
        }
        if let Err(Broken::Unwanted | Broken::Stalled) = ended {
            self.questions.fall_away();
            peer.cancel(&session);
            let patience = Instant::now() + CANCEL;
            // Further requests of the agent are not served.
            while let Ok(Some(_)) = timeout_at(patience, async {
                tokio::select! {
                    _ = prompting.as_mut() => None,
                    event = self.events.recv() => event,
                }
            })
            .await
            {}
        }
        if let Err(Broken::Stalled) = ended {
            let Failure { kind, message, .. } = crate::stalled(self.stall);
            return Err(Broken::AcpError(AcpError { kind, message, gone: false }));
        }
        Ok(ended??)
    }

    /// The time at which its silence counts as a stall; `None` while it waits for a person.
    fn stalls(&self) -> Option<Instant> {
        let asks = self.questions.until().is_some();
        let works = self.prompted && self.ended.is_none() && !asks;
        works.then_some(self.heard_at + self.stall)
    }

    /// True if it waits for a command, or did so since the last check: then its silence begins only
    /// now.
    fn waits(&mut self) -> bool {
        let waits = self.commands.are_awaited();
        let waited = std::mem::replace(&mut self.waited, waits);
        if waits || waited {
            self.heard_at = Instant::now();
        }
        waits || waited
    }

    /// Asks an agent that does nothing to stop, and reports it to people.
    async fn tell_that_it_stalls(&mut self) {
        let code = "AGENT_STALLED".to_owned();
        let silence = self.stall.as_secs_f32();
        let message = format!("said nothing for {silence} s and was interrupted");
        self.link.tell(Signal::Alert { code, message }).await;
    }

    async fn within<T>(
        &mut self,
        patience: Duration,
        doing: &str,
        answer: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, Broken> {
        let until = Some((Instant::now() + patience, doing));
        self.during(until, answer).await
    }

    /// Waits for an answer, and meanwhile serves the agent and listens to the owner.
    async fn during<T>(
        &mut self,
        until: Option<(Instant, &str)>,
        mut answer: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, Broken> {
        loop {
            let now = Instant::now();
            let drained = self.ended.map(|(_, at)| at + DRAIN);
            let expires = self.questions.until();
            let stalls = self.stalls();
            tokio::select! {
                biased;
                heard = self.link.word() => match heard {
                    Heard::Gone => return Err(Broken::Unwanted),
                    Heard::Wish(_) => {}
                    Heard::Reply(reply) => {
                        self.heard_at = Instant::now();
                        if let Some(settled) = self.questions.reply(&reply) {
                            self.link.tell(settled).await;
                        }
                    }
                },
                () = self.state.delivered.notified(), if !self.receipts.has(Receipt::Delivered) => {
                    self.receipts.reach(Receipt::Delivered).await;
                }
                answer = answer.as_mut() => {
                    // All events before the answer are waiting here.
                    while let Ok(event) = self.events.try_recv() {
                        self.take(event).await;
                    }
                    return Ok(answer);
                }
                Some(_) = self.work.join_next() => {}
                Some(event) = self.events.recv(), if self.work.len() < WORK => {
                    self.take(event).await;
                }
                () = sleep_until(expires.unwrap_or(now)), if expires.is_some() => {
                    self.heard_at = Instant::now();
                    for settled in self.questions.expire() {
                        self.link.tell(settled).await;
                    }
                }
                () = sleep_until(stalls.unwrap_or(now)), if stalls.is_some() => {
                    if self.pulse.has_beaten() || self.group.has_worked(self.stall) {
                        self.heard_at = Instant::now();
                    } else if !self.waits() {
                        return Err(Broken::Stalled);
                    }
                }
                status = self.group.leader_ends(), if self.ended.is_none() => {
                    // Processes that it left behind would hold the pipes open.
                    self.group.end().await;
                    self.ended = Some((status, Instant::now()));
                }
                () = sleep_until(drained.unwrap_or(now)), if drained.is_some() => {
                    return Err(Broken::Gone);
                }
                _ = self.heartbeat.tick(), if self.receipts.has(Receipt::Delivered) && self.ended.is_none() => {
                    self.report();
                }
                () = sleep_until(until.map_or(now, |(at, _)| at)), if until.is_some() => {
                    let doing = until.map_or("", |(_, doing)| doing);
                    let aside = self.state.aside().map_or(String::new(), |said| format!(": {said}"));
                    let message = format!("it did not {doing} in time{aside}");
                    let kind = FailureKind::Recoverable;
                    return Err(Broken::AcpError(AcpError { kind, message, gone: false }));
                }
            }
        }
    }

    /// Takes an update or a request of the agent.
    async fn take(&mut self, event: Event) {
        self.heard_at = Instant::now();
        if self.prompted {
            // Messages, actions and questions come from the model; a file may be read by its
            // program.
            let said = match &event {
                Event::Text { .. } | Event::Note(_) | Event::Ask { .. } => Receipt::Acknowledged,
                _ => Receipt::Ingested,
            };
            self.receipts.reach(said).await;
        }
        match event {
            Event::Text { .. } | Event::Note(_) | Event::Cost(_) if !self.prompted => return,
            Event::Text { message, text } => {
                self.hearing.hear(message, &text, &self.link).await;
            }
            Event::Note(note) => self.hearing.note(note),
            Event::Cost(usage) => self.money = Some(usage.money),
            Event::Ask { title, detail, deed, choices, answer } => {
                let allowed = match self.job.permissions.of(deed, &title) {
                    Permission::Allow => questions::yes(&choices),
                    Permission::Ask => None,
                    Permission::Refuse => Some(questions::no(&choices)),
                };
                match allowed {
                    Some(verdict) => answer.give(Ok(verdict)),
                    None => {
                        let within = self.job.permissions.patience;
                        let asks = self.questions.ask(title, detail, choices, answer, within);
                        if let Some(asks) = asks {
                            self.link.tell(asks).await;
                        }
                    }
                }
            }
            event => self.serve(event),
        }
        let due = self.reported.is_none_or(|last| last.elapsed() >= HEARTBEAT_GAP);
        if self.prompted && due {
            self.report();
        }
    }

    /// Serves a request for a file or a command.
    fn serve(&mut self, event: Event) {
        let (job, folder) = (&self.job, self.folder.clone());
        let refused = |permission| permission == Permission::Refuse;
        let may_not = |what: &str| format!("this agent may not {what}");
        match event {
            Event::Read { answer, .. } if refused(job.permissions.read) => {
                answer.give(Err(may_not("read files")));
            }
            Event::Read { path, line, limit, answer } => {
                self.work.spawn_blocking(move || answer.give(folder.read(&path, line, limit)));
            }
            Event::Write { answer, .. } if refused(job.permissions.edit) => {
                answer.give(Err(may_not("write files")));
            }
            Event::Write { path, text, answer } => {
                self.work.spawn_blocking(move || answer.give(folder.write(&path, &text)));
            }
            Event::Run(_, answer) if refused(job.permissions.execute) => {
                answer.give(Err(may_not("run commands")));
            }
            Event::Run(run, answer) => {
                let place = match &run.folder {
                    Some(path) => folder.subfolder(path),
                    None => Ok(folder.path().to_owned()),
                };
                let commands = &mut self.commands;
                answer.give(place.and_then(|place| commands.start(job, run, &place)));
            }
            Event::Show(id, answer) => answer.give(self.commands.show(&id)),
            Event::Wait(id, answer) => {
                self.waited = true;
                self.commands.wait(&id, answer);
            }
            Event::Kill(id, answer) => answer.give(self.commands.kill(&id)),
            Event::Release(id, answer) => answer.give(self.commands.release(&id)),
            Event::Text { .. } | Event::Note(_) | Event::Cost(_) | Event::Ask { .. } => {}
        }
    }

    /// Reports that the agent is alive.
    fn report(&mut self) {
        self.reported = Some(Instant::now());
        self.link.mention(Signal::Alive { note: self.hearing.doing() });
    }

    /// Ends everything, then reports the outcome.
    async fn close(mut self, ended: Result<Ended, Broken>) {
        let unwanted = matches!(ended, Err(Broken::Unwanted));
        for settled in self.questions.fall_away() {
            self.link.tell(settled).await;
        }
        self.work.shutdown().await;
        let status = self.leave(if unwanted { Duration::ZERO } else { LEAVE }).await;
        std::mem::take(&mut self.commands).end().await;
        if unwanted {
            return;
        }
        self.outcome(ended, status).await;
    }

    /// Lets the agent exit on its own, and ends it if it does not. Its exit status is only known if
    /// it exited on its own.
    async fn leave(&mut self, patience: Duration) -> Option<ExitStatus> {
        if self.ended.is_none() {
            let status = timeout(patience, self.group.leader_ends()).await.ok();
            self.ended = status.map(|status| (status, Instant::now()));
        }
        self.group.end().await;
        self.ended.map(|(status, _)| status)
    }

    /// Reports the outcome of the turn.
    async fn outcome(mut self, ended: Result<Ended, Broken>, status: Option<ExitStatus>) {
        if let Some(status) = status.filter(|status| !status.success()) {
            let last: Vec<String> =
                self.hearing.doing().into_iter().chain(self.state.aside()).collect();
            self.link.tell(process::died(status, &last)).await;
        }
        let mut left = ExitStatus::default();
        let failure = match ended {
            Ok((end, tokens)) => {
                self.settle_accounts(tokens).await;
                failure_of(end).or_else(|| self.told_error())
            }
            Err(Broken::AcpError(trouble)) if !trouble.gone => {
                self.settle_accounts(None).await;
                Some(profile::named(&self.job, trouble.kind, trouble.message))
            }
            Err(Broken::AcpError(_) | Broken::Gone | Broken::Unwanted | Broken::Stalled) => {
                self.settle_accounts(None).await;
                match (self.state.cut(), status) {
                    (Some(cut), _) => Some(cut),
                    (None, Some(status)) if !status.success() => {
                        left = status;
                        None
                    }
                    (None, _) => {
                        let aside = self.state.aside().map_or(String::new(), |s| format!(": {s}"));
                        let message = format!("it left in the middle of its turn{aside}");
                        Some(Failure::new(FailureKind::Recoverable, message))
                    }
                }
            }
        };
        let signal = self.hearing.end(failure, left, self.state.aside(), &self.link).await;
        if let Signal::Finished(_) = signal {
            self.receipts.reach(Receipt::Acknowledged).await;
        }
        self.link.tell(signal).await;
    }

    /// The error that the agent's program has told as if its model had said it.
    fn told_error(&self) -> Option<Failure> {
        let profile = self.job.profile.as_ref()?;
        let line = self.hearing.last_line(|line| profile.tells_error(line))?;
        Some(profile::named(&self.job, FailureKind::Recoverable, line))
    }

    /// Records the consumption of the turn, by what the protocol and the program's own files say. Some
    /// agents count for each process, others for the session, and not all record every request.
    async fn settle_accounts(&mut self, tokens: Option<u64>) {
        let Some(past) = self.past.as_mut().filter(|_| self.prompted) else {
            return self.hearing.used(Usage::default());
        };
        let mut usage = past.turn(tokens, self.money);
        if let Some(memory) = &mut self.memory {
            memory.keep(past);
        }
        // Some report only the size of their last request.
        let mode = self.job.profile.as_ref().and_then(|profile| profile.acp.as_ref());
        if mode.is_some_and(|mode| !mode.reports.contains(&Reported::Tokens)) {
            usage.unknown.tokens = 1;
        }
        if let Some(transcript) = Transcript::of(&self.job) {
            let recorded = transcript.used(&past.session).await;
            usage.tokens = usage.tokens.max(recorded.tokens);
            usage.unknown.tokens = usage.unknown.tokens.min(recorded.unknown.tokens);
            if usage.unknown.money > 0 {
                (usage.money, usage.estimated) = (recorded.money, recorded.estimated);
                usage.unknown.money = recorded.unknown.money;
            }
        }
        self.hearing.used(usage);
    }
}

/// The failure that the agent's reason for ending the turn stands for; `None` for a success.
fn failure_of(end: End) -> Option<Failure> {
    let (kind, message) = match end {
        End::Done => return None,
        End::OutOfTokens => (FailureKind::Recoverable, "it ran out of tokens"),
        End::OutOfRequests => (FailureKind::Recoverable, "it ran out of requests to its model"),
        End::Refused => (FailureKind::Fatal, "it refuses to do this"),
        End::Cancelled => (FailureKind::Recoverable, "it gave up on its turn"),
    };
    Some(Failure::new(kind, message))
}

impl From<AcpError> for Broken {
    fn from(trouble: AcpError) -> Self {
        Broken::AcpError(trouble)
    }
}
