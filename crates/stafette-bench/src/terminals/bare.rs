//! A bare terminal of the system: the reference.

use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

use crate::BenchError;

/// Both sides of a terminal of the system.
pub(super) struct BarePty {
    ours: File,
    program: File,
}

impl BarePty {
    pub(super) fn open() -> Result<Self, BenchError> {
        let ours = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)?;
        grantpt(&ours)?;
        unlockpt(&ours)?;
        let name = ptsname(&ours, Vec::new())?;
        let path = std::path::Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
        // Otherwise it would become the controlling terminal of a session leader that has none, and
        // end it.
        let unowned = OpenptFlags::NOCTTY.bits().cast_signed();
        let program = OpenOptions::new().read(true).write(true).custom_flags(unowned).open(path)?;
        Ok(BarePty { ours: ours.into(), program })
    }

    /// Types a key and waits for the system to echo it.
    pub(super) fn echo(&mut self) -> Result<Duration, BenchError> {
        let begin = Instant::now();
        self.ours.write_all(b"k")?;
        let mut key = [0; 64];
        match self.ours.read(&mut key)? {
            0 => Err("the terminal shows nothing".into()),
            _ => Ok(begin.elapsed()),
        }
    }

    /// Reads all output of a program; returns the number of bytes.
    pub(super) fn read_all(self, program: &str) -> Result<u64, BenchError> {
        let BarePty { mut ours, program: side } = self;
        let output = Stdio::from(side);
        let mut child =
            Command::new("sh").args(["-c", program]).stdin(Stdio::null()).stdout(output).spawn()?;
        let (mut count, mut chunk) = (0, vec![0; 16 * 1024]);
        loop {
            match ours.read(&mut chunk) {
                Ok(0) => break,
                Ok(read) => count += read as u64,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // Its last program has ended, and so has the terminal.
                Err(_) => break,
            }
        }
        child.wait()?;
        Ok(count)
    }
}
