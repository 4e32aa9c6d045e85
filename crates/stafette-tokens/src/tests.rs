use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;

/// What another program counts, with its own regular expressions and its own merging.
fn reference(text: &str) -> u64 {
    let tokens = tiktoken_rs::o200k_base_singleton().encode_ordinary(text);
    u64::try_from(tokens.len()).unwrap()
}

#[test]
fn s3_04_tokens_are_those_of_a_real_vocabulary() {
    for (text, tokens) in
        [("", 0), ("hello world", 2), ("antidisestablishmentarianism", 6), ("<|endoftext|>", 7)]
    {
        assert_eq!(count(text), Ok(tokens), "{text}");
    }
}

/// `UPDATE_GOLDEN=1 cargo test -p stafette-tokens vocabulary` writes the file anew.
#[test]
fn the_vocabulary_is_the_one_that_others_have() {
    let theirs = tiktoken_rs::o200k_base_singleton();
    let packed: Vec<u8> = (0..)
        .map_while(|rank| theirs.decode_bytes(&[rank]).ok())
        .take(vocabulary::LENGTH)
        .flat_map(|token| [vec![u8::try_from(token.len()).unwrap()], token].concat())
        .collect();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/o200k_base.bin");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &packed).unwrap();
    }
    assert!(fs::read(path).unwrap() == packed, "run this test with UPDATE_GOLDEN=1");
    assert_eq!(vocabulary::ranks().len(), vocabulary::LENGTH);
}

#[test]
fn s3_04_what_is_too_long_is_not_counted() {
    assert!(count(&"a ".repeat(MAX_BYTES / 2)).is_ok());
    assert_eq!(count(&"a".repeat(MAX_BYTES + 1)), Err(TooLong { bytes: MAX_BYTES + 1 }));
}

#[test]
fn what_repeats_itself_is_counted_as_others_do() {
    for text in ["a", " ", "\n", "=", "é", "漢", "ab", "\r\n", "A", "'s", "\u{301}"] {
        for times in [2, 3, 7, 100, 1_000] {
            let text = text.repeat(times);
            assert_eq!(count(&text), Ok(reference(&text)), "{text:?}");
        }
    }
}

#[test]
fn what_repeats_itself_for_long_is_counted_too() {
    for text in ["a", " ", "\n", "=", "é", "漢"] {
        assert!(count(&text.repeat(MAX_BYTES / text.len())).is_ok());
    }
}

/// Every text in this project that people wrote.
#[test]
fn documents_and_sources_are_counted_as_others_do() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut seen = 0;
    for folder in [".", "docs", "docs/adr", "crates/stafette-tokens/src", "web", "web/src"] {
        for entry in fs::read_dir(root.join(folder)).unwrap() {
            let Ok(text) = fs::read_to_string(entry.unwrap().path()) else { continue };
            let text = &text[..text.floor_char_boundary(MAX_BYTES)];
            assert_eq!(count(text), Ok(reference(text)));
            seen += 1;
        }
    }
    assert!(seen > 50, "{seen}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_text_is_counted_as_others_do(text in any::<String>()) {
        prop_assert_eq!(count(&text), Ok(reference(&text)));
    }

    /// Characters of every class that the rules know, close together.
    #[test]
    fn what_the_rules_are_about_is_counted_as_others_do(
        letters in prop::collection::vec(prop::sample::select(
            "aZbYßÉéǅʰ漢क\u{301}\u{93e}\u{20dd}'sStTrReEvVmMlLdDſ0٣Ⅷ½ \t\n\r\u{a0}\u{2028}/._-+=<|>€🙂"
                .chars()
                .collect::<Vec<char>>(),
        ), 0..40),
    ) {
        let text: String = letters.into_iter().collect();
        prop_assert_eq!(count(&text), Ok(reference(&text)), "{:?}", text);
    }
}
