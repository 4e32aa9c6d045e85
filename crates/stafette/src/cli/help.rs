//! The help: commands in groups, and mistakes in the arguments.

use std::ffi::OsStr;
use std::fmt::Write as _;

use clap::error::{ContextKind, ContextValue};
use clap::{Command, CommandFactory, FromArgMatches};
use serde_json::json;

use super::Cli;
use crate::exit::{Exit, Failure};
use crate::output::{CLOSED_PIPE, Output};

/// A purpose, and the commands for it.
type Group = (&'static str, &'static [&'static str]);

/// The commands that `--help` explains.
const FIRST: [Group; 3] = [
    ("Start", &["init", "doctor", "run"]),
    ("Take part", &["status", "inbox", "answer", "attach", "open"]),
    ("Review", &["why", "diff", "apply", "undo"]),
];

/// The commands that `--help` names, and `help all` lists with a line each.
const MORE: [Group; 9] = [
    ("Runs", &["resume", "pause", "cancel", "fork", "note", "briefing", "context"]),
    ("History", &["log", "handoffs", "cost", "find", "report", "alerts", "top"]),
    ("Terminals", &["send", "restart", "replay"]),
    ("Changes", &["changes", "pr", "self-update"]),
    ("Locks", &["lock", "unlock", "locks"]),
    ("Workflows", &["trust", "check", "schema", "validate", "frames", "triggers", "notify"]),
    ("Knowledge", &["insights", "params", "calendar", "roi", "threads", "graph"]),
    ("Daemon", &["up", "down", "state", "prune", "token", "rights"]),
    ("Tools", &["demo", "bench", "emit", "mcp", "completions", "man", "help"]),
];

/// The help of the program itself. The list of all commands that clap would make is left out.
pub(super) const TEMPLATE: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}\x1b[1;4mOptions:\x1b[0m
{options}{after-help}";

const EXIT_CODES: &str = "\
Exit codes: 0 ok, 1 failed, 2 usage, 3 needs a person, 4 budget, 5 rolled back, 6 lock, 7 no daemon,\n  130 interrupted";

const MORE_HELP: &str =
    "`stafette help all` lists all commands, `stafette help COMMAND` explains one.";

/// The command line, with its commands in groups.
pub(crate) fn command() -> Command {
    let command = Cli::command();
    let mut first = String::new();
    for group in FIRST {
        let _ = writeln!(first, "\x1b[1;4m{}:\x1b[0m", group.0);
        for (name, about) in explained(&command, group) {
            let _ = writeln!(first, "  \x1b[1m{name:<8}\x1b[0m {about}");
        }
        first.push('\n');
    }
    let mut more = format!("{first}\x1b[1;4mMore commands:\x1b[0m\n");
    for (purpose, names) in MORE {
        let _ = writeln!(more, "  {purpose:<10} {}", names.join(", "));
    }
    command
        .before_help(first + MORE_HELP)
        .before_long_help(format!("{more}\n{MORE_HELP}"))
        .after_long_help(EXIT_CODES)
}

fn explained(command: &Command, (_, names): Group) -> Vec<(&'static str, String)> {
    let about = |name| command.find_subcommand(name).and_then(Command::get_about);
    names
        .iter()
        .map(|name| (*name, about(name).map(ToString::to_string).unwrap_or_default()))
        .collect()
}

/// Parses the arguments of this process.
///
/// # Errors
/// The end of the process, when they are wrong or ask for help, which is printed.
pub(crate) fn parse() -> Result<Cli, Exit> {
    let parsed = command().try_get_matches().and_then(|found| Cli::from_arg_matches(&found));
    parsed.map_err(|error| report(error, wants_json()))
}

/// Prints the help of a command, or of all.
pub(crate) fn show(output: Output, words: &[String]) -> Exit {
    if words == ["all"] {
        show_all(output);
        return Exit::Ok;
    }
    // Asked for as with `--help`: one that does not exist gets the same suggestions.
    let words = ["stafette"].into_iter().chain(words.iter().map(String::as_str)).chain(["--help"]);
    match command().try_get_matches_from(words) {
        Err(error) => report(error, output.json),
        Ok(_) => Exit::Ok,
    }
}

fn show_all(output: Output) {
    let command = Cli::command();
    let groups = || FIRST.into_iter().chain(MORE);
    if output.json {
        let listed = groups().map(|group| {
            let commands = explained(&command, group);
            let commands =
                commands.iter().map(|(name, about)| json!({ "name": name, "about": about }));
            json!({ "group": group.0, "commands": commands.collect::<Vec<_>>() })
        });
        return output.data(&listed.collect::<Vec<_>>());
    }
    for group in groups() {
        output.line(format!("{}:", group.0));
        for (name, about) in explained(&command, group) {
            output.line(format!("  {name:<11}  {about}"));
        }
        output.line("");
    }
    output.line("`stafette help COMMAND` explains one.");
}

/// Prints help that was asked for, or what is wrong with the arguments.
fn report(mut error: clap::Error, json: bool) -> Exit {
    suggest_one(&mut error);
    if json && error.use_stderr() {
        Output::new(true).failure(&failure(&error));
        return Exit::Usage;
    }
    match (error.print(), error.use_stderr()) {
        (_, true) => Exit::Usage,
        (Err(closed), false) if closed.kind() == std::io::ErrorKind::BrokenPipe => {
            std::process::exit(CLOSED_PIPE)
        }
        (_, false) => Exit::Ok,
    }
}

/// Keeps only the nearest of several suggested commands, which clap puts last.
fn suggest_one(error: &mut clap::Error) {
    let kind = ContextKind::SuggestedSubcommand;
    let Some(ContextValue::Strings(names)) = error.get(kind) else { return };
    if let Some(nearest) = names.last().cloned() {
        error.insert(kind, ContextValue::String(nearest));
    }
}

/// The mistake in the form of all failures. Only its text has the whole of what clap knows.
fn failure(error: &clap::Error) -> Failure {
    let text = error.render().to_string();
    let paragraphs: Vec<&str> = text.split("\n\n").collect();
    let first = paragraphs.first().copied().unwrap_or_default();
    let what = first.strip_prefix("error: ").unwrap_or(first);
    let what = what.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let lines = || text.lines().map(str::trim);
    let usage = lines().find_map(|line| line.strip_prefix("Usage: ")).unwrap_or_default();
    let tips: Vec<&str> = lines().filter_map(|line| line.strip_prefix("tip: ")).collect();
    let is_name = |word: &&str| !word.starts_with(['[', '<', '-']);
    let name = usage.split(' ').take_while(is_name).collect::<Vec<_>>().join(" ");
    let name = if name.is_empty() { "stafette" } else { &name };
    let fix = match tips.is_empty() {
        true => format!("see `{name} --help`"),
        false => tips.join("; "),
    };
    let usage = if usage.is_empty() { String::new() } else { format!("usage: {usage}") };
    Failure::usage(what).why(usage).fix(fix)
}

/// True if the arguments, which cannot be parsed, ask for JSON.
fn wants_json() -> bool {
    let falsey = ["", "n", "no", "f", "false", "off", "0"];
    let by_variable = std::env::var("STAFETTE_JSON")
        .is_ok_and(|value| !falsey.contains(&value.to_lowercase().as_str()));
    let words: Vec<_> = std::env::args_os().take_while(|word| word != "--").collect();
    by_variable || words.iter().any(|word| word == OsStr::new("--json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_27_every_visible_command_is_in_exactly_one_group() {
        let command = Cli::command();
        let mut visible: Vec<&str> = command
            .get_subcommands()
            .filter(|command| !command.is_hide_set())
            .map(Command::get_name)
            .collect();
        let groups = FIRST.into_iter().chain(MORE);
        let mut grouped: Vec<&str> = groups.flat_map(|(_, names)| names.iter().copied()).collect();
        visible.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, visible, "add a new command to a group in cli/help.rs");
    }

    #[test]
    fn b_27_help_says_what_is_done_and_defaults_in_one_form() {
        fn check(command: &Command) {
            let name = command.get_name();
            let about = command.get_about().map(ToString::to_string).unwrap_or_default();
            let texts = command
                .get_arguments()
                .filter(|argument| !argument.is_hide_set())
                .map(|argument| (argument.get_id().as_str(), argument.get_help()));
            let texts = texts.map(|(id, help)| (id, help.map(ToString::to_string)));
            for (id, text) in texts.chain([(name, Some(about))]) {
                let text = text.unwrap_or_default();
                assert!(text.starts_with(|c: char| c.is_uppercase()), "{name} {id}: {text:?}");
                let odd = ["otherwise", "somebody", "whoever", "by itself", "by hand", "is yours"];
                assert!(!odd.iter().any(|odd| text.contains(odd)), "{name} {id}: {text:?}");
                assert!(text.matches("[default: ").count() <= 1, "{name} {id}: {text:?}");
            }
            command.get_subcommands().for_each(check);
        }
        let mut command = command();
        command.build();
        check(&command);
    }

    #[test]
    fn b_27_help_fits_a_terminal() {
        let long = command().render_long_help().to_string();
        let (commands, _) = long.split_once("Options:").expect("options");
        let wide = commands.lines().find(|line| line.chars().count() > 80);
        assert_eq!(wide, None);
        assert!(long.contains("Exit codes: 0 ok"), "{long}");
        assert!(command().render_help().to_string().lines().count() < 45, "a screen of it");
    }
}
