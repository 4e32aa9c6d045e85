//! Locks: fought for, lost, waited for, and gone with the turns of their agents.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use stafette_core::lock::{
    Ask, Claim, Conflict, Holder, Lock, LockOutcome, LockRules, Mode, OnConflict, Refusal,
};
use stafette_core::{Event, HandoffId, Input, Millis, RunId, Time, TurnKey};
use stafette_engine::{Engine, EngineError, LockManager};
use stafette_store::{MemoryStore, Options, SqliteStore, Store};
use tempfile::TempDir;

use crate::runs::{PATIENCE, end, opened, settings, start, workflow};

fn claim(holder: Holder, what: &str) -> Claim {
    Claim {
        holder,
        turn: None,
        patterns: vec![what.parse().expect("a pattern")],
        mode: Mode::Exclusive,
        lease: LockRules::default().lease,
        reason: String::new(),
    }
}

fn session(run: RunId, attempt: u32, what: &str) -> Claim {
    let turn = TurnKey { run, handoff: HandoffId(1), attempt, turn: 1 };
    let holder = Holder::session(run, "a".parse().expect("a name"));
    Claim { turn: Some(turn), ..claim(holder, what) }
}

/// What a lock protects: it takes only what comes with the newest number that it has seen.
#[derive(Default)]
struct Register {
    newest: u64,
    value: u64,
    refused: u64,
}

impl Register {
    fn read(&mut self, fence: u64) -> Option<u64> {
        if fence < self.newest {
            self.refused += 1;
            return None;
        }
        self.newest = fence;
        Some(self.value)
    }

    fn write(&mut self, fence: u64, value: u64) -> bool {
        let current = self.read(fence).is_some();
        if current {
            self.value = value;
        }
        current
    }
}

/// A world in virtual time that two processes fight in, each with a desk of its own.
struct Ring {
    now: AtomicI64,
    register: Mutex<Register>,
    grants: AtomicU64,
    accepted: AtomicU64,
    /// Writes whose check said that the lock was lost.
    warned: AtomicU64,
}

impl Ring {
    fn now(&self) -> Time {
        Time(self.now.load(Ordering::SeqCst))
    }

    /// Whether there were so many grants, and among them one that was lost: who is alone for long
    /// loses none.
    fn is_over(&self, rounds: u64) -> bool {
        let refused = self.register.lock().expect("sound").refused;
        self.grants.load(Ordering::SeqCst) >= rounds && refused > 0
    }

    /// Fights until it is over. Every third time it pauses past its lease.
    async fn fight(self: Arc<Self>, desk: LockManager, name: &'static str, rounds: u64) {
        let lease = Millis::minutes(30);
        for round in 0_u64.. {
            if self.is_over(rounds) {
                return;
            }
            // A command of its own each time: it has forgotten what it held before.
            let holder = Holder::person(name).at(&round.to_string());
            let claim = Claim { lease, ..claim(holder.clone(), "src/**") };
            let (on_conflict, wait) = (OnConflict::Skip, Millis(0));
            let ask = Ask::Take { claim, on_conflict, wait };
            let (_, answer) = desk.ask(|| self.now(), ask).await.expect("the store works");
            let Ok(LockOutcome::Held(Lock { id, fence, .. })) = answer else {
                // The other has it: time passes, at times more than the lease.
                self.now.fetch_add(60_000, Ordering::SeqCst);
                tokio::task::yield_now().await;
                continue;
            };
            self.grants.fetch_add(1, Ordering::SeqCst);
            let value = self.register.lock().expect("sound").read(fence);
            let sleepy = round % 3 == 0;
            if sleepy {
                let past = i64::try_from(lease.0).expect("fits") + 1;
                self.now.fetch_add(past, Ordering::SeqCst);
            }
            // A sleeper wakes when the other has had time to take the lock.
            let mut known = desk.refreshed().await.expect("readable");
            for _ in 0..200 {
                if !sleepy || known.fence > fence {
                    break;
                }
                tokio::task::yield_now().await;
                known = desk.refreshed().await.expect("readable");
            }
            let allowed = known.may_write(self.now(), &holder, ["src/a.rs"], Some(fence)).is_ok();
            if !allowed {
                self.warned.fetch_add(1, Ordering::SeqCst);
            }
            // Even who does not listen to the check cannot write with an old number.
            if let Some(value) = value
                && self.register.lock().expect("sound").write(fence, value + 1)
            {
                self.accepted.fetch_add(1, Ordering::SeqCst);
            }
            if !sleepy {
                let _ = desk.ask(|| self.now(), Ask::Release { id, by: holder }).await;
            }
        }
    }
}

async fn fight(stores: [Arc<dyn Store>; 2], rounds: u64) {
    let ring = Arc::new(Ring {
        now: AtomicI64::new(0),
        register: Mutex::default(),
        grants: AtomicU64::new(0),
        accepted: AtomicU64::new(0),
        warned: AtomicU64::new(0),
    });
    let mut desks = Vec::new();
    for store in stores {
        desks.push(LockManager::open(store).await.expect("readable"));
    }
    let begin = |(desk, name)| tokio::spawn(ring.clone().fight(desk, name, rounds));
    let fighters: Vec<_> = desks.into_iter().zip(["ada", "bob"]).map(begin).collect();
    for fighter in fighters {
        let ended = tokio::time::timeout(2 * PATIENCE, fighter).await.expect("both have a chance");
        ended.expect("it ends");
    }
    let register = ring.register.lock().expect("sound");
    let (grants, accepted) =
        (ring.grants.load(Ordering::SeqCst), ring.accepted.load(Ordering::SeqCst));
    assert!(grants >= rounds);
    assert_eq!(register.value, accepted, "no accepted write was lost to a stale one");
    assert!(register.refused > 0, "there were stale writes, and they were refused");
    assert!(accepted < grants);
    assert!(ring.warned.load(Ordering::SeqCst) >= register.refused);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_04_two_fight_for_one_lock_ten_thousand_times_and_no_stale_write_is_accepted() {
    let store = MemoryStore::new();
    fight([Arc::new(store.clone()), Arc::new(store)], 10_000).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn s5_04_two_fight_on_one_file_and_no_stale_write_is_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("store.db");
    let open = || Arc::new(SqliteStore::open(&path, Options::default()).expect("a store"));
    fight([open(), open()], 100).await;
}

async fn engine() -> (Engine, MemoryStore, TempDir) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = MemoryStore::new();
    (opened(Arc::new(store.clone()), settings(folder.path())).await, store, folder)
}

async fn take(engine: &Engine, claim: Claim) -> Lock {
    match engine.locks().take(claim, OnConflict::Skip, Millis(0)).await {
        Ok(LockOutcome::Held(lock)) => lock,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn b_10_an_agent_loses_its_locks_with_its_run_and_can_write_no_more() {
    let (engine, _, _folder) = engine().await;
    let command = "cat >/dev/null; while :; do sleep 0.01; done";
    let run = start(&engine, workflow(command)).await.expect("a run");
    let lock = take(&engine, session(run, 1, "src/**")).await;
    let paths = ["src/a.rs".to_owned()];
    let ours = engine.locks().may_write(&lock.claim.holder, &paths, Some(lock.fence)).await;
    ours.expect("the turn goes on");
    let ada = Holder::person("ada");
    let refused = engine.locks().may_write(&ada, &paths, None).await.expect_err("the agent has it");
    let EngineError::MayNotWrite { conflict: Conflict::Locked { .. } } = refused else {
        panic!("{refused:?}")
    };
    engine.send(run, Input::Cancel { by: "ada".into(), why: String::new() }).await.expect("taken");
    assert_eq!(end(&engine, run).await, "cancelled");
    assert!(engine.locks().now().held.is_empty());
    engine.locks().may_write(&ada, &paths, None).await.expect("it is free");
    let late = engine.locks().may_write(&lock.claim.holder, &paths, Some(lock.fence)).await;
    assert!(
        matches!(late, Err(EngineError::MayNotWrite { conflict: Conflict::Lost { .. } })),
        "{late:?}"
    );
    engine.stop().await;
}

#[tokio::test]
async fn b_10_an_agent_whose_turn_was_fenced_loses_its_locks() {
    let (engine, _, folder) = engine().await;
    // The first attempt dies when it is told to; the second goes on.
    let command = "cat >/dev/null; n=$(ls | grep -c tried); touch tried$n; \
                   while [ $n = 1 ] || [ ! -e die ]; do sleep 0.01; done; exit 1";
    let mut workflow = workflow(command);
    workflow.retries.backoff = Millis(1);
    workflow.limits.cooldown = Millis(0);
    let run = start(&engine, workflow).await.expect("a run");
    take(&engine, session(run, 1, "src/**")).await;
    std::fs::write(folder.path().join("die"), "").expect("written");
    let mut feed = engine.feed(0);
    let second = async {
        loop {
            let page = feed.next().await.expect("readable").expect("it goes on");
            let again = |body: &str| body.contains("turn_ordered") && body.contains("/2.");
            if page.iter().any(|stored| again(&stored.entry.body)) {
                return;
            }
        }
    };
    tokio::time::timeout(PATIENCE, second).await.expect("a second attempt");
    assert!(engine.locks().now().held.is_empty(), "{:?}", engine.locks().now());
    take(&engine, session(run, 2, "src/a.rs")).await;
    engine.stop().await;
}

#[tokio::test]
async fn s5_05_who_waits_hears_of_the_lock_of_a_late_end_and_of_a_deadlock() {
    let (engine, _, _folder) = engine().await;
    let command = "cat >/dev/null; while :; do sleep 0.01; done";
    let run = start(&engine, workflow(command)).await.expect("a run");
    let (ada, bob) = (Holder::person("ada"), Holder::person("bob"));
    let first = take(&engine, claim(ada.clone(), "a")).await;
    let wait =
        async |claim: Claim, wait| match engine.locks().take(claim, OnConflict::Wait, wait).await {
            Ok(LockOutcome::Waiting(waiter)) => waiter.id,
            other => panic!("{other:?}"),
        };
    let short = wait(claim(bob.clone(), "a"), Millis(20)).await;
    let late = engine.locks().wait(short, PATIENCE).await;
    let Err(EngineError::Lock { refusal: Refusal::Late { .. } }) = late else { panic!("{late:?}") };

    let long = wait(claim(bob.clone(), "a"), Millis::minutes(5)).await;
    let still = engine.locks().wait(long, Duration::ZERO).await;
    assert!(matches!(still, Ok(LockOutcome::Waiting(_))), "{still:?}");
    let (waited, released) = tokio::join!(
        engine.locks().wait(long, PATIENCE),
        engine.locks().release(first.id, ada.clone())
    );
    released.expect("given back");
    let Ok(LockOutcome::Held(lock)) = waited else { panic!("{waited:?}") };
    assert_eq!((lock.id, lock.fence), (long, 2));

    // Bob has a, the agent has b; each wants the other's.
    take(&engine, session(run, 1, "b")).await;
    let _bob = wait(claim(bob, "b"), Millis::minutes(5)).await;
    let refused =
        engine.locks().take(session(run, 1, "a"), OnConflict::Wait, Millis::minutes(5)).await;
    assert!(
        matches!(refused, Err(EngineError::Lock { refusal: Refusal::Deadlock { .. } })),
        "{refused:?}"
    );
    assert_eq!(engine.locks().deadlocks().await.expect("readable").len(), 1);
    let mut feed = engine.feed(0);
    let alert = async {
        loop {
            let page = feed.next().await.expect("readable").expect("it goes on");
            for stored in page {
                let event: Event = serde_json::from_str(&stored.entry.body).expect("an event");
                if let Event::AlertRaised(alert) = event {
                    return alert;
                }
            }
        }
    };
    let alert = tokio::time::timeout(PATIENCE, alert).await.expect("the run's log has it");
    assert_eq!(alert.code, "DEADLOCK");
    assert!(alert.message.contains("bob waits for b behind a of"), "{alert:?}");
    engine.stop().await;
}

#[tokio::test]
async fn s5_04_locks_and_their_numbers_outlive_the_engine() {
    let (engine, store, folder) = engine().await;
    let ada = take(&engine, claim(Holder::person("ada"), "src/**")).await;
    // A run that was over before anybody could free what it held.
    take(&engine, session(RunId(uuid::Uuid::nil()), 1, "docs/**")).await;
    engine.stop().await;
    drop(engine);
    let engine = opened(Arc::new(store), settings(folder.path())).await;
    assert_eq!(engine.locks().now().held.values().cloned().collect::<Vec<_>>(), [ada]);
    let next = take(&engine, claim(Holder::person("bob"), "docs/**")).await;
    assert_eq!(next.fence, 3);
    engine.stop().await;
}
