//! Values that are secrets wherever they appear: those of the environment.

use super::shape::{self, Starts};
use super::values::Values;
use super::{LOOK, spelt};

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

/// The size of those that it is recognised by where every letter of it is spelled with nine.
const SPELT_PIECE: usize = LOOK / 9;

/// The values, and the beginnings of all secrets.
#[derive(Clone)]
pub(super) struct Known {
    /// The values and their pieces.
    values: Values,
    /// What stands for them in base64.
    base64: Values,
    count: usize,
    pub(super) starts: Box<Starts>,
}

impl Default for Known {
    fn default() -> Self {
        Known {
            values: Values::default(),
            base64: Values::default(),
            count: 0,
            starts: Box::new(shape::KNOWN.clone()),
        }
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
        value.len() < SHORTEST || self.values.has(piece)
    }

    /// Learns a value.
    pub(super) fn learn(&mut self, value: &str) {
        if value.len() < SHORTEST {
            return;
        }
        self.count += 1;
        self.add(value.as_bytes());
        for form in base64(value.as_bytes()) {
            for piece in form.chunks(PIECE).filter(|piece| piece.len() >= SHORTEST) {
                self.base64.insert(piece);
                self.starts.add(piece);
            }
        }
        if value.contains('\n') {
            // A terminal ends its lines in another way.
            let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
            lines.filter(|line| is_unusual(line)).for_each(|line| self.add(line.as_bytes()));
        }
    }

    /// Adds a value, as it is and as programs spell it.
    fn add(&mut self, value: &[u8]) {
        // Of equal sizes, so that none of them is too short.
        let parts = value.len().div_ceil(SPELT_PIECE);
        let spelt = value.chunks(value.len().div_ceil(parts.max(1)).max(1));
        for piece in value.chunks(PIECE).chain(spelt).filter(|piece| piece.len() >= SHORTEST) {
            let [first, second, third, ..] = *piece else { continue };
            if !self.values.insert(piece) {
                continue;
            }
            let starts = &mut self.starts;
            starts.add(piece);
            starts.open(spelt::FIRST);
            spelt::beginnings(second).iter().for_each(|[a, b]| starts.add(&[first, *a, *b]));
            spelt::FIRST.iter().for_each(|byte| starts.add(&[first, second, *byte]));
            if second == b' ' {
                starts.add(&[first, b'+', third]);
            }
        }
    }

    /// Returns the length of the value that begins here, if one does; of several, that of the longest.
    pub(super) fn exact(&self, window: &[u8]) -> Option<usize> {
        let may_be_spelt = spelt::FIRST.contains(window.first()?);
        if self.count == 0 || !may_be_spelt && !self.starts.has(window) {
            return None;
        }
        let is_whole = |length: usize| !shape::ends_in_mark(window, length);
        if let Some(length) = self.base64.lengths(window).filter(|it| is_whole(*it)).last() {
            return Some(length);
        }
        // What was removed before is no part of it.
        let is_marked = |length: usize| (1..length).any(|at| shape::mark(&window[at..]).is_some());
        let mut longest: Option<spelt::Spelling> = None;
        spelt::find(window, self.values.all(), &mut |found| {
            if longest.is_none_or(|longest| longest.value < found.value)
                && is_whole(found.length)
                && (found.length == found.value || !is_marked(found.length))
            {
                longest = Some(found);
            }
        });
        longest.map(|found| found.length)
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
