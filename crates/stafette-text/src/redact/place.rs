//! Secrets that only their place gives away: in headers, options of programs, elements, and in
//! another field than their name.

use super::shape::{Before, Class, Drop, Match, is_mixed, is_named_secret};

/// A program, and what stands in front of a password among its arguments. All lines count if the
/// arguments are a file.
struct Program {
    begins: &'static [u8],
    option: &'static [u8],
    is_file: bool,
}

const fn program(begins: &'static str, option: &'static str) -> Program {
    Program { begins: begins.as_bytes(), option: option.as_bytes(), is_file: false }
}

const PROGRAMS: [Program; 10] = [
    program("mysql ", " -p"),
    program("mysqldump ", " -p"),
    program("mysqladmin ", " -p"),
    program("mariadb ", " -p"),
    program("sshpass ", "-p"),
    program("docker login ", "-p"),
    program("podman login ", "-p"),
    program("redis-cli ", "-a"),
    program("mongosh ", " -p"),
    Program { begins: b"machine ", option: b"password", is_file: true },
];

/// The beginnings of what [`begins`] finds.
pub(super) const BEGINNINGS: [&[u8]; PROGRAMS.len() + 1] = {
    let mut all: [&[u8]; PROGRAMS.len() + 1] = [PUTTY; PROGRAMS.len() + 1];
    let mut at = 0;
    while at < PROGRAMS.len() {
        all[at] = PROGRAMS[at].begins;
        at += 1;
    }
    all
};

/// The line in front of the private part of a key of PuTTY.
const PUTTY: &[u8] = b"Private-Lines: ";

/// The maximum number of lines of such a key.
const LINES: usize = 200;

/// Attributes of a cookie, which are no values of it.
const ATTRIBUTES: [&str; 5] = ["expires", "max-age", "path", "domain", "samesite"];

fn secret(kind: &'static str, keep: usize, window: &[u8]) -> Option<Match> {
    let value = window.get(keep..)?;
    let value = &value[..Class::Bare.count(value)];
    is_mixed(value).then_some(Match { kind, keep, drop: Drop::While(Class::Bare) })
}

fn blanks(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| b" \t\r\n".contains(byte)).count()
}

/// Matches a password after an option of a program, and the lines of a key.
pub(super) fn begins(window: &[u8]) -> Option<Match> {
    if let Some(lines) = window.strip_prefix(PUTTY) {
        let digits = lines.iter().take(4).take_while(|byte| byte.is_ascii_digit()).count();
        let count: usize = std::str::from_utf8(&lines[..digits]).ok()?.parse().ok()?;
        let end = blanks(&lines[digits..]);
        let drop = Drop::Exactly(count.min(LINES) * (63 + end));
        let keep = PUTTY.len() + digits + end;
        return (end > 0).then_some(Match { kind: "private_key", keep, drop });
    }
    let program = PROGRAMS.iter().find(|program| window.starts_with(program.begins))?;
    let line = match program.is_file {
        true => window,
        false => window.split(|byte| b"\r\n;&|".contains(byte)).next()?,
    };
    let options = line.windows(program.option.len()).enumerate();
    let mut ends = options
        .filter(|(at, option)| *at >= program.begins.len() - 1 && *option == program.option)
        .map(|(at, option)| at + option.len());
    ends.find_map(|end| {
        let blanks = blanks(&line[end..]);
        let quote = usize::from(line.get(end + blanks).is_some_and(|byte| b"'\"".contains(byte)));
        secret("option", end + blanks + quote, line)
    })
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
        b"name" | b"key" => named(window),
        b"value" => value(window),
        _ => next_line(before.name()?, window),
    }
}

/// Returns where a text begins after a colon: after blanks, and perhaps a quote.
fn opening(window: &[u8]) -> usize {
    let start = 1 + blanks(&window[1..]);
    start + usize::from(window.get(start).is_some_and(|byte| b"'\"".contains(byte)))
}

fn cookie(window: &[u8]) -> Option<Match> {
    let keep = opening(window);
    let ends = |byte: &u8| b"\r\n\"'`\\".contains(byte);
    let end = window[keep..].iter().position(ends).map_or(window.len(), |length| keep + length);
    let line = std::str::from_utf8(&window[keep..end]).ok()?;
    let is_secret = |pair: &str| {
        pair.trim().split_once('=').is_some_and(|(name, value)| {
            !ATTRIBUTES.contains(&&*name.to_ascii_lowercase()) && is_mixed(value.as_bytes())
        })
    };
    let quote = window.get(end).copied().filter(|byte| b"\"'".contains(byte)).unwrap_or(b'\n');
    line.split(';').any(is_secret).then_some(Match {
        kind: "cookie",
        keep,
        drop: Drop::Quoted(quote),
    })
}

/// Returns the text that begins here, in quotes or without, and what follows it.
fn text(bytes: &[u8]) -> Option<(usize, &[u8], &[u8])> {
    let quote = bytes.first().filter(|byte| b"'\"".contains(byte));
    let start = usize::from(quote.is_some());
    let rest = &bytes[start..];
    let length = match quote {
        Some(quote) => rest.iter().position(|byte| byte == quote)?,
        None => Class::Bare.count(rest),
    };
    Some((start, &rest[..length], &rest[length + start..]))
}

/// Matches the value in the field after that of its name.
fn named(window: &[u8]) -> Option<Match> {
    let (_, name, rest) = text(&window[1 + blanks(&window[1..])..])?;
    let rest = rest.strip_prefix(b",").unwrap_or(rest);
    let rest = &rest[blanks(rest)..];
    let (_, field, rest) = text(rest)?;
    let field = field.strip_suffix(b":").map_or((field, rest), |field| (field, &b":"[..]));
    let rest = match field {
        (b"value" | b"Value", b":") => &window[window.len() - rest.len()..],
        (b"value" | b"Value", rest) => rest.strip_prefix(b":")?,
        _ => return None,
    };
    let rest = &rest[blanks(rest)..];
    let (quote, _, _) = text(rest)?;
    let keep = window.len() - rest.len() + quote;
    is_named_secret(name).then(|| secret("assignment", keep, window)).flatten()
}

/// Matches a value in the field in front of that of its name.
fn value(window: &[u8]) -> Option<Match> {
    let start = 1 + blanks(&window[1..]);
    let (quote, _, rest) = text(&window[start..])?;
    let rest = rest.strip_prefix(b",")?;
    let (_, field, rest) = text(&rest[blanks(rest)..])?;
    let rest = rest.strip_prefix(b":").filter(|_| matches!(field, b"name" | b"Name" | b"key"))?;
    let (_, name, _) = text(&rest[blanks(rest)..])?;
    is_named_secret(name).then(|| secret("assignment", start + quote, window)).flatten()
}

/// Matches a value that stands alone on the line after its name.
fn next_line(name: &[u8], window: &[u8]) -> Option<Match> {
    let style = window[1..].iter().take(3).take_while(|byte| b" |>-".contains(byte)).count();
    let rest = &window[1 + style..];
    let indent = blanks(rest);
    let is_below = rest.starts_with(b"\n ") || rest.starts_with(b"\r\n ");
    let keep = 1 + style + indent;
    let after = &window[keep..];
    let is_alone = matches!(after.get(Class::Bare.count(after)), None | Some(b'\n' | b'\r'));
    (is_below && is_alone && is_named_secret(name))
        .then(|| secret("assignment", keep, window))
        .flatten()
}

/// Matches the text of an element with the name of a secret.
pub(super) fn element(before: &Before, window: &[u8]) -> Option<Match> {
    let name = before.name()?;
    let length = Class::Bare.count(&window[1..]);
    let closes = window[1 + length..].starts_with(b"</");
    (closes && is_named_secret(name)).then(|| secret("assignment", 1, window)).flatten()
}
