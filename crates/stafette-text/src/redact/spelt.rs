//! Values in the ways in which programs write them within other texts: in addresses (`%2F`, `+`), in JSON
//! and source code (`\u003c`, `\"`, `\x3c`) and in markup (`&lt;`, `&#60;`), also one within another.
//!
//! The text is decoded as far as the value goes on, so that it does not matter which characters a
//! program spells and in which of the ways. What is nested is decoded level by level.

/// The levels of spellings within one another that are decoded.
const LEVELS: u8 = 3;

/// The first bytes of everything that is decoded.
pub(super) const FIRST: [u8; 4] = *b"\\%&+";

/// The names of characters in markup.
const NAMED: [(&[u8], u8); 5] =
    [(b"amp;", b'&'), (b"lt;", b'<'), (b"gt;", b'>'), (b"quot;", b'"'), (b"apos;", b'\'')];

/// The longest number of a character in markup.
const DIGITS: usize = 8;

/// A decoded character, or a byte of one.
#[derive(Clone, Copy)]
struct Unit {
    bytes: [u8; 4],
    length: usize,
    /// Where what follows it begins.
    end: usize,
}

impl Unit {
    fn byte(byte: u8, end: usize) -> Unit {
        Unit { bytes: [byte, 0, 0, 0], length: 1, end }
    }

    fn number(number: u32, end: usize) -> Option<Unit> {
        let mut bytes = [0; 4];
        let length = char::from_u32(number)?.encode_utf8(&mut bytes).len();
        Some(Unit { bytes, length, end })
    }

    fn bytes(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    fn is(&self, byte: u8) -> bool {
        self.bytes() == [byte]
    }
}

/// Returns the bytes that a value can begin with, if its spelling begins here.
pub(super) fn firsts(text: &[u8]) -> impl Iterator<Item = u8> {
    (0..=LEVELS).filter_map(|level| Some(unit(text, level, 0)?.bytes[0]))
}

/// Returns the length of the spelling of a value that begins here, if one does.
pub(super) fn length(text: &[u8], value: &[u8]) -> Option<usize> {
    if text.starts_with(value) {
        return Some(value.len());
    }
    (1..=LEVELS).find_map(|level| length_at(text, value, level))
}

/// As [`length`], with at most this many levels. What can be part of the value at a deeper level is read
/// there; what is not decoded at all is part of it too, since a value can look like a spelling.
fn length_at(text: &[u8], value: &[u8], most: u8) -> Option<usize> {
    let (mut at, mut rest) = (0, value);
    while !rest.is_empty() {
        let is_next = |unit: &Unit| rest.starts_with(unit.bytes());
        let next = match FIRST.contains(text.get(at)?) {
            true => (0..=most).rev().filter_map(|level| unit(text, level, at)).find(is_next)?,
            false => unit(text, 0, at).filter(is_next)?,
        };
        (at, rest) = (next.end, &rest[next.length..]);
    }
    Some(at)
}

/// Decodes what stands here.
fn unit(text: &[u8], level: u8, at: usize) -> Option<Unit> {
    let below = level.checked_sub(1);
    let Some(below) = below else { return Some(Unit::byte(*text.get(at)?, at + 1)) };
    let first = unit(text, below, at)?;
    let decoded = match first.bytes() {
        b"\\" => escape(text, below, first.end),
        b"%" => hex(text, below, first.end, 2)
            .and_then(|(number, end)| Some(Unit::byte(u8::try_from(number).ok()?, end))),
        b"&" => reference(text, below, first.end),
        b"+" => Some(Unit::byte(b' ', first.end)),
        _ => None,
    };
    Some(decoded.unwrap_or(first))
}

/// Decodes what follows a backslash.
fn escape(text: &[u8], below: u8, at: usize) -> Option<Unit> {
    let letter = unit(text, below, at)?;
    let code = |at, digits| hex(text, below, at, digits);
    let decoded = match letter.bytes() {
        b"u" => code(letter.end, 4).and_then(|(number, end)| match number {
            0xd800..=0xdbff => {
                let slash = unit(text, below, end).filter(|next| next.is(b'\\'))?;
                let u = unit(text, below, slash.end).filter(|next| next.is(b'u'))?;
                let (low, end) = code(u.end, 4)?;
                let low = low.checked_sub(0xdc00).filter(|low| *low < 0x400)?;
                Unit::number(0x10000 + ((number - 0xd800) << 10) + low, end)
            }
            number => Unit::number(number, end),
        }),
        b"U" => code(letter.end, 8).and_then(|(number, end)| Unit::number(number, end)),
        b"x" => code(letter.end, 2).and_then(|(number, end)| Unit::number(number, end)),
        b"n" => Some(Unit::byte(b'\n', letter.end)),
        b"r" => Some(Unit::byte(b'\r', letter.end)),
        b"t" => Some(Unit::byte(b'\t', letter.end)),
        _ => None,
    };
    // Before any other letter it only says that this is meant.
    Some(decoded.unwrap_or(letter))
}

/// Decodes what follows an ampersand.
fn reference(text: &[u8], below: u8, at: usize) -> Option<Unit> {
    let begin = unit(text, below, at)?;
    if !begin.is(b'#') {
        let is_named = |name: &[u8]| {
            name.iter().try_fold(at, |at, byte| {
                unit(text, below, at).filter(|next| next.is(*byte)).map(|next| next.end)
            })
        };
        return NAMED.iter().find_map(|(name, is)| Some(Unit::byte(*is, is_named(name)?)));
    }
    let mark = unit(text, below, begin.end)?;
    let is_hex = mark.is(b'x') || mark.is(b'X');
    let (radix, mut at) = if is_hex { (16, mark.end) } else { (10, begin.end) };
    let mut number = 0_u32;
    for digits in 0..=DIGITS {
        let next = unit(text, below, at)?;
        at = next.end;
        if next.is(b';') {
            return (digits > 0).then(|| Unit::number(number, at)).flatten();
        }
        number = number.checked_mul(radix)?.checked_add(digit(&next, radix)?)?;
    }
    None
}

/// Reads this many hexadecimal digits.
fn hex(text: &[u8], below: u8, at: usize, digits: usize) -> Option<(u32, usize)> {
    (0..digits).try_fold((0_u32, at), |(number, at), _| {
        let next = unit(text, below, at)?;
        Some((number << 4 | digit(&next, 16)?, next.end))
    })
}

fn digit(unit: &Unit, radix: u32) -> Option<u32> {
    match unit.bytes() {
        [byte] => char::from(*byte).to_digit(radix),
        _ => None,
    }
}

/// Returns what the second byte of a value can begin with where it is spelled: two bytes each.
pub(super) fn beginnings(byte: u8) -> Vec<[u8; 2]> {
    let hex = |nibble: u8| char::from_digit(u32::from(nibble), 16).map(|it| it as u8);
    let high = hex(byte >> 4).unwrap_or_default();
    let mut all: Vec<[u8; 2]> = b"uUx\\nrt".iter().map(|letter| [b'\\', *letter]).collect();
    all.extend([[b'\\', byte], [b'%', high], [b'%', high.to_ascii_uppercase()], [b'%', b'2']]);
    // A backslash, a percent sign and an ampersand can be spelled themselves.
    all.extend([[b'%', b'5']]);
    all.extend(b"#alqg".iter().map(|letter| [b'&', *letter]));
    all
}
