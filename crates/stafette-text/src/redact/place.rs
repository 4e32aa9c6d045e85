//! Secrets that only their place gives away: in headers, options of programs, elements, and in
//! another field than their name.

use super::shape::{Before, Class, Drop, Match, is_mixed, is_named_secret};

/// A program, and the option in front of a password among its arguments.
struct Program {
    begins: &'static [u8],
    option: &'static [u8],
    /// True if blanks may stand between the option and the password.
    is_apart: bool,
}

const fn program(begins: &'static str, option: &'static str) -> Program {
    Program { begins: begins.as_bytes(), option: option.as_bytes(), is_apart: true }
}

/// One of MySQL, which asks for the password if it does not follow at once: then a database follows.
const fn mysql(begins: &'static str) -> Program {
    Program { is_apart: false, ..program(begins, " -p") }
}

const PROGRAMS: [Program; 9] = [
    mysql("mysql "),
    mysql("mysqldump "),
    mysql("mysqladmin "),
    mysql("mariadb "),
    program("sshpass ", " -p"),
    program("docker login ", " -p"),
    program("podman login ", " -p"),
    program("redis-cli ", " -a"),
    program("mongosh ", " -p"),
];

/// The beginning of an entry of a `.netrc`, and the words of it that the password can follow.
const MACHINE: &[u8] = b"machine ";
const LOGIN: [&[u8]; 4] = [b"login", b"user", b"account", b"port"];

/// The beginnings of what [`begins`] finds.
pub(super) const BEGINNINGS: [&[u8]; PROGRAMS.len() + 2] = {
    let mut all: [&[u8]; PROGRAMS.len() + 2] = [PUTTY; PROGRAMS.len() + 2];
    all[PROGRAMS.len()] = MACHINE;
    let mut at = 0;
    while at < PROGRAMS.len() {
        all[at] = PROGRAMS[at].begins;
        at += 1;
    }
    all
};

/// The line in front of the private part of a key of PuTTY.
const PUTTY: &[u8] = b"Private-Lines: ";

/// The maximum number of lines of such a key, and the maximum length of one.
const LINES: usize = 200;
const LINE: usize = 80;

/// Attributes of a cookie, which are no values of it.
const ATTRIBUTES: [&[u8]; 5] = [b"expires", b"max-age", b"path", b"domain", b"samesite"];

fn secret(kind: &'static str, keep: usize, window: &[u8]) -> Option<Match> {
    let value = window.get(keep..)?;
    let value = &value[..Class::Bare.count(value)];
    is_mixed(value).then_some(Match { kind, keep, drop: Drop::While(Class::Bare) })
}

fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| b" \t\r\n".contains(byte)).count()
}

/// Matches a password among the arguments of a program or in a `.netrc`, and the lines of a key.
pub(super) fn begins(window: &[u8]) -> Option<Match> {
    if let Some(lines) = window.strip_prefix(PUTTY) {
        return putty(lines);
    }
    if let Some(entry) = window.strip_prefix(MACHINE) {
        return machine(entry, window);
    }
    let program = PROGRAMS.iter().find(|program| window.starts_with(program.begins))?;
    let line = window.split(|byte| b"\r\n;&|".contains(byte)).next()?;
    let options = line.windows(program.option.len()).enumerate();
    // The blank of the option can be that after the program.
    let mut ends = options
        .filter(|(at, option)| *at >= program.begins.len() - 1 && *option == program.option)
        .map(|(at, option)| at + option.len());
    ends.find_map(|end| {
        let end = if program.is_apart { end + blanks(&line[end..]) } else { end };
        let quote = usize::from(line.get(end).is_some_and(|byte| b"'\"".contains(byte)));
        secret("option", end + quote, line)
    })
}

fn putty(lines: &[u8]) -> Option<Match> {
    let digits = lines.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
    let count: usize = std::str::from_utf8(&lines[..digits]).ok()?.parse().ok()?;
    let rest = &lines[digits..];
    let end = usize::from(rest.starts_with(b"\r"));
    let end = rest[end..].starts_with(b"\n").then_some(end + 1)?;
    base64_line(&rest[end..])?;
    let (keep, drop) = (PUTTY.len() + digits + end, Drop::Lines(count.min(LINES)));
    Some(Match { kind: "private_key", keep, drop })
}

/// Returns the length of the line of base64 that begins here, without its end.
pub(super) fn base64_line(window: &[u8]) -> Option<usize> {
    let letters = |byte: &&u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
    let length = window.iter().take(LINE).take_while(letters).count();
    let ends = window.get(length).is_none_or(|byte| b"\r\n".contains(byte));
    (length > 0 && ends).then_some(length)
}

fn machine(entry: &[u8], window: &[u8]) -> Option<Match> {
    let begins = window.len() - entry.len();
    let word = |at: usize| -> Option<(&[u8], usize)> {
        let at = at + blanks(window.get(at..)?);
        let length = Class::Bare.count(&window[at..]);
        (length > 0).then(|| (&window[at..at + length], at + length))
    };
    let (_, mut at) = word(begins)?;
    loop {
        let (name, end) = word(at)?;
        match name {
            b"password" => return secret("option", end + blanks(&window[end..]), window),
            name if LOGIN.contains(&name) => at = word(end)?.1,
            _ => return None,
        }
    }
}

/// Matches what follows the colon of a header, or of a field whose value or name is elsewhere.
pub(super) fn field(before: &Before, window: &[u8]) -> Option<Match> {
    let name = before.name()?.to_ascii_lowercase();
    match name.as_slice() {
        name if name.ends_with(b"authorization") => {
            let scheme = window[opening(window)..].strip_prefix(b"Token ")?;
            secret("bearer", window.len() - scheme.len(), window)
        }
        b"cookie" | b"set-cookie" => cookie(window),
        b"name" | b"key" => beside(true, window),
        b"value" => beside(false, window),
        _ => next_line(before.name()?, window),
    }
}

/// Returns where a text begins after a colon: after blanks, and perhaps a quote.
fn opening(window: &[u8]) -> usize {
    let start = 1 + blanks(&window[1..]);
    start + usize::from(window.get(start).is_some_and(|byte| b"'\"".contains(byte)))
}

/// Matches a list of cookies, up to the first blank in a value: those of cookies have none.
fn cookie(window: &[u8]) -> Option<Match> {
    let keep = opening(window);
    let pairs = window[keep..].split(|byte| ends_pair(*byte)).next()?;
    let mut has_secret = false;
    for pair in pairs.split(|byte| *byte == b';') {
        let pair = pair.trim_ascii();
        let name = pair.iter().take_while(|byte| !b"= \t".contains(byte)).count();
        let value = match pair.get(name) {
            Some(b'=') => &pair[name + 1..],
            // A flag, as at the end.
            None => continue,
            Some(_) => break,
        };
        let length = value.iter().take_while(|byte| !b" \t".contains(byte)).count();
        let is_attribute = ATTRIBUTES.iter().any(|it| it.eq_ignore_ascii_case(&pair[..name]));
        has_secret |= !is_attribute && is_mixed(&value[..length]);
        if length < value.len() {
            break;
        }
    }
    has_secret.then_some(Match { kind: "cookie", keep, drop: Drop::Cookies(true) })
}

/// True if no list of cookies goes on with this byte.
pub(super) fn ends_pair(byte: u8) -> bool {
    b"\r\n\"'`\\".contains(&byte)
}

/// A text in a window, in quotes or without, and where what follows it begins.
struct Text<'w> {
    begins: usize,
    text: &'w [u8],
    rest: usize,
}

/// Returns the text that begins here, or after blanks.
fn text(window: &[u8], at: usize) -> Option<Text<'_>> {
    let at = at + blanks(window.get(at..)?);
    let quote = window.get(at).filter(|byte| b"'\"".contains(byte));
    let begins = at + usize::from(quote.is_some());
    let rest = &window[begins..];
    let length = match quote {
        Some(quote) => rest.iter().position(|byte| byte == quote)?,
        None => Class::Bare.count(rest),
    };
    Some(Text { begins, text: &rest[..length], rest: begins + length + begins - at })
}

/// Matches a value whose name is in the field before it or, without `is_name`, in the one after it.
fn beside(is_name: bool, window: &[u8]) -> Option<Match> {
    let first = text(window, 1)?;
    let key = text(window, first.rest + usize::from(window.get(first.rest) == Some(&b',')))?;
    let (word, colon) = match key.text.strip_suffix(b":") {
        Some(word) => (word, key.rest - 1),
        None => (key.text, key.rest),
    };
    let is_key = |keys: &[&str]| keys.iter().any(|it| word.eq_ignore_ascii_case(it.as_bytes()));
    let is_other = if is_name { is_key(&["value"]) } else { is_key(&["name", "key"]) };
    if !is_other || window.get(colon) != Some(&b':') {
        return None;
    }
    let second = text(window, colon + 1)?;
    let (name, value) = if is_name { (first, second) } else { (second, first) };
    is_named_secret(name.text).then(|| secret("assignment", value.begins, window)).flatten()
}

/// Matches a value that stands alone on the line after its name.
fn next_line(name: &[u8], window: &[u8]) -> Option<Match> {
    let style = window[1..].iter().take(3).take_while(|byte| b" |>-".contains(byte)).count();
    let rest = &window[1 + style..];
    let is_below = rest.starts_with(b"\n ") || rest.starts_with(b"\r\n ");
    if !is_below || !is_named_secret(name) {
        return None;
    }
    let keep = 1 + style + blanks(rest);
    let after = &window[keep..];
    let is_alone = matches!(after.get(Class::Bare.count(after)), None | Some(b'\n' | b'\r'));
    is_alone.then(|| secret("assignment", keep, window)).flatten()
}

/// Matches the text of an element with the name of a secret.
pub(super) fn element(before: &Before, window: &[u8]) -> Option<Match> {
    let name = before.name()?;
    let length = Class::Bare.count(&window[1..]);
    let closes = window[1 + length..].starts_with(b"</");
    (closes && is_named_secret(name)).then(|| secret("assignment", 1, window)).flatten()
}
