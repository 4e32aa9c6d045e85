//! `init`: a stafette.toml for this project, shown before it is written.

use std::fs;
use std::path::Path;

use serde_json::json;
use similar::TextDiff;

use super::{Context, doctor};
use crate::cli::{self, Template};
use crate::exit::{Exit, Failure};
use crate::project::{Project, WORKFLOW};
use crate::trust;

pub(crate) fn run(context: &Context, arguments: &cli::Init) -> Result<Exit, Failure> {
    let root = context.project.clone().unwrap_or_else(|| ".".into());
    let root = fs::canonicalize(&root).map_err(|error| {
        Failure::usage(format!("There is no folder {}", root.display())).because(&error)
    })?;
    let file = root.join(WORKFLOW);
    let old = fs::read_to_string(&file).unwrap_or_default();
    if file.exists() && !arguments.force {
        return Err(Failure::usage(format!("{} is there already", file.display()))
            .fix("change it by hand, or replace it with --force"));
    }
    let agent = agent(arguments)?;
    let new = fill(template(arguments.template), &agent);
    let output = context.output;
    if !output.json {
        for line in found(&root, &agent) {
            output.say(&line);
        }
        let diff = TextDiff::from_lines(&old, &new);
        let shown = diff.unified_diff().header("before", WORKFLOW).to_string();
        output.say(&shown);
    }
    if !context.confirm(&format!("Write {}?", file.display()))? {
        output.say("nothing was written");
        return Ok(Exit::Failed);
    }
    fs::write(&file, &new).map_err(|error| {
        Failure::failed(format!("{} cannot be written", file.display())).because(&error)
    })?;
    let ignored = ignore(&root)?;
    // Its author has just seen every command.
    let project = Project { root };
    trust::trust(&project, &project.load()?)?;
    match output.json {
        true => output.data(&json!({ "wrote": file, "agent": agent, "ignored": ignored })),
        false => output.say("written. Next: `stafette doctor`, then `stafette run \"…\"`"),
    }
    Ok(Exit::Ok)
}

fn template(template: Template) -> &'static str {
    match template {
        Template::Feature => include_str!("../../templates/feature.toml"),
        Template::Odei => include_str!("../../templates/odei.toml"),
        Template::Phases => include_str!("../../templates/phases.toml"),
        Template::Council => include_str!("../../templates/council.toml"),
    }
}

/// The command line for one turn: what was named, or the first known agent that is here.
fn agent(arguments: &cli::Init) -> Result<Vec<String>, Failure> {
    if let Some(named) = &arguments.agent {
        let words: Vec<String> = named.split_whitespace().map(str::to_owned).collect();
        return match words.is_empty() {
            true => Err(Failure::usage("The agent's command is empty")),
            false => Ok(words),
        };
    }
    let found = doctor::installed();
    let (_, command) = found.first().copied().unwrap_or(doctor::AGENTS[0]);
    Ok(command.iter().map(|word| (*word).to_owned()).collect())
}

fn fill(template: &str, agent: &[String]) -> String {
    let quoted: Vec<String> = agent.iter().map(|word| format!("{word:?}")).collect();
    let via = if agent.iter().any(|word| word == "{prompt}") { "argument" } else { "stdin" };
    template
        .lines()
        .filter(|line| !line.starts_with("# `@agent@`") && !line.starts_with("# as [\"claude\""))
        .map(|line| {
            line.replace("command = [\"@agent@\"]", &format!("command = [{}]", quoted.join(", ")))
        })
        .map(|line| line.replace("prompt_via = \"stdin\"", &format!("prompt_via = \"{via}\"")))
        .map(|line| line + "\n")
        .collect()
}

/// What was found here, for the person to see.
fn found(root: &Path, agent: &[String]) -> Vec<String> {
    let tests = [
        ("Cargo.toml", "cargo test"),
        ("package.json", "npm test"),
        ("pyproject.toml", "pytest"),
        ("go.mod", "go test ./..."),
        ("Makefile", "make test"),
    ];
    let tests = tests.iter().find(|(file, _)| root.join(file).is_file());
    let git = root.ancestors().any(|folder| folder.join(".git").exists());
    vec![
        format!("agent: {}", agent.join(" ")),
        format!("tests: {}", tests.map_or("none found", |(_, command)| command)),
        format!("git:   {}", if git { "yes" } else { "no repository; run `git init`" }),
    ]
}

/// State stays out of the repository.
fn ignore(root: &Path) -> Result<bool, Failure> {
    let file = root.join(".gitignore");
    let text = fs::read_to_string(&file).unwrap_or_default();
    if !root.join(".git").exists() || text.lines().any(|line| line.trim_matches('/') == ".stafette")
    {
        return Ok(false);
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    fs::write(&file, format!("{text}{gap}/.stafette/\n")).map_err(|error| {
        Failure::failed(format!("{} cannot be written", file.display())).because(&error)
    })?;
    Ok(true)
}
