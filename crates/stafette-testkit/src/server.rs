//! A third-party server as a child process: on a free port, awaited, and ended with its owner.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The pause between two checks of a starting server.
const PAUSE: Duration = Duration::from_millis(50);

/// The first port that is given to a server.
const FIRST: u16 = 12_000;

/// Returns a port that is free, and stays so until its server listens: the system never assigns
/// these ports automatically, and each test process begins at another one.
pub(crate) fn free_port() -> io::Result<u16> {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let range = fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let end = range.split_whitespace().next().and_then(|port| port.parse().ok());
    let count = u32::from(end.unwrap_or(32_768_u16).saturating_sub(FIRST).max(1000));
    for _ in 0..count {
        let turn = TAKEN.fetch_add(1, Ordering::Relaxed);
        let place = std::process::id().wrapping_mul(97).wrapping_add(turn) % count;
        let port = FIRST + u16::try_from(place).unwrap_or(0);
        if TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok() {
            return Ok(port);
        }
    }
    Err(io::Error::other("every port is taken"))
}

pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A child process that is killed on drop.
#[derive(Debug)]
pub(crate) struct Running(Child);

impl Running {
    /// Starts it with its output in a file, and waits until `ready` returns true.
    pub(crate) fn start(
        command: &mut Command,
        log: &Path,
        within: Duration,
        ready: impl Fn() -> bool,
    ) -> io::Result<Self> {
        let out = File::create(log)?;
        command.stdin(Stdio::null()).stdout(out.try_clone()?).stderr(out);
        let mut running = Running(command.spawn()?);
        let deadline = Instant::now() + within;
        while !ready() {
            let ended = running.0.try_wait()?;
            if ended.is_some() || Instant::now() > deadline {
                let said = fs::read_to_string(log).unwrap_or_default();
                let tail: Vec<&str> = said.lines().rev().take(10).collect();
                let tail = tail.into_iter().rev().collect::<Vec<_>>().join(" / ");
                let how =
                    ended.map_or("is not ready in time".into(), |how| format!("ended: {how}"));
                return Err(io::Error::other(format!("the server {how}; it said: {tail}")));
            }
            thread::sleep(PAUSE);
        }
        Ok(running)
    }

    /// Returns its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// True if it has ended on its own.
    pub(crate) fn is_over(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Without a chance to clean up: tests of an outage want that, and the data of the others is
        // in a temporary folder.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_servers_get_two_ports_though_neither_is_there_yet() {
        let [first, second] = [(); 2].map(|()| free_port().expect("a port"));
        assert_ne!(first, second);
        let _taken = TcpListener::bind((Ipv4Addr::LOCALHOST, second + 1)).ok();
        assert_ne!(free_port().expect("another"), second + 1, "somebody is there");
    }
}
