//! Those who try to get out of the project, or to have somebody's work written over.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use stafette_core::change::{Action, ChangeRules, FileEdit};
use stafette_workspace::ChangeError;

use crate::world::{World, edit, rules};

#[tokio::test]
async fn s4_07_no_path_leads_out() {
    let world = World::new();
    let outside = world.folder.path().join("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("x"), "theirs").expect("written");
    symlink(&outside, world.path("out")).expect("linked");
    symlink("bin", world.path("within")).expect("linked");
    symlink(outside.join("x"), world.path("link.txt")).expect("linked");
    let fifo = Command::new("mkfifo").arg(world.path("fifo")).status();
    assert!(fifo.expect("mkfifo").success());
    let before = world.tree();
    let absolute = outside.join("y").display().to_string();
    let paths = [
        "../outside/y",
        "bin/../../outside/y",
        absolute.as_str(),
        "out/y",
        "within/y",
        ".git/hooks/post-commit",
        ".GIT/hooks/post-commit",
        "Src/../.git/config",
        ".stafette/changes/journal.json",
        "a\0b",
        "trailing./y",
    ];
    for path in paths {
        let refused = world.propose(vec![edit(Action::Create, path, Some("x"))]).await;
        let refused = match refused {
            // What a link is can be seen when it is applied, too.
            Ok(change) => world.changes().apply(change.id, &rules()).await.map(drop),
            Err(error) => Err(error),
        };
        assert!(refused.is_err(), "{path:?} must be refused");
    }
    for path in ["out/x", "link.txt", "fifo", "bin", "within/run.sh"] {
        let refused = world.propose(vec![edit(Action::Modify, path, Some("x"))]).await;
        assert!(refused.is_err(), "{path} must be refused");
        let refused = world.propose(vec![edit(Action::Delete, path, None)]).await;
        assert!(refused.is_err(), "{path} must not be deleted");
        let renamed = FileEdit { from: Some(path.to_owned()), ..edit(Action::Rename, "r", None) };
        assert!(world.propose(vec![renamed]).await.is_err(), "{path} must not be moved");
    }
    let twice =
        vec![edit(Action::Create, "Dir/f", Some("1")), edit(Action::Create, "dir/F", Some("2"))];
    assert!(matches!(world.propose(twice).await, Err(ChangeError::Collision { .. })));
    assert_eq!(world.tree(), before);
    assert_eq!(fs::read_to_string(outside.join("x")).expect("there"), "theirs");
    assert_eq!(fs::read_dir(&outside).expect("read").count(), 1, "nothing was written outside");
    world.assert_tidy();
}

#[tokio::test]
async fn s4_06_what_changed_behind_its_back_is_not_written_over() {
    let world = World::new();
    let change = world.propose_everything().await;
    for (file, meanwhile) in
        [("a.txt", "mine"), ("old.txt", "mine"), ("new/folder/file.txt", "mine")]
    {
        let was = fs::read(world.path(file)).ok();
        world.write(file, meanwhile);
        let before = world.tree();
        let refused = world.changes().apply(change.id, &rules()).await;
        assert!(matches!(refused, Err(ChangeError::Outdated { .. })), "{file}: {refused:?}");
        assert_eq!(world.tree(), before, "{file}: nothing of the set got in");
        match was {
            Some(was) => fs::write(world.path(file), was).expect("written"),
            None => fs::remove_file(world.path(file)).expect("removed"),
        }
    }
    fs::remove_file(world.path("a.txt")).expect("removed");
    symlink("keep.txt", world.path("a.txt")).expect("linked");
    let refused = world.changes().apply(change.id, &rules()).await;
    assert!(matches!(refused, Err(ChangeError::NotAFile { .. })), "{refused:?}");
    assert_eq!(world.read("keep.txt"), "stays\n");
}

#[test]
fn s4_07_who_swaps_folders_for_links_meanwhile_never_gets_it_out() {
    let world = World::new();
    let outside = world.folder.path().join("outside");
    fs::create_dir(&outside).expect("made");
    fs::write(outside.join("f.txt"), "theirs").expect("written");
    world.write("src/f.txt", "0");
    let (src, link) = (world.path("src"), world.path("src.link"));
    symlink(&outside, &link).expect("linked");
    let (is_over, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let (applied, refused) = std::thread::scope(|scope| {
        scope.spawn(|| {
            let swap = || renameat_with(CWD, &src, CWD, &link, RenameFlags::EXCHANGE);
            while !is_over.load(Ordering::Relaxed) {
                // There is always something at the path: the folder, or the way out.
                swap().expect("swapped");
                let number = swaps.fetch_add(1, Ordering::Relaxed);
                for _ in 0..number % 7 {
                    std::thread::yield_now();
                }
                swap().expect("swapped back");
                for _ in 0..number % 31 {
                    std::thread::yield_now();
                }
            }
        });
        let counts = runtime.block_on(race(&world, &swaps));
        is_over.store(true, Ordering::Relaxed);
        counts
    });
    runtime.block_on(world.changes().recover()).expect("recovered");
    assert_eq!(fs::read_to_string(outside.join("f.txt")).expect("there"), "theirs");
    assert_eq!(fs::read_dir(&outside).expect("read").count(), 1, "nothing was written outside");
    let swaps = swaps.into_inner();
    let is_fair = swaps >= 300 && applied > 0 && refused > 0;
    assert!(is_fair, "{swaps} swaps, {applied} applied, {refused} refused");
    world.assert_tidy();
}

/// Proposes and applies while somebody swaps the folder, until both had their chances; how many sets
/// got in, and how many did not.
async fn race(world: &World, swaps: &AtomicUsize) -> (usize, usize) {
    let changes = world.changes();
    let (mut applied, mut refused) = (0, 0);
    let since = Instant::now();
    let is_enough =
        |applied, refused| applied > 20 && refused > 200 && swaps.load(Ordering::Relaxed) >= 300;
    while !is_enough(applied, refused) && since.elapsed() < Duration::from_secs(60) {
        let number = applied + refused;
        let edits = vec![
            edit(Action::Modify, "src/f.txt", Some(&format!("{number}"))),
            edit(Action::Create, &format!("src/new-{number}"), Some("new")),
        ];
        // Where the folder is a link at the moment, it is refused right here.
        let landed = match world.propose(edits).await {
            Ok(change) => changes.apply(change.id, &rules()).await,
            Err(error) => Err(error),
        };
        match landed.is_ok_and(|report| !report.landed.is_empty()) {
            true => applied += 1,
            false => refused += 1,
        }
    }
    (applied, refused)
}

#[tokio::test]
async fn b_21_links_in_the_repository_have_our_git_write_nothing_outside() {
    let plants = [
        ("logs/HEAD", "file"),
        ("logs/refs/heads/main", "file"),
        ("logs", "folder"),
        ("index", "missing"),
        ("objects/NEW", "folder"),
        ("packed-refs", "missing"),
        ("refs/heads", "folder"),
    ];
    for (place, kind) in plants {
        let world = World::with_git();
        let outside = world.folder.path().join("outside");
        fs::create_dir(&outside).expect("made");
        fs::write(outside.join("file"), "theirs\n").expect("written");
        let target = match kind {
            "folder" => {
                fs::create_dir(outside.join("folder")).expect("made");
                outside.join("folder")
            }
            name => outside.join(name),
        };
        let git = world.path(".git");
        if place == "objects/NEW" {
            for byte in 0..=255 {
                let _ = symlink(&target, git.join(format!("objects/{byte:02x}")));
            }
        } else {
            let _ = fs::remove_file(git.join(place));
            let _ = fs::remove_dir_all(git.join(place));
            symlink(&target, git.join(place)).expect("linked");
        }
        let rules = ChangeRules { commit: true, ..rules() };
        let edits = vec![edit(Action::Create, "new.txt", Some("x"))];
        let change = world.propose_under(edits, &rules).await.expect("proposed");
        let report = world.changes().apply(change.id, &rules).await.expect("applied");

        assert_eq!(world.read("new.txt"), "x", "{place}");
        let notes = report.landed[0].notes.join("\n");
        // Without a branch git itself finds no repository.
        assert!(notes.contains("not committed"), "{place}: {notes}");
        if place != "refs/heads" {
            let named = place.trim_end_matches("NEW");
            assert!(notes.contains(&format!("{}/{named}", git.display())), "{place}: {notes}");
        }
        let said = fs::read_to_string(outside.join("file")).expect("there");
        assert_eq!(said, "theirs\n", "{place}");
        assert!(!outside.join("missing").exists(), "{place}");
        if kind == "folder" {
            let inside = fs::read_dir(outside.join("folder")).expect("read").count();
            assert_eq!(inside, 0, "{place}");
        }
    }
}

#[tokio::test]
async fn b_21_no_word_of_an_agent_is_in_the_log_of_a_branch() {
    let world = World::with_git();
    let rules = ChangeRules { commit: true, ..rules() };
    let edits = vec![edit(Action::Create, "new.txt", Some("x"))];
    let change = world.propose_under(edits, &rules).await.expect("proposed");
    world.changes().apply(change.id, &rules).await.expect("applied");
    assert!(world.git(&["log", "-1", "--format=%B"]).contains("a reason"));
    let log = fs::read_to_string(world.path(".git/logs/HEAD")).expect("a log");
    assert!(log.trim_end().ends_with("\tstafette: changes"), "{log}");
    assert!(!log.contains("a reason"), "{log}");
}
