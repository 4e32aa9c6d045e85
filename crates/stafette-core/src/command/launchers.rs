//! Programs that start others with words that they find, read or cut themselves.

use super::{EXECUTING, Word, is_runner};

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
