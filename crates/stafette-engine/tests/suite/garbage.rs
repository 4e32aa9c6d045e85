//! What is over is cleared away.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use stafette_core::{AgentName, RunId};
use stafette_engine::garbage;
use stafette_store::MemoryStore;
use stafette_workspace::{Base, Worktrees};

use crate::runs::{opened, settings};

fn git(folder: &Path, words: &[&str]) -> String {
    let who = ["-c", "user.name=t", "-c", "user.email=t@t"];
    let done = Command::new("git").args(who).args(words).current_dir(folder).output();
    let done = done.expect("git");
    assert!(done.status.success(), "{words:?}: {done:?}");
    String::from_utf8(done.stdout).expect("UTF-8")
}

/// A worktree with uncommitted work of a run that nobody knows any more, last used long ago.
async fn forgotten(project: &Path, run: &str) -> PathBuf {
    let home = project.join(".state/worktrees");
    let worktrees = Worktrees::new(project, &home).await.expect("worktrees");
    let (run, agent): (RunId, AgentName) = (run.parse().expect("an id"), "a".parse().expect("a"));
    let worktree = worktrees.open(run, &agent, &Base::Committed).await.expect("a worktree");
    std::fs::write(worktree.path.join("work.txt"), "unsaved").expect("written");
    let long_ago = SystemTime::now() - Duration::from_secs(30 * 24 * 3600);
    let notes = worktree.path.with_file_name(".notes");
    for note in std::fs::read_dir(notes).expect("notes") {
        let note = File::options().append(true).open(note.expect("a note").path());
        note.expect("a note").set_modified(long_ago).expect("an older note");
    }
    worktree.path
}

#[tokio::test]
async fn b_08_worktrees_of_runs_that_are_over_go_and_their_work_is_saved_first() {
    let folder = tempfile::tempdir().expect("a folder");
    let project = folder.path();
    let state = settings(project).state;
    assert_eq!(garbage::clear(project, &state, |_| false).await.expect("looked"), None);
    git(project, &["init", "-q"]);
    git(project, &["commit", "-q", "--allow-empty", "-m", "first"]);
    let path = forgotten(project, "018f0000-0000-7000-8000-000000000001").await;
    // An engine that opens clears away, and is not gone before it has.
    opened(Arc::new(MemoryStore::new()), settings(project)).await.stop().await;
    assert!(!path.exists(), "{}", path.display());
    let saved = git(project, &["for-each-ref", "--format=%(refname)", "refs/stafette"]);
    let saved = saved.lines().next().expect("a snapshot");
    assert_eq!(git(project, &["show", &format!("{saved}:work.txt")]), "unsaved");

    let path = forgotten(project, "018f0000-0000-7000-8000-000000000002").await;
    let living =
        garbage::clear(project, &state, |_| true).await.expect("looked").expect("worktrees");
    assert_eq!((living.worktrees, path.exists()), (0, true), "what belongs to a living run stays");
    let cleared =
        garbage::clear(project, &state, |_| false).await.expect("looked").expect("worktrees");
    assert_eq!((cleared.worktrees, cleared.used, path.exists()), (1, 0, false), "{cleared:?}");
}
