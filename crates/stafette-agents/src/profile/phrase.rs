//! Phrases to look for in the output of a program.

/// True if one of the phrases is in the text.
pub(super) fn any(phrases: &[String], text: &str) -> bool {
    let text = plain(text);
    phrases.iter().any(|phrase| holds(&text, &plain(phrase)))
}

/// True if the row begins with one of the phrases.
pub(super) fn begins(phrases: &[String], row: &str) -> bool {
    let row = plain(row);
    phrases.iter().any(|phrase| {
        let phrase = plain(phrase);
        let (first, rest) = phrase.split_once('*').unwrap_or((&phrase, ""));
        row.strip_prefix(first).is_some_and(|row| holds(row, rest))
    })
}

/// Lower case, with typographic marks replaced by those of a keyboard: programs often print the
/// former.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .map(|c| match c {
            '\u{2018}' | '\u{2019}' => '\'',
            '\u{a0}' | '\u{202f}' | '\u{2009}' => ' ',
            '\u{2013}' | '\u{2212}' => '-',
            c => c,
        })
        .flat_map(char::to_lowercase)
        .collect()
}

/// True if the parts between the stars follow each other on one line.
fn holds(text: &str, phrase: &str) -> bool {
    let Some((first, rest)) = phrase.split_once('*') else { return text.contains(phrase) };
    text.match_indices(first).any(|(start, _)| {
        let line = text[start + first.len()..].split('\n').next().unwrap_or_default();
        holds(line, rest)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_case_with_anything_in_between() {
        let found = |phrase: &str, text: &str| any(&[phrase.to_owned()], text);
        assert!(found("you've hit your * limit", "You\u{2019}ve hit your weekly limit."));
        assert!(found("limit*resets", "Session LIMIT\u{a0}· resets 3pm"));
        assert!(!found("limit*resets", "limit\nresets"));
        assert!(!found("rate limit", "a ratelimit"));
        assert!(!any(&[], "rate limit"));
        let begins = |phrase: &str, row: &str| begins(&[phrase.to_owned()], row);
        assert!(begins("✻ 401 *attempt 3/", "✻ 401 no · Attempt 3/10") && begins("■ x", "■ X y"));
        assert!(!begins("✻ 401 *attempt 3/", "  ✻ 401 no · attempt 3/10"));
        assert!(!begins("✻ 401 *attempt 3/", "✻ 401 no · attempt 2/10"));
    }
}
