//! The state of a project: outside of the project's folder, so that no repository can bring it
//! along.
//!
//! It lies in `stafette/projects/NAME-HASH` of the user's state folder, belongs to its user alone,
//! and notes the folder that it was made for. In the project there is only the lock of its daemon:
//! whoever looks from another environment finds the same daemon by it.

pub(crate) mod moved;
pub(crate) mod older;

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::UNIX_EPOCH;

use rustix::fs::{CWD, FlockOperation, Mode, OFlags, fchmod, flock, mkdirat, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use stafette_core::hex;
use stafette_engine::{Provenance, provenance_now};

use crate::exit::Failure;
use crate::project::user;

/// The folder in the project. Nothing in it is read but the lock.
pub(crate) const LOCAL: &str = ".stafette";

/// The file that says which folder a state was made for.
pub(crate) const OWNER: &str = "project.json";

/// The longest path that a socket may have everywhere, with some room.
const SOCKET_PATH: usize = 100;

/// The folder in a home for sockets that have no other place.
const SOCKETS: &str = ".cache/stafette-run";

/// The most that is read of a lock.
const LOCK_BYTES: u64 = 8 * 1024;

const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The folder that a state was made for. A folder that is put in its place is another one, even
/// if it gets the same inode: then it was made later.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Owner {
    /// For people; the name of the state's folder is made from it.
    path: String,
    device: u64,
    inode: u64,
    /// When the project's folder was made, in milliseconds; `None` where the disk does not say.
    made: Option<u64>,
    /// When the state was made, in milliseconds.
    since: u64,
}

impl Owner {
    fn of(root: &Path) -> io::Result<Self> {
        let found = fs::metadata(root)?;
        Ok(Owner {
            path: root.to_string_lossy().into_owned(),
            device: found.dev(),
            inode: found.ino(),
            made: found.created().ok().map(millis),
            since: millis(std::time::SystemTime::now()),
        })
    }

    fn is(&self, other: &Owner) -> bool {
        let same_age = self.made.is_none() || other.made.is_none() || self.made == other.made;
        (self.device, self.inode) == (other.device, other.inode) && same_age
    }
}

/// The folder for a project's state, whether it exists or not.
pub(crate) fn place(root: &Path) -> PathBuf {
    let name = root.file_name().unwrap_or_default().to_string_lossy();
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).take(40).collect();
    projects().join(format!("{name}-{}", key(root)))
}

/// Opens a project's state, which is made when there is none.
///
/// # Errors
/// When it belongs to another folder or user, or cannot be written.
pub(crate) fn open(root: &Path) -> Result<PathBuf, Failure> {
    let folder = place(root);
    make_private(&folder)?;
    if is_tracked(root, &folder) {
        return Err(not_ours(&folder, "it lies in the project, and git tracks it or cannot say"));
    }
    if check(root)?.is_none() {
        note(root)?;
        check(root)?;
    }
    let turns = folder.join("turns");
    stafette_disk::folder(&turns).map_err(|error| not_written(&turns, &error))?;
    Ok(folder)
}

/// When the project's state was made, in milliseconds; `None` when there is none yet.
///
/// # Errors
/// When it belongs to another folder.
pub(crate) fn check(root: &Path) -> Result<Option<u64>, Failure> {
    let folder = place(root);
    let file = folder.join(OWNER);
    let text = match fs::read(&file) {
        Ok(text) => text,
        Err(error) => match error.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => return Ok(None),
            _ => return Err(not_read(&file, &error)),
        },
    };
    let present = Owner::of(root).map_err(|error| not_read(root, &error))?;
    match serde_json::from_slice::<Owner>(&text) {
        Ok(owner) if owner.is(&present) => Ok(Some(owner.since)),
        Ok(owner) => Err(another(&folder).why(format!(
            "it was made for the folder that was at {} before (device {}, inode {}); now another \
             one is there (device {}, inode {})",
            owner.path, owner.device, owner.inode, present.device, present.inode
        ))),
        Err(error) => Err(another(&folder).because(&error)),
    }
}

/// Notes that the state belongs to the folder that is at the project's path now.
pub(crate) fn note(root: &Path) -> Result<(), Failure> {
    let file = place(root).join(OWNER);
    let write = || -> io::Result<()> {
        let owner = serde_json::to_vec_pretty(&Owner::of(root)?)?;
        stafette_disk::replace(&file, &owner)
    };
    write().map_err(|error| not_written(&file, &error))
}

/// Puts the state aside, and returns where it is then.
pub(crate) fn put_aside(root: &Path) -> Result<PathBuf, Failure> {
    let folder = place(root);
    let mut name = folder.file_name().unwrap_or_default().to_owned();
    name.push(format!(".aside-{}", millis(std::time::SystemTime::now())));
    let aside = folder.with_file_name(name);
    fs::rename(&folder, &aside).map_err(|error| not_written(&aside, &error))?;
    Ok(aside)
}

/// The paths of the daemon's sockets, by their names. Such paths have a short limit, so a deep
/// state has its sockets elsewhere.
pub(crate) fn socket(root: &Path, name: &str) -> PathBuf {
    let near = place(root).join(format!("{name}.sock"));
    if near.as_os_str().len() < SOCKET_PATH {
        return near;
    }
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let folder = runtime.filter(|folder| folder.is_absolute()).unwrap_or_else(socket_folder);
    folder.join(format!("stafette-{}-{name}.sock", key(root)))
}

/// The folder for sockets where the system names none: one for temporary files, or one in the home where
/// another user was first there.
fn socket_folder() -> PathBuf {
    let shared = shared_folder();
    let is_taken = fs::symlink_metadata(&shared).is_ok_and(|found| found.uid() != user());
    let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute());
    match home.filter(|_| is_taken) {
        Some(home) => home.join(SOCKETS),
        None => shared,
    }
}

/// Makes the folder of a socket that is not in the state.
pub(crate) fn make_socket_folder(socket: &Path) -> Result<(), Failure> {
    match socket.parent() {
        Some(folder) if folder == shared_folder() => make_one(folder),
        Some(folder) if folder.ends_with(SOCKETS) => {
            let around = folder.parent().unwrap_or(folder);
            fs::create_dir_all(around).map_err(|error| not_written(around, &error))?;
            make_one(folder)
        }
        _ => Ok(()),
    }
}

/// What the daemon writes into its lock.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Holder {
    pub(crate) pid: u32,
    pub(crate) socket: String,
}

/// The path of the lock, for people and for the watch over it.
pub(crate) fn lock_path(root: &Path) -> PathBuf {
    root.join(LOCAL).join("lock")
}

/// Opens the lock of the project's daemon, without following a link.
///
/// # Errors
/// When something else is at its place, or it belongs to another user.
pub(crate) fn open_lock(root: &Path) -> Result<File, Failure> {
    let local = root.join(LOCAL);
    let failed = |error: Errno| not_written(&local, &error.into());
    let project = openat(CWD, root, FOLDER, Mode::empty()).map_err(failed)?;
    match mkdirat(&project, LOCAL, Mode::RWXU) {
        Ok(()) | Err(Errno::EXIST) => {}
        Err(error) => return Err(failed(error)),
    }
    let folder = openat(&project, LOCAL, FOLDER, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => not_ours(&local, "it is a link or no folder at all"),
        error => failed(error),
    })?;
    owned(&local, &File::from(folder.try_clone().map_err(|error| not_written(&local, &error))?))?;
    ignore(&folder);
    let path = lock_path(root);
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let file = openat(&folder, "lock", flags | OFlags::CLOEXEC, Mode::RUSR | Mode::WUSR);
    let file = file.map(File::from).map_err(|error| match error {
        Errno::LOOP => not_ours(&path, "it is a link"),
        Errno::ISDIR | Errno::NXIO => not_ours(&path, "it is not a plain file"),
        error => not_written(&path, &error.into()),
    })?;
    let found = owned(&path, &file)?;
    match found.is_file() && found.nlink() == 1 {
        true => Ok(file),
        false => Err(not_ours(&path, "it is not a plain file of its own")),
    }
}

/// The daemon that holds the lock, as it says. Nothing else in the file counts: a repository can
/// have brought it.
pub(crate) fn holder(root: &Path) -> Option<Holder> {
    let path = lock_path(root);
    let folder = openat(CWD, path.parent()?, FOLDER, Mode::empty()).ok()?;
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(&folder, "lock", flags, Mode::empty()).ok()?);
    let mut text = String::new();
    (&file).take(LOCK_BYTES).read_to_string(&mut text).ok()?;
    let holder = serde_json::from_str(&text).ok()?;
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Err(Errno::WOULDBLOCK) => Some(holder),
        // It is free: whoever wrote it is gone, or never was.
        _ => None,
    }
}

/// The socket of a daemon that was started in another environment, if one holds the project.
pub(crate) fn socket_elsewhere(root: &Path, own: &Path) -> Option<PathBuf> {
    let socket = PathBuf::from(holder(root)?.socket);
    let found = fs::symlink_metadata(&socket).ok()?;
    let is_ours = found.file_type().is_socket() && found.uid() == user();
    (is_ours && socket != own).then_some(socket)
}

/// Checks that a socket is the user's own, if it is there: in a folder of the system another user
/// may have been first.
pub(crate) fn check_socket(socket: &Path) -> Result<(), Failure> {
    match fs::symlink_metadata(socket) {
        Ok(found) => owner(socket, &found),
        Err(_) => Ok(()),
    }
}

/// The project whose state a folder lies in: the worktrees of its agents are there.
pub(crate) fn project_of(folder: &Path) -> Option<PathBuf> {
    let projects = projects().canonicalize().ok()?;
    let inner = folder.strip_prefix(&projects).ok()?;
    let state = projects.join(inner.components().next()?);
    let owner: Owner = serde_json::from_slice(&fs::read(state.join(OWNER)).ok()?).ok()?;
    let root = PathBuf::from(owner.path);
    (place(&root).file_name() == state.file_name()).then_some(root)
}

/// The folder of all projects' states.
fn projects() -> PathBuf {
    home().join("projects")
}

/// The folder for all that is kept for this user. A relative path would lead into whatever project
/// is worked in.
pub(crate) fn home() -> PathBuf {
    // Without a base no project is found, see `check_home`: nothing is kept where others may write.
    base().unwrap_or_else(|| PathBuf::from("/dev/null")).join("stafette")
}

/// Checks that there is a place for what is kept.
pub(crate) fn check_home() -> Result<(), Failure> {
    match base() {
        Some(_) => Ok(()),
        None => Err(Failure::usage("There is no place to keep runs in")
            .why("XDG_STATE_HOME and HOME are no absolute paths, and the system knows no home of this user")
            .fix("set XDG_STATE_HOME to a folder of your own, such as /var/lib/me")),
    }
}

/// The folder of the user's state, by the environment or by the system's list of users.
fn base() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).filter(|folder| folder.is_absolute())
    };
    let home = || absolute("HOME").or_else(home_of_user).map(|home| home.join(".local/state"));
    absolute("XDG_STATE_HOME").or_else(home)
}

/// The home of the user as the system has it.
fn home_of_user() -> Option<PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let look = || {
        let known = |home: PathBuf| Some(home).filter(|home| home.is_absolute() && home.is_dir());
        // Without HOME the system is asked, which also knows users of a directory service.
        if std::env::var_os("HOME").is_none() {
            return std::env::home_dir().and_then(known);
        }
        let list = fs::read_to_string("/etc/passwd").ok()?;
        let user = user().to_string();
        let fields = list.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let mut own = fields.filter(|fields| fields.get(2) == Some(&user.as_str()));
        known(PathBuf::from(own.next()?.get(5)?))
    };
    FOUND.get_or_init(look).clone()
}

/// True for a state within the project, such as one of a user's whole home, that the repository may
/// have brought along.
fn is_tracked(root: &Path, state: &Path) -> bool {
    let inner =
        state.canonicalize().ok().and_then(|state| Some(state.strip_prefix(root).ok()?.to_owned()));
    let Some(inner) = inner else { return false };
    let answer = inner.to_str().map(|inner| provenance_now(root, inner));
    !matches!(answer, Some(Ok(Provenance::Untracked)))
}

fn key(root: &Path) -> String {
    hex::encode(&Sha256::digest(root.as_os_str().as_encoded_bytes()))[..24].to_owned()
}

/// The user's own folder where the system has none for sockets.
fn shared_folder() -> PathBuf {
    std::env::temp_dir().join(format!("stafette-{}", user()))
}

/// Makes a state's folder, and those around it that are ours: each is its user's alone.
fn make_private(folder: &Path) -> Result<(), Failure> {
    let ours: Vec<&Path> = folder.ancestors().take(3).collect();
    if let Some(base) = ours.last().and_then(|stafette| stafette.parent()) {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700);
        builder.create(base).map_err(|error| not_written(base, &error))?;
    }
    ours.into_iter().rev().try_for_each(make_one)
}

fn make_one(folder: &Path) -> Result<(), Failure> {
    match DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
            return Err(not_written(folder, &error));
        }
        _ => {}
    }
    let open = openat(CWD, folder, FOLDER, Mode::empty()).map_err(|error| match error {
        Errno::LOOP | Errno::NOTDIR => not_ours(folder, "it is a link or no folder at all"),
        error => not_written(folder, &error.into()),
    })?;
    let open = File::from(open);
    let found = owned(folder, &open)?;
    if found.mode() & 0o077 != 0 {
        // Made under another umask, or by hand.
        fchmod(&open, Mode::RWXU).map_err(|error| not_written(folder, &error.into()))?;
    }
    Ok(())
}

/// Whatever the project's own `.gitignore` says, the lock is never committed.
fn ignore(folder: &OwnedFd) {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    if let Ok(file) = openat(folder, ".gitignore", flags, Mode::RUSR | Mode::WUSR) {
        // Without it git shows the folder, and nothing else is different.
        let _ = File::from(file).write_all(b"*\n");
    }
}

fn owned(path: &Path, file: &File) -> Result<fs::Metadata, Failure> {
    let found = file.metadata().map_err(|error| not_read(path, &error))?;
    owner(path, &found).map(|()| found)
}

fn owner(path: &Path, found: &fs::Metadata) -> Result<(), Failure> {
    match found.uid() == user() {
        true => Ok(()),
        false => Err(Failure::failed(format!("{} is not used", path.display()))
            .why(format!("it belongs to another user (number {})", found.uid()))
            .fix("call stafette as that user, or have them remove it")),
    }
}

fn not_ours(path: &Path, why: &str) -> Failure {
    Failure::failed(format!("{} is not used", path.display()))
        .why(format!("{why}, so Stafette has not made it"))
        .fix("see where it leads, and remove it")
}

fn another(folder: &Path) -> Failure {
    Failure::failed(format!("The state in {} is not of this folder", folder.display())).fix(
        "if this is the same project (restored, or on a disk that has another number now), keep \
         its state with `stafette state adopt`; if not, put it aside with `stafette state forget`",
    )
}

pub(crate) fn not_written(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("Cannot write {}", path.display()))
        .because(error)
        .fix("see that you may write there; `stafette state` says what is kept where")
}

pub(crate) fn not_read(path: &Path, error: &io::Error) -> Failure {
    Failure::failed(format!("Cannot read {}", path.display()))
        .because(error)
        .fix("see that you may read it; `stafette state` says what is kept where")
}

fn millis(at: std::time::SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
