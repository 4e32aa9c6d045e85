//! Text on its way into a program, and the proof of its arrival.

/// The number of bytes of a line that are typed before they are handed over, in a terminal that
/// gathers lines: the system drops bytes that do not fit into its buffer of 4096 bytes. Not a
/// multiple of 64: Linux reads a terminal in portions of that size, and takes a hand-over right
/// behind one for the end of input.
const LINE_PIECE: usize = 1000;

/// The number of characters at the end of a text that prove that all of it is there.
const NEEDLE: usize = 24;

/// The text that programs show instead of a long pasted text.
const PLACEHOLDER: &str = "[Pasted";

/// Hands over the typed part of a line (Ctrl-D), in a terminal that gathers lines.
const HAND_OVER: u8 = 0x04;

/// The visibility of a typed text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sight {
    None,
    /// The system shows it, but under load only part of it, though it keeps everything that it
    /// took.
    Likely,
    /// The program shows it once it has it.
    Certain,
}

/// The way a text is typed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Way {
    /// In brackets, which mark it as pasted.
    Brackets {
        /// True if the terminal gathers lines, and hands over only whole ones.
        lines: bool,
    },
    /// Line by line, into a terminal that gathers lines.
    Lines,
    /// Key by key. A line break would submit it, so there are none.
    Keys,
}

/// The bytes that are typed for a text. Control characters other than line breaks and tabs are left
/// out: they would be keys, and the end of the brackets is one of them.
pub(super) fn encode(text: &str, way: Way) -> Vec<u8> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let plain = text.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control());
    match way {
        Way::Brackets { lines } => {
            let inner: String = plain.map(|c| if c == '\n' { '\r' } else { c }).collect();
            let whole = format!("\x1b[200~{inner}\x1b[201~");
            if lines { in_pieces(whole.as_bytes()) } else { whole.into_bytes() }
        }
        // A tab would ask a program that reads keys to complete a word.
        Way::Keys => {
            let keys: String =
                plain.map(|c| if c == ' ' || !c.is_whitespace() { c } else { ' ' }).collect();
            keys.into_bytes()
        }
        Way::Lines => in_pieces(plain.collect::<String>().as_bytes()),
    }
}

/// Splits long lines, so that the system's buffer does not overflow.
fn in_pieces(bytes: &[u8]) -> Vec<u8> {
    let mut pieces = Vec::with_capacity(bytes.len());
    let mut length = 0;
    for byte in bytes {
        if length == LINE_PIECE && !matches!(byte, b'\n' | b'\r') {
            pieces.push(HAND_OVER);
            length = 0;
        }
        pieces.push(*byte);
        length = if matches!(byte, b'\n' | b'\r') { 0 } else { length + 1 };
    }
    pieces
}

/// The text that must become visible when a text arrives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Proof {
    needle: String,
    /// Its end in the system's echo, with the end of the brackets.
    echo: String,
    /// The number of times that it, and the placeholder, were visible before.
    before: (usize, usize),
}

impl Proof {
    /// The proof for a text that is about to be typed, with the present screen.
    pub(super) fn new(text: &str, brackets: bool, screen: &[String]) -> Self {
        let (needle, mut echo) = (end(&letters(text)), end(&solid(text)));
        if brackets {
            echo.push_str("^[[201~");
        }
        let mut proof = Proof { needle, echo, before: (0, 0) };
        proof.before = proof.count(screen);
        proof
    }

    /// True if the text has arrived, by the output since and by the present screen.
    pub(super) fn holds(&self, printed: &str, screen: &[String]) -> bool {
        if self.needle.is_empty() {
            return true;
        }
        let (needles, placeholders) = self.count(screen);
        needles > self.before.0
            || placeholders > self.before.1
            || letters(printed).contains(&self.needle)
            || printed.contains(PLACEHOLDER)
    }

    /// True if the system has echoed all of it: output from then on is not its echo.
    pub(super) fn is_echoed(&self, printed: &str) -> bool {
        solid(printed).contains(&self.echo)
    }

    fn count(&self, screen: &[String]) -> (usize, usize) {
        if self.needle.is_empty() {
            return (0, 0);
        }
        let text = screen.join("\n");
        (letters(&text).matches(&self.needle).count(), text.matches(PLACEHOLDER).count())
    }
}

/// Only the characters that programs leave alone when they wrap and frame a text.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).collect()
}

/// Only the characters that the system echoes unchanged.
fn solid(text: &str) -> String {
    text.chars().filter(|c| !c.is_whitespace() && !c.is_control()).collect()
}

/// The last characters of a text.
fn end(text: &str) -> String {
    text.chars().skip(text.chars().count().saturating_sub(NEEDLE)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_06_a_paste_is_put_in_brackets_that_it_cannot_leave() {
        let text = "one\r\ntwo\x1b[201~\x03\r\u{9b}three\0";
        let pasted = encode(text, Way::Brackets { lines: false });
        assert_eq!(pasted, b"\x1b[200~one\rtwo[201~\rthree\x1b[201~");
    }

    #[test]
    fn b_06_without_brackets_no_key_but_letters_is_pressed() {
        let text = "one\ntwo\tthree\x04\x1a";
        assert_eq!(encode(text, Way::Keys), b"one two three");
        assert_eq!(encode(text, Way::Lines), b"one\ntwo\tthree");
    }

    #[test]
    fn b_06_long_lines_are_handed_over_in_pieces() {
        let typed = encode(&format!("{}\n{}", "x".repeat(2500), "y".repeat(1000)), Way::Lines);
        let pieces: Vec<usize> = typed.split(|byte| *byte == HAND_OVER).map(<[u8]>::len).collect();
        assert_eq!(pieces, [1000, 1000, 500 + 1 + 1000]);
    }

    #[test]
    fn b_06_a_text_has_arrived_when_its_end_or_a_placeholder_shows() {
        let before = ["> what is done must not be done twice".to_owned()];
        let proof = Proof::new("Do it.\nWhat is done must not be done twice.", false, &before);
        assert!(!proof.holds("", &before), "that one was there before");
        let wrapped =
            ["│ > What is done must not │".to_owned(), "│ be done twice.      │".to_owned()];
        assert!(proof.holds("", &[before.as_slice(), &wrapped].concat()));
        assert!(proof.holds("what is done must not be done twice", &[]));
        assert!(proof.holds("", &["> [Pasted text #1 +2 lines]".to_owned()]));
        assert!(!proof.holds("It must not", &[]));
        assert!(Proof::new("…", false, &[]).holds("", &[]), "nothing to look for");
    }

    #[test]
    fn b_06_the_systems_echo_is_over_with_the_last_sign_of_it() {
        let text = "Do it.\nNever do it twice, please.";
        let (plain, within) = (Proof::new(text, false, &[]), Proof::new(text, true, &[]));
        let echo = "Do it. Never do it twice, please";
        assert!(plain.holds(echo, &[]) && !plain.is_echoed(echo), "the full stop is on its way");
        assert!(plain.is_echoed(&format!("{echo}.")) && !within.is_echoed(&format!("{echo}.^[")));
        assert!(within.is_echoed(&format!("^[[200~{echo}.^[[201~ and the answer")));
    }
}
