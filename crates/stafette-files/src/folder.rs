//! Files by handles: no link leads out, nothing half-written is ever to be seen.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, fsync, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

/// The largest file that is read, in bytes.
pub const MAX_FILE: u64 = 1024 * 1024;

/// The most files of one folder that are looked at.
const MAX_FILES: usize = 10_000;

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The folder of a state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Place {
    Pending,
    Accepted,
    Completed,
    Rejected,
}

impl Place {
    pub(crate) const ALL: [Place; 4] =
        [Place::Pending, Place::Accepted, Place::Completed, Place::Rejected];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Place::Pending => "pending",
            Place::Accepted => "accepted",
            Place::Completed => "completed",
            Place::Rejected => "rejected",
        }
    }
}

/// What tells one version of a file from another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    inode: u64,
    changed: (i64, i64),
}

/// What is at a name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    File,
    Link,
    Other,
}

impl Seen {
    /// When it changed, in seconds and nanoseconds.
    pub(crate) fn changed(&self) -> (i64, i64) {
        self.changed
    }

    /// How long ago it changed, by the clock that files have.
    pub(crate) fn age(&self) -> std::time::Duration {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let (seconds, nanos) = self.changed;
        let seconds = u64::try_from(seconds).unwrap_or(0);
        let then = std::time::Duration::new(seconds, u32::try_from(nanos).unwrap_or(0));
        now.unwrap_or_default().saturating_sub(then)
    }
}

/// The four folders, held open.
#[derive(Debug)]
pub(crate) struct Folder {
    root: OwnedFd,
    places: [OwnedFd; 4],
}

impl Folder {
    /// Opens the folder, making what is missing. The way to it may have links in it, what is made
    /// below it may not be one.
    pub(crate) fn open(at: &Path) -> io::Result<Folder> {
        std::fs::create_dir_all(at)?;
        let root = openat(CWD, at, FOLDER, Mode::empty())?;
        let handoffs = enter(&root, "handoffs")?;
        let [pending, accepted, completed, rejected] =
            Place::ALL.map(|place| enter(&handoffs, place.name()));
        Ok(Folder { root, places: [pending?, accepted?, completed?, rejected?] })
    }

    /// The folder around the four.
    pub(crate) fn root(&self) -> io::Result<OwnedFd> {
        self.root.try_clone()
    }

    fn at(&self, place: Place) -> &OwnedFd {
        &self.places[place as usize]
    }

    /// The JSON files in a folder. What begins with a dot is somebody's work in progress.
    pub(crate) fn list(&self, place: Place) -> io::Result<BTreeMap<String, Seen>> {
        let mut found = BTreeMap::new();
        for entry in Dir::read_from(self.at(place))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name.starts_with('.') || !name.ends_with(".json") || name.ends_with(REASON) {
                continue;
            }
            if let Some(seen) = look(self.at(place), name)? {
                found.insert(name.to_owned(), seen);
            }
            if found.len() == MAX_FILES {
                break;
            }
        }
        Ok(found)
    }

    pub(crate) fn read(&self, place: Place, name: &str) -> io::Result<Vec<u8>> {
        read(self.at(place), name)
    }

    pub(crate) fn write(&self, place: Place, name: &str, text: &[u8]) -> io::Result<Seen> {
        write(self.at(place), name, text)
    }

    pub(crate) fn remove(&self, place: Place, name: &str) -> io::Result<()> {
        match unlinkat(self.at(place), name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes a file of what is over, and the reason beside it.
    pub(crate) fn clear(&self, place: Place, name: &str) -> io::Result<()> {
        let stem = name.strip_suffix(".json").unwrap_or(name);
        self.remove(place, &format!("{stem}{REASON}"))?;
        self.remove(place, name)
    }

    /// Whether nothing is at a name.
    pub(crate) fn lacks(&self, place: Place, name: &str) -> bool {
        matches!(look(self.at(place), name), Ok(None))
    }

    /// Moves what is at `name` to `rejected`, whatever it is, and writes the reason beside it.
    pub(crate) fn reject(&self, place: Place, name: &str, reason: &[u8]) -> io::Result<()> {
        let stem = name.strip_suffix(".json").unwrap_or(name);
        let rejected = self.at(Place::Rejected);
        // Two files of one name are two files: neither replaces the other.
        let free = (0..).map(|n| match n {
            0 => stem.to_owned(),
            n => format!("{stem}.{n}"),
        });
        let mut free =
            free.filter(|stem| !matches!(look(rejected, &format!("{stem}.json")), Ok(Some(_))));
        let stem = free.next().unwrap_or_else(|| stem.to_owned());
        write(rejected, &format!("{stem}{REASON}"), reason)?;
        match renameat(self.at(place), name, rejected, format!("{stem}.json")) {
            Ok(()) => {}
            // A folder cannot lose its name to a file's.
            Err(error) => return Err(error.into()),
        }
        Ok(fsync(rejected)?)
    }
}

/// How the file with a reason is called.
const REASON: &str = ".reason.json";

fn enter(folder: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    match mkdirat(folder, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    openat(folder, name, FOLDER, Mode::empty())
        .map_err(|error| io::Error::other(format!("{name} is not a folder of its own: {error}")))
}

/// What is at a name now; nothing when nothing is.
pub(crate) fn look(folder: &OwnedFd, name: &str) -> io::Result<Option<Seen>> {
    let stat = match statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) {
        Err(Errno::NOENT) => return Ok(None),
        other => other?,
    };
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => Kind::File,
        FileType::Symlink => Kind::Link,
        _ => Kind::Other,
    };
    Ok(Some(Seen {
        kind,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        inode: stat.st_ino,
        changed: (stat.st_mtime, i64::try_from(stat.st_mtime_nsec).unwrap_or(0)),
    }))
}

/// Reads a plain file of a bearable size.
pub(crate) fn read(folder: &OwnedFd, name: &str) -> io::Result<Vec<u8>> {
    // Without blocking: a pipe with nobody at its other end must not hold us.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(folder, name, flags, Mode::empty())?);
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::other(format!("it is larger than {MAX_FILE} bytes")));
    }
    Ok(bytes)
}

/// Writes a file so that it is there whole or not at all, also after a power loss. Tells what it
/// looks like: whatever looks different later was written by somebody else.
pub(crate) fn write(folder: &OwnedFd, name: &str, text: &[u8]) -> io::Result<Seen> {
    let making = format!(".{name}.{}", std::process::id());
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(openat(folder, &making, flags, Mode::from_raw_mode(0o644))?);
    file.write_all(text)?;
    file.sync_all()?;
    let made = look(folder, &making)?.ok_or(io::ErrorKind::NotFound)?;
    renameat(folder, &making, folder, name)?;
    fsync(folder)?;
    Ok(made)
}
