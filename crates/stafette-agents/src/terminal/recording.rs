//! Records the output of a terminal as an asciicast (version 2): one JSON line for each event.
//!
//! Input is not recorded: it may hold secrets, and the relevant part of it is echoed.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stafette_core::clean::unescaped;
use stafette_core::redact::{Redactor, Stream};
use stafette_core::wire::frame::Word;
use stafette_core::{AgentName, RunId};
use thiserror::Error;
use tokio::time::Instant;

use super::SCROLLBACK_LIMIT;
use crate::screen::{BadSize, Screen, Utf8};

/// The maximum size of a recording, in bytes; a note then says that the terminal continues
/// unrecorded.
pub const RECORDING_LIMIT: u64 = 64 * 1024 * 1024;

/// The longest line of a recording, in bytes.
const LINE_LIMIT: u64 = 1024 * 1024;

/// Output that comes within this time of the one before counts as one event.
const MOMENT: Duration = Duration::from_millis(20);

/// The time that a program is quiet before its last output is written.
const QUIET: Duration = Duration::from_millis(500);

/// The first line of a recording.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format, always 2.
    pub version: u32,
    /// Width in columns at the start.
    pub width: u16,
    /// Height in rows at the start.
    pub height: u16,
    /// The start time, in seconds since 1970.
    pub timestamp: u64,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
}

/// An event in a terminal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Event {
    /// The program printed this text.
    Output(String),
    /// The terminal was resized to these columns and rows.
    Resize(u16, u16),
    Note(String),
}

impl Event {
    /// Applies the event to a screen.
    ///
    /// # Errors
    /// When no screen has that size.
    pub fn show(&self, screen: &mut Screen) -> Result<(), BadSize> {
        match self {
            Event::Output(text) => drop(screen.feed(text.as_bytes())),
            Event::Resize(columns, rows) => screen.resize(*columns, *rows)?,
            Event::Note(_) => {}
        }
        Ok(())
    }
}

/// An event with its time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Timed {
    /// The time since the beginning.
    pub at: Duration,
    pub event: Event,
}

/// The reason why a recording could not be read.
#[derive(Debug, Error)]
pub enum RecordingError {
    #[error("cannot read {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    #[error("{} is not an asciicast of version 2", path.display())]
    Wrong { path: PathBuf },
}

/// The path of the recording of an agent in a run, in the folder of all recordings.
pub fn file(folder: &Path, run: RunId, agent: &AgentName) -> PathBuf {
    folder.join(run.to_string()).join(format!("{agent}.cast"))
}

/// The complete lines of a recording, one at a time. A line in which its writer was stopped is left
/// out, so that every player accepts the rest.
#[derive(Debug)]
pub struct Lines {
    file: BufReader<File>,
    /// The first line, until it is taken.
    first: Option<Vec<u8>>,
}

impl Lines {
    /// Opens the recording at `path`.
    ///
    /// # Errors
    /// When the file cannot be read, or is not an asciicast.
    pub fn open(path: &Path) -> Result<Self, RecordingError> {
        let (_, file, line) = begin(path)?;
        Ok(Lines { file, first: Some(line) })
    }

    /// Returns the next line with its end; `None` after the last one.
    pub fn next_line(&mut self) -> io::Result<Option<Vec<u8>>> {
        if let Some(first) = self.first.take() {
            return Ok(Some(first));
        }
        let mut line = Vec::new();
        loop {
            line.clear();
            let mut limited = io::Read::take(&mut self.file, LINE_LIMIT);
            if limited.read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            if event(&line).is_some() {
                break;
            }
        }
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        Ok(Some(line))
    }
}

/// Reads the first line of a recording, and returns its content.
fn begin(path: &Path) -> Result<(Header, BufReader<File>, Vec<u8>), RecordingError> {
    let unreadable = |source| RecordingError::Unreadable { path: path.to_owned(), source };
    let mut file = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut line = Vec::new();
    io::Read::take(&mut file, LINE_LIMIT).read_until(b'\n', &mut line).map_err(unreadable)?;
    let header: Option<Header> = serde_json::from_slice(&line).ok();
    let header = header.filter(|header| header.version == 2);
    let header = header.ok_or_else(|| RecordingError::Wrong { path: path.to_owned() })?;
    Ok((header, file, line))
}

/// A recording that was read back.
#[derive(Clone, PartialEq, Debug)]
pub struct Recording {
    /// The content of the first line.
    pub header: Header,
    /// The events, in order.
    pub events: Vec<Timed>,
}

impl Recording {
    /// Reads a recording. A torn line is left out: its writer was stopped there.
    ///
    /// # Errors
    /// When the file cannot be read, or is not an asciicast.
    pub fn read(path: &Path) -> Result<Self, RecordingError> {
        let unreadable = |source| RecordingError::Unreadable { path: path.to_owned(), source };
        let (header, file, _) = begin(path)?;
        let mut lines = Lines { file, first: None };
        let mut events = Vec::new();
        while let Some(line) = lines.next_line().map_err(unreadable)? {
            events.extend(event(&line));
        }
        Ok(Recording { header, events })
    }

    /// The length of the recording.
    pub fn length(&self) -> Duration {
        self.events.last().map_or(Duration::ZERO, |last| last.at)
    }

    /// The length in milliseconds, rounded up.
    pub fn milliseconds(&self) -> u64 {
        u64::try_from(self.length().as_micros().div_ceil(1000)).unwrap_or(u64::MAX)
    }

    /// The screen at a moment.
    ///
    /// # Errors
    /// When no screen has the size that was recorded.
    pub fn screen_at(&self, at: Duration) -> Result<Screen, BadSize> {
        self.played(Screen::new(Word::default(), self.header.width, self.header.height)?, at)
    }

    /// All lines that were visible, as plain text: the rows that have left the screen, and the
    /// screen at the end. At most about as much as a terminal keeps.
    ///
    /// # Errors
    /// When no screen has the size that was recorded.
    pub fn transcript(&self) -> Result<Vec<String>, BadSize> {
        let screen = Screen::new(Word::default(), self.header.width, self.header.height)?;
        let screen = self.played(screen.keeping(SCROLLBACK_LIMIT), self.length())?;
        let history = screen.history(SCROLLBACK_LIMIT);
        let mut lines: Vec<String> = history.lines().map(unescaped).collect();
        lines.extend(screen.text());
        Ok(lines)
    }

    fn played(&self, mut screen: Screen, until: Duration) -> Result<Screen, BadSize> {
        for timed in self.events.iter().take_while(|timed| timed.at <= until) {
            timed.event.show(&mut screen)?;
        }
        Ok(screen)
    }
}

/// Reads a line `[SECONDS, KIND, TEXT]`; kinds that we do not write are returned as empty notes.
fn event(line: &[u8]) -> Option<Timed> {
    let (seconds, kind, text): (f64, String, String) = serde_json::from_slice(line).ok()?;
    let at = Duration::try_from_secs_f64(seconds).ok()?;
    let event = match kind.as_str() {
        "o" => Event::Output(text),
        "r" => {
            let (columns, rows) = text.split_once('x')?;
            Event::Resize(columns.parse().ok()?, rows.parse().ok()?)
        }
        "m" => Event::Note(text),
        _ => Event::Note(String::new()),
    };
    Some(Timed { at, event })
}

/// Writes a recording as it happens.
#[derive(Debug)]
pub(super) struct Recorder {
    file: File,
    began: SystemTime,
    size: u64,
    limit: u64,
    utf8: Utf8,
    /// Removes secrets; it holds back a few bytes until it is sure.
    clean: Stream,
    /// The time of the last output that may be held back, until that is written.
    came: Option<Instant>,
}

impl Recorder {
    /// Begins a recording, or continues the one that is there.
    pub(super) fn open(
        path: &Path,
        title: &str,
        size: (u16, u16),
        redactor: &Redactor,
    ) -> io::Result<Self> {
        stafette_disk::folder_of(path)?;
        let mut file = stafette_disk::private().create(true).append(true).read(true).open(path)?;
        let written = file.metadata()?.len();
        let (width, height) = size;
        let mut began = SystemTime::now();
        if written == 0 {
            let timestamp = began.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
            let header = Header { version: 2, width, height, timestamp, title: title.to_owned() };
            writeln!(file, "{}", serde_json::to_string(&header)?)?;
            began = UNIX_EPOCH + Duration::from_secs(timestamp);
        } else {
            let mut first = String::new();
            BufReader::new(io::Read::take(&file, LINE_LIMIT)).read_line(&mut first)?;
            let header: Header = serde_json::from_str(&first)?;
            began = began.min(UNIX_EPOCH + Duration::from_secs(header.timestamp));
        }
        let size = file.metadata()?.len();
        let mut recorder = Recorder {
            file,
            began,
            size,
            limit: RECORDING_LIMIT,
            utf8: Utf8::default(),
            clean: redactor.stream(),
            came: None,
        };
        if written > 0 {
            // The previous writer may have been stopped within a line.
            recorder.line("\n");
            recorder.resize(width, height);
        }
        Ok(recorder)
    }

    /// Records output of the program.
    pub(super) fn output(&mut self, bytes: &[u8]) {
        if self.size < self.limit {
            let now = Instant::now();
            if self.came.is_some_and(|came| now >= came + MOMENT) {
                self.rest();
            }
            let clean = self.clean.push(bytes);
            self.came = Some(now);
            self.print(&clean, now);
        }
    }

    /// The time at which the program has been quiet long enough for held-back output to be written.
    pub(super) fn next(&self) -> Option<Instant> {
        self.came.map(|came| came + QUIET)
    }

    /// Writes the held-back output up to the last whole line, with the time at which it came.
    pub(super) fn rest(&mut self) {
        if let Some(came) = self.came.take() {
            let clean = self.clean.rest();
            self.print(&clean, came);
        }
    }

    /// Writes all held-back output: nothing that belongs to it comes for now.
    pub(super) fn settle(&mut self) {
        let clean = self.clean.finish();
        let came = self.came.take().unwrap_or_else(Instant::now);
        self.print(&clean, came);
    }

    /// Records a change of size.
    pub(super) fn resize(&mut self, columns: u16, rows: u16) {
        self.settle();
        self.event("r", &format!("{columns}x{rows}"), Instant::now());
    }

    /// Adds a note for later viewers.
    pub(super) fn note(&mut self, text: &str) {
        self.settle();
        self.event("m", text, Instant::now());
    }

    fn print(&mut self, clean: &[u8], came: Instant) {
        let text = self.utf8.text(clean);
        self.event("o", &text, came);
    }

    fn event(&mut self, kind: &str, text: &str, then: Instant) {
        if text.is_empty() || self.size >= self.limit {
            return;
        }
        let since = self.began.elapsed().unwrap_or_default();
        let mut at = since.saturating_sub(then.elapsed()).as_secs_f64();
        at = (at * 1e6).round() / 1e6;
        self.line(&format!("{}\n", json!([at, kind, text])));
        if self.size >= self.limit {
            let note: Value = json!([at, "m", "the recording is full and ends here"]);
            self.line(&format!("{note}\n"));
        }
    }

    /// Writes a line. A recording that cannot be written just ends: it is not worth an agent's
    /// work.
    fn line(&mut self, line: &str) {
        match self.file.write_all(line.as_bytes()) {
            Ok(()) => self.size += line.len() as u64,
            Err(_) => self.size = u64::MAX,
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorder(path: &Path) -> Recorder {
        Recorder::open(path, "builder", (20, 4), &Redactor::knowing(["hunter2hunter2"])).unwrap()
    }

    #[test]
    fn b_12_a_recording_is_read_back_and_shows_what_was_shown() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("runs/builder.cast");
        let mut writer = recorder(&path);
        writer.output(b"caf\xc3");
        writer.output(b"\xa9 \x1b[1mopen\x1b[0m\r\n");
        writer.resize(10, 2);
        writer.note("restarted");
        let recording = Recording::read(&path).unwrap();
        assert_eq!((recording.header.width, recording.header.height), (20, 4));
        let events: Vec<&Event> = recording.events.iter().map(|timed| &timed.event).collect();
        assert_eq!(
            events,
            [
                &Event::Output("café \u{1b}[1mopen\u{1b}[0m\r\n".into()),
                &Event::Resize(10, 2),
                &Event::Note("restarted".into()),
            ]
        );
        let end = recording.screen_at(recording.length()).unwrap();
        assert_eq!((end.text(), end.size()), (vec!["café open".to_owned()], (10, 2)));
    }

    #[test]
    fn b_12_the_screen_at_a_moment_is_the_one_of_then() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.cast");
        let lines = [
            r#"{"version":2,"width":20,"height":3,"timestamp":1}"#,
            r#"[0.5,"o","one\r\n"]"#,
            r#"[1.5,"i","typed"]"#,
            r#"[2.5,"o","two"]"#,
            r#"[3.5,"o","thr"#,
        ];
        std::fs::write(&path, lines.join("\n")).unwrap();
        let recording = Recording::read(&path).unwrap();
        assert_eq!(recording.transcript().unwrap(), ["one", "two"]);
        let text = |ms| recording.screen_at(Duration::from_millis(ms)).unwrap().text();
        assert!(text(400).is_empty());
        assert_eq!(text(2000), ["one"]);
        assert_eq!(text(9000), ["one", "two"]);
        assert_eq!(recording.length(), Duration::from_millis(2500));
    }

    #[test]
    fn b_12_a_recording_goes_on_where_it_was_left_and_ends_when_it_is_full() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.cast");
        recorder(&path).output(b"one");
        let mut second = recorder(&path);
        second.limit = second.size + 1000;
        for _ in 0..1000 {
            second.output(b"two\r\n");
        }
        assert!(std::fs::metadata(&path).unwrap().len() < 2000);
        let events = Recording::read(&path).unwrap().events;
        assert_eq!(events[0].event, Event::Output("one".into()));
        let last = &events.last().unwrap().event;
        assert!(matches!(last, Event::Note(note) if note.contains("full")), "{last:?}");
    }

    #[test]
    fn b_12_what_is_torn_is_not_handed_on() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.cast");
        recorder(&path).output(b"one");
        let whole = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, format!("{whole}[1.0,\"o\",\"tw")).unwrap();
        recorder(&path).output(b"three");
        let mut lines = Lines::open(&path).unwrap();
        let mut said = String::new();
        while let Some(line) = lines.next_line().unwrap() {
            said.push_str(str::from_utf8(&line).unwrap());
        }
        assert!(said.starts_with(&whole) && said.contains("three"), "{said}");
        assert!(said.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{said}");
    }

    #[test]
    fn b_17_a_recording_holds_no_secrets_however_they_are_cut() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.cast");
        let mut writer = recorder(&path);
        for byte in b"the key is hunter2hunter2, is it not" {
            writer.output(&[*byte]);
        }
        drop(writer);
        let recording = Recording::read(&path).unwrap();
        let text = recording.screen_at(recording.length()).unwrap().text().join("");
        assert!(text.starts_with("the key is") && text.ends_with("is it not"), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
    }

    /// Lets time pass for a recording.
    fn pass(writer: &mut Recorder, time: Duration) {
        writer.began -= time;
        writer.came = writer.came.map(|came| came - time);
    }

    #[test]
    fn b_12_what_was_printed_last_is_seen_at_the_time_when_it_came() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.cast");
        let mut writer = recorder(&path);
        writer.output(b"one\r\n$ ");
        pass(&mut writer, QUIET);
        assert!(writer.next().unwrap() <= Instant::now(), "it has been quiet long enough");
        writer.rest();
        assert_eq!(writer.next(), None, "it rests");
        let recording = Recording::read(&path).unwrap();
        let (shown, now) = (recording.length(), writer.began.elapsed().unwrap());
        assert!(shown + QUIET <= now, "it is shown when it came, not when it was written");
        assert_eq!(recording.transcript().unwrap(), ["one"]);
        // Without the timer, too: earlier output is not delayed until later output.
        writer.output(b"two\r\n");
        pass(&mut writer, Duration::from_secs(60));
        writer.output(b"three\r\n");
        let recording = Recording::read(&path).unwrap();
        let then = writer.began.elapsed().unwrap() - Duration::from_secs(30);
        assert_eq!(recording.screen_at(then).unwrap().text(), ["one", "$ two"]);
    }

    #[test]
    fn b_12_what_is_no_recording_is_told() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join("a.cast");
        std::fs::write(&path, "{\"version\":3}\n").unwrap();
        let error = Recording::read(&path).unwrap_err();
        assert!(error.to_string().contains("a.cast is not an asciicast"), "{error}");
        assert!(matches!(
            Recording::read(&home.path().join("none")),
            Err(RecordingError::Unreadable { .. })
        ));
    }
}
