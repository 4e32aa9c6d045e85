//! Objects and branches of a sandboxed agent's own.
//!
//! Git believes that an object has the content that its name says, so an agent that can write to
//! the shared objects can change what others check out. In its sandbox, folders in its worktree's
//! part of the repository lie over the shared ones; the shared objects stay readable beside them.
//! When the agent is idle, what it has made is taken in: objects by their content, and then its
//! branch.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{Worktree, WorktreeError, Worktrees, ensure, make_folder};
use crate::git::Neutral;

/// The folder with what is lent, in the git folder of a worktree.
const LENT: &str = "lent";

/// The most that an agent may add to the repository in a turn, in bytes as git packs them.
const MOST_BYTES: u64 = 2 * 1024 * 1024 * 1024;

/// The most files of objects that an agent may add in a turn.
const MOST_FILES: usize = 500_000;

/// The number of objects up to which they are stored one by one, as git does after a fetch.
const SINGLE: usize = 100;

/// The most that is read of a file with a branch, in bytes.
const REF_BYTES: u64 = 128;

/// The files in which an agent has stored objects.
#[derive(Debug, Default)]
struct Made {
    /// Single objects, whose names the paths say.
    loose: Vec<PathBuf>,
    packs: Vec<PathBuf>,
    /// Files beside packs, which are not used.
    rest: Vec<PathBuf>,
    bytes: u64,
}

impl Worktree {
    /// Returns the folder with what lies over the shared folders in its agent's sandbox: `objects`,
    /// `heads` and `logs`, and `shared` for the shared objects.
    pub fn lent(&self) -> PathBuf {
        self.place.own.join(LENT)
    }
}

impl Worktrees {
    /// Brings what is lent to the state of the repository, for the next turn of the agent.
    pub(super) async fn lend(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let lent = worktree.lent();
        for folder in ["objects/info", "objects/pack", "shared", "heads", "logs"] {
            make_folder(&lent.join(folder))?;
        }
        let shared = format!("{}\n", lent.join("shared").display());
        ensure(&lent.join("objects/info/alternates"), shared)?;
        let Some((run, own)) = worktree.branch.rsplit_once('/') else { return Ok(()) };
        let format = "--format=%(objectname) %(refname)";
        let folder = format!("refs/heads/{run}/");
        let said = self.shared.git(["for-each-ref", format, &folder]).text().await?;
        let branches = said.lines().filter_map(|line| line.split_once(' '));
        for (commit, name) in branches {
            let name = name.strip_prefix(&folder).unwrap_or_default();
            if !name.is_empty() && !name.contains('/') {
                ensure(&lent.join("heads").join(name), format!("{commit}\n"))?;
            }
            if name == own {
                self.note_lent(worktree, commit)?;
            }
        }
        Ok(())
    }

    /// Notes the commit of the branch that was lent, where the agent cannot change it.
    fn note_lent(&self, worktree: &Worktree, commit: &str) -> Result<(), WorktreeError> {
        let Some(mut note) = self.note(worktree.run, &worktree.agent) else { return Ok(()) };
        if note.lent.as_deref() == Some(commit) {
            return Ok(());
        }
        note.lent = Some(commit.to_owned());
        self.note_down(worktree.run, &worktree.agent, &note)
    }

    /// Takes in what an idle agent has made of what was lent to it. Without a sandbox that is
    /// nothing. Safe to repeat.
    pub(super) async fn take_in(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let lent = worktree.lent();
        let objects = lent.join("objects");
        let failed = |what: &'static str| {
            let path = objects.clone();
            move |source| WorktreeError::Files { what, path, source }
        };
        if !objects.is_dir() {
            return Ok(());
        }
        let made = made(&objects).map_err(failed("list the objects in"))?;
        if made.bytes > MOST_BYTES {
            return Err(WorktreeError::TooMuch { bytes: made.bytes, most: MOST_BYTES });
        }
        for pack in &made.packs {
            self.unpack(pack, true).await?;
        }
        if !made.loose.is_empty() {
            self.take_loose(&made.loose).await?;
        }
        self.take_branch(worktree).await?;
        for file in made.loose.iter().chain(&made.packs).chain(&made.rest) {
            // The shared objects have it now; what stays is taken in once more.
            let _ = fs::remove_file(file);
        }
        Ok(())
    }

    /// Takes in single objects. They are copied first, so that nothing changes on the way.
    async fn take_loose(&self, files: &[PathBuf]) -> Result<(), WorktreeError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| WorktreeError::Files { what: "copy", path, source }
        };
        let neutral = Neutral::alone(&self.shared).map_err(failed(&self.root))?;
        let mut names = String::new();
        for file in files {
            let mut parts = file.iter().rev();
            let (Some(rest), Some(first)) = (parts.next(), parts.next()) else { continue };
            let copy = neutral.path().join("objects").join(first);
            make_folder(&copy)?;
            let content = stafette_disk::read(file, MOST_BYTES).map_err(failed(file))?;
            fs::write(copy.join(rest), content).map_err(failed(file))?;
            names.push_str(&format!("{}{}\n", first.to_string_lossy(), rest.to_string_lossy()));
        }
        let base = neutral.path().join("taken");
        let pack = ["pack-objects", "--quiet"].map(Path::new).into_iter().chain([base.as_path()]);
        let name = neutral.git(neutral.path(), pack).input(names).text().await?;
        let pack = neutral.path().join(format!("taken-{name}.pack"));
        self.unpack(&pack, files.len() > SINGLE).await
    }

    /// Takes in the objects of a pack, together or as single ones: git names them anew, by their
    /// content.
    async fn unpack(&self, pack: &Path, together: bool) -> Result<(), WorktreeError> {
        let file = stafette_disk::open(pack, MOST_BYTES).map_err(|source| {
            WorktreeError::Files { what: "open", path: pack.to_owned(), source }
        })?;
        let most = format!("--max-input-size={MOST_BYTES}");
        let words = match together {
            true => ["index-pack", "--stdin", &most],
            false => ["unpack-objects", "-q", &most],
        };
        Ok(self.shared.git(words).reading(file).run().await?)
    }

    /// Moves the agent's branch to where the agent has moved it, if all of that is there.
    async fn take_branch(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let Some((_, own)) = worktree.branch.rsplit_once('/') else { return Ok(()) };
        let Some(commit) = lent_branch(worktree, own) else { return Ok(()) };
        let known = self.note(worktree.run, &worktree.agent).and_then(|note| note.lent);
        // An agent without a sandbox moves the shared branch, and leaves this one alone.
        if known.is_none() || known.as_ref() == Some(&commit) {
            return Ok(());
        }
        self.check_whole(&commit).await?;
        let branch = format!("refs/heads/{}", worktree.branch);
        self.shared.git(["update-ref", "-m", "stafette: a turn", &branch, &commit]).run().await?;
        self.note_lent(worktree, &commit)
    }

    /// Checks that a commit is in the repository, with everything that it needs.
    async fn check_whole(&self, commit: &str) -> Result<(), WorktreeError> {
        let whole = ["rev-list", "--objects", "--quiet", commit, "--not", "--branches", "--tags"];
        Ok(self.shared.git(whole).run().await?)
    }

    /// Makes what an idle agent has left ready to be read: nothing in it leads git elsewhere, its
    /// objects are there, and what is checked out exists.
    pub(super) async fn regain(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        self.mend(worktree)?;
        self.take_in(worktree).await?;
        let place = &worktree.place;
        if self.head(place).await?.is_some() {
            return Ok(());
        }
        // Perhaps it is on another branch of its own, which nobody else has.
        let head = stafette_disk::read_text(&place.own.join("HEAD"), REF_BYTES).unwrap_or_default();
        let name = head.trim_end().rsplit('/').next().unwrap_or_default();
        if let Some(commit) = lent_branch(worktree, name) {
            self.check_whole(&commit).await?;
            return Ok(place.git(["update-ref", "--no-deref", "HEAD", &commit]).run().await?);
        }
        let branch = format!("refs/heads/{}", worktree.branch);
        Ok(place.git(["symbolic-ref", "HEAD", &branch]).run().await?)
    }

    /// Takes in what an agent has made in a turn, so that it is seen. Its agent must be idle.
    pub async fn collect(&self, worktree: &Worktree) -> Result<(), WorktreeError> {
        let _turn = self.turn.lock().await;
        self.regain(worktree).await
    }
}

/// Returns the commit of a branch as its agent has left it.
fn lent_branch(worktree: &Worktree, name: &str) -> Option<String> {
    let file = worktree.lent().join("heads").join(name);
    let text = stafette_disk::read_text(&file, REF_BYTES).ok()?;
    let commit = text.trim_end();
    let is_hex = commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    (is_hex && matches!(commit.len(), 40 | 64)).then(|| commit.to_owned())
}

/// Lists the files of objects in a folder. Files with other names are none.
fn made(objects: &Path) -> io::Result<Made> {
    let mut made = Made::default();
    let is_hex = |name: &str| name.bytes().all(|byte| byte.is_ascii_hexdigit());
    let mut seen = 0;
    for folder in objects.read_dir()? {
        let folder = folder?;
        let name = folder.file_name().to_string_lossy().into_owned();
        let is_fan = name.len() == 2 && is_hex(&name);
        if !folder.file_type()?.is_dir() || !(is_fan || name == "pack") {
            continue;
        }
        for file in folder.path().read_dir()? {
            let file = file?;
            seen += 1;
            if seen > MOST_FILES {
                return Err(io::Error::other(format!("there are more than {MOST_FILES}")));
            }
            let metadata = file.metadata()?;
            if !metadata.is_file() {
                continue;
            }
            let (path, name) = (file.path(), file.file_name().to_string_lossy().into_owned());
            made.bytes = made.bytes.saturating_add(metadata.len());
            match is_fan {
                true if matches!(name.len(), 38 | 62) && is_hex(&name) => made.loose.push(path),
                false if name.ends_with(".pack") => made.packs.push(path),
                _ => made.rest.push(path),
            }
        }
    }
    Ok(made)
}
