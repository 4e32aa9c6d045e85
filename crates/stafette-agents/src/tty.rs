//! The system's terminals: the program gets one side, the other one is ours.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::os::fd::AsFd;

use pty_process::{Pts, Pty, ReadPty, Size, WritePty, blocking};
use rustix::termios::{LocalModes, tcgetattr};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

/// Our side of a terminal.
pub(crate) struct Tty(Pty);

/// The program's side of a terminal.
pub(crate) struct ProgramSide(Pts);

/// Our side of a terminal, to read from.
pub(crate) struct Output<'a>(ReadPty<'a>);

/// Our side of a terminal, to write to.
pub(crate) struct Input<'a>(WritePty<'a>);

/// The way a terminal treats input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Manner {
    /// True if it gathers lines, and hands over only whole ones.
    pub(crate) lines: bool,
    pub(crate) echo: bool,
}

impl fmt::Debug for Tty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tty")
    }
}

fn plain(error: pty_process::Error) -> io::Error {
    match error {
        pty_process::Error::Io(error) => error,
        pty_process::Error::Rustix(error) => error.into(),
        error => io::Error::other(error.to_string()),
    }
}

impl Tty {
    /// Opens a terminal. Must be called within a tokio runtime.
    pub(crate) fn open() -> io::Result<(Tty, ProgramSide)> {
        let (tty, program) = pty_process::open().map_err(plain)?;
        Ok((Tty(tty), ProgramSide(program)))
    }

    /// Changes the size of the terminal.
    pub(crate) fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        self.0.resize(Size::new(rows, columns)).map_err(plain)
    }

    /// The way it treats input.
    pub(crate) fn manner(&self) -> Manner {
        let modes = tcgetattr(self.0.as_fd()).map(|settings| settings.local_modes);
        let modes = modes.unwrap_or(LocalModes::empty());
        Manner { lines: modes.contains(LocalModes::ICANON), echo: modes.contains(LocalModes::ECHO) }
    }

    /// Both directions, for use in parallel.
    pub(crate) fn split(&mut self) -> (Output<'_>, Input<'_>) {
        let (output, input) = self.0.split();
        (Output(output), Input(input))
    }

    /// Reads output of the program. The end is an error (EIO).
    pub(crate) async fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        self.0.read(chunk).await
    }
}

impl Output<'_> {
    /// Reads output of the program. The end is an error (EIO).
    pub(crate) async fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        self.0.read(chunk).await
    }
}

impl Input<'_> {
    /// Types as many bytes as there is room for.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).await
    }
}

impl ProgramSide {
    /// Starts a program as the leader of a session with this terminal.
    pub(crate) fn start(self, command: Command) -> io::Result<Child> {
        pty_process::Command::from(command).spawn(self.0).map_err(plain)
    }
}

/// Our side of a terminal, for blocking callers.
pub(crate) struct BlockingTty(blocking::Pty);

/// The program's side of a blocking terminal.
pub(crate) struct BlockingProgramSide(blocking::Pts);

impl BlockingTty {
    /// Opens a terminal of this size.
    pub(crate) fn open((columns, rows): (u16, u16)) -> io::Result<(Self, BlockingProgramSide)> {
        let (tty, program) = blocking::open().map_err(plain)?;
        tty.resize(Size::new(rows, columns)).map_err(plain)?;
        Ok((BlockingTty(tty), BlockingProgramSide(program)))
    }
}

impl io::Read for &BlockingTty {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        (&self.0).read(buffer)
    }
}

impl BlockingProgramSide {
    /// Starts a program as the leader of a session with this terminal.
    pub(crate) fn start(
        self,
        program: &OsString,
        arguments: impl IntoIterator<Item = OsString>,
    ) -> io::Result<std::process::Child> {
        blocking::Command::new(program).args(arguments).spawn(self.0).map_err(plain)
    }
}
