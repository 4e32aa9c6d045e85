//! Agents: each can be started, and each input has a provider.

use super::{Report, listed};
use stafette_config::{Diagnostic, child};
use stafette_core::Party;
use stafette_core::workflow::{Agent, PermissionLevel, ResultFormat, Runner, Sandbox};
use stafette_text::nearest;

/// The sources that need no entry in `[sources]`.
const SOURCES: [&str; 4] = ["external", "market", "user", "decision"];

pub(super) fn check(report: &mut Report<'_>) {
    let workflow = report.workflow;
    if workflow.agents.is_empty() {
        report.add(Diagnostic::error("no-agents", "/agents", "the workflow has no agents"));
    }
    for (name, agent) in &workflow.agents {
        let at = child("/agents", name.as_str());
        let runs = agent.command.first().is_some_and(|program| !program.trim().is_empty());
        let scripted = agent.script.as_ref().is_some_and(|script| !script.trim().is_empty());
        match agent.runner {
            Runner::Exec | Runner::Pty | Runner::Acp if !runs && agent.profile.is_none() => report
                .add(
                    Diagnostic::error("no-command", &at, format!("`{name}` has no command to run"))
                        .help(
                            "say what runs it: profile = \"claude\", or command = [\"PROGRAM\", …]",
                        ),
                ),
            Runner::Scripted if !scripted => report.add(
                Diagnostic::error("no-script", &at, format!("`{name}` has no script to follow"))
                    .help("say which: script = \"scripts/NAME.toml\""),
            ),
            Runner::Exec | Runner::Pty | Runner::Acp if scripted => {
                unused(report, &format!("{at}/script"), "scripted")
            }
            Runner::External if runs => unused(report, &format!("{at}/command"), "exec"),
            Runner::External if scripted => unused(report, &format!("{at}/script"), "scripted"),
            Runner::Scripted if runs => unused(report, &format!("{at}/command"), "exec"),
            Runner::Scripted | Runner::External if agent.profile.is_some() => {
                unused(report, &format!("{at}/profile"), "exec");
            }
            Runner::A2a if agent.url.is_none() => report.add(
                Diagnostic::error("no-url", &at, format!("`{name}` has no address"))
                    .help("say where it is: url = \"http://127.0.0.1:9999\""),
            ),
            Runner::A2a if runs => unused(report, &format!("{at}/command"), "exec"),
            Runner::A2a if scripted => unused(report, &format!("{at}/script"), "scripted"),
            Runner::A2a if agent.profile.is_some() => {
                unused(report, &format!("{at}/profile"), "exec");
            }
            _ => {}
        }
        if agent.permissions == PermissionLevel::All && agent.sandbox == Sandbox::Off {
            let message =
                format!("`{name}` may do everything without asking, outside of a sandbox");
            report.add(
                Diagnostic::error("unconfined", &format!("{at}/permissions"), message)
                    .help("add sandbox = \"auto\", or say permissions = \"edits\""),
            );
        }
        let local = agent.runner != Runner::A2a;
        for (there, field) in [(agent.url.is_some(), "url"), (agent.bearer.is_some(), "bearer")] {
            if local && there {
                unused(report, &format!("{at}/{field}"), "a2a");
            }
        }
        if let Some(profile) = &agent.profile {
            knows_profile(report, profile, &format!("{at}/profile"));
        }
        if never_answers(agent, &workflow.workflow.frame_word) {
            let message = format!("`{name}` ends without saying what the outcome of its work is");
            report.add(
                Diagnostic::warning("no-answer", &format!("{at}/command"), message).help(
                    "set result = \"exit\" if exit status 0 means that the work is done, or have it call \
                     `stafette emit`",
                ),
            );
        }
        let budget = &workflow.budget;
        let estimate = agent.estimate.unwrap_or_default();
        if estimate.tokens > budget.tokens || estimate.money > budget.money {
            let message = format!(
                "`{name}` is expected to use {} tokens and {}, but a run has only {} tokens and {}",
                estimate.tokens, estimate.money, budget.tokens, budget.money
            );
            report.add(Diagnostic::error("over-budget", &format!("{at}/estimate"), message));
        }
        report.distinct(agent.needs.iter().map(|need| need.key.as_str()), &format!("{at}/needs"));
        for (index, need) in agent.needs.iter().enumerate() {
            let at = format!("{at}/needs/{index}/source");
            let known = || SOURCES.into_iter().chain(workflow.sources.keys().map(String::as_str));
            if !known().any(|source| source == need.source) {
                let help = match nearest(&need.source, known()) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => "say in `[sources]` who provides it".to_owned(),
                };
                let message = format!("nobody provides `{}`, which `{name}` needs", need.source);
                report.add(Diagnostic::error("unknown-source", &at, message).help(help));
            } else if workflow.provider(&need.source) == Party::from(name) {
                let message = format!("`{name}` would have to provide `{}` to itself", need.source);
                report.add(
                    Diagnostic::error("own-provider", &at, message)
                        .help("give the source to someone else in `[sources]`"),
                );
            }
        }
    }
    for (source, provider) in &workflow.sources {
        report.knows(provider.as_str(), &child("/sources", source));
    }
}

/// True for a shell command that can be read here and neither reports nor prints a frame. Any other
/// program may do either.
fn never_answers(agent: &Agent, frame_word: &str) -> bool {
    let script = match agent.command.as_slice() {
        [shell, flag, script, ..] if flag == "-c" && shell.ends_with("sh") => script,
        _ => return false,
    };
    let speaks = ["stafette", "emit", "mcp", frame_word, "$"];
    agent.runner == Runner::Exec
        && agent.profile.is_none()
        && agent.result == ResultFormat::Frames
        && !speaks.iter().any(|word| script.contains(word))
}

/// Checks a profile name, if the caller provided the list: the core itself knows no profiles.
fn knows_profile(report: &mut Report<'_>, profile: &str, path: &str) {
    let Some(known) = report.profiles.filter(|known| !known.contains(&profile)) else { return };
    let help = match nearest(profile, known.iter().copied()) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => format!("there are {}", listed(known.iter().copied())),
    };
    let message = format!("there is no profile `{profile}`");
    report.add(Diagnostic::error("unknown-profile", path, message).help(help));
}

fn unused(report: &mut Report<'_>, path: &str, runner: &str) {
    let message = format!("only agents with runner = \"{runner}\" use this");
    report.add_named(Diagnostic::warning("unused", path, message));
}
