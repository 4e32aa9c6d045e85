//! Prints results and messages: data on standard output, messages on standard error.
//!
//! Everything that is printed is [`Clean`] or becomes it here, so that no text of an agent or of a
//! repository can steer the terminal.

use std::io::{IsTerminal, Write};

use serde::Serialize;
use serde_json::json;
use stafette_core::clean::{self, Clean};

use crate::exit::Failure;

/// The form and the destination of the output.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
    colour: bool,
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
        Output { json, colour: colour_wanted() && std::io::stderr().is_terminal() }
    }

    /// Prints a result for programs, on one line.
    pub(crate) fn data(self, value: &impl Serialize) {
        let text = serde_json::to_string(value).expect("our own types are JSON");
        self.line(clean::json(text));
    }

    /// Prints a line of the result.
    pub(crate) fn line(self, text: impl Into<Clean>) {
        // A reader that went away needs no more output.
        let _ = writeln!(std::io::stdout().lock(), "{}", text.into());
    }

    /// Prints a message, which programs need not read.
    pub(crate) fn say(self, text: impl Into<Clean>) {
        let _ = writeln!(std::io::stderr().lock(), "{}", text.into());
    }

    /// Prints a line of a file: as it is for another program, and clean on a terminal.
    pub(crate) fn content(self, text: &str, code: Option<&'static str>) {
        if !std::io::stdout().is_terminal() {
            let _ = writeln!(std::io::stdout().lock(), "{text}");
            return;
        }
        let text = Clean::from(text);
        self.line(match code.filter(|_| colour_wanted()) {
            Some(code) => text.styled(code),
            None => text,
        });
    }

    pub(crate) fn paint(self, tone: Tone, text: impl Into<Clean>) -> Clean {
        if !self.colour {
            return text.into();
        }
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
        self.say(self.paint(Tone::Bad, "error:") + " " + &failure.what);
        if !failure.why.is_empty() {
            self.say(format!("  why: {}", failure.why));
        }
        if !failure.fix.is_empty() {
            self.say(format!("  fix: {}", failure.fix));
        }
    }
}

/// True if the user does not object to colours.
pub(crate) fn colour_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
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
}
