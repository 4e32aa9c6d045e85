//! Rust files, with code separated from comments, literals and tests.

mod literal;

use std::ops::Range;

use super::tree::{File, Tree};

/// A parsed Rust file.
#[derive(Debug)]
pub(super) struct Source<'a> {
    /// The path from the root.
    pub(super) path: &'a str,
    /// The file with comments and literals blanked out; every line and column stays in place.
    pub(super) code: String,
    tests: Tests,
}

/// The parts that exist only for tests.
#[derive(PartialEq, Eq, Debug)]
enum Tests {
    Whole,
    Parts(Vec<Range<usize>>),
}

/// A word of code and its position.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Word<'a> {
    pub(super) text: &'a str,
    pub(super) start: usize,
    /// The code after it, without leading spaces.
    pub(super) rest: &'a str,
}

/// Returns all Rust files of the tree.
pub(super) fn sources(tree: &Tree) -> Vec<Source<'_>> {
    let rust: Vec<&File> = tree.files.iter().filter(|file| file.has_ending(&["rs"])).collect();
    let mut found: Vec<Source> = rust.iter().map(|file| Source::new(file)).collect();
    let modules: Vec<String> = found.iter().flat_map(Source::test_modules).collect();
    for source in &mut found {
        let path = source.path;
        let named = |module: &String| {
            let rest = path.strip_prefix(module.as_str());
            rest.is_some_and(|rest| rest == ".rs" || rest.starts_with('/'))
        };
        let is_test = path.contains("/tests/") || path.ends_with("/tests.rs");
        if is_test || modules.iter().any(named) {
            source.tests = Tests::Whole;
        }
    }
    found
}

impl<'a> Source<'a> {
    fn new(file: &'a File) -> Self {
        let code = literal::blank(&file.text);
        let parts = guarded(&code).map(|(start, end, _)| start..end).collect();
        Source { path: &file.path, code, tests: Tests::Parts(parts) }
    }

    /// Returns the paths of test-only modules in files of their own, without their extension.
    fn test_modules(&self) -> Vec<String> {
        let here = self.path.trim_end_matches(".rs");
        let folder = match here.rsplit_once('/') {
            Some((folder, "lib" | "main" | "mod")) => folder,
            _ => here,
        };
        guarded(&self.code)
            .filter_map(|(_, _, module)| module)
            .map(|module| format!("{folder}/{module}"))
            .collect()
    }

    /// True if the code at `offset` exists only for tests.
    pub(super) fn is_test(&self, offset: usize) -> bool {
        match &self.tests {
            Tests::Whole => true,
            Tests::Parts(parts) => parts.iter().any(|part| part.contains(&offset)),
        }
    }

    /// Returns the number of the line at `offset`, from 1.
    pub(super) fn line(&self, offset: usize) -> usize {
        self.code[..offset].matches('\n').count() + 1
    }

    /// Returns where the bodies of the functions of that name are.
    pub(super) fn bodies(&self, function: &str) -> impl Iterator<Item = Range<usize>> {
        let names = self.words().zip(self.words().skip(1));
        let named = names.filter(move |(word, name)| word.text == "fn" && name.text == function);
        named.filter_map(|(_, name)| {
            let open = name.start + self.code[name.start..].find('{')?;
            Some(open..closing(&self.code, open))
        })
    }

    /// Returns the words of the code: names and keywords.
    pub(super) fn words(&self) -> impl Iterator<Item = Word<'_>> {
        words(&self.code)
    }
}

fn words(code: &str) -> impl Iterator<Item = Word<'_>> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + code[at..].find(is_part)?;
        let length = code[start..].find(|c| !is_part(c)).unwrap_or(code.len() - start);
        at = start + length;
        Some(Word { text: &code[start..at], start, rest: code[at..].trim_start() })
    })
}

/// Returns everything behind a `cfg` that mentions tests: its start and end, and its name if it is
/// a module in a file of its own.
fn guarded(code: &str) -> impl Iterator<Item = (usize, usize, Option<&str>)> {
    code.match_indices("#[cfg(").filter_map(|(start, opening)| {
        let after = start + opening.len();
        let condition = &code[after..after + code[after..].find(']')?];
        if !words(condition).any(|word| word.text == "test") {
            return None;
        }
        let item = after + condition.len() + 1;
        let stop = item + code[item..].find(['{', ';'])?;
        if code[stop..].starts_with('{') {
            return Some((start, closing(code, stop), None));
        }
        let mut head = words(&code[item..stop]);
        let module = head.find(|word| word.text == "mod").and_then(|_| head.next());
        Some((start, stop, module.map(|word| word.text)))
    })
}

/// Returns the end of the block that opens at `open`.
fn closing(code: &str, open: usize) -> usize {
    let mut depth = 0_usize;
    for (at, byte) in code.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return at + 1,
            b'}' => depth -= 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_are_told_apart_wherever_they_live() {
        let tree = Tree::of([
            (
                "a/src/lib.rs",
                "fn f() {}\n#[cfg(test)]\nmod story;\n#[cfg(test)]\nmod t { fn g() {} }\nfn h() {}",
            ),
            ("a/src/story.rs", "fn tale() {}"),
            ("a/src/story/part.rs", "fn part() {}"),
            ("a/src/storyteller.rs", "fn teller() {}"),
            ("a/tests/suite.rs", "fn whole() {}"),
        ]);
        let sources = sources(&tree);
        let told: Vec<(&str, bool)> = sources
            .iter()
            .flat_map(|source| {
                let functions = source.words().filter(|word| word.rest.starts_with('('));
                functions.map(|word| (word.text, source.is_test(word.start)))
            })
            .filter(|(name, _)| *name != "cfg")
            .collect();
        let expected = [
            ("f", false),
            ("g", true),
            ("h", false),
            ("tale", true),
            ("part", true),
            ("teller", false),
            ("whole", true),
        ];
        assert_eq!(told, expected);
    }
}
