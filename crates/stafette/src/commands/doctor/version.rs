//! The versions of the agents' programs.

use std::process::Stdio;
use std::time::Duration;

use stafette_agents::profile::Profile;
use tokio::process::Command;
use tokio::time::timeout;

/// The time limit for a program to print its version.
const PATIENCE: Duration = Duration::from_secs(10);

/// The version that an installed program prints; `None` if it prints none. It gets another home: some
/// programs write into theirs even then.
pub(super) async fn of(profile: &Profile) -> Option<String> {
    let home = tempfile::tempdir().ok()?;
    let mut command = Command::new(profile.program()?);
    command.args(&profile.detect.version).stdin(Stdio::null()).kill_on_drop(true);
    command.env_clear().env("PATH", std::env::var_os("PATH")?).env("HOME", home.path());
    let output = timeout(PATIENCE, command.output()).await.ok()?.ok()?;
    number(&String::from_utf8_lossy(&output.stdout)).map(str::to_owned)
}

/// The first word that looks like a version.
fn number(text: &str) -> Option<&str> {
    let words = text.split_whitespace().map(|word| word.trim_start_matches('v'));
    let mut numbers = words.map(|word| word.trim_end_matches([',', ')']));
    numbers.find(|word| word.contains('.') && word.starts_with(|c: char| c.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_23_the_version_is_found_in_what_programs_print() {
        assert_eq!(number("2.1.325 (Claude Code)\n"), Some("2.1.325"));
        assert_eq!(number("codex-cli 0.166.0\n"), Some("0.166.0"));
        assert_eq!(number("goose v1.34.0, built 2026\n"), Some("1.34.0"));
        assert_eq!(number("no version here"), None);
    }
}
