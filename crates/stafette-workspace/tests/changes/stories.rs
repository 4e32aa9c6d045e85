//! Proposed, approved, applied, undone.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use stafette_core::change::{
    Action, Author, ChangeId, ChangeRules, ChangeStatus, FileEdit, Proposal,
};
use stafette_core::{AgentName, RunId};
use stafette_workspace::{Base, ChangeError, Worktrees};

use crate::world::{World, edit, rules, validated};

#[tokio::test]
async fn s4_06_a_set_is_applied_whole_and_undone_exactly() {
    let world = World::new();
    let (before, was) = (world.tree(), world.identities());
    let change = world.propose_everything().await;
    assert_eq!(world.tree(), before, "to propose changes nothing");
    let report = world.changes().apply(change.id, &validated("test -f new/folder/file.txt")).await;
    let report = report.expect("applied");
    assert_eq!(report.landed.len(), 1);
    assert_eq!(report.landed[0].status, ChangeStatus::Validated);
    assert_eq!(world.read("a.txt"), "one\n2\nthree\n");
    assert_eq!(world.read("now/deep/there.txt"), "moves\n");
    assert!(!world.path("old.txt").exists() && !world.path("was/here.txt").exists());
    let mode = fs::metadata(world.path("bin/run.sh")).expect("there").permissions().mode();
    assert_eq!(mode & 0o777, 0o750, "modes are kept");
    assert_eq!(world.read("linked.txt"), "alone\n");
    assert_eq!(world.read("other-name.txt"), "shared\n", "no hard link is written through");
    assert_eq!(world.identities().get(Path::new("keep.txt")), was.get(Path::new("keep.txt")));
    world.assert_tidy();

    let undone = world.changes().undo(change.id, false, &rules()).await.expect("undone");
    assert_eq!(undone.landed[0].status, ChangeStatus::Undone);
    assert_eq!(world.tree(), before);
    world.assert_tidy();
    let again = world.changes().undo(change.id, false, &rules()).await;
    assert!(matches!(again, Err(ChangeError::Status { .. })));
}

#[tokio::test]
async fn s4_07_deletions_own_logic_and_dependencies_wait_for_a_person() {
    let world = World::new();
    world.write("stafette.toml", "x = 1\n");
    for edits in [
        edit(Action::Delete, "old.txt", None),
        edit(Action::Modify, "stafette.toml", Some("x = 2\n")),
        edit(Action::Create, "web/package.json", Some("{}\n")),
    ] {
        let before = world.tree();
        let change = world.propose(vec![edits]).await.expect("proposed");
        assert!(change.waits_for_person());
        let refused = world.changes().apply(change.id, &rules()).await;
        assert!(matches!(refused, Err(ChangeError::NeedsPerson { .. })), "{refused:?}");
        assert_eq!(world.tree(), before);
        let all = world.land_all(&rules()).await.expect("looked at");
        assert!(all.landed.is_empty() && all.left[0].needs_person);
        world.changes().approve(change.id, "mia").await.expect("approved");
        let report = world.changes().apply(change.id, &rules()).await.expect("applied");
        assert_eq!(report.landed[0].approved_by.as_deref(), Some("mia"));
        assert_ne!(world.tree(), before);
    }
}

#[tokio::test]
async fn s4_07_the_rules_of_today_hold_for_the_sets_of_yesterday() {
    let world = World::new();
    let change = world.propose(vec![edit(Action::Modify, "a.txt", Some("x"))]).await;
    let change = change.expect("proposed");
    let pattern = || vec!["a.*".parse().expect("a pattern")];
    let own = ChangeRules { own: pattern(), ..rules() };
    let refused = world.changes().apply(change.id, &own).await;
    assert!(matches!(refused, Err(ChangeError::NeedsPerson { .. })));
    for spelled in ["a.*", "A.*"] {
        let protected = vec![spelled.parse().expect("a pattern")];
        let protected = ChangeRules { protected, ..rules() };
        let refused = world.changes().apply(change.id, &protected).await;
        assert!(matches!(refused, Err(ChangeError::Protected { .. })), "{spelled}");
    }
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\n");
}

#[tokio::test]
async fn s4_06_undo_tells_which_later_sets_stand_on_it() {
    let world = World::new();
    let before = world.tree();
    let mut ids = Vec::new();
    for (file, content) in [("a.txt", "1"), ("keep.txt", "2"), ("a.txt", "3"), ("old.txt", "4")] {
        let change = world.propose(vec![edit(Action::Modify, file, Some(content))]).await;
        let id = change.expect("proposed").id;
        world.changes().apply(id, &rules()).await.expect("applied");
        ids.push(id);
    }
    let refused = world.changes().undo(ids[0], false, &rules()).await;
    let Err(ChangeError::Later { later, .. }) = refused else { panic!("{refused:?}") };
    assert_eq!(later.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [ids[2]]);
    assert_eq!(world.read("a.txt"), "3");

    let report = world.changes().undo(ids[0], true, &rules()).await.expect("undone");
    assert_eq!(report.landed.len(), 2);
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\n");
    assert_eq!(world.read("keep.txt"), "2", "others stay");
    for id in [ids[1], ids[3]] {
        world.changes().undo(id, false, &rules()).await.expect("undone in any order");
    }
    assert_eq!(world.tree(), before);
}

#[tokio::test]
async fn s4_06_undo_does_not_write_over_what_somebody_made_of_it() {
    let world = World::new();
    let change = world.propose(vec![edit(Action::Modify, "a.txt", Some("ours"))]).await;
    let id = change.expect("proposed").id;
    world.changes().apply(id, &rules()).await.expect("applied");
    world.write("a.txt", "mine");
    let refused = world.changes().undo(id, false, &rules()).await;
    assert!(matches!(refused, Err(ChangeError::Edited { .. })), "{refused:?}");
    assert_eq!(world.read("a.txt"), "mine");
    world.write("a.txt", "one\ntwo\nthree\n");
    world.changes().undo(id, false, &rules()).await.expect("it had gone back already");
    assert_eq!(world.read("a.txt"), "one\ntwo\nthree\n");
}

#[tokio::test]
async fn s4_06_commits_hold_the_touched_files_before_and_after_and_leave_what_is_staged() {
    let world = World::with_git();
    world.write("a.txt", "mine, not committed\n");
    world.write("keep.txt", "staged\n");
    world.git(&["add", "keep.txt"]);
    world.write("keep.txt", "and changed further\n");
    world.write("build/out.txt", "ignored\n");
    let rules = ChangeRules { commit: true, ..rules() };
    let edits = vec![
        edit(Action::Modify, "a.txt", Some("the agent's\n")),
        edit(Action::Create, "b/new.txt", Some("new\n")),
        edit(Action::Modify, "build/out.txt", Some("ignored too\n")),
    ];
    let change = world.propose(edits).await.expect("proposed");
    let report = world.changes().apply(change.id, &rules).await.expect("applied");
    let [note] = &report.landed[0].notes[..] else { panic!("one note: {report:?}") };
    assert!(note.contains("not committed of these files before"), "{note}");
    let commit = report.landed[0].commit.clone().expect("a commit");
    assert_eq!(world.git(&["rev-parse", "HEAD"]), commit);
    assert_eq!(world.git(&["symbolic-ref", "HEAD"]), "refs/heads/main");
    assert_eq!(world.git(&["show", "HEAD:a.txt"]), "the agent's");
    assert_eq!(world.git(&["show", "HEAD~1:a.txt"]), "mine, not committed");
    assert_eq!(world.git(&["show", "HEAD~2:a.txt"]), "one\ntwo\nthree");
    assert_eq!(world.git(&["diff", "--name-only", "HEAD~1", "HEAD"]), "a.txt\nb/new.txt");
    assert_eq!(world.git(&["log", "-1", "--format=%an %s"]), "Mia c1: a reason");
    assert_eq!(world.git(&["show", ":keep.txt"]), "staged", "what is staged stays staged");
    assert_eq!(world.git(&["status", "--porcelain"]), "MM keep.txt");

    world.changes().undo(change.id, false, &rules).await.expect("undone");
    assert_eq!(world.read("a.txt"), "mine, not committed\n");
    assert_eq!(world.git(&["log", "-1", "--format=%s"]), "Undo c1");
    assert_eq!(world.git(&["status", "--porcelain"]), "MM keep.txt");
}

#[tokio::test]
async fn s4_06_a_set_that_fails_leaves_the_branch_where_it_is() {
    let world = World::with_git();
    let head = world.git(&["rev-parse", "HEAD"]);
    world.write("a.txt", "mine\n");
    let change = world.propose(vec![edit(Action::Modify, "a.txt", Some("bad\n"))]).await;
    let rules = ChangeRules { commit: true, ..validated("false") };
    let id = change.expect("proposed").id;
    let report = world.changes().apply(id, &rules).await.expect("tried");
    assert_eq!(report.rolled_back.len(), 1);
    assert_eq!(world.git(&["rev-parse", "HEAD"]), head);
    assert_eq!(world.git(&["status", "--porcelain"]), " M a.txt");
    assert_eq!(world.read("a.txt"), "mine\n");
}

#[tokio::test]
async fn s4_06_a_document_with_the_fields_of_code_changes_is_a_proposal() {
    let world = World::new();
    let text = r#"{ "codeChanges": [
        { "file": "src/memory-cache.ts", "action": "create", "content": "export {}\n" },
        { "file": "a.txt", "action": "modify", "executable": true } ] }"#;
    let proposal = serde_json::from_str(text).expect("a proposal");
    let change = world.changes().propose(proposal, &rules()).await.expect("proposed");
    assert_eq!(change.id, ChangeId(1));
    world.changes().apply(change.id, &rules()).await.expect("applied");
    assert_eq!(world.read("src/memory-cache.ts"), "export {}\n");
    let mode = fs::metadata(world.path("a.txt")).expect("there").permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
}

#[tokio::test]
async fn s4_06_a_change_is_shown_line_by_line() {
    let world = World::new();
    let change = world.propose_everything().await;
    let diff = world.changes().diff(&change).expect("a diff");
    let first = &diff[0];
    let signs: String = first.hunks[0].lines.iter().map(|line| line.sign).collect();
    assert_eq!((signs.as_str(), first.added, first.removed), (" -+ ", 1, 1));
    assert_eq!((first.hunks[0].old_start, first.hunks[0].new_lines), (1, 3));
    assert_eq!((diff[3].added, diff[3].removed), (0, 1), "what is deleted is shown");
    assert_eq!((diff[4].added, diff[4].hunks[0].old_start), (1, 0));
    let binary = FileEdit { ..edit(Action::Create, "x.bin", Some("a\0b")) };
    let change = world.propose(vec![binary]).await.expect("proposed");
    assert_eq!(world.changes().diff(&change).expect("a diff")[0].unshown, Some("not a text"));
}

#[tokio::test]
async fn s4_06_comments_are_kept_with_the_change() {
    let world = World::new();
    let change = world.propose_everything().await;
    let place = Some(("a.txt".to_owned(), Some(2)));
    let changes = world.changes();
    let remark = changes.remark(change.id, "mia", place, "why 2?").expect("a place");
    changes.comment(change.id, remark.clone()).await.expect("kept");
    changes.comment(change.id, remark).await.expect("kept once");
    let elsewhere = Some(("keep.txt".to_owned(), None));
    assert!(changes.remark(change.id, "mia", elsewhere, "?").is_err());
    let comments = changes.get(change.id).expect("there").comments;
    assert_eq!((comments.len(), comments[0].line), (1, Some(2)));
}

#[tokio::test]
async fn s4_06_the_work_in_a_worktree_becomes_a_change() {
    let world = World::with_git();
    world.write("a.txt", "one\ntwo, not committed\nthree\n");
    let worktrees = Worktrees::new(&world.project, &world.path(".stafette")).await.expect("them");
    let run = RunId(uuid::Uuid::from_u128(7));
    let [ada, ben] = ["ada", "ben"].map(|name| name.parse::<AgentName>().expect("a name"));
    let first = worktrees.open(run, &ada, &Base::AsItIs).await.expect("a worktree");
    fs::write(first.folder.join("a.txt"), "one\n2\nthree\n").expect("written");
    fs::write(first.folder.join("new.txt"), "from ada\n").expect("written");
    // Another goes on with it, and commits a part.
    let next = worktrees.open(run, &ben, &Base::Of(first.clone())).await.expect("a worktree");
    fs::rename(next.folder.join("keep.txt"), next.folder.join("kept.txt")).expect("moved");
    fs::write(next.folder.join("bin/x.sh"), "#!/bin/sh\n").expect("written");
    let executable = fs::Permissions::from_mode(0o755);
    fs::set_permissions(next.folder.join("bin/x.sh"), executable).expect("set");

    let (drafts, left) = worktrees.difference(&next).await.expect("a difference");
    assert_eq!(left, []);
    let author = Author { run: Some(run), agent: Some(ben.clone()), ..Author::default() };
    let changes = world.changes();
    let change = changes.draft(drafts, author, "as asked".to_owned(), &rules()).await;
    let change = change.expect("proposed");
    let mut said: Vec<String> =
        change.edits.iter().map(|edit| format!("{:?} {}", edit.action, edit.file)).collect();
    said.sort();
    assert_eq!(
        said,
        ["Create bin/x.sh", "Create new.txt", "Modify a.txt", "Rename kept.txt"],
        "only what the agents have done, not what the user had not committed"
    );
    assert!(change.gates.is_empty());
    let report = changes.apply(change.id, &rules()).await.expect("applied");
    assert_eq!(report.landed.len(), 1);
    assert_eq!(world.read("a.txt"), "one\n2\nthree\n");
    assert_eq!(world.read("kept.txt"), "stays\n");
    let mode = fs::metadata(world.path("bin/x.sh")).expect("there").permissions().mode();
    assert_eq!(mode & 0o111, 0o111);

    std::os::unix::fs::symlink("a.txt", next.folder.join("link")).expect("linked");
    let (drafts, left) = worktrees.difference(&next).await.expect("a difference");
    assert_eq!(drafts.len(), 4, "what can be a change is one");
    assert_eq!((left[0].file.as_str(), left[0].why.as_str()), ("link", "it is a link"));
}

#[tokio::test]
async fn s4_06_a_revision_replaces_the_set_and_needs_a_new_yes() {
    let world = World::new();
    let changes = world.changes();
    let author = |handoff| Author {
        run: Some(RunId(uuid::Uuid::from_u128(7))),
        agent: Some("ada".parse().expect("a name")),
        handoff: Some(stafette_core::HandoffId(handoff)),
        ..Author::default()
    };
    let set = |content: &str, author, revises| Proposal {
        changes: vec![edit(Action::Modify, "a.txt", Some(content))],
        author,
        reason: "a reason".to_owned(),
        revises,
        printed: false,
        granted: false,
    };
    let first = changes.propose(set("1\n", author(1), None), &rules()).await.expect("proposed");
    let again = changes.propose(set("1\n", author(1), None), &rules()).await.expect("the same");
    assert_eq!(again.id, first.id, "a turn may be delivered twice");
    changes.approve(first.id, "mia").await.expect("approved");
    let again = changes.propose(set("1\n", author(1), None), &rules()).await.expect("the same");
    assert_eq!((again.id, again.status), (first.id, ChangeStatus::Approved), "the yes stays");
    let revised = set("2\n", author(3), Some(first.id));
    let revised = changes.propose(revised, &rules()).await.expect("revised");
    assert_eq!((revised.id, revised.revision), (first.id, 2));
    assert_eq!((revised.status, revised.approved_by), (ChangeStatus::Pending, None));
    let stranger = Author { agent: Some("ben".parse().expect("a name")), ..author(4) };
    let stolen = changes.propose(set("3\n", stranger, Some(first.id)), &rules()).await;
    assert!(matches!(stolen, Err(ChangeError::NotYours { .. })), "{stolen:?}");
    changes.apply(first.id, &rules()).await.expect("applied");
    assert_eq!(world.read("a.txt"), "2\n");
    let late = changes.propose(set("3\n", author(5), Some(first.id)), &rules()).await;
    assert!(matches!(late, Err(ChangeError::Status { .. })), "{late:?}");
    let refused = changes.propose(set("4\n", author(6), None), &rules()).await.expect("proposed");
    changes.refuse(refused.id, "mia").await.expect("refused");
    assert!(changes.apply(refused.id, &rules()).await.is_err());
}
