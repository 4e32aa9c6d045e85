use super::*;
use crate::screen::Cursor;

const STREAM: &str = "\x1b[1;32mgrün\x1b[0m 🦀 and more\r\n\x1b[?1049h\x1b[2;3Halt\x1b[?2004h\
    \x1b[5;1Hü\x1b[?1049lback on the first\r\nlong lines wrap around the edge of the screen\r\n";

fn view(columns: u16, rows: u16) -> View {
    View::new(Word::default(), (columns, rows)).unwrap()
}

/// A terminal that draws a snapshot and then the bytes that follow it.
fn drawn(snapshot: &Snapshot, rest: &[u8]) -> String {
    let mut screen = Screen::new(Word::default(), snapshot.cols, snapshot.rows).unwrap();
    screen.feed(snapshot.dump.as_bytes());
    screen.feed(rest);
    screen.dump()
}

#[test]
fn s1_16_a_snapshot_and_what_follows_it_draw_the_same_screen_from_anywhere() {
    let stream = STREAM.as_bytes();
    for cut in 0..=stream.len() {
        let mut view = view(20, 6);
        view.output(&stream[..cut]);
        let snapshot = view.snapshot(0);
        view.output(&stream[cut..]);
        let rest = view.since(snapshot.seq, usize::MAX).unwrap();
        assert_eq!(drawn(&snapshot, &rest), view.screen.dump(), "cut at {cut}");
    }
}

#[test]
fn s1_16_a_snapshot_brings_the_modes_that_matter_to_whoever_types() {
    let mut view = view(20, 6);
    view.output(b"\x1b[?2004h\x1b[?1000h\x1b[?1000l");
    assert!(view.snapshot(0).dump.starts_with("\x1b[?2004h"));
}

#[test]
fn s1_16_what_follows_is_bounded_and_gone_after_a_change_of_size() {
    let mut view = view(20, 6);
    view.output(b"one");
    let start = view.snapshot(0).seq;
    assert_eq!(view.since(start, 100), Some(Vec::new()));
    view.output(b"two");
    assert_eq!(view.since(start, 2), Some(b"tw".to_vec()));
    view.resize(10, 6).unwrap();
    assert_eq!(view.since(start, 100), None);
    assert_eq!(view.since(u64::MAX, 100), None);
    let start = view.snapshot(0).seq;
    for _ in 0..RECENT_LIMIT / 1000 + 10 {
        view.output(&[b'x'; 1000]);
    }
    assert_eq!(view.since(start, 100), None);
    assert_eq!(view.recent.len(), RECENT_LIMIT);
}

#[test]
fn s1_16_screen_and_scrollback_share_eight_megabytes() {
    let mut view = view(400, 400);
    let refused = BadSize { columns: 401, rows: 400 };
    assert_eq!(view.resize(401, 400), Err(refused));
    let screen = view.screen.memory();
    assert!(screen < SCROLLBACK_LIMIT, "{screen}");
    view.resize(20, 2).unwrap();
    let line = "x".repeat(8000) + "\r\n";
    for _ in 0..500 {
        view.output(line.as_bytes());
    }
    assert!(view.screen.history_size() + view.screen.memory() <= SCROLLBACK_LIMIT);
    view.resize(400, 400).unwrap();
    assert!(view.screen.history_size() + screen <= SCROLLBACK_LIMIT);
    let snapshot = view.snapshot(100);
    assert!((1..=100).contains(&snapshot.history.len()), "{}", snapshot.history.len());
}

#[test]
fn s1_16_a_question_in_the_middle_of_output_is_answered_as_of_then() {
    let mut view = view(20, 6);
    let answers = view.output(b"ab\x1b[6n\r\ncdef\x1b[6n\x1b[?2004h\x1b[?2004$p");
    assert_eq!(answers, "\x1b[1;3R\x1b[2;5R\x1b[?2004;1$y");
    let cursor = Cursor { column: 4, row: 1, visible: true };
    assert_eq!(view.snapshot(0).cursor, cursor);
}

#[test]
fn b_07_a_flood_of_questions_is_answered_only_so_far() {
    let mut view = view(20, 6);
    assert!(view.output("\x1b[c".repeat(10_000).as_bytes()).len() < 2 * ANSWERS);
}

#[test]
fn s1_16_lines_are_read_off_the_output_or_off_the_screen() {
    let mut view = view(40, 6);
    view.output(b"first\r\n\x1b[32mtests pass\x1b[0m\r\n<<<ODEI:END>>>\r\n");
    assert_eq!(view.lines(5), ["first", "tests pass"]);
    view.output(b"\x1b[H\x1b[2J\x1b[2;1Hworking\x1b[4;1H\xe2\x94\x80\xe2\x94\x80");
    assert_eq!(view.lines(1), ["working"]);
}
