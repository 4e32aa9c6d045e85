//! Mounts in a private namespace: a view of the file system with nothing in it but what the policy
//! grants, with read-only paths inside writable ones.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{MetadataExt, symlink};
use std::path::{Path, PathBuf};

use rustix::fs::{
    AtFlags, CWD, Mode, OFlags, ResolveFlags, StatVfsMountFlags, StatxAttributes, StatxFlags,
    openat2, statvfs, statx,
};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, UnmountFlags, mount, mount_bind, mount_bind_recursive, mount_remount, unmount,
};
use rustix::process::pivot_root;
use rustix::termios::ttyname;

use crate::policy::{real, without_dots};
use crate::view::{self, Step};
use crate::{Enforced, Pin, Policy, Swap};

/// What is mounted where, as this process sees it.
pub(crate) const TABLE: &str = "/proc/self/mountinfo";

/// Devices that do no harm and that every program may use.
const NODES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// The links in a folder for devices.
const LINKS: [(&str, &str); 5] = [
    ("fd", "/proc/self/fd"),
    ("stdin", "/proc/self/fd/0"),
    ("stdout", "/proc/self/fd/1"),
    ("stderr", "/proc/self/fd/2"),
    ("ptmx", "pts/ptmx"),
];

/// As many links as the system follows.
const LINKS_IN_A_PATH: usize = 40;

/// Gives this process and all its descendants the view of the file system that the policy grants,
/// made at the folder `root`, in which the pins stay in their places. Must be called by the first process in namespaces of its own. An
/// error means that the file system is the one outside.
pub(crate) fn put_in_place(policy: &Policy, pins: &[Pin], root: &Path) -> io::Result<Enforced> {
    mount("tmpfs", root, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, c"mode=755")?;
    let view = View { root, terminal: terminal() };
    let mut missing = Vec::new();
    let steps = view::steps(policy, pins, &[]);
    let (last, first): (Vec<Step>, Vec<Step>) =
        steps.into_iter().partition(|step| matches!(step, Step::Pin(_)));
    let mut perform = |steps: &[Step]| {
        for step in steps {
            if let Err(error) = view.perform(step) {
                missing.push(format!("{} ({error})", name(step)));
            }
        }
    };
    perform(&first);
    let folder = std::env::current_dir()?;
    std::env::set_current_dir(root)?;
    // The old root ends up below the new one, and goes.
    pivot_root(".", ".")?;
    unmount(".", UnmountFlags::DETACH)?;
    // Now a link leads to nothing but what is granted.
    perform(&last);
    if let Err(error) = std::env::set_current_dir(&folder) {
        std::env::set_current_dir("/")?;
        missing.push(format!("{} ({error})", folder.display()));
    }
    Ok(match check(policy) {
        Enforced::Fully if missing.is_empty() => Enforced::Fully,
        Enforced::Partly(more) => Enforced::Partly([missing, vec![more]].concat().join(", ")),
        _ => Enforced::Partly(missing.join(", ")),
    })
}

/// The terminal that this process was started in, if any.
pub(crate) fn terminal() -> Option<PathBuf> {
    let own = [rustix::stdio::stdin(), rustix::stdio::stdout(), rustix::stdio::stderr()];
    let name = own.iter().find_map(|stream| ttyname(stream, Vec::new()).ok())?;
    Some(std::ffi::OsString::from_vec(name.into_bytes()).into())
}

fn name(step: &Step) -> std::path::Display<'_> {
    match step {
        Step::Link { at, .. }
        | Step::Bind { at, .. }
        | Step::Pin(Pin { at, .. })
        | Step::Cover(at) => at.display(),
        Step::Proc => Path::new("/proc").display(),
        Step::Dev => Path::new("/dev").display(),
    }
}

/// A view of the file system in the making.
struct View<'a> {
    root: &'a Path,
    terminal: Option<PathBuf>,
}

impl View<'_> {
    fn perform(&self, step: &Step) -> io::Result<()> {
        match step {
            Step::Link { at, target } => symlink(target, self.inside(at)),
            Step::Bind { from, at, is_read_only } => {
                let Ok(found) = from.metadata() else { return Ok(()) };
                let place = self.place(at)?;
                make(&place, found.is_dir())?;
                mount_bind_recursive(from, &place)?;
                if *is_read_only { read_only(&place) } else { Ok(()) }
            }
            Step::Pin(pin) => fix(pin),
            Step::Cover(at) => {
                let flags = MountFlags::RDONLY
                    | MountFlags::NOSUID
                    | MountFlags::NODEV
                    | MountFlags::NOEXEC;
                Ok(mount("none", self.place(at)?, "tmpfs", flags, c"size=4k,mode=000")?)
            }
            Step::Proc => self.processes(),
            Step::Dev => self.devices(),
        }
    }

    fn processes(&self) -> io::Result<()> {
        let place = self.inside(Path::new("/proc"));
        fs::create_dir(&place)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        Ok(mount("proc", &place, "proc", flags, c"").or_else(|error| {
            // Programs need one; that it shows more is reported.
            mount_bind_recursive("/proc", &place)?;
            Err(error)
        })?)
    }

    fn devices(&self) -> io::Result<()> {
        let folder = self.inside(Path::new("/dev"));
        fs::create_dir(&folder)?;
        let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
        mount("tmpfs", &folder, "tmpfs", flags, c"mode=755,size=1m")?;
        for node in NODES {
            make(&folder.join(node), false)?;
            mount_bind(Path::new("/dev").join(node), folder.join(node))?;
        }
        for (name, target) in LINKS {
            symlink(target, folder.join(name))?;
        }
        for name in ["pts", "shm"] {
            fs::create_dir(folder.join(name))?;
        }
        let own = c"newinstance,ptmxmode=0666,mode=620";
        mount("devpts", folder.join("pts"), "devpts", flags, own)?;
        let flags = MountFlags::NOSUID | MountFlags::NODEV;
        mount("tmpfs", folder.join("shm"), "tmpfs", flags, c"mode=1777")?;
        // The terminal that it was started in has no name among its own ones.
        if let Some(terminal) = &self.terminal {
            make(&folder.join("console"), false)?;
            mount_bind(terminal, folder.join("console"))?;
        }
        Ok(())
    }

    /// Returns where an absolute path is before the view is in place.
    fn inside(&self, path: &Path) -> PathBuf {
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// Returns where a path leads in the view, in which the links of the path are made.
    fn place(&self, path: &Path) -> io::Result<PathBuf> {
        let mut path = path.to_owned();
        for _ in 0..LINKS_IN_A_PATH {
            let mut folders: Vec<&Path> = path.ancestors().collect();
            folders.reverse();
            let Some(link) = folders.into_iter().find(|folder| folder.is_symlink()) else {
                return Ok(self.inside(&path));
            };
            let (target, own) = (link.read_link()?, self.inside(link));
            if own.symlink_metadata().is_err() {
                fs::create_dir_all(own.parent().unwrap_or(self.root))?;
                symlink(&target, own)?;
            }
            let rest = path.strip_prefix(link).unwrap_or(Path::new(""));
            path = without_dots(&link.parent().unwrap_or(link).join(target).join(rest));
        }
        Err(Errno::LOOP.into())
    }
}

/// Mounts what is at a place there once more, in the view of this process.
fn fix(pin: &Pin) -> io::Result<()> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let opened = openat2(CWD, &pin.at, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    let place = match opened {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    // Both ends are the same, whatever the name leads to by now.
    let both = format!("/proc/self/fd/{}", place.as_raw_fd());
    mount_bind_recursive(&both, &both)?;
    if pin.is_read_only { read_only(&pin.at) } else { Ok(()) }
}

/// Returns the first pin at which something else is mounted than what is there: its name, or that of
/// a folder around it, was a link when another program mounted it.
pub(crate) fn replaced(pins: &[Pin]) -> io::Result<Option<PathBuf>> {
    let all = mounts()?;
    let is_itself = |mount: &Mount| {
        all.iter().filter(|around| around.id == mount.parent).any(|around| {
            let inner = mount.at.strip_prefix(&around.at);
            // Joined with nothing, a path would get a slash at its end.
            let inner = inner.map(|inner| around.root.join(inner).components().collect());
            mount.device == around.device && inner.is_ok_and(|root: PathBuf| root == mount.root)
        })
    };
    let is_there = |pin: &&Pin| all.iter().any(|mount| mount.at == pin.at && is_itself(mount));
    Ok(pins.iter().find(|pin| !is_there(pin)).map(|pin| pin.at.clone()))
}

/// A line of the [`TABLE`].
struct Mount {
    id: Vec<u8>,
    parent: Vec<u8>,
    device: Vec<u8>,
    /// The folder or file of its file system that it shows.
    root: PathBuf,
    at: PathBuf,
}

fn mounts() -> io::Result<Vec<Mount>> {
    let mount = |line: &[u8]| {
        let mut fields = line.split(|byte| *byte == b' ');
        Some(Mount {
            id: fields.next()?.to_owned(),
            parent: fields.next()?.to_owned(),
            device: fields.next()?.to_owned(),
            root: unescaped(fields.next()?),
            at: unescaped(fields.next()?),
        })
    };
    Ok(fs::read(TABLE)?.split(|byte| *byte == b'\n').filter_map(mount).collect())
}

/// Returns a path of the [`TABLE`], in which blanks and some others are a `\` with three digits.
fn unescaped(text: &[u8]) -> PathBuf {
    let mut parts = text.split(|byte| *byte == b'\\');
    let mut path = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(part.len().min(3));
        let byte = std::str::from_utf8(digits).ok().and_then(|it| u8::from_str_radix(it, 8).ok());
        path.extend(byte);
        path.extend_from_slice(rest);
    }
    std::ffi::OsString::from_vec(path).into()
}

/// Makes something to mount on, if nothing is there.
fn make(place: &Path, is_folder: bool) -> io::Result<()> {
    if place.symlink_metadata().is_ok() {
        return Ok(());
    }
    let folder = if is_folder { Some(place) } else { place.parent() };
    folder.map_or(Ok(()), fs::create_dir_all)?;
    if is_folder { Ok(()) } else { File::create(place).map(drop) }
}

/// Checks that pinned paths are on a read-only mount, and that the folders around them cannot be
/// moved away, whichever program made the mounts.
pub(crate) fn check(policy: &Policy) -> Enforced {
    let is_open = |path: &&PathBuf| {
        policy.is_linked(path)
            || (policy.is_writable(path) && path.symlink_metadata().is_ok() && !is_read_only(path))
    };
    let is_loose = |path: &PathBuf| !is_read_only(path) && !is_mount(path);
    let open = policy.pinned.iter().filter(is_open).cloned();
    let open = open.chain(policy.held().into_iter().filter(is_loose));
    let bare = policy.swaps.iter().filter(|swap| !is_over(swap)).map(|swap| swap.over.clone());
    let open: Vec<PathBuf> = open.chain(bare).collect();
    if open.is_empty() {
        return Enforced::Fully;
    }
    let open: Vec<String> = open.iter().map(|path| path.display().to_string()).collect();
    Enforced::Partly(format!("these can be changed: {}", open.join(", ")))
}

/// True if a folder is seen in the place of the other, which can only be read.
fn is_over(swap: &Swap) -> bool {
    let place = |path: &Path| path.metadata().map(|found| (found.dev(), found.ino())).ok();
    place(&swap.over).is_some_and(|over| Some(over) == place(&swap.with))
        && swap.kept.as_deref().is_none_or(is_read_only)
}

fn is_read_only(path: &Path) -> bool {
    statvfs(path).is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY))
}

/// True if something is mounted at a path.
fn is_mount(path: &Path) -> bool {
    let found = statx(CWD, path, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS);
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

/// Remounts a place read-only, with all that is mounted below it.
fn read_only(place: &Path) -> io::Result<()> {
    let place = real(place);
    let below = mounts()?.into_iter().map(|mount| mount.at).filter(|at| at.starts_with(&place));
    // What another mount covers has no name any more.
    below.filter(|at| is_mount(at)).try_for_each(|at| remount(&at))
}

/// Remounts one mount read-only. Its locked flags must be kept.
fn remount(path: &Path) -> io::Result<()> {
    let has = statvfs(path)?.f_flag;
    let mut flags = MountFlags::BIND | MountFlags::RDONLY;
    for (is, flag) in [
        (StatVfsMountFlags::NOSUID, MountFlags::NOSUID),
        (StatVfsMountFlags::NODEV, MountFlags::NODEV),
        (StatVfsMountFlags::NOEXEC, MountFlags::NOEXEC),
        (StatVfsMountFlags::NOATIME, MountFlags::NOATIME),
        (StatVfsMountFlags::NODIRATIME, MountFlags::NODIRATIME),
        (StatVfsMountFlags::RELATIME, MountFlags::RELATIME),
    ] {
        if has.contains(is) {
            flags |= flag;
        }
    }
    Ok(mount_remount(path, flags, "")?)
}
