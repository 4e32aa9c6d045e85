//! The frames of any program as JSON lines, so that a prompt can be tested from a shell.
//!
//! One object per line, flushed as it is found: `{"type", "payload", "offset"}`, or `{"malformed",
//! "offset"}` for text that opened like a frame and is none. On a screen, where nothing is
//! malformed because everything is half drawn at some time, each frame also has its `"tier"`.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use serde::Serialize;
use serde_json::Value;
use stafette_core::wire::frame::{Found, FrameError, Scanner, Word};
use thiserror::Error;

use crate::screen::{BadSize, Screen, Sighting, Tier};
use crate::tty::BlockingTty;

/// The size of a program's terminal when none is asked for.
pub const DEFAULT_SIZE: (u16, u16) = (80, 24);

/// The number of bytes in one read.
const READ: usize = 64 * 1024;

/// Options for the search for frames.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FramesOptions {
    pub word: Word,
    /// Columns and rows of the screen to search; `None` searches the bytes themselves.
    pub screen: Option<(u16, u16)>,
}

/// The reason why frames could not be reported.
#[derive(Debug, Error)]
pub enum FramesError {
    /// The size of the screen is invalid.
    #[error(transparent)]
    Size(#[from] BadSize),
    #[error("cannot read the stream: {source}")]
    Read { source: io::Error },
    #[error("cannot write the report: {source}")]
    Write { source: io::Error },
    #[error("cannot open a terminal: {source}")]
    Terminal { source: io::Error },
    #[error("cannot start `{program}`: {source}")]
    Start { program: String, source: io::Error },
    #[error("cannot await the end of `{program}`: {source}")]
    Await { program: String, source: io::Error },
}

/// One line of the report.
#[derive(Serialize)]
#[serde(untagged)]
enum Report {
    Frame {
        r#type: String,
        payload: Value,
        offset: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        tier: Option<Tier>,
    },
    Malformed {
        malformed: String,
        offset: u64,
    },
}

impl From<Found> for Report {
    fn from(found: Found) -> Self {
        match found {
            Found::Frame { frame, offset } => {
                Report::Frame { payload: frame.value(), r#type: frame.kind, offset, tier: None }
            }
            Found::Malformed { fault, offset, .. } => {
                Report::Malformed { malformed: FrameError::to_string(&fault), offset }
            }
        }
    }
}

impl From<Sighting> for Report {
    fn from(sighting: Sighting) -> Self {
        Report::Frame {
            payload: sighting.frame.value(),
            r#type: sighting.frame.kind,
            offset: sighting.offset,
            tier: Some(sighting.tier),
        }
    }
}

enum Finder {
    Bytes(Box<Scanner>),
    Screen(Box<Screen>),
}

impl Finder {
    fn new(options: &FramesOptions) -> Result<Self, BadSize> {
        let word = options.word.clone();
        Ok(match options.screen {
            None => Finder::Bytes(Box::new(Scanner::new(word))),
            Some((columns, rows)) => Finder::Screen(Box::new(Screen::new(word, columns, rows)?)),
        })
    }

    /// Returns the frames that the next bytes complete; `None` as input means the end of the
    /// stream.
    fn find(&mut self, bytes: Option<&[u8]>) -> Vec<Report> {
        let mut reports = Vec::new();
        match (self, bytes) {
            (Finder::Bytes(scanner), Some(bytes)) => {
                scanner.scan(bytes, |found| reports.push(found.into()));
            }
            (Finder::Bytes(scanner), None) => scanner.finish(|found| reports.push(found.into())),
            (Finder::Screen(screen), Some(bytes)) => {
                reports.extend(screen.feed(bytes).into_iter().map(Report::from));
            }
            (Finder::Screen(screen), None) => {
                reports.extend(screen.finish().into_iter().map(Report::from));
            }
        }
        reports
    }
}

/// Reports the frames of a stream, until it ends.
///
/// # Errors
/// When the stream cannot be read, the report cannot be written, or the screen has no such size.
pub fn scan_reader(
    options: &FramesOptions,
    mut reader: impl Read,
    mut writer: impl Write,
) -> Result<(), FramesError> {
    let mut finder = Finder::new(options)?;
    let mut buffer = vec![0; READ];
    loop {
        let size = match reader.read(&mut buffer) {
            Ok(size) => size,
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if is_hangup(&error) => 0,
            Err(source) => return Err(FramesError::Read { source }),
        };
        let bytes = (size > 0).then(|| &buffer[..size]);
        let reports = finder.find(bytes);
        write(&mut writer, &reports).map_err(|source| FramesError::Write { source })?;
        if size == 0 {
            return Ok(());
        }
    }
}

/// Runs a program in a terminal of its own, reports the frames of its output, and returns its exit
/// code; 128 plus the signal's number when a signal ended it.
///
/// # Errors
/// When the program cannot be run, or the report cannot be written; the program is then ended.
pub fn scan_command(
    options: &FramesOptions,
    program: impl Into<OsString>,
    arguments: impl IntoIterator<Item = impl Into<OsString>>,
    writer: impl Write,
) -> Result<i32, FramesError> {
    let program = program.into();
    let name = program.to_string_lossy().into_owned();
    let (columns, rows) = options.screen.unwrap_or(DEFAULT_SIZE);
    Finder::new(options)?;
    let (terminal, program_side) =
        BlockingTty::open((columns, rows)).map_err(|source| FramesError::Terminal { source })?;
    let mut child = program_side
        .start(&program, arguments.into_iter().map(Into::into))
        .map_err(|source| FramesError::Start { program: name.clone(), source })?;
    let scanned = scan_reader(options, &terminal, writer);
    if scanned.is_err() {
        // It may have ended in the meantime, which is just as good.
        let _ = child.kill();
    }
    drop(terminal);
    let status = child.wait().map_err(|source| FramesError::Await { program: name, source })?;
    scanned.map(|()| exit_code(status))
}

fn write(writer: &mut impl Write, reports: &[Report]) -> io::Result<()> {
    for report in reports {
        serde_json::to_writer(&mut *writer, report)?;
        writer.write_all(b"\n")?;
    }
    if reports.is_empty() { Ok(()) } else { writer.flush() }
}

/// A terminal whose last program has gone returns EIO: that is its end of file.
fn is_hangup(error: &io::Error) -> bool {
    error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error())
}

fn exit_code(status: ExitStatus) -> i32 {
    let by_signal = status.signal().map_or(1, |signal| 128 + signal);
    status.code().unwrap_or(by_signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(output: &[u8]) -> Vec<Value> {
        let text = std::str::from_utf8(output).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn report(options: &FramesOptions, stream: &[u8]) -> Vec<Value> {
        let mut output = Vec::new();
        scan_reader(options, stream, &mut output).unwrap();
        lines(&output)
    }

    fn run(options: &FramesOptions, script: &str) -> (i32, Vec<Value>) {
        let mut output = Vec::new();
        let code = scan_command(options, "sh", ["-c", script], &mut output).unwrap();
        (code, lines(&output))
    }

    #[test]
    fn s1_17_frames_are_reported_as_json_lines() {
        let stream = b"x <<<ODEI:READY:{\"stage\":\"a\",\"ts\":\"b\"}>>>\n<<<ODEI:HANDOFF:mind>>>\n<<<ODEI:END>>> <<<ODEI:?";
        assert_eq!(
            report(&FramesOptions::default(), stream),
            [
                serde_json::json!({"type": "READY", "payload": {"stage": "a", "ts": "b"}, "offset": 2}),
                serde_json::json!({"type": "HANDOFF", "payload": "mind", "offset": 42}),
                serde_json::json!({"type": "END", "payload": "", "offset": 66}),
                serde_json::json!({"malformed": "the type is not UPPER_SNAKE", "offset": 81}),
            ]
        );
    }

    #[test]
    fn s1_17_each_frame_is_flushed_as_it_is_found() {
        struct Shared<'a>(&'a std::cell::RefCell<Vec<u8>>);
        impl Write for Shared<'_> {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                self.0.borrow_mut().write(bytes)
            }
            fn flush(&mut self) -> io::Result<()> {
                self.0.borrow_mut().push(b'!');
                Ok(())
            }
        }
        struct Reads<'a>(&'a std::cell::RefCell<Vec<u8>>, u32);
        impl Read for Reads<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let flushed = self.0.borrow().iter().filter(|byte| **byte == b'!').count();
                assert_eq!(flushed, self.1 as usize, "the last frame was flushed");
                self.1 += 1;
                if self.1 > 3 { Ok(0) } else { (&b"<<<ODEI:END>>>"[..]).read(buffer) }
            }
        }
        let output = std::cell::RefCell::new(Vec::new());
        scan_reader(&FramesOptions::default(), Reads(&output, 0), Shared(&output)).unwrap();
    }

    #[test]
    fn s1_17_a_command_runs_in_a_terminal_and_its_exit_code_comes_back() {
        let options = FramesOptions::default();
        let (code, frames) = run(&options, "test -t 1 && printf '<<<ODEI:END>>>'; exit 7");
        assert_eq!(code, 7);
        assert_eq!(frames, [serde_json::json!({"type": "END", "payload": "", "offset": 0})]);
        assert_eq!(run(&options, "kill -9 $$").0, 137);
        let nothing = scan_command(&options, "/no/such/program", [""; 0], io::sink());
        assert!(matches!(nothing, Err(FramesError::Start { .. })));
    }

    #[test]
    fn s1_17_on_a_screen_each_frame_has_its_tier_and_a_redraw_is_none() {
        let options = FramesOptions { screen: Some((50, 7)), ..FramesOptions::default() };
        let script = "stty size; for i in 1 2 3; do printf '\\033[H<<<ODEI:HANDOFF:mind>>>'; done";
        let (code, frames) = run(&options, script);
        assert_eq!(code, 0);
        assert_eq!(frames.len(), 1);
        assert_eq!(frames[0]["tier"], "bare");
        let size = FramesOptions { screen: Some((0, 7)), ..options };
        let refused = scan_reader(&size, io::empty(), io::sink());
        assert!(matches!(refused, Err(FramesError::Size(_))));
    }

    #[test]
    fn s1_17_the_terminal_has_the_screens_size() {
        let options = FramesOptions { word: "SIZE".parse().unwrap(), screen: Some((50, 7)) };
        let (_, frames) = run(&options, "printf '<<<SIZE:IS:%s>>>' \"$(stty size)\"");
        assert_eq!(frames[0]["payload"], "7 50");
    }
}
