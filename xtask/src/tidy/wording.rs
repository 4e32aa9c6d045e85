//! Forbidden words: notes to oneself, code that is not there, tests that sleep or are ignored, and
//! paths of one's own machine.

use super::Finding;
use super::source::{Source, Word};
use super::tree::{File, Tree};

/// Written in two halves, so that this file does not find itself.
const NOTES: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("XX", "X")];

/// Folders of users and their machines: with a slash on both sides, a path of one machine.
const HOMES: [&str; 5] = ["Users", "home", "root", "work", "workspace"];

/// Hosts that only some machines can reach.
const HOSTS: [&str; 2] = [concat!("arti", "factory"), concat!("jf", "rog")];

/// Type names that would say too little, and the files where one of them has its one meaning: an
/// answer is a person's, a verdict is a council's.
const VAGUE: [(&str, &[&str]); 6] = [
    (
        "Answer",
        &[
            "crates/stafette-core/src/run/answer.rs",
            "crates/stafette-server/src/inbox.rs",
            "crates/stafette/src/cli.rs",
            "crates/stafette/src/commands/top/state.rs",
        ],
    ),
    ("Verdict", &["crates/stafette-core/src/team/council/session.rs"]),
    ("Fault", &[]),
    ("Trouble", &[]),
    ("Manager", &[]),
    ("Helper", &[]),
];

pub(super) fn check(tree: &Tree, sources: &[Source]) -> Vec<Finding> {
    let texts = tree.files.iter().filter(|file| !file.path.starts_with("fixtures/"));
    texts.flat_map(remarks).chain(sources.iter().flat_map(code)).collect()
}

/// Finds what no file may contain, not even in a comment.
fn remarks(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let mut find = |message: String| {
            findings.push(Finding::new(&file.path, number, message));
        };
        if let Some(note) = NOTES.iter().find(|note| has_word(line, note)) {
            find(format!("`{note}`: do it now, or open an issue and leave the note there"));
        }
        if let Some(home) = HOMES.iter().find(|home| has_path(line, home)) {
            find(format!("`/{home}/…` is a path of one machine: make it relative, or an argument"));
        }
        if let Some(host) = HOSTS.iter().find(|host| line.to_lowercase().contains(**host)) {
            find(format!("`{host}` is a host of one network: use the public registry's name"));
        }
    }
    findings
}

/// Finds what no code may contain.
fn code(source: &Source) -> Vec<Finding> {
    let objection = |word: &Word| match word.text {
        "struct" | "enum" | "trait" | "type" if is_vague(word.rest, source.path) => {
            Some("a type name that says too little: name what it is (`LockOutcome`, `StageError`)")
        }
        "todo" | "unimplemented" if word.rest.starts_with('!') => {
            Some("code that is not there yet: write it, or leave the feature out")
        }
        "ignore" if source.code[..word.start].ends_with("#[") => {
            Some("an ignored test proves nothing: mend it or remove it")
        }
        "sleep" if word.rest.starts_with('(') && source.is_test(word.start) => {
            Some("a test must not sleep: wait for the event itself, or let virtual time pass")
        }
        _ => None,
    };
    source
        .words()
        .filter_map(|word| {
            let message = objection(&word)?;
            Some(Finding::new(source.path, source.line(word.start), message))
        })
        .collect()
}

/// True if a definition goes on with a vague name that this file must not define.
fn is_vague(rest: &str, path: &str) -> bool {
    let name = rest.trim_start().split(|c: char| !c.is_alphanumeric() && c != '_').next();
    VAGUE.iter().any(|(vague, files)| name == Some(vague) && !files.contains(&path))
}

fn has_word(line: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(word).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        let after = line[start + word.len()..].chars().next();
        !before.is_some_and(is_part) && !after.is_some_and(is_part)
    })
}

/// True if an absolute path begins with this folder.
fn has_path(line: &str, folder: &str) -> bool {
    line.match_indices(&format!("/{folder}/")).any(|(start, _)| {
        let before = line[..start].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}*~".contains(c))
    })
}

#[cfg(test)]
mod tests {
    use super::super::source::sources;
    use super::*;

    fn told(path: &str, text: &str) -> Vec<usize> {
        let tree = Tree::of([(path, text)]);
        check(&tree, &sources(&tree)).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn notes_to_oneself_are_found() {
        let text = format!("a\n// {}: later\nMAS{}S", NOTES[0], NOTES[0]);
        assert_eq!(told("a.md", &text), [2]);
    }

    #[test]
    fn paths_of_one_machine_are_found() {
        let home = HOMES[2];
        assert_eq!(told("a.md", &format!("see `/{home}/x`")), [1]);
        assert_eq!(told("a.md", &format!("see my/{home}/x and ~/{home}/x")), Vec::<usize>::new());
        assert_eq!(told("a.toml", &format!("url = \"https://x.{}.io\"", HOSTS[1])), [1]);
        assert_eq!(told("fixtures/a.bin", &format!("/{home}/x")), Vec::<usize>::new());
    }

    #[test]
    fn code_that_is_not_there_is_found() {
        assert_eq!(told("a/src/a.rs", "fn f() { todo!() }\nfn g() { unimplemented!() }"), [1, 2]);
        assert_eq!(told("a/src/a.rs", "// todo!()\nlet todo = \"todo!\";"), Vec::<usize>::new());
    }

    #[test]
    fn vague_type_names_are_found() {
        assert_eq!(
            told("a/src/a.rs", "struct Answer;\nenum AnswerKind {}\ntype Fault = ();"),
            [1, 3]
        );
        assert!(told("crates/stafette/src/cli.rs", "struct Answer {}").is_empty());
    }

    #[test]
    fn tests_neither_sleep_nor_rest() {
        assert_eq!(told("a/src/a.rs", "fn f() { sleep(x) }"), Vec::<usize>::new());
        assert_eq!(told("a/tests/a.rs", "fn f() { tokio::time::sleep(x) }"), [1]);
        assert_eq!(told("a/tests/a.rs", "#[test]\n#[ignore]\nfn f() { run(\"sleep 5\") }"), [2]);
    }
}
