//! Mounts in a private namespace: read-only paths inside writable ones, which an allow-list by
//! folders cannot express, and hidden sockets.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, StatVfsMountFlags, StatxAttributes, StatxFlags, statvfs, statx};
use rustix::io::Errno;
use rustix::mount::{
    MountFlags, MountPropagationFlags, mount, mount_bind, mount_bind_recursive, mount_change,
    mount_remount,
};
use rustix::thread::UnshareFlags;

use crate::policy::real;
use crate::{Enforced, Policy, Swap};

/// Sets up the mounts for this process and all its descendants.
pub(crate) fn put_in_place(policy: &Policy) -> Enforced {
    if let Err(error) = enter() {
        return Enforced::Not(format!("no namespace for mounts: {error}"));
    }
    let mut missing = Vec::new();
    for swap in &policy.swaps {
        if let Err(error) = put_over(swap) {
            missing.push(format!("{} ({error})", swap.over.display()));
        }
    }
    // A place that something is mounted on cannot be renamed or removed.
    for folder in policy.held() {
        if let Err(error) = mount_bind_recursive(&folder, &folder) {
            missing.push(format!("{} ({error})", folder.display()));
        }
    }
    for path in &policy.pinned {
        if let Err(error) = pin(policy, path) {
            missing.push(format!("{} ({error})", path.display()));
        }
    }
    for path in policy.hidden.iter().chain(&policy.closed) {
        if let Err(error) = hide(policy, path) {
            missing.push(format!("{} ({error})", path.display()));
        }
    }
    if let Err(error) = replace_tmp(policy) {
        missing.push(format!("/tmp ({error})"));
    }
    match check(policy) {
        Enforced::Fully if missing.is_empty() => Enforced::Fully,
        Enforced::Partly(more) => Enforced::Partly([missing, vec![more]].concat().join(", ")),
        _ => Enforced::Partly(missing.join(", ")),
    }
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

fn enter() -> io::Result<()> {
    // A process that may mount needs no user namespace, in which other users' files would appear to
    // belong to nobody.
    match unshare(UnshareFlags::NEWNS) {
        Err(Errno::PERM) => {
            let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
            unshare(UnshareFlags::NEWNS | UnshareFlags::NEWUSER)?;
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("{user} {user} 1", user = user.as_raw()))?;
            fs::write("/proc/self/gid_map", format!("{group} {group} 1", group = group.as_raw()))?;
        }
        other => other?,
    }
    let private = MountPropagationFlags::PRIVATE | MountPropagationFlags::REC;
    Ok(mount_change("/", private)?)
}

#[expect(
    deprecated,
    reason = "only to unshare the table of files is unsound, and that is not asked for"
)]
fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    rustix::thread::unshare(flags)
}

/// Covers a folder with another.
fn put_over(swap: &Swap) -> io::Result<()> {
    if let Some(kept) = &swap.kept {
        mount_bind_recursive(&swap.over, kept)?;
        read_only(kept)?;
    }
    Ok(mount_bind(&swap.with, &swap.over)?)
}

/// Makes a path read-only if it is inside a writable folder.
fn pin(policy: &Policy, path: &Path) -> io::Result<()> {
    if policy.is_linked(path) {
        return Err(io::Error::other("a link leads to it"));
    }
    if !policy.is_writable(path) || !path.exists() {
        return Ok(());
    }
    mount_bind_recursive(path, path)?;
    read_only(path)
}

/// Remounts a path read-only. Locked flags of the mount must be kept.
fn read_only(path: &Path) -> io::Result<()> {
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

/// Covers a path with an empty file or folder.
fn hide(policy: &Policy, path: &Path) -> io::Result<()> {
    let Ok(metadata) = path.metadata() else { return Ok(()) };
    let path = real(path);
    let is_needed = |needed: &PathBuf| real(needed).starts_with(&path);
    if policy.sockets.iter().chain(&policy.write).any(is_needed) {
        let children = fs::read_dir(&path)?.flatten().map(|child| child.path());
        let mut children = children.filter(|child| !policy.sockets.contains(child));
        return children.try_for_each(|child| hide(policy, &child));
    }
    if metadata.is_dir() {
        let flags =
            MountFlags::RDONLY | MountFlags::NOSUID | MountFlags::NODEV | MountFlags::NOEXEC;
        return Ok(mount("none", &path, "tmpfs", flags, c"size=4k,mode=000")?);
    }
    Ok(mount_bind("/dev/null", &path)?)
}

/// Makes `/tmp` the temporary folder of this agent, unless something that it needs is in `/tmp`.
fn replace_tmp(policy: &Policy) -> io::Result<()> {
    let granted = policy.write.iter().chain(&policy.read).chain(&policy.sockets);
    if granted.map(|path| real(path)).any(|path| path.starts_with("/tmp")) {
        return Ok(());
    }
    Ok(mount_bind(&policy.temp, "/tmp")?)
}
