//! A process is killed at every step of a change: its project is as before or as after.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};

use stafette_core::change::{Change, ChangeId, ChangeRules, ChangeStatus};
use stafette_workspace::Changes;
use stafette_workspace::changes::crash;

use crate::world::{World, rules, validated};

const PROJECT: &str = "STAFETTE_TEST_PROJECT";
const DOES: &str = "STAFETTE_TEST_DOES";
const AFTER: &str = "STAFETTE_TEST_KILL_AFTER";

/// What is killed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Deed {
    Apply,
    ApplyWithGit,
    Undo,
    /// The project's command says no, so that it is on its way back.
    Fail,
    Recover,
}

impl Deed {
    fn rules(self) -> ChangeRules {
        match self {
            Deed::Fail => validated("false"),
            Deed::ApplyWithGit => ChangeRules { commit: true, ..rules() },
            _ => rules(),
        }
    }
}

/// Starts this program once more to do it, and be killed at some step.
fn doomed(project: &Path, deed: Deed, after: i64) -> ExitStatus {
    let program = std::env::current_exe().expect("this program");
    Command::new(program)
        .args(["--exact", "kills::s4_06_what_is_killed_works_when_it_is_not", "--nocapture"])
        .env(PROJECT, project)
        .env(DOES, format!("{deed:?}"))
        .env(AFTER, after.to_string())
        .stdout(std::process::Stdio::null())
        .status()
        .expect("started")
}

/// Does it; how many places there were to be killed at.
async fn perform(project: &Path, deed: Deed, after: i64) -> i64 {
    let changes = Changes::open(project, &project.join(".stafette")).expect("opened");
    crash::arm(after);
    let rules = deed.rules();
    match deed {
        Deed::Apply | Deed::ApplyWithGit | Deed::Fail => {
            changes.apply(ChangeId(1), &rules).await.map(drop)
        }
        Deed::Undo => changes.undo(ChangeId(1), false, &rules).await.map(drop),
        Deed::Recover => changes.recover().await.map(drop),
    }
    .expect("done");
    let passed = after - crash::left();
    crash::arm(i64::MAX);
    passed
}

/// On its own, this shows that every deed works. With the variables it is the process that dies.
#[test]
fn s4_06_what_is_killed_works_when_it_is_not() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let Some(project) = std::env::var_os(PROJECT) else {
        let world = World::new();
        runtime.block_on(world.propose_everything());
        let status = doomed(&world.project, Deed::Apply, i64::MAX);
        assert!(status.success());
        assert_eq!(world.changes().get(ChangeId(1)).expect("it").status, ChangeStatus::Applied);
        return;
    };
    let after = std::env::var(AFTER).expect("a number").parse().expect("a number");
    let deeds = [Deed::Apply, Deed::ApplyWithGit, Deed::Undo, Deed::Fail, Deed::Recover];
    let wanted = std::env::var(DOES).expect("a deed");
    let deed = deeds.into_iter().find(|deed| format!("{deed:?}") == wanted).expect("a deed");
    let passed = runtime.block_on(perform(Path::new(&project), deed, after));
    if let Some(file) = std::env::var_os("STAFETTE_TEST_COUNT") {
        std::fs::write(file, passed.to_string()).expect("written");
    }
}

/// How many places there are to be killed at.
async fn count(deed: Deed) -> i64 {
    let world = prepared(deed).await.0;
    let file = world.folder.path().join("count");
    let status = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "kills::s4_06_what_is_killed_works_when_it_is_not"])
        .env(PROJECT, &world.project)
        .env(DOES, format!("{deed:?}"))
        .env(AFTER, "1000000")
        .env("STAFETTE_TEST_COUNT", &file)
        .stdout(std::process::Stdio::null())
        .status();
    assert!(status.expect("started").success());
    std::fs::read_to_string(file).expect("counted").parse().expect("a number")
}

async fn prepared(deed: Deed) -> (World, Change) {
    let world = if deed == Deed::ApplyWithGit { World::with_git() } else { World::new() };
    let change = world.propose_everything().await;
    if deed == Deed::Undo {
        world.changes().apply(change.id, &rules()).await.expect("applied");
    }
    (world, change)
}

/// One kill, and maybe a second one while the first is mended.
async fn round(deed: Deed, after: i64, again: Option<i64>) -> (usize, bool) {
    let (world, change) = prepared(deed).await;
    let (before, was, status) = (world.tree(), world.identities(), change_status(&world));
    let mut kills = 0;
    let killed = doomed(&world.project, deed, after);
    assert!(killed.success() || killed.signal() == Some(9), "{deed:?} {after}: {killed}");
    kills += usize::from(killed.signal() == Some(9));
    if let Some(again) = again {
        kills += usize::from(doomed(&world.project, Deed::Recover, again).signal() == Some(9));
    }
    world.changes().recover().await.expect("recovered");
    world.assert_tidy();
    let is_back = change_status(&world) == status || change_status(&world) == ChangeStatus::Failed;
    let at = format!("{deed:?} killed after {after}, then {again:?}");
    if is_back {
        assert_eq!(world.tree(), before, "{at}: as before");
        assert_eq!(world.identities(), was, "{at}: the very files");
    } else {
        let after = match deed {
            Deed::Undo => ChangeStatus::Undone,
            _ => ChangeStatus::Applied,
        };
        assert_eq!(change_status(&world), after, "{at}");
        let other = prepared(deed).await.0;
        match deed {
            Deed::Undo => other.changes().undo(change.id, false, &rules()).await,
            _ => other.changes().apply(change.id, &rules()).await,
        }
        .expect("done");
        assert_eq!(world.tree(), other.tree(), "{at}: as after");
        if deed == Deed::ApplyWithGit {
            assert_eq!(world.git(&["status", "--porcelain"]), "", "{at}: committed");
        }
    }
    if is_back && deed == Deed::ApplyWithGit {
        assert_eq!(world.git(&["rev-list", "--count", "HEAD"]), "1", "{at}: no commit");
    }
    (kills, is_back)
}

fn change_status(world: &World) -> ChangeStatus {
    world.changes().get(ChangeId(1)).expect("it").status
}

#[test]
fn s4_06_after_a_thousand_kills_the_tree_is_as_before_or_as_after() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = || runtime().expect("a runtime");
    let mut rounds = Vec::new();
    for deed in [Deed::Apply, Deed::Undo, Deed::Fail, Deed::ApplyWithGit] {
        let places = runtime().block_on(count(deed));
        assert!(places >= 40, "{deed:?} has {places} places");
        rounds.extend((0..places).map(|after| (deed, after, None)));
        if deed == Deed::ApplyWithGit {
            continue;
        }
        // At every place once more, and then at one place or another of the mending.
        for again in [0, 3, 7, 12, 18] {
            rounds.extend((0..places).map(|after| (deed, after, Some(again + after % 5))));
        }
    }
    let next = AtomicUsize::new(0);
    let totals = [const { AtomicUsize::new(0) }; 3];
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let runtime = runtime();
                while let Some((deed, after, again)) =
                    rounds.get(next.fetch_add(1, Ordering::Relaxed))
                {
                    let (kills, is_back) = runtime.block_on(round(*deed, *after, *again));
                    totals[0].fetch_add(kills, Ordering::Relaxed);
                    totals[if is_back { 1 } else { 2 }].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let [kills, back, through] = totals.map(AtomicUsize::into_inner);
    assert!(kills >= 1000, "{kills} kills in {} rounds", rounds.len());
    assert!(back > 100 && through > 20, "{back} times back and {through} times through");
}
