//! One life of the daemon, and the people who use it.

use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use stafette_core::redact::Redactor;
use stafette_core::run::create::RunCreated;
use stafette_core::workflow::Budget;
use stafette_core::{Fields, Input, RunId, Workflow};
use stafette_engine::{Engine, Plugins, Settings, clock, crash};
use tokio::runtime::Builder;
use tokio::time::Instant;

use super::OldFault;
use super::crew::Crew;
use super::state::{Known, State};
use super::store::Access;

/// How long a stop may take when the agents end within their grace: less than the engine's own
/// deadlines, which are for agents that do not.
const STOP: Duration = Duration::from_millis(5_500);

/// How long any run may take once nothing goes wrong any more.
const LONGEST: Duration = Duration::from_secs(14 * 24 * 3600);

/// The pause between two looks of a person.
const LOOK: Duration = Duration::from_secs(7);

/// How a life ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum End {
    /// It is killed at this time, or at a point before it.
    Killed(Duration),
    /// It is asked to stop at this time.
    Down(Duration),
    Done,
}

/// One life of the daemon.
#[derive(Debug)]
pub(super) struct Life {
    state: Arc<Mutex<State>>,
    scratch: PathBuf,
    number: u64,
    end: End,
    /// Somebody only looks: nothing continues.
    is_held: bool,
}

impl Life {
    pub(super) fn draw(shared: &Arc<Mutex<State>>, scratch: &Path) -> Life {
        let mut guard = shared.lock().expect("nobody panics with it");
        let state = &mut *guard;
        state.life += 1;
        (state.is_dead, state.kill_after) = (false, None);
        state.died = Arc::default();
        let mut is_held = false;
        let end = if state.life > state.faulty_lives {
            (state.slowest, state.failing) = (0, 0);
            End::Done
        } else {
            is_held = state.life > 1 && state.chance.percent(15);
            let longest = state.chance.one([20, 300, 5_000, 60_000]);
            let after = Duration::from_millis(state.chance.below(longest));
            match state.chance.below(3) {
                0 => End::Down(after),
                1 => End::Killed(after),
                _ => {
                    state.kill_after = Some(state.chance.below(120));
                    End::Killed(Duration::from_secs(100))
                }
            }
        };
        state.is_released = !is_held;
        let (number, scratch) = (state.life, scratch.to_owned());
        state.tell(format_args!("begins, and ends by {end:?}, held: {is_held}"));
        Life { state: Arc::clone(shared), scratch, number, end, is_held }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("nobody panics with it")
    }

    /// Lives on a runtime of its own. Dropping that is the kill: every task is gone where it waits.
    pub(super) fn live(self) {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build();
        let runtime = runtime.expect("a runtime");
        let points = Arc::clone(&self.state);
        crash::simulate(move || points.lock().expect("nobody panics with it").point());
        crash::put_back(self.state().fault == Some(OldFault::WaitsForItself));
        runtime.block_on(async {
            clock::follow_runtime(self.state().now);
            let died = Arc::clone(&self.state().died);
            tokio::select! {
                biased;
                () = died.notified() => {}
                () = self.daemon() => {}
            }
            self.state().now = clock::now();
        });
        // The door is a handle to the engine, whose tasks end with the runtime.
        self.state().door = None;
    }

    /// The daemon, as far as it decides and waits.
    async fn daemon(&self) {
        let store = self.state().store.clone();
        let access = Access { inner: store, state: Arc::clone(&self.state), life: self.number };
        let crew = Crew { state: Arc::clone(&self.state), life: self.number };
        let plugins = Plugins { agents: Some(Arc::new(crew.clone())), ..Plugins::default() };
        let settings = Settings {
            project: self.scratch.clone(),
            state: self.scratch.clone(),
            scratch: self.scratch.join("turns"),
            program: "stafette".into(),
            socket: "socket".into(),
            closed: Vec::new(),
            redactor: Redactor::default(),
            node: "simulated".into(),
        };
        let opened = Engine::open(Arc::new(access), settings, plugins).await;
        let engine = opened.expect("the store can be read");
        let open = async || {
            crew.take_over();
            self.state().door = Some(engine.clone());
            Ok::<_, Infallible>(())
        };
        let until = async |(): &()| self.until(&engine).await;
        let close = async |(), _: &Instant| self.state().door = None;
        let Ok(since) = engine.serve(self.is_held, open, until, close).await;
        engine.store().close().await;
        self.stopped(since.elapsed());
    }

    /// Returns once the daemon is asked to stop, and when that was. A kill ends it here.
    async fn until(&self, engine: &Engine) -> Instant {
        match self.end {
            End::Killed(after) | End::Down(after) => {
                let _ = tokio::time::timeout(after, self.people(engine)).await;
            }
            End::Done => {
                let done = tokio::time::timeout(LONGEST, self.people(engine)).await.is_ok();
                let mut state = self.state();
                state.now = clock::now();
                state.law(done, "every run ends", || "some did not".to_owned());
                state.finish();
            }
        }
        if let End::Killed(_) = self.end {
            self.state().kill();
            // The notice of its death ends the runtime.
            return std::future::pending().await;
        }
        Instant::now()
    }

    fn stopped(&self, took: Duration) {
        let mut state = self.state();
        state.now = clock::now();
        state.note("stopped");
        state.tell(format_args!("has stopped after {took:?}"));
        // A slow store is waited for, a few times for each run.
        let slow = Duration::from_millis(state.slowest * 8);
        state.law(took < STOP + slow, "a stop ends in time", || format!("{took:?}"));
        let left: Vec<String> = state.processes.keys().map(|turn| state.name(*turn)).collect();
        state.law(left.is_empty(), "a stop leaves no agent at work", || left.join(", "));
    }

    /// Begins the runs, answers questions, cancels one now and then. Returns once all have ended.
    async fn people(&self, engine: &Engine) {
        if self.is_held {
            return std::future::pending().await;
        }
        while self.state().runs_wanted > 0 {
            let wait = self.state().chance.one([0, 3, 900]);
            tokio::time::sleep(Duration::from_millis(wait)).await;
            let workflow = workflow(self.state().agents);
            let created = RunCreated::new(Engine::NEW_RUN, Arc::new(workflow), "go", "ada");
            let created = RunCreated { budget: Budget::default(), ..created };
            if let Ok(id) = engine.start(created).await {
                let mut state = self.state();
                state.runs_wanted -= 1;
                state.runs.push(Known { id, cancelled: false, status: None });
            }
        }
        let mut hurry = self.state().chance.below(60_000);
        loop {
            tokio::time::sleep(LOOK.min(Duration::from_millis(hurry + 1))).await;
            hurry = 60_000;
            self.answer(engine).await;
            if self.state().chance.per_mille(8) {
                self.cancel(engine).await;
            }
            if self.settle(engine).await {
                return;
            }
        }
    }

    async fn answer(&self, engine: &Engine) {
        let Ok(questions) = engine.log().questions().await else { return };
        for question in questions {
            let (handoff, by) = (question.id, "ada".to_owned());
            let answer = Input::Answer { handoff, values: Fields::new(), text: "retry".into(), by };
            if engine.send(question.run, answer).await.is_ok() {
                self.state().note("question answered");
            }
        }
    }

    async fn cancel(&self, engine: &Engine) {
        let open = self.state().runs.iter().position(|run| run.status.is_none());
        let Some(index) = open else { return };
        let id = self.state().runs[index].id;
        let cancel = Input::Cancel { by: "ada".into(), why: "enough".into() };
        if engine.send(id, cancel).await.is_ok() {
            self.state().runs[index].cancelled = true;
        }
    }

    /// Checks the runs that have ended. True once all have.
    async fn settle(&self, engine: &Engine) -> bool {
        let open: Vec<(usize, RunId)> = {
            let state = self.state();
            let runs = state.runs.iter().enumerate().filter(|(_, run)| run.status.is_none());
            runs.map(|(index, run)| (index, run.id)).collect()
        };
        let mut left = open.len();
        for (index, id) in open {
            let Ok(run) = engine.state(id).await else { continue };
            if run.status().is_final() {
                let mut state = self.state();
                state.now = clock::now();
                state.ends(index, &run);
                left -= 1;
            }
        }
        left == 0
    }
}

/// A chain of agents that hand one task on.
fn workflow(agents: u32) -> Workflow {
    use std::fmt::Write;
    let mut text = "[workflow]\nname = \"chain\"\nentry = \"a1\"\n[limits]\ncooldown = 0\n\
                    handoffs_per_item = 9\nlease = 30000\n[retries]\njitter = 0.0\n"
        .to_owned();
    for index in 1..=agents {
        let _ = writeln!(
            text,
            "[agents.a{index}]\nrunner = \"exec\"\ncommand = [\"a\"]\nestimate = {{ money = 0 }}"
        );
    }
    for index in 1..agents {
        let _ = writeln!(text, "[[routes]]\nfrom = \"a{index}\"\nto = \"a{}\"", index + 1);
    }
    stafette_workflow::parse(&text).expect("a workflow")
}
