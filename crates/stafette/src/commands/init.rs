//! `init`: creates a stafette.toml for this project, shown before it is written.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use similar::TextDiff;
use stafette_agents::profile::{Library, Profile, Recommendation};
use stafette_core::command;

use super::{Context, doctor};
use crate::cli::{self, Template};
use crate::exit::{Exit, Failure};
use crate::project::{LARGEST, Project, WORKFLOW, is_repository};
use crate::trust;

/// The file that keeps the daemon's lock out of the repository.
const IGNORED: &str = ".gitignore";

/// What was written.
pub(crate) struct Written {
    file: PathBuf,
    agent: Choice,
    reviewer: Choice,
    ignored: bool,
    trusted: bool,
}

pub(crate) fn run(context: &Context, arguments: &cli::Init) -> Result<Exit, Failure> {
    let output = context.output;
    let Some(written) = create(context, arguments)? else { return Ok(Exit::Failed) };
    let Written { file, agent, reviewer, ignored, trusted } = written;
    match (output.json, trusted) {
        (true, _) => output.data(&json!({ "wrote": file, "agent": agent.words(), "profile": agent.profile(), "reviewer": reviewer.words(), "ignored": ignored, "trusted": trusted })),
        // A script is the user's own, and is changed more often than the workflow.
        (false, true) if agent.has_files() || reviewer.has_files() => output.say(
            "written, and trusted as it is. Next: `stafette trust`, whenever the workflow or a file \
             that its commands name has changed; then `stafette doctor` and `stafette run \"…\"`",
        ),
        (false, true) => output.say("written. Next: `stafette doctor`, then `stafette run \"…\"`"),
        (false, false) => output.say(
            "written. It uses files that were here before. Next: look at them with `stafette trust`, \
             then `stafette doctor` and `stafette run \"…\"`",
        ),
    }
    Ok(Exit::Ok)
}

/// Shows the new workflow and writes it, trusted if all of it was shown; `None` if the user does not
/// want it.
pub(crate) fn create(context: &Context, arguments: &cli::Init) -> Result<Option<Written>, Failure> {
    let root = context.project.clone().unwrap_or_else(|| ".".into());
    let root = fs::canonicalize(&root).map_err(|error| crate::project::no_folder(&root, &error))?;
    let file = root.join(WORKFLOW);
    if file.symlink_metadata().is_ok() && !arguments.force {
        return Err(Failure::usage(format!("{} is there already", file.display()))
            .fix("change it by hand, or replace it with --force"));
    }
    check(&root, WORKFLOW)?;
    let old = stafette_disk::read_text(&file, LARGEST).unwrap_or_default();
    if arguments.scripted && !matches!(arguments.template, Template::Pair | Template::Phases) {
        return Err(Failure::usage("Only the templates `pair` and `phases` come with scripts")
            .fix("add --template pair, or leave --scripted out"));
    }
    let library = Library::of(Some(&root));
    // It is tried, where it matters.
    let sandbox = match arguments.scripted {
        true => Ok(String::new()),
        false => doctor::try_sandbox().map(|report| report.gaps()),
    };
    let is_enforced = sandbox.as_ref().is_ok_and(String::is_empty);
    let agent = match arguments.scripted {
        true => Choice::Scripts,
        false => Choice::of(arguments, &library, is_enforced)?,
    };
    let reviewer = match (&agent, arguments.template) {
        (Choice::Profile { name, .. }, Template::Pair) if arguments.agent.is_none() => {
            reviewer(name, &library, is_enforced).unwrap_or_else(|| agent.clone())
        }
        _ => agent.clone(),
    };
    let mut new = fill(template(arguments.template), &agent, &reviewer);
    if !is_repository(&root) {
        // There is nothing to make worktrees of.
        new = new.replace("worktrees = true\n", "");
    }
    let samples = samples(&root, arguments);
    for name in samples.iter().map(|(name, _)| *name).chain([IGNORED]) {
        check(&root, name)?;
    }
    let output = context.output;
    if !output.json {
        for line in found(&root, &agent, &reviewer) {
            output.say(&line);
        }
        if let (Choice::Profile { .. }, false, Ok(gaps) | Err(gaps)) =
            (&agent, is_enforced, &sandbox)
        {
            output.say(format!(
                "sandbox: this system does not enforce all of it ({gaps}), so the agents may not do \
                 everything without a question"
            ));
        }
        let diff = TextDiff::from_lines(&old, &new);
        let shown = diff.unified_diff().header("before", WORKFLOW).to_string();
        output.say(&shown);
        for (name, _) in &samples {
            output.say(format!("and a sample of {name}, to be changed by you"));
        }
    }
    if !context.confirm(&format!("Write {}?", file.display()))? {
        output.say("nothing was written");
        return Ok(None);
    }
    write(&root, WORKFLOW, &new)?;
    for (name, text) in &samples {
        write(&root, name, text)?;
    }
    let ignored = ignore(&root)?;
    let project = Project { root, database: None };
    let loaded = project.load()?;
    let inspected = trust::inspect(&project, &loaded.workflow, &loaded.scripts)?;
    // The author has just seen every command, but not the files that were here before.
    let ours = |path: &String| {
        let is_sample = samples.iter().any(|(name, _)| path == name);
        let programs = [agent.words(), reviewer.words()];
        is_sample || programs.iter().any(|words| command::contents(words).contains(path))
    };
    let trusted = loaded.workflow.profiles.is_empty() && inspected.paths().all(ours);
    if trusted {
        trust::trust(&project, &loaded, &inspected)?;
    }
    Ok(Some(Written { file, agent, reviewer, ignored, trusted }))
}

fn template(template: Template) -> &'static str {
    match template {
        Template::Pair => include_str!("../../templates/pair.toml"),
        Template::Feature => include_str!("../../templates/feature.toml"),
        Template::Odei => include_str!("../../templates/odei.toml"),
        Template::Phases => include_str!("../../templates/phases.toml"),
        Template::Council => include_str!("../../templates/council.toml"),
    }
}

/// The files that a template needs beside the workflow, if they do not exist yet.
fn samples(root: &Path, arguments: &cli::Init) -> Vec<(&'static str, &'static str)> {
    let mut samples = match (arguments.template, arguments.scripted) {
        (Template::Odei, _) => vec![
            ("constitution.md", include_str!("../../templates/odei/constitution.md")),
            ("goals.toml", include_str!("../../templates/odei/goals.toml")),
        ],
        (Template::Pair, true) => vec![
            ("scripts/builder.toml", include_str!("../../templates/pair/builder.toml")),
            ("scripts/reviewer.toml", include_str!("../../templates/pair/reviewer.toml")),
        ],
        (Template::Phases, true) => vec![
            ("scripts/research.toml", include_str!("../../templates/phases/research.toml")),
            ("scripts/write.toml", include_str!("../../templates/phases/write.toml")),
            ("scripts/validate.toml", include_str!("../../templates/phases/validate.toml")),
        ],
        (Template::Pair | Template::Feature | Template::Phases | Template::Council, _) => {
            Vec::new()
        }
    };
    samples.retain(|(name, _)| root.join(name).symlink_metadata().is_err());
    samples
}

/// Checks that a file of the project is a file, or missing, and that no link leads elsewhere: a
/// repository may have brought one along.
fn check(root: &Path, name: &str) -> Result<(), Failure> {
    let refused = |path: &Path, why: &str| {
        Err(Failure::usage(format!("{} is not written to", path.display()))
            .why(why)
            .fix("look at what it is, and remove it"))
    };
    let mut path = root.to_owned();
    for part in Path::new(name).components() {
        path.push(part);
        let is_folder = path != root.join(name);
        match path.symlink_metadata() {
            Ok(found) if found.is_symlink() => return refused(&path, "it is a link"),
            Ok(found) if is_folder && !found.is_dir() => return refused(&path, "it is no folder"),
            Ok(found) if !is_folder && !found.is_file() => {
                return refused(&path, "it is not a regular file");
            }
            Ok(_) | Err(_) => {}
        }
    }
    Ok(())
}

/// Writes a file of the project, in place of what is there.
fn write(root: &Path, name: &str, text: &str) -> Result<(), Failure> {
    check(root, name)?;
    let path = root.join(name);
    let written =
        path.parent().map_or(Ok(()), fs::create_dir_all).and_then(|()| fs::write(&path, text));
    written.map_err(|error| {
        Failure::failed(format!("Cannot write {}", path.display()))
            .because(&error)
            .fix("make the project's folder writable, and run `stafette init` again")
    })
}

/// The agent that reviews what `builder` builds: Codex for Claude, otherwise the next that is installed.
fn reviewer(builder: &str, library: &Library, is_enforced: bool) -> Option<Choice> {
    let is_other = |profile: &&Profile| profile.name != builder && profile.exec.is_some();
    library.installed().find(is_other).map(|profile| Choice::known(profile, is_enforced))
}

/// The program that runs the agents.
#[derive(Clone)]
enum Choice {
    Scripts,
    Profile { name: String, settings: Recommendation },
    Command(Vec<String>),
}

impl Choice {
    /// The program that the user named, or the first known agent that is installed.
    fn of(arguments: &cli::Init, library: &Library, is_enforced: bool) -> Result<Self, Failure> {
        let known = |profile: &Profile| Choice::known(profile, is_enforced);
        let Some(named) = &arguments.agent else {
            let first = library.installed().find(|profile| profile.exec.is_some());
            return first.map(known).ok_or_else(|| {
                let known: Vec<&str> =
                    library.names().into_iter().filter(|name| *name != "shell").collect();
                Failure::usage(format!("No agent is installed here ({})", known.join(", "))).fix(
                    "install one, such as `npm install -g @anthropic-ai/claude-code`, name your own \
                     with --agent COMMAND, or see it work with `stafette init --scripted`",
                )
            });
        };
        let words: Vec<String> = named.split_whitespace().map(str::to_owned).collect();
        match words.as_slice() {
            [] => Err(Failure::usage("The agent's command is empty")
                .fix("name it with --agent COMMAND, such as --agent claude")),
            [name] => {
                let profile = library.get(name).filter(|profile| profile.exec.is_some());
                Ok(profile.map_or(Choice::Command(words), known))
            }
            _ => Ok(Choice::Command(words)),
        }
    }

    fn known(profile: &Profile, is_enforced: bool) -> Self {
        let settings = profile.recommendation(is_enforced);
        Choice::Profile { name: profile.name.clone(), settings }
    }

    fn profile(&self) -> Option<&str> {
        match self {
            Choice::Profile { name, .. } => Some(name),
            Choice::Command(_) | Choice::Scripts => None,
        }
    }

    fn words(&self) -> Vec<String> {
        match self {
            Choice::Profile { name, .. } => vec![name.clone()],
            Choice::Command(words) => words.clone(),
            Choice::Scripts => vec!["scripts".to_owned()],
        }
    }

    /// True for a command that may name files of the project.
    fn has_files(&self) -> bool {
        matches!(self, Choice::Command(words) if words.len() > 1)
    }

    /// The lines for the agent `name` that select it.
    fn lines(&self, name: &str) -> String {
        match self {
            Choice::Scripts => format!("script = \"scripts/{name}.toml\""),
            Choice::Profile { name, settings } => {
                let lines = settings.lines();
                let lines = match lines.is_empty() {
                    true => "# sandbox = \"auto\" would keep it from your keys: docs/sandbox.md",
                    false => lines.trim_end(),
                };
                format!("profile = {name:?}\n{lines}")
            }
            Choice::Command(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("{word:?}")).collect();
                let by_argument = words.iter().any(|word| word.contains("{prompt}"));
                let via = if by_argument { "\nprompt_via = \"argument\"" } else { "" };
                // Whether it knows of handoffs, only its user can tell.
                let note =
                    "\n# result = \"exit\" if exit status 0 alone means that the work is done";
                // It sees its project, the system's programs, and nothing else of the home.
                let sandbox =
                    "\nsandbox = \"auto\" # \"off\" if it needs more of your home than the project";
                format!("command = [{}]{via}{sandbox}{note}", quoted.join(", "))
            }
        }
    }
}

fn fill(template: &str, first: &Choice, reviewer: &Choice) -> String {
    let mut name = "";
    let mut filled = String::new();
    for line in template.lines().filter(|line| !line.starts_with("# `@agent@`")) {
        // A suggestion is filled in as well, and stays a suggestion.
        let (sign, line) = line.strip_prefix("# ").map_or(("", line), |line| ("# ", line));
        let section = line.strip_prefix("[agents.").and_then(|line| line.strip_suffix(']'));
        name = section.unwrap_or(name);
        let agent = if name == "reviewer" { reviewer } else { first };
        let line = match agent {
            Choice::Scripts if line.starts_with("result = ") => continue,
            Choice::Scripts => line.replace("runner = \"exec\"", "runner = \"scripted\""),
            Choice::Profile { .. } | Choice::Command(_) => line.to_owned(),
        };
        let line = line.replace("profile = \"@agent@\"", &agent.lines(name));
        // An empty line stays empty.
        for line in line.split('\n') {
            filled.push_str(sign);
            filled.push_str(line);
            filled.push('\n');
        }
    }
    filled
}

/// The findings in this folder, for the user to see.
fn found(root: &Path, agent: &Choice, reviewer: &Choice) -> Vec<String> {
    let tests = [
        ("Cargo.toml", "cargo test"),
        ("package.json", "npm test"),
        ("pyproject.toml", "pytest"),
        ("go.mod", "go test ./..."),
        ("Makefile", "make test"),
    ];
    let tests = tests.iter().find(|(file, _)| root.join(file).is_file());
    let git = is_repository(root);
    let agents = match agent.words() == reviewer.words() {
        true => agent.words().join(" "),
        false => {
            format!("{} builds, {} reviews", agent.words().join(" "), reviewer.words().join(" "))
        }
    };
    vec![
        format!("agent: {agents}"),
        format!("tests: {}", tests.map_or("none found", |(_, command)| command)),
        format!("git:   {}", if git { "yes" } else { "no repository; run `git init`" }),
    ]
}

/// Keeps the daemon's lock out of the repository.
fn ignore(root: &Path) -> Result<bool, Failure> {
    let text = stafette_disk::read_text(&root.join(IGNORED), LARGEST).unwrap_or_default();
    if !root.join(".git").exists() || text.lines().any(|line| line.trim_matches('/') == ".stafette")
    {
        return Ok(false);
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    write(root, IGNORED, &format!("{text}{gap}/.stafette/\n")).map(|()| true)
}
