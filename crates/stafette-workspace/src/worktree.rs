//! One git worktree for each agent of a run, so that no agent works in another's files.
//!
//! A worktree is in `worktrees/RUN/AGENT` of the project's state folder, on a branch
//! `stafette/RUN/AGENT`. Beside the worktrees of a run, in `.notes`, each of them is recorded:
//! where no agent can change it, and before the worktree is made, so that a half-made one after a
//! crash is recognised.
//!
//! Invariants:
//! - The user's checkout, index and branches are never changed.
//! - Nothing is removed, reset or overwritten before a snapshot of it is in the repository.
//! - Nothing outside of the worktrees' folder is removed.

mod baton;
mod diff;
mod difference;
mod garbage;
mod lent;
mod revision;
mod snapshot;

use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use stafette_core::{AgentName, RunId};
use thiserror::Error;
use tokio::sync::Mutex;

use crate::git::{GitError, Place};
use crate::removal::Ground;

pub use baton::{Landed, Passed};
pub use garbage::{Collected, Kept, Quota, Tidied};
pub use revision::Revision;
pub use snapshot::SnapshotRef;

/// The folder for folders that are about to be removed.
const TRASH: &str = ".trash";

/// The settings of git for one worktree, in its git folder.
const CONFIG: &str = "config.worktree";

/// The most that is read of what a worktree has checked out, in bytes.
const HEAD_BYTES: u64 = 4 * 1024;

/// The most that is read of a worktree's own settings, in bytes.
const CONFIG_BYTES: u64 = 1024 * 1024;

/// The most that is read of a record of a worktree, in bytes.
const NOTE_BYTES: u64 = 4 * 1024 * 1024;

/// The levels of folders in which links and pipes are looked for: git's own are fewer.
const LEVELS: usize = 32;

/// The reason why a worktree could not be opened, passed on, saved or removed.
#[derive(Debug, Error)]
pub enum WorktreeError {
    /// A git command failed.
    #[error(transparent)]
    Git(#[from] GitError),
    #[error("{} is not in a git repository: run `git init` there", folder.display())]
    NoRepository { folder: PathBuf },
    #[error("cannot {what} {}: {source}", path.display())]
    Files { what: &'static str, path: PathBuf, source: io::Error },
    #[error("{} stays, since its work could not be saved: {source}", path.display())]
    NotSaved { path: PathBuf, source: Box<WorktreeError> },
    #[error(
        "{} stays, since it has repositories of its own in it: {}; move or remove them",
        path.display(),
        list(nested)
    )]
    Nested { path: PathBuf, nested: Vec<PathBuf> },
    #[error("the branch {branch} is checked out in {}: choose another name", path.display())]
    CheckedOut { branch: String, path: PathBuf },
    #[error("the agent has made {bytes} bytes of objects, and a turn may add {most}")]
    TooMuch { bytes: u64, most: u64 },
    #[error("the branch {branch} has other work on it: choose another name, or remove it")]
    Diverged { branch: String },
}

impl WorktreeError {
    /// True if trying again may help: the cause is not the work itself.
    #[must_use]
    pub fn may_pass(&self) -> bool {
        match self {
            WorktreeError::Git(error) => !matches!(
                error,
                GitError::NoRepository { .. } | GitError::Waits { .. } | GitError::Linked { .. }
            ),
            WorktreeError::Files { .. } | WorktreeError::NotSaved { .. } => true,
            WorktreeError::NoRepository { .. }
            | WorktreeError::CheckedOut { .. }
            | WorktreeError::Nested { .. }
            | WorktreeError::TooMuch { .. }
            | WorktreeError::Diverged { .. } => false,
        }
    }
}

fn list(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}

/// The starting point of a new worktree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Base {
    /// The project's last commit.
    Committed,
    /// The last commit and the user's uncommitted changes, which stay uncommitted.
    AsItIs,
    /// The state of another agent's worktree, uncommitted work included.
    Of(Worktree),
}

/// The existing worktree of an agent.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Worktree {
    pub run: RunId,
    pub agent: AgentName,
    pub path: PathBuf,
    /// The project's folder in it, where its agent starts.
    pub folder: PathBuf,
    pub branch: String,
    place: Place,
}

impl Worktree {
    /// Returns the folder with this worktree's HEAD and index.
    pub fn git_own(&self) -> &Path {
        &self.place.own
    }

    /// Returns the folder that all worktrees share: objects, branches, hooks and settings.
    pub fn git_common(&self) -> &Path {
        &self.place.common
    }
}

/// All worktrees of a project.
#[derive(Debug)]
pub struct Worktrees {
    /// The user's own checkout.
    project: Place,
    /// The shared part of the repository, without a work tree.
    shared: Place,
    /// The path of the project within its checkout.
    prefix: PathBuf,
    root: PathBuf,
    /// Serialises git commands: git's own locks fail instead of waiting.
    turn: Mutex<()>,
}

/// The record of a worktree, stored beside it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Note {
    branch: String,
    /// Its name among the repository's worktrees; `None` while it is being made.
    name: Option<String>,
    /// Its own settings of git as they were made, which its agent must not change; `None` if it is
    /// older than this field.
    #[serde(default)]
    config: Option<String>,
    /// The commit of its branch when that was lent to its agent last.
    #[serde(default)]
    lent: Option<String>,
}

impl Worktrees {
    /// Tells git where the worktrees are, after their folder was moved.
    pub async fn repair(&self) -> Result<(), WorktreeError> {
        let folders = |folder: &Path| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
            let is_named = |path: &PathBuf| {
                path.is_dir()
                    && path.file_name().is_some_and(|it| !it.as_encoded_bytes().starts_with(b"."))
            };
            entries.map(|entry| entry.path()).filter(is_named).collect()
        };
        let paths: Vec<PathBuf> = folders(&self.root).iter().flat_map(|run| folders(run)).collect();
        if paths.is_empty() {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        let words = ["worktree", "repair"].map(PathBuf::from).into_iter().chain(paths);
        Ok(self.shared.git(words).run().await?)
    }

    /// Opens the worktrees of a project that keeps its state in `home`.
    pub async fn new(project: &Path, home: &Path) -> Result<Worktrees, WorktreeError> {
        let found = match Place::open(project).await {
            Err(GitError::Failed { .. }) => None,
            other => other?,
        };
        let none = || WorktreeError::NoRepository { folder: project.to_owned() };
        let (project, prefix) = found.ok_or_else(none)?;
        let root = home.join("worktrees");
        make_folder(&root)?;
        // Git records the paths of worktrees without links, so we compare without links.
        let root = root.canonicalize().map_err(|source| WorktreeError::Files {
            what: "find",
            path: root,
            source,
        })?;
        let common = project.common.clone();
        let shared = Place { tree: None, own: common.clone(), common };
        Ok(Worktrees { project, shared, prefix, root, turn: Mutex::new(()) })
    }

    /// Returns the worktree of an agent in a run. It is made from `base` if it does not exist;
    /// otherwise it is as its agent left it, apart from locks that a killed git has left. Its agent
    /// must be idle.
    pub async fn open(
        &self,
        run: RunId,
        agent: &AgentName,
        base: &Base,
    ) -> Result<Worktree, WorktreeError> {
        let _turn = self.turn.lock().await;
        let path = self.path(run, agent);
        let note = self.note(run, agent);
        match note {
            Some(Note { branch, name: Some(name), .. }) => {
                let worktree = self.worktree(run, agent, branch, &name);
                let is_known = worktree.place.own.join("HEAD").exists();
                match (path.is_dir(), is_known) {
                    (true, true) => self.regain(&worktree).await?,
                    (true, false) => return self.adopt(run, agent, base).await,
                    (false, _) => return self.make(run, agent, base).await,
                }
                self.write_note(&worktree, name)?;
                self.lend(&worktree).await?;
                Ok(worktree)
            }
            // It was never given to an agent, so it is half a checkout at most.
            Some(Note { name: None, .. }) => {
                self.discard(&path).await?;
                self.make(run, agent, base).await
            }
            None if path.is_dir() => self.adopt(run, agent, base).await,
            None => self.make(run, agent, base).await,
        }
    }

    /// Returns the worktree of an agent if it exists.
    pub fn get(&self, run: RunId, agent: &AgentName) -> Option<Worktree> {
        let Note { branch, name, .. } = self.note(run, agent)?;
        let worktree = self.worktree(run, agent, branch, &name?);
        worktree.path.is_dir().then_some(worktree)
    }

    /// Removes a worktree, whose agent must be idle. Uncommitted work in it is saved first, or it
    /// stays. Its branch stays in any case.
    pub async fn close(
        &self,
        worktree: &Worktree,
        why: &str,
    ) -> Result<Option<SnapshotRef>, WorktreeError> {
        let _turn = self.turn.lock().await;
        self.close_held(worktree, why).await
    }

    async fn close_held(
        &self,
        worktree: &Worktree,
        why: &str,
    ) -> Result<Option<SnapshotRef>, WorktreeError> {
        let path = &worktree.path;
        if !path.is_dir() {
            self.forget(worktree).await?;
            return Ok(None);
        }
        let not_saved =
            |source| WorktreeError::NotSaved { path: path.clone(), source: Box::new(source) };
        self.regain(worktree).await.map_err(not_saved)?;
        let content = self.content(&worktree.place).await.map_err(not_saved)?;
        let snapshot = self.snapshot_of(worktree, &content, why).await.map_err(not_saved)?;
        if !content.nested.is_empty() {
            return Err(WorktreeError::Nested { path: path.clone(), nested: content.nested });
        }
        self.discard(path).await?;
        self.forget(worktree).await?;
        Ok(snapshot)
    }

    /// Returns the name of the branch with the result of a run.
    pub fn result_branch(run: RunId) -> String {
        format!("stafette/result/{}", run.short())
    }

    fn path(&self, run: RunId, agent: &AgentName) -> PathBuf {
        self.root.join(run.to_string()).join(plain(agent))
    }

    fn worktree(&self, run: RunId, agent: &AgentName, branch: String, name: &str) -> Worktree {
        let path = self.path(run, agent);
        let common = self.shared.common.clone();
        let own = common.join("worktrees").join(name);
        Worktree {
            run,
            agent: agent.clone(),
            folder: path.join(&self.prefix),
            branch,
            place: Place { tree: Some(path.clone()), own, common },
            path,
        }
    }

    async fn make(
        &self,
        run: RunId,
        agent: &AgentName,
        base: &Base,
    ) -> Result<Worktree, WorktreeError> {
        let path = self.path(run, agent);
        make_folder(&path.with_file_name(""))?;
        let (head, tree) = self.start(base).await?;
        let branch = self.free_branch(run, agent, &path).await?;
        self.note_down(
            run,
            agent,
            &Note { branch: branch.clone(), name: None, config: None, lent: None },
        )?;
        let name = self.add(&path, &branch, &head, &["--quiet"]).await?;
        let worktree = self.worktree(run, agent, branch, &name);
        if let Some(tree) = &tree {
            self.settle(&worktree, &head, tree).await?;
        }
        self.keep_base(&worktree, base, &head, tree.as_deref()).await?;
        make_folder(&worktree.folder)?;
        self.write_note(&worktree, name)?;
        self.lend(&worktree).await?;
        Ok(worktree)
    }

    /// Registers a folder that git has forgotten, or that has no record, as it is.
    async fn adopt(
        &self,
        run: RunId,
        agent: &AgentName,
        base: &Base,
    ) -> Result<Worktree, WorktreeError> {
        let path = self.path(run, agent);
        let (head, _) = self.start(base).await?;
        let branch = match self.note(run, agent) {
            Some(note) => note.branch,
            None => self.free_branch(run, agent, &path).await?,
        };
        let aside = path.with_file_name(format!(".aside-{}", plain(agent)));
        rename(&path, &aside)?;
        let name = self.add(&path, &branch, &head, &["--quiet", "--no-checkout"]).await;
        let linked = name.as_ref().is_ok_and(|_| {
            rename(&path.join(".git"), &aside.join(".git")).is_ok()
                && std::fs::remove_dir(&path).is_ok()
        });
        if !linked {
            self.discard(&path).await?;
        }
        rename(&aside, &path)?;
        let name = name?;
        let worktree = self.worktree(run, agent, branch.clone(), &name);
        // Git has made its folder anew, whatever was noted of the one before.
        self.note_down(
            run,
            agent,
            &Note { branch, name: Some(name.clone()), config: None, lent: None },
        )?;
        self.mend(&worktree)?;
        worktree.place.git(["reset", "--quiet"]).run().await?;
        self.write_note(&worktree, name)?;
        self.lend(&worktree).await?;
        Ok(worktree)
    }

    /// Returns the starting point of a new worktree: a commit, and files that differ from it.
    async fn start(&self, base: &Base) -> Result<(String, Option<String>), WorktreeError> {
        let place = match base {
            Base::Of(giver) => &giver.place,
            Base::Committed | Base::AsItIs => &self.project,
        };
        let head = match self.head(place).await? {
            Some(head) => head,
            // There is no commit yet. The user's first commit is not ours to make.
            None => {
                let empty = self.shared.git(["mktree"]).text().await?;
                let message = "The run begins with nothing";
                let commit = self.shared.git(["commit-tree", &empty, "-m", message]);
                commit.in_our_name().text().await?
            }
        };
        let tree = match base {
            Base::Committed => None,
            Base::AsItIs | Base::Of(_) => Some(self.content(place).await?.tree),
        };
        Ok((head, tree))
    }

    async fn head(&self, place: &Place) -> Result<Option<String>, GitError> {
        place.git(["rev-parse", "--quiet", "--verify", "HEAD^{commit}"]).answer().await
    }

    /// Finds a branch for an agent that is not checked out elsewhere.
    async fn free_branch(
        &self,
        run: RunId,
        agent: &AgentName,
        path: &Path,
    ) -> Result<String, WorktreeError> {
        let wanted = format!("stafette/{}/{}", run.short(), plain(agent));
        let mut branch = wanted.clone();
        for number in 2.. {
            match self.checkout_of(&branch).await? {
                Some(there) if there != path => branch = format!("{wanted}-{number}"),
                _ => break,
            }
        }
        Ok(branch)
    }

    /// Returns the path where a branch is checked out.
    async fn checkout_of(&self, branch: &str) -> Result<Option<PathBuf>, GitError> {
        let full = format!("refs/heads/{branch}");
        let ask = self.shared.git(["for-each-ref", "--format=%(worktreepath)", &full]);
        let found = ask.paths().await?.into_iter().next();
        Ok(found.filter(|path| !path.as_os_str().is_empty()))
    }

    /// Adds a worktree, on the branch if it exists and otherwise on a new one; returns its name.
    async fn add(
        &self,
        path: &Path,
        branch: &str,
        head: &str,
        options: &[&str],
    ) -> Result<String, WorktreeError> {
        let full = format!("refs/heads/{branch}");
        let exists = self.shared.git(["rev-parse", "--quiet", "--verify", &full]).answer().await?;
        if exists.is_none() {
            self.shared.git(["update-ref", &full, head, ""]).run().await?;
        }
        // Forced twice: over an earlier worktree, and over one whose creation was interrupted.
        let words = ["worktree", "add", "--force", "--force"].iter().chain(options);
        let words = words.map(|word| Path::new(*word).as_os_str());
        let words = words.chain([path.as_os_str(), Path::new(branch).as_os_str()]);
        self.shared.git(words).run().await?;
        let link = path.join(".git");
        let said = stafette_disk::read_text(&link, HEAD_BYTES)
            .map_err(|source| WorktreeError::Files { what: "read", path: link, source })?;
        Ok(Path::new(said.trim_end()).file_name().map(text).unwrap_or_default())
    }

    /// Removes what a killed git has left, and connects folder and repository again: nothing that
    /// an agent has written in there leads git elsewhere.
    fn mend(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let own = &worktree.place.own;
        let mut folders = vec![own.clone()];
        if let Some((run, _)) = worktree.branch.rsplit_once('/') {
            let heads = ["refs/heads", "logs/refs/heads"];
            folders.extend(heads.map(|heads| worktree.place.common.join(heads).join(run)));
        }
        for folder in folders {
            remove_odd(&folder, LEVELS).map_err(|source| WorktreeError::Files {
                what: "remove links and pipes in",
                path: folder,
                source,
            })?;
        }
        for lock in ["index.lock", "HEAD.lock", "ORIG_HEAD.lock"] {
            let lock = own.join(lock);
            if lock.exists() {
                std::fs::remove_file(&lock).map_err(|source| WorktreeError::Files {
                    what: "remove",
                    path: lock,
                    source,
                })?;
            }
        }
        let link = worktree.path.join(".git");
        ensure(&own.join("gitdir"), format!("{}\n", link.display()))?;
        ensure(&own.join("commondir"), "../..\n".to_owned())?;
        let head = stafette_disk::read_text(&own.join("HEAD"), HEAD_BYTES).unwrap_or_default();
        let is_commit = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
        if !head.starts_with("ref: refs/") && (head.len() < 40 || !is_commit(head.trim_end())) {
            write(&own.join("HEAD"), format!("ref: refs/heads/{}\n", worktree.branch))?;
        }
        let note = self.note(worktree.run, &worktree.agent);
        if let Some(config) = note.and_then(|note| note.config) {
            ensure(&own.join(CONFIG), config)?;
        }
        if link.symlink_metadata().is_ok_and(|link| link.is_dir()) {
            // The agent made a repository of it. Its work is still saved and passed on, only its
            // commits stay there.
            return Ok(());
        }
        ensure(&link, format!("gitdir: {}\n", own.display()))
    }

    /// Removes a folder below the worktrees: renamed first, then removed file by file.
    async fn discard(&self, path: &Path) -> Result<(), WorktreeError> {
        let failed =
            |source| WorktreeError::Files { what: "remove", path: path.to_owned(), source };
        let relative = path
            .strip_prefix(&self.root)
            .map_err(|_| failed(io::Error::other("it is not in the folder of the worktrees")))?;
        let ground = Ground::open(&self.root).map_err(failed)?;
        make_folder(&self.root.join(TRASH))?;
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let gone = Path::new(TRASH).join(format!("{}-{}", std::process::id(), since.as_nanos()));
        match ground.rename(relative, &gone) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            other => other.map_err(failed)?,
        }
        // Build output is many files, and other runs continue meanwhile.
        let removed = tokio::task::spawn_blocking(move || ground.remove(&gone)).await;
        removed.map_err(io::Error::other).and_then(|removed| removed).map_err(failed)
    }

    /// Makes git forget a worktree whose folder is gone. `git worktree prune` would also forget the
    /// user's worktrees on a disk that is not mounted at the moment.
    async fn forget(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        if worktree.place.own.exists() {
            let words = ["worktree", "remove", "--force", "--force"].map(Path::new);
            self.shared.git(words.into_iter().chain([worktree.path.as_path()])).run().await?;
        }
        self.forget_base(worktree).await?;
        self.end_revision(worktree).await?;
        let note = self.note_path(worktree.run, &worktree.agent);
        match std::fs::remove_file(&note) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(WorktreeError::Files { what: "remove", path: note, source })
            }
            _ => Ok(()),
        }
    }

    fn note_path(&self, run: RunId, agent: &AgentName) -> PathBuf {
        let name = format!("{}.json", plain(agent));
        self.root.join(run.to_string()).join(".notes").join(name)
    }

    fn note(&self, run: RunId, agent: &AgentName) -> Option<Note> {
        // An unreadable record counts as none: the folder is then adopted as it is.
        let text = stafette_disk::read(&self.note_path(run, agent), NOTE_BYTES).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Records a worktree, with the settings that git has made for it. A file for them is made in
    /// any case: one that exists can be kept from its agent.
    fn write_note(&self, worktree: &Worktree, name: String) -> Result<(), WorktreeError> {
        let file = worktree.place.own.join(CONFIG);
        let known = self.note(worktree.run, &worktree.agent).and_then(|note| note.config);
        let read = || stafette_disk::read_text(&file, CONFIG_BYTES).unwrap_or_default();
        let config = known.unwrap_or_else(read);
        ensure(&file, config.clone())?;
        let lent = self.note(worktree.run, &worktree.agent).and_then(|note| note.lent);
        let (name, config) = (Some(name), Some(config));
        let note = Note { branch: worktree.branch.clone(), name, config, lent };
        self.note_down(worktree.run, &worktree.agent, &note)
    }

    fn note_down(&self, run: RunId, agent: &AgentName, note: &Note) -> Result<(), WorktreeError> {
        let path = self.note_path(run, agent);
        make_folder(&path.with_file_name(""))?;
        let text = serde_json::to_string(note).unwrap_or_default();
        write(&path, text)
    }
}

/// Encodes an agent's name for a folder and for a branch, neither of which may contain dots.
fn plain(agent: &AgentName) -> String {
    agent.as_str().replace('.', "%2e")
}

/// Decodes what [`plain`] encoded.
fn named(plain: &str) -> Option<AgentName> {
    plain.replace("%2e", ".").parse().ok()
}

fn text(name: &std::ffi::OsStr) -> String {
    name.to_string_lossy().into_owned()
}

fn make_folder(path: &Path) -> Result<(), WorktreeError> {
    stafette_disk::folder(path).map_err(|source| WorktreeError::Files {
        what: "make",
        path: path.to_owned(),
        source,
    })
}

fn rename(from: &Path, to: &Path) -> Result<(), WorktreeError> {
    std::fs::rename(from, to).map_err(|source| WorktreeError::Files {
        what: "move",
        path: from.to_owned(),
        source,
    })
}

/// Removes what is neither file nor folder in a folder of git: it would write where links lead, and wait
/// for the other end of a pipe for ever.
fn remove_odd(folder: &Path, levels: usize) -> io::Result<()> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        match entry.file_type()? {
            kind if kind.is_dir() && levels > 0 => remove_odd(&entry.path(), levels - 1)?,
            kind if kind.is_dir() || kind.is_file() => {}
            _ => std::fs::remove_file(entry.path())?,
        }
    }
    Ok(())
}

/// Writes a small file unless it has this content: to replace a file would also lift the protection
/// that the sandbox of a running agent gives it.
fn ensure(path: &Path, content: String) -> Result<(), WorktreeError> {
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file());
    let limit = u64::try_from(content.len()).unwrap_or(u64::MAX);
    if is_file && stafette_disk::read(path, limit).is_ok_and(|has| has == content.as_bytes()) {
        return Ok(());
    }
    write(path, content)
}

/// Writes a small file atomically.
fn write(path: &Path, content: String) -> Result<(), WorktreeError> {
    let failed = |source| WorktreeError::Files { what: "write", path: path.to_owned(), source };
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    io::Write::write_all(&mut file, content.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    file.persist(path).map(drop).map_err(|error| failed(error.error))
}
