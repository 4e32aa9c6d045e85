//! A process is killed at every step of a change: its project is as before or as after.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicUsize, Ordering};

use stafette_core::change::{Change, ChangeId, ChangeRules, ChangeStatus};
use stafette_workspace::Changes;
use stafette_workspace::changes::crash;

use crate::world::{World, rules, validated};

const PROJECT: &str = "STAFETTE_TEST_PROJECT";
const DOES: &str = "STAFETTE_TEST_DOES";
const AFTER: &str = "STAFETTE_TEST_KILL_AFTER";
const COUNT: &str = "STAFETTE_TEST_COUNT";

/// This program, started once more to run one test, which does something and is killed at it.
pub(crate) struct Doomed<'t> {
    pub(crate) test: &'t str,
    pub(crate) project: &'t Path,
    pub(crate) does: &'t str,
}

impl Doomed<'_> {
    /// Has it killed after so many places, if there are so many.
    pub(crate) fn dies(&self, after: i64) -> ExitStatus {
        let status = self.command(after).status().expect("started");
        assert!(status.success() || is_killed(status), "{} at {after}: {status}", self.does);
        status
    }

    /// Has it live; how many places there were to be killed at.
    pub(crate) fn counts(&self) -> i64 {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("count");
        let status = self.command(1_000_000).env(COUNT, &file).status();
        assert!(status.expect("started").success());
        std::fs::read_to_string(file).expect("counted").parse().expect("a number")
    }

    fn command(&self, after: i64) -> Command {
        let mut command = Command::new(std::env::current_exe().expect("this program"));
        command.args(["--exact", self.test, "--nocapture"]).stdout(std::process::Stdio::null());
        command.env(PROJECT, self.project).env(DOES, self.does).env(AFTER, after.to_string());
        command
    }
}

/// What the one who is to die does, where, and at which place it is killed.
pub(crate) fn orders() -> Option<(PathBuf, String, i64)> {
    let project = PathBuf::from(std::env::var_os(PROJECT)?);
    let after = std::env::var(AFTER).expect("a number").parse().expect("a number");
    Some((project, std::env::var(DOES).expect("a deed"), after))
}

/// Tells how many places were passed, if somebody wants to know.
pub(crate) fn passed(places: i64) {
    if let Some(file) = std::env::var_os(COUNT) {
        std::fs::write(file, places.to_string()).expect("written");
    }
}

pub(crate) fn is_killed(status: ExitStatus) -> bool {
    status.signal() == Some(9)
}

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
    fn name(self) -> &'static str {
        match self {
            Deed::Apply => "apply",
            Deed::ApplyWithGit => "apply with git",
            Deed::Undo => "undo",
            Deed::Fail => "fail",
            Deed::Recover => "recover",
        }
    }

    fn rules(self) -> ChangeRules {
        match self {
            Deed::Fail => validated("false"),
            // The set changes the script, which follows once it has judged.
            Deed::ApplyWithGit => ChangeRules {
                commit: true,
                validate: ["sh", "bin/run.sh"].map(str::to_owned).to_vec(),
                ..rules()
            },
            _ => rules(),
        }
    }
}

fn doomed(project: &Path, deed: Deed) -> Doomed<'_> {
    let test = "kills::s4_06_what_is_killed_works_when_it_is_not";
    Doomed { test, project, does: deed.name() }
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
    let Some((project, wanted, after)) = orders() else {
        let world = World::new();
        runtime.block_on(world.propose_everything());
        assert!(doomed(&world.project, Deed::Apply).dies(i64::MAX).success());
        assert_eq!(world.changes().get(ChangeId(1)).expect("it").status, ChangeStatus::Applied);
        return;
    };
    let deeds = [Deed::Apply, Deed::ApplyWithGit, Deed::Undo, Deed::Fail, Deed::Recover];
    let deed = deeds.into_iter().find(|deed| deed.name() == wanted).expect("a deed");
    passed(runtime.block_on(perform(&project, deed, after)));
}

/// How many places there are to be killed at.
async fn count(deed: Deed) -> i64 {
    let world = prepared(deed).await.0;
    doomed(&world.project, deed).counts()
}

async fn prepared(deed: Deed) -> (World, Change) {
    let world = if deed == Deed::ApplyWithGit { World::with_git() } else { World::new() };
    let change = world.propose_everything().await;
    if deed == Deed::Undo {
        world.changes().apply(change.id, &rules()).await.expect("applied");
    }
    (world, change)
}

/// One kill, and maybe a second one while the first is mended; whether that one still happened, and
/// whether everything is as before.
async fn round(deed: Deed, after: i64, again: Option<i64>) -> (bool, bool) {
    let (world, change) = prepared(deed).await;
    let (before, was, status) = (world.tree(), world.identities(), change_status(&world));
    let killed = doomed(&world.project, deed).dies(after);
    assert!(is_killed(killed), "{deed:?} was not killed at {after}");
    let again_killed =
        again.is_some_and(|again| is_killed(doomed(&world.project, Deed::Recover).dies(again)));
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
            Deed::ApplyWithGit => ChangeStatus::Validated,
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
    (again_killed, is_back)
}

fn change_status(world: &World) -> ChangeStatus {
    world.changes().get(ChangeId(1)).expect("it").status
}

#[test]
fn s4_06_after_a_thousand_kills_during_apply_the_tree_is_as_before_or_as_after() {
    let runtime = || tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = || runtime().expect("a runtime");
    let mut rounds = Vec::new();
    for deed in [Deed::Apply, Deed::Undo, Deed::Fail, Deed::ApplyWithGit] {
        let places = runtime().block_on(count(deed));
        assert!(places >= 40, "{deed:?} has {places} places");
        rounds.extend((0..places).map(|after| (deed, after)));
    }
    let next = AtomicUsize::new(0);
    let totals = [const { AtomicUsize::new(0) }; 4];
    let [applying, mending, back, through] = &totals;
    let note = |counter: &AtomicUsize| counter.fetch_add(1, Ordering::Relaxed);
    let at_every_place = |deed: Deed, after: i64| {
        let runtime = runtime();
        let mut again = None;
        loop {
            let (killed, is_back) = runtime.block_on(round(deed, after, again));
            note(if is_back { back } else { through });
            if deed != Deed::Undo {
                note(applying);
            }
            if killed {
                note(mending);
            } else if again.is_some() {
                // The mending has no further place.
                return;
            }
            // Then once more, and it is killed while it is mended: at each place that this has.
            let further = if matches!(deed, Deed::Apply | Deed::Fail) { 1 } else { 4 };
            again = Some(again.map_or(0, |again: i64| again + further));
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some((deed, after)) = rounds.get(next.fetch_add(1, Ordering::Relaxed)) {
                    at_every_place(*deed, *after);
                }
            });
        }
    });
    let told = totals.each_ref().map(|total| total.load(Ordering::Relaxed));
    let [applying, mending, back, through] = told;
    assert!(applying >= 1000 && mending >= 500, "{told:?}");
    assert!(back > 100 && through > 20, "{told:?}");
}
