//! How secrets are found: tokens of a known shape, and what only its surroundings give away.

use super::shapes::{self, SHAPES, Shape};
use super::{LONGEST_KEY, place};

/// The maximum length of a name suffix that is inspected.
const LONGEST_NAME: usize = 32;

/// A class of bytes that can belong to a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
    /// The digits `0` to `9` and `a` to `f`.
    Hex,
    /// Capital letters and digits.
    Capital,
    /// Letters and digits of ASCII.
    Alphanumeric,
    /// Letters, digits and `_`.
    Word,
    /// Letters, digits, `_` and `-`.
    Dashed,
    /// Letters, digits, `_`, `-` and `.`.
    Dotted,
    /// The parts of a path: the above and `/`.
    Slashed,
    /// The bytes of a header value: the above, `~`, `+` and `=`.
    Header,
    /// The bytes of a value in the query of an address: the above and `%`.
    Query,
    /// Everything up to a blank, a quote or a bracket.
    Bare,
}

impl Class {
    fn has(self, byte: u8) -> bool {
        let more: &[u8] = match self {
            Class::Hex => return matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Class::Capital => return byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Class::Alphanumeric => b"",
            Class::Word => b"_",
            Class::Dashed => b"_-",
            Class::Dotted => b"_-.",
            Class::Slashed => b"_-./",
            Class::Header => b"_-.~+/=",
            Class::Query => b"_-.~+/=%",
            Class::Bare => return !is_break(byte),
        };
        byte.is_ascii_alphanumeric() || more.contains(&byte)
    }

    pub(super) fn count(self, bytes: &[u8]) -> usize {
        bytes.iter().take_while(|byte| self.has(**byte)).count()
    }
}

fn is_break(byte: u8) -> bool {
    byte <= b' ' || byte == 0x7f || b"\"'`,;()<>[]{}&|\\".contains(&byte)
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// True if the byte can be part of a name that is assigned to.
fn is_name_byte(byte: u8) -> bool {
    is_word(byte) || byte == b'-'
}

/// The extent of a removal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Drop {
    Exactly(usize),
    /// A fixed number of bytes, and then all bytes of a class.
    Token(usize, Class),
    While(Class),
    /// Up to the closing quote, or the end of the line.
    Quoted(u8),
    /// A list of cookies, in which blanks only stand after a `;`; holds whether one may stand here.
    Cookies(bool),
    /// As many lines of base64.
    Lines(usize),
    /// Up to the end of a private key; holds the number of bytes removed so far.
    Key(usize),
}

impl Drop {
    /// Returns the number of these bytes to remove now; 0 when the removal has ended.
    pub(super) fn step(&mut self, window: &[u8]) -> usize {
        match self {
            Drop::Exactly(left) => {
                let now = (*left).min(window.len());
                *left -= now;
                now
            }
            Drop::Token(begins, class) => {
                let begins = (*begins).min(window.len());
                *self = Drop::While(*class);
                begins
            }
            Drop::While(class) => usize::from(class.has(window[0])),
            Drop::Quoted(quote) => match window[0] {
                b'\\' if window.len() > 1 && !matches!(window[1], b'\n' | b'\r') => 2,
                byte if byte == *quote || byte == b'\n' || byte == b'\r' => 0,
                _ => 1,
            },
            Drop::Cookies(may_be_blank) => {
                let is_blank = b" \t".contains(&window[0]);
                let ends = place::ends_pair(window[0]) || is_blank && !*may_be_blank;
                *may_be_blank = window[0] == b';' || is_blank;
                usize::from(!ends)
            }
            Drop::Lines(left) => {
                let Some(length) = place::base64_line(window).filter(|_| *left > 0) else {
                    return 0;
                };
                *left -= 1;
                match (&window[length..], *left > 0) {
                    ([b'\r', b'\n', ..], true) => length + 2,
                    ([_, ..], true) => length + 1,
                    _ => length,
                }
            }
            Drop::Key(dropped) => {
                let now = match window.strip_prefix(b"-----END ") {
                    Some(rest) => {
                        let line = &rest[..rest.len().min(64)];
                        let end = line.windows(5).position(|five| five == b"-----");
                        // The end marker is the last part to be removed.
                        *dropped = LONGEST_KEY;
                        end.map_or(9, |end| 9 + end + 5)
                    }
                    None if *dropped >= LONGEST_KEY => 0,
                    None if is_key_byte(window[0]) => 1,
                    None => 0,
                };
                *dropped = dropped.saturating_add(now);
                now
            }
        }
    }
}

fn is_key_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"+/=-:,.\\ \t\r\n>|".contains(&byte)
}

/// A secret that begins here: its kind, the prefix that stays, and the extent of the removal.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Match {
    pub(super) kind: &'static str,
    pub(super) keep: usize,
    pub(super) drop: Drop,
}

/// The classification of a position in a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sighting {
    Plain,
    Secret(Match),
    /// A secret begins after the bytes that it keeps, which are inspected themselves.
    Later(Match),
}

impl Sighting {
    pub(super) fn secret(kind: &'static str, keep: usize, drop: Drop) -> Sighting {
        Sighting::Secret(Match { kind, keep, drop })
    }
}

/// The text just before a position.
#[derive(Debug, Default)]
pub(super) struct Before {
    last: Option<u8>,
    /// The end of the last name, as written.
    name: Vec<u8>,
    /// True if only a quote and blanks followed the name.
    is_near: bool,
    /// The position within a terminal's escape sequence.
    escape: Escape,
}

/// A terminal's escape sequence, whose last letter belongs to no word.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Escape {
    #[default]
    None,
    Begun,
    Parameters,
}

impl Before {
    /// Returns the state after a mark.
    pub(super) fn after_mark() -> Before {
        Before { last: Some(b']'), ..Before::default() }
    }

    pub(super) fn passed(&mut self, byte: u8) {
        self.escape = match (self.escape, byte) {
            (_, 0x1b) => Escape::Begun,
            (Escape::Begun, b'[') => Escape::Parameters,
            (Escape::Parameters, 0x20..=0x3f) => Escape::Parameters,
            (Escape::Parameters, 0x40..=0x7e) => {
                *self = Before { last: Some(0x1b), ..Before::default() };
                return;
            }
            _ => Escape::None,
        };
        let goes_on = self.last.is_some_and(is_name_byte);
        match byte {
            _ if is_name_byte(byte) => {
                if !goes_on {
                    self.name.clear();
                }
                if self.name.len() == LONGEST_NAME {
                    self.name.remove(0);
                }
                self.name.push(byte);
                self.is_near = true;
            }
            b' ' | b'"' | b'\'' | b'\\' => {}
            _ => self.is_near = false,
        }
        // In a quoted text a line begins after the letter of an escaped line end.
        let is_escaped = self.last == Some(b'\\') && matches!(byte, b'n' | b'r' | b't');
        self.last = Some(if is_escaped { b'\n' } else { byte });
    }

    /// True if the next letters have no special meaning.
    pub(super) fn is_within_text(&self) -> bool {
        self.escape == Escape::None && self.last != Some(b'\\')
    }

    /// Does the same as [`passed`](Self::passed) for each of these bytes, which [`harmless`] has
    /// checked.
    pub(super) fn passed_all(&mut self, bytes: &[u8]) {
        let goes_on = self.last.is_some_and(is_name_byte);
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'"' | b'\'');
        let blanks = bytes.iter().rev().take_while(|byte| is_blank(byte)).count();
        let said = &bytes[..bytes.len() - blanks];
        let letters = said.iter().rev().take(LONGEST_NAME).take_while(|byte| is_name_byte(**byte));
        let word = &said[said.len() - letters.count()..];
        if !said.is_empty() {
            self.is_near = !word.is_empty();
        }
        if !word.is_empty() {
            if word.len() < said.len() || !goes_on {
                self.name.clear();
            }
            let surplus = (self.name.len() + word.len()).saturating_sub(LONGEST_NAME);
            self.name.drain(..surplus);
            self.name.extend_from_slice(word);
        }
        self.last = bytes.last().copied();
    }

    pub(super) fn name(&self) -> Option<&[u8]> {
        self.is_near.then_some(self.name.as_slice())
    }
}

/// The places that need inspection, because a secret may begin there or they affect what follows.
/// It is asked about nearly every byte of everything that is stored.
#[derive(Clone)]
pub(super) struct Starts {
    /// The bytes that the others begin with.
    first: [bool; 256],
    /// A bit for the hash of each three bytes that a secret may begin with.
    threes: [u64; THREES / 64],
}

/// The beginnings of the known shapes.
pub(super) static KNOWN: Starts = Starts::KNOWN;

/// The number of different hashes of three bytes.
const THREES: usize = 1 << 15;

const fn hash(first: u8, second: u8, third: u8) -> usize {
    let number = first as u32 | (second as u32) << 8 | (third as u32) << 16;
    (number.wrapping_mul(0x9e37_79b1) >> 17) as usize
}

impl Starts {
    const KNOWN: Starts = {
        let mut starts = Starts { first: [false; 256], threes: [0; THREES / 64] };
        let special = b":=-.[\\Q\x1b>";
        let mut at = 0;
        while at < special.len() {
            starts.first[special[at] as usize] = true;
            at += 1;
        }
        at = 0;
        while at < SHAPES.len() {
            starts.add(SHAPES[at].begins);
            at += 1;
        }
        starts.add(JWT);
        at = 0;
        while at < place::BEGINNINGS.len() {
            starts.add(place::BEGINNINGS[at]);
            at += 1;
        }
        at = 0;
        while at < SCHEMES.len() {
            starts.add(SCHEMES[at]);
            at += 1;
        }
        starts
    };

    /// Adds a beginning of at least two bytes.
    pub(super) const fn add(&mut self, begins: &[u8]) {
        self.first[begins[0] as usize] = true;
        let (mut third, mut last) = (0, 255);
        if begins.len() > 2 {
            (third, last) = (begins[2], begins[2]);
        }
        loop {
            let hash = hash(begins[0], begins[1], third);
            self.threes[hash / 64] |= 1 << (hash % 64);
            if third == last {
                break;
            }
            third += 1;
        }
    }

    /// Adds bytes after which everything is inspected.
    pub(super) fn open<const N: usize>(&mut self, bytes: [u8; N]) {
        bytes.iter().for_each(|byte| self.first[usize::from(*byte)] = true);
    }

    /// True if a known shape or value may begin here.
    pub(super) fn has(&self, bytes: &[u8]) -> bool {
        let [first, second, third, ..] = bytes else { return false };
        let hash = hash(*first, *second, *third);
        self.threes[hash / 64] >> (hash % 64) & 1 == 1
    }

    /// Returns how many of these bytes, at most `most`, can be skipped. Nearly all of every text is
    /// skipped here.
    pub(super) fn skip(&self, bytes: &[u8], most: usize) -> usize {
        let mut places = bytes[..most].iter().enumerate();
        let may_be = |byte: u8| self.first[usize::from(byte)];
        let stop = places.find(|(at, byte)| may_be(**byte) && self.is_notable(&bytes[*at..]));
        stop.map_or(most, |(at, _)| at)
    }

    fn is_notable(&self, bytes: &[u8]) -> bool {
        match bytes {
            [b':' | b'=' | b'>' | b'\\' | b'%' | b'&' | 0x1b, ..]
            | [b'Q', b'~', ..]
            | [b'-', b'-' | b'u', ..] => true,
            [b'[', second, ..] if *second == MARK[1] => true,
            [b'.', ..] if bytes.get(7) == Some(&b'.') => true,
            _ => self.has(bytes),
        }
    }
}

/// The beginning of every mark.
const MARK: &[u8] = b"[redacted:";

/// The maximum length of a kind in a mark.
const LONGEST_KIND: usize = 16;

/// Returns the length of the mark that begins here, if one does.
pub(super) fn mark(window: &[u8]) -> Option<usize> {
    let kind = window.strip_prefix(MARK)?;
    let length = kind
        .iter()
        .take(LONGEST_KIND)
        .take_while(|byte| byte.is_ascii_lowercase() || **byte == b'_')
        .count();
    let closes = length > 0 && kind.get(length) == Some(&b']');
    closes.then_some(MARK.len() + length + 1)
}

/// True if the first `length` bytes end in the middle of a mark.
pub(super) fn ends_in_mark(window: &[u8], length: usize) -> bool {
    let longest = MARK.len() + LONGEST_KIND + 1;
    let first = length.saturating_sub(longest).max(1);
    (first..length).any(|at| mark(&window[at..]).is_some_and(|mark| at + mark > length))
}

/// Classifies the start of this window. `is_apart` says that a style begins or ends here.
pub(super) fn look(before: &Before, window: &[u8], is_apart: bool) -> Sighting {
    let Some(first) = window.first() else { return Sighting::Plain };
    let found = match first {
        b'-' => private_key(window).or_else(|| option(window)),
        b':' => address(window)
            .or_else(|| telegram(before, window))
            .or_else(|| assignment(before, window)),
        b'=' => assignment(before, window),
        b'.' => discord(before, window),
        b'Q' if window.get(1) == Some(&b'~') => azure(before, window),
        byte if is_word(*byte) && KNOWN.has(window) => {
            let is_glued = !is_apart && before.last.is_some_and(is_word);
            let others = || (!is_glued).then(|| jwt(window).or_else(|| bearer(window))).flatten();
            token(window, is_glued).or_else(others)
        }
        _ => None,
    };
    let later = || match first {
        b':' => place::field(before, window),
        b'>' => place::element(before, window),
        byte if is_word(*byte) && KNOWN.has(window) && !before.last.is_some_and(is_word) => {
            place::begins(window)
        }
        _ => None,
    };
    let later = || later().map_or(Sighting::Plain, Sighting::Later);
    found.map_or_else(later, Sighting::Secret)
}

/// Matches a token of a known shape.
fn token(window: &[u8], is_glued: bool) -> Option<Match> {
    let shapes = shapes::beginning_with(*window.first()?);
    shapes.filter(|shape| !is_glued || shape.is_distinct()).find_map(|shape| fit(shape, window))
}

fn fit(shape: &Shape, window: &[u8]) -> Option<Match> {
    let rest = window.strip_prefix(shape.begins)?;
    let body = shape.class.count(rest);
    if body < shape.least || body > shape.most {
        return None;
    }
    let (mut length, mut class) = (body, shape.class);
    for (front, next, least) in shape.then {
        let part = rest[length..].strip_prefix(&[*front])?;
        let count = next.count(part);
        if count < *least {
            return None;
        }
        (length, class) = (length + 1 + count, *next);
    }
    let has = |is: fn(&u8) -> bool| rest[..length].iter().any(is);
    // A name in kebab case or a constant has no digit, and practically every token has one, or
    // letters of both cases behind a beginning that is no word.
    let is_mixed = || has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase);
    let is_token = has(u8::is_ascii_digit) || shape.begins.len() >= 4 && is_mixed();
    let begins = shape.begins.len();
    let (keep, drop) = match shape.keeps {
        true => (begins, Drop::Token(length, class)),
        false => (0, Drop::Token(begins + length, class)),
    };
    is_token.then_some(Match { kind: shape.kind, keep, drop })
}

/// Matches the part of a bot's token that follows its number.
fn telegram(before: &Before, window: &[u8]) -> Option<Match> {
    let number = before.name()?;
    let is_number = (8..=10).contains(&number.len()) && number.iter().all(u8::is_ascii_digit);
    let is_token = window.starts_with(b":A") && Class::Dashed.count(&window[1..]) == 35;
    (is_number && is_token && before.last.is_some_and(is_word)).then_some(Match {
        kind: "telegram",
        keep: 1,
        drop: Drop::While(Class::Dashed),
    })
}

/// Matches the parts of a bot's token that follow its name.
fn discord(before: &Before, window: &[u8]) -> Option<Match> {
    let name = before.name()?;
    let is_name = (23..=28).contains(&name.len()) && b"MNO".contains(&name[0]);
    let rest = &window[1..];
    let is_token = Class::Dashed.count(rest) == 6
        && rest.get(6) == Some(&b'.')
        && Class::Dashed.count(&rest[7..]) >= 27;
    (is_name && is_token && before.last.is_some_and(is_name_byte)).then_some(Match {
        kind: "discord",
        keep: 1,
        drop: Drop::While(Class::Dotted),
    })
}

/// Matches the secret of an application at Azure, which has `Q~` at its fifth place.
fn azure(before: &Before, window: &[u8]) -> Option<Match> {
    let is_secret = window.starts_with(b"Q~")
        && before.last.is_some_and(|byte| byte.is_ascii_digit())
        && (31..=36).contains(&Class::Header.count(&window[2..]));
    let drop = Drop::While(Class::Header);
    is_secret.then_some(Match { kind: "azure", keep: 0, drop })
}

/// Matches the value of an option such as `--password`, and the password after `-u name:`.
fn option(window: &[u8]) -> Option<Match> {
    let secret = |keep: usize| {
        let value = &window[keep..];
        let value = &value[..Class::Bare.count(value)];
        is_mixed(value).then_some(Match { kind: "option", keep, drop: Drop::While(Class::Bare) })
    };
    if let Some(user) = window.strip_prefix(b"-u ").or_else(|| window.strip_prefix(b"--user ")) {
        let begins = window.len() - user.len();
        let name = user.iter().take_while(|byte| !is_break(**byte) && **byte != b':').count();
        return (user.get(name) == Some(&b':')).then(|| secret(begins + name + 1)).flatten();
    }
    let name = window.strip_prefix(b"--")?;
    let length = name.iter().take(LONGEST_NAME).take_while(|byte| is_name_byte(**byte)).count();
    let names_one = name.get(length) == Some(&b' ') && is_secret_name(&name[..length]);
    names_one.then(|| secret(2 + length + 1)).flatten()
}

/// The base64 form of `{"`.
const JWT: &[u8] = b"eyJ";

/// Matches a JWT: two parts of JSON in base64.
fn jwt(window: &[u8]) -> Option<Match> {
    let header = window.strip_prefix(JWT)?;
    let length = Class::Dashed.count(header);
    let payload = header[length..].strip_prefix(b".eyJ")?;
    (length >= 8 && Class::Dashed.count(payload) >= 8).then_some(Match {
        kind: "jwt",
        keep: 0,
        drop: Drop::While(Class::Dotted),
    })
}

const SCHEMES: [&[u8]; 6] = [b"Bearer ", b"bearer ", b"Basic ", b"basic ", b"SSWS ", b"ApiKey "];

/// Matches the value after the scheme name in a header.
fn bearer(window: &[u8]) -> Option<Match> {
    let scheme = SCHEMES.into_iter().find(|scheme| window.starts_with(scheme))?;
    let rest = &window[scheme.len()..];
    let value = &rest[..Class::Header.count(rest)];
    let is_token = value.len() >= 16
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic);
    is_token.then_some(Match {
        kind: "bearer",
        keep: scheme.len(),
        drop: Drop::While(Class::Header),
    })
}

fn private_key(window: &[u8]) -> Option<Match> {
    let rest = window.strip_prefix(b"-----BEGIN ")?;
    let line = &rest[..rest.len().min(64)];
    let end = line.windows(5).position(|five| five == b"-----")?;
    let label = &line[..end];
    let is_private = label.windows(11).any(|part| part == b"PRIVATE KEY")
        && label.iter().all(|byte| Class::Capital.has(*byte) || *byte == b' ');
    is_private.then_some(Match { kind: "private_key", keep: 0, drop: Drop::Key(0) })
}

/// Matches `://user:password@` in an address.
fn address(window: &[u8]) -> Option<Match> {
    let rest = window.strip_prefix(b"://")?;
    let is_part = |byte: &u8| !is_break(*byte) && !b"/?#@".contains(byte);
    let user = rest.iter().take_while(|byte| is_part(byte) && **byte != b':').count();
    let password = rest[user..].strip_prefix(b":")?;
    let length = password.iter().take_while(|byte| is_part(byte)).count();
    let password_ends = password.get(length) == Some(&b'@');
    let is_placeholder = password.first().is_some_and(|byte| b"$*%".contains(byte));
    (password_ends && length > 0 && !is_placeholder).then_some(Match {
        kind: "url",
        // Tokens are given as the user as often as the password, so both are removed.
        keep: 3,
        drop: Drop::Exactly(user + 1 + length),
    })
}

/// Suffixes of names that secrets are assigned to, in lower case and without `_` and `-`.
const NAMES: [&[u8]; 20] = [
    b"password",
    b"passwd",
    b"passphrase",
    b"pwd",
    b"secret",
    b"token",
    b"apikey",
    b"accesskey",
    b"secretkey",
    b"secretkeybase",
    b"privatekey",
    b"authkey",
    b"accountkey",
    b"signingkey",
    b"encryptionkey",
    b"masterkey",
    b"servicekey",
    b"credential",
    b"credentials",
    b"connectionstring",
];

/// Suffixes of environment variable names, which alone are written in capitals.
const CAPITALS: [&[u8]; 5] = [b"KEY", b"TOKEN", b"SECRET", b"PASSWORD", b"PASS"];

pub(super) fn is_secret_name(name: &[u8]) -> bool {
    let letters = || name.iter().rev().filter(|byte| !b"_-".contains(byte));
    let ends = |end: &[u8]| {
        let mut letters = letters();
        end.iter().rev().all(|end| letters.next().is_some_and(|it| it.eq_ignore_ascii_case(end)))
    };
    NAMES.iter().any(|end| ends(end))
}

fn is_variable(name: &[u8]) -> bool {
    let plain = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
    name.iter().all(plain) && CAPITALS.iter().any(|end| name.ends_with(end))
}

/// Matches a value after a name that marks it as a secret. In source code most such values are
/// types, calls and other names, so the value must look like none of them.
fn assignment(before: &Before, window: &[u8]) -> Option<Match> {
    let name = before.name()?;
    let is_tight = window[0] == b'=' && before.last.is_some_and(is_word);
    let is_variable = is_tight && is_variable(name);
    if !is_variable && !is_secret_name(name) {
        return None;
    }
    let mut start = 1;
    if window.get(1) == window.first() {
        // A comparison or a path.
        return None;
    }
    start += window[start..].iter().take(4).take_while(|byte| **byte == b' ').count();
    let escape = usize::from(window.get(start) == Some(&b'\\'));
    match window.get(start + escape) {
        Some(&quote @ (b'"' | b'\'')) => {
            let keep = start + escape + 1;
            let closes = |byte: &u8| *byte == quote || *byte == b'\n';
            let length = window[keep..].iter().take_while(|byte| !closes(byte)).count();
            let value = window[keep..keep + length]
                .strip_suffix(b"\\")
                .unwrap_or(&window[keep..keep + length]);
            let drop = if escape == 1 { Drop::While(Class::Bare) } else { Drop::Quoted(quote) };
            let fits = is_quoted_secret(value) || is_password(name, value);
            fits.then_some(Match { kind: "assignment", keep, drop })
        }
        Some(_) if escape == 0 => {
            let rest = &window[start..];
            let length = Class::Bare.count(rest);
            let is_code = match rest.get(length) {
                // In a quoted text, the end of a line.
                Some(b'\\') => !matches!(rest.get(length + 1), Some(b'n' | b'r' | b't')),
                after => matches!(after, Some(b'(' | b'[' | b'<' | b'{')),
            };
            let value = &rest[..length];
            let fits = match is_tight && start == 1 {
                true if is_variable => is_plain_value(value),
                true => is_mixed(value) || is_password(name, value),
                false => is_mixed(value),
            };
            (fits && !is_code).then_some(Match {
                kind: "assignment",
                keep: start,
                drop: Drop::While(Class::Bare),
            })
        }
        _ => None,
    }
}

/// True if a text is the secret that its name says it is.
pub(super) fn is_quoted_secret(value: &[u8]) -> bool {
    let is_marked = value.windows(MARK.len()).any(|part| part == MARK);
    let has_blank = value.iter().any(|byte| *byte <= b' ');
    !is_marked && !has_blank && is_mixed(value)
}

/// Suffixes of names whose value can be a word that somebody has chosen, as that of a token cannot.
const PASSWORDS: [&[u8]; 4] = [b"password", b"passwd", b"passphrase", b"pwd"];

/// Parts of words that name a password and are none, as in `password=password`, which is code.
const NO_PASSWORDS: [&[u8]; 3] = [b"pass", b"pwd", b"secret"];

/// True if a value of letters alone is the password that its name says it is. It must stand in quotes or
/// right behind its `=`: after a colon and a blank stand types and words of a sentence.
pub(super) fn is_password(name: &[u8], value: &[u8]) -> bool {
    let name = name.to_ascii_lowercase();
    let word = value.to_ascii_lowercase();
    let has = |part: &&[u8]| word.windows(part.len()).any(|it| it == *part);
    PASSWORDS.iter().any(|end| name.ends_with(end))
        && (8..=64).contains(&value.len())
        && value.iter().all(u8::is_ascii_alphabetic)
        && !NO_PASSWORDS.iter().any(has)
}

/// True if a text names a secret, such as a variable does.
pub(super) fn is_named_secret(name: &[u8]) -> bool {
    is_secret_name(name) || is_variable(name)
}

/// True if it is neither a word nor a number.
pub(super) fn is_mixed(value: &[u8]) -> bool {
    is_plain_value(value)
        && value.iter().any(u8::is_ascii_digit)
        && value.iter().any(u8::is_ascii_alphabetic)
        && !value.windows(2).any(|two| two == b"::" || two == b"//")
}

/// True if it is long enough, and not a placeholder that is filled in later.
fn is_plain_value(value: &[u8]) -> bool {
    value.len() >= 8
        && value.iter().any(u8::is_ascii_alphanumeric)
        && !value.first().is_some_and(|byte| b"$<{[*%/.&@".contains(byte))
}
