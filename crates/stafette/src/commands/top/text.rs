//! Text for a terminal: cut, wrapped, and without control sequences.

use stafette_core::Time;
use stafette_core::clean::Clean;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The width of a text, in columns.
pub(super) fn width(text: &str) -> usize {
    text.width()
}

/// One line of exactly `room` columns: padded, or cut with a mark.
pub(crate) fn cell(text: &str, room: usize) -> String {
    let cut = cut(text, room);
    let rest = room.saturating_sub(width(&cut));
    cut + &" ".repeat(rest)
}

/// One line of at most `room` columns.
pub(super) fn cut(text: &str, room: usize) -> String {
    let line = String::from(Clean::from(text).on_one_line());
    if width(&line) <= room {
        return line;
    }
    let Some(room) = room.checked_sub(1) else { return String::new() };
    format!("{}…", &line[..end(&line, room)])
}

/// Lines of at most `room` columns, broken between words where possible.
pub(super) fn wrap(text: &str, room: usize) -> Vec<String> {
    let room = room.max(2);
    let mut lines = Vec::new();
    for paragraph in Clean::from(text).as_str().lines() {
        let mut line = String::new();
        for word in paragraph.split_whitespace() {
            if !line.is_empty() && width(&line) + 1 + width(word) > room {
                lines.push(std::mem::take(&mut line));
            }
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
            while width(&line) > room {
                let rest = line.split_off(end(&line, room));
                lines.push(std::mem::replace(&mut line, rest));
            }
        }
        lines.push(line);
    }
    lines
}

/// The byte position at which the first `room` columns end.
fn end(line: &str, room: usize) -> usize {
    let mut used = 0;
    let over = line.char_indices().find(|(_, letter)| {
        used += letter.width().unwrap_or(0);
        used > room
    });
    over.map_or(line.len(), |(end, _)| end)
}

/// The elapsed time, in at most four letters.
pub(super) fn elapsed(since: &str, now: Time) -> String {
    let Some(since) = Time::parse(since) else { return String::new() };
    span(now.since(since).0 / 1000)
}

/// The remaining time; `None` when it has passed.
pub(super) fn remaining(until: &str, now: Time) -> Option<String> {
    let until = Time::parse(until).filter(|until| *until > now)?;
    Some(span(until.since(now).0.div_ceil(1000)))
}

fn span(seconds: u64) -> String {
    match seconds {
        0..100 => format!("{seconds}s"),
        100..6000 => format!("{}m", seconds / 60),
        6000..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_and_filled_by_what_it_looks_like() {
        assert_eq!(cell("builder", 9), "builder  ");
        assert_eq!(cell("a-very-long-name", 8), "a-very-…");
        assert_eq!(cut("日本語の名前", 6), "日本…");
        assert_eq!(cell("two\nlines\x1b[2J", 20), "two lines\u{fffd}[2J       ");
        assert_eq!((cut("x", 0), cut("xy", 1)), (String::new(), "…".to_owned()));
    }

    #[test]
    fn text_is_wrapped_between_words_and_within_those_that_are_too_long() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij k", 4), ["abcd", "efgh", "ij k"]);
        assert_eq!(wrap("a\n\nb", 4), ["a", "", "b"]);
    }

    #[test]
    fn time_is_told_in_four_letters() {
        let now = Time(1_000_000_000);
        let ago = |seconds: i64| elapsed(&Time(now.0 - seconds * 1000).rfc3339(), now);
        assert_eq!([ago(5), ago(200), ago(7200), ago(300_000)], ["5s", "3m", "2h", "3d"]);
        assert_eq!(remaining(&Time(now.0 + 1500).rfc3339(), now).as_deref(), Some("2s"));
        assert_eq!(remaining(&Time(now.0).rfc3339(), now), None);
    }
}
