//! `doctor`: checks what works here and what does not, each with its fix.

mod trial;
mod version;

use std::path::Path;

use serde_json::json;
use stafette_agents::profile::{Library, Profile, UNSEEN_FIX, on_path, unseen};

use stafette_core::Workflow;

use super::Context;
use crate::cli;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::{Tone, counted};
use crate::project::{Project, WORKFLOW, is_repository};
use crate::state::{older, open_lock};
use crate::store::{self, Home};
use crate::trust;

/// The least room on the disk that is enough, in bytes.
const LITTLE: u64 = 32 << 20;

struct Finding {
    name: String,
    good: bool,
    /// True if nothing runs without it.
    needed: bool,
    said: String,
    fix: String,
}

pub(crate) async fn run(context: &Context, arguments: cli::Doctor) -> Result<Exit, Failure> {
    if arguments.trial {
        return trial::run(context, arguments).await;
    }
    let project = context.project();
    let library = Library::of(project.as_ref().ok().map(|project| project.root.as_path()));
    let mut findings = vec![git().await, agents(&library), sandbox()];
    findings.extend(missing(&library));
    findings.extend(unproven(&library).await);
    findings.extend(profiles(&library));
    match project {
        Err(failure) => findings.push(Finding {
            name: "project".to_owned(),
            good: false,
            needed: false,
            said: failure.what,
            fix: failure.fix,
        }),
        Ok(project) => {
            findings.push(workflow(&project));
            findings.extend(budget(&project));
            findings.extend(worktrees(&project));
            findings.push(state(&project).await);
            findings.extend(disk(&project));
            findings.push(store(&project).await);
            let client = project.socket().map(|socket| Client::new(&socket));
            let up = match &client {
                Ok(client) => client.is_up().await,
                Err(failure) => Err(failure.clone()),
            };
            if let (Ok(client), Ok(true)) = (&client, &up) {
                findings.extend(knowledge(client).await);
            }
            findings.push(daemon(up));
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
            context.output.line(mark + format!(" {:<9} {}", finding.name, finding.said));
            if !finding.good && !finding.fix.is_empty() {
                context.output.line(format!("    fix: {}", finding.fix));
            }
        }
    }
    Ok(if good { Exit::Ok } else { Exit::Failed })
}

async fn git() -> Finding {
    let said = stafette_engine::run_git(Path::new("."), ["--version"]).await;
    let said = said.map(|said| String::from_utf8_lossy(&said).trim().to_owned());
    Finding {
        name: "git".to_owned(),
        good: said.is_ok(),
        needed: true,
        said: said.unwrap_or_else(|_| "is not there".to_owned()),
        fix: "install git".to_owned(),
    }
}

/// The repository that the workflow's worktrees are made of, if that is missing.
fn worktrees(project: &Project) -> Option<Finding> {
    let workflow = project.load().ok()?.workflow;
    let is_missing = workflow.workflow.worktrees && !is_repository(&project.root);
    is_missing.then(|| Finding {
        name: "worktrees".to_owned(),
        good: false,
        needed: true,
        said: "the agents' worktrees need a git repository, and the project is in none".to_owned(),
        fix: "`git init` and a first commit, or `worktrees = false` in stafette.toml".to_owned(),
    })
}

/// The place of the state, and anything in the project that looks like one.
async fn state(project: &Project) -> Finding {
    let older = older::find(&project.root).await;
    let opened = project.state().and_then(|folder| open_lock(&project.root).map(|_lock| folder));
    let (good, said, fix) = match (opened, older) {
        (Err(failure), _) => (false, format!("{}: {}", failure.what, failure.why), failure.fix),
        (Ok(_), Some(older)) => (false, older.line(), "remove it if it is not yours".to_owned()),
        (Ok(folder), None) => (true, format!("is in {}", folder.display()), String::new()),
    };
    Finding { name: "state".to_owned(), good, needed: false, said, fix }
}

fn daemon(up: Result<bool, Failure>) -> Finding {
    let (good, said, fix) = match up {
        Ok(true) => (true, "runs".to_owned(), String::new()),
        Ok(false) => (true, "does not run; it starts when needed".to_owned(), String::new()),
        Err(failure) => (false, failure.what, failure.fix),
    };
    Finding { name: "daemon".to_owned(), good, needed: true, said, fix }
}

/// What `sandbox = "auto"` and `"strict"` hold on this system: it is tried, and not guessed.
fn sandbox() -> Finding {
    let name = "sandbox".to_owned();
    let fix = "use a kernel with Landlock (6.12 or newer) that lets users make namespaces for \
               sandbox = \"strict\"; \"auto\" holds what there is";
    let report = match try_sandbox() {
        Ok(report) => report,
        Err(why) => {
            let said = format!("a sandbox cannot be tried: {why}");
            return Finding { name, good: false, needed: false, said, fix: fix.to_owned() };
        }
    };
    let parts = [
        ("files", &report.files),
        ("mounts", &report.mounts),
        ("signals", &report.scope),
        ("system calls", &report.calls),
    ];
    let state = parts.map(|(name, part)| format!("{name} {part}")).join(", ");
    let bubblewrap = match stafette_sandbox::find_bubblewrap() {
        Some(_) => "with bubblewrap",
        None => "without bubblewrap",
    };
    let good = report.is_whole();
    let strict = if good { "starts" } else { "does not start" };
    let said = format!("\"strict\" {strict} here: {state} ({bubblewrap})");
    Finding { name, good, needed: false, said, fix: fix.to_owned() }
}

/// What a whole sandbox holds on this system, by a trial.
pub(super) fn try_sandbox() -> Result<stafette_sandbox::Report, String> {
    let program = crate::daemon::program().map_err(|failure| failure.what)?;
    let scratch = tempfile::tempdir().map_err(|error| error.to_string())?;
    let launcher = [program.into(), "sandboxed".into()];
    stafette_sandbox::try_out(&launcher, scratch.path()).map_err(|error| error.to_string())
}

fn agents(library: &Library) -> Finding {
    let names: Vec<&str> = library.installed().map(|profile| profile.name.as_str()).collect();
    Finding {
        name: "agents".to_owned(),
        good: !names.is_empty(),
        needed: false,
        said: match names.is_empty() {
            true => "none of the known ones is installed; any command can be one".to_owned(),
            false => names.join(", "),
        },
        fix: format!("install one of those below, or name a command in {WORKFLOW}"),
    }
}

/// The programs that are not installed, each with its package.
fn missing(library: &Library) -> Option<Finding> {
    let adapter = |profile: &Profile| {
        let acp = profile.acp.as_ref().filter(|acp| !acp.install.is_empty())?;
        on_path(acp.command.first()?).is_none().then(|| acp.install.clone())
    };
    let lines = library.all().filter(|profile| profile.name != "shell").filter_map(|profile| {
        let (name, install) = match profile.program() {
            None => (profile.title.clone(), profile.install.clone()),
            Some(_) => (format!("{} with ACP", profile.title), adapter(profile)?),
        };
        (!install.is_empty()).then_some((name, install))
    });
    let (names, packages): (Vec<String>, Vec<String>) =
        lines.map(|(name, install)| (name.clone(), format!("{name}: {install}"))).unzip();
    (!names.is_empty()).then(|| Finding {
        name: "missing".to_owned(),
        good: false,
        needed: false,
        said: format!("not installed: {}", names.join(", ")),
        fix: format!("install what you want to use\n      {}", packages.join("\n      ")),
    })
}

/// The programs of another version than that with which their profile was proven.
async fn unproven(library: &Library) -> Vec<Finding> {
    let mut findings = Vec::new();
    // A project's profile may name any command, and nobody has trusted it here.
    let own = library.installed().filter(|profile| library.file(&profile.name).is_none());
    for profile in own {
        let proven = &profile.detect.proven;
        let Some(version) = version::of(profile).await else { continue };
        if proven.is_empty() || version == *proven {
            continue;
        }
        findings.push(Finding {
            name: profile.name.clone(),
            good: false,
            needed: false,
            said: format!("is version {version}; its profile was proven with {proven}"),
            fix: format!("see whether it works: stafette doctor --try --only {}", profile.name),
        });
    }
    findings
}

/// A profile that cannot be read is worth a finding: its agents will not start.
fn profiles(library: &Library) -> Option<Finding> {
    let broken = library.broken().first()?;
    let what = broken.mistakes.first().map(|mistake| mistake.message.as_str()).unwrap_or_default();
    Some(Finding {
        name: "profiles".to_owned(),
        good: false,
        needed: true,
        said: format!("{} is no profile: {what}", broken.path.display()),
        fix: format!("correct it, or remove it\n{}", broken.render()),
    })
}

/// Finds a server behind the stages that is unreachable, or settings that differ from the daemon's:
/// work continues, and writes wait.
async fn knowledge(client: &Client) -> Option<Finding> {
    let troubles = super::knowledge::troubles(client).await;
    (!troubles.is_empty()).then(|| Finding {
        name: "knowledge".to_owned(),
        good: false,
        needed: false,
        said: troubles.join("; "),
        fix: "start the server, correct [knowledge] in stafette.toml, or end the daemon with \
              `stafette down`; what waits is written then"
            .to_owned(),
    })
}

fn workflow(project: &crate::project::Project) -> Finding {
    let (good, said, fix) = match project.load() {
        Err(failure) => (false, format!("{}: {}", failure.what, failure.why), failure.fix),
        Ok(loaded) => {
            let absent = absent(&loaded.workflow, &project.profiles(), &project.root);
            let gone = trust::gone(project, &loaded);
            match (absent.or(gone), trust::is_trusted(project, &loaded)) {
                (Some(what), _) => (
                    false,
                    what,
                    "put it there, or change `profile` or `command` in stafette.toml".to_owned(),
                ),
                (None, false) => {
                    let fix = "look at its commands with `stafette trust`".to_owned();
                    (false, "is sound, but not trusted".to_owned(), fix)
                }
                (None, true) => (true, "is sound and trusted".to_owned(), String::new()),
            }
        }
    };
    Finding { name: "workflow".to_owned(), good, needed: true, said, fix }
}

/// Says which program of an agent is not there, if one is not.
fn absent(workflow: &Workflow, library: &Library, root: &Path) -> Option<String> {
    let mut programs = programs(workflow, library);
    let off_path = |program: &&String| !program.contains('/') && on_path(program).is_none();
    let found = programs.find(off_path);
    let found = found.map(|program| format!("the program `{program}` is not on the path"));
    found.or_else(|| no_file(workflow, library, root))
}

/// Says which program that is named by its path does not exist, if one does not.
pub(super) fn no_file(workflow: &Workflow, library: &Library, root: &Path) -> Option<String> {
    let gone = |program: &&String| {
        program.contains('/') && !program.contains('{') && !root.join(program).exists()
    };
    let found = programs(workflow, library).find(gone);
    found.map(|program| format!("the program `{program}` does not exist"))
}

/// The programs of the agents, as their commands name them.
fn programs<'a>(workflow: &'a Workflow, library: &'a Library) -> impl Iterator<Item = &'a String> {
    workflow.agents.values().filter_map(|agent| {
        let profile = agent.profile.as_deref().and_then(|name| library.get(name));
        let own = profile.and_then(|profile| profile.command(agent.runner));
        own.filter(|_| agent.command.is_empty()).unwrap_or(&agent.command).first()
    })
}

/// The room on the disk that the state lies on, if there is little.
fn disk(project: &Project) -> Option<Finding> {
    let folder = project.state().ok()?;
    let found = rustix::fs::statvfs(&folder).ok()?;
    let free = found.f_bavail.saturating_mul(found.f_frsize);
    (free < LITTLE).then(|| Finding {
        name: "disk".to_owned(),
        good: false,
        needed: true,
        said: format!("{} MiB are free where the state is, in {}", free >> 20, folder.display()),
        fix: "make room there; `stafette prune` removes old runs".to_owned(),
    })
}

/// Finds agents whose cost the budget does not see.
fn budget(project: &Project) -> Option<Finding> {
    let loaded = project.load().ok()?;
    let library = project.profiles();
    let said = unseen(&loaded.workflow, false, |name| library.get(name))?;
    let fix = UNSEEN_FIX.to_owned();
    Some(Finding { name: "budget".to_owned(), good: false, needed: false, said, fix })
}

/// Events that an older version wrote have no checksum.
fn unchecked(events: u64) -> String {
    match events {
        0 => String::new(),
        events => format!("; {events} events of an older version are unchecked"),
    }
}

async fn store(project: &crate::project::Project) -> Finding {
    let looked = async {
        let store = store::open(project, false).await?.store;
        let health = store.check().await.map_err(|error| {
            let mend = Home::of(project).map_or(String::new(), |home| home.mend());
            Failure::failed("Cannot read the store").because(&error).fix(mend)
        })?;
        store.close().await;
        Ok::<_, Failure>(health)
    };
    match looked.await {
        Ok(health) => Finding {
            name: "store".to_owned(),
            good: health.is_sound(),
            needed: true,
            said: match health.is_sound() {
                true => format!(
                    "{}, {}, {} KiB{}",
                    counted(health.runs, "run"),
                    counted(health.events, "event"),
                    health.bytes / 1024,
                    unchecked(health.unchecked)
                ),
                false => health.problems.join("; "),
            },
            fix: Home::of(project).map_or(String::new(), |home| home.mend()),
        },
        Err(failure) => Finding {
            name: "store".to_owned(),
            good: false,
            needed: true,
            said: format!("{}: {}", failure.what, failure.why),
            fix: failure.fix,
        },
    }
}
