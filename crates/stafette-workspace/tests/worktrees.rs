//! Worktrees as their users see them: made, passed on, saved, cleared away.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use stafette_core::{AgentName, RunId};
use stafette_workspace::worktree::Quota;
use stafette_workspace::{Base, WorktreeError, Worktrees};
use tempfile::TempDir;

/// A repository in a folder whose name is not easy.
struct World {
    _folder: TempDir,
    project: PathBuf,
}

impl World {
    /// A repository without a commit.
    fn empty() -> World {
        let folder = tempfile::tempdir().expect("a folder");
        let project = folder.path().join("my prøject ✓");
        fs::create_dir(&project).expect("a folder");
        git(&project, &["init", "-q", "-b", "main"]);
        git(&project, &["config", "user.name", "Mia"]);
        git(&project, &["config", "user.email", "mia@example.org"]);
        fs::create_dir(project.join(".stafette")).expect("a folder");
        fs::write(project.join(".stafette/.gitignore"), "*\n").expect("written");
        World { _folder: folder, project }
    }

    fn new() -> World {
        let world = World::empty();
        fs::write(world.project.join("a.txt"), "one\n").expect("written");
        fs::write(world.project.join(".gitignore"), "target\n").expect("written");
        git(&world.project, &["add", "."]);
        git(&world.project, &["commit", "-q", "-m", "first"]);
        world
    }

    async fn worktrees(&self) -> Worktrees {
        let home = self.project.join(".stafette");
        Worktrees::new(&self.project, &home).await.expect("a repository")
    }

    fn status(&self) -> String {
        git(&self.project, &["status", "--porcelain"])
            + &git(&self.project, &["branch", "--show-current"])
    }
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(folder).output().expect("git");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "git {arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

fn run(number: u128) -> RunId {
    RunId(uuid::Uuid::from_u128(number))
}

fn agent(name: &str) -> AgentName {
    name.parse().expect("a name")
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path.as_ref()).unwrap_or_else(|_| panic!("no {}", path.as_ref().display()))
}

#[tokio::test]
async fn b_08_each_agent_has_a_worktree_and_the_users_checkout_is_left_alone() {
    let world = World::new();
    fs::write(world.project.join("a.txt"), "changed by the user\n").expect("written");
    fs::write(world.project.join("staged.txt"), "x").expect("written");
    git(&world.project, &["add", "staged.txt"]);
    let before = world.status();
    let worktrees = world.worktrees().await;
    let builder = worktrees.open(run(1), &agent("builder"), &Base::Committed).await.expect("open");
    let reviewer = worktrees.open(run(1), &agent("odd..name"), &Base::AsItIs).await.expect("open");
    assert_eq!(builder.branch, "stafette/00000001/builder");
    assert_eq!(read(builder.path.join("a.txt")), "one\n", "uncommitted changes are not in it");
    assert_eq!(read(reviewer.path.join("a.txt")), "changed by the user\n", "unless asked for");
    assert_eq!(read(reviewer.path.join("staged.txt")), "x");
    assert!(reviewer.path.starts_with(builder.path.parent().expect("a folder")), "no way out");
    assert_eq!(git(&reviewer.path, &["status", "--porcelain"]), " M a.txt\n?? staged.txt\n");
    fs::write(builder.path.join("b.txt"), "new").expect("written");
    let again = worktrees.open(run(1), &agent("builder"), &Base::Committed).await.expect("again");
    assert_eq!(again, builder);
    assert_eq!(read(again.path.join("b.txt")), "new", "it is as its agent left it");
    assert_eq!(world.status(), before);
}

#[tokio::test]
async fn b_08_a_repository_without_commits_and_a_project_in_a_subfolder_work_too() {
    let world = World::empty();
    fs::write(world.project.join("draft.txt"), "x").expect("written");
    let worktrees = world.worktrees().await;
    let builder = worktrees.open(run(1), &agent("b"), &Base::AsItIs).await.expect("open");
    assert_eq!(read(builder.path.join("draft.txt")), "x");
    let unborn =
        Command::new("git").args(["rev-parse", "HEAD"]).current_dir(&world.project).output();
    assert!(!unborn.expect("git").status.success(), "the first commit is the user's");

    let sub = world.project.join("packages/web");
    fs::create_dir_all(sub.join(".stafette")).expect("folders");
    let worktrees = Worktrees::new(&sub, &sub.join(".stafette")).await.expect("a repository");
    let builder = worktrees.open(run(2), &agent("b"), &Base::Committed).await.expect("open");
    assert_eq!(builder.folder, builder.path.join("packages/web"));
    assert!(builder.folder.is_dir());

    let nowhere = tempfile::tempdir().expect("a folder");
    let none = Worktrees::new(nowhere.path(), &nowhere.path().join(".stafette")).await;
    assert!(matches!(none, Err(WorktreeError::NoRepository { .. })), "{none:?}");
}

#[tokio::test]
async fn b_08_what_a_crash_left_behind_is_mended_and_no_work_is_lost() {
    let world = World::new();
    let worktrees = world.worktrees().await;
    let name = agent("builder");
    let open = async || worktrees.open(run(1), &name, &Base::Committed).await.expect("open");

    // Killed while git made the worktree: noted, not ready, half a checkout, locked by git.
    let first = open().await;
    let note = first.path.parent().expect("a folder").join(".notes/builder.json");
    let ready = read(&note);
    fs::write(&note, r#"{"branch":"stafette/00000001/builder","name":null}"#).expect("written");
    fs::remove_file(first.path.join("a.txt")).expect("removed");
    fs::write(first.git_own().join("locked"), "initializing").expect("written");
    let second = open().await;
    assert_eq!(read(second.path.join("a.txt")), "one\n");
    assert_eq!(read(&note), ready);

    // An agent was killed while its git wrote the index.
    fs::write(second.path.join("work.txt"), "x").expect("written");
    fs::write(second.git_own().join("index.lock"), "").expect("written");
    fs::remove_file(second.path.join(".git")).expect("removed");
    let third = open().await;
    git(&third.path, &["add", "work.txt"]);

    // Git has forgotten the worktree, and then our note is gone as well.
    fs::remove_dir_all(third.git_own()).expect("removed");
    let fourth = open().await;
    assert_eq!(git(&fourth.path, &["status", "--porcelain"]), "?? work.txt\n");
    fs::remove_file(&note).expect("removed");
    let fifth = open().await;
    assert_eq!(read(fifth.path.join("work.txt")), "x");

    // Somebody removed the folder.
    git(&fifth.path, &["add", "."]);
    git(&fifth.path, &["commit", "-q", "-m", "work"]);
    fs::remove_dir_all(&fifth.path).expect("removed");
    let sixth = open().await;
    assert_eq!(read(sixth.path.join("work.txt")), "x", "what is committed is on the branch");
}

#[tokio::test]
async fn b_08_the_baton_carries_commits_and_uncommitted_work() {
    let world = World::new();
    let worktrees = world.worktrees().await;
    let builder = worktrees.open(run(1), &agent("builder"), &Base::Committed).await.expect("open");
    let reviewer =
        worktrees.open(run(1), &agent("reviewer"), &Base::Committed).await.expect("open");
    fs::write(builder.path.join("done.txt"), "committed").expect("written");
    git(&builder.path, &["add", "."]);
    git(&builder.path, &["commit", "-q", "-m", "done"]);
    fs::write(builder.path.join("a.txt"), "edited\n").expect("written");
    fs::write(builder.path.join("new file.txt"), "untracked").expect("written");
    fs::create_dir(builder.path.join("target")).expect("a folder");
    fs::write(builder.path.join("target/x"), "ignored").expect("written");
    fs::write(reviewer.path.join("my notes.txt"), "of the reviewer").expect("written");
    fs::create_dir(reviewer.path.join("target")).expect("a folder");
    fs::write(reviewer.path.join("target/cache"), "stays").expect("written");

    let passed = worktrees.advance(&builder, &reviewer).await.expect("passed");
    let head = git(&builder.path, &["rev-parse", "HEAD"]);
    assert_eq!(git(&reviewer.path, &["rev-parse", "HEAD"]), head);
    assert_eq!(
        git(&reviewer.path, &["status", "--porcelain"]),
        git(&builder.path, &["status", "--porcelain"]),
        "what is uncommitted stays uncommitted"
    );
    assert_eq!(read(reviewer.path.join("new file.txt")), "untracked");
    assert_eq!(read(reviewer.path.join("target/cache")), "stays");
    assert!(!reviewer.path.join("my notes.txt").exists());
    let kept = passed.kept.expect("the reviewer had something");
    assert_eq!(
        git(&world.project, &["show", &format!("{}:my notes.txt", kept.name)]),
        "of the reviewer"
    );
    assert!(passed.given.is_some());

    // The reviewer commits on a line of its own while the builder goes on: nothing is lost.
    git(&reviewer.path, &["commit", "-q", "-a", "-m", "mine"]);
    let mine = git(&reviewer.path, &["rev-parse", "HEAD"]);
    fs::write(reviewer.path.join("note"), "x").expect("written");
    let passed = worktrees.advance(&builder, &reviewer).await.expect("passed");
    let kept = passed.kept.expect("kept");
    assert_eq!(git(&world.project, &["rev-parse", &format!("{}^1", kept.commit)]), mine);
    worktrees.advance(&builder, &reviewer).await.expect("again");
    assert_eq!(git(&reviewer.path, &["rev-parse", "HEAD"]), head);

    worktrees.restore(&kept, &reviewer).await.expect("restored");
    assert_eq!(git(&reviewer.path, &["rev-parse", "HEAD"]), mine);
    assert_eq!(read(reviewer.path.join("note")), "x");
}

#[tokio::test]
async fn b_08_uncommitted_work_is_saved_before_a_worktree_goes() {
    let world = World::new();
    let worktrees = world.worktrees().await;
    let builder = worktrees.open(run(1), &agent("builder"), &Base::Committed).await.expect("open");
    assert_eq!(worktrees.snapshot(&builder, "nothing").await.expect("looked"), None);
    // Staged and changed again, new, hidden from git's index, and on no branch.
    git(&builder.path, &["checkout", "-q", "--detach"]);
    fs::write(builder.path.join("lonely.txt"), "x").expect("written");
    git(&builder.path, &["add", "."]);
    git(&builder.path, &["commit", "-q", "-m", "lonely"]);
    fs::write(builder.path.join("staged.txt"), "staged").expect("written");
    git(&builder.path, &["add", "staged.txt"]);
    fs::write(builder.path.join("staged.txt"), "changed again").expect("written");
    git(&builder.path, &["update-index", "--assume-unchanged", "a.txt"]);
    fs::write(builder.path.join("a.txt"), "hidden change\n").expect("written");
    let index = fs::read(builder.git_own().join("index")).expect("read");

    let saved = worktrees.snapshot(&builder, "test").await.expect("saved").expect("something");
    assert_eq!(fs::read(builder.git_own().join("index")).expect("read"), index);
    assert_eq!(saved.name, format!("refs/stafette/snapshots/{}/builder/1", run(1)));
    let same = worktrees.snapshot(&builder, "again").await.expect("saved");
    assert_eq!(same, Some(saved.clone()), "nothing has changed");
    let closed = worktrees.close(&builder, "over").await.expect("closed").expect("saved");
    assert_eq!(closed.commit, saved.commit);
    assert!(!builder.path.exists() && !builder.git_own().exists());
    let show = |what: &str| git(&world.project, &["show", &format!("{}{what}", saved.name)]);
    assert_eq!(show(":staged.txt"), "changed again");
    assert_eq!(show("^2:staged.txt"), "staged");
    assert_eq!(show(":a.txt"), "hidden change\n");
    assert_eq!(show("^1:lonely.txt"), "x");

    let back = worktrees.open(run(1), &agent("builder"), &Base::Committed).await.expect("open");
    worktrees.restore(&saved, &back).await.expect("restored");
    assert_eq!(read(back.path.join("staged.txt")), "changed again");
    assert_eq!(read(back.path.join("lonely.txt")), "x");
}

#[tokio::test]
async fn b_08_a_worktree_whose_work_cannot_be_saved_stays() {
    let world = World::new();
    let worktrees = world.worktrees().await;
    let builder = worktrees.open(run(1), &agent("builder"), &Base::Committed).await.expect("open");
    let inner = builder.path.join("vendor/lib");
    fs::create_dir_all(&inner).expect("folders");
    git(&inner, &["init", "-q"]);
    fs::write(inner.join("x"), "x").expect("written");
    let refused = worktrees.close(&builder, "over").await;
    assert!(matches!(refused, Err(WorktreeError::NotSaved { .. })), "{refused:?}");
    git(&inner, &["add", "."]);
    git(&inner, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"]);
    let refused = worktrees.close(&builder, "over").await.expect_err("its commits are its own");
    assert!(refused.to_string().contains("vendor/lib"), "{refused}");
    assert!(inner.join("x").exists());
    fs::remove_dir_all(inner.join(".git")).expect("removed");
    worktrees.close(&builder, "over").await.expect("closed");
    assert!(!builder.path.exists());
}

#[tokio::test]
async fn b_08_nothing_that_an_agent_writes_has_our_git_start_a_program() {
    let world = World::new();
    let worktrees = world.worktrees().await;
    let builder = worktrees.open(run(1), &agent("builder"), &Base::Committed).await.expect("open");
    let trap = builder.path.join("sprung");
    let hostile = builder.path.join("hostile");
    fs::create_dir(&hostile).expect("a folder");
    git(&hostile, &["init", "-q"]);
    git(&hostile, &["config", "core.fsmonitor", &format!("touch '{}'", trap.display())]);
    fs::write(builder.path.join(".git"), format!("gitdir: {}/.git\n", hostile.display()))
        .expect("written");
    fs::write(builder.git_own().join("commondir"), format!("{}/.git\n", hostile.display()))
        .expect("written");
    fs::write(hostile.join("x"), "x").expect("written");
    let _ = worktrees.snapshot(&builder, "test").await;
    let _ = worktrees.close(&builder, "test").await;
    assert!(!trap.exists());
}

#[tokio::test]
async fn b_08_the_outcome_lands_on_a_branch_for_the_user() {
    let world = World::new();
    let worktrees = world.worktrees().await;
    let builder = worktrees.open(run(1), &agent("builder"), &Base::Committed).await.expect("open");
    fs::write(builder.path.join("b.txt"), "new").expect("written");
    let before = world.status();
    let branch = Worktrees::result_branch(run(1));
    let landed = worktrees.land(&builder, &branch).await.expect("landed");
    assert_eq!(git(&world.project, &["show", &format!("{branch}:b.txt")]), "new");
    assert_eq!(git(&world.project, &["show", "-s", "--format=%an", &branch]), "Mia\n");
    let again = worktrees.land(&builder, &branch).await.expect("again");
    assert_eq!(again, landed, "landing twice lands once");
    fs::write(builder.path.join("b.txt"), "other").expect("written");
    let refused = worktrees.land(&builder, &branch).await;
    assert!(matches!(refused, Err(WorktreeError::Diverged { .. })), "{refused:?}");
    let refused = worktrees.land(&builder, "main").await;
    assert!(matches!(refused, Err(WorktreeError::CheckedOut { .. })), "{refused:?}");
    assert_eq!(world.status(), before);
    assert_eq!(git(&builder.path, &["status", "--porcelain"]), "?? b.txt\n");
}

#[tokio::test]
async fn b_08_garbage_goes_by_age_and_size_but_never_from_a_living_run() {
    let world = World::new();
    let worktrees = world.worktrees().await;
    let mut opened = Vec::new();
    for number in 1..=4 {
        let worktree =
            worktrees.open(run(number), &agent("b"), &Base::Committed).await.expect("open");
        fs::write(worktree.path.join("big"), vec![1; 1 << 20]).expect("written");
        let note = worktree.path.with_file_name(".notes").join("b.json");
        let day = Duration::from_secs(86_400);
        let used = SystemTime::now() - day * (10 - u32::try_from(number).expect("small"));
        fs::File::options()
            .append(true)
            .open(note)
            .expect("there")
            .set_modified(used)
            .expect("set");
        opened.push(worktree);
    }
    let now = SystemTime::now();
    let quota = Quota { max_bytes: 3 << 20, max_age: Duration::from_secs(30 * 86_400), keep: 1 };
    let living = |id: RunId| id == run(1);
    let collected = worktrees.gc(&quota, living, now).await.expect("collected");
    assert_eq!(collected.worktrees, [opened[1].path.clone(), opened[2].path.clone()]);
    assert!(collected.freed >= 2 << 20 && collected.used <= 3 << 20, "{collected:?}");
    assert!(opened[0].path.exists() && opened[3].path.exists(), "living, and the newest");
    assert_eq!(worktrees.snapshots(run(2), &agent("b")).await.expect("listed").len(), 1);
    assert_eq!(collected.branches.len(), 2, "the user's branch has all that was committed");

    let year = Duration::from_secs(365 * 86_400);
    let quota = Quota { max_bytes: u64::MAX, max_age: Duration::from_secs(86_400), keep: 0 };
    let collected = worktrees.gc(&quota, living, now + year).await.expect("collected");
    assert_eq!(collected.worktrees, [opened[3].path.clone()]);
    assert_eq!(collected.snapshots.len(), 3);
    assert!(opened[0].path.exists());
    assert!(collected.kept.is_empty());
}
