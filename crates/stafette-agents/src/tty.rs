//! The system's terminals: the side of the program goes to it, the other one is ours.

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

/// Our side, to read from.
pub(crate) struct Output<'a>(ReadPty<'a>);

/// Our side, to write to.
pub(crate) struct Input<'a>(WritePty<'a>);

/// How a terminal treats what is typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Manner {
    /// Whether it gathers lines, and hands over only whole ones.
    pub(crate) lines: bool,
    /// Whether it shows what is typed.
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

    /// Changes its size.
    pub(crate) fn resize(&self, columns: u16, rows: u16) -> io::Result<()> {
        self.0.resize(Size::new(rows, columns)).map_err(plain)
    }

    /// How it treats what is typed.
    pub(crate) fn manner(&self) -> Manner {
        let modes = tcgetattr(self.0.as_fd()).map(|settings| settings.local_modes);
        let modes = modes.unwrap_or(LocalModes::empty());
        Manner { lines: modes.contains(LocalModes::ICANON), echo: modes.contains(LocalModes::ECHO) }
    }

    /// Both directions at once.
    pub(crate) fn split(&mut self) -> (Output<'_>, Input<'_>) {
        let (output, input) = self.0.split();
        (Output(output), Input(input))
    }

    /// Reads what the program prints. The end of it is an error (EIO).
    pub(crate) async fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        self.0.read(chunk).await
    }
}

impl Output<'_> {
    /// Reads what the program prints. The end of it is an error (EIO).
    pub(crate) async fn read(&mut self, chunk: &mut [u8]) -> io::Result<usize> {
        self.0.read(chunk).await
    }
}

impl Input<'_> {
    /// Types as much as there is room for.
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

/// Our side of a terminal, for those who wait.
pub(crate) struct BlockingTty(blocking::Pty);

/// The program's side of it.
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
