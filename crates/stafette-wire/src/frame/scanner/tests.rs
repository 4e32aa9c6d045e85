use proptest::prelude::*;

use super::super::{Frame, JSON_DEPTH_LIMIT};
use super::*;

fn scan_in(scanner: &mut Scanner, pieces: &[&[u8]]) -> Vec<Found> {
    let mut all = Vec::new();
    for piece in pieces {
        scanner.scan(piece, |found| all.push(found));
    }
    scanner.finish(|found| all.push(found));
    all
}

fn scan(stream: impl AsRef<[u8]>) -> Vec<Found> {
    scan_in(&mut Scanner::new(Word::default()), &[stream.as_ref()])
}

fn scan_drawn(stream: &str) -> Vec<Found> {
    scan_in(&mut Scanner::drawn(Word::default()), &[stream.as_bytes()])
}

/// Formats each result as one line.
fn notes(found: &[Found]) -> Vec<String> {
    let note = |found: &Found| match found {
        Found::Frame { frame, offset } => format!("{offset} {frame}"),
        Found::Malformed { fault, offset, .. } => format!("{offset} ! {fault:?}"),
    };
    found.iter().map(note).collect()
}

#[track_caller]
fn check(stream: impl AsRef<[u8]>, expected: &[&str]) {
    assert_eq!(notes(&scan(stream)), expected);
}

#[test]
fn s1_01_a_frame_is_found_where_it_stands() {
    check("hello <<<ODEI:HANDOFF:decisions>>> bye", &["6 HANDOFF:decisions"]);
    check("<<<ODEI:END>>>", &["0 END"]);
    check("<<<ODEI:END:>>>", &["0 END:"]);
    check("<<<<<ODEI:END>>>>>", &["2 END"]);
    check("<<<ODEI:HANDOFF;s=a;n=1;m=f0:x>>>", &["0 HANDOFF;s=a;n=1;m=f0:x"]);
    check("<<<ODEI:END;s=a;n=1;m=f0>>>", &["0 END;s=a;n=1;m=f0"]);
    check("a << b <<<ODE <<<ODEI> <<<odei:END>>>", &[]);
}

#[test]
fn s1_01_another_word_can_be_configured() {
    let mut scanner = Scanner::new("RELAY".parse().unwrap());
    let found = scan_in(&mut scanner, &[b"<<<ODEI:END>>><<<RELAY:GO>>>"]);
    assert_eq!(notes(&found), ["14 GO"]);
}

#[test]
fn s1_02_a_frame_cut_at_every_byte_is_the_same_frame() {
    let stream = concat!(
        "text \x1b[1m<<<ODEI:READY:{\"stage\":\"a>>>b\\\"\",\"ts\":\"ü\"}>>>\x1b[0m",
        "<<<ODEI:HANDOFF:mind>>> tail"
    )
    .as_bytes();
    let whole = scan(stream);
    assert_eq!(whole.len(), 2);
    for cut in 0..=stream.len() {
        let (left, right) = stream.split_at(cut);
        assert_eq!(scan_in(&mut Scanner::new(Word::default()), &[left, right]), whole, "cut {cut}");
    }
    let single: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(scan_in(&mut Scanner::new(Word::default()), &single), whole);
}

#[test]
fn s1_02_a_frame_is_reported_as_soon_as_it_ends() {
    let mut scanner = Scanner::new(Word::default());
    let mut count = 0;
    scanner.scan(b"<<<ODEI:END>>", |_| count += 1);
    assert_eq!(count, 0);
    scanner.scan(b">", |_| count += 1);
    assert_eq!(count, 1);
    scanner.finish(|_| count += 1);
    assert_eq!(count, 1);
}

#[test]
fn s1_02_twenty_frames_in_one_read_are_twenty_frames() {
    let stream: String = (0..20).map(|n| format!("<<<ODEI:HANDOFF:stage-{n}>>>")).collect();
    let found = scan(&stream);
    assert_eq!(found.len(), 20);
    assert!(notes(&found)[19].ends_with("HANDOFF:stage-19"));
}

#[test]
fn s1_02_brackets_inside_json_strings_do_not_end_the_frame() {
    let body = r#"{"code":"E","message":"a >>> b \" }>>> [","list":[{"x":"]"}]}"#;
    check(format!("<<<ODEI:ERROR:{body}>>>"), &[&format!("0 ERROR:{body}")]);
    check(r#"<<<ODEI:X:{"a":"<<<ODEI:END>>>"}>>>"#, &[r#"0 X:{"a":"<<<ODEI:END>>>"}"#]);
    check(r#"<<<ODEI:X:[1,2] >>>"#, &["0 X:[1,2]"]);
}

#[test]
fn s1_02_styling_inside_a_frame_is_not_part_of_it() {
    check("\x1b[1m<<\x1b[0m<OD\x1b[38;5;1mEI:E\x1b(BND>\x1b[m>>", &["4 END"]);
    check("<<<ODEI:HANDOFF:\x1b]8;;http://x/\x1b\\mi\x1b[4mnd\x1b]8;;\x07>>>", &["0 HANDOFF:mind"]);
    check("<<<ODEI:X:{\"a\x1b[1m\":\"b\x1b[0m\"}\x1b[K>>>", &["0 X:{\"a\":\"b\"}"]);
}

#[test]
fn s1_02_a_frame_wrapped_at_forty_columns_is_one_frame() {
    let body = r#"{"stage":"discuss","ts":"2025-10-09T18:30:00Z","note":"something long enough"}"#;
    for frame in [
        Frame::new("READY", Some(body.to_owned())),
        Frame::new(
            "HANDOFF",
            Some("a-stage-with-quite-a-long-name-that-must-wrap-twice".to_owned()),
        ),
    ] {
        let text = format!("prompt> {}", frame.wire(&Word::default()));
        for (end, indent) in [("\r\n", ""), ("\n", "  "), ("\x1b[0m\r\n", "    \x1b[1m")] {
            let rows: Vec<String> =
                text.as_bytes().chunks(40).map(|row| String::from_utf8_lossy(row).into()).collect();
            let stream = rows.join(&format!("{end}{indent}"));
            let found = scan(&stream);
            assert_eq!(found, [Found::Frame { frame: frame.clone(), offset: 8 }], "{stream:?}");
        }
    }
    check("<<<OD\r\n  EI:HAND\r\n  OFF:mi\r\n  nd>\r\n  >>", &["0 HANDOFF:mind"]);
}

#[test]
fn s1_02_what_opens_like_a_frame_and_is_none_is_reported_once_and_passed_over() {
    check("<<<ODEI:[TYPE]:[PAYLOAD]>>> <<<ODEI:END>>>", &["0 ! Type", "28 END"]);
    check("<<<ODEI:handoff:x>>>", &["0 ! Type"]);
    check("<<<ODEI:A;b:x>>>", &["0 ! Attributes"]);
    check("<<<ODEI:A:{\"x\":}>>>", &["0 ! Json"]);
    check("<<<ODEI:A:{\"x\":[1}>>>", &["0 ! Json"]);
    check("<<<ODEI:A:{} x>>>", &["0 ! Unclosed"]);
    check(b"<<<ODEI:A:\xff\xfe>>>", &["0 ! Encoding"]);
    check("<<<ODEI:A:x\x01>>>", &["0 ! Control"]);
    check("<<<ODEI:A:x\n\n>>> print()", &["0 ! BlankLine"]);
    check("<<<ODEI:A:x", &["0 ! Cut"]);
    check("<<<ODEI", &[]);
}

#[test]
fn s1_02_an_opening_inside_an_unfinished_frame_begins_anew() {
    check("<<<ODEI:A:x <<<ODEI:END>>>", &["0 ! Reopened", "12 END"]);
    check("<<<ODEI:A:x <<<<ODEI:END>>>", &["0 ! Reopened", "13 END"]);
    check("<<<ODEI:A:{\"x <<<ODEI:END>>>", &["0 ! Cut", "14 END"]);
    check("<<<ODEI:HAND<<<ODEI:END>>>", &["0 ! Type", "12 END"]);
}

#[test]
fn s1_02_json_may_be_deep_but_not_too_deep() {
    let deep = |levels: u32| {
        let levels = levels as usize;
        format!("<<<ODEI:A:{}{}>>>", "[".repeat(levels), "]".repeat(levels))
    };
    assert!(matches!(scan(deep(JSON_DEPTH_LIMIT))[..], [Found::Frame { .. }]));
    check(deep(JSON_DEPTH_LIMIT + 1), &["0 ! TooDeep"]);
}

#[test]
fn s1_02_a_frame_may_fill_its_limit_and_not_a_byte_more() {
    let room = FRAME_LIMIT - "<<<ODEI:A:>>>".len();
    let frame = |length: usize| format!("<<<ODEI:A:{}>>>", "x".repeat(length));
    assert!(matches!(scan(frame(room))[..], [Found::Frame { .. }]));
    check(frame(room + 1), &["0 ! TooLong"]);
}

#[test]
fn s1_02_an_unterminated_frame_never_grows_past_its_limit() {
    for opening in ["<<<ODEI:A:", "<<<ODEI:A:{\"x\":\"", "<<<ODEI:A:\x1b]0;"] {
        let mut scanner = Scanner::new(Word::default());
        let mut all = Vec::new();
        scanner.scan(opening.as_bytes(), |found| all.push(found));
        let piece = vec![b'x'; 1000];
        for _ in 0..8 * 1024 {
            scanner.scan(&piece, |found| all.push(found));
            assert!(scanner.held.capacity() <= 4 * FRAME_LIMIT);
        }
        scanner.scan(b"<<<ODEI:END>>>", |found| all.push(found));
        let end = format!("{} END", opening.len() + 1000 * 8 * 1024);
        assert_eq!(notes(&all), ["0 ! TooLong", &end], "{opening:?}");
        let whole = vec![b'x'; 8 * 1024 * 1024];
        scanner.scan(opening.as_bytes(), |_| {});
        scanner.scan(&whole, |_| {});
        assert!(scanner.held.capacity() <= 4 * FRAME_LIMIT);
    }
}

#[test]
fn s1_02_streams_made_to_be_slow_are_looked_at_a_bounded_number_of_times() {
    for unit in [
        "<<<ODEI:A:",
        "<<<ODEI:A:{\"",
        "<<<ODEI:A:{\"\\",
        "<<<ODEI:A:[",
        "<<<ODEI:A:\x1b]",
        "<<<ODEI:A:\x1b[",
        "<<<ODEI:A:\x1b(",
        "<<<ODEI:A:{\"\x1b]",
        "<<<ODEI:A:{\"<<<ODEI:A:\x1b]",
        "<\x1b]",
        "<\x1b[",
        "<\r\n",
        "<<<ODEI",
    ] {
        let stream = unit.repeat(4 * FRAME_LIMIT / unit.len());
        let mut scanner = Scanner::new(Word::default());
        scanner.scan(stream.as_bytes(), |_| {});
        scanner.finish(|_| {});
        assert!(scanner.steps <= 8 * stream.len() as u64, "{unit:?}: {}", scanner.steps);
    }
}

#[test]
fn s1_02_what_markdown_made_of_a_frame_is_a_frame_on_screens_only() {
    let drawn = "<<ODEI:HANDOFF:decisions>>";
    check(drawn, &[]);
    assert_eq!(notes(&scan_drawn(drawn)), ["0 HANDOFF:decisions"]);
    let linked = "<<ODEI:HANDOFF:decisions (ODEI:HANDOFF:decisions)>>";
    assert_eq!(notes(&scan_drawn(linked)), ["0 HANDOFF:decisions"]);
    assert_eq!(notes(&scan_drawn("<<ODEI:END (ODEI:END)>>")), ["0 END"]);
    let json = r#"<<ODEI:X:{"a":1} (ODEI:X:{"a":1})>>"#;
    assert_eq!(notes(&scan_drawn(json)), [r#"0 X:{"a":1}"#]);
    assert_eq!(notes(&scan_drawn("<<<ODEI:HANDOFF:a b>>>")), ["0 HANDOFF:a b"]);
    for partial in [
        "<<ODEI:HANDOFF:deci",
        "<<<ODEI:HANDOFF:decisions>>",
        "<<ODEI:HANDOFF:decisions (ODEI:HANDOFF:deci)>>",
        "<<ODEI:HANDOFF:decisions and then >>",
        "<<<ODEI:HANDOFF:   isions>>>",
    ] {
        assert!(
            scan_drawn(partial).iter().all(|found| matches!(found, Found::Malformed { .. })),
            "{partial}"
        );
    }
}

/// Pieces of streams that are hard on a scanner.
fn piece() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        Just(b"<<<ODEI:HANDOFF:mind>>>".to_vec()),
        Just(b"<<<ODEI:READY:{\"stage\":\"a>>>\",\"ts\":\"\\\"\"}>>>".to_vec()),
        Just(b"<<<ODEI:".to_vec()),
        Just(b"<<<ODEI:X:{\"".to_vec()),
        Just(b"<".to_vec()),
        Just(b">>>".to_vec()),
        Just(b"\r\n  ".to_vec()),
        Just(b"\x1b[1;31m".to_vec()),
        Just(b"\x1b]0;t\x07".to_vec()),
        Just(b"\x1b".to_vec()),
        Just(b"END".to_vec()),
        Just(b"\"}".to_vec()),
        prop::collection::vec(any::<u8>(), 0..12),
        prop::collection::vec(prop::sample::select(b"<>ODEI:{}[]\"\\ \n\x1b(".to_vec()), 0..24),
    ]
}

proptest! {
    #[test]
    fn s1_02_any_cut_of_any_stream_finds_the_same(
        pieces in prop::collection::vec(piece(), 0..40),
        cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..20),
        source in prop::sample::select(vec![Source::Stream, Source::Terminal, Source::Screen]),
    ) {
        let stream = pieces.concat();
        let scanner = || Scanner { source, ..Scanner::new(Word::default()) };
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(stream.len() + 1)).collect();
        cuts.sort_unstable();
        let mut reads = Vec::new();
        let mut from = 0;
        for cut in cuts.into_iter().chain([stream.len()]) {
            reads.push(&stream[from..cut]);
            from = cut;
        }
        let whole = scan_in(&mut scanner(), &[&stream]);
        prop_assert_eq!(scan_in(&mut scanner(), &reads), whole.clone());
        let single: Vec<&[u8]> = stream.chunks(1).collect();
        prop_assert_eq!(scan_in(&mut scanner(), &single), whole);
    }

    #[test]
    fn s1_02_every_frame_that_is_written_is_read_back(
        kind in "[A-Z][A-Z0-9_]{0,20}",
        body in prop::option::of("[a-z0-9 :;.ü-]{0,40}"),
    ) {
        let frame = Frame::new(kind, body.map(|body| body.trim().to_owned()));
        let stream = format!("noise\n{}", frame.wire(&Word::default()));
        prop_assert_eq!(scan(stream), [Found::Frame { frame, offset: 6 }]);
    }

    #[test]
    fn s1_02_noise_never_stops_the_scanner(noise in prop::collection::vec(any::<u8>(), 0..4096)) {
        let mut stream = noise;
        // Ends any string or escape sequence that the noise may have opened.
        stream.extend_from_slice(b"\n\n<<<ODEI:END>>>");
        let last_is_a_frame = matches!(scan(&stream).last(), Some(Found::Frame { .. }));
        prop_assert!(last_is_a_frame);
    }
}

#[test]
fn s1_02_what_is_printed_to_a_terminal_ends_where_the_cursor_moves() {
    let check = |stream: &str, expected: &[&str]| {
        let mut scanner = Scanner::printed(Word::default());
        assert_eq!(notes(&scan_in(&mut scanner, &[stream.as_bytes()])), expected, "{stream:?}");
    };
    check("\x1b[1m<<<ODEI:NOTE:\x1b(B\x1b[0ma  b\tc>>>", &["4 NOTE:a  b\tc"]);
    check("<<<ODEI:NOTE:\r\n{\r\n  \"a\": 1\r\n}\r\n>>>", &["0 NOTE:{\"a\": 1}"]);
    for moves in ["\x1b[2;1H", "\x1b[K", "\x1b[A", "\x1b7", "\x1bM", "\r", "\r\n", "\n  "] {
        check(&format!("<<<ODEI:NOTE:a{moves}b>>>"), &["0 ! Moved"]);
        check(&format!("<<<ODEI:NOTE:{{\"a\":\"b{moves}c\"}}>>>"), &["0 ! Moved"]);
        check(
            &format!("<<<OD{moves}EI:END>>><<<ODEI:END>>>"),
            &[&format!("{} END", 14 + moves.len())],
        );
    }
}
