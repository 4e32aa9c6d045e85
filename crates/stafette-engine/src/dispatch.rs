//! The only place that starts anything: orders become sessions, and their signals become inputs.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use stafette_agents::profile::{Library, Profile};
use stafette_agents::terminal::{Follow, SessionNews};
use stafette_agents::{GRACE, Job, Permissions, Signal};
use stafette_core::change::{Change, Proposal};
use stafette_core::handoff::Receipt;
use stafette_core::run::permission::Permit;
use stafette_core::run::session::SessionState;
use stafette_core::workflow::{Runner, Sandbox};
use stafette_core::{
    AgentName, Failure, FailureKind, HandoffId, Input, Millis, Question, Run, TeamInput, TurnKey,
    TurnOrder, Usage, Workflow,
};
use stafette_workspace::Worktree;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::changes::NoChange;
use crate::confine::{Confinement, OwnPaths, confine};
use crate::context::EngineContext;
use crate::interceptor::{ALERT, HookDecision};
use crate::place::Places;
use crate::task::{Message, Shown};
use crate::tokens::Tokens;
use crate::{Plan, changes, crash};

/// The time that sessions have to end: twice what a process group gets before it is killed.
const PATIENCE: Duration = GRACE.saturating_mul(2);

/// The sessions of one run.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    out: HashMap<TurnKey, mpsc::UnboundedSender<Word>>,
    pumps: JoinSet<()>,
    /// The latest session of each handoff; closed once nothing of it is left.
    latest: HashMap<HandoffId, watch::Receiver<()>>,
    /// Reports changes of the terminals, once there are some.
    follower: Option<JoinHandle<()>>,
    /// The agents whose sandbox gaps have been reported to people.
    told: Arc<Mutex<HashSet<AgentName>>>,
}

/// A message to a session. The channel is unbounded but stays small: a stop, and one message for
/// each question.
#[derive(Debug)]
enum Word {
    /// The session must end.
    Stop,
    /// The answer to a question of the agent.
    Permit(Permit),
}

impl Sessions {
    /// Carries a plan out. Sessions that gave their result leave automatically.
    pub(crate) fn carry_out(
        &mut self,
        plan: Plan,
        run: &Run,
        context: &EngineContext,
        queue: &mpsc::WeakSender<Message>,
        shown: &watch::Sender<Shown>,
    ) {
        let EngineContext { settings, places, terminals, .. } = context;
        for key in plan.stop {
            if let Some(words) = self.out.remove(&key) {
                // The session is gone if it gave its result: then there is nothing to stop.
                let _ = words.send(Word::Stop);
            }
        }
        for (key, permit) in plan.permits {
            if let Some(words) = self.out.get(&key) {
                let _ = words.send(Word::Permit(permit));
            }
        }
        self.latest.retain(|_, session| session.has_changed().is_ok());
        for order in plan.start {
            let Some(agent) = run.workflow.agents.get(&order.agent) else { continue };
            if agent.runner == Runner::External {
                continue;
            }
            let Some(queue) = queue.upgrade() else { return };
            let (words, heard) = mpsc::unbounded_channel();
            self.out.insert(order.key, words);
            let profile = agent.profile.as_deref().and_then(|name| profile(&run.workflow, name));
            let pty = profile.as_ref().and_then(|profile| profile.pty.as_ref());
            let ready_timeout = agent.ready_timeout.or(pty.and_then(|pty| pty.ready_timeout));
            let ready_timeout =
                Duration::from_millis(ready_timeout.unwrap_or(run.workflow.limits.ready_timeout).0);
            let in_terminal = agent.runner == Runner::Pty;
            let job = Job {
                profile,
                agent: agent.clone(),
                folder: settings.project.clone(),
                scratch: settings.scratch.clone(),
                frame_word: run.workflow.workflow.frame_word.clone(),
                trust_bare_frames: run.workflow.workflow.trust_bare_frames,
                program: settings.program.clone(),
                given: given(context, run, &order),
                pulse: context.tokens.pulse(order.key),
                permissions: Permissions::of_level(agent.permissions),
                confined: None,
                ready_timeout: Some(ready_timeout),
                order,
            };
            if in_terminal && self.follower.is_none() {
                let follow = terminals.follow(run.id);
                self.follower = Some(tokio::spawn(pass_on(follow, queue.downgrade())));
            }
            let in_loop = run.workflow.loops.iter().any(|l| l.between.contains(&job.order.agent));
            let places = run.workflow.workflow.worktrees.then(|| places.clone());
            let (here, gone) = watch::channel(());
            let earlier = self.latest.insert(job.order.key.handoff, gone);
            let pump = Pump {
                earlier,
                _here: here,
                key: job.order.key,
                agent: job.order.agent.clone(),
                in_terminal,
                in_loop,
                places,
                told: self.told.clone(),
                context: context.clone(),
                workflow: run.workflow.clone(),
                queue,
                shown: shown.subscribe(),
            };
            self.pumps.spawn(pump.run(job, heard));
        }
        // Removes the tasks that have ended.
        while self.pumps.try_join_next().is_some() {}
    }

    /// Ends every session in progress, and returns when nothing is left of them. Those that do not
    /// end in time are dropped, which kills their processes.
    pub(crate) async fn end(mut self) {
        for (_, words) in self.out.drain() {
            let _ = words.send(Word::Stop);
        }
        let ended = async { while self.pumps.join_next().await.is_some() {} };
        if tokio::time::timeout(PATIENCE, ended).await.is_err() {
            tracing::error!(sessions = self.pumps.len(), "sessions did not end in time; killed");
            self.pumps.shutdown().await;
        }
        if let Some(follower) = self.follower.take() {
            follower.abort();
        }
    }
}

/// Passes on the changes of a run's terminals, also between turns.
async fn pass_on(mut follow: Follow, queue: mpsc::WeakSender<Message>) {
    while let Some(news) = follow.next().await {
        let Some(queue) = queue.upgrade() else { return };
        let SessionNews { agent, state, note, gave_up, .. } = news;
        let alert = gave_up.then(|| Input::Alert {
            code: "AGENT_CRASHED".into(),
            message: format!("{agent} {note}"),
        });
        for input in [Some(Input::Session { agent, state, note }), alert].into_iter().flatten() {
            let _ = queue.send(Message::heard(input, None)).await;
        }
    }
}

/// Returns a profile: as it was when the run's workflow was trusted, or one that comes with the
/// program. The project's files are not read, since agents may write them.
pub(crate) fn profile(workflow: &Workflow, name: &str) -> Option<Profile> {
    match workflow.profiles.get(name) {
        Some(text) => Profile::parse(text).ok(),
        None => Library::of(None).get(name).cloned(),
    }
}

/// The variables in an agent's environment besides those that its workflow lets through.
fn given(context: &EngineContext, run: &Run, order: &TurnOrder) -> Vec<(String, String)> {
    let mut given = vec![
        ("STAFETTE_SOCKET".into(), context.settings.socket.to_string_lossy().into_owned()),
        ("STAFETTE_TOKEN".into(), token(&context.tokens, run, order)),
        ("STAFETTE_LEASE_MS".into(), run.workflow.limits.lease.0.to_string()),
    ];
    if let Some(traceparent) = run.traceparent(order.key) {
        given.push(("TRACEPARENT".into(), traceparent.to_string()));
    }
    given
}

/// The token of the session that carries out the turn: a terminal keeps the one that it was started
/// with.
fn token(tokens: &Tokens, run: &Run, order: &TurnOrder) -> String {
    let stays = run
        .workflow
        .agents
        .get(&order.agent)
        .is_some_and(|agent| agent.runner == Runner::Pty && order.deliveries == 1);
    match tokens.of(run.id, &order.agent).filter(|_| stays) {
        Some(token) => token,
        None => tokens.issue(order.key, &order.agent),
    }
}

/// Turns the signals of one session into inputs.
struct Pump {
    /// The session of the handoff before this one, if something of it may be left.
    earlier: Option<watch::Receiver<()>>,
    /// Dropped when nothing of this one is left.
    _here: watch::Sender<()>,
    key: TurnKey,
    agent: AgentName,
    in_terminal: bool,
    in_loop: bool,
    /// The source of worktrees; `None` when the workflow wants none.
    places: Option<Places>,
    /// The agents whose sandbox gaps have been reported to people.
    told: Arc<Mutex<HashSet<AgentName>>>,
    context: EngineContext,
    workflow: Arc<Workflow>,
    queue: mpsc::Sender<Message>,
    /// The current state of the run.
    shown: watch::Receiver<Shown>,
}

impl Pump {
    async fn run(mut self, mut job: Job, mut words: mpsc::UnboundedReceiver<Word>) {
        if let Some(mut earlier) = self.earlier.take() {
            // An attempt that was given up may still be ending: nothing runs beside it.
            let ended = async { while earlier.changed().await.is_ok() {} };
            tokio::select! {
                biased;
                () = told_to_stop(&mut words) => return,
                _ = tokio::time::timeout(PATIENCE, ended) => {}
            }
        }
        if job.order.deliveries > 1 && self.is_done(&job, &mut words).await {
            return;
        }
        if job.order.deliveries > 1
            && let Some(order) = self.shown.borrow().run.order(self.key)
        {
            // What has survived may have been given more.
            job.order.messages = order.messages;
        }
        let mut worktree = None;
        if let Some(places) = &self.places {
            match places.prepare(&job.order).await {
                Ok(own) => worktree = Some(own),
                Err(error) => {
                    let message = format!("it has no worktree to work in: {error}");
                    return self.does_not_start(FailureKind::Recoverable, message).await;
                }
            }
        }
        if let Some(worktree) = &worktree {
            job.folder.clone_from(&worktree.folder);
        }
        let (job, confinement) = match self.confine(job, worktree).await {
            Ok(ready) => ready,
            Err(message) => return self.does_not_start(FailureKind::Fatal, message).await,
        };
        let (folder, order) = (job.folder.clone(), job.order.clone());
        if let Err(why) = self.is_trusted(&job) {
            confinement.iter().for_each(Confinement::clear);
            return self.does_not_start(FailureKind::Fatal, why).await;
        }
        if let Some(interceptor) = &self.context.interceptor {
            let asked = interceptor.before_turn(&self.workflow, &job.order, &folder);
            let verdict = tokio::select! {
                biased;
                // No session has begun, so there is nothing to permit.
                () = told_to_stop(&mut words) => return,
                verdict = asked => verdict,
            };
            if !self.allowed(verdict).await {
                confinement.iter().for_each(Confinement::clear);
                return;
            }
        }
        self.stands(SessionState::Starting, String::new()).await;
        let mut session = self.context.agents.start(job);
        let (mut asked, mut crashed) = (HashSet::new(), false);
        loop {
            let signal = tokio::select! {
                biased;
                Some(word) = words.recv() => match word {
                    Word::Stop => {
                        self.stands(SessionState::Ended, String::new()).await;
                        return session.stop().await;
                    }
                    Word::Permit(permit) => {
                        session.reply(permit.request, permit.choice);
                        continue;
                    }
                },
                signal = session.signals.recv() => signal,
            };
            let turn = self.key;
            match signal {
                Some(Signal::Receipt(receipt)) => {
                    self.tell(Input::Receipt { turn, receipt }).await;
                    match receipt {
                        Receipt::Delivered => {
                            self.stands(SessionState::Working, String::new()).await;
                        }
                        // An agent that has read its order is running, so the gaps of its sandbox
                        // are known.
                        Receipt::Ingested => self.tell_gaps(confinement.as_ref()).await,
                        Receipt::Queued | Receipt::Acknowledged => {}
                    }
                }
                Some(Signal::Session { state, note }) => {
                    crashed |= state == SessionState::Crashed;
                    let agent = self.agent.clone();
                    self.tell(Input::Session { agent, state, note }).await;
                }
                Some(Signal::Alive { note }) => self.tell(Input::Heartbeat { turn, note }).await,
                Some(Signal::Alert { code, message }) => {
                    self.tell(Input::Alert { code, message }).await;
                }
                Some(Signal::Printed(frame)) => self.tell(Input::Printed { turn, frame }).await,
                Some(Signal::Change(proposal)) => self.change(&order, *proposal).await,
                Some(Signal::Asks { id, title, detail, options, default, within }) => {
                    asked.insert(id.clone());
                    self.stands(SessionState::Waiting, title.clone()).await;
                    let question = Question {
                        reason: "permission".into(),
                        details: title,
                        options,
                        context: detail,
                        default,
                        within: Some(Millis(u64::try_from(within.as_millis()).unwrap_or(u64::MAX))),
                        ..Question::default()
                    };
                    self.tell(Input::Ask { turn, request: id, question }).await;
                }
                // An answer from the run is known there already.
                Some(Signal::Settled { id, choice }) => {
                    let request = id.clone();
                    self.tell(Input::Settle { turn, request, choice }).await;
                    if asked.remove(&id) && asked.is_empty() {
                        self.stands(SessionState::Working, String::new()).await;
                    }
                }
                Some(Signal::Finished(mut result)) => {
                    if self.in_loop && result.fingerprint.is_none() {
                        result.fingerprint = stafette_workspace::fingerprint(&folder).await;
                    }
                    if let (Some(places), Some(_)) = (&self.places, &confinement) {
                        places.collect(&order).await;
                    }
                    if let Some(places) = &self.places {
                        self.revision(places.revised(&order, &self.workflow.change_rules()).await)
                            .await;
                    }
                    self.stands(SessionState::Ended, String::new()).await;
                    crash::point();
                    if self.keep(Input::Finish { turn, result }).await {
                        crash::point();
                        session.acknowledge();
                        // It leaves automatically; its channel closes then.
                        while session.signals.recv().await.is_some() {}
                    }
                    return;
                }
                Some(Signal::Failed { mut failure, usage }) => {
                    if let Some(places) = &self.places
                        && let Some(folder) = places.edited(&order).await
                    {
                        let kept = format!("; its edits are kept in {}", folder.display());
                        failure.message.push_str(&kept);
                    }
                    let failure = refused(failure, confinement.as_ref(), &self.agent);
                    confinement.iter().filter(|it| it.has_refused()).for_each(Confinement::clear);
                    if !crashed {
                        self.stands(SessionState::Ended, String::new()).await;
                    }
                    self.keep(Input::Fail { turn, failure, usage }).await;
                    return;
                }
                None => {
                    let message = "the session ended without a word".to_owned();
                    let failure = Failure::new(FailureKind::Recoverable, message);
                    self.keep(Input::Fail { turn, failure, usage: Usage::unknown() }).await;
                    return;
                }
            }
        }
    }

    /// True if a turn that is delivered again needs no session. The agent of the earlier delivery
    /// may have survived its daemon: it has until the end of its lease to report. A report counts
    /// as the result of the turn, so that no paid work is done twice.
    async fn is_done(&self, job: &Job, words: &mut mpsc::UnboundedReceiver<Word>) -> bool {
        let turn = self.key;
        // Only a command has a channel for reports that outlives the daemon: the others use a pipe.
        let reports = job.agent.runner == Runner::Exec;
        if let Some(survivors) = self.context.agents.survivors(turn).filter(|_| reports) {
            let receipt = Receipt::Acknowledged;
            self.tell(Input::Receipt { turn, receipt }).await;
            tokio::select! {
                biased;
                () = told_to_stop(words) => {
                    survivors.end().await;
                    return true;
                }
                () = survivors.ended() => {}
                () = tokio::time::sleep(self.workflow.limits.lease.into()) => survivors.end().await,
            }
        }
        let reported = self.shown.borrow().run.reported(turn);
        let Some(result) = reported.map(Box::new) else { return false };
        self.keep(Input::Finish { turn, result }).await
    }

    /// Stores a set of edits and has the run record it. An invalid one is reported.
    async fn change(&self, order: &TurnOrder, proposal: Proposal) {
        let (settings, rules) = (&self.context.settings, self.workflow.change_rules());
        match changes::take_in(settings, &rules, order, proposal).await {
            Ok(change) => self.proposed(&change).await,
            Err(error) => self.no_change(error.into()).await,
        }
    }

    /// Has the run record the revision of a set that the agent has left in its files.
    async fn revision(&self, revised: Result<Option<Change>, NoChange>) {
        match revised {
            Ok(Some(change)) => self.proposed(&change).await,
            Ok(None) => {}
            Err(error) => self.no_change(error).await,
        }
    }

    async fn proposed(&self, change: &Change) {
        let (turn, set) = (Some(self.key), Box::new(change.proposed()));
        crash::point();
        self.keep(Input::Team(TeamInput::ProposeChange { turn, set })).await;
    }

    async fn no_change(&self, error: NoChange) {
        let code = "CHANGE_REFUSED".to_owned();
        let message = format!("{} proposed what is no change: {error}", self.agent);
        self.tell(Input::Alert { code, message }).await;
    }

    /// Passes on the alerts of the interceptor; a turn that it refused has failed for good.
    async fn allowed(&self, verdict: HookDecision) -> bool {
        for message in verdict.alerts {
            self.tell(Input::Alert { code: ALERT.to_owned(), message }).await;
        }
        let Some(why) = verdict.refusal else { return true };
        self.does_not_start(FailureKind::Fatal, format!("a hook said no: {why}")).await;
        false
    }

    /// Puts the agent into its sandbox, if it has one.
    async fn confine(
        &self,
        job: Job,
        worktree: Option<Worktree>,
    ) -> Result<(Job, Option<Confinement>), String> {
        if job.agent.sandbox == Sandbox::Off {
            return Ok((job, None));
        }
        let (settings, own) = (Arc::clone(&self.context.settings), OwnPaths::of(&self.workflow));
        let making = tokio::task::spawn_blocking(move || {
            let made = confine(&settings, &job, worktree.as_ref(), &own);
            (job, made)
        });
        match making.await {
            Ok((mut job, Ok(made))) => {
                let (confined, confinement) = made.unzip();
                job.confined = confined;
                Ok((job, confinement))
            }
            Ok((_, Err(error))) => Err(format!("its sandbox cannot be made: {error}")),
            Err(error) => Err(format!("its sandbox cannot be made: {error}")),
        }
    }

    /// Reports to people, once, the gaps of an agent's sandbox.
    async fn tell_gaps(&self, confinement: Option<&Confinement>) {
        let Some(gaps) = confinement.and_then(Confinement::gaps) else { return };
        let first = |told: &Mutex<HashSet<AgentName>>| {
            told.lock().unwrap_or_else(PoisonError::into_inner).insert(self.agent.clone())
        };
        if first(&self.told) {
            let code = "SANDBOX_INCOMPLETE".to_owned();
            let message =
                format!("{} is in its sandbox, but not all of it holds:\n{gaps}", self.agent);
            self.tell(Input::Alert { code, message }).await;
        }
    }

    /// Checks that the files of the agent's command, and of the hooks before it, were trusted: an
    /// agent before it may have changed them.
    fn is_trusted(&self, job: &Job) -> Result<(), String> {
        let Some(gate) = &self.context.gate else { return Ok(()) };
        let hooks = self.workflow.hooks.iter().filter(|hook| hook.is_before());
        for hook in hooks {
            gate.trusts_command(&self.workflow, &hook.command, &self.context.settings.project)?;
        }
        gate.trusts_command(&self.workflow, &job.command(), &job.folder)
    }

    async fn does_not_start(&self, kind: FailureKind, message: String) {
        let failure = Failure::new(kind, message);
        let turn = self.key;
        self.keep(Input::Fail { turn, failure, usage: Usage::default() }).await;
    }

    /// Reports the state of the agent's process. Terminals report theirs separately.
    async fn stands(&self, state: SessionState, note: String) {
        if !self.in_terminal {
            self.tell(Input::Session { agent: self.agent.clone(), state, note }).await;
        }
    }

    /// For inputs that may be lost in a crash: they are sent again.
    async fn tell(&self, input: Input) {
        let _ = self.queue.send(Message::heard(input, None)).await;
    }

    /// For inputs that must not be lost: returns once the input is stored.
    async fn keep(&self, input: Input) -> bool {
        let (stored, is_stored) = oneshot::channel();
        let sent = self.queue.send(Message::heard(input, Some(stored))).await;
        sent.is_ok() && is_stored.await.is_ok()
    }
}

/// A strict sandbox that does not hold runs nothing, and the next attempt would end the same way.
fn refused(failure: Failure, confinement: Option<&Confinement>, agent: &AgentName) -> Failure {
    let strict = confinement.filter(|confinement| confinement.is_strict);
    match strict.and_then(Confinement::gaps) {
        Some(gaps) => {
            let message = format!(
                "the sandbox of {agent} is strict, and this system does not hold all of it:\n{gaps}\n\
                 See `stafette doctor`, or set sandbox = \"auto\" to run with what holds"
            );
            Failure::new(FailureKind::Fatal, message)
        }
        None if confinement.is_some_and(Confinement::has_no_command) => {
            Failure { kind: FailureKind::Fatal, ..failure }
        }
        None => failure,
    }
}

async fn told_to_stop(words: &mut mpsc::UnboundedReceiver<Word>) {
    while let Some(word) = words.recv().await {
        if matches!(word, Word::Stop) {
            return;
        }
    }
    // The sender is gone, and its owner ends this task as well.
    std::future::pending().await
}

/// The name of an order in log lines.
pub(crate) fn name(order: &TurnOrder) -> String {
    format!("{} for {}", order.key, order.agent)
}
