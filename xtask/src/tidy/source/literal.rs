//! Comments and literals: text that looks like code and is none.

/// Returns the text with comments, strings and characters blanked out. Lines and columns stay.
pub(super) fn blank(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut code = String::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let end = end_of_literal(bytes, at).unwrap_or(at).min(bytes.len());
        if end == at {
            code.push(if bytes[at].is_ascii() { char::from(bytes[at]) } else { ' ' });
            at += 1;
        } else {
            let blanks = bytes[at..end].iter().map(|byte| if *byte == b'\n' { '\n' } else { ' ' });
            code.extend(blanks);
            at = end;
        }
    }
    code
}

/// Returns the end of the comment or literal that begins at `at`, if one does.
fn end_of_literal(bytes: &[u8], at: usize) -> Option<usize> {
    let rest = &bytes[at..];
    match rest {
        [b'/', b'/', ..] => Some(at + find(rest, b"\n").unwrap_or(rest.len())),
        [b'/', b'*', ..] => Some(at + comment(rest)),
        [b'"', ..] => Some(at + quoted(rest, b'"')),
        [b'r', ..] if begins_word(bytes, at) => raw(rest).map(|length| at + length),
        [b'\'', b'\\', ..] => Some(at + quoted(rest, b'\'')),
        [b'\'', ..] => character(rest).map(|length| at + length),
        _ => None,
    }
}

/// Returns the length of a block comment; they nest.
fn comment(rest: &[u8]) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < rest.len() {
        if rest[at..].starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

fn quoted(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

fn raw(rest: &[u8]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|byte| **byte == b'#').count();
    let body = 1 + hashes;
    if rest.get(body) != Some(&b'"') {
        return None;
    }
    let end = [&b"\""[..], &b"#".repeat(hashes)].concat();
    let length = find(&rest[body + 1..], &end).map(|found| body + 1 + found + end.len());
    Some(length.unwrap_or(rest.len()))
}

/// Returns the length of a character literal; `None` for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(&rest[1..rest.len().min(6)]);
    let text = text.or_else(|error| std::str::from_utf8(&rest[1..=error.valid_up_to()])).ok()?;
    let length = text.chars().next()?.len_utf8();
    (rest.get(1 + length) == Some(&b'\'')).then_some(length + 2)
}

/// True if the `r` at `at` begins a word, apart from a `b` or `c` for the kind of string.
fn begins_word(bytes: &[u8], at: usize) -> bool {
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    match &bytes[..at] {
        [.., before, b'b' | b'c'] => !is_part(before),
        [b'b' | b'c'] => true,
        [.., before] => !is_part(before),
        [] => true,
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

#[cfg(test)]
mod tests {
    use super::blank;

    fn words(text: &str) -> String {
        blank(text).split_whitespace().collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_go() {
        assert_eq!(words("a // b \" c\nd /* e /* f */ g */ h"), "a d h");
    }

    #[test]
    fn strings_go() {
        assert_eq!(words(r#"a "b \" c" d"#), "a d");
        assert_eq!(words(r###"a r#"b " c"# d r"e" f"###), "a d f");
        assert_eq!(words(r###"a(br#"b"#, c"d", b"e") f"###), "a(br , c , b ) f".replace("br", "b"));
    }

    #[test]
    fn characters_go_and_lifetimes_stay() {
        assert_eq!(words(r"f('a', '\'', '→', '\u{1}') "), "f( , , , )");
        assert_eq!(
            words("fn f<'a>(x: &'a str, y: &'static str)"),
            "fn f<'a>(x: &'a str, y: &'static str)"
        );
        assert_eq!(words("r#type for r in bar"), "r#type for r in bar");
    }

    #[test]
    fn lines_and_columns_stay() {
        let text = "let a = \"x\ny→\"; // z\nb";
        let code = blank(text);
        assert_eq!(code.len(), text.len());
        assert_eq!(code.matches('\n').count(), 2);
    }
}
