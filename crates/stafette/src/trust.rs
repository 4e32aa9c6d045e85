//! A workflow from a repository runs nothing before its user has seen the commands.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use stafette_agents::profile::resumed;
use stafette_agents::scripted::{Script, Step};
use stafette_core::Workflow;
use stafette_core::workflow::Runner;

use crate::exit::{Exit, Failure};
use crate::project::{Loaded, Project};

/// True if the user has trusted exactly this workflow in exactly this folder.
pub(crate) fn is_trusted(project: &Project, loaded: &Loaded) -> bool {
    read().get(&name(project)).is_some_and(|hash| *hash == loaded.hash)
}

/// Trusts the workflow as it is now.
pub(crate) fn trust(project: &Project, loaded: &Loaded) -> Result<(), Failure> {
    let mut all = read();
    all.insert(name(project), loaded.hash.clone());
    let path = path();
    let write = || -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let fresh = path.with_extension("new");
        fs::write(&fresh, serde_json::to_string_pretty(&all)?)?;
        fs::rename(fresh, &path)
    };
    write().map_err(|error| {
        Failure::failed(format!("{} cannot be written", path.display())).because(&error)
    })
}

pub(crate) fn refusal(project: &Project) -> Failure {
    Failure::new(Exit::Usage, "This workflow is not trusted yet")
        .why(format!(
            "{} names commands that nobody has allowed here, or it has changed",
            project.file().display()
        ))
        .fix("look at them and allow them with `stafette trust`")
}

/// Every command that the workflow would run, by agent or hook, the files that define them, and the
/// targets of notifications.
pub(crate) fn commands(project: &Project, workflow: &Workflow) -> Vec<(String, String)> {
    let mut commands = Vec::new();
    let library = project.profiles();
    for (name, agent) in &workflow.agents {
        match agent.runner {
            Runner::Exec | Runner::Pty | Runner::Acp => {
                let profile = agent.profile.as_deref().and_then(|profile| library.get(profile));
                let own = profile.and_then(|profile| profile.command(agent.runner));
                let command = match own {
                    Some(own) if agent.command.is_empty() => resumed(own, &[], None),
                    _ => agent.command.clone(),
                };
                commands.push((name.to_string(), command.join(" ")));
            }
            Runner::External => {}
            Runner::A2a => {
                let url = agent.url.as_deref().unwrap_or_default();
                commands.push((name.to_string(), format!("sends its turns to {url}")));
            }
            Runner::Scripted => {
                let script = agent.script.clone().unwrap_or_default();
                commands.push((name.to_string(), format!("stafette play {script}")));
                let Ok(script) = Script::read(&project.root.join(&script)) else { continue };
                for step in script.turns.iter().flat_map(|turn| &turn.steps) {
                    if let Step::Run { command, .. } = step {
                        commands.push((name.to_string(), command.clone()));
                    }
                }
            }
        }
    }
    if !workflow.changes.validate.is_empty() {
        commands.push(("changes".to_owned(), workflow.changes.validate.join(" ")));
    }
    if let Some(own) = &workflow.own {
        let steps = [("build", &own.build), ("prove", &own.prove), ("start", &own.start)];
        for (step, command) in steps.into_iter().filter(|(_, command)| !command.is_empty()) {
            commands.push((format!("self {step}"), command.join(" ")));
        }
    }
    if let Some(receiver) = &workflow.telemetry.otlp {
        let variables = workflow.telemetry.headers.values().map(|name| format!(" ${name}"));
        let told = format!("are sent to {receiver}{}", variables.collect::<String>());
        commands.push(("traces".to_owned(), told));
    }
    for name in workflow.profiles.keys() {
        let file = library.file(name).map(|file| file.display().to_string());
        commands.push((format!("profile {name}"), file.unwrap_or_default()));
    }
    for hook in &workflow.hooks {
        commands.push((format!("hook on {}", hook.on), hook.command.join(" ")));
    }
    let notify = workflow.notify.as_ref();
    let ntfy = notify.and_then(|notify| notify.ntfy.as_ref()).map(|ntfy| &ntfy.url);
    let webhook = notify.and_then(|notify| notify.webhook.as_ref()).map(|webhook| &webhook.url);
    for url in ntfy.into_iter().chain(webhook) {
        commands.push(("news".to_owned(), format!("POST {url}")));
    }
    commands
}

fn name(project: &Project) -> String {
    project.root.to_string_lossy().into_owned()
}

fn read() -> BTreeMap<String, String> {
    let text = fs::read_to_string(path()).unwrap_or_default();
    // A damaged file trusts nothing, which is safe; the next `trust` writes it anew.
    serde_json::from_str(&text).unwrap_or_default()
}

fn path() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    state.unwrap_or_else(std::env::temp_dir).join("stafette/trust.json")
}
