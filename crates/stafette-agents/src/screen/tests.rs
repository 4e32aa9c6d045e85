use super::*;

fn screen(columns: u16, rows: u16) -> Screen {
    Screen::new(Word::default(), columns, rows).unwrap()
}

fn names(sightings: Vec<Sighting>) -> Vec<String> {
    sightings.iter().map(|sighting| sighting.frame.to_string()).collect()
}

fn feed(screen: &mut Screen, text: &str) -> Vec<String> {
    names(screen.feed(text.as_bytes()))
}

#[test]
fn s1_02_a_frame_on_the_screen_is_seen_at_once() {
    let mut screen = screen(80, 24);
    let sightings = screen.feed(b"hello <<<ODEI:END>>>");
    assert_eq!(sightings.len(), 1);
    assert_eq!((sightings[0].offset, sightings[0].tier), (20, Tier::Bare));
}

#[test]
fn s1_02_a_redraw_or_a_resize_is_not_a_second_frame() {
    let mut screen = screen(80, 24);
    assert_eq!(feed(&mut screen, "<<<ODEI:HANDOFF:mind>>>\r\n"), ["HANDOFF:mind"]);
    for _ in 0..18 {
        assert!(feed(&mut screen, "\x1b[H\x1b[2J\x1b[5;3H<<<ODEI:HANDOFF:mind>>>").is_empty());
    }
    for columns in [40, 13, 100] {
        screen.resize(columns, 10).unwrap();
        assert!(feed(&mut screen, "\x1b[H").is_empty());
    }
}

#[test]
fn s1_02_the_same_frame_counts_again_in_the_next_turn() {
    let mut screen = screen(80, 24);
    assert_eq!(feed(&mut screen, "<<<ODEI:HANDOFF:fixer>>>\r\n"), ["HANDOFF:fixer"]);
    screen.next_turn();
    assert!(feed(&mut screen, "it is still to be seen\r\n").is_empty());
    assert!(feed(&mut screen, "\x1b[H\x1b[J").is_empty());
    screen.next_turn();
    assert_eq!(feed(&mut screen, "<<<ODEI:HANDOFF:fixer>>>"), ["HANDOFF:fixer"]);
}

#[test]
fn s1_02_cursor_moves_inside_a_frame_make_one_frame() {
    let mut screen = screen(80, 24);
    let drawn = "\x1b[3;1H<<<ODEI:\x1b[3;20Hmind>>>\x1b[1m\x1b[3;9HHANDOFF\x1b[0m:\x1b[17G   ";
    assert!(feed(&mut screen, drawn).is_empty(), "three blanks are in it");
    let changed = "\x1b[3;17Hthe\x1b[9;1H";
    assert_eq!(feed(&mut screen, changed), ["HANDOFF:themind"]);
}

#[test]
fn s1_02_wraps_by_the_terminal_and_by_the_program_make_one_frame() {
    let body = "a-stage-with-quite-a-long-name-that-must-wrap-more-than-once-to-be-shown";
    let frame = format!("<<<ODEI:HANDOFF:{body}>>>");
    let by_terminal = format!("  see {frame} there");
    let rows: Vec<&str> =
        (0..frame.len()).step_by(38).map(|at| &frame[at..frame.len().min(at + 38)]).collect();
    let by_program = format!("  {}\r\n", rows.join("\r\n  "));
    let drawn = format!("\x1b[5;3H{}", rows.join("\r\x1b[2C\x1b[1B"));
    for text in [by_terminal, by_program, drawn] {
        let mut screen = screen(40, 10);
        assert_eq!(feed(&mut screen, &text), [format!("HANDOFF:{body}")], "{text:?}");
    }
}

#[test]
fn s1_02_json_wrapped_between_words_keeps_its_spaces() {
    let mut screen = screen(48, 10);
    let drawn = "<<<ODEI:ERROR:{\"code\":\"E\",\"message\":\"cannot\r\n  connect to it\"}>>>\r\n";
    let seen = feed(&mut screen, drawn);
    assert_eq!(seen, [r#"ERROR:{"code":"E","message":"cannot connect to it"}"#]);
}

#[test]
fn s1_02_a_frame_counts_when_it_is_complete_and_not_before() {
    let mut screen = screen(40, 10);
    let frame = "<<ODEI:HANDOFF:decisions>>";
    for end in 1..frame.len() {
        let row = format!("\x1b[2;3H\x1b[K{}\r\nauto mode on >> \r\n$", &frame[..end]);
        assert!(feed(&mut screen, &row).is_empty(), "{row:?}");
    }
    let row = format!("\x1b[2;3H\x1b[K{frame}");
    assert_eq!(feed(&mut screen, &row), ["HANDOFF:decisions"]);
}

#[test]
fn s1_02_a_row_that_is_being_drawn_over_is_not_read() {
    let mut screen = screen(40, 10);
    assert_eq!(feed(&mut screen, "<<ODEI:HANDOFF:aaaa>>\r\n"), ["HANDOFF:aaaa"]);
    let mut seen = Vec::new();
    for byte in b"\x1b[1;1H<<ODEI:HANDOFF:b>>\x1b[K\x1b[5;1H" {
        seen.extend(names(screen.feed(&[*byte])));
    }
    assert_eq!(seen, ["HANDOFF:b"]);
}

#[test]
fn s1_02_frames_that_scroll_off_within_one_read_are_seen() {
    let mut screen = screen(40, 5);
    let burst: String = (0..1000).map(|n| format!("<<<ODEI:HANDOFF:stage-{n}>>>\r\n")).collect();
    assert_eq!(feed(&mut screen, &burst).len(), 1000);
}

#[test]
fn s1_02_a_frame_longer_than_the_screen_is_seen() {
    let mut screen = screen(40, 3);
    let body = "x".repeat(5000);
    let frame = format!("<<<ODEI:NOTE:{body}>>>\r\n");
    let mut seen = Vec::new();
    for piece in frame.as_bytes().chunks(100) {
        seen.extend(names(screen.feed(piece)));
    }
    assert_eq!(seen, [format!("NOTE:{body}")]);
}

#[test]
fn s1_02_endless_lines_and_noise_take_bounded_memory() {
    let mut screen = screen(40, 3);
    let line = vec![b'x'; 64 * 1024];
    screen.feed(b"<<<ODEI:NOTE:");
    for _ in 0..16 {
        screen.feed(&line);
        assert!(screen.watch.departed() <= 2 * 64 * 1024 / 40);
    }
    let mut state = 1_u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as u8
    })
    .take(256 * 1024)
    .collect();
    screen.feed(&noise);
    screen.feed(b"\x1b\\\x18\x1bc");
    assert_eq!(feed(&mut screen, "<<<ODEI:END>>>"), ["END"]);
}

#[test]
fn s1_15_the_last_screen_can_be_kept() {
    let mut screen = screen(20, 5);
    feed(&mut screen, "one\r\n\x1b[1mtwo\x1b[0m");
    assert_eq!(screen.text(), ["one", "two"]);
    let mut copy = self::screen(20, 5);
    feed(&mut copy, &screen.dump());
    assert_eq!(copy.text(), screen.text());
}

#[test]
fn a_screen_has_a_sensible_size() {
    for (columns, rows) in [(0, 1), (1, 0), (1001, 1), (1, 2001)] {
        assert!(Screen::new(Word::default(), columns, rows).is_err());
    }
    assert_eq!(feed(&mut screen(1, 1), "<<<ODEI:END>>>"), ["END"]);
}
