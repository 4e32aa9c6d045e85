//! Requirements and the tests that prove them: a test that is named `s2_07_…` proves s2_07.

use std::collections::BTreeMap;
use std::fmt;

use super::Finding;
use super::source::Source;

/// The number of requirements of each part.
const PARTS: [(&str, usize); 6] =
    [("s1", 18), ("s2", 11), ("s3", 6), ("s4", 10), ("s5", 11), ("b", 30)];

/// The number of tests of each requirement.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(super) struct Coverage {
    tests: BTreeMap<(usize, usize), usize>,
}

pub(super) fn check(sources: &[Source]) -> (Coverage, Vec<Finding>) {
    let mut coverage = Coverage::default();
    let mut findings = Vec::new();
    for source in sources {
        for (offset, name) in tests(source) {
            match requirement(name) {
                Named::None => {}
                Named::Known(part, number) => {
                    *coverage.tests.entry((part, number)).or_default() += 1;
                }
                Named::Unknown => {
                    let message = format!(
                        "test `{name}` names no requirement: begin with its id, as in \
                         `s2_07_…` or `b_01_…`, or with a plain word"
                    );
                    findings.push(Finding::new(source.path, source.line(offset), message));
                }
            }
        }
    }
    (coverage, findings)
}

/// Returns the names of the test functions in a file.
fn tests<'a>(source: &'a Source) -> Vec<(usize, &'a str)> {
    let mut found = Vec::new();
    let mut words = source.words();
    while let Some(word) = words.next() {
        let attribute = word.text == "test" && word.rest.starts_with([']', '(']);
        let line = source.code[..word.start].rsplit('\n').next().unwrap_or_default().trim_start();
        if attribute && line.starts_with("#[") && !line.contains('(') {
            let function = words.by_ref().find(|word| word.text == "fn");
            if let Some(name) = function.and_then(|_| words.next()) {
                found.push((name.start, name.text));
            }
        }
    }
    found
}

/// The reference to a requirement in the name of a test.
#[derive(PartialEq, Eq, Debug)]
enum Named {
    /// The name refers to none.
    None,
    /// The test proves one: its part, by place in [`PARTS`], and its number.
    Known(usize, usize),
    /// The name looks like an id but matches none.
    Unknown,
}

/// True for the whole name of a test that proves a requirement.
pub(super) fn is_proof(name: &str) -> bool {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_word && matches!(requirement(name), Named::Known(..))
}

fn requirement(test: &str) -> Named {
    let mut pieces = test.split('_');
    let part = pieces.next().unwrap_or_default();
    let number = pieces.next().unwrap_or_default();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let looks_like_one =
        part.strip_prefix('s').is_some_and(is_number) || (part == "b" && is_number(number));
    if !looks_like_one {
        return Named::None;
    }
    let place = PARTS.iter().position(|(name, _)| *name == part);
    let parsed = (number.len() == 2 && is_number(number)).then(|| number.parse().ok()).flatten();
    match (place, parsed, pieces.next()) {
        (Some(place), Some(number), Some(_)) if (1..=PARTS[place].1).contains(&number) => {
            Named::Known(place, number)
        }
        _ => Named::Unknown,
    }
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "tests by requirement:")?;
        for (place, (part, count)) in PARTS.iter().enumerate() {
            let proved: Vec<String> = self
                .tests
                .range((place, 0)..=(place, *count))
                .map(|((_, number), tests)| format!("{part}_{number:02} ({tests})"))
                .collect();
            let list = if proved.is_empty() { "–".to_owned() } else { proved.join(", ") };
            writeln!(f, "  {part:<2} {:>2} of {count:>2}: {list}", proved.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::source::sources;
    use super::super::tree::Tree;
    use super::*;

    #[test]
    fn a_name_with_an_id_must_be_right() {
        assert_eq!(requirement("s2_07_missing_inputs_are_asked_for"), Named::Known(1, 7));
        assert_eq!(requirement("b_01_a_crash_loses_nothing"), Named::Known(5, 1));
        for plain in ["a_story", "same_thing", "b_is_after_a", "s", "the_s1_seed"] {
            assert_eq!(requirement(plain), Named::None, "{plain}");
        }
        for wrong in
            ["s2_12_x", "s6_01_x", "s2_7_x", "s2_07", "s2_x", "b_31_x", "b_1_x", "s10_01_x"]
        {
            assert_eq!(requirement(wrong), Named::Unknown, "{wrong}");
        }
    }

    #[test]
    fn tests_are_counted_by_requirement() {
        let code = "#[test]\nfn s1_01_a() {}\n#[tokio::test(start_paused = true)]\n\
                    #[expect(x)]\nasync fn s1_01_b() {}\n#[test]\nfn s1_99_c() {}\nfn s1_98_d() {}\n\
                    #[cfg(test)]\nmod s1_97_e {}\n";
        let tree = Tree::of([("a/src/lib.rs", code)]);
        let (coverage, findings) = check(&sources(&tree));
        assert_eq!(coverage.tests, BTreeMap::from([((0, 1), 2)]));
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].line, 7);
        assert!(coverage.to_string().contains("s1  1 of 18: s1_01 (2)"), "{coverage}");
    }
}
