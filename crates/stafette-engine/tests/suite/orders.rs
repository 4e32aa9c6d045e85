//! The orders of a run besides turns: each is carried out, and whoever waits for one is answered.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::json;
use stafette_core::change::{Author, Change, ChangeRules, ChangeStatus, Proposal};
use stafette_core::run::create::RunCreated;
use stafette_core::team::Inheritance;
use stafette_core::team::change::ChangeWork;
use stafette_core::team::generation::{Lineage, Plan};
use stafette_core::team::order::{Order, OrderBatch};
use stafette_core::workflow::generations::GenerationRules;
use stafette_core::workflow::own::Own;
use stafette_core::{
    Fields, HandoffId, Input, Millis, Offer, Run, RunId, TeamInput, Time, TurnOrder, Usd, Workflow,
};
use stafette_engine::{
    Answered, Asked, Beginning, ChangeError, Driver, Engine, EngineError, Gate, Hand, Heard,
    HookDecision, Interceptor, Looked, Plugins, Stage,
};
use stafette_store::{Store, Stored};
use stafette_workspace::Worktrees;

use crate::flaky::Flaky;
use crate::runs::{PATIENCE, end, open, settings, start, workflow};

/// A run that has ended.
async fn ended(engine: &Engine, workflow: Workflow) -> RunId {
    let run = start(engine, workflow).await.expect("a run");
    assert_eq!(end(engine, run).await, "succeeded");
    run
}

/// A set of a run that writes one file.
async fn proposed(engine: &Engine, run: RunId, file: &str, text: &str) -> Change {
    edited(engine, run, json!({ "file": file, "action": "create", "content": text })).await
}

async fn edited(engine: &Engine, run: RunId, edit: serde_json::Value) -> Change {
    let changes = vec![serde_json::from_value(edit).expect("an edit")];
    let author = Author { run: Some(run), person: "ann".into(), ..Author::default() };
    let proposal = Proposal { changes, author, reason: "new".into(), ..Proposal::default() };
    engine.changes().propose_aside(proposal, rules()).await.expect("a set")
}

fn rules() -> ChangeRules {
    workflow("true").change_rules()
}

fn ann() -> Hand {
    Hand::named("ann")
}

async fn in_time<T>(what: &str, work: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, work).await.unwrap_or_else(|_| panic!("{what} takes too long"))
}

fn read(folder: &Path, file: &str) -> Option<String> {
    std::fs::read_to_string(folder.join(file)).ok()
}

/// The names of the events about sets and orders.
async fn log(engine: &Engine, run: RunId, name: &str) -> Vec<serde_json::Value> {
    let events = engine.log().events(run, 0).await.expect("events");
    let named = events.iter().filter(|stored| stored.entry.name == name);
    named.map(|stored| serde_json::from_str(&stored.entry.body).expect("JSON")).collect()
}

/// Puts another revision of a set into its record, of which its run does not know.
fn revise(folder: &Path, set: &Change) {
    let record = folder.join(format!(".state/changes/sets/{}.json", set.id));
    let text = std::fs::read_to_string(&record).expect("a record");
    let mut revised: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    revised["revision"] = json!(set.revision + 1);
    std::fs::write(&record, revised.to_string()).expect("written");
}

/// Returns once something is so.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let so = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    in_time(what, so).await;
}

/// Returns once the store has so many events of a name, although it tells nobody.
async fn stored(store: &Flaky, run: RunId, name: &str) {
    let is_there = async {
        loop {
            let events = store.inner.entries(run, 0, 1024).await.expect("events");
            if events.iter().any(|stored| stored.entry.name == name) {
                return;
            }
            tokio::task::yield_now().await;
        }
    };
    in_time(name, is_there).await;
}

#[tokio::test]
async fn b_18_whoever_renews_a_program_again_is_answered_and_so_is_the_next_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(&Flaky::new(), folder.path()).await;
    let run = ended(&engine, workflow("cat >/dev/null")).await;
    let set = proposed(&engine, run, "program", "new").await;
    let own = json!({ "build": ["true"], "program": "program", "prove": ["true"] });
    let own: Own = serde_json::from_value(own).expect("a program");
    let (rules, by) = (rules(), ann());
    for time in ["first", "second"] {
        let renewed = engine.changes().renew(set.id, false, &own, &rules, &by);
        let renewed = in_time(&format!("the {time} renewal"), renewed).await.expect("renewed");
        assert_eq!(renewed.stage, Stage::Done, "{time}: {renewed:?}");
    }
    let undone = engine.changes().undo(set.id, false, rules, by);
    let undone = in_time("taking it back", undone).await.expect("taken back");
    assert_eq!(undone.landed.len(), 1, "{undone:?}");
    assert_eq!(read(folder.path(), "program"), None);
    assert_eq!(log(&engine, run, "change_ordered").await.len(), 3);
    assert_eq!(log(&engine, run, "change_settled").await.len(), 3);
}

#[tokio::test]
async fn b_01_a_caller_is_answered_once_its_run_knows_the_outcome_and_the_reason_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("old"), "old").expect("written");
    let store = Flaky::new();
    let engine = open(&store, folder.path()).await;
    let run = ended(&engine, workflow("cat >/dev/null")).await;
    let set = edited(&engine, run, json!({ "file": "old", "action": "delete" })).await;
    let mute = store.mute.clone().lock_owned().await;
    let caller = engine.clone();
    let applied =
        tokio::spawn(
            async move { caller.changes().apply(set.id, None, false, rules(), ann()).await },
        );
    stored(&store, run, "change_ordered").await;
    // The outcome is refused twice.
    store.refuse.store(2, Ordering::SeqCst);
    drop(mute);
    let refused = in_time("applying", applied).await.expect("no panic").expect_err("a deletion");
    let settled = log(&engine, run, "change_settled").await;
    assert_eq!(settled.len(), 1, "{settled:?}");
    assert_eq!(settled[0]["note"], refused.to_string().as_str(), "{settled:?}");
}

#[tokio::test]
async fn b_18_a_set_that_was_revised_since_it_was_ordered_is_left_and_the_others_are_applied() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let engine = open(&store, folder.path()).await;
    let run = ended(&engine, workflow("cat >/dev/null")).await;
    let one = proposed(&engine, run, "one", "1").await;
    let two = proposed(&engine, run, "two", "2").await;
    let mute = store.mute.clone().lock_owned().await;
    let (caller, ids) = (engine.clone(), vec![one.id, two.id]);
    let applied =
        tokio::spawn(async move { caller.changes().apply_all(ids, false, rules(), ann()).await });
    stored(&store, run, "change_ordered").await;
    revise(folder.path(), &one);
    drop(mute);
    let report = in_time("applying", applied).await.expect("no panic").expect("tried");
    assert_eq!(report.landed.iter().map(|set| set.id).collect::<Vec<_>>(), [two.id], "{report:?}");
    assert_eq!(report.left.iter().map(|left| left.id).collect::<Vec<_>>(), [one.id], "{report:?}");
    assert!(report.left[0].why.contains("was revised"), "{report:?}");
    assert_eq!(read(folder.path(), "one"), None);
    assert_eq!(read(folder.path(), "two").as_deref(), Some("2"));
    assert_eq!(log(&engine, run, "change_settled").await.len(), 2);
}

/// A run with a change that is ready, which hands over to the next generation of its team.
async fn generation(engine: &Engine, folder: &Path, name: &str) -> (RunId, RunId) {
    paused(engine, folder, name, GenerationRules::default().pause).await
}

/// One that waits for so long before the next one begins.
async fn paused(engine: &Engine, folder: &Path, name: &str, pause: Millis) -> (RunId, RunId) {
    let wait = format!("cat >/dev/null; while [ ! -e {name} ]; do sleep 0.01; done");
    let workflow = workflow(&wait);
    let plan = Plan {
        max_runs: 2,
        max_cost: Usd(1_000_000_000),
        check_in_every: 0,
        pause,
        budget: workflow.budget.clone(),
        first: 1,
        spent: Usd(0),
    };
    let lineage = Lineage::first(Time(0), Fields::new()).planned(plan);
    let created = RunCreated::new(Engine::NEW_RUN, Arc::new(workflow), "x", "test");
    let team = Inheritance { lineage: Some(Box::new(lineage)) };
    let run = engine.start(RunCreated { team, ..created }).await.expect("a run");
    proposed(engine, run, &format!("{name}.txt"), "new").await;
    std::fs::write(folder.join(name), "").expect("written");
    let handed_over = heard(engine, run, "generation_handed_over").await;
    let next = handed_over["next"]["run"].as_str().expect("a run that follows");
    (run, next.parse().expect("an id"))
}

/// Waits for the first event of a name.
async fn heard(engine: &Engine, run: RunId, name: &str) -> serde_json::Value {
    let mut feed = engine.feed(0);
    let event = async {
        loop {
            let page = feed.next().await.expect("events").expect("an engine");
            let is_it = |stored: &&Stored| stored.run == run && stored.entry.name == name;
            if let Some(stored) = page.iter().find(is_it) {
                return serde_json::from_str(&stored.entry.body).expect("JSON");
            }
        }
    };
    in_time(name, event).await
}

#[tokio::test]
async fn s4_04_a_generation_that_was_cancelled_in_the_pause_before_it_does_not_begin() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(&Flaky::new(), folder.path()).await;
    let (first, cancelled) = generation(&engine, folder.path(), "first").await;
    let cancel = Input::Cancel { by: "ann".into(), why: "enough".into() };
    engine.send(first, cancel).await.expect("cancelled");
    // The other one hands over later, and has the same pause.
    let (_, next) = generation(&engine, folder.path(), "second").await;
    heard(&engine, next, "run_created").await;
    assert!(engine.store().run(cancelled).await.expect("a store").is_none(), "it was cancelled");
    assert_eq!(read(folder.path(), "first.txt"), None, "nothing is applied for it");
    assert_eq!(read(folder.path(), "second.txt").as_deref(), Some("new"));
}

#[tokio::test]
async fn b_18_nobody_decides_about_a_revision_that_its_run_does_not_take() {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = open(&Flaky::new(), folder.path()).await;
    let run = ended(&engine, workflow("cat >/dev/null")).await;
    let set = proposed(&engine, run, "one", "1").await;
    let wait = "touch started; while [ ! -e go ]; do sleep 0.01; done";
    let slow = ["sh", "-c", wait].map(str::to_owned).to_vec();
    let (caller, rules) = (engine.clone(), ChangeRules { validate: slow, ..rules() });
    let applied =
        tokio::spawn(
            async move { caller.changes().apply(set.id, None, false, rules, ann()).await },
        );
    until("it is being applied", || folder.path().join("started").exists()).await;
    revise(folder.path(), &set);
    let (approved, by) = (ChangeStatus::Approved, "ann".to_owned());
    let decided = engine.changes().decide(set.id, None, approved, by, String::new()).await;
    let busy = matches!(decided, Err(EngineError::Change { source: ChangeError::Busy }));
    assert!(busy, "{decided:?}");
    std::fs::write(folder.path().join("go"), "").expect("written");
    in_time("applying", applied).await.expect("no panic").expect("applied");
    assert_eq!(log(&engine, run, "change_settled").await.len(), 1, "the decision is in no log");
}

/// Two sets that were ordered together by a process that died then.
async fn left_in_a_batch(store: &Flaky, folder: &Path) -> RunId {
    let engine = open(store, folder).await;
    let mut workflow = workflow("cat >/dev/null");
    workflow.changes.validate = ["sh", "-c", "echo again >> validated"].map(str::to_owned).to_vec();
    let run = ended(&engine, workflow).await;
    let sets = [proposed(&engine, run, "one", "1").await, proposed(&engine, run, "two", "2").await];
    engine.stop().await;
    let loaded = store.inner.load(run).await.expect("a store").expect("a run");
    let id = uuid::Uuid::now_v7();
    let orders = (0..).zip(&sets).map(|(place, set)| {
        let (change, revision, work) = (set.id, Some(set.revision), ChangeWork::Apply);
        let batch = Some(OrderBatch { id, place });
        let (by, as_it_is) = (ann(), false);
        Input::Team(TeamInput::OrderChange { change, revision, work, by, batch, as_it_is })
    });
    let driver = Driver::restore(&loaded).expect("a run");
    let step = driver.decide(driver.run().updated_at, orders);
    store.inner.append(step.batch()).await.expect("stored");
    run
}

#[tokio::test]
async fn b_01_sets_that_were_ordered_together_are_applied_together_after_a_crash() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let run = left_in_a_batch(&store, folder.path()).await;
    let engine = open(&store, folder.path()).await;
    heard(&engine, run, "change_settled").await;
    let settled = async {
        while log(&engine, run, "change_settled").await.len() < 2 {
            tokio::task::yield_now().await;
        }
    };
    in_time("both outcomes", settled).await;
    for (file, text) in [("one", "1"), ("two", "2"), ("validated", "again\n")] {
        assert_eq!(read(folder.path(), file).as_deref(), Some(text), "{file}");
    }
}

fn git(folder: &Path, arguments: &[&str]) {
    let mia = ["-c", "user.name=Mia", "-c", "user.email=mia@example.org"];
    let done = Command::new("git").args(mia).args(arguments).current_dir(folder).status();
    assert!(done.expect("git").success(), "{arguments:?}");
}

#[tokio::test]
async fn b_01_an_outcome_that_cannot_be_collected_for_a_moment_is_collected_later() {
    let folder = tempfile::tempdir().expect("a folder");
    let project = folder.path();
    std::fs::write(project.join("src.txt"), "old").expect("written");
    git(project, &["init", "-q", "-b", "main"]);
    git(project, &["add", "src.txt"]);
    git(project, &["commit", "-qm", "first"]);
    let engine = open(&Flaky::new(), project).await;
    // A record that nobody can read is in nobody's way.
    let sets = project.join(".state/changes/sets");
    std::fs::create_dir_all(&sets).expect("a folder");
    std::fs::write(sets.join("c7.json"), "{").expect("written");
    let wait = format!("while [ ! -e {}/go ]; do sleep 0.01; done", project.display());
    let mut workflow = workflow(&format!("cat >/dev/null; {wait}; echo new > src.txt"));
    workflow.workflow.worktrees = true;
    let run = start(&engine, workflow).await.expect("a run");
    // Git does not touch a branch that another process is writing.
    let lock = project.join(format!(".git/refs/heads/{}.lock", Worktrees::result_branch(run)));
    std::fs::create_dir_all(lock.parent().expect("a folder")).expect("a folder");
    std::fs::write(&lock, "").expect("written");
    std::fs::write(project.join("go"), "").expect("written");
    let shown = async {
        loop {
            let (view, trouble) = engine.view(run).await.expect("a run");
            if let Some(trouble) = trouble.filter(|_| view.is_over()) {
                return trouble;
            }
            tokio::task::yield_now().await;
        }
    };
    let trouble = in_time("the error", shown).await;
    assert!(trouble.starts_with("collecting the outcome is tried again"), "{trouble}");
    assert!(engine.explain().why(run, None).await.expect("a run").outcome.contains(&trouble));
    std::fs::remove_file(&lock).expect("removed");
    let proposed = heard(&engine, run, "change_proposed").await;
    assert_eq!(proposed["files"][0]["file"], "src.txt", "{proposed}");
    heard(&engine, run, "order_done").await;
    assert_eq!(engine.view(run).await.expect("a run").1, None);
}

#[tokio::test]
async fn s4_06_a_word_is_not_left_for_a_generation_that_was_cancelled() {
    let folder = tempfile::tempdir().expect("a folder");
    let trusted = Arc::new(Trusted::default());
    let engine = trusted.open(&Flaky::new(), folder.path()).await;
    let (run, _) = generation(&engine, folder.path(), "first").await;
    let cancel = Input::Cancel { by: "ann".into(), why: "enough".into() };
    engine.send(run, cancel).await.expect("cancelled");
    let id = by_its_agent(&engine, run).await.id;
    trusted.set(None);
    let said = engine.changes().comment(id, "ann".into(), None, "why?".into()).await;
    assert!(matches!(said, Err(EngineError::NobodyHears { .. })), "{said:?}");
    assert_eq!(log(&engine, run, "change_commented").await.len(), 0, "it is not swallowed");
    trusted.set(Some(workflow("cat >/dev/null")));
    let said = engine.changes().comment(id, "ann".into(), None, "why?".into()).await;
    let (_, heard) = said.expect("heard");
    assert!(matches!(heard, Heard::Revision { .. }), "{heard:?}");
    engine.stop().await;
}

/// A gate of a project whose workflow is trusted while there is one.
#[derive(Debug, Default)]
struct Trusted(Mutex<Option<Workflow>>);

impl Trusted {
    fn set(&self, workflow: Option<Workflow>) {
        *self.0.lock().expect("a lock") = workflow;
    }

    /// An engine that is asked by this gate.
    async fn open(self: &Arc<Self>, store: &Flaky, folder: &Path) -> Engine {
        let plugins = Plugins { gate: Some(self.clone()), ..Plugins::default() };
        let engine = Engine::open(Arc::new(store.clone()), settings(folder), plugins).await;
        let engine = engine.expect("opens");
        engine.release();
        engine
    }
}

impl Gate for Trusted {
    fn workflow(&self) -> Result<Workflow, String> {
        self.0.lock().expect("a lock").clone().ok_or_else(|| "nobody has allowed it".to_owned())
    }

    fn begins(&self, _: &Workflow) -> Result<(), String> {
        Ok(())
    }

    fn minds(&self, _: &Run) -> bool {
        false
    }

    fn offer<'a>(&'a self, _: &'a Run, _: Option<HandoffId>, offer: Offer) -> Looked<'a, Offer> {
        Box::pin(async { offer })
    }

    fn answer<'a>(&'a self, _: &'a Run, _: Answered<'a>) -> Looked<'a, Result<Fields, String>> {
        Box::pin(async { Ok(Fields::new()) })
    }
}

/// A set of a run that its agent has proposed.
async fn by_its_agent(engine: &Engine, run: RunId) -> Change {
    let edit = json!({ "file": "one", "action": "create", "content": "1" });
    let changes = vec![serde_json::from_value(edit).expect("an edit")];
    let agent = Some("a".parse().expect("a name"));
    let author = Author { run: Some(run), agent, ..Author::default() };
    let proposal = Proposal { changes, author, reason: "new".into(), ..Proposal::default() };
    engine.changes().propose_aside(proposal, rules()).await.expect("a set")
}

/// The runs that begin with a comment.
async fn revisions(store: &Flaky) -> Vec<RunId> {
    let all = stafette_store::RunFilter { limit: 100, ..stafette_store::RunFilter::default() };
    let rows = store.runs(all).await.expect("a store");
    rows.iter().filter(|row| row.title.starts_with("Revise")).map(|row| row.run).collect()
}

/// Kills everything of this process at its so many-th crash point, and all that comes to one later.
fn dies_at(place: usize) -> Arc<AtomicBool> {
    let (mut left, died) = (place, Arc::new(AtomicBool::new(false)));
    let has_died = died.clone();
    stafette_engine::crash::simulate(move || {
        if left == 0 {
            has_died.store(true, Ordering::SeqCst);
            panic!("this is the crash");
        }
        left -= 1;
    });
    died
}

#[tokio::test]
async fn b_01_a_comment_after_the_end_of_its_run_is_revised_once_wherever_the_daemon_is_killed() {
    let mut cut_off = 0;
    for place in 0.. {
        let folder = tempfile::tempdir().expect("a folder");
        let (store, trusted) = (Flaky::new(), Arc::new(Trusted::default()));
        trusted.set(Some(workflow("cat >/dev/null")));
        let engine = trusted.open(&store, folder.path()).await;
        let run = ended(&engine, workflow("cat >/dev/null")).await;
        let set = by_its_agent(&engine, run).await;
        let (caller, id) = (engine.clone(), set.id);
        let died = dies_at(place);
        let mut said = tokio::spawn(async move {
            caller.changes().comment(id, "ann".into(), None, "why?".into()).await
        });
        let is_answered = async {
            while !said.is_finished() && !died.load(Ordering::SeqCst) {
                tokio::task::yield_now().await;
            }
            // A crash leaves nobody to be answered.
            match died.load(Ordering::SeqCst) {
                true => None,
                false => Some((&mut said).await.expect("no panic").expect("heard").1),
            }
        };
        let heard = in_time(&format!("the end at place {place}"), is_answered).await;
        said.abort();
        engine.stop().await;
        stafette_engine::crash::simulate(|| {});

        // Meanwhile nothing is trusted: it waits, and says why.
        trusted.set(None);
        let next = trusted.open(&store, folder.path()).await;
        let recorded = log(&next, run, "change_commented").await.len();
        if recorded == 1 && revisions(&store).await.is_empty() {
            let why = async {
                loop {
                    if let Some(why) = next.view(run).await.expect("a run").1 {
                        return why;
                    }
                    tokio::task::yield_now().await;
                }
            };
            let why = in_time(&format!("the reason at place {place}"), why).await;
            assert!(why.contains("forwarding a comment on c1 is tried again"), "{why}");
            assert!(why.contains("nobody has allowed it"), "{why}");
        }
        trusted.set(Some(workflow("cat >/dev/null")));
        let is_forwarded = async {
            while !next.state(run).await.expect("a run").orders().is_empty() {
                tokio::task::yield_now().await;
            }
        };
        in_time(&format!("the comment at place {place}"), is_forwarded).await;
        let revisions = revisions(&store).await;
        assert_eq!(revisions.len(), recorded, "place {place}: it begins one run");
        cut_off += usize::from(recorded == 1 && heard.is_none());
        if let Some(revision) = revisions.first() {
            let sets = next.changes().with(async |changes| changes.list()).await.expect("sets");
            assert_eq!(sets[0].run(), Some(*revision), "place {place}: it has the set");
            let begun = log(&next, *revision, "run_created").await;
            assert_eq!(begun[0]["inputs"]["comments"][0]["text"], "why?", "place {place}");
            let again = log(&next, *revision, "change_commented").await.len();
            assert_eq!(again, 0, "place {place}: it is said once");
        }
        next.stop().await;
        if let Some(heard) = heard {
            assert_eq!(heard, Heard::Revision { run: revisions[0] });
            break;
        }
    }
    assert!(cut_off > 3, "it was killed {cut_off} times between the record and the end");
}

#[tokio::test]
async fn s4_06_two_comments_at_the_same_moment_are_heard_in_one_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let (store, trusted) = (Flaky::new(), Arc::new(Trusted::default()));
    trusted.set(Some(workflow("cat >/dev/null")));
    let engine = trusted.open(&store, folder.path()).await;
    let run = ended(&engine, workflow("cat >/dev/null")).await;
    let id = by_its_agent(&engine, run).await.id;
    trusted.set(Some(workflow("cat >/dev/null; while [ ! -e go ]; do sleep 0.01; done")));
    let say = |text: &'static str| {
        let engine = engine.clone();
        tokio::spawn(async move {
            engine.changes().comment(id, "ann".into(), None, text.to_owned()).await
        })
    };
    let (one, two) = (say("one"), say("two"));
    for said in [one, two] {
        let (_, heard) = in_time("both", said).await.expect("no panic").expect("heard");
        assert!(matches!(heard, Heard::Revision { .. } | Heard::Agent { .. }), "{heard:?}");
    }
    assert_eq!(revisions(&store).await.len(), 1);
    let sets = engine.changes().with(async |changes| changes.list()).await.expect("sets");
    assert_eq!(sets[0].comments.len(), 2, "{sets:?}");
    engine.stop().await;
}

/// Ends some work at its first crash point, as a power cut would.
async fn killed_at_its_first_point(work: impl Future<Output = ()> + Send + 'static) {
    let work = tokio::spawn(async move {
        let own = tokio::task::id();
        stafette_engine::crash::simulate(move || {
            assert_ne!(tokio::task::try_id(), Some(own), "this is the crash");
        });
        work.await;
    });
    let end = in_time("the crash", work).await.expect_err("a crash");
    assert!(end.is_panic(), "{end}");
    stafette_engine::crash::simulate(|| {});
}

#[tokio::test]
async fn b_01_a_set_that_a_crash_kept_from_its_run_is_given_to_it_by_the_next_process() {
    for is_over in [true, false] {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Flaky::new();
        let engine = open(&store, folder.path()).await;
        let run = match is_over {
            true => ended(&engine, workflow("cat >/dev/null")).await,
            false => start(&engine, crate::outside::workflow()).await.expect("a run"),
        };
        let proposing = engine.clone();
        killed_at_its_first_point(async move {
            proposed(&proposing, run, "one", "1").await;
        })
        .await;
        assert_eq!(log(&engine, run, "change_proposed").await.len(), 0, "the run has not heard");
        engine.stop().await;

        let engine = open(&store, folder.path()).await;
        engine.release();
        heard(&engine, run, "change_proposed").await;
        let set = engine.changes().with(async |changes| changes.list()).await.expect("sets");
        assert_eq!(set.len(), 1);
        let applied = engine.changes().apply(set[0].id, None, false, rules(), ann());
        in_time("applying", applied).await.expect("applied");
        assert_eq!(read(folder.path(), "one").as_deref(), Some("1"));
        assert_eq!(log(&engine, run, "change_proposed").await.len(), 1, "once");
        engine.stop().await;
    }
}

#[tokio::test]
async fn s4_06_a_comment_between_two_generations_is_one_note_wherever_the_daemon_is_killed() {
    let mut cut_off = 0;
    for place in 0.. {
        let folder = tempfile::tempdir().expect("a folder");
        let store = Flaky::new();
        let engine = open(&store, folder.path()).await;
        let (run, _) = paused(&engine, folder.path(), "first", Millis::seconds(3600)).await;
        let (caller, id) = (engine.clone(), by_its_agent(&engine, run).await.id);
        let died = dies_at(place);
        let said = tokio::spawn(async move {
            caller.changes().comment(id, "ann".into(), None, "why?".into()).await
        });
        until("an end", || said.is_finished() || died.load(Ordering::SeqCst)).await;
        said.abort();
        engine.stop().await;
        stafette_engine::crash::simulate(|| {});

        let next = open(&store, folder.path()).await;
        let recorded = log(&next, run, "change_commented").await.len();
        let is_open = |order: &Order| matches!(order, Order::Forward { .. });
        let is_forwarded = async {
            while next.state(run).await.expect("a run").orders().iter().any(is_open) {
                tokio::task::yield_now().await;
            }
        };
        in_time(&format!("the comment at place {place}"), is_forwarded).await;
        let notes = log(&next, run, "note_left").await;
        assert_eq!(notes.len(), recorded, "place {place}: {notes:?}");
        next.stop().await;
        if !died.load(Ordering::SeqCst) {
            break;
        }
        cut_off += recorded;
    }
    assert!(cut_off > 3, "it was killed {cut_off} times between the record and the end");
}

/// Lets everything begin, and has something to say of it.
#[derive(Debug)]
struct Warns;

impl Interceptor for Warns {
    fn before_run<'a>(&'a self, _: Beginning<'a>) -> Asked<'a> {
        let alerts = vec!["it is late".to_owned()];
        Box::pin(async { HookDecision { refusal: None, alerts } })
    }

    fn before_turn<'a>(&'a self, _: &'a Workflow, _: &'a TurnOrder, _: &'a Path) -> Asked<'a> {
        Box::pin(async { HookDecision::default() })
    }
}

#[tokio::test]
async fn b_01_what_a_hook_has_to_say_of_a_run_is_stored_with_its_beginning() {
    let folder = tempfile::tempdir().expect("a folder");
    let store = Flaky::new();
    let plugins = Plugins { interceptor: Some(Arc::new(Warns)), ..Plugins::default() };
    let engine = Engine::open(Arc::new(store.clone()), settings(folder.path()), plugins).await;
    let (engine, caller) = engine.map(|engine| (engine.clone(), engine)).expect("opens");
    killed_at_its_first_point(async move {
        start(&caller, workflow("cat >/dev/null")).await.expect("a run");
    })
    .await;
    engine.stop().await;
    let engine = open(&store, folder.path()).await;
    let runs = engine.runs(10).await.expect("runs");
    assert_eq!(end(&engine, runs[0].run).await, "succeeded");
    let alerts = log(&engine, runs[0].run, "alert_raised").await;
    assert_eq!(alerts.len(), 1, "{alerts:?}");
    assert!(alerts[0]["message"].as_str().expect("a text").contains("it is late"), "{alerts:?}");
}
