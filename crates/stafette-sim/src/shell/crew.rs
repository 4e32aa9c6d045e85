//! Agents as processes of the world. A daemon that dies leaves them at work.

use std::future::pending;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use serde_json::json;
use stafette_agents::{Agents, GRACE, HEARTBEAT, Job, Link, Session, Signal, Survivors};
use stafette_core::handoff::Receipt;
use stafette_core::{
    AgentName, Failure, FailureKind, Kind, Millis, Offer, Outcome, Party, Reason, Response,
    TurnKey, TurnResult, Usage,
};
use stafette_engine::{EngineError, clock};
use tokio::sync::watch;

use super::OldFault;
use super::state::{Process, Said, Stage, State, Way};

/// How long a report is tried again without a daemon, as `stafette emit` does: the lease.
const LEASE: Millis = Millis(30_000);

/// The pause between two attempts to report.
const PAUSE: Duration = Duration::from_millis(50);

/// The agents of one life of the daemon.
#[derive(Clone, Debug)]
pub(super) struct Crew {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) life: u64,
}

impl Agents for Crew {
    fn start(&self, job: Job) -> Session {
        let crew = self.clone();
        Session::of(move |link| crew.carry_out(job, link))
    }

    fn left_behind(&self) -> Vec<TurnKey> {
        self.state().processes.keys().copied().collect()
    }

    fn survivors(&self, key: TurnKey) -> Option<Box<dyn Survivors>> {
        let state = self.state();
        let process = state.processes.get(&key)?;
        if state.fault == Some(OldFault::ForgetsSurvivors) {
            return None;
        }
        let exit = process.exit.subscribe();
        Some(Box::new(Left { crew: self.clone(), key, exit }))
    }

    fn belongs(&self, _: i32, _: TurnKey, _: &AgentName) -> bool {
        true
    }
}

/// A process that the last daemon has left.
struct Left {
    crew: Crew,
    key: TurnKey,
    exit: watch::Receiver<Option<i32>>,
}

impl Survivors for Left {
    fn ended(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        let mut exit = self.exit.clone();
        Box::pin(async move {
            let _ = exit.wait_for(Option::is_some).await;
        })
    }

    fn end(self: Box<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move { self.crew.end(self.key).await })
    }
}

impl Crew {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    /// Waits, as long as the daemon of this life lives.
    async fn rest(&self, wait: Duration) {
        tokio::time::sleep(wait).await;
        self.alive().await;
    }

    async fn alive(&self) {
        let gone = {
            let state = self.state();
            state.is_dead || state.life != self.life
        };
        if gone {
            pending::<()>().await;
        }
    }

    /// Starts every process that the last daemon has left again in this life.
    pub(super) fn take_over(&self) {
        let left: Vec<TurnKey> = self.state().processes.keys().copied().collect();
        for key in left {
            tokio::spawn(self.clone().work(key));
        }
    }

    /// A session: starts the process, and reports its end.
    async fn carry_out(self, job: Job, mut link: Link) {
        let key = job.order.key;
        let starting = self.state().chance.one([0, 1, 30]);
        tokio::select! {
            biased;
            None = link.wish() => return,
            () = self.rest(Duration::from_millis(starting)) => {}
        }
        let (mut exit, way, next) = {
            let mut state = self.state();
            state.now = clock::now();
            state.starts(key, job.order.deliveries);
            let process = draw(&mut state, &job);
            let (exit, way, next) = (process.exit.subscribe(), process.way, process.next.clone());
            state.processes.insert(key, process);
            (exit, way, next)
        };
        self.alive().await;
        tokio::spawn(self.clone().work(key));
        for receipt in [Receipt::Delivered, Receipt::Ingested, Receipt::Acknowledged] {
            link.tell(Signal::Receipt(receipt)).await;
        }
        let status = loop {
            tokio::select! {
                biased;
                wish = link.wish() => if wish.is_none() {
                    return self.end(key).await;
                },
                status = exited(&mut exit) => break status,
                () = tokio::time::sleep(HEARTBEAT) => {
                    if way != Way::Hang {
                        link.tell(Signal::Alive { note: None }).await;
                    }
                }
            }
        };
        link.tell(self.outcome(&job, status, way, next)).await;
        link.wish().await;
    }

    /// What the runner makes of the end of a process.
    fn outcome(&self, job: &Job, status: i32, way: Way, next: Option<String>) -> Signal {
        if status != 0 {
            let failure = Failure::new(FailureKind::Recoverable, "it exited with 1");
            return Signal::Failed { failure, usage: Usage::default() };
        }
        let me = Party::from(&job.order.agent);
        let result = TurnResult::new(Response::new(me.clone(), Outcome::Resolved));
        let offers = next
            .filter(|_| way == Way::Print)
            .map(|next| Offer::new(me, next.as_str().into(), Kind::Transfer, Reason::TaskHandoff));
        let lax = self.state().fault == Some(OldFault::ReportsToNobody);
        Signal::Finished(Box::new(TurnResult {
            offers: offers.into_iter().collect(),
            unanswered: way != Way::Print && !lax,
            ..result
        }))
    }

    /// Ends a process: it is asked, and takes a while.
    async fn end(&self, key: TurnKey) {
        let patience = u64::try_from(GRACE.as_millis()).unwrap_or(0);
        let wait = self.state().chance.one([0, 0, 10, 500, patience]);
        self.rest(Duration::from_millis(wait)).await;
        self.exits(key, 143);
    }

    fn exits(&self, key: TurnKey, status: i32) {
        if let Some(process) = self.state().processes.remove(&key) {
            process.exit.send_replace(Some(status));
        }
    }

    /// The life of a process, from the stage that it has reached.
    async fn work(self, key: TurnKey) {
        loop {
            let Some(stage) = self.state().processes.get(&key).map(|it| it.stage) else { return };
            match stage {
                Stage::Working { until } => {
                    self.rest(until.since(clock::now()).into()).await;
                    let Some(way) = self.state().processes.get(&key).map(|it| it.way) else {
                        return;
                    };
                    match way {
                        Way::Hang => return pending().await,
                        Way::Fail => return self.exits(key, 1),
                        Way::Print | Way::Silence => return self.exits(key, 0),
                        Way::Emit => {
                            let until = clock::now() + LEASE;
                            self.goes(key, Stage::Reporting { until });
                        }
                    }
                }
                Stage::Reporting { until } if clock::now() > until => return self.exits(key, 1),
                Stage::Reporting { .. } => self.report(key).await,
                Stage::Leaving { at } => {
                    self.rest(at.since(clock::now()).into()).await;
                    return self.exits(key, 0);
                }
            }
        }
    }

    fn goes(&self, key: TurnKey, stage: Stage) {
        if let Some(process) = self.state().processes.get_mut(&key) {
            process.stage = stage;
        }
    }

    /// Reports once. Without a daemon it is tried again.
    async fn report(&self, key: TurnKey) {
        let (door, token, next) = {
            let state = self.state();
            let Some(process) = state.processes.get(&key) else { return };
            (state.door.clone(), process.token.clone(), process.next.clone())
        };
        let lax = self.state().fault == Some(OldFault::ReportsToNobody);
        let (kind, payload, said) = match next {
            Some(next) => ("HANDOFF", json!({ "to": next, "task": "go on" }), Said::Handoff),
            None => ("RESULT", json!({ "status": "resolved", "summary": "done" }), Said::Result),
        };
        let told = match door {
            Some(engine) => engine.sessions().tell(&token, Some(1), kind, payload).await.map(drop),
            None => Err(EngineError::Stopping),
        };
        // Of a daemon that has died in the meantime nothing is heard.
        self.alive().await;
        match told {
            Ok(()) => {
                let mut state = self.state();
                state.now = clock::now();
                state.acknowledge(key, said);
                let after = state.chance.one([0, 5, 200, 2_000, 100_000]);
                drop(state);
                let at = clock::now() + Millis(after);
                self.goes(key, Stage::Leaving { at });
            }
            Err(_) if lax => self.goes(key, Stage::Leaving { at: clock::now() }),
            Err(EngineError::Stopping | EngineError::Store { .. }) => self.rest(PAUSE).await,
            // The turn is not its own any more.
            Err(error) => {
                let name = self.state().name(key);
                self.state().tell(format_args!("{name} is not heard: {error}"));
                self.exits(key, 1);
            }
        }
    }
}

async fn exited(exit: &mut watch::Receiver<Option<i32>>) -> i32 {
    exit.wait_for(Option::is_some).await.ok().and_then(|status| *status).unwrap_or(1)
}

fn draw(state: &mut State, job: &Job) -> Process {
    let way = match state.chance.below(100) {
        0..60 => Way::Emit,
        60..80 => Way::Print,
        80..90 => Way::Fail,
        90..96 => Way::Silence,
        _ => Way::Hang,
    };
    let work = state.chance.one([0, 5, 80, 700, 4_000, 20_000]);
    let until = state.now + Millis(work);
    let mut chain = state.chain().skip_while(|agent| agent != job.order.agent.as_str());
    let next = chain.nth(1);
    let token = job.given.iter().find(|(name, _)| name == "STAFETTE_TOKEN");
    let token = token.map(|(_, token)| token.clone()).unwrap_or_default();
    let exit = watch::Sender::new(None);
    Process { token, way, stage: Stage::Working { until }, next, exit }
}
