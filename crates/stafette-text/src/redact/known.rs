//! Values that are secrets wherever they appear: those of the environment.

use std::collections::HashMap;

use super::LOOK;
use super::shape::{self, Starts};

/// The minimum length of a secret value; shorter ones are too likely to be part of something else.
const SHORTEST: usize = 8;

/// The minimum length of a value that only its look makes a secret, and of one line of a longer
/// value.
const SHORTEST_LINE: usize = 16;

/// The minimum length of a value of three kinds of characters, and how often they change in it.
const MIXED: usize = 12;
const MIXED_CHANGES: usize = 3;

/// The length from which on letters alone are no word any more, if they change their case so often.
const LONG_WORD: usize = 20;
const WORD_CHANGES: usize = 4;

/// The size of the pieces that a long value is recognised by, in bytes.
const PIECE: usize = LOOK / 2;

/// The values, and the beginnings of all secrets.
#[derive(Clone)]
pub(super) struct Known {
    /// The values by their first three bytes; longer ones first.
    values: HashMap<[u8; 3], Vec<Box<[u8]>>>,
    count: usize,
    pub(super) starts: Box<Starts>,
}

impl Default for Known {
    fn default() -> Self {
        Known { values: HashMap::new(), count: 0, starts: Box::new(shape::KNOWN.clone()) }
    }
}

impl Known {
    /// Returns the number of values.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// True if the value is known already, or is too short to be.
    pub(super) fn has(&self, value: &str) -> bool {
        let piece = &value.as_bytes()[..value.len().min(PIECE)];
        let Some(begins) = piece.first_chunk::<3>() else { return true };
        let mut known = self.values.get(begins).into_iter().flatten();
        value.len() < SHORTEST || known.any(|value| **value == *piece)
    }

    /// Learns a value in each form that it is likely to appear in.
    pub(super) fn learn(&mut self, value: &str) {
        if value.len() < SHORTEST {
            return;
        }
        self.count += 1;
        self.add(value.as_bytes());
        self.add(percent(value).as_bytes());
        for form in [quoted(value), spelled(value, false), spelled(value, true)] {
            self.add(form.as_bytes());
            // A text of JSON within another.
            self.add(quoted(&form).as_bytes());
        }
        for quote in ["&#39;", "&#x27;", "&apos;"] {
            self.add(in_markup(value, quote).as_bytes());
        }
        base64(value.as_bytes()).iter().for_each(|form| self.add(form));
        if value.contains('\n') {
            // A terminal ends its lines in another way.
            let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
            lines.filter(|line| is_unusual(line)).for_each(|line| self.add(line.as_bytes()));
        }
    }

    fn add(&mut self, value: &[u8]) {
        for piece in value.chunks(PIECE).filter(|piece| piece.len() >= SHORTEST) {
            let [first, second, third, ..] = *piece else { continue };
            let values = self.values.entry([first, second, third]).or_default();
            if values.iter().any(|known| **known == *piece) {
                continue;
            }
            values.push(piece.into());
            values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
            self.starts.add(piece);
        }
    }

    /// Returns the length of the value that begins here, if one does.
    pub(super) fn exact(&self, window: &[u8]) -> Option<usize> {
        let values = self.values.get(window.first_chunk::<3>()?)?;
        let is_here =
            |value: &&[u8]| window.starts_with(value) && !shape::ends_in_mark(window, value.len());
        values.iter().map(|value| &**value).find(is_here).map(<[u8]>::len)
    }
}

/// Words in the names of variables whose values are secrets.
const SECRET_NAMES: [&str; 16] = [
    "KEY",
    "APIKEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PWD",
    "PASSPHRASE",
    "PAT",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "AUTH",
    "DSN",
    "WEBHOOK",
];

/// True if a variable of this name holds a secret.
pub fn is_secret_variable(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let is_one = |word: &str| {
        SECRET_NAMES.iter().any(|end| word == *end || end.len() > 3 && word.ends_with(end))
    };
    name.ends_with("KEY") || name.split('_').any(is_one)
}

/// True if a variable holds a secret, by its name and by the look of its value.
pub(super) fn is_secret(name: &str, value: &str) -> bool {
    is_secret_variable(name) && is_unusual(value)
}

/// True if a value is unlikely to appear in a text by chance: no path, no word, no number.
fn is_unusual(value: &str) -> bool {
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let has_other = value.bytes().any(|byte| !byte.is_ascii_digit());
    let is_path =
        value.starts_with(['/', '~', '.']) || value.contains("://") && !value.contains('@');
    value.len() >= SHORTEST
        && distinct(value) >= 6
        && has_other
        && !is_path
        && (has_digit || value.len() >= 12)
}

/// True if a value looks random, whatever its name is: a long mix of letters and digits, or a shorter
/// one that changes between kinds of characters again and again. Sentences, addresses and lists of
/// words are none, however they are joined.
pub(super) fn is_random(value: &str) -> bool {
    let has = |kind: fn(&u8) -> bool| value.bytes().any(|byte| kind(&byte));
    let (lower, upper) = (has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase));
    let digit = has(u8::is_ascii_digit);
    let kinds = [lower, upper, digit].into_iter().filter(|it| *it).count();
    let is_long = value.len() >= SHORTEST_LINE && distinct(value) >= 10;
    let changes = changes(value);
    is_unusual(value)
        && !has(u8::is_ascii_whitespace)
        && (kinds == 3 && value.len() >= MIXED && changes >= MIXED_CHANGES
            || is_long && digit && (lower || upper)
            || value.len() >= LONG_WORD && changes >= WORD_CHANGES)
}

/// Returns how often letters and digits meet, or a small letter a capital one. The capital letter at the
/// beginning of a word does not count.
fn changes(value: &str) -> usize {
    let meet = |pair: &&[u8]| match (pair[0], pair[1]) {
        (one, other) if one.is_ascii_digit() => other.is_ascii_alphabetic(),
        (one, other) if one.is_ascii_alphabetic() => {
            other.is_ascii_digit() || one.is_ascii_lowercase() && other.is_ascii_uppercase()
        }
        _ => false,
    };
    value.as_bytes().windows(2).filter(meet).count()
}

fn distinct(value: &str) -> usize {
    let mut seen = [false; 256];
    value.bytes().for_each(|byte| seen[usize::from(byte)] = true);
    seen.iter().filter(|seen| **seen).count()
}

/// Returns a value as it is written in an address.
pub(super) fn percent(value: &str) -> String {
    let written = |byte: u8| match byte {
        byte if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) => char::from(byte).into(),
        byte => format!("%{byte:02X}"),
    };
    value.bytes().map(written).collect()
}

/// Returns a value as it is written within a JSON text.
fn quoted(value: &str) -> String {
    let json = serde_json::Value::from(value).to_string();
    json.trim_start_matches('"').strip_suffix('"').unwrap_or_default().to_owned()
}

/// Returns a value as it is written within a JSON text of ASCII letters alone, by programs that also spell
/// the letters of markup (`all`) or do not.
fn spelled(value: &str, all: bool) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(value.len());
    for c in quoted(value).chars() {
        match c.is_ascii() && !(all && "<>&'".contains(c)) {
            true => text.push(c),
            false => c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                // Writing to a text cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }),
        }
    }
    text
}

/// Returns a value as it is written within HTML and XML.
fn in_markup(value: &str, quote: &str) -> String {
    let value = value.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    value.replace('"', "&quot;").replace('\'', quote)
}

/// Returns the parts of base64 that a value leads to, wherever it begins in the encoded text.
fn base64(value: &[u8]) -> Vec<Vec<u8>> {
    const LETTERS: [&[u8; 64]; 2] = [
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
    ];
    let mut forms = Vec::new();
    for (letters, skipped) in LETTERS.iter().flat_map(|letters| (0..3).map(move |n| (letters, n))) {
        // Only letters that depend on nothing but the value.
        let whole = value[skipped.min(value.len())..].chunks_exact(3);
        let form: Vec<u8> = whole
            .flat_map(|three| {
                let bits = three.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte));
                [18, 12, 6, 0].map(|shift| letters[(bits >> shift & 63) as usize])
            })
            .collect();
        if form.len() >= SHORTEST {
            forms.push(form);
        }
    }
    forms
}
