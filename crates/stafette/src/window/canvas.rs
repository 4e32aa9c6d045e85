//! Draws an agent's screen, or as much of it as there is room for, above a status line. Only
//! changes are written.

use std::fmt::Write as _;

use stafette_agents::screen::Screen;

use super::rows::{Rows, SHOWN};

/// The view of an agent's screen in the user's terminal.
#[derive(Debug)]
pub(crate) struct Canvas {
    size: (u16, u16),
    /// The first visible column and row of the agent's screen.
    corner: (u16, u16),
    drawn: Rows,
}

impl Canvas {
    /// An empty window with this many columns and rows.
    pub(crate) fn new(size: (u16, u16)) -> Self {
        Canvas { size, corner: (0, 0), drawn: Rows::default() }
    }

    /// Sets another size; nothing that was drawn can be relied on.
    pub(crate) fn resize(&mut self, size: (u16, u16)) {
        *self = Canvas { corner: self.corner, ..Canvas::new(size) };
    }

    /// The columns and rows that there are for the agent's screen.
    pub(crate) fn room(&self) -> (u16, u16) {
        let (columns, rows) = self.size;
        (columns, if rows > 1 { rows - 1 } else { rows })
    }

    /// The text that makes the screen visible, with `line` below it, which is as wide as the
    /// window.
    pub(crate) fn draw(&mut self, screen: &Screen, line: &str) -> String {
        let (columns, rows) = self.room();
        let size = screen.size();
        let cursor = screen.cursor();
        let left = follow(self.corner.0, cursor.column, size.0, columns);
        let top = follow(self.corner.1, cursor.row, size.1, rows);
        self.corner = (left, top);
        let mut lines = screen.part(left..left + columns, top..top + rows);
        if self.size.1 > 1 {
            lines.push(format!("\x1b[7m{line}\x1b[0m"));
        }
        let mut text = self.drawn.write(lines);
        let (column, row) =
            (cursor.column - left.min(cursor.column), cursor.row - top.min(cursor.row));
        if cursor.visible && column < columns && row < rows {
            // Writing to a string does not fail.
            let _ = write!(text, "\x1b[{};{}H\x1b[?25h", row + 1, column + 1);
        }
        text.push_str(SHOWN);
        text
    }
}

/// Moves a view of `room` over `size` as little as needed to have the cursor in it.
fn follow(at: u16, cursor: u16, size: u16, room: u16) -> u16 {
    let least = (cursor + 1).saturating_sub(room);
    at.clamp(least, cursor.max(least)).min(size.saturating_sub(room))
}

#[cfg(test)]
mod tests {
    use stafette_core::wire::frame::Word;

    use super::*;

    fn screen(columns: u16, rows: u16) -> Screen {
        Screen::new(Word::default(), columns, rows).expect("a size")
    }

    /// An agent's screen, the window that shows it, and a terminal behind the window.
    struct Scene(Screen, Canvas, Screen);

    impl Scene {
        fn new(agent: (u16, u16), window: (u16, u16)) -> Self {
            Scene(screen(agent.0, agent.1), Canvas::new(window), screen(window.0, window.1))
        }

        fn shows(&mut self, printed: &str) -> Vec<String> {
            let Scene(agent, canvas, window) = self;
            agent.feed(printed.as_bytes());
            let line = format!("{:<1$}", "status", usize::from(canvas.size.0));
            window.feed(canvas.draw(agent, &line).as_bytes());
            let rows = window.part(0..canvas.size.0, 0..canvas.size.1);
            let bare = |row: String| row.replace("\x1b[0;7m", "").replace("\x1b[0m", "");
            rows.into_iter().map(|row| bare(row).trim_end().to_owned()).collect()
        }
    }

    #[test]
    fn s1_16_a_smaller_screen_is_shown_whole() {
        let mut scene = Scene::new((10, 2), (20, 5));
        assert_eq!(scene.shows("one\r\ntwo"), ["one", "two", "", "", "status"]);
        assert_eq!(scene.2.cursor().column, 3);
        assert_eq!(scene.shows("\x1b[2J\x1b[Hx"), ["x", "", "", "", "status"]);
    }

    #[test]
    fn s1_16_of_a_larger_screen_the_part_with_the_cursor_is_shown() {
        let mut scene = Scene::new((20, 6), (8, 4));
        assert_eq!(scene.shows("first\r\nsecond")[..3], ["first", "second", ""]);
        let rows = scene.shows("\r\n3\r\n4\r\n5\r\nthe last row is long");
        assert_eq!(rows, ["", "", " is long", "status"], "it went with the cursor");
        assert_eq!(scene.shows("\r")[..3], ["4", "5", "the last"]);
        assert_eq!(scene.shows("\x1b[H")[..3], ["first", "second", "3"]);
    }

    #[test]
    fn s1_16_nothing_but_text_and_colours_gets_through() {
        let mut scene = Scene::new((20, 3), (20, 4));
        let rows =
            scene.shows("\x1b]0;mine\x07\x1b]52;c;aGk=\x07\x1b[31mred\x1b[0m\x1b[?1000h\x1b[6n");
        assert_eq!(rows[0], "\x1b[0;38;5;1mred");
        let Scene(agent, canvas, _) = &mut scene;
        canvas.resize((20, 4));
        let written = canvas.draw(agent, "");
        assert!(!written.contains(']') && !written.contains("1000"), "{written:?}");
    }

    #[test]
    fn b_17_no_hidden_character_of_a_screen_gets_through() {
        let mut scene = Scene::new((20, 3), (20, 4));
        scene.shows("a\u{202e}b\u{2066}c\u{200b}d\u{feff}e");
        let Scene(agent, canvas, _) = &mut scene;
        canvas.resize((20, 4));
        let written = canvas.draw(agent, "");
        let hidden = ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}'];
        assert!(!written.contains(hidden) && written.contains('b'), "{written:?}");
    }

    #[test]
    fn s1_16_what_stays_is_not_written_again() {
        let mut scene = Scene::new((20, 3), (20, 4));
        scene.shows("one\r\ntwo");
        let Scene(agent, canvas, _) = &mut scene;
        agent.feed(b"\r\nthree");
        let line = format!("{:<20}", "status");
        let written = canvas.draw(agent, &line);
        assert!(written.contains("three") && !written.contains("one"), "{written:?}");
    }

    #[test]
    fn s1_16_no_window_is_too_small() {
        for window in [(1, 1), (1, 2), (2, 1), (300, 200)] {
            for agent in [(1, 1), (20, 5), (400, 3)] {
                let mut scene = Scene::new(agent, window);
                scene.shows("one 語 two\r\nthree\r\n\x1b[99;399Hx");
                scene.shows("\x1b[H");
            }
        }
    }
}
