//! File access by handles: no link is followed, and no half-written file is ever visible.

use std::collections::BTreeMap;
use std::fs::{DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::fs::{
    AtFlags, CWD, Dir, FileType, Mode, OFlags, fsync, mkdirat, openat, renameat, statat, unlinkat,
};
use rustix::io::Errno;

/// Maximum size of a file that is read, in bytes.
pub const MAX_FILE: u64 = 1024 * 1024;

/// Maximum number of files of one folder that are read.
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

/// Attributes that distinguish two versions of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Seen {
    pub(crate) kind: Kind,
    pub(crate) size: u64,
    inode: u64,
    changed: (i64, i64),
}

/// Kind of a directory entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    File,
    Link,
    Other,
}

impl Seen {
    /// Returns a key of this version of the file `name`: one that is written later has another.
    pub(crate) fn key(&self, name: &str) -> String {
        let (seconds, nanos) = self.changed;
        format!("file\n{name}\n{}\n{seconds}.{nanos}", self.inode)
    }

    /// Returns the time of the last change, in seconds and nanoseconds.
    pub(crate) fn changed(&self) -> (i64, i64) {
        self.changed
    }

    /// Returns the time since the last change, by the clock of the file system.
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
    /// Opens the folder, and creates what is missing. The path to it may contain links; the folders
    /// below it may not be links.
    pub(crate) fn open(at: &Path) -> io::Result<Folder> {
        // Whatever the umask, nobody else can put something there.
        DirBuilder::new().recursive(true).mode(0o755).create(at)?;
        let root = openat(CWD, at, FOLDER, Mode::empty())?;
        let handoffs = enter(&root, "handoffs")?;
        let [pending, accepted, completed, rejected] =
            Place::ALL.map(|place| enter(&handoffs, place.name()));
        Ok(Folder { root, places: [pending?, accepted?, completed?, rejected?] })
    }

    /// Returns the folder that contains the four.
    pub(crate) fn root(&self) -> io::Result<OwnedFd> {
        self.root.try_clone()
    }

    fn at(&self, place: Place) -> &OwnedFd {
        &self.places[place as usize]
    }

    /// Returns the JSON files in a folder. A name with a leading dot is work in progress. In
    /// `pending` all other files are listed too, unless their names are temporary ones: nobody would
    /// hear of a file that is passed over.
    pub(crate) fn list(&self, place: Place) -> io::Result<BTreeMap<String, Seen>> {
        let mut found = BTreeMap::new();
        for entry in Dir::read_from(self.at(place))? {
            let entry = entry?;
            let Ok(name) = entry.file_name().to_str() else { continue };
            if name.starts_with('.') || name.ends_with(REASON) {
                continue;
            }
            let is_json = name.ends_with(".json");
            if !is_json && (place != Place::Pending || is_temporary(name)) {
                continue;
            }
            if let Some(seen) = look(self.at(place), name)?
                && (is_json || seen.kind == Kind::File)
            {
                found.insert(name.to_owned(), seen);
            }
            if found.len() == MAX_FILES {
                break;
            }
        }
        Ok(found)
    }

    /// Returns when a file came to its place, in milliseconds: a copy or a move is new, however old
    /// its content is. Without a place it is one beside the four folders.
    pub(crate) fn arrived(&self, place: Option<Place>, name: &str) -> io::Result<u64> {
        let folder = place.map_or(&self.root, |place| self.at(place));
        let stat = statat(folder, name, AtFlags::SYMLINK_NOFOLLOW)?;
        let nanos = i64::try_from(stat.st_ctime_nsec).unwrap_or(0);
        Ok(u64::try_from(stat.st_ctime * 1000 + nanos / 1_000_000).unwrap_or(0))
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

    /// Removes a file of an ended handoff, and the reason beside it.
    pub(crate) fn clear(&self, place: Place, name: &str) -> io::Result<()> {
        let stem = name.strip_suffix(".json").unwrap_or(name);
        self.remove(place, &format!("{stem}{REASON}"))?;
        self.remove(place, name)
    }

    /// Returns true if a name is unused.
    pub(crate) fn lacks(&self, place: Place, name: &str) -> bool {
        matches!(look(self.at(place), name), Ok(None))
    }

    /// Moves the entry `name` to `rejected`, whatever it is, and writes the reason beside it.
    pub(crate) fn reject(&self, place: Place, name: &str, reason: &[u8]) -> io::Result<()> {
        let stem = name.strip_suffix(".json").unwrap_or(name);
        let rejected = self.at(Place::Rejected);
        // A file of the same name is kept: neither replaces the other.
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
            // A folder cannot be renamed over a file.
            Err(error) => return Err(error.into()),
        }
        Ok(fsync(rejected)?)
    }

    /// Writes the reason why a file is not taken that stays where it is.
    pub(crate) fn explain(&self, name: &str, reason: &[u8]) -> io::Result<()> {
        write(self.at(Place::Rejected), &format!("{name}{REASON}"), reason).map(drop)
    }
}

/// Endings of files that a program is still writing, or keeps for itself.
const TEMPORARY: [&str; 8] = ["~", ".tmp", ".temp", ".part", ".partial", ".swp", ".new", ".lock"];

fn is_temporary(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TEMPORARY.iter().any(|ending| name.ends_with(ending)) || name.contains(".tmp.")
}

/// Suffix of the file with a reason.
const REASON: &str = ".reason.json";

fn enter(folder: &OwnedFd, name: &str) -> io::Result<OwnedFd> {
    match mkdirat(folder, name, Mode::from_raw_mode(0o755)) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(error.into()),
    }
    openat(folder, name, FOLDER, Mode::empty())
        .map_err(|error| io::Error::other(format!("{name} is not a folder of its own: {error}")))
}

/// Returns the attributes of an entry; `None` if it does not exist.
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

/// Reads a plain file of limited size.
pub(crate) fn read(folder: &OwnedFd, name: &str) -> io::Result<Vec<u8>> {
    // Without blocking: a pipe without a writer must not block us.
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

/// Writes a file atomically, also across a power loss. Returns its attributes: a file that looks
/// different later was written by another program.
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
