//! The project: the places of its workflow and its state.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use stafette_agents::profile::Library;
use stafette_core::{Workflow, hex};
use stafette_workflow::check;

use crate::exit::{Exit, Failure};
use crate::state;

/// The name of the workflow file.
pub(crate) const WORKFLOW: &str = "stafette.toml";

/// The largest workflow, script or other text that is read, in bytes.
pub(crate) const LARGEST: u64 = 16 << 20;

/// A folder with a workflow.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    /// The database for the runs, if the user named one.
    pub(crate) database: Option<String>,
}

/// The contents of the scripts that a workflow names, by their paths.
pub(crate) type Scripts = BTreeMap<String, Vec<u8>>;

/// A workflow with its hash. Each of its files was read once.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) workflow: Workflow,
    pub(crate) scripts: Scripts,
    /// The hash of everything that would be run; it changes with any of it.
    pub(crate) hash: String,
}

impl Project {
    /// The named folder, or the nearest one above the present one that has a workflow; `None`
    /// without a workflow.
    pub(crate) fn find(named: Option<&Path>) -> Result<Option<Project>, Failure> {
        state::check_home()?;
        let here = match named {
            Some(folder) => folder.to_owned(),
            None => std::env::current_dir().map_err(|error| no_folder(Path::new("."), &error))?,
        };
        let absolute = fs::canonicalize(&here).map_err(|error| no_folder(&here, &error))?;
        let above: Vec<&Path> = match named {
            Some(_) => vec![&absolute],
            None => absolute.ancestors().collect(),
        };
        let root = above.into_iter().find(|folder| folder.join(WORKFLOW).is_file());
        // The worktree of an agent lies in the state, and may be without the file.
        let root = root.map(Path::to_owned).or_else(|| state::project_of(&absolute));
        Ok(root.map(|root| Project { root, database: None }))
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.root.join(WORKFLOW)
    }

    /// The folder for state; created when it does not exist.
    pub(crate) fn state(&self) -> Result<PathBuf, Failure> {
        state::open(&self.root)
    }

    pub(crate) fn store(&self) -> PathBuf {
        state::place(&self.root).join("store.db")
    }

    /// The daemon's log.
    pub(crate) fn log(&self) -> PathBuf {
        state::place(&self.root).join("daemon.log")
    }

    /// The socket that a daemon of this environment opens.
    pub(crate) fn own_socket(&self) -> PathBuf {
        state::socket(&self.root, "daemon")
    }

    /// The socket that a daemon of this environment opens for agents.
    pub(crate) fn agents_socket(&self) -> PathBuf {
        state::socket(&self.root, "agents")
    }

    /// The socket of the project's daemon, whatever environment it was started in.
    pub(crate) fn socket(&self) -> Result<PathBuf, Failure> {
        state::check(&self.root)?;
        let own = self.own_socket();
        let elsewhere = state::socket_elsewhere(&self.root, &own);
        // The daemon of a folder that was moved since works with paths that are gone, and ends.
        let elsewhere = elsewhere.filter(|_| state::moved::find(&self.root).is_none());
        let socket = elsewhere.unwrap_or(own);
        state::check_socket(&socket).map(|()| socket)
    }

    /// Loads the workflow and checks it. Errors are shown as the checker shows them.
    pub(crate) fn load(&self) -> Result<Loaded, Failure> {
        let path = self.file();
        let text = read(&path)?;
        let library = self.profiles();
        let (source, diagnostics) = check::examine_with(&text, &library.names());
        let errors: Vec<String> = diagnostics
            .iter()
            .filter(|diagnostic| diagnostic.is_error())
            .map(|diagnostic| stafette_config::render(diagnostic, WORKFLOW, &text))
            .collect();
        match source {
            Some(source) if errors.is_empty() => {
                let mut workflow = source.workflow;
                workflow.profiles.extend(texts(&workflow, &library));
                let scripts = self.scripts(&workflow)?;
                let hash = hash(&text, &workflow, &scripts);
                Ok(Loaded { workflow, scripts, hash })
            }
            _ => Err(Failure::usage(format!("{} has mistakes", path.display()))
                .why(format!("\n{}", errors.join("\n")))
                .fix("correct them; `stafette check` looks again")),
        }
    }

    /// The profiles that agents of this project can name.
    pub(crate) fn profiles(&self) -> Library {
        Library::of(Some(&self.root))
    }

    /// Reads the scripts that a workflow names.
    pub(crate) fn scripts(&self, workflow: &Workflow) -> Result<Scripts, Failure> {
        let named = workflow.agents.values().filter_map(|agent| agent.script.as_ref());
        let read = |script: &String| {
            let path = self.root.join(script);
            match stafette_disk::read(&path, LARGEST) {
                // The agent says so when its turn comes.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
                content => content.map_err(|error| unreadable(&path, &error)),
            }
        };
        named.map(|script| Ok((script.clone(), read(script)?))).collect()
    }
}

/// True if a folder lies in a git repository.
pub(crate) fn is_repository(folder: &Path) -> bool {
    repository(folder).is_some()
}

/// The top of the git repository that a folder lies in.
pub(crate) fn repository(folder: &Path) -> Option<&Path> {
    folder.ancestors().find(|folder| folder.join(".git").exists())
}

/// The hash of a workflow that a run keeps, with its scripts.
pub(crate) fn digest(workflow: &Workflow, scripts: &Scripts) -> String {
    let text = serde_json::to_string(workflow).expect("our own types are JSON");
    hash(&text, workflow, scripts)
}

/// The hash of everything that decides what is run: the workflow, and the scripts and profiles that
/// it names. A built-in profile changes only with the program. The files that commands name are held
/// against it by `trust`.
fn hash(text: &str, workflow: &Workflow, scripts: &Scripts) -> String {
    let mut hasher = Sha256::new();
    hasher.update(text.as_bytes());
    for script in workflow.agents.values().filter_map(|agent| agent.script.as_ref()) {
        hasher.update([0]);
        hasher.update(script.as_bytes());
        hasher.update([0]);
        hasher.update(scripts.get(script).map_or(&[][..], Vec::as_slice));
    }
    for (profile, text) in &workflow.profiles {
        hasher.update([1]);
        hasher.update(profile.as_bytes());
        hasher.update([1]);
        hasher.update(text.as_bytes());
    }
    hex::encode(&hasher.finalize())
}

/// The texts of the profiles that the workflow names and that are files. They are kept with it:
/// later changes of those files need trust again before they are run.
fn texts(workflow: &Workflow, library: &Library) -> BTreeMap<String, String> {
    let named = workflow.agents.values().filter_map(|agent| agent.profile.as_ref());
    let read = |name: &String| stafette_disk::read_text(library.file(name)?, LARGEST).ok();
    let text = |name: &String| Some((name.clone(), read(name)?));
    named.filter_map(text).collect()
}

/// Reads a text file, with an error that names the file.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    stafette_disk::read_text(path, LARGEST).map_err(|error| unreadable(path, &error))
}

fn unreadable(path: &Path, error: &std::io::Error) -> Failure {
    let fix = match error.kind() {
        std::io::ErrorKind::NotFound => "name a file that exists",
        _ => "see that it is a text file that you may read",
    };
    Failure::new(Exit::Usage, format!("Cannot read {}", path.display())).because(error).fix(fix)
}

pub(crate) fn no_folder(path: &Path, error: &std::io::Error) -> Failure {
    Failure::usage(format!("Cannot use the folder {}", path.display()))
        .because(error)
        .fix("name a folder that exists, or change to one")
}

pub(crate) fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The name of the user, for the record.
pub(crate) fn person() -> String {
    let named = ["USER", "LOGNAME"].iter().filter_map(|name| std::env::var(name).ok());
    named.into_iter().find(|name| !name.is_empty()).unwrap_or_else(|| format!("user {}", user()))
}
