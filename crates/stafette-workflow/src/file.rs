//! Reads `stafette.toml`.

use stafette_config::{Diagnostic, Spans};
use stafette_core::Workflow;

/// A workflow file that could be parsed.
#[derive(Clone, PartialEq, Debug)]
pub struct Source {
    /// The workflow that the file contains.
    pub workflow: Workflow,
    pub spans: Spans,
}

/// Parses a workflow file.
///
/// # Errors
/// All problems that prevent this: syntax, unknown keys, wrong or missing values.
pub fn parse(text: &str) -> Result<Workflow, Vec<Diagnostic>> {
    read(text).map(|source| source.workflow)
}

/// Parses a workflow file and records the position of each value.
///
/// # Errors
/// As for [`parse`].
pub fn read(text: &str) -> Result<Source, Vec<Diagnostic>> {
    stafette_config::document(text).map(|(workflow, spans)| Source { workflow, spans })
}

#[cfg(test)]
mod tests {
    use stafette_config::{MAX_BYTES, render};

    use super::*;

    const SMALL: &str = r#"[workflow]
name = "small"
entry = "writer"

[agents.writer]
runner = "exec"
command = ["cat"]
"#;

    fn complaints(text: &str) -> String {
        let diagnostics = read(text).expect_err("the file should not be accepted");
        diagnostics.iter().map(|diagnostic| render(diagnostic, "stafette.toml", text)).collect()
    }

    #[test]
    fn s2_11_a_small_file_is_read_and_every_value_has_its_place() {
        let source = read(SMALL).unwrap();
        let shown = |path: &str| source.spans.value(path).map(|span| &SMALL[span]);
        assert_eq!(shown("/workflow/entry"), Some("\"writer\""));
        assert_eq!(shown("/agents/writer/command/0"), Some("\"cat\""));
        assert_eq!(shown("/agents/writer/role"), Some("[agents.writer]"));
        assert_eq!(shown("/limits/lease"), None);
        assert_eq!(source.spans.key("/agents/writer").map(|span| &SMALL[span]), Some("writer"));
        assert_eq!(parse(SMALL), Ok(source.workflow));
    }

    #[test]
    fn s2_11_syntax_errors_point_at_the_line() {
        insta::assert_snapshot!(complaints("[workflow\nname = \"x\"\nentry = = 3\n"), @"
        error[syntax]: unclosed table, expected `]`
         --> stafette.toml:1:10
          |
        1 | [workflow
          |          ^
        error[syntax]: extra `=`, expected nothing
         --> stafette.toml:3:9
          |
        3 | entry = = 3
          |         ^
        error[syntax]: unexpected key or value, expected newline, `#`
         --> stafette.toml:3:11
          |
        3 | entry = = 3
          |           ^
        ");
    }

    #[test]
    fn s2_11_all_unknown_keys_are_named_with_the_nearest_known_one() {
        let text = SMALL.replace("command", "comand")
            + "lease = \"5m\"\nestimate = { tokns = 3 }\n[limit]\nx = 1\n[paint]\n";
        insta::assert_snapshot!(complaints(&text), @r#"
        error[unknown-key]: unknown key `comand`
         --> stafette.toml:7:1
          |
        7 | comand = ["cat"]
          | ^^^^^^
          = help: did you mean `command`?
        error[unknown-key]: unknown key `lease`
         --> stafette.toml:8:1
          |
        8 | lease = "5m"
          | ^^^^^
          = help: `lease` belongs in `[limits]`
        error[unknown-key]: unknown key `tokns`
         --> stafette.toml:9:14
          |
        9 | estimate = { tokns = 3 }
          |              ^^^^^
          = help: did you mean `tokens`?
        error[unknown-key]: unknown key `limit`
          --> stafette.toml:10:2
           |
        10 | [limit]
           |  ^^^^^
           = help: did you mean `limits`?
        error[unknown-key]: unknown key `paint`
          --> stafette.toml:12:2
           |
        12 | [paint]
           |  ^^^^^
           = help: known here: workflow, agents, routes, deny, loops, phases, limits, retries, budget, sources, recovery, coordination, server, store, locks, changes, self, profiles, hooks, triggers, notify, alerts, telemetry, knowledge, council, generations
        "#);
    }

    #[test]
    fn s2_11_a_wrong_value_is_named_in_words_of_the_file() {
        let with = |rest: &str| complaints(&format!("{SMALL}{rest}"));
        insta::assert_snapshot!(with("[limits]\nrefusals = \"two\"\n"), @r#"
        error[bad-value]: invalid type: string "two", expected a whole number
         --> stafette.toml:9:12
          |
        9 | refusals = "two"
          |            ^^^^^
        "#);
        insta::assert_snapshot!(with("[limits]\nlease = true\n"), @r#"
        error[bad-value]: expected a length of time, such as "30s" or "2h"
         --> stafette.toml:9:9
          |
        9 | lease = true
          |         ^^^^
        "#);
        insta::assert_snapshot!(with("[limits]\nlease = \"soon\"\n"), @r#"
        error[bad-value]: `soon` is not a length of time: write 500ms, 30s, 5m, 2h or 7d
         --> stafette.toml:9:9
          |
        9 | lease = "soon"
          |         ^^^^^^
        "#);
        insta::assert_snapshot!(with("[budget]\nmoney = [5]\n"), @r#"
        error[bad-value]: expected an amount of money, such as "5usd"
         --> stafette.toml:9:9
          |
        9 | money = [5]
          |         ^^^
        "#);
        insta::assert_snapshot!(with("[agents.human]\nrunner = \"exec\"\n"), @"
        error[bad-value]: `human` cannot name an agent: use 1 to 64 letters, digits, `-`, `_` or `.`, and not the reserved words `human`, `orchestrator` and `council`
         --> stafette.toml:8:9
          |
        8 | [agents.human]
          |         ^^^^^
        ");
        insta::assert_snapshot!(complaints(&SMALL.replace("\"exec\"", "\"ssh\"")), @r#"
        error[bad-value]: unknown variant `ssh`, expected one of `exec`, `scripted`, `pty`, `acp`, `external`, `a2a`
         --> stafette.toml:6:10
          |
        6 | runner = "ssh"
          |          ^^^^^
        "#);
        insta::assert_snapshot!(complaints(&SMALL.replace("[\"cat\"]", "\"cat\"")), @r#"
        error[bad-value]: invalid type: string "cat", expected a list
         --> stafette.toml:7:11
          |
        7 | command = "cat"
          |           ^^^^^
        "#);
        insta::assert_snapshot!(complaints("agents = 3\nworkflow = 1"), @"
        error[bad-value]: invalid type: integer `3`, expected a table
         --> stafette.toml:1:10
          |
        1 | agents = 3
          |          ^
        ");
    }

    #[test]
    fn s2_11_a_missing_key_points_at_its_section() {
        insta::assert_snapshot!(complaints(&SMALL.replace("entry = \"writer\"\n", "")), @"
        error[missing-key]: missing key `entry`
         --> stafette.toml:1:1
          |
        1 | [workflow]
          | ^^^^^^^^^^
        ");
        insta::assert_snapshot!(complaints(""), @"
        error[missing-key]: missing key `workflow`
         --> stafette.toml:1:1
          |
        1 |
          | ^
        ");
    }

    #[test]
    fn s2_11_an_unknown_key_does_not_hide_a_wrong_value() {
        let text = format!("{SMALL}[limits]\nleese = 3\nrefusals = -1\n");
        let codes: Vec<_> = read(&text).unwrap_err().iter().map(|d| d.code).collect();
        assert_eq!(codes, ["unknown-key", "bad-value"]);
    }

    #[test]
    fn s2_11_a_file_without_end_is_not_read() {
        let text = "#".repeat(MAX_BYTES + 1);
        insta::assert_snapshot!(complaints(&text), @"
        error[too-large]: the file has 1048577 bytes; 1048576 are allowed
         --> stafette.toml
        ");
    }
}
