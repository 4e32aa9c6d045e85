//! Namespaces of a sandbox's own, and the two processes that stay beside its command: the launcher
//! outside, which the daemon started and waits for, and the first process inside, with which the
//! kernel ends all others. Both end with the daemon.

use std::fs;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use rustix::io::Errno;
use rustix::mount::{MountPropagationFlags, mount_change};
use rustix::process::{
    Pid, Signal, WaitOptions, getpid, getppid, set_parent_process_death_signal, wait,
};
use rustix::thread::{
    CapabilitySets, UnshareFlags, capabilities, configure_capability_in_ambient_set,
    set_capabilities,
};

/// True if this is the first process of its namespace.
pub(crate) fn is_first() -> bool {
    getpid().is_init()
}

/// Prepares namespaces: what this process starts from now on is in them.
pub(crate) fn separate() -> io::Result<()> {
    let own = UnshareFlags::NEWNS | UnshareFlags::NEWIPC | UnshareFlags::NEWUTS;
    // A process that may mount needs no user namespace, in which other users' files would appear to
    // belong to nobody.
    match unshare(own) {
        Err(Errno::PERM) => {
            let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
            unshare(own | UnshareFlags::NEWUSER)?;
            fs::write("/proc/self/setgroups", "deny")?;
            fs::write("/proc/self/uid_map", format!("{user} {user} 1", user = user.as_raw()))?;
            fs::write("/proc/self/gid_map", format!("{group} {group} 1", group = group.as_raw()))?;
            pass_on_capabilities()?;
        }
        other => other?,
    }
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)?;
    // Last: nothing else may fail once children are in another namespace.
    Ok(unshare(UnshareFlags::NEWPID)?)
}

/// Lets the program that this process starts next mount in the new namespaces: it starts without
/// the capabilities there unless they are ambient.
fn pass_on_capabilities() -> io::Result<()> {
    let has = capabilities(None)?;
    set_capabilities(None, CapabilitySets { inheritable: has.permitted, ..has })?;
    let mut all = has.permitted.iter();
    Ok(all.try_for_each(|one| configure_capability_in_ambient_set(one, true))?)
}

#[expect(
    deprecated,
    reason = "only to unshare the table of files is unsound, and that is not asked for"
)]
fn unshare(flags: UnshareFlags) -> Result<(), Errno> {
    rustix::thread::unshare(flags)
}

/// Has the kernel kill this process when the one that started it ends. False if that has happened
/// already: `parent` is the process that was to start it.
///
/// The kernel goes by the thread that started it, which has to live as long as its process: no
/// thread of a pool may start a launcher.
pub(crate) fn end_with(parent: Option<u32>) -> io::Result<bool> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    let is = |parent: u32| getppid().map(Pid::as_raw_pid) == i32::try_from(parent).ok();
    Ok(parent.is_none_or(is))
}

/// Starts this program again, as the first process of the prepared namespaces, and waits for it.
/// Signals for the whole group are for the command, which decides if it ends.
pub(crate) fn attend() -> io::Result<ExitCode> {
    let told = Arc::new(AtomicBool::new(false));
    for signal in [Signal::TERM, Signal::INT, Signal::HUP, Signal::QUIT] {
        signal_hook::flag::register(signal.as_raw(), Arc::clone(&told))?;
    }
    let mut own = std::env::args_os();
    let mut command = Command::new("/proc/self/exe");
    command.arg0(own.next().unwrap_or_default()).args(own);
    Ok(code(command.status()?))
}

/// Runs the command as the first process, which has to wait for every process in its namespace.
/// Returns when the command ends; then the kernel ends what it has left behind.
pub(crate) fn run(mut command: Command) -> io::Result<ExitCode> {
    let own = i32::try_from(command.spawn()?.id()).ok();
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((ended, status))) if Some(ended.as_raw_pid()) == own => {
                return Ok(code(ExitStatus::from_raw(status.as_raw())));
            }
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
}

/// The exit code for a status, as shells give it.
fn code(status: ExitStatus) -> ExitCode {
    let code = status.code().or_else(|| Some(128 + status.signal()?));
    ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX))
}
