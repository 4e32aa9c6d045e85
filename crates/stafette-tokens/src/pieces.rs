//! The pieces that a text is cut into before its tokens are looked up. A token never reaches over
//! the border of two pieces.
//!
//! The vocabulary comes with a regular expression; these are its seven branches, the first that
//! fits at a place wins:
//!
//! 1. `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
//! 2. `[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?`
//! 3. `\p{N}{1,3}`
//! 4. ` ?[^\s\p{L}\p{N}]+[\r\n/]*`
//! 5. `\s*[\r\n]+`
//! 6. `\s+(?!\S)`
//! 7. `\s+`
//!
//! They are written out because a machine for regular expressions that can look ahead, with the
//! tables of Unicode that it needs, is the larger part of a megabyte.

use unicode_properties::{GeneralCategory as Category, UnicodeGeneralCategory as _};

/// The pieces of a text, from its beginning. Together they are the text.
pub(crate) struct Pieces<'a> {
    rest: &'a str,
}

impl<'a> Pieces<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { rest: text }
    }
}

impl<'a> Iterator for Pieces<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let first = self.rest.chars().next()?;
        let length = word(self.rest)
            .or_else(|| number(self.rest))
            .or_else(|| signs(self.rest))
            .or_else(|| blank(self.rest))
            .unwrap_or(first.len_utf8());
        let (piece, rest) = self.rest.split_at(length);
        self.rest = rest;
        Some(piece)
    }
}

/// Branches 1 and 2: a word, together with one character before it that is neither a letter nor a
/// number nor the end of a line. A word ends where a capital letter follows a small one.
fn word(text: &str) -> Option<usize> {
    let first = text.chars().next()?;
    let lead = (!matches!(first, '\r' | '\n') && !is_letter(first) && !is_number(first))
        .then(|| first.len_utf8());
    let starts = [lead, Some(0)];
    let with = |rule: fn(&str) -> Option<usize>| {
        starts.iter().flatten().find_map(|start| Some(start + rule(&text[*start..])?))
    };
    let end = with(ending_small).or_else(|| with(beginning_large))?;
    Some(end + contraction(&text[end..]))
}

/// The middle of branch 1: large letters if there are any, then at least one small letter.
fn ending_small(text: &str) -> Option<usize> {
    let large = run(text, is_large);
    match run(&text[large..], is_small) {
        // Among the large ones are those that are both; the last of these is the small one.
        0 => text[..large]
            .char_indices()
            .rev()
            .find(|(_, letter)| is_small(*letter))
            .map(|(at, letter)| at + letter.len_utf8()),
        small => Some(large + small),
    }
}

/// The middle of branch 2: at least one large letter, then small ones if there are any.
fn beginning_large(text: &str) -> Option<usize> {
    let large = run(text, is_large);
    (large > 0).then(|| large + run(&text[large..], is_small))
}

/// The end of branches 1 and 2, as in `it's`.
fn contraction(text: &str) -> usize {
    let Some(letters) = text.strip_prefix('\'') else { return 0 };
    let mut letters = letters.chars();
    let (first, second) = (letters.next(), letters.next());
    match (first.map(|letter| letter.to_ascii_lowercase()), second) {
        (Some('s' | 't' | 'm' | 'd'), _) => 2,
        // A long s is an s to whoever ignores case.
        (Some('ſ'), _) => 1 + 'ſ'.len_utf8(),
        (Some('r' | 'v'), Some('e' | 'E')) | (Some('l'), Some('l' | 'L')) => 3,
        _ => 0,
    }
}

/// Branch 3: up to three digits.
fn number(text: &str) -> Option<usize> {
    let digits = text.chars().take(3).take_while(|digit| is_number(*digit));
    Some(digits.map(char::len_utf8).sum()).filter(|length| *length > 0)
}

/// Branch 4: signs, with a space before them and the ends of lines after them.
fn signs(text: &str) -> Option<usize> {
    let space = usize::from(text.starts_with(' '));
    let signs =
        run(&text[space..], |sign| !sign.is_whitespace() && !is_letter(sign) && !is_number(sign));
    let end = space + signs;
    (signs > 0).then(|| end + run(&text[end..], |sign| matches!(sign, '\r' | '\n' | '/')))
}

/// Branches 5 to 7: white space up to its last end of a line, or all but the last character, which
/// belongs to the word that follows, or what there is.
fn blank(text: &str) -> Option<usize> {
    let end = run(text, char::is_whitespace);
    let space = &text[..end];
    if let Some(line) = space.rfind(['\r', '\n']) {
        return Some(line + 1);
    }
    let last = space.chars().next_back()?.len_utf8();
    Some(if end == text.len() || last == end { end } else { end - last })
}

/// Returns the length of what is in `class` at the beginning of `text`.
fn run(text: &str, class: impl Fn(char) -> bool) -> usize {
    text.find(|letter| !class(letter)).unwrap_or(text.len())
}

fn is_letter(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_alphabetic();
    }
    use Category as C;
    matches!(
        letter.general_category(),
        C::UppercaseLetter
            | C::LowercaseLetter
            | C::TitlecaseLetter
            | C::ModifierLetter
            | C::OtherLetter
    )
}

fn is_number(digit: char) -> bool {
    if digit.is_ascii() {
        return digit.is_ascii_digit();
    }
    use Category as C;
    matches!(digit.general_category(), C::DecimalNumber | C::LetterNumber | C::OtherNumber)
}

/// Letters that can begin a word: all but the small ones. Marks count as letters here.
fn is_large(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_uppercase();
    }
    matches!(letter.general_category(), Category::UppercaseLetter | Category::TitlecaseLetter)
        || has_no_case(letter)
}

/// Letters that can end a word: all but the large ones. Marks count as letters here.
fn is_small(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_lowercase();
    }
    letter.general_category() == Category::LowercaseLetter || has_no_case(letter)
}

fn has_no_case(letter: char) -> bool {
    use Category as C;
    matches!(
        letter.general_category(),
        C::ModifierLetter | C::OtherLetter | C::NonspacingMark | C::SpacingMark | C::EnclosingMark
    )
}
