//! Files for an agent, in its folder and nowhere else.
//!
//! Each step from the folder to a file is taken separately and follows no link, so a folder that is
//! replaced by a link in between leads nowhere. A file is written as a whole or not at all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{
    AtFlags, FileType, Mode, OFlags, fstat, fsync, mkdirat, open, openat, renameat, statat,
    unlinkat,
};
use rustix::io::Errno;
use stafette_core::change::is_lever;

/// The largest file that is read or written, in bytes.
const FILE: u64 = 2 * 1024 * 1024;

/// The maximum number of names in a path.
const DEPTH: usize = 64;

/// Names in a path that agents must not use: their contents are run, or control the agents.
const PROTECTED: [&str; 2] = [".stafette", ".claude"];

/// The kind of access to a path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Want {
    Read,
    Write,
}

/// A folder whose files are served.
#[derive(Clone, Debug)]
pub(super) struct Folder {
    named: PathBuf,
    /// The folder without links in its path, which is what an agent sees as its own.
    path: PathBuf,
    /// The paths that are not written, without links.
    pinned: Vec<PathBuf>,
}

impl Folder {
    /// Opens the folder at this path.
    pub(super) fn at(path: &Path) -> io::Result<Folder> {
        let named = std::path::absolute(path)?;
        Ok(Folder { path: named.canonicalize()?, named, pinned: Vec::new() })
    }

    /// Writes nothing to these paths: the sandbox of the agent, which we are not in, pins them.
    pub(super) fn pinning(self, pinned: &[PathBuf]) -> Folder {
        let real = |path: &PathBuf| path.canonicalize().unwrap_or_else(|_| path.clone());
        Folder { pinned: pinned.iter().map(real).collect(), ..self }
    }

    /// The path of the folder.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads a file, or `limit` lines of it from `line`, which counts from 1.
    pub(super) fn read(
        &self,
        path: &Path,
        line: Option<u32>,
        limit: Option<u32>,
    ) -> Result<String, String> {
        let names = self.names(path, Want::Read)?;
        let failed = |error: io::Error| format!("{} cannot be read: {error}", path.display());
        let (last, way) = names.split_last().ok_or_else(|| refusal(path, "is a folder"))?;
        let parent = self.walk(way, false).map_err(failed)?;
        // Opening a named pipe would wait for its writer.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = openat(&parent, *last, flags, Mode::empty());
        let file = file.map_err(|error| failed(explained(error)))?;
        let about = fstat(&file).map_err(|error| failed(error.into()))?;
        if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
            return Err(refusal(path, "is not a file"));
        }
        let mut text = Vec::new();
        File::from(file).take(FILE + 1).read_to_end(&mut text).map_err(failed)?;
        if text.len() as u64 > FILE {
            return Err(refusal(path, &format!("is larger than {} MiB", FILE >> 20)));
        }
        let text = String::from_utf8(text).map_err(|_| refusal(path, "is not text"))?;
        if line.is_none() && limit.is_none() {
            return Ok(text);
        }
        let skipped = line.unwrap_or(1).saturating_sub(1) as usize;
        let taken = limit.map_or(usize::MAX, |limit| limit as usize);
        Ok(text.split_inclusive('\n').skip(skipped).take(taken).collect())
    }

    /// Writes a file, and creates the folders on the path to it.
    pub(super) fn write(&self, path: &Path, text: &str) -> Result<(), String> {
        let names = self.names(path, Want::Write)?;
        let target = names.iter().fold(self.path.clone(), |path, name| path.join(name));
        if self.pinned.iter().any(|pinned| target.starts_with(pinned)) {
            return Err(refusal(path, "is protected"));
        }
        if text.len() as u64 > FILE {
            return Err(refusal(path, &format!("would be larger than {} MiB", FILE >> 20)));
        }
        let failed = |error: io::Error| format!("{} cannot be written: {error}", path.display());
        let (last, way) = names.split_last().ok_or_else(|| refusal(path, "is a folder"))?;
        let parent = self.walk(way, true).map_err(failed)?;
        let mode = match statat(&parent, *last, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) if FileType::from_raw_mode(about.st_mode) == FileType::RegularFile => {
                Some(Mode::from_raw_mode(about.st_mode & 0o777))
            }
            Ok(_) => return Err(refusal(path, "is not a file")),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(failed(error.into())),
        };
        let temporary = temporary(last);
        let put = || -> io::Result<()> {
            let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
            let file = openat(&parent, &*temporary, flags, Mode::from_raw_mode(0o666))?;
            if let Some(mode) = mode {
                rustix::fs::fchmod(&file, mode)?;
            }
            let mut file = File::from(file);
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            renameat(&parent, &*temporary, &parent, *last)?;
            Ok(fsync(&parent)?)
        };
        put().map_err(|error| {
            // Only there if the renaming did not happen.
            let _ = unlinkat(&parent, &*temporary, AtFlags::empty());
            failed(error)
        })
    }

    /// A folder in the folder, for a command to run in.
    pub(super) fn subfolder(&self, path: &Path) -> Result<PathBuf, String> {
        let names = self.names(path, Want::Read)?;
        let failed = |error| format!("{} cannot be entered: {error}", path.display());
        self.walk(&names, false).map_err(failed)?;
        Ok(names.iter().fold(self.path.clone(), |path, name| path.join(name)))
    }

    /// The names from the folder to a path, if it may be used at all.
    fn names<'a>(&self, path: &'a Path, want: Want) -> Result<Vec<&'a OsStr>, String> {
        let inner = if path.is_absolute() {
            let inner = path.strip_prefix(&self.path).or_else(|_| path.strip_prefix(&self.named));
            inner.map_err(|_| refusal(path, "is outside of the agent's folder"))?
        } else {
            path
        };
        let mut names = Vec::new();
        for part in inner.components() {
            match part {
                Component::Normal(name) => names.push(name),
                Component::CurDir => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(refusal(path, "does not say plainly where it is"));
                }
            }
        }
        if names.len() > DEPTH {
            return Err(refusal(path, "is too deep"));
        }
        if protected(&names, want) {
            return Err(refusal(path, "is protected"));
        }
        Ok(names)
    }

    /// Opens the folder at the end of a path, and creates missing folders if `make` is set.
    fn walk(&self, way: &[&OsStr], make: bool) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut at = open(&self.path, flags, Mode::empty())?;
        for name in way {
            let step = || openat(&at, *name, flags | OFlags::NOFOLLOW, Mode::empty());
            let next = match step() {
                Err(Errno::NOENT) if make => {
                    match mkdirat(&at, *name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => step(),
                        Err(error) => Err(error),
                    }
                }
                other => other,
            };
            at = next.map_err(explained)?;
        }
        Ok(at)
    }
}

/// True if a name in the path is not for agents. Names are compared without case, since some file
/// systems do so too.
fn protected(names: &[&OsStr], want: Want) -> bool {
    let is = |name: &OsStr, wanted: &str| name.eq_ignore_ascii_case(wanted);
    if names.iter().any(|name| PROTECTED.iter().any(|wanted| is(name, wanted))) {
        return true;
    }
    match want {
        // The configuration of an agent can name programs too: it may be read, but not written.
        Want::Write => {
            names.iter().any(|name| is(name, ".git") || is_lever(&name.to_string_lossy()))
        }
        Want::Read => names.windows(2).any(|pair| is(pair[0], ".git") && is(pair[1], "hooks")),
    }
}

fn refusal(path: &Path, why: &str) -> String {
    format!("{} {why}", path.display())
}

/// Explains an error: a link is refused with an error that says something else.
fn explained(error: Errno) -> io::Error {
    match error {
        Errno::LOOP | Errno::MLINK => io::Error::other("it is a link, and links are not followed"),
        Errno::NOTDIR => io::Error::other("a folder on the way is a link or a file"),
        error => error.into(),
    }
}

/// A unique name for a temporary file beside a file.
fn temporary(name: &OsStr) -> OsString {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let next = NEXT.fetch_add(1, Ordering::Relaxed);
    let mut own = OsString::from(format!(".stafette-{}-{next}-", std::process::id()));
    // Long names must stay possible.
    own.push(if name.len() < 128 { name } else { OsStr::new("file") });
    own
}

#[cfg(test)]
mod tests;
