//! Processes whose parents have ended. A daemon takes over those that its agents leave behind, so
//! that each of them stays its descendant, whatever it did to its environment, group and session.

use std::io;

/// Lets this process take over the orphans among its descendants, and gives it the name by which
/// others know a daemon.
///
/// # Errors
/// When the system refuses it.
#[cfg(target_os = "linux")]
pub fn adopt() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    std::fs::write("/proc/self/comm", super::DAEMON)
}

/// Does nothing: not possible on this system.
#[cfg(not(target_os = "linux"))]
#[expect(clippy::missing_errors_doc, clippy::unnecessary_wraps, reason = "as on Linux")]
pub fn adopt() -> io::Result<()> {
    Ok(())
}

/// Lets orphans that have ended go. To be called on the main thread, which is the one that they are
/// given to, and which must start no process itself: what other threads have started is theirs to
/// wait for, and is left to them.
#[cfg(target_os = "linux")]
pub fn reap() {
    use rustix::process::{WaitId, WaitIdOptions, waitid};
    // `__WNOTHREAD`: not the children of other threads.
    let own = WaitIdOptions::from_bits_retain(0x2000_0000);
    let options = own | WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    while let Ok(Some(_)) = waitid(WaitId::All, options) {}
}

/// Does nothing: orphans are the system's.
#[cfg(not(target_os = "linux"))]
pub fn reap() {}

/// Kills what is left of the children of this process, and their descendants: nobody would know
/// afterwards whose they were.
#[cfg(target_os = "linux")]
pub fn end() {
    use rustix::process::{Signal, kill_process};
    let since = std::time::Instant::now();
    while since.elapsed() < super::GRACE {
        let left = super::table::children();
        if left.is_empty() {
            return;
        }
        for child in left {
            // One that is gone by now needs nothing.
            let _ = kill_process(child, Signal::KILL);
        }
        reap();
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Does nothing: orphans are the system's.
#[cfg(not(target_os = "linux"))]
pub fn end() {}
