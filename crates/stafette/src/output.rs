//! Prints results and messages: data on standard output, messages on standard error.
//!
//! Everything that is printed is [`Clean`] or becomes it here, so that no text of an agent or of a
//! repository can steer the terminal.

use std::io::{ErrorKind, IsTerminal, Write};
use std::sync::OnceLock;

use serde::Serialize;
use serde_json::json;
use stafette_core::clean::{self, Clean};

use crate::exit::Failure;

/// The exit status of a program that a closed pipe ended, as a shell reports it: 128 + SIGPIPE.
pub(crate) const CLOSED_PIPE: i32 = 128 + 13;

/// How much this process says. It is the same for all of its parts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Manner {
    /// True if only results and errors are printed.
    pub(crate) quiet: bool,
    /// True if each request to the daemon is printed.
    pub(crate) verbose: bool,
    /// True if the command has to clean up, so that a closed pipe must not end it.
    pub(crate) outlives_pipe: bool,
}

static MANNER: OnceLock<Manner> = OnceLock::new();

impl Manner {
    /// Sets it for this process; a second call changes nothing.
    pub(crate) fn set(self) {
        let _ = MANNER.set(self);
    }
}

fn manner() -> Manner {
    MANNER.get().copied().unwrap_or_default()
}

/// The form of the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
}

/// Standard output. When its reader has gone away, this process ends as other programs do.
#[derive(Debug)]
struct Stdout;

impl Write for Stdout {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        ended_by_pipe(std::io::stdout().write(bytes))
    }

    fn flush(&mut self) -> std::io::Result<()> {
        ended_by_pipe(std::io::stdout().flush())
    }
}

fn ended_by_pipe<T>(written: std::io::Result<T>) -> std::io::Result<T> {
    let closed = written.as_ref().is_err_and(|error| error.kind() == ErrorKind::BrokenPipe);
    if closed && !manner().outlives_pipe {
        std::process::exit(CLOSED_PIPE);
    }
    written
}

/// Prints lines of JSON that other parts write: as they are for another program, and clean on a
/// terminal, where they still mean the same.
#[derive(Debug, Default)]
pub(crate) struct JsonLines {
    begun: Vec<u8>,
}

impl Write for JsonLines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.begun.extend(bytes);
        if let Some(end) = self.begun.iter().rposition(|byte| *byte == b'\n') {
            let rest = self.begun.split_off(end + 1);
            let whole = std::mem::replace(&mut self.begun, rest);
            let is_shown = std::io::stdout().is_terminal();
            Stdout.write_all(&if is_shown { shown_json(&whole) } else { whole })?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Stdout.flush()
    }
}

fn shown_json(lines: &[u8]) -> Vec<u8> {
    // What is no JSON is not shown as it is either.
    let text = clean::json(String::from_utf8_lossy(lines).into_owned());
    Clean::from(text).as_str().as_bytes().to_vec()
}

/// Prints a text of our own as it is, such as a script for a shell.
pub(crate) fn script(text: &[u8]) {
    let _ = Stdout.write_all(text);
}

/// The meaning of a text; nothing is expressed by colour alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Tone {
    Good,
    Bad,
    Yours,
    Quiet,
}

impl Output {
    pub(crate) fn new(json: bool) -> Self {
        Output { json }
    }

    /// Prints a result for programs, on one line.
    pub(crate) fn data(self, value: &impl Serialize) {
        let text = serde_json::to_string(value).expect("our own types are JSON");
        self.line(clean::json(text));
    }

    /// Prints a line of the result.
    pub(crate) fn line(self, text: impl Into<Clean>) {
        let text = text.into();
        let _ = Stdout.write_all(shown_on(&std::io::stdout(), &text).as_bytes());
    }

    /// Prints a message, which programs need not read.
    pub(crate) fn say(self, text: impl Into<Clean>) {
        if !manner().quiet {
            complain(text);
        }
    }

    /// Prints a line of a file: as it is for another program, and clean on a terminal.
    pub(crate) fn content(self, text: &str, code: Option<&'static str>) {
        if !std::io::stdout().is_terminal() {
            let _ = Stdout.write_all(format!("{text}\n").as_bytes());
            return;
        }
        let text = Clean::from(text);
        self.line(match code {
            Some(code) => text.styled(code),
            None => text,
        });
    }

    /// Colours a text; a stream that is to have no colours drops them.
    pub(crate) fn paint(self, tone: Tone, text: impl Into<Clean>) -> Clean {
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Yours => "33;1",
            Tone::Quiet => "2",
        };
        text.into().styled(code)
    }

    /// Prints a table for people: columns as wide as needed, the last one unpadded.
    pub(crate) fn table(self, head: &[&str], rows: Vec<Vec<String>>) {
        let head: Vec<String> = head.iter().map(|word| word.to_uppercase()).collect();
        let rows: Vec<Vec<String>> = std::iter::once(head)
            .filter(|head| head.iter().any(|word| !word.is_empty()))
            .chain(rows.into_iter().map(|row| row.iter().map(cell).collect()))
            .collect();
        let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = rows.iter().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in &rows {
            let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:<width$}"));
            self.line(cells.collect::<Vec<_>>().join("  ").trim_end());
        }
    }

    pub(crate) fn failure(self, failure: &Failure) {
        if self.json {
            return self.data(&json!({ "error": {
                "message": failure.what, "why": failure.why, "fix": failure.fix,
                "exit": failure.code as u8,
            }}));
        }
        complain(self.paint(Tone::Bad, "error:") + " " + &failure.what);
        if !failure.why.is_empty() {
            complain(format!("  why: {}", failure.why));
        }
        if !failure.fix.is_empty() {
            complain(format!("  fix: {}", failure.fix));
        }
    }
}

/// Prints a detail of the work, for a user who asked for details.
pub(crate) fn detail(text: impl FnOnce() -> String) {
    if manner().verbose {
        complain(text());
    }
}

fn complain(text: impl Into<Clean>) {
    let text = text.into();
    let _ = std::io::stderr().write_all(shown_on(&std::io::stderr(), &text).as_bytes());
}

/// True if the user and the kind of terminal do not object to colours.
pub(crate) fn colour_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// A line for this stream, which has colours only if it is a terminal that shows them.
fn shown_on(stream: &impl IsTerminal, text: &Clean) -> String {
    match text.as_str().contains('\x1b') && !(colour_wanted() && stream.is_terminal()) {
        true => format!("{}\n", plain(text.as_str())),
        false => format!("{text}\n"),
    }
}

/// The text without the styles that [`Clean::styled`] put in: there are no other escapes.
fn plain(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').map_or(part, |(_, rest)| rest))
}

/// A cell of a table: clean, on one line.
fn cell(text: impl Into<Clean>) -> String {
    text.into().on_one_line().into()
}

/// `1 handoff`, `2 handoffs`.
pub(crate) fn count(n: usize, thing: &str) -> String {
    match n {
        1 => format!("1 {thing}"),
        n => format!("{n} {thing}s"),
    }
}

/// The same for a number of a store.
pub(crate) fn counted(n: u64, thing: &str) -> String {
    count(usize::try_from(n).unwrap_or(usize::MAX), thing)
}

/// Shortens a text to one line of at most `width` characters.
pub(crate) fn short(text: &str, width: usize) -> String {
    let line = text.lines().next().unwrap_or_default();
    if line.chars().count() <= width && text.lines().nth(1).is_none() {
        return line.to_owned();
    }
    let cut: String = line.chars().take(width.saturating_sub(1)).collect();
    format!("{cut}…")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_agents_cannot_steer_the_terminal() {
        assert_eq!(cell("a\x1b]0;title\x07b\n\u{202e}c"), "a\u{fffd}]0;title\u{fffd}b \u{fffd}c");
        assert_eq!(short("one\ntwo", 10), "one…");
    }

    #[test]
    fn b_17_json_that_is_shown_means_the_same_and_steers_nothing() {
        let shown = shown_json("{\"a\":\"\u{202e}\u{9b}2J\"}\n\x1b]0;x\n".as_bytes());
        let shown = String::from_utf8(shown).unwrap();
        assert_eq!(shown, "{\"a\":\"\\u202e\\u009b2J\"}\n\\u001b]0;x\n");
    }

    #[test]
    fn b_27_a_stream_without_colours_gets_the_text_alone() {
        let text = Output::new(false).paint(Tone::Bad, "error:") + " no m in [1m" + "\n";
        assert_eq!(plain(text.as_str()), "error: no m in [1m\n");
    }
}
