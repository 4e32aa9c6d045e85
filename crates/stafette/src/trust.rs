//! A workflow from a repository does nothing before its user has seen what it can do.
//!
//! What was trusted is kept: the hash of the workflow with its scripts and profiles, the hashes of
//! the files that its commands name, and its powers, so that the next look shows what changed.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_agents::profile::Profile;
use stafette_agents::scripted::{Script, Step};
use stafette_core::Workflow;
use stafette_core::command::{self, Mention, Role};
use stafette_core::hex;
use stafette_core::power::{self, Danger, Kind, Power};
use stafette_core::workflow::Agent;
use stafette_workflow::powers;

use crate::exit::{Exit, Failure};
use crate::project::{Loaded, Project, Scripts, digest};
use crate::state;

/// The largest file that a command may name, in bytes.
const LARGEST: u64 = 64 << 20;

/// The maximum number of files in a folder that a command runs from.
const MOST_LOOKED_UP: usize = 512;

/// The most that is read of a script for what it runs further, in bytes.
const SCRIPT: u64 = 1 << 20;

/// The largest total of the files that commands name, in bytes.
const TOTAL: u64 = 256 << 20;

/// The largest list of what is trusted, in bytes.
const LIST: u64 = 64 << 20;

/// Everything that a workflow can do, with the files that its commands name.
#[derive(Clone, Debug)]
pub(crate) struct Inspected {
    pub(crate) powers: Vec<Shown>,
    /// The hash of each file that a command names, by its path in the project.
    files: BTreeMap<String, String>,
    /// The files that agents' scripts run. They may come into being by the agents' work.
    scripted: BTreeMap<String, String>,
}

impl Inspected {
    /// The paths of the files that commands name.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &String> {
        self.files.keys().chain(self.scripted.keys())
    }
}

/// A power, and the files that it names.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Shown {
    #[serde(flatten)]
    pub(crate) power: Power,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) files: Vec<Named>,
}

/// A file that a command names.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Named {
    pub(crate) path: String,
    /// The hash of its content; `None` for what is not a regular file.
    pub(crate) sha256: Option<String>,
}

impl Shown {
    /// The power in one line, for comparing.
    fn line(&self) -> String {
        let Power { kind, place, text, .. } = &self.power;
        format!("{}: {place}: {text}", kind.heading())
    }
}

/// What a user trusted in one folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Grant {
    hash: String,
    folder: Option<String>,
    #[serde(default)]
    files: BTreeMap<String, String>,
    #[serde(default)]
    powers: Vec<String>,
}

/// What differs from what was trusted last.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Difference {
    pub(crate) added: Vec<String>,
    pub(crate) removed: Vec<String>,
    /// The files whose content is another one.
    pub(crate) files: Vec<String>,
}

/// True if the user has trusted exactly this workflow in exactly this folder, and the files that
/// its commands name are the same.
pub(crate) fn is_trusted(project: &Project, loaded: &Loaded) -> bool {
    check(project, loaded).is_ok()
}

/// Checks that the user has trusted exactly this workflow in exactly this folder. Returns what was
/// found trusted, for those who remember it: a file that is read again may be another one.
pub(crate) fn check(project: &Project, loaded: &Loaded) -> Result<Inspected, Failure> {
    let now = inspect(project, &loaded.workflow, &loaded.scripts)?;
    let file = project.file();
    let why = match grant(project).map(|grant| (changed(&grant, &now), grant.hash)) {
        None => format!("nobody has allowed yet what {} can do", file.display()),
        Some((changed, hash)) if changed.is_empty() && hash == loaded.hash => return Ok(now),
        Some((changed, _)) if changed.is_empty() => {
            format!("{}, or a script or profile of it, has changed", file.display())
        }
        Some((changed, _)) => {
            format!("it runs or reads {}, which has changed", changed.join(" and "))
        }
    };
    Err(Failure::new(Exit::Usage, "This workflow is not trusted yet")
        .why(why)
        .fix("look at what it can do, and allow it, with `stafette trust`"))
}

/// A workflow that a run keeps, and the files that its commands name.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Kept {
    /// The folder in which it was trusted, and its path: a state can be moved, trust is not.
    at: String,
    /// The hash of the workflow with its scripts and profiles.
    pub(crate) workflow: String,
    /// The hash of each file, by its path.
    files: BTreeMap<String, String>,
}

impl Kept {
    /// The workflow, its scripts and the files that it names, as they were read.
    pub(crate) fn new(
        project: &Project,
        workflow: &Workflow,
        scripts: &Scripts,
        inspected: Inspected,
    ) -> Self {
        Kept { at: at(project), workflow: digest(workflow, scripts), files: inspected.files }
    }

    /// True if it was trusted in this very folder, at the path that it has now.
    pub(crate) fn is_of(&self, project: &Project) -> bool {
        self.at == at(project)
    }

    /// The first of these files that is another one.
    pub(crate) fn changed(&self, files: &BTreeMap<String, String>) -> Option<String> {
        let mut files = files.iter();
        files
            .find(|(path, hash)| self.files.get(*path) != Some(*hash))
            .map(|(path, _)| path.clone())
    }
}

/// A workflow that a run keeps, with all files that it names as they are now.
pub(crate) fn kept(project: &Project, workflow: &Workflow) -> Result<Kept, Failure> {
    let scripts = project.scripts(workflow)?;
    let inspected = inspect(project, workflow, &scripts)?;
    Ok(Kept::new(project, workflow, &scripts, inspected))
}

/// The hashes of the files that one command names, in the folder that it starts in.
pub(crate) fn files(
    project: &Project,
    workflow: &Workflow,
    command: &[String],
    folder: &Path,
) -> Result<BTreeMap<String, String>, Failure> {
    let named = Finder::new(project, workflow, folder).files(command)?;
    Ok(named.iter().map(Named::entry).collect())
}

/// Trusts the workflow as it was shown: what has changed since is not trusted.
pub(crate) fn trust(project: &Project, loaded: &Loaded, shown: &Inspected) -> Result<(), Failure> {
    let powers = shown.powers.iter().map(Shown::line).collect();
    let files = shown.files.clone().into_iter().chain(shown.scripted.clone()).collect();
    let grant = Grant { hash: loaded.hash.clone(), folder: folder(project), files, powers };
    let grant = serde_json::to_value(grant).expect("our own types are JSON");
    change(|all| drop(all.insert(name(project), grant)))
}

/// Ends the trust in this folder.
pub(crate) fn end(project: &Project) -> Result<(), Failure> {
    change(|all| drop(all.remove(&name(project))))
}

fn change(change: impl FnOnce(&mut BTreeMap<String, Value>)) -> Result<(), Failure> {
    let (path, mut all) = (path(), read());
    change(&mut all);
    let text = serde_json::to_string_pretty(&all).expect("our own types are JSON");
    stafette_disk::replace(&path, text).map_err(|error| state::not_written(&path, &error))
}

/// The folder itself, whatever lies at its path later.
fn folder(project: &Project) -> Option<String> {
    let found = std::fs::metadata(&project.root).ok()?;
    Some(format!("{}:{}", found.dev(), found.ino()))
}

/// The folder and its path.
fn at(project: &Project) -> String {
    format!("{} {}", folder(project).unwrap_or_default(), name(project))
}

/// True if the user has trusted a workflow in this folder, be it this one or another.
pub(crate) fn has_grant(project: &Project) -> bool {
    grant(project).is_some()
}

/// Says which file is gone that an agent's command named when it was trusted, or that its script is
/// in, if one is.
pub(crate) fn gone(project: &Project, loaded: &Loaded) -> Option<String> {
    let files = grant(project).map(|grant| grant.files).unwrap_or_default();
    let named = loaded.workflow.agents.values().flat_map(|agent| {
        let words = agent.command.iter().filter(|word| files.contains_key(*word));
        agent.script.iter().chain(words)
    });
    let lost = named.into_iter().find(|path| !project.root.join(path).exists())?;
    Some(format!("{lost} is gone, which its agents run or read"))
}

/// What differs from what was trusted last; `None` if nothing was.
pub(crate) fn difference(project: &Project, now: &Inspected) -> Option<Difference> {
    let grant = grant(project)?;
    let lines: Vec<String> = now.powers.iter().map(Shown::line).collect();
    let missing = |from: &[String], there: &[String]| -> Vec<String> {
        from.iter().filter(|line| !there.contains(line)).cloned().collect()
    };
    Some(Difference {
        added: missing(&lines, &grant.powers),
        removed: missing(&grant.powers, &lines),
        files: changed(&grant, now),
    })
}

/// The files that are not what they were when the user trusted them. One that is gone runs nothing.
fn changed(grant: &Grant, now: &Inspected) -> Vec<String> {
    let other = |(path, hash): &(&String, &String)| grant.files.get(*path) != Some(*hash);
    let known = |(path, _): &(&String, &String)| grant.files.contains_key(*path);
    let scripted = now.scripted.iter().filter(known).filter(other);
    now.files.iter().filter(other).chain(scripted).map(|(path, _)| path.clone()).collect()
}

/// Lists everything that the workflow can do, with the scripts and profiles that were read with it.
pub(crate) fn inspect(
    project: &Project,
    workflow: &Workflow,
    scripts: &Scripts,
) -> Result<Inspected, Failure> {
    let library = project.profiles();
    let read = |name: &str| Profile::parse(workflow.profiles.get(name)?).ok();
    let profile = |name: &str, agent: &Agent| {
        let profile = read(name).or_else(|| library.get(name).cloned())?;
        profile.words_of(agent)
    };
    let mut found = Finder::new(project, workflow, &project.root);
    let mut powers = powers::powers(workflow, &profile);
    for (name, text) in &workflow.profiles {
        let place = format!("profile {name}");
        if let Some(file) = library.file(name) {
            let inside = file.strip_prefix(&project.root).unwrap_or(file);
            powers.push(Power::path(place.clone(), &inside.to_string_lossy()));
        }
        powers.extend(Profile::parse(text).iter().flat_map(|profile| profile.powers(&place)));
    }
    let mut inspected =
        Inspected { powers: Vec::new(), files: BTreeMap::new(), scripted: BTreeMap::new() };
    let read = workflow.read_files();
    for mut power in powers {
        inspected.files.extend(found.follow_links(&mut power));
        let mut files = found.files(&power.command)?;
        // Scripts are part of the workflow's own hash.
        let is_read = |path: &&String| read.contains(path) && !scripts.contains_key(*path);
        if let Some(path) = power.path.as_ref().filter(is_read) {
            files.extend(found.named(path)?);
        }
        found.mark_files(&mut power, &files);
        if files.iter().any(|file| file.sha256.is_none()) {
            mark(&mut power, Danger::Irregular);
        }
        if std::mem::take(&mut found.is_over) {
            mark(&mut power, Danger::Computed);
        }
        found.mark_scripts(&mut power);
        inspected.files.extend(files.iter().map(Named::entry));
        inspected.powers.push(Shown { power, files });
    }
    for (name, agent) in &workflow.agents {
        let Some(file) = agent.script.as_ref() else { continue };
        let text = scripts.get(file).map(|script| String::from_utf8_lossy(script));
        let Some(Ok(script)) = text.map(|text| Script::parse(&text)) else { continue };
        if let Some(ledger) = &script.ledger {
            let path = Path::new(file).with_file_name("").join(ledger);
            let mut power = Power::path(format!("agents.{name}.script"), &path.to_string_lossy());
            inspected.files.extend(found.follow_links(&mut power));
            inspected.powers.push(Shown { power, files: Vec::new() });
        }
        for step in script.turns.iter().flat_map(|turn| &turn.steps) {
            let Step::Run { command, .. } = step else { continue };
            let words = ["sh", "-c", command].map(str::to_owned).to_vec();
            let mut power = Power::command(format!("agents.{name}.script"), words);
            let files = found.files(&power.command)?;
            found.mark_scripts(&mut power);
            inspected.scripted.extend(files.iter().map(Named::entry));
            inspected.powers.push(Shown { power, files });
        }
    }
    inspected.powers.sort_by_key(|shown| shown.power.kind);
    Ok(inspected)
}

impl Named {
    /// What is trusted of it. What is no regular file any more is another one.
    fn entry(&self) -> (String, String) {
        let content = self.sha256.clone().unwrap_or_else(|| "not a regular file".to_owned());
        (self.path.clone(), content)
    }
}

/// Finds the files that commands name.
struct Finder<'a> {
    project: &'a Project,
    /// The folder that commands start in.
    folder: &'a Path,
    /// The team's own program, which a trusted command builds anew.
    own: Option<&'a String>,
    total: u64,
    /// True if a folder that a command runs from is too large to be checked.
    is_over: bool,
}

impl<'a> Finder<'a> {
    fn new(project: &'a Project, workflow: &'a Workflow, folder: &'a Path) -> Self {
        let own = workflow.own.as_ref().map(|own| &own.program);
        Finder { project, folder, own, total: 0, is_over: false }
    }

    fn files(&mut self, command: &[String]) -> Result<Vec<Named>, Failure> {
        let mut files = Vec::new();
        for word in command::contents(command) {
            files.extend(self.named(&word)?);
        }
        for word in command::lookups(command) {
            let path = self.folder.join(&word);
            let real = |path: &Path| std::fs::canonicalize(path).ok();
            let (Some(here), Some(around)) = (real(self.folder), path.parent().and_then(real))
            else {
                continue;
            };
            // The project itself is no folder to run from: the command is marked instead.
            let is_whole = real(&path).is_some_and(|path| here.starts_with(path));
            if path.is_file() || is_whole || !around.starts_with(&here) {
                continue;
            }
            let mut found = self.looked_up(&path);
            found.sort();
            for inner in found {
                let name = inner.strip_prefix(self.folder).unwrap_or(&inner);
                let name = name.to_string_lossy().into_owned();
                if !files.iter().any(|file| file.path == name) {
                    let sha256 = Some(self.hash(&inner)?);
                    files.push(Named { path: name, sha256 });
                }
            }
        }
        Ok(files)
    }

    /// The path of a file of the project that a command names; `None` for what is none.
    fn found(&self, word: &String) -> Option<PathBuf> {
        let path = self.folder.join(word);
        let ours = Path::new(word).is_relative() || path.starts_with(&self.project.root);
        (ours && self.own != Some(word) && path.exists() && !path.is_dir()).then_some(path)
    }

    /// Marks a command with a script that runs further files, or what cannot be told.
    fn mark_scripts(&self, power: &mut Power) {
        let is_run = |file: &Mention| file.role == Role::Runs && !file.computed;
        let runs_further = |file: &Mention| {
            let read = stafette_disk::open(&self.found(&file.path)?, u64::MAX).and_then(|file| {
                let mut text = Vec::new();
                file.take(SCRIPT).read_to_end(&mut text).map(|_| text)
            });
            let text = read.ok()?;
            let script = command::script(&text, file.is_script)?;
            let mut further = script.files.iter().filter(|file| is_run(file));
            Some(
                script.runs_computed
                    || text.len() as u64 == SCRIPT
                    || further.any(|file| self.found(&file.path).is_some()),
            )
        };
        let files = command::mentions(&power.command).files;
        if files.iter().filter(|file| is_run(file)).any(|file| runs_further(file) == Some(true)) {
            mark(power, Danger::Further);
        }
    }

    /// Reads a file by the path that the workflow has for it; `None` for what is no file of the project.
    fn named(&mut self, word: &String) -> Result<Option<Named>, Failure> {
        let Some(path) = self.found(word) else { return Ok(None) };
        let sha256 = match stafette_disk::is_regular(&path) {
            true => Some(self.hash(&path)?),
            false => None,
        };
        Ok(Some(Named { path: word.clone(), sha256 }))
    }

    /// Lists the files that a program can find by the name of a folder, or of a file without its
    /// ending.
    fn looked_up(&mut self, path: &Path) -> Vec<PathBuf> {
        let entries = |folder: &Path| std::fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found = Vec::new();
        if !path.is_dir() {
            let siblings = path.parent().into_iter().flat_map(entries).map(|entry| entry.path());
            let is_it = |it: &PathBuf| it.file_stem() == path.file_name() && it.is_file();
            found.extend(siblings.filter(is_it).filter(|it| stafette_disk::is_regular(it)));
            return found;
        }
        let mut folders = vec![path.to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in entries(&folder) {
                let (path, kind) = (entry.path(), entry.file_type());
                match kind {
                    // Python makes them anew from what is checked.
                    Ok(kind) if kind.is_dir() && entry.file_name() == "__pycache__" => {}
                    Ok(kind) if kind.is_dir() => folders.push(path),
                    _ if found.len() < MOST_LOOKED_UP && stafette_disk::is_regular(&path) => {
                        found.push(path);
                    }
                    _ => self.is_over = true,
                }
            }
            if found.len() == MOST_LOOKED_UP || folders.len() > MOST_LOOKED_UP {
                self.is_over = true;
                break;
            }
        }
        found
    }

    fn hash(&mut self, path: &Path) -> Result<String, Failure> {
        let limit = LARGEST.min(TOTAL.saturating_sub(self.total));
        let (hash, length) = stafette_disk::hash(path, limit).map_err(|error| {
            Failure::usage(format!("{} cannot be checked", path.display()))
                .because(&error)
                .fix("a command names it: name a smaller file, or one outside of the project")
        })?;
        self.total += length;
        Ok(hex::encode(&hash))
    }

    /// A path can also lead elsewhere by a link, which is shown, and is a part of what is trusted.
    fn follow_links(&self, power: &mut Power) -> Option<(String, String)> {
        let path = power.path.clone()?;
        let leads = std::fs::canonicalize(self.project.root.join(&path)).ok()?;
        if self.is_outside(&leads) {
            mark(power, Danger::Outside);
        }
        if leads == self.project.root.join(&path) {
            return None;
        }
        let leads = leads.to_string_lossy().into_owned();
        power.text = format!("{} → {}", power.text, power::word(&leads));
        Some((format!("{path} →"), leads))
    }

    fn mark_files(&self, power: &mut Power, files: &[Named]) {
        let leads = |file: &Named| std::fs::canonicalize(self.folder.join(&file.path)).ok();
        if files.iter().filter_map(leads).any(|path| self.is_outside(&path)) {
            mark(power, Danger::Outside);
        }
    }

    fn is_outside(&self, path: &Path) -> bool {
        !path.starts_with(&self.project.root)
    }
}

fn mark(power: &mut Power, danger: Danger) {
    if !power.dangers.contains(&danger) {
        power.dangers.push(danger);
    }
}

/// The number of powers that should be looked at twice.
pub(crate) fn dangers(inspected: &Inspected) -> usize {
    inspected.powers.iter().filter(|shown| !shown.power.dangers.is_empty()).count()
}

/// The kinds of powers that there are, in order.
pub(crate) fn kinds(inspected: &Inspected) -> Vec<Kind> {
    let mut kinds: Vec<Kind> = inspected.powers.iter().map(|shown| shown.power.kind).collect();
    kinds.dedup();
    kinds
}

fn name(project: &Project) -> String {
    project.root.to_string_lossy().into_owned()
}

/// What was trusted in this folder. The entries of older releases trust nothing: they did not cover
/// the files that commands name, or the folder.
fn grant(project: &Project) -> Option<Grant> {
    let grant: Grant = serde_json::from_value(read().remove(&name(project))?).ok()?;
    (grant.folder.is_some() && grant.folder == folder(project)).then_some(grant)
}

fn read() -> BTreeMap<String, Value> {
    let text = stafette_disk::read_text(&path(), LIST).unwrap_or_default();
    // A damaged file trusts nothing, which is safe; the next `trust` writes it anew.
    serde_json::from_str(&text).unwrap_or_default()
}

fn path() -> PathBuf {
    state::home().join("trust.json")
}
