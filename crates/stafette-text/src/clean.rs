//! Text from outside that is safe to show.
//!
//! Whatever agents, repositories and other machines say can hold escape sequences that steer a
//! terminal, and characters that reorder or hide text. [`Clean`] is the only text that is printed,
//! logged or put on a page, and the only way to make one is to replace those characters.

use std::fmt;
use std::ops::Add;

/// The character that stands for one that is not shown.
const REPLACED: char = '\u{fffd}';

/// The maximum length of the text in an escape sequence, in bytes; in a longer one, the text counts
/// as text.
pub const LONGEST_ESCAPE: usize = 4096;

/// Text without characters that steer a terminal, change the direction of writing or hide. Line
/// breaks and tabs stay.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Clean(String);

impl Clean {
    /// Returns the text in a style of ours, such as `31`: the one escape sequence that is allowed.
    #[must_use]
    pub fn styled(self, code: &'static str) -> Clean {
        Clean(format!("\x1b[{code}m{}\x1b[0m", self.0))
    }

    /// Returns the text on one line: line breaks and tabs become blanks.
    #[must_use]
    pub fn on_one_line(self) -> Clean {
        Clean(self.0.replace(['\n', '\t'], " "))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Clean {
    fn from(text: &str) -> Self {
        let text = text.replace("\r\n", "\n");
        match text.chars().all(|c| shown(c) == Some(c)) {
            true => Clean(text),
            false => Clean(text.chars().filter_map(shown).collect()),
        }
    }
}

impl From<String> for Clean {
    fn from(text: String) -> Self {
        Clean::from(text.as_str())
    }
}

impl From<&String> for Clean {
    fn from(text: &String) -> Self {
        Clean::from(text.as_str())
    }
}

impl From<Clean> for String {
    fn from(text: Clean) -> Self {
        text.0
    }
}

impl<T: Into<Clean>> Add<T> for Clean {
    type Output = Clean;

    fn add(mut self, more: T) -> Clean {
        self.0.push_str(&more.into().0);
        self
    }
}

impl fmt::Display for Clean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Returns the character that is shown for this one; `None` if it joins others and shows nothing.
pub fn shown(c: char) -> Option<char> {
    match c {
        ' '..='~' | '\n' | '\t' => Some(c),
        // Emoji and some scripts are joined by these, so that they mean no harm.
        '\u{200c}' | '\u{200d}' => None,
        c if c.is_control() || is_hidden(c) => Some(REPLACED),
        c => Some(c),
    }
}

/// Returns the character to show in one cell of a screen.
pub fn in_cell(c: char) -> char {
    match c {
        // The empty pattern of Braille, with which programs draw.
        c if c.is_control() || c == '\u{2800}' => ' ',
        c => shown(c).unwrap_or(' '),
    }
}

/// True for a character that changes the direction of writing, has no width, looks like a blank, or
/// carries a hidden message.
fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// Returns JSON in which hidden and control characters are escaped, so that it can be printed and
/// still means the same.
pub fn json(text: String) -> String {
    use fmt::Write as _;
    if text.is_ascii() && !text.contains('\x7f') {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if c != '\n' && (c.is_control() || is_hidden(c)) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    out
}

/// The purpose of an escape sequence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Escape {
    /// A colour or another style: the text around it belongs together.
    Style,
    /// A sequence that may move the cursor or erase: the text around it is separate.
    Move,
    /// A title, a link, or another text that is not part of the screen.
    Text,
    /// The choice of a character set, which comes with styles.
    Letters,
}

/// The outcome of looking for an escape sequence at the beginning of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// No sequence begins here.
    Nothing,
    /// A sequence begins here, and more bytes are needed.
    Part,
    /// A sequence with its length in bytes.
    Whole(Escape, usize),
}

/// The bytes that may begin an escape sequence: the escape character, and the first byte of its
/// eight-bit forms in UTF-8.
pub const ESCAPES: [u8; 2] = [0x1b, 0xc2];

/// Looks for an escape sequence at the beginning of these bytes.
pub fn escape(bytes: &[u8]) -> Found {
    let (kind, rest) = match bytes {
        [0x1b | 0xc2] => return Found::Part,
        [0x1b, kind, rest @ ..] => (*kind, rest),
        // The eight-bit forms lie 64 above the letters of the seven-bit ones.
        [0xc2, kind @ (0x90 | 0x98 | 0x9b | 0x9d..=0x9f), rest @ ..] => (kind - 0x40, rest),
        _ => return Found::Nothing,
    };
    let ended = |escape, length: usize| Found::Whole(escape, 2 + length);
    match kind {
        b'[' => match rest.iter().position(|byte| !(0x20..=0x3f).contains(byte)) {
            None if rest.len() > LONGEST_ESCAPE => Found::Nothing,
            None => Found::Part,
            Some(end) if rest[end] == b'm' => ended(Escape::Style, end + 1),
            Some(end) => ended(Escape::Move, end + usize::from((0x40..=0x7e).contains(&rest[end]))),
        },
        b']' | b'P' | b'_' | b'^' | b'X' => {
            let reach = &rest[..rest.len().min(LONGEST_ESCAPE)];
            let ends = |at: usize| match &reach[at..] {
                [0x07, ..] => Some(at + 1),
                [0x1b, b'\\', ..] | [0xc2, 0x9c, ..] => Some(at + 2),
                _ => None,
            };
            match memchr::memchr3_iter(0x07, 0x1b, 0xc2, reach).find_map(ends) {
                Some(end) => ended(Escape::Text, end),
                None if rest.len() >= LONGEST_ESCAPE => Found::Nothing,
                None => Found::Part,
            }
        }
        b'(' | b')' if rest.is_empty() => Found::Part,
        b'(' | b')' if matches!(rest[0], b'B' | b'0') => ended(Escape::Letters, 1),
        // The rest is rare: its letters are not told from text that follows a lone escape.
        _ => Found::Nothing,
    }
}

/// Returns text as a person reads it: without escape sequences and control characters, with a blank
/// where the cursor moved and one line break where lines end.
pub fn unescaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let length = match (c, escape(rest.as_bytes())) {
            ('\u{1b}' | '\u{80}'..='\u{9f}', Found::Whole(escape, length)) => {
                if escape == Escape::Move {
                    out.push(' ');
                }
                length
            }
            _ => {
                match c {
                    '\r' | '\n' if out.ends_with('\n') => {}
                    '\r' | '\n' => out.push('\n'),
                    '\t' => out.push(' '),
                    c if c.is_control() => {}
                    c => out.extend(shown(c)),
                }
                c.len_utf8()
            }
        };
        // A sequence that breaks off may end within a character.
        rest = &rest[rest.ceil_char_boundary(length)..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_17_text_of_others_cannot_steer_a_terminal_or_hide() {
        let hostile = "a\x1b]52;c;aGk=\x07b\u{9b}31m\u{202e}c\u{2066}\u{200b}\u{e0041}\u{feff}d\r";
        let clean = Clean::from(hostile);
        assert_eq!(
            clean.as_str(),
            "a\u{fffd}]52;c;aGk=\u{fffd}b\u{fffd}31m\u{fffd}c\u{fffd}\u{fffd}\u{fffd}\u{fffd}d\u{fffd}"
        );
        assert_eq!(Clean::from(clean.as_str()), clean, "twice is as once");
        assert_eq!(Clean::from("one\r\n\ttwo é 語").as_str(), "one\n\ttwo é 語");
        assert_eq!(Clean::from("a\u{200d}b").as_str(), "ab");
        // Letters and Braille that look like blanks push what follows out of sight.
        assert_eq!(Clean::from("a\u{2800}\u{3164}b").as_str(), "a\u{fffd}\u{fffd}b");
    }

    #[test]
    fn b_17_only_our_own_styles_get_through() {
        let line = Clean::from("x\x1b[2J").styled("31") + " and \x1b[1m" + String::from("more");
        assert_eq!(line.as_str(), "\x1b[31mx\u{fffd}[2J\x1b[0m and \u{fffd}[1mmore");
        assert_eq!(format!("{:>4}", Clean::from("h1")), "  h1");
        assert_eq!(Clean::from("a\n\tb").on_one_line().as_str(), "a  b");
    }

    #[test]
    fn b_17_json_is_printed_without_hidden_characters_and_means_the_same() {
        let value = serde_json::json!({ "a\u{202e}": "\u{9b}31m\u{7f}\u{e0041} é \u{200b}" });
        let text = json(value.to_string());
        assert!(text.chars().all(|c| !c.is_control() && !is_hidden(c)), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }

    #[test]
    fn b_17_escape_sequences_are_told_from_text() {
        for (bytes, found) in [
            ("\x1b[1;31mx", Found::Whole(Escape::Style, 7)),
            ("\u{9b}0mx", Found::Whole(Escape::Style, 4)),
            ("\x1b[3;4Hx", Found::Whole(Escape::Move, 6)),
            ("\x1b]0;title\x07x", Found::Whole(Escape::Text, 10)),
            ("\x1b]8;;http://x\x1b\\x", Found::Whole(Escape::Text, 15)),
            ("\x1b(Bx", Found::Whole(Escape::Letters, 3)),
            ("\x1b7x", Found::Nothing),
            ("\x1b[1;3", Found::Part),
            ("\x1b]0;tit", Found::Part),
            ("\x1b", Found::Part),
            ("é", Found::Nothing),
            ("\x1b\n", Found::Nothing),
        ] {
            assert_eq!(escape(bytes.as_bytes()), found, "{bytes:?}");
        }
        let endless = format!("\x1b]0;{}", "x".repeat(LONGEST_ESCAPE));
        assert_eq!(escape(endless.as_bytes()), Found::Nothing);
    }

    #[test]
    fn b_17_what_a_person_reads_has_no_colours_in_it() {
        let text = "\x1b[1mHel\x1b[0mlo\x1b[3;4Hworld\x1b]0;title\x07!\r\n\x07é\x1b[";
        assert_eq!(unescaped(text), "Hello world!\né[");
        assert_eq!(unescaped("\x1b[1é"), " é", "a sequence that breaks off");
    }
}
