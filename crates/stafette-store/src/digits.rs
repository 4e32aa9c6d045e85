//! Finds a run by the digits that people type.

use stafette_model::RunId;

/// Returns the digits without dashes and in lower case; `None` if they cannot be part of an id.
pub(crate) fn typed(text: &str) -> Option<String> {
    let digits = text.trim().replace('-', "").to_ascii_lowercase();
    let fits = (1..=32).contains(&digits.len());
    (fits && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(digits)
}

/// Returns the lowest and the highest id that begins with `digits`, which [`typed`] has accepted.
pub(crate) fn range(digits: &str) -> ([u8; 16], [u8; 16]) {
    let value = u128::from_str_radix(digits, 16).unwrap_or_default();
    let rest = 128 - 4 * digits.len();
    let low = value << rest;
    (low.to_be_bytes(), (low | ((1 << rest) - 1)).to_be_bytes())
}

/// Returns the lowest and the highest short name that begins with `digits`, which [`typed`] has
/// accepted; `None` if they are not shorter than one.
pub(crate) fn short_range(digits: &str) -> Option<([u8; 4], [u8; 4])> {
    let value = u32::from_str_radix(digits, 16).ok()?;
    let rest = 32_usize.checked_sub(4 * digits.len()).filter(|rest| *rest > 0)?;
    let low = value << rest;
    Some((low.to_be_bytes(), (low | ((1 << rest) - 1)).to_be_bytes()))
}

/// Returns the id in reverse order of digits, so that an index finds it by its last digits.
pub(crate) fn reversed(run: RunId) -> [u8; 16] {
    let mut bytes = *run.0.as_bytes();
    bytes.reverse();
    bytes.map(|byte| byte.rotate_left(4))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run() -> RunId {
        "0198c0de-1234-7abc-8def-0123456789ab".parse().expect("an id")
    }

    #[test]
    fn the_last_digits_come_first_when_reversed() {
        let (low, high) = range(&"6789ab".chars().rev().collect::<String>());
        assert!((low..=high).contains(&reversed(run())));
        let (low, high) = range("6789ab");
        assert!(!(low..=high).contains(&reversed(run())));
    }

    #[test]
    fn a_range_holds_exactly_what_begins_so() {
        let holds = |digits| {
            let (low, high) = range(digits);
            (low..=high).contains(run().0.as_bytes())
        };
        assert!(holds("0"));
        assert!(holds("0198c"));
        assert!(holds("0198c0de12347abc8def0123456789ab"));
        assert!(!holds("0198d"));
        assert!(!holds("0198c0de12347abc8def0123456789ac"));
    }

    #[test]
    fn what_a_short_name_begins_with_is_shorter_than_it() {
        assert_eq!(short_range("89"), Some(([0x89, 0, 0, 0], [0x89, 0xff, 0xff, 0xff])));
        assert_eq!(
            short_range("89abcde"),
            Some(([0x89, 0xab, 0xcd, 0xe0], [0x89, 0xab, 0xcd, 0xef]))
        );
        assert_eq!((short_range("89abcdef"), short_range("089abcdef")), (None, None));
    }

    #[test]
    fn only_digits_of_an_id_are_looked_up() {
        assert_eq!(typed(" 0198C0DE-12 ").as_deref(), Some("0198c0de12"));
        assert_eq!(typed(""), None);
        assert_eq!(typed("-"), None);
        assert_eq!(typed("h7"), None);
        assert_eq!(typed(&"0".repeat(33)), None);
    }
}
