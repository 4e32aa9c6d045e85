//! The project's command says no, hangs, or fills the disk: everything is as it was.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use stafette_core::Millis;
use stafette_core::change::{Action, ChangeId, ChangeRules, ChangeStatus};
use stafette_core::redact::Redactor;
use stafette_testkit::disk;
use stafette_workspace::{ChangeError, Changes};

use crate::world::{World, edit, rules, validated};

#[tokio::test]
async fn s4_06_a_command_that_says_no_gets_everything_back() {
    let world = World::new();
    let (before, was) = (world.tree(), world.identities());
    let change = world.propose_everything().await;
    let rules = validated("cat a.txt; echo broken >&2; exit 3");
    let report = world.changes().apply(change.id, &rules).await.expect("tried");
    let back = &report.rolled_back[0];
    assert!(back.why.contains("exit status: 3"), "{}", back.why);
    assert!(back.output.contains("broken") && back.output.contains("one\n2"), "{}", back.output);
    assert_eq!(world.tree(), before);
    assert_eq!(world.identities(), was, "the very files, with their times");
    let kept = world.changes().get(change.id).expect("there");
    assert_eq!(kept.status, ChangeStatus::Failed);
    assert!(kept.failure.expect("a reason").contains("broken"));
    world.assert_tidy();
}

#[tokio::test]
async fn s4_06_a_command_that_hangs_is_ended_with_all_its_children() {
    let world = World::new();
    let before = world.tree();
    let change = world.propose_everything().await;
    // Its pid goes to our own folder, which is not part of the tree.
    let rules = ChangeRules {
        timeout: Millis::seconds(5),
        ..validated("sleep 1000 & echo $! > .stafette/pid; wait")
    };
    let report = world.changes().apply(change.id, &rules).await.expect("tried");
    assert!(report.rolled_back[0].why.contains("ended after 5 seconds"), "{report:?}");
    assert_eq!(world.tree(), before);
    let pid = world.read(".stafette/pid");
    let state = || fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    // It was killed; the system may take a moment to have it gone.
    let since = Instant::now();
    while !state().is_empty() && !state().contains(") Z") {
        assert!(since.elapsed() < Duration::from_secs(60), "it is gone: {}", state());
        std::thread::yield_now();
    }
}

#[tokio::test]
async fn s4_06_a_command_that_prints_without_end_is_kept_short() {
    let world = World::new();
    let change = world.propose_everything().await;
    let rules = validated("yes nonsense | head -c 20000000; echo last; exit 1");
    let report = world.changes().apply(change.id, &rules).await.expect("tried");
    let output = &report.rolled_back[0].output;
    assert!(output.len() <= 32 * 1024 && output.ends_with("last"));
}

#[tokio::test]
async fn b_17_what_the_command_prints_is_kept_without_its_secrets() {
    let world = World::new();
    let change = world.propose_everything().await;
    let injected = "Zx1Qw2Er3Ty4Ui5Op6";
    let changes = world.changes().redacted(Redactor::knowing([injected]));
    // One secret lies where the output is cut to its end.
    world.write("out", &format!("password=Qw2Er3Ty4Ui5\n{}\n", "x".repeat(32 * 1024 - 50)));
    world.write("err", &format!("token {injected}\n"));
    let script = validated("cat out; cat err >&2; exit 1");
    let report = changes.apply(change.id, &script).await.expect("tried");
    let output = &report.rolled_back[0].output;
    let failure = changes.get(change.id).expect("there").failure.expect("a reason");
    for kept in [output, &failure] {
        assert!(kept.contains("[redacted:environment]"), "{kept}");
        assert!(!kept.contains(injected) && !kept.contains("Ty4Ui5"), "{kept}");
    }
}

#[tokio::test]
async fn b_17_the_command_sees_harmless_variables_and_those_that_it_names() {
    let world = World::new();
    let script = "env > seen.txt; exit 1";
    for (env, sees) in [(vec![], false), (vec!["CARGO_MANIFEST_DIR".to_owned()], true)] {
        let change = world.propose_everything().await;
        let rules = ChangeRules { env, ..validated(script) };
        world.changes().apply(change.id, &rules).await.expect("tried");
        let seen = world.read("seen.txt");
        assert!(seen.contains("PATH=") && seen.contains("STAFETTE_VALIDATES="), "{seen}");
        assert_eq!(seen.contains("CARGO_MANIFEST_DIR="), sees, "{seen}");
    }
}

#[tokio::test]
async fn b_17_a_command_that_lacks_a_variable_is_told_where_to_name_it() {
    let world = World::new();
    for (script, hint) in [
        ("no-such-program", "those that `[changes] env` names"),
        ("echo error: CARGO_MANIFEST_DIR is not set; exit 1", "see CARGO_MANIFEST_DIR: name them"),
    ] {
        let change = world.propose_everything().await;
        let report = world.changes().apply(change.id, &validated(script)).await.expect("tried");
        let why = &report.rolled_back[0].why;
        assert!(why.contains(hint), "{why}");
        let reason = world.changes().get(change.id).expect("there").failure.expect("a reason");
        assert!(reason.contains("[changes] env"), "{reason}");
    }
    let change = world.propose_everything().await;
    let report = world.changes().apply(change.id, &validated("exit 1")).await.expect("tried");
    assert!(!report.rolled_back[0].why.contains("env"), "{:?}", report.rolled_back);
}

#[tokio::test]
async fn s4_06_a_command_that_changes_the_files_itself_is_told() {
    let world = World::new();
    let (before, was) = (world.tree(), world.identities());
    let change = world.propose_everything().await;
    let rules = validated("echo formatted > a.txt; rm -r new; mkdir old.txt; echo x > old.txt/y");
    let report = world.changes().apply(change.id, &rules).await.expect("tried");
    let back = &report.rolled_back[0];
    assert!(back.why.contains("is not what the change was made against"), "{}", back.why);
    assert!(
        back.notes.iter().any(|note| note.contains("a.txt")),
        "what it wrote is kept: {back:?}"
    );
    let mut now = world.tree();
    assert!(now.remove(Path::new("old.txt.kept")).is_some(), "a folder in the way steps aside");
    assert!(now.remove(Path::new("old.txt.kept/y")).is_some());
    assert_eq!(now, before);
    assert!(was.iter().all(|(path, which)| world.identities().get(path) == Some(which)));
}

/// The other half of the test below, on a disk that is full soon.
#[tokio::test]
async fn s4_06_on_a_small_disk_the_command_fills_it() {
    let world = World::at(&std::env::temp_dir());
    let (before, was) = (world.tree(), world.identities());
    let change = world.propose_everything().await;
    // Where the disk is large, a limit on files stands in for a small one.
    let rules = validated("ulimit -f 8192; exec cat /dev/zero > .stafette/fill");
    let report = world.changes().apply(change.id, &rules).await.expect("tried");
    assert_eq!(report.rolled_back.len(), 1, "{report:?}");
    assert_eq!(world.tree(), before);
    assert_eq!(world.identities(), was);
    world.assert_tidy();
    if disk::is_small() {
        assert!(report.rolled_back[0].output.contains("No space left"), "{report:?}");
        let home = world.project.join(".stafette");
        let changes = Changes::open(&world.project, &home).expect("opened");
        let full = changes.apply(change.id, &crate::world::rules()).await;
        assert!(full.is_err() || full.is_ok_and(|report| report.landed.is_empty()));
        assert_eq!(world.tree(), before, "on a full disk nothing is begun");
        fs::remove_file(home.join("fill")).expect("removed");
        let report = changes.apply(ChangeId(1), &crate::world::rules()).await.expect("applied");
        assert_eq!(report.landed.len(), 1, "with room again it is applied");
    }
}

#[test]
fn s4_06_a_command_that_fills_the_disk_gets_everything_back() {
    // Where no mount is allowed, the limit on files in the other half is all that is shown.
    disk::run_on_a_small_one(3, "validation::s4_06_on_a_small_disk_the_command_fills_it");
}

#[tokio::test]
async fn s4_07_a_set_that_changes_its_judge_needs_a_person_and_is_judged_by_the_old_one() {
    let world = World::new();
    world.write("check.sh", "! grep -q bad a.txt\n");
    let rules = ChangeRules { validate: ["sh", "check.sh"].map(str::to_owned).to_vec(), ..rules() };
    let both = vec![
        edit(Action::Modify, "a.txt", Some("bad\n")),
        edit(Action::Modify, "check.sh", Some("exit 0\n")),
    ];
    let before = world.tree();
    let change = world.propose_under(both, &rules).await.expect("proposed");
    assert!(change.waits_for_person(), "{:?}", change.gates);
    let refused = world.changes().apply(change.id, &rules).await;
    let Err(error @ ChangeError::NeedsPerson { .. }) = refused else { panic!("{refused:?}") };
    assert!(error.to_string().contains("check.sh, by which changes are validated"), "{error}");
    world.changes().approve(change.id, "mia").await.expect("approved");
    let report = world.changes().apply(change.id, &rules).await.expect("tried");
    let back = &report.rolled_back[0];
    assert!(back.why.contains("judged by check.sh as it was before"), "{}", back.why);
    assert_eq!(world.tree(), before);
    world.assert_tidy();

    // What the old one lets pass brings the new one along.
    let both = vec![
        edit(Action::Modify, "a.txt", Some("good\n")),
        edit(Action::Modify, "check.sh", Some("grep -q good a.txt\n")),
    ];
    let change = world.propose_under(both, &rules).await.expect("proposed");
    world.changes().approve(change.id, "mia").await.expect("approved");
    let report = world.changes().apply(change.id, &rules).await.expect("applied");
    assert_eq!(report.landed[0].status, ChangeStatus::Validated);
    assert_eq!(world.read("check.sh"), "grep -q good a.txt\n");
    world.changes().undo(change.id, false, &rules).await.expect("undone");
    assert_eq!(world.tree(), before);

    // A judge that was not there before judges at once.
    fs::remove_file(world.path("check.sh")).expect("removed");
    let first = vec![edit(Action::Create, "check.sh", Some("grep -q one a.txt\n"))];
    let change = world.propose_under(first, &rules).await.expect("proposed");
    world.changes().approve(change.id, "mia").await.expect("approved");
    let report = world.changes().apply(change.id, &rules).await.expect("applied");
    assert_eq!(report.landed[0].status, ChangeStatus::Validated);
}

#[tokio::test]
async fn s4_07_a_judge_that_is_found_by_a_name_without_its_ending_is_the_old_one_too() {
    let world = World::new();
    // A program that finds `q.mjs` by `q`, as node does.
    let fake = world.folder.path().join("node");
    fs::write(&fake, "#!/bin/sh\nsh \"$1.mjs\"\n").expect("written");
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).expect("its mode");
    world.write("q.mjs", "! grep -q bad a.txt\n");
    let node = fake.to_str().expect("text");
    let validate = [node, "q"].map(str::to_owned).to_vec();
    let rules = ChangeRules { validate, ..rules() };
    let both = vec![
        edit(Action::Modify, "a.txt", Some("bad\n")),
        edit(Action::Modify, "q.mjs", Some("exit 0\n")),
    ];
    let before = world.tree();
    let change = world.propose_under(both, &rules).await.expect("proposed");
    assert!(change.waits_for_person(), "{:?}", change.gates);
    world.changes().approve(change.id, "mia").await.expect("approved");
    let report = world.changes().apply(change.id, &rules).await.expect("tried");
    let back = &report.rolled_back.first().expect("the old one judges");
    assert!(back.why.contains("judged by q.mjs as it was before"), "{}", back.why);
    assert_eq!(world.tree(), before);
}
