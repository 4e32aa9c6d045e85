use super::*;

fn output(limit: usize) -> Output {
    Output { bytes: Vec::new(), limit, truncated: false }
}

#[test]
fn b_02_the_end_of_an_output_is_kept_and_begins_with_a_whole_character() {
    let mut small = output(100);
    small.push("grün\n".as_bytes());
    assert_eq!((small.text().as_str(), small.truncated), ("grün\n", false));

    // Both begin in the middle of a character.
    let mut cut = output(4);
    cut.push("größe".as_bytes());
    assert_eq!((cut.text().as_str(), cut.truncated), ("ße", true));
    let mut cut = output(2);
    cut.push("größe".as_bytes());
    assert_eq!(cut.text(), "e");

    let mut endless = output(1000);
    for _ in 0..1000 {
        endless.push(&[0xff; 4096]);
    }
    assert!(endless.bytes.len() <= 1000 + CHUNK + 4096);
    assert!(endless.text().len() <= 1000);
}

#[test]
fn s5_06_a_line_for_a_shell_is_told_from_a_program() {
    assert!(is_line("cargo test && echo ok"));
    assert!(is_line("echo $HOME"));
    assert!(!is_line("/usr/bin/cargo"));
}
