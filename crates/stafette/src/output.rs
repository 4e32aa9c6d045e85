//! Prints results and messages: data on standard output, messages on standard error.

use std::io::{IsTerminal, Write};

use serde::Serialize;
use serde_json::json;

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
        self.line(&text);
    }

    /// Prints a line of the result.
    pub(crate) fn line(self, text: &str) {
        // A reader that went away needs no more output.
        let _ = writeln!(std::io::stdout().lock(), "{text}");
    }

    /// Prints a message, which programs need not read.
    pub(crate) fn say(self, text: &str) {
        let _ = writeln!(std::io::stderr().lock(), "{text}");
    }

    pub(crate) fn paint(self, tone: Tone, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let code = match tone {
            Tone::Good => "32",
            Tone::Bad => "31",
            Tone::Yours => "33;1",
            Tone::Quiet => "2",
        };
        format!("\x1b[{code}m{text}\x1b[0m")
    }

    /// Prints a table for people: columns as wide as needed, the last one unpadded.
    pub(crate) fn table(self, head: &[&str], rows: Vec<Vec<String>>) {
        let head: Vec<String> = head.iter().map(|word| word.to_uppercase()).collect();
        let rows: Vec<Vec<String>> = std::iter::once(head)
            .filter(|head| head.iter().any(|word| !word.is_empty()))
            .chain(rows.into_iter().map(|row| row.iter().map(|cell| plain(cell)).collect()))
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
        self.say(&format!("{} {}", self.paint(Tone::Bad, "error:"), plain(&failure.what)));
        if !failure.why.is_empty() {
            self.say(&format!("  why: {}", plain(&failure.why)));
        }
        if !failure.fix.is_empty() {
            self.say(&format!("  fix: {}", plain(&failure.fix)));
        }
    }
}

/// True if the user does not object to colours.
pub(crate) fn colour_wanted() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Makes text of agents safe for the terminal: no control characters but line breaks, and none that
/// change the direction of writing.
pub(crate) fn plain(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' => '\n',
        '\t' => ' ',
        c if c.is_control() => '\u{fffd}',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c => c,
    };
    text.chars().map(shown).collect()
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
        assert_eq!(plain("a\x1b]0;title\x07b\u{202e}c"), "a\u{fffd}]0;title\u{fffd}b\u{fffd}c");
        assert_eq!(short("one\ntwo", 10), "one…");
    }
}
