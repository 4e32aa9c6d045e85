//! Values in the ways in which programs write them within other texts: in addresses (`%2F`, `+`), in JSON
//! and source code (`\u003c`, `\"`, `\x3c`) and in markup (`&lt;`, `&#60;`), also one within another.
//!
//! The text is decoded as far as a value goes on, so that it does not matter which characters a
//! program spells and in which of the ways. What is nested is decoded level by level, and once for all
//! values.

use super::values::Begun;

/// The levels of spellings within one another that are decoded.
const LEVELS: usize = 3;

/// The first bytes of everything that is decoded.
pub(super) const FIRST: [u8; 4] = *b"\\%&+";

/// The names of characters in markup.
const NAMED: [(&[u8], u8); 5] =
    [(b"amp;", b'&'), (b"lt;", b'<'), (b"gt;", b'>'), (b"quot;", b'"'), (b"apos;", b'\'')];

/// The longest of these names.
const LONGEST_NAME: usize = 5;

/// The longest number of a character in markup.
const DIGITS: usize = 8;

/// A value that stands in a text, and its spelling there, by their lengths.
#[derive(Clone, Copy)]
pub(super) struct Spelling {
    pub(super) value: usize,
    pub(super) length: usize,
}

/// A decoded character, or a byte of one.
#[derive(Clone, Copy, PartialEq, Eq)]
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

/// Finds the spellings of values that begin here: as they are, and then those with more and more levels.
pub(super) fn find(text: &[u8], values: Begun<'_>, found: &mut impl FnMut(Spelling)) {
    let mut levels = 0..=LEVELS;
    while levels.next().is_some_and(|most| find_at(text, 0, values, most, found)) {}
}

/// As [`find`], with at most this many levels, for values that begin with what stands before `at`. What can be
/// part of a value at a deeper level is read there; what is not decoded at all is part of it too, since a
/// value can look like a spelling. Returns whether a deeper level may lead further.
fn find_at(
    text: &[u8],
    mut at: usize,
    mut values: Begun<'_>,
    most: usize,
    found: &mut impl FnMut(Spelling),
) -> bool {
    loop {
        if let Some(value) = values.whole() {
            found(Spelling { value, length: at });
        }
        let Some(byte) = text.get(at) else { return false };
        if FIRST.contains(byte) {
            break;
        }
        let Some(rest) = values.then(&[*byte]) else { return false };
        (at, values) = (at + 1, rest);
    }
    let units = units(text, at);
    let mut goes_deeper = units[most + 1..]
        .iter()
        .any(|unit| *unit != units[most] && values.then(unit.bytes()).is_some());
    for level in (0..=most).rev() {
        let unit = units[level];
        let is_read = units[level + 1..=most].iter().any(|deeper| deeper.bytes() == unit.bytes());
        if let Some(rest) = values.then(unit.bytes()).filter(|_| !is_read) {
            goes_deeper |= find_at(text, unit.end, rest, most, found);
        }
    }
    goes_deeper
}

/// Decodes what stands here at each level. Here there has to be a byte.
fn units(text: &[u8], at: usize) -> [Unit; LEVELS + 1] {
    let mut units = [Unit::byte(text[at], at + 1); LEVELS + 1];
    for below in 0..LEVELS {
        units[below + 1] = decode(text, below, units[below]);
    }
    units
}

/// Decodes what stands here at one level.
fn unit(text: &[u8], level: usize, at: usize) -> Option<Unit> {
    let byte = Unit::byte(*text.get(at)?, at + 1);
    Some((0..level).fold(byte, |unit, below| decode(text, below, unit)))
}

/// Decodes what begins with a unit of the level below.
fn decode(text: &[u8], below: usize, first: Unit) -> Unit {
    #[cfg(test)]
    super::tests::steps::count();
    let decoded = match first.bytes() {
        b"\\" => escape(text, below, first.end),
        b"%" => hex(text, below, first.end, 2)
            .and_then(|(number, end)| Some(Unit::byte(u8::try_from(number).ok()?, end))),
        b"&" => reference(text, below, first.end),
        b"+" => Some(Unit::byte(b' ', first.end)),
        _ => None,
    };
    decoded.unwrap_or(first)
}

/// Decodes what follows a backslash.
fn escape(text: &[u8], below: usize, at: usize) -> Option<Unit> {
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
fn reference(text: &[u8], below: usize, at: usize) -> Option<Unit> {
    let begin = unit(text, below, at)?;
    if !begin.is(b'#') {
        return named(text, below, at);
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

/// Decodes the name of a character.
fn named(text: &[u8], below: usize, mut at: usize) -> Option<Unit> {
    let (mut name, mut length) = ([0; LONGEST_NAME], 0);
    loop {
        let next = unit(text, below, at)?;
        let &[byte] = next.bytes() else { return None };
        *name.get_mut(length)? = byte;
        (at, length) = (next.end, length + 1);
        let (known, is) = NAMED.iter().find(|(known, _)| known.starts_with(&name[..length]))?;
        if known.len() == length {
            return Some(Unit::byte(*is, at));
        }
    }
}

/// Reads this many hexadecimal digits.
fn hex(text: &[u8], below: usize, at: usize, digits: usize) -> Option<(u32, usize)> {
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
