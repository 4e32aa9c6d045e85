//! Repositories and agents that would have our git start a program of theirs.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use stafette_core::{AgentName, RunId};
use stafette_workspace::{Base, Provenance, Worktree, Worktrees, fingerprint, provenance};
use tempfile::TempDir;

fn git(folder: &Path, arguments: &[&str]) -> String {
    let name = ["-c", "user.name=t", "-c", "user.email=t@t", "-c", "init.defaultBranch=main"];
    let output =
        Command::new("git").args(name).args(arguments).current_dir(folder).output().expect("git");
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn write(path: PathBuf, text: &str) {
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    fs::write(path, text).expect("written");
}

/// A folder, and a file in it that exists once a program of the attacker has run.
struct World {
    folder: TempDir,
}

impl World {
    fn new() -> World {
        World { folder: tempfile::tempdir().expect("a folder") }
    }

    fn at(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    fn program(&self) -> String {
        format!("touch '{}'; false", self.at("sprung").display())
    }

    fn is_safe(&self, after: &str) {
        assert!(!self.at("sprung").exists(), "{after}");
    }

    /// Every setting that names a program, for an index that needs objects which are not there.
    fn settings(&self) -> String {
        let program = self.program();
        format!(
            r#"
[core]
    repositoryformatversion = 1
    bare = false
    worktree = .
    sparseCheckout = true
    sparseCheckoutCone = true
    fsmonitor = "{program}"
    sshCommand = "{program}"
    alternateRefsCommand = "{program}"
[index]
    sparse = true
[protocol "file"]
    allow = always
[extensions]
    partialClone = o
[remote "o"]
    url = /tmp
    promisor = true
    uploadpack = "{program}"
[filter "x"]
    clean = "{program}"
    process = "{program}"
    required = true
"#
        )
    }

    /// Makes `folder` look like a repository by itself, as a clone can bring it along.
    fn disguise(&self, folder: &Path) {
        let sparse = self.at("sparse");
        if !sparse.exists() {
            for name in ["aa", "bb"] {
                write(sparse.join(name).join("f"), name);
            }
            git(&sparse, &["init", "-q"]);
            git(&sparse, &["add", "."]);
            git(&sparse, &["commit", "-qm", "x"]);
            git(&sparse, &["sparse-checkout", "set", "--cone", "--sparse-index", "aa"]);
        }
        for name in ["index", "HEAD", "info/sparse-checkout"] {
            fs::create_dir_all(folder.join("info")).expect("a folder");
            fs::copy(sparse.join(".git").join(name), folder.join(name)).expect("copied");
        }
        for name in ["objects/.keep", "refs/.keep"] {
            write(folder.join(name), "");
        }
        write(folder.join("config"), &self.settings());
    }
}

async fn of(folder: &Path, name: &str) -> Provenance {
    provenance(folder, name).await.expect("an answer")
}

#[tokio::test]
async fn b_20_a_folder_of_a_clone_that_looks_like_a_repository_is_none() {
    let world = World::new();
    let top = world.at("clone");
    for folder in ["proj", "proj/.coord/handoffs/pending"] {
        world.disguise(&top.join(folder));
    }
    write(top.join("proj/.gitattributes"), "* filter=x\n");
    write(top.join("proj/.stafette/store.db"), "x");
    write(top.join("proj/.coord/handoffs/pending/paid.json"), "{}");
    git(&top, &["init", "-q"]);
    git(&top, &["add", "--all", "--force"]);
    git(&top, &["commit", "-qm", "x"]);

    let (proj, pending) = (top.join("proj"), top.join("proj/.coord/handoffs/pending"));
    assert_eq!(of(&proj, ".stafette").await, Provenance::Tracked);
    assert_eq!(of(&pending, "paid.json").await, Provenance::Tracked);
    assert_eq!(of(&pending, "other.json").await, Provenance::Untracked);
    let print = fingerprint(&proj).await;
    assert!(print.is_some());
    write(proj.join("new"), "x");
    assert_ne!(fingerprint(&proj).await, print);
    let worktrees = Worktrees::new(&proj, &world.at("home")).await.expect("the clone is one");
    let run = RunId(uuid::Uuid::from_u128(1));
    let agent = worktrees.open(run, &named("a"), &Base::Committed).await.expect("a worktree");
    assert!(agent.folder.ends_with("proj"));
    world.is_safe("a clone");
}

#[tokio::test]
async fn b_20_an_archive_with_settings_of_its_own_starts_nothing_when_it_is_looked_at() {
    let world = World::new();
    let top = world.at("archive");
    write(top.join("stafette.toml"), "");
    write(top.join(".gitattributes"), "* filter=x\n");
    git(&world.at(""), &["init", "-q", "archive"]);
    world.disguise(&top.join(".git"));
    let _ = provenance(&top, ".stafette").await;
    world.is_safe("an index without its objects");
    fs::remove_file(top.join(".git/index")).expect("removed");
    assert_eq!(of(&top, ".stafette").await, Provenance::Untracked);
    assert!(fingerprint(&top).await.is_some());
    world.is_safe("an archive");

    // A repository that leads to another one, and an index that nobody can read to its end.
    write(top.join(".git/commondir"), "../elsewhere\n");
    let refused = provenance(&top, "x").await.expect_err("it leads elsewhere");
    assert!(refused.to_string().contains("commondir"), "{refused}");
    fs::remove_file(top.join(".git/commondir")).expect("removed");
    let pipe = Command::new("mkfifo").arg(top.join(".git/index")).status();
    assert!(pipe.expect("mkfifo").success());
    assert!(provenance(&top, "x").await.is_err());
}

fn named(name: &str) -> AgentName {
    name.parse().expect("a name")
}

/// A project with the worktree of an agent.
async fn agents_world() -> (World, Worktrees, Worktree) {
    let world = World::new();
    let project = world.at("project");
    write(project.join("inner/a.txt"), "one\n");
    git(&project, &["init", "-q"]);
    git(&project, &["add", "."]);
    git(&project, &["commit", "-qm", "first"]);
    git(&project, &["config", "extensions.worktreeConfig", "true"]);
    let worktrees =
        Worktrees::new(&project.join("inner"), &world.at("home")).await.expect("a repository");
    let run = RunId(uuid::Uuid::from_u128(1));
    let worktree = worktrees.open(run, &named("a"), &Base::Committed).await.expect("a worktree");
    (world, worktrees, worktree)
}

/// Everything that the daemon does with a worktree once its agent is idle.
async fn handled(worktrees: &Worktrees, worktree: &Worktree) {
    fingerprint(&worktree.folder).await;
    worktrees.snapshot(worktree, "test").await.expect("saved");
    worktrees.difference(worktree).await.expect("compared");
    let next = worktrees.open(worktree.run, &named("b"), &Base::Of(worktree.clone())).await;
    let next = next.expect("the next");
    worktrees.advance(worktree, &next).await.expect("passed on");
    write(next.folder.join("b.txt"), "from the next\n");
    worktrees.advance(&next, worktree).await.expect("passed back");
    worktrees.land(worktree, "result").await.expect("landed");
    worktrees.close(worktree, "over").await.expect("closed");
    worktrees.close(&next, "over").await.expect("closed");
}

#[tokio::test]
async fn b_08_no_settings_that_an_agent_writes_are_obeyed_by_our_git() {
    let (world, worktrees, worktree) = agents_world().await;
    let (own, common) = (worktree.git_own().to_owned(), worktree.git_common().to_owned());
    let evil = world.at("evil");
    git(&world.at(""), &["init", "-q", "--bare", "evil"]);
    let objects = common.join("objects");
    write(evil.join("objects/info/alternates"), &format!("{}\n", objects.display()));
    let filter =
        format!("[filter \"x\"]\n clean = \"{p}\"\n process = \"{p}\"\n", p = world.program());
    write(evil.join("config"), &format!("[core]\n repositoryformatversion = 0\n{filter}"));
    write(worktree.folder.join(".gitattributes"), "* filter=x\n");
    write(worktree.folder.join("a.txt"), "two\n");
    write(own.join("commondir"), &format!("{}\n", evil.display()));
    write(own.join("config.worktree"), &filter);
    // A repository of its own where the project is.
    git(&worktree.folder, &["init", "-q"]);
    write(worktree.folder.join(".git/config"), &filter);
    fingerprint(&worktree.folder).await;
    world.is_safe("a fingerprint");
    fs::remove_dir_all(worktree.folder.join(".git")).expect("removed");

    handled(&worktrees, &worktree).await;
    world.is_safe("the daemon's work");
    let project = world.at("project");
    assert!(git(&project, &["log", "--all", "--format=%s"]).contains("first"));
    assert_eq!(git(&project, &["worktree", "list"]).lines().count(), 1);
    assert_eq!(git(&project, &["show", "result:inner/a.txt"]), "two\n");
}

#[tokio::test]
async fn b_08_no_link_that_an_agent_leaves_in_gits_folders_is_written_through() {
    let (world, worktrees, worktree) = agents_world().await;
    let (own, common) = (worktree.git_own().to_owned(), worktree.git_common().to_owned());
    let log = common.join("logs/refs/heads").join(&worktree.branch);
    let targets = ["index", "head", "branch"].map(|name| world.at(name));
    for (link, target) in [own.join("index"), own.join("logs/HEAD"), log].iter().zip(&targets) {
        let _ = fs::remove_file(link);
        fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
        symlink(target, link).expect("a link");
    }
    write(worktree.folder.join("a.txt"), "two\n");
    handled(&worktrees, &worktree).await;
    for target in targets {
        assert!(!target.exists(), "{}", target.display());
    }
}

/// Runs git as an agent does in its sandbox, where its own objects lie over the shared ones.
fn inside(worktree: &Worktree, arguments: &[&str]) -> String {
    let name = ["-c", "user.name=a", "-c", "user.email=a@a"];
    let mut command = Command::new("git");
    command.args(name).args(arguments).current_dir(&worktree.path);
    command.env("GIT_OBJECT_DIRECTORY", worktree.lent().join("objects"));
    command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", worktree.git_common().join("objects"));
    let output = command.output().expect("git");
    assert!(output.status.success(), "git {arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text").trim_end().to_owned()
}

/// Commits everything in the sandbox, and moves the branch there.
fn commit_inside(worktree: &Worktree, message: &str) -> String {
    inside(worktree, &["add", "--all"]);
    let tree = inside(worktree, &["write-tree"]);
    let commit = inside(worktree, &["commit-tree", &tree, "-p", "HEAD", "-m", message]);
    let branch = worktree.branch.rsplit('/').next().expect("a name");
    write(worktree.lent().join("heads").join(branch), &format!("{commit}\n"));
    commit
}

fn object(folder: &Path, name: &str) -> PathBuf {
    folder.join("objects").join(&name[..2]).join(&name[2..])
}

#[tokio::test]
async fn b_08_objects_of_a_sandboxed_agent_are_taken_in_by_their_content_and_nothing_else() {
    let (world, worktrees, worktree) = agents_world().await;
    let (project, lent) = (world.at("project"), worktree.lent());
    write(worktree.folder.join("a.txt"), "two\n");
    let commit = commit_inside(&worktree, "work");
    write(worktree.folder.join("staged.txt"), "staged\n");
    inside(&worktree, &["add", "--all"]);
    assert_ne!(git(&project, &["rev-parse", &worktree.branch]).trim_end(), commit, "not yet");
    // The name of a file of the user's with another content, and objects of another repository.
    let other = inside(&worktree, &["rev-parse", &format!("{commit}:inner/a.txt")]);
    let name = git(&project, &["rev-parse", "main:inner/a.txt"]).trim_end().to_owned();
    fs::create_dir_all(object(&lent, &name).parent().expect("a folder")).expect("a folder");
    fs::copy(object(&lent, &other), object(&lent, &name)).expect("copied");
    let private = world.at("private");
    write(private.join("secret"), "secret\n");
    git(&private, &["init", "-q"]);
    let secret = git(&private, &["hash-object", "-w", "secret"]).trim_end().to_owned();
    let alternates = format!("{}\n", private.join(".git/objects").display());
    write(lent.join("objects/info/alternates"), &alternates);

    worktrees.collect(&worktree).await.expect("taken in");
    assert_eq!(git(&project, &["rev-parse", &worktree.branch]).trim_end(), commit);
    assert_eq!(git(&project, &["show", "main:inner/a.txt"]), "one\n");
    git(&project, &["fsck", "--strict"]);
    let has = Command::new("git").args(["cat-file", "-e", &secret]).current_dir(&project).output();
    assert!(!has.expect("git").status.success(), "nothing of another repository");
    assert!(!object(&lent, &commit).exists(), "it is in the repository now");
    assert_eq!(git(&worktree.path, &["diff", "--cached", "--name-only"]), "inner/staged.txt\n");

    // On another branch of its own, its commits stay what is checked out.
    write(worktree.folder.join("b.txt"), "b\n");
    let aside = commit_inside(&worktree, "aside");
    write(lent.join("heads/a"), &format!("{commit}\n"));
    write(lent.join("heads/aside"), &format!("{aside}\n"));
    let head = worktree.branch.replace("/a", "/aside");
    write(worktree.git_own().join("HEAD"), &format!("ref: refs/heads/{head}\n"));
    worktrees.collect(&worktree).await.expect("taken in");
    assert_eq!(git(&worktree.path, &["rev-parse", "HEAD"]).trim_end(), aside);

    // Many at once go together, and what is not whole moves no branch.
    for number in 0..150 {
        write(worktree.folder.join(format!("many/{number}")), &format!("{number}"));
    }
    let many = commit_inside(&worktree, "many");
    worktrees.collect(&worktree).await.expect("taken in");
    assert_eq!(git(&project, &["rev-parse", &worktree.branch]).trim_end(), many);
    write(worktree.folder.join("a.txt"), "three\n");
    let torn = commit_inside(&worktree, "torn");
    let blob = inside(&worktree, &["rev-parse", &format!("{torn}:inner/a.txt")]);
    fs::remove_file(object(&lent, &blob)).expect("removed");
    worktrees.collect(&worktree).await.expect_err("something is missing");
    assert_eq!(git(&project, &["rev-parse", &worktree.branch]).trim_end(), many);
}

#[tokio::test]
async fn b_08_what_an_agent_writes_as_checked_out_does_not_disturb_the_users_git() {
    for head in ["evil", "0123456789012345678901234567890123456789", "ref: refs/heads/none"] {
        let (world, worktrees, worktree) = agents_world().await;
        write(worktree.git_own().join("HEAD"), &format!("{head}\n"));
        worktrees.collect(&worktree).await.expect("taken in");
        assert_eq!(git(&world.at("project"), &["log", "--all", "--format=%s"]), "first\n");
        handled(&worktrees, &worktree).await;
    }
}

/// Makes a pipe in the place of a file.
fn pipe(path: &Path) {
    let _ = fs::remove_file(path);
    fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
    assert!(Command::new("mkfifo").arg(path).status().expect("mkfifo").success());
}

#[tokio::test]
async fn b_20_a_pipe_that_an_agent_leaves_in_its_part_of_the_repository_holds_up_nothing() {
    let world = World::new();
    let top = world.at("project");
    write(top.join("file"), "x");
    git(&top, &["init", "-q"]);
    git(&top, &["add", "."]);
    git(&top, &["commit", "-qm", "x"]);
    let worktrees = Worktrees::new(&top, &world.at("home")).await.expect("worktrees");
    let (run, agent) = (RunId(uuid::Uuid::from_u128(1)), named("a"));
    let open = async || worktrees.open(run, &agent, &Base::Committed).await.expect("open");
    for name in [
        "index",
        "HEAD",
        "ORIG_HEAD",
        "logs/HEAD",
        "config.worktree",
        "commondir",
        "gitdir",
        "lent/objects/pack/pack-1.pack",
        "lent/objects/aa/bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb",
        "lent/objects/info/alternates",
        "lent/heads/a",
    ] {
        let worktree = open().await;
        write(worktree.folder.join("work"), name);
        pipe(&worktree.git_own().join(name));
        let all = async {
            let worktree = open().await;
            let kept = worktrees.snapshot(&worktree, "x").await.expect("a snapshot");
            assert!(kept.is_some(), "{name}");
        };
        tokio::time::timeout(std::time::Duration::from_secs(60), all).await.expect(name);
    }
    let worktree = open().await;
    pipe(&worktree.folder.join(".gitattributes"));
    let kept = worktrees.snapshot(&worktree, "x");
    let kept = tokio::time::timeout(std::time::Duration::from_secs(60), kept).await.expect("ends");
    let said = kept.expect_err("git cannot read it");
    let path = worktree.folder.join(".gitattributes").display().to_string();
    assert!(said.to_string().contains(&path) && !said.may_pass(), "{said}");
}
