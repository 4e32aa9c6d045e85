use super::*;

const CURSOR: Cursor = Cursor { column: 4, row: 2, visible: true };

/// The answers that are typed when a program prints this, in reads of `size` bytes.
fn typed(stream: &[u8], size: usize) -> String {
    let mut listener = Listener::default();
    let mut modes = Modes::default();
    let mut typed = String::new();
    for read in stream.chunks(size) {
        listener.listen(read, |_, event| {
            modes.follow(&event);
            if let Event::Ask(ask) = event {
                typed += &ask.answer(CURSOR, &modes);
            }
        });
    }
    typed
}

#[track_caller]
fn check(stream: &str, expected: &str) {
    for size in [1, 2, 3, 1000] {
        assert_eq!(typed(stream.as_bytes(), size), expected, "in reads of {size}");
    }
}

#[test]
fn s1_16_device_attributes_are_answered() {
    check("\x1b[c", "\x1b[?62;22c");
    check("\x1b[0c", "\x1b[?62;22c");
    check("\x1b[>c", "\x1b[>1;10;0c");
    check("\x1b[>0c", "\x1b[>1;10;0c");
}

#[test]
fn s1_16_status_and_cursor_position_are_answered() {
    check("\x1b[5n", "\x1b[0n");
    check("text\x1b[6n", "\x1b[3;5R");
    check("\x1b[?6n", "\x1b[?3;5R");
}

#[test]
fn s1_16_modes_are_told_as_they_are() {
    check("\x1b[?2004$p", "\x1b[?2004;2$y");
    check("\x1b[?2004h\x1b[?2004$p", "\x1b[?2004;1$y");
    check("\x1b[?1000;2004h\x1b[?2004l\x1b[?2004$p\x1b[?1000$p", "\x1b[?2004;2$y\x1b[?1000;1$y");
    check("\x1b[?25$p\x1b[?25l\x1b[?25$p", "\x1b[?25;1$y\x1b[?25;2$y");
    check("\x1b[?2004h\x1bc\x1b[?2004$p", "\x1b[?2004;2$y");
    check("\x1b[?9999$p", "\x1b[?9999;0$y");
}

#[test]
fn s1_16_colours_are_answered_as_they_were_asked() {
    check("\x1b]10;?\x07", "\x1b]10;rgb:d0d0/d0d0/d0d0\x07");
    check("\x1b]11;?\x1b\\", "\x1b]11;rgb:1010/1010/1010\x1b\\");
}

#[test]
fn s1_16_name_and_version_are_ours() {
    let answer = concat!("\x1bP>|stafette(", env!("CARGO_PKG_VERSION"), ")\x1b\\");
    check("\x1b[>q", answer);
    check("\x1b[>0q", answer);
}

#[test]
fn b_07_what_could_be_used_to_type_is_never_answered() {
    for question in [
        "\x1b[20t",
        "\x1b[21t",
        "\x1b[14t",
        "\x1b[18t",
        "\x1b]52;c;?\x07",
        "\x1b]52;p;?\x1b\\",
        "\x1b]4;1;?\x07",
        "\x1b]12;?\x07",
        "\x1b]10;?;rm -rf\x07",
        "\x1b]0;rm -rf\r\x07\x1b[21t",
        "\x1bP$qm\x1b\\",
        "\x1bP+q544e\x1b\\",
        "\x1bP\x1b[6\x18n\x1b\\",
        "\x1b[1;1;1;1;1;1*y",
        "\x1b[?u",
        "\x1b[?996n",
        "\x1b[=c",
        "\x1b[1c",
        "\x1b[?62;22c",
        "\x1bZ",
        "\x05",
        "\x1b_Gi=31;a=q\x1b\\",
        "\x1b]1337;ReportCellSize\x07",
        "\x1b[?99999$p",
        "\x1b[?-1$p",
        "\x1b[?2004;1$p",
        "\x1b[3;5R",
    ] {
        check(question, "");
    }
}

#[test]
fn b_07_nothing_that_is_printed_makes_us_type_anything_else() {
    let parts: [&[u8]; 24] = [
        b"\x1b[",
        b"\x1b]",
        b"\x1bP",
        b"\x1b",
        b"?",
        b">",
        b"$p",
        b"c",
        b"n",
        b"q",
        b"6",
        b"5",
        b"0",
        b"2004",
        b"10;?",
        b"11;?",
        b"\x07",
        b"\x1b\\",
        b"\x18",
        b"h",
        b"t",
        b"rm -rf",
        b"\xc2\x9b",
        b";",
    ];
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut noise = Vec::new();
    while noise.len() < 500_000 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        noise.extend_from_slice(parts[usize::try_from(state >> 33).unwrap() % parts.len()]);
    }
    let answers = typed(&noise, 4096);
    assert_eq!(answers, typed(&noise, 7));
    let known = |answer: &str| {
        let number = |text: &str| text.parse::<u16>().is_ok();
        let mode = answer.strip_prefix("[?").and_then(|rest| rest.strip_suffix("$y"));
        ["", "\\", "[?62;22c", "[>1;10;0c", "[0n", "[3;5R", "[?3;5R"].contains(&answer)
            || answer.starts_with("]10;rgb:d0d0/d0d0/d0d0")
            || answer.starts_with("]11;rgb:1010/1010/1010")
            || answer.starts_with("P>|stafette(")
            || mode
                .and_then(|mode| mode.split_once(';'))
                .is_some_and(|(mode, state)| number(mode) && ["0", "1", "2"].contains(&state))
    };
    assert!(answers.len() > 100, "the noise asks something");
    for answer in answers.split('\x1b') {
        assert!(known(answer), "{answer:?}");
    }
}

#[test]
fn s1_16_sequences_that_do_not_end_cost_no_memory() {
    let mut listener = Listener::default();
    for opening in ["\x1b[", "\x1b]0;", "\x1bP"] {
        listener.listen(opening.as_bytes(), |_, _| {});
        for _ in 0..1000 {
            listener.listen(&[b'1'; 1000], |_, event| panic!("{event:?}"));
        }
        assert!(listener.held.capacity() <= 2 * COMMAND);
        listener.listen(b"\x18", |_, _| {});
    }
}

#[test]
fn s1_16_titles_are_plain_text() {
    let mut titles = Vec::new();
    let mut listener = Listener::default();
    listener.listen("\x1b]0;✳ busy\x07\x1b]2;a\tb\x1b\\".as_bytes(), |_, event| {
        titles.extend(matches!(event, Event::Title(_)).then_some(event));
    });
    assert_eq!(titles, [Event::Title("✳ busy".into()), Event::Title("a b".into())]);
}
