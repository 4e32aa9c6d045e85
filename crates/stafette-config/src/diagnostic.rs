//! A problem in a file, its position, and its display.

use std::fmt::Write as _;
use std::ops::Range;

use serde::Serialize;

use stafette_text::clean::shown;

/// The severity of a problem.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The workflow cannot be used.
    Error,
    /// The workflow can be used, but probably does not do what was intended.
    Warning,
}

/// One problem in a file.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    /// A stable code for the kind of problem, such as `unknown-agent`.
    pub code: &'static str,
    /// The value that it is about, as a JSON pointer: `/routes/2/to`.
    pub path: String,
    /// The description of the problem.
    pub message: String,
    /// The suggested fix, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The byte range in the file; `None` if the value is a default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span: Option<Range<usize>>,
}

impl Diagnostic {
    /// Creates a problem that makes the workflow unusable.
    #[must_use]
    pub fn error(code: &'static str, path: &str, message: impl Into<String>) -> Self {
        Diagnostic {
            severity: Severity::Error,
            code,
            path: path.to_owned(),
            message: message.into(),
            help: None,
            span: None,
        }
    }

    /// Creates a problem that was probably not intended.
    #[must_use]
    pub fn warning(code: &'static str, path: &str, message: impl Into<String>) -> Self {
        Diagnostic { severity: Severity::Warning, ..Self::error(code, path, message) }
    }

    /// Adds a suggested fix.
    #[must_use]
    pub fn help(self, help: impl Into<String>) -> Self {
        Diagnostic { help: Some(help.into()), ..self }
    }

    /// Adds the position in the file.
    #[must_use]
    pub fn at(self, span: Option<Range<usize>>) -> Self {
        Diagnostic { span, ..self }
    }

    /// True if it makes the workflow unusable.
    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }

    /// Returns the line and column at which it begins.
    pub fn position(&self, text: &str) -> Option<Position> {
        self.span.as_ref().map(|span| Position::of(text, span.start))
    }
}

/// A position in a text; both count from 1, columns in characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
}

impl Position {
    /// Returns the position of a byte.
    #[must_use]
    pub fn of(text: &str, offset: usize) -> Self {
        let before = &text[..text.floor_char_boundary(offset)];
        let start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Position {
            line: before.matches('\n').count() + 1,
            column: before[start..].chars().count() + 1,
        }
    }
}

/// Formats a diagnostic for people: the problem, its position, the line with a caret, and the fix.
///
/// Without colours. Control characters are always replaced: the file may come from a stranger.
pub fn render(diagnostic: &Diagnostic, file_name: &str, text: &str) -> String {
    let severity = match diagnostic.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let message = plain(&diagnostic.message);
    let mut out = format!("{severity}[{}]: {message}\n", diagnostic.code);
    let gutter = match &diagnostic.span {
        None => {
            let _ = writeln!(out, " --> {}", plain(file_name));
            1
        }
        Some(span) => {
            let place = Position::of(text, span.start);
            let number = place.line.to_string();
            let gutter = number.len();
            let (line, carets) = underlined(text, span);
            let _ = writeln!(
                out,
                "{:gutter$}--> {}:{}:{}",
                "",
                plain(file_name),
                place.line,
                place.column
            );
            let _ = writeln!(out, "{:gutter$} |", "");
            let _ = writeln!(out, "{}", format!("{number} | {line}").trim_end());
            let _ = writeln!(out, "{:gutter$} | {carets}", "");
            gutter
        }
    };
    if let Some(help) = &diagnostic.help {
        let _ = writeln!(out, "{:gutter$} = help: {}", "", plain(help));
    }
    out
}

/// Returns the line at which a span begins, and the carets below the part that the span covers.
fn underlined(text: &str, span: &Range<usize>) -> (String, String) {
    let start = text.floor_char_boundary(span.start);
    let line_start = text[..start].rfind('\n').map_or(0, |newline| newline + 1);
    let line_end = text[start..].find('\n').map_or(text.len(), |length| start + length);
    let end = text.floor_char_boundary(span.end).clamp(start, line_end);

    let (mut line, mut carets) = (String::new(), String::new());
    for (offset, c) in text[line_start..line_end].trim_end_matches('\r').char_indices() {
        let at = line_start + offset;
        let shown = if c == '\t' { "    ".to_owned() } else { plain(c.encode_utf8(&mut [0; 4])) };
        let mark = if at < start {
            ' '
        } else if at < end {
            '^'
        } else {
            '\0'
        };
        if mark != '\0' {
            carets.extend(std::iter::repeat_n(mark, shown.chars().map(width).sum()));
        }
        line.push_str(&shown);
    }
    if !carets.contains('^') {
        carets.push('^');
    }
    (line, carets)
}

/// Replaces all characters that could control a terminal or reorder the text.
pub fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).filter_map(shown).collect()
}

/// Returns the width of a character in terminal cells: enough of the Unicode tables to align a
/// caret with its word.
fn width(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pointing_at(text: &str, word: &str) -> String {
        let start = text.find(word).unwrap();
        let span = start..start + word.len();
        render(&Diagnostic::error("test", "", "here").at(Some(span)), "file.toml", text)
    }

    #[test]
    fn s2_11_the_caret_stands_below_the_word_whatever_comes_before_it() {
        insta::assert_snapshot!(pointing_at("a = 1\n\t\tb = \"x\" # tab\n", "\"x\""), @r#"
        error[test]: here
         --> file.toml:2:7
          |
        2 |         b = "x" # tab
          |             ^^^
        "#);
        insta::assert_snapshot!(pointing_at("ключ = \"日本\", \"e\u{301}\", x\r\n", "x"), @r#"
        error[test]: here
         --> file.toml:1:20
          |
        1 | ключ = "日本", "é", x
          |                     ^
        "#);
    }

    #[test]
    fn s2_11_a_span_over_many_lines_is_marked_on_its_first() {
        let text = "\n\n\n\n\n\n\n\n\nlist = [\n  1,\n]\n";
        insta::assert_snapshot!(pointing_at(text, "[\n  1,\n]"), @r"
        error[test]: here
          --> file.toml:10:8
           |
        10 | list = [
           |        ^
        ");
    }

    #[test]
    fn s2_11_the_end_of_the_file_and_a_missing_place_can_be_shown() {
        let at_end = Diagnostic::warning("test", "", "ends early").at(Some(99..120));
        insta::assert_snapshot!(render(&at_end, "file.toml", "a ="), @r"
        warning[test]: ends early
         --> file.toml:1:4
          |
        1 | a =
          |    ^
        ");
        let nowhere = Diagnostic::error("test", "", "somewhere").help("look");
        insta::assert_snapshot!(render(&nowhere, "file.toml", ""), @r"
        error[test]: somewhere
         --> file.toml
          = help: look
        ");
    }

    #[test]
    fn s2_11_a_hostile_file_cannot_steer_the_terminal() {
        let shown = pointing_at("x = \"\u{1b}[2J\u{202e}\"", "\"");
        assert!(!shown.contains('\u{1b}') && !shown.contains('\u{202e}'));
    }
}
