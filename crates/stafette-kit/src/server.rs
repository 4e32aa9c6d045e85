//! A server of others as a child process: on a free port, waited for, and gone with its owner.

use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// Between two looks at a server that starts.
const PAUSE: Duration = Duration::from_millis(50);

/// A port that is free at this moment.
pub(crate) fn free_port() -> io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

pub(crate) fn loopback(port: u16) -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, port))
}

/// A child that ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Running(Child);

impl Running {
    /// Starts it with what it says in a file, and waits until `ready` says so.
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

    /// Its process id.
    pub(crate) fn pid(&self) -> u32 {
        self.0.id()
    }

    /// Whether it has ended by itself.
    pub(crate) fn is_over(&mut self) -> bool {
        !matches!(self.0.try_wait(), Ok(None))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Without a chance to tidy up: that is what tests of an outage want, and what the others
        // have written is in a temporary folder.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
