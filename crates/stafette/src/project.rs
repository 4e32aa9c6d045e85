//! The project: the places of its workflow and its state.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use stafette_agents::profile::Library;
use stafette_core::Workflow;
use stafette_core::workflow::check;
use stafette_core::workflow::file;

use crate::exit::{Exit, Failure};

/// The name of the workflow file.
pub(crate) const WORKFLOW: &str = "stafette.toml";

/// A folder with a workflow.
#[derive(Clone, Debug)]
pub(crate) struct Project {
    pub(crate) root: PathBuf,
    /// The database for the runs, if the user named one.
    pub(crate) database: Option<String>,
}

/// A workflow with its hash.
#[derive(Clone, Debug)]
pub(crate) struct Loaded {
    pub(crate) workflow: Workflow,
    /// The hash of everything that would be run; it changes with any of it.
    pub(crate) hash: String,
}

impl Project {
    /// The named folder, or the nearest one above the present one that has a workflow.
    pub(crate) fn find(named: Option<&Path>) -> Result<Project, Failure> {
        let here = match named {
            Some(folder) => folder.to_owned(),
            None => std::env::current_dir()
                .map_err(|error| Failure::failed("This folder cannot be used").because(&error))?,
        };
        let absolute = fs::canonicalize(&here).map_err(|error| {
            Failure::usage(format!("There is no folder {}", here.display())).because(&error)
        })?;
        let above: Vec<&Path> = match named {
            Some(_) => vec![&absolute],
            None => absolute.ancestors().collect(),
        };
        match above.into_iter().find(|folder| folder.join(WORKFLOW).is_file()) {
            Some(root) => Ok(Project { root: root.to_owned(), database: None }),
            None => Err(Failure::usage(format!("There is no {WORKFLOW} here"))
                .why(format!("looked in {} and above", absolute.display()))
                .fix("make one with `stafette init`, or see it all work with `stafette demo`")),
        }
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.root.join(WORKFLOW)
    }

    /// The folder for state; created when it does not exist.
    pub(crate) fn state(&self) -> Result<PathBuf, Failure> {
        let folder = self.root.join(".stafette");
        let make = || -> std::io::Result<()> {
            fs::create_dir_all(folder.join("turns"))?;
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                fs::set_permissions(&folder, fs::Permissions::from_mode(0o700))?;
            }
            // Whatever the project's own .gitignore says, state is never committed.
            let ignore = folder.join(".gitignore");
            if !ignore.exists() {
                fs::write(ignore, "*\n")?;
            }
            Ok(())
        };
        make().map_err(|error| {
            Failure::failed(format!("The folder {} cannot be written", folder.display()))
                .because(&error)
                .fix("Stafette keeps its state there; make sure that it is a folder, and that you may write to it")
        })?;
        Ok(folder)
    }

    pub(crate) fn store(&self) -> PathBuf {
        self.root.join(".stafette/store.db")
    }

    /// The path of the daemon's socket. Socket paths have a short limit, so a deep project gets one
    /// elsewhere.
    pub(crate) fn socket(&self) -> PathBuf {
        let near = self.root.join(".stafette/daemon.sock");
        if near.as_os_str().len() < 100 {
            return near;
        }
        let name = hex(&Sha256::digest(self.root.as_os_str().as_encoded_bytes()))[..24].to_owned();
        let folder = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(shared_folder, PathBuf::from);
        folder.join(format!("stafette-{name}.sock"))
    }

    /// The path of the socket that agents are given, beside the daemon's own.
    pub(crate) fn agents_socket(&self) -> PathBuf {
        self.socket().with_extension("agents")
    }

    /// Creates the folder of a socket that is not in the project.
    pub(crate) fn make_socket_folder(&self) -> std::io::Result<()> {
        use std::os::unix::fs::{DirBuilderExt, MetadataExt};
        let folder = shared_folder();
        if !self.socket().starts_with(&folder) {
            return Ok(());
        }
        match fs::DirBuilder::new().mode(0o700).create(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        // In a folder that every user may write, another user may have been first.
        let found = fs::symlink_metadata(&folder)?;
        let ours = found.is_dir() && found.uid() == user() && found.mode() & 0o077 == 0;
        let why = || format!("{} is not ours alone", folder.display());
        ours.then_some(()).ok_or_else(|| std::io::Error::other(why()))
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
            .map(|diagnostic| file::render(diagnostic, WORKFLOW, &text))
            .collect();
        match source {
            Some(source) if errors.is_empty() => {
                let mut workflow = source.workflow;
                workflow.profiles.extend(texts(&workflow, &library));
                let hash = self.hash(&text, &workflow);
                Ok(Loaded { workflow, hash })
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

    /// The hash of everything that decides what is run: the workflow, and the scripts and profiles
    /// that it names. A built-in profile changes only with the program.
    fn hash(&self, text: &str, workflow: &Workflow) -> String {
        let mut hasher = Sha256::new();
        hasher.update(text.as_bytes());
        for script in workflow.agents.values().filter_map(|agent| agent.script.as_ref()) {
            hasher.update([0]);
            hasher.update(script.as_bytes());
            hasher.update([0]);
            hasher.update(fs::read(self.root.join(script)).unwrap_or_default());
        }
        for (profile, text) in &workflow.profiles {
            hasher.update([1]);
            hasher.update(profile.as_bytes());
            hasher.update([1]);
            hasher.update(text.as_bytes());
        }
        hex(&hasher.finalize())
    }
}

/// The texts of the profiles that the workflow names and that are files. They are kept with it:
/// later changes of those files need trust again before they are run.
fn texts(workflow: &Workflow, library: &Library) -> BTreeMap<String, String> {
    let named = workflow.agents.values().filter_map(|agent| agent.profile.as_ref());
    let text = |name: &String| Some((name.clone(), fs::read_to_string(library.file(name)?).ok()?));
    named.filter_map(text).collect()
}

/// Reads a text file, with an error that names the file.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    fs::read_to_string(path).map_err(|error| {
        Failure::new(Exit::Usage, format!("{} cannot be read", path.display())).because(&error)
    })
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The folder for the sockets of deep projects when the system has none.
fn shared_folder() -> PathBuf {
    std::env::temp_dir().join(format!("stafette-{}", user()))
}

fn user() -> u32 {
    rustix::process::getuid().as_raw()
}

/// The name of the user, for the record.
pub(crate) fn person() -> String {
    std::env::var("USER").unwrap_or_else(|_| "someone".to_owned())
}
