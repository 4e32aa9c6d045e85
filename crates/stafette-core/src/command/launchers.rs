//! Programs that start others with words that they find, read or cut themselves.

use super::words::EXECUTING;
use super::{Word, is_runner};

/// Programs that look a name up: it can be that of a folder, or of a file without its ending.
const INTERPRETERS: [&str; 10] =
    ["node", "deno", "bun", "ruby", "perl", "php", "lua", "java", "tsx", "ts-node"];

/// Words of bun and deno that say what to do, and name no file. A script is named only after the first
/// three.
pub(super) const SUBCOMMANDS: [&str; 38] = [
    "run",
    "serve",
    "compile",
    "add",
    "audit",
    "bench",
    "build",
    "cache",
    "check",
    "ci",
    "completions",
    "coverage",
    "create",
    "doc",
    "eval",
    "exec",
    "fmt",
    "i",
    "info",
    "init",
    "install",
    "jupyter",
    "link",
    "lint",
    "lsp",
    "outdated",
    "patch",
    "pm",
    "publish",
    "remove",
    "repl",
    "task",
    "test",
    "types",
    "uninstall",
    "update",
    "upgrade",
    "x",
];

/// How many of the subcommands take the name of a script.
pub(super) const STARTING_SCRIPTS: usize = 3;

/// Programs that run their arguments with more that they read.
const APPENDING: [&str; 2] = ["parallel", "xargs"];

/// True if a program runs files that it finds or reads the names of, as far as a program among its
/// arguments runs them.
pub(super) fn runs_found(name: &str, arguments: &[Word]) -> bool {
    if APPENDING.contains(&name) {
        return arguments.iter().any(|word| is_runner(&word.text));
    }
    if !matches!(name, "fd" | "find") {
        return false;
    }
    let is_place = |word: &Word| word.text.contains("{}");
    let mut pairs = arguments.windows(2).filter(|pair| EXECUTING.contains(&&*pair[0].text));
    let runs = |program: &Word| {
        is_place(program)
            || is_runner(&program.text) && (name == "fd" || arguments.iter().any(is_place))
    };
    pairs.any(|pair| runs(&pair[1]))
}

/// The command in an option of `env`, behind it at once.
pub(super) fn split_string<'w>(name: &str, word: &'w str) -> Option<&'w str> {
    if name != "env" {
        return None;
    }
    // Long options can be shortened.
    if let Some((option, text)) = word.split_once('=').filter(|(option, _)| option.len() > 2) {
        return "--split-string".starts_with(option).then_some(text);
    }
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'))?;
    letters.split_once('S').map(|(_, text)| text)
}

/// True if this program loads files by names in code.
pub(super) fn is_interpreter(program: &str) -> bool {
    let name = program.rsplit('/').next().unwrap_or_default();
    name.starts_with("python") || INTERPRETERS.contains(&name)
}

/// The module that Python runs, if this word of its command names one: after `-m`, also among other
/// letters, or at once behind it.
pub(super) fn module<'w>(program: &str, before: &str, word: &'w str) -> Option<&'w str> {
    if before == "-m" {
        return Some(word);
    }
    let letters = |option: &'w str| option.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
    let is_python = program.starts_with("python");
    let after = before.strip_prefix('-').is_some_and(|rest| rest.ends_with('m'));
    match letters(word).and_then(|rest| rest.split_once('m')) {
        _ if !is_python => None,
        Some((_, module)) if !module.is_empty() => Some(module),
        _ => Some(word).filter(|_| after && !before.starts_with("--")),
    }
}
