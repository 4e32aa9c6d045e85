//! The state of older releases, which lay in the project itself. A repository can bring one along,
//! so nothing of it is read before a person has it moved.

use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use stafette_engine::{Provenance, provenance};

use super::LOCAL;
use crate::exit::Failure;
use crate::project::user;

/// What stays where it is: it belongs to a daemon, not to its state.
const STAYS: [&str; 6] =
    ["lock", ".gitignore", "daemon.lock", "daemon.sock", "agents.sock", "ledger"];

/// What gives rights, which no folder may bring along.
const RIGHTS: [&str; 6] =
    ["tokens.json", "browsers.json", "page.json", "open.html", "trusted.json", super::OWNER];

/// The most files and folders of a state that are looked at.
const LIMIT: usize = 200_000;

/// Something that looks like a state in the project.
#[derive(Debug)]
pub(crate) struct Older {
    pub(crate) folder: PathBuf,
    /// Why it may not be taken over; `None` when a person may.
    pub(crate) objection: Option<String>,
}

impl Older {
    /// One line about it, for people.
    pub(crate) fn line(&self) -> String {
        match &self.objection {
            None => format!(
                "Runs of an older release lie in {LOCAL}: if they are yours, `stafette state adopt` \
                 takes them over"
            ),
            Some(why) => format!("What lies in {LOCAL} is not believed: {why}"),
        }
    }
}

/// Looks for a state in the project, without reading anything of it.
pub(crate) async fn find(root: &Path) -> Option<Older> {
    let folder = root.join(LOCAL);
    let found = fs::symlink_metadata(&folder).ok()?;
    if !found.is_dir() {
        let objection = Some(format!("{LOCAL} itself is a link or no folder at all"));
        return Some(Older { folder, objection });
    }
    let is_state = |name: &OsString| !STAYS.iter().any(|stays| name == stays);
    names(&folder).ok()?.iter().find(|name| is_state(name))?;
    let objection = match provenance(root, LOCAL).await {
        Ok(Provenance::Untracked) => look(&folder).err(),
        Ok(Provenance::Tracked) => Some("it came with the repository, which tracks it".to_owned()),
        Ok(Provenance::Busy) => Some("git is writing at the moment".to_owned()),
        Err(error) => Some(format!("git cannot say whether it came with the repository: {error}")),
    };
    // What has no runs and nobody brought along is no state, and need not be mentioned.
    let has_runs = ["store.db", "store.place"].iter().any(|name| folder.join(name).exists());
    (has_runs || objection.is_some()).then_some(Older { folder, objection })
}

fn names(folder: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name())).collect()
}

/// Looks at everything in it: folders and files of this user, and no links.
fn look(state: &Path) -> Result<(), String> {
    let name = |path: &Path| path.strip_prefix(state).unwrap_or(path).display().to_string();
    let failed = |path: &Path, error: io::Error| format!("cannot read {}: {error}", name(path));
    let mut waiting = vec![state.to_owned()];
    let mut seen = 0;
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| failed(&folder, error))? {
            let path = entry.map_err(|error| failed(&folder, error))?.path();
            let found = fs::symlink_metadata(&path).map_err(|error| failed(&path, error))?;
            seen += 1;
            if seen > LIMIT {
                return Err(format!("it has more than {LIMIT} files"));
            }
            objection(&found).map_or(Ok(()), |why| Err(format!("{} {why}", name(&path))))?;
            if found.is_dir() && !is_worktree(state, &path) {
                waiting.push(path);
            }
        }
    }
    Ok(())
}

fn objection(found: &Metadata) -> Option<&'static str> {
    let kind = found.file_type();
    if found.uid() != user() {
        return Some("belongs to another user");
    }
    if kind.is_symlink() {
        return Some("is a link");
    }
    (!kind.is_dir() && !kind.is_file() && !kind.is_socket()).then_some("is not a plain file")
}

/// True for the worktree of an agent: the project's own files are in it, whatever they are.
fn is_worktree(state: &Path, path: &Path) -> bool {
    let inner = path.strip_prefix(state.join("worktrees/worktrees"));
    inner.is_ok_and(|inner| inner.components().count() == 2)
}

/// Moves everything of the older state to `state`. The store comes last: as long as it is not
/// there, moving can be done again.
pub(crate) fn take(older: &Path, state: &Path) -> Result<(), Failure> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: io::Error| {
            Failure::failed(format!("Cannot move {}", path.display()))
                .because(&error)
                .fix("see that there is room and that you may write there, and adopt it again")
        }
    };
    let mut names = names(older).map_err(failed(older))?;
    names.retain(|name| !STAYS.iter().chain(&RIGHTS).any(|stays| name == stays));
    names.sort_by_key(|name| (name.as_encoded_bytes().starts_with(b"store.db"), name.len() < 9));
    for name in names {
        let (from, to) = (older.join(&name), state.join(&name));
        // A state without runs has nothing there that is worth keeping.
        if to.is_dir() {
            fs::remove_dir_all(&to).map_err(failed(&to))?;
        }
        shift(&from, &to).map_err(failed(&from))?;
    }
    for left in ["daemon.lock", "daemon.sock"] {
        let _ = fs::remove_file(older.join(left));
    }
    Ok(())
}

/// Renames; between two disks it copies, and removes what it has copied.
fn shift(from: &Path, to: &Path) -> io::Result<()> {
    match fs::rename(from, to) {
        Err(error) if error.raw_os_error() == Some(Errno::XDEV.raw_os_error()) => {}
        done => return done,
    }
    copy(from, to)?;
    match fs::symlink_metadata(from)?.is_dir() {
        true => fs::remove_dir_all(from),
        false => fs::remove_file(from),
    }
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let found = fs::symlink_metadata(from)?;
    if found.is_symlink() {
        return std::os::unix::fs::symlink(fs::read_link(from)?, to);
    }
    if found.is_file() {
        fs::copy(from, to)?;
        return fs::File::open(to)?.sync_all();
    }
    if !found.is_dir() {
        return Ok(());
    }
    stafette_disk::folder(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    fs::set_permissions(to, found.permissions())?;
    fs::File::open(to)?.sync_all()
}
