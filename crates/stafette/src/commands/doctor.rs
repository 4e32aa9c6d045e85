//! `doctor`: what works here and what does not, each with its fix.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::json;
use stafette_store::Store;

use super::Context;
use crate::client::Client;
use crate::daemon::open_store;
use crate::exit::{Exit, Failure};
use crate::output::Tone;
use crate::trust;

/// Agents that can be brought along, with the command line for one turn.
pub(crate) const AGENTS: &[(&str, &[&str])] = &[
    ("claude", &["claude", "-p"]),
    ("codex", &["codex", "exec", "--skip-git-repo-check", "-"]),
    ("gemini", &["gemini", "-p", "{prompt}"]),
    ("opencode", &["opencode", "run", "{prompt}"]),
    ("qwen", &["qwen", "-p", "{prompt}"]),
    ("goose", &["goose", "run", "--no-session", "-t", "{prompt}"]),
    ("aider", &["aider", "--yes-always", "--message", "{prompt}"]),
];

struct Finding {
    name: &'static str,
    good: bool,
    /// Without it, nothing runs.
    needed: bool,
    said: String,
    fix: String,
}

pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let mut findings = vec![git(), agents()];
    match context.project() {
        Err(failure) => findings.push(Finding {
            name: "project",
            good: false,
            needed: false,
            said: failure.what,
            fix: failure.fix,
        }),
        Ok(project) => {
            findings.push(workflow(&project));
            findings.push(store(&project).await);
            let up = Client::new(&project.socket()).is_up().await;
            findings.push(Finding {
                name: "daemon",
                good: true,
                needed: false,
                said: if up { "runs".into() } else { "does not run; it starts when needed".into() },
                fix: String::new(),
            });
        }
    }
    let good = findings.iter().all(|finding| finding.good || !finding.needed);
    if context.output.json {
        let listed: Vec<_> = findings
            .iter()
            .map(|f| json!({ "name": f.name, "ok": f.good, "needed": f.needed, "said": f.said, "fix": f.fix }))
            .collect();
        context.output.data(&json!({ "ok": good, "findings": listed }));
    } else {
        for finding in &findings {
            let mark = match (finding.good, finding.needed) {
                (true, _) => context.output.paint(Tone::Good, "✓"),
                (false, true) => context.output.paint(Tone::Bad, "✗"),
                (false, false) => context.output.paint(Tone::Yours, "–"),
            };
            context.output.line(&format!("{mark} {:<9} {}", finding.name, finding.said));
            if !finding.good && !finding.fix.is_empty() {
                context.output.line(&format!("    fix: {}", finding.fix));
            }
        }
    }
    Ok(if good { Exit::Ok } else { Exit::Failed })
}

fn git() -> Finding {
    let output = Command::new("git").arg("--version").stdin(Stdio::null()).output();
    let said = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
    Finding {
        name: "git",
        good: said.is_ok(),
        needed: true,
        said: said.unwrap_or_else(|_| "is not there".to_owned()),
        fix: "install git".to_owned(),
    }
}

fn agents() -> Finding {
    let found = installed();
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    Finding {
        name: "agents",
        good: !found.is_empty(),
        needed: false,
        said: match found.is_empty() {
            true => "none of the known ones is installed; any command can be one".to_owned(),
            false => names.join(", "),
        },
        fix:
            "install Claude Code, Codex, Gemini, opencode, qwen, goose or aider, or name a command \
              in stafette.toml"
                .to_owned(),
    }
}

/// The known agents that are on the path.
pub(crate) fn installed() -> Vec<(&'static str, &'static [&'static str])> {
    AGENTS.iter().filter(|(name, _)| on_path(name).is_some()).copied().collect()
}

/// Where a program is.
pub(crate) fn on_path(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(program)).find(|file| file.is_file())
}

fn workflow(project: &crate::project::Project) -> Finding {
    let (good, said, fix) = match project.load() {
        Err(failure) => (false, format!("{}: {}", failure.what, failure.why), failure.fix),
        Ok(loaded) => {
            let missing: Vec<String> = loaded
                .workflow
                .agents
                .values()
                .filter_map(|agent| agent.command.first())
                .filter(|program| !program.contains('/') && on_path(program).is_none())
                .cloned()
                .collect();
            match (missing.first(), trust::is_trusted(project, &loaded)) {
                (Some(program), _) => (
                    false,
                    format!("the program `{program}` is not on the path"),
                    "install it, or change `command` in stafette.toml".to_owned(),
                ),
                (None, false) => {
                    let fix = "look at its commands with `stafette trust`".to_owned();
                    (false, "is sound, but not trusted".to_owned(), fix)
                }
                (None, true) => (true, "is sound and trusted".to_owned(), String::new()),
            }
        }
    };
    Finding { name: "workflow", good, needed: true, said, fix }
}

async fn store(project: &crate::project::Project) -> Finding {
    let looked = async {
        project.state()?;
        let store = open_store(&project.store())?;
        let health = store
            .check()
            .await
            .map_err(|error| Failure::failed("The store cannot be read").because(&error))?;
        store.close().await;
        Ok::<_, Failure>(health)
    };
    match looked.await {
        Ok(health) => Finding {
            name: "store",
            good: health.is_sound(),
            needed: true,
            said: match health.problems.first() {
                None => format!(
                    "{} runs, {} events, {} KiB",
                    health.runs,
                    health.events,
                    health.bytes / 1024
                ),
                Some(problem) => problem.clone(),
            },
            fix: "restore .stafette/store.db from a backup".to_owned(),
        },
        Err(failure) => Finding {
            name: "store",
            good: false,
            needed: true,
            said: format!("{}: {}", failure.what, failure.why),
            fix: failure.fix,
        },
    }
}
