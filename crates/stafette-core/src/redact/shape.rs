//! The shapes of secrets.

use super::LONGEST_KEY;

/// The maximum length of a name suffix that is inspected.
const LONGEST_NAME: usize = 32;

/// A class of bytes that can belong to a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Class {
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
    /// The bytes of a header value: the above, `~`, `+`, `/` and `=`.
    Header,
    /// Everything up to a blank, a quote or a bracket.
    Bare,
}

impl Class {
    fn has(self, byte: u8) -> bool {
        let more: &[u8] = match self {
            Class::Capital => return byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Class::Alphanumeric => b"",
            Class::Word => b"_",
            Class::Dashed => b"_-",
            Class::Dotted => b"_-.",
            Class::Header => b"_-.~+/=",
            Class::Bare => return !is_break(byte),
        };
        byte.is_ascii_alphanumeric() || more.contains(&byte)
    }

    fn count(self, bytes: &[u8]) -> usize {
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
fn is_name(byte: u8) -> bool {
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
    byte.is_ascii_alphanumeric() || b"+/=-:,.\\ \t\r\n".contains(&byte)
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
pub(super) enum Verdict {
    Plain,
    Secret(Match),
}

impl Verdict {
    pub(super) fn secret(kind: &'static str, keep: usize, drop: Drop) -> Verdict {
        Verdict::Secret(Match { kind, keep, drop })
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
        let goes_on = self.last.is_some_and(is_name);
        match byte {
            _ if is_name(byte) => {
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
        let goes_on = self.last.is_some_and(is_name);
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'"' | b'\'');
        let blanks = bytes.iter().rev().take_while(|byte| is_blank(byte)).count();
        let said = &bytes[..bytes.len() - blanks];
        let letters = said.iter().rev().take(LONGEST_NAME).take_while(|byte| is_name(**byte));
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

    fn name(&self) -> Option<&[u8]> {
        self.is_near.then_some(self.name.as_slice())
    }
}

/// The bytes that need inspection, because a secret may begin there or they affect what follows.
pub(super) static NOTABLE: [bool; 256] = {
    let mut notable = [false; 256];
    let others = b":=-[\\\x1b";
    let mut at = 0;
    while at < others.len() {
        notable[others[at] as usize] = true;
        at += 1;
    }
    at = 0;
    while at < notable.len() {
        let seconds = &BEGINNINGS[at];
        notable[at] |= (seconds[0] | seconds[1] | seconds[2] | seconds[3]) != 0;
        at += 1;
    }
    notable
};

/// True if the first of these bytes needs inspection.
pub(super) fn is_notable(bytes: &[u8]) -> bool {
    match bytes {
        [b':' | b'=' | b'\\' | 0x1b, ..] => true,
        [b'-', rest @ ..] => rest.first() == Some(&b'-'),
        [b'[', rest @ ..] => rest.first() == Some(&MARK[1]),
        _ => may_begin(bytes),
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

/// Classifies the start of this window.
pub(super) fn look(before: &Before, window: &[u8]) -> Verdict {
    let Some(first) = window.first() else { return Verdict::Plain };
    let found = match first {
        b'-' => private_key(window),
        b':' | b'=' => address(window).or_else(|| assignment(before, window)),
        byte if is_word(*byte) && may_begin(window) => {
            let is_glued = before.last.is_some_and(is_word);
            let others = || (!is_glued).then(|| jwt(window).or_else(|| bearer(window))).flatten();
            token(window, is_glued).or_else(others)
        }
        _ => None,
    };
    found.map_or(Verdict::Plain, Verdict::Secret)
}

/// The shape of a token: a prefix, then a minimum number of bytes of a class.
struct Token {
    begins: &'static [u8],
    least: usize,
    class: Class,
    kind: &'static str,
}

const fn token_of(begins: &'static [u8], least: usize, class: Class, kind: &'static str) -> Token {
    Token { begins, least, class, kind }
}

/// The known tokens; the first match counts.
const TOKENS: [Token; 35] = [
    token_of(b"sk-ant-", 16, Class::Dashed, "anthropic"),
    token_of(b"sk-proj-", 20, Class::Dashed, "openai"),
    token_of(b"sk-svcacct-", 20, Class::Dashed, "openai"),
    token_of(b"sk-admin-", 20, Class::Dashed, "openai"),
    token_of(b"sk-or-v1-", 20, Class::Dashed, "openrouter"),
    token_of(b"sk-", 20, Class::Alphanumeric, "openai"),
    token_of(b"sk_live_", 16, Class::Alphanumeric, "stripe"),
    token_of(b"sk_test_", 16, Class::Alphanumeric, "stripe"),
    token_of(b"rk_live_", 16, Class::Alphanumeric, "stripe"),
    token_of(b"ghp_", 30, Class::Alphanumeric, "github"),
    token_of(b"gho_", 30, Class::Alphanumeric, "github"),
    token_of(b"ghu_", 30, Class::Alphanumeric, "github"),
    token_of(b"ghs_", 30, Class::Alphanumeric, "github"),
    token_of(b"ghr_", 30, Class::Alphanumeric, "github"),
    token_of(b"github_pat_", 22, Class::Word, "github"),
    token_of(b"glpat-", 20, Class::Dashed, "gitlab"),
    token_of(b"npm_", 30, Class::Alphanumeric, "npm"),
    token_of(b"pypi-AgE", 40, Class::Dashed, "pypi"),
    token_of(b"hf_", 30, Class::Alphanumeric, "huggingface"),
    token_of(b"gsk_", 40, Class::Alphanumeric, "groq"),
    token_of(b"xai-", 40, Class::Alphanumeric, "xai"),
    token_of(b"AIza", 35, Class::Dashed, "google"),
    token_of(b"ya29.", 20, Class::Dashed, "google"),
    token_of(b"GOCSPX-", 20, Class::Dashed, "google"),
    token_of(b"xoxa-", 10, Class::Dashed, "slack"),
    token_of(b"xoxb-", 10, Class::Dashed, "slack"),
    token_of(b"xoxe-", 10, Class::Dashed, "slack"),
    token_of(b"xoxp-", 10, Class::Dashed, "slack"),
    token_of(b"xoxr-", 10, Class::Dashed, "slack"),
    token_of(b"xoxs-", 10, Class::Dashed, "slack"),
    token_of(b"xapp-", 10, Class::Dashed, "slack"),
    token_of(b"dop_v1_", 40, Class::Alphanumeric, "digitalocean"),
    token_of(b"AGE-SECRET-KEY-1", 40, Class::Alphanumeric, "age"),
    token_of(b"AKIA", 16, Class::Capital, "aws"),
    token_of(b"ASIA", 16, Class::Capital, "aws"),
];

/// A bit for each second byte that may follow each first byte at the beginning of a secret. It is
/// used for nearly every byte of everything that is stored.
static BEGINNINGS: [[u64; 4]; 256] = {
    let mut pairs = [[0; 4]; 256];
    let mut at = 0;
    while at < TOKENS.len() {
        add(&mut pairs, TOKENS[at].begins);
        at += 1;
    }
    add(&mut pairs, JWT);
    at = 0;
    while at < SCHEMES.len() {
        add(&mut pairs, SCHEMES[at]);
        at += 1;
    }
    pairs
};

const fn add(pairs: &mut [[u64; 4]; 256], begins: &[u8]) {
    pairs[begins[0] as usize][begins[1] as usize / 64] |= 1 << (begins[1] % 64);
}

fn may_begin(window: &[u8]) -> bool {
    let [first, second, ..] = window else { return false };
    let seconds = BEGINNINGS[usize::from(*first)];
    seconds[usize::from(*second) / 64] >> (second % 64) & 1 == 1
}

impl Token {
    /// True if its prefix is so distinctive that it counts in the middle of a word too.
    fn is_distinct(&self) -> bool {
        self.begins.len() >= 4 && !self.begins.iter().all(u8::is_ascii_alphanumeric)
    }
}

fn token(window: &[u8], is_glued: bool) -> Option<Match> {
    let first = *window.first()?;
    let candidates = TOKENS.iter().filter(|token| token.begins[0] == first);
    candidates.filter(|token| !is_glued || token.is_distinct()).find_map(|token| {
        let rest = window.strip_prefix(token.begins)?;
        let length = token.class.count(rest);
        // A name in kebab case or a constant has no digit; practically every token has one.
        let is_token = length >= token.least && rest[..length].iter().any(u8::is_ascii_digit);
        let drop = Drop::Token(token.begins.len(), token.class);
        is_token.then_some(Match { kind: token.kind, keep: 0, drop })
    })
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

const SCHEMES: [&[u8]; 3] = [b"Bearer ", b"bearer ", b"Basic "];

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

/// Suffixes of names that secrets are assigned to, in lower case and with `_`.
const NAMES: [&[u8]; 12] = [
    b"password",
    b"passwd",
    b"passphrase",
    b"secret",
    b"token",
    b"api_key",
    b"apikey",
    b"access_key",
    b"secret_key",
    b"private_key",
    b"auth_key",
    b"credential",
];

/// Suffixes of environment variable names, which alone are written in capitals.
const CAPITALS: [&[u8]; 4] = [b"KEY", b"TOKEN", b"SECRET", b"PASSWORD"];

fn is_secret_name(name: &[u8]) -> bool {
    let even = |byte: &u8| if *byte == b'-' { b'_' } else { byte.to_ascii_lowercase() };
    let even: Vec<u8> = name.iter().map(even).collect();
    NAMES.iter().any(|end| even.ends_with(end))
        || ["apiKey", "accessKey", "secretKey", "privateKey", "authKey"]
            .iter()
            .any(|end| name.ends_with(end.as_bytes()))
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
            is_quoted_secret(value).then_some(Match { kind: "assignment", keep, drop })
        }
        Some(_) if escape == 0 => {
            let rest = &window[start..];
            let length = Class::Bare.count(rest);
            let is_code = matches!(rest.get(length), Some(b'(' | b'[' | b'<' | b'{' | b'\\'));
            let value = &rest[..length];
            let fits =
                if is_variable && start == 1 { is_plain_value(value) } else { is_mixed(value) };
            (fits && !is_code).then_some(Match {
                kind: "assignment",
                keep: start,
                drop: Drop::While(Class::Bare),
            })
        }
        _ => None,
    }
}

/// True if a field of this name holds a secret in this text.
pub(super) fn is_assigned_secret(name: &str, value: &str) -> bool {
    is_secret_name(name.as_bytes()) && is_quoted_secret(value.as_bytes())
}

fn is_quoted_secret(value: &[u8]) -> bool {
    let is_marked = value.windows(MARK.len()).any(|part| part == MARK);
    let has_blank = value.iter().any(|byte| *byte <= b' ');
    !is_marked && !has_blank && is_mixed(value)
}

/// True if it is neither a word nor a number.
fn is_mixed(value: &[u8]) -> bool {
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
