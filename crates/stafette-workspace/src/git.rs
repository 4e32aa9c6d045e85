//! Runs git: with a clean environment and a time limit, and with its message if it fails.
//!
//! Git obeys the settings of the repository that it works in, and settings name programs. So every
//! call goes through [`command`], git never searches for a repository (see [`Place`]), and what has
//! to be known of one that nobody has trusted is asked with settings of our own (see [`Neutral`]).

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;
use thiserror::Error;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

mod links;
mod pipe;

/// The time after which a command is suspected to wait for a pipe; doubled each time.
const FIRST_LOOK: Duration = Duration::from_secs(2);

/// The time limit of a command. A checkout of a large repository on a slow disk takes minutes.
const PATIENCE: Duration = Duration::from_secs(300);

/// The most that is read of a file that leads to a repository, in bytes.
const LINK_BYTES: u64 = 16 * 1024;

/// The most that is read of a repository's settings, in bytes.
const CONFIG_BYTES: u64 = 1024 * 1024;

/// Variables that would make git read or write something else than intended.
const MISLEADING: [&str; 16] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_CONFIG",
    "GIT_CONFIG_PARAMETERS",
    "GIT_EXTERNAL_DIFF",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_REPLACE_REF_BASE",
    "GIT_SHALLOW_FILE",
];

/// Settings for every command. A repository's own settings can name programs for all of these, and
/// git runs here outside of an agent's sandbox. A folder that only looks like a repository is none.
const SETTINGS: [&str; 21] = [
    "safe.bareRepository=explicit",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.safecrlf=false",
    "core.sshCommand=false",
    "core.gitProxy=false",
    "core.askPass=false",
    "core.alternateRefsCommand=false",
    "core.editor=false",
    "core.pager=cat",
    "credential.helper=",
    "protocol.allow=never",
    "commit.gpgSign=false",
    "tag.gpgSign=false",
    "log.showSignature=false",
    "gpg.program=false",
    "submodule.recurse=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.addEmbeddedRepo=false",
    "uploadpack.packObjectsHook=false",
];

/// Settings for the user's own git.
const USERS_SETTINGS: [&str; 3] =
    ["safe.bareRepository=explicit", "core.hooksPath=/dev/null", "core.fsmonitor=false"];

/// The commands of the user's own git that may ask for a password. None starts others of git that read
/// files of the work tree.
const ASKING: [&str; 2] = ["commit", "push"];

/// Variables for every command. Objects that are missing are not fetched: older versions of git do
/// not know the first of them, and no protocol is allowed to any.
const VARIABLES: [(&str, &str); 9] = [
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_ALLOW_PROTOCOL", "none"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", "false"),
    ("SSH_ASKPASS", "false"),
    ("GIT_SSH_COMMAND", "false"),
    ("GIT_EDITOR", "false"),
    ("GIT_PAGER", "cat"),
    ("LC_ALL", "C"),
];

/// Prepares a call of git, as every one of ours is: it fetches nothing and starts no program that a
/// repository's settings name, but for the filters of files that the call itself reads or writes.
fn command() -> std::process::Command {
    let mut command = std::process::Command::new("git");
    command.args(SETTINGS.iter().flat_map(|setting| ["-c", setting]));
    command.envs(VARIABLES);
    command
}

/// Runs git in a folder whose repository it finds itself, or which the git told it that started this
/// process as a hook. Returns its output.
///
/// # Errors
/// When git does not start, fails, takes too long, or waits for a pipe.
pub async fn run_git<A: AsRef<OsStr>>(
    folder: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<Vec<u8>, GitError> {
    let git = Git::new(folder, arguments);
    let mut process = command();
    process.args(&git.arguments).current_dir(folder);
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let (mut places, tree) = match Place::find(&folder) {
        Ok(Some((place, _))) => (vec![place.own, place.common], place.tree),
        _ => (folder.ancestors().map(|outer| outer.join(".git")).collect(), None),
    };
    let told = ["GIT_DIR", "GIT_INDEX_FILE"].into_iter().filter_map(std::env::var_os);
    places.extend(told.map(|path| folder.join(path)));
    let places = pipe::Places { git: places, tree: tree.unwrap_or(folder) };
    let (line, stdin) = (git.line(), Some(Stdio::null()));
    // Who interrupts this process interrupts it too.
    Watched { process, line, places, stdin, input: Vec::new(), is_apart: false }.output().await
}

/// A git command failed.
#[derive(Debug, Error)]
pub enum GitError {
    /// Git is not installed, or may not be run.
    #[error("`{command}` did not start: {source}")]
    NotStarted { command: String, source: std::io::Error },
    #[error("{} does not lead to a git repository: {why}", path.display())]
    NoRepository { path: PathBuf, why: String },
    #[error("`{command}` was ended after {} seconds", after.as_secs())]
    Slow { command: String, after: Duration },
    #[error("`{command}` waits for {}, which is a pipe or a device: remove it", path.display())]
    Waits { command: String, path: PathBuf },
    #[error(
        "git would write where {} leads, which is a link or too large to be looked through: see who \
         made it, and remove it",
        path.display()
    )]
    Linked { path: PathBuf },
    #[error("`{command}` failed ({status}): {stderr}")]
    Failed { command: String, status: std::process::ExitStatus, stderr: String },
}

/// A repository, given to git explicitly. Git does not search for it: in the folders that it would
/// look into, anybody can have put something that looks like one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The work tree; `None` for the shared part.
    pub(crate) tree: Option<PathBuf>,
    /// The git folder of the work tree: its HEAD and its index.
    pub(crate) own: PathBuf,
    /// The git folder that all work trees share.
    pub(crate) common: PathBuf,
}

impl Place {
    /// Finds the repository of a folder by the nearest `.git`, and the folder's path in it. Git is
    /// not asked, and nothing of the repository is believed. An empty `.git` is nothing.
    pub(crate) fn find(folder: &Path) -> Result<Option<(Place, PathBuf)>, GitError> {
        let none = |path: &Path, why: &str| GitError::NoRepository {
            path: path.to_owned(),
            why: why.to_owned(),
        };
        let real = folder.canonicalize().map_err(|error| none(folder, &error.to_string()))?;
        let is_empty =
            |git: &Path| git.read_dir().is_ok_and(|mut entries| entries.next().is_none());
        let mut tops = real.ancestors().map(|top| (top, top.join(".git")));
        let found = tops.find(|(_, git)| git.symlink_metadata().is_ok() && !is_empty(git));
        let Some((top, git)) = found else { return Ok(None) };
        let (own, common) = match git.is_dir() {
            true if git.join("commondir").symlink_metadata().is_ok() => {
                return Err(none(&git, "it has a `commondir`, which leads elsewhere: remove that"));
            }
            true => (git.clone(), git.clone()),
            false => {
                let own = link(&git, b"gitdir: ").map_err(|why| none(&git, &why))?;
                let common = match own.join("commondir").symlink_metadata() {
                    Ok(_) => link(&own.join("commondir"), b"").map_err(|why| none(&git, &why))?,
                    Err(_) => own.clone(),
                };
                (own, common)
            }
        };
        if !own.join("HEAD").is_file() || !common.join("objects").is_dir() {
            return Err(none(&git, "it has no HEAD or no objects"));
        }
        let inner = real.strip_prefix(top).unwrap_or(Path::new("")).to_owned();
        Ok(Some((Place { tree: Some(top.to_owned()), own, common }, inner)))
    }

    /// Finds the repository of a trusted project, and the project's path in it. Its settings are
    /// obeyed, so git itself has to agree that it belongs to this user.
    pub(crate) async fn open(project: &Path) -> Result<Option<(Place, PathBuf)>, GitError> {
        let Some((place, inner)) = Place::find(project)? else { return Ok(None) };
        let top = place.tree.as_deref().unwrap_or(project);
        let ask = ["rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir"];
        let said = Git::new(top, ask).paths().await?;
        let real = |path: &PathBuf| path.canonicalize().ok();
        let ours = [&place.own, &place.common].map(real);
        if !said.iter().map(real).eq(ours) {
            let why = "git finds another one".to_owned();
            return Err(GitError::NoRepository { path: top.join(".git"), why });
        }
        Ok(Some((place, inner)))
    }

    /// Prepares a command in this repository.
    pub(crate) fn git<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Git {
        let mut git = Git::new(self.tree.as_deref().unwrap_or(&self.common), arguments);
        git.place = Some((self.own.clone(), self.common.clone()));
        git.set("GIT_DIR", &self.own);
        // Also where it is the same: git would believe a file in there that leads elsewhere.
        git.set("GIT_COMMON_DIR", &self.common);
        if let Some(tree) = &self.tree {
            git.set("GIT_WORK_TREE", tree);
        }
        git
    }
}

/// The repository of a trusted project, for the user's own git: with all of the user's settings, so that
/// it can push, and without hooks. Like everywhere, git is told which one it is.
#[derive(Debug)]
pub struct Repository {
    place: Place,
    /// The project's path in it.
    pub inner: PathBuf,
}

impl Repository {
    /// Finds the repository of a project; `None` if it is in none.
    ///
    /// # Errors
    /// When what is there leads to no repository, git does not agree that it is this user's, or links in
    /// it would have git write elsewhere.
    pub async fn open(project: &Path) -> Result<Option<Repository>, GitError> {
        let Some((place, inner)) = Place::open(project).await? else { return Ok(None) };
        not_linked(place.own.clone(), place.common.clone()).await?;
        Ok(Some(Repository { place, inner }))
    }

    /// Runs git, or a program that starts it, at the top of the repository, and returns what it prints. One
    /// that signs or connects can ask the person at the terminal.
    ///
    /// # Errors
    /// When it does not start, fails, takes too long, or waits for a pipe.
    pub async fn run<A: AsRef<OsStr>>(
        &self,
        program: &str,
        arguments: &[A],
        input: &[u8],
    ) -> Result<Vec<u8>, GitError> {
        let mut process = self.command(program);
        process.args(arguments);
        let first =
            arguments.first().map(|word| word.as_ref().to_string_lossy()).unwrap_or_default();
        let line = format!("{program} {first}");
        let Place { tree, own, common } = self.place.clone();
        let tree = tree.unwrap_or_else(|| own.clone());
        let places = pipe::Places { git: vec![own, common], tree };
        let is_apart = program == "git" && !ASKING.contains(&&*first);
        let input = input.to_vec();
        Watched { process, line, places, stdin: None, input, is_apart }.output().await
    }

    fn command(&self, program: &str) -> std::process::Command {
        let mut command = std::process::Command::new(program);
        for name in MISLEADING {
            command.env_remove(name);
        }
        command.env("GIT_DIR", &self.place.own).env("GIT_COMMON_DIR", &self.place.common);
        if let Some(tree) = &self.place.tree {
            command.env("GIT_WORK_TREE", tree).current_dir(tree);
        }
        for (at, setting) in USERS_SETTINGS.iter().enumerate() {
            let (name, value) = setting.split_once('=').unwrap_or((setting, ""));
            command.env(format!("GIT_CONFIG_KEY_{at}"), name);
            command.env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        command.env("GIT_CONFIG_COUNT", USERS_SETTINGS.len().to_string());
        command
    }
}

/// Checks that git writes in a repository and nowhere else: agents without a worktree can write in
/// the project's own.
async fn not_linked(own: PathBuf, common: PathBuf) -> Result<(), GitError> {
    let found = tokio::task::spawn_blocking(move || links::find(&own, &common)).await;
    match found.unwrap_or_else(|_| Some(PathBuf::from(".git"))) {
        Some(path) => Err(GitError::Linked { path }),
        None => Ok(()),
    }
}

/// Reads a file that leads to a folder, from its own.
fn link(file: &Path, mark: &[u8]) -> Result<PathBuf, String> {
    let text = stafette_disk::read(file, LINK_BYTES).map_err(|error| error.to_string())?;
    let path = text.strip_prefix(mark).ok_or("it is no link to one")?;
    let path = path.strip_suffix(b"\n").unwrap_or(path);
    let folder = file.parent().unwrap_or(Path::new("/"));
    folder.join(OsStr::from_bytes(path)).canonicalize().map_err(|error| error.to_string())
}

/// A repository of our own around the files and objects of another, whose settings it does not
/// have: nothing that they name is started.
#[derive(Debug)]
pub(crate) struct Neutral {
    folder: TempDir,
    tree: PathBuf,
}

impl Neutral {
    /// Makes one around the files, the index and the objects of a repository.
    pub(crate) fn of(place: &Place) -> io::Result<Neutral> {
        let neutral = Neutral::alone(place)?;
        let at = |name: &str| neutral.path().join(name);
        let known = place.common.join("objects");
        std::fs::write(at("objects/info/alternates"), known.as_os_str().as_bytes())?;
        // What the user ignores here alone is no settings, and no work either.
        if let Ok(ignored) = stafette_disk::read(&place.common.join("info/exclude"), CONFIG_BYTES) {
            std::fs::write(at("info/exclude"), ignored)?;
        }
        // A split index has its other part beside it.
        for entry in place.own.read_dir()?.flatten() {
            let name = entry.file_name();
            if name.as_bytes().starts_with(b"sharedindex.") {
                std::os::unix::fs::symlink(entry.path(), neutral.path().join(name))?;
            }
        }
        Ok(neutral)
    }

    /// Makes one for objects of the same kind as those of a repository, without any of them.
    pub(crate) fn alone(place: &Place) -> io::Result<Neutral> {
        let folder = tempfile::tempdir()?;
        let at = |name: &str| folder.path().join(name);
        for inner in ["objects/info", "refs", "info"] {
            std::fs::create_dir_all(at(inner))?;
        }
        std::fs::write(at("HEAD"), "ref: refs/heads/none\n")?;
        let config = stafette_disk::read(&place.common.join("config"), CONFIG_BYTES);
        let config = String::from_utf8_lossy(&config.unwrap_or_default()).to_ascii_lowercase();
        let is_long = |line: &str| line.contains("objectformat") && line.contains("sha256");
        let format = match config.lines().any(is_long) {
            true => "[core]\nrepositoryFormatVersion = 1\n[extensions]\nobjectFormat = sha256\n",
            false => "[core]\nrepositoryFormatVersion = 0\n",
        };
        std::fs::write(at("config"), format)?;
        let tree = place.tree.clone().unwrap_or_else(|| place.common.clone());
        Ok(Neutral { folder, tree })
    }

    /// Returns its git folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Prepares a command in `folder` of the work tree.
    pub(crate) fn git<A: AsRef<OsStr>>(
        &self,
        folder: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> Git {
        let mut git = Git::new(folder, arguments);
        git.set("GIT_DIR", self.folder.path());
        git.set("GIT_COMMON_DIR", self.folder.path());
        git.set("GIT_WORK_TREE", &self.tree);
        git.set("GIT_CONFIG_NOSYSTEM", "1");
        git.set("GIT_CONFIG_GLOBAL", "/dev/null");
        git.set("GIT_ATTR_NOSYSTEM", "1");
        git
    }
}

/// One git command, to be run.
#[derive(Debug)]
pub(crate) struct Git {
    folder: PathBuf,
    arguments: Vec<OsString>,
    variables: Vec<(&'static str, OsString)>,
    /// The git folders of the repository that it works in, own and shared, unless it is one of ours.
    place: Option<(PathBuf, PathBuf)>,
    input: Vec<u8>,
    file: Option<File>,
}

impl Git {
    /// Prepares a command in a folder.
    fn new<A: AsRef<OsStr>>(folder: &Path, arguments: impl IntoIterator<Item = A>) -> Git {
        let arguments = arguments.into_iter().map(|argument| argument.as_ref().to_owned());
        Git {
            folder: folder.to_owned(),
            arguments: arguments.collect(),
            variables: Vec::new(),
            place: None,
            input: Vec::new(),
            file: None,
        }
    }

    fn set(&mut self, name: &'static str, value: impl AsRef<OsStr>) {
        self.variables.push((name, value.as_ref().to_owned()));
    }

    /// Uses a separate index: the existing one keeps what is staged in it.
    pub(crate) fn index(mut self, index: &Path) -> Git {
        self.set("GIT_INDEX_FILE", index);
        self
    }

    /// Commits in the name of Stafette, for commits that have no other author.
    pub(crate) fn in_our_name(mut self) -> Git {
        for name in ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"] {
            self.set(name, "Stafette");
        }
        for name in ["GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"] {
            self.set(name, "stafette@localhost");
        }
        self
    }

    /// Takes paths literally, without patterns.
    pub(crate) fn literally(mut self) -> Git {
        self.set("GIT_LITERAL_PATHSPECS", "1");
        self
    }

    /// Passes this on standard input.
    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Git {
        self.input = input.into();
        self
    }

    /// Passes a file on standard input.
    pub(crate) fn reading(mut self, file: File) -> Git {
        self.file = Some(file);
        self
    }

    /// Returns the command line for messages.
    fn line(&self) -> String {
        let words = self.arguments.iter().map(|word| word.to_string_lossy().into_owned());
        std::iter::once("git".to_owned()).chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Returns the process to start.
    fn process(&self) -> std::process::Command {
        let mut process = command();
        for name in MISLEADING {
            process.env_remove(name);
        }
        process.args(["-c", "core.hooksPath=/dev/null"]);
        process.args(&self.arguments).current_dir(&self.folder);
        process.env("GIT_OPTIONAL_LOCKS", "0");
        process.envs(self.variables.iter().map(|(name, value)| (name, value)));
        process
    }

    /// Returns its output, or the reason why it failed.
    pub(crate) async fn bytes(mut self) -> Result<Vec<u8>, GitError> {
        let name = self.arguments.first().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some((own, common)) = self.place.take_if(|_| links::writes(name)) {
            not_linked(own, common).await?;
        }
        let (process, line, places) = (self.process(), self.line(), self.places());
        let stdin = self.file.take().map(Stdio::from);
        let input = std::mem::take(&mut self.input);
        Watched { process, line, places, stdin, input, is_apart: true }.output().await
    }

    /// Returns where this command reads files of a repository.
    fn places(&self) -> pipe::Places {
        let variable = |wanted: &str| {
            let mut all = self.variables.iter();
            all.find(|(name, _)| *name == wanted).map(|(_, value)| PathBuf::from(value))
        };
        let tree = variable("GIT_WORK_TREE").unwrap_or_else(|| self.folder.clone());
        let git = ["GIT_DIR", "GIT_COMMON_DIR", "GIT_INDEX_FILE"].map(variable);
        let mut git: Vec<PathBuf> = git.into_iter().flatten().collect();
        if git.is_empty() {
            git.push(tree.join(".git"));
        }
        pipe::Places { git, tree }
    }

    /// Returns its output as one text.
    pub(crate) async fn text(self) -> Result<String, GitError> {
        Ok(String::from_utf8_lossy(&self.bytes().await?).trim_end().to_owned())
    }

    /// Returns its output as paths, one per line.
    pub(crate) async fn paths(self) -> Result<Vec<PathBuf>, GitError> {
        let bytes = self.bytes().await?;
        let lines = bytes.strip_suffix(b"\n").unwrap_or(&bytes).split(|byte| *byte == b'\n');
        Ok(lines.map(|line| PathBuf::from(OsString::from_vec(line.to_vec()))).collect())
    }

    /// Returns its output, or `None` if it exits with status 1.
    pub(crate) async fn answer(self) -> Result<Option<String>, GitError> {
        match self.text().await {
            Ok(text) => Ok(Some(text)),
            Err(GitError::Failed { status, .. }) if status.code() == Some(1) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Checks only that it succeeds.
    pub(crate) async fn run(self) -> Result<(), GitError> {
        self.bytes().await.map(drop)
    }
}

/// A program that reads a repository, and is ended where it would not end.
struct Watched {
    process: std::process::Command,
    /// The command line for messages.
    line: String,
    places: pipe::Places,
    /// The standard input; `None` for `input`.
    stdin: Option<Stdio>,
    input: Vec<u8>,
    /// True if it gets a process group of its own, and so cannot ask the person at the terminal.
    is_apart: bool,
}

impl Watched {
    /// Returns its output, or the reason why it failed.
    async fn output(mut self) -> Result<Vec<u8>, GitError> {
        if self.is_apart {
            self.process.process_group(0);
        }
        let mut command = Command::from(self.process);
        command.stdin(self.stdin.unwrap_or_else(Stdio::piped)).kill_on_drop(true);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let line = self.line;
        let not_started = |source| GitError::NotStarted { command: line.clone(), source };
        let mut child = command.spawn().map_err(not_started)?;
        let id = child.id().filter(|_| self.is_apart);
        let group = id.and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
        let stdin = child.stdin.take();
        let work = async move {
            let feed = async move {
                if let Some(mut stdin) = stdin {
                    // A command that does not read its input reports its own error.
                    let _ = stdin.write_all(&self.input).await;
                }
            };
            tokio::join!(child.wait_with_output(), feed).0
        };
        let output = tokio::select! {
            output = work => output.map_err(not_started)?,
            error = is_stuck(&line, self.places) => {
                // Its filters are separate processes and would keep running.
                if let Some(group) = group {
                    let _ = kill_process_group(group, Signal::KILL);
                }
                return Err(error);
            }
        };
        if output.status.success() {
            return Ok(output.stdout);
        }
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        Err(GitError::Failed { command: line, status: output.status, stderr })
    }
}

/// Waits until a command takes too long, or has taken a while and meets a pipe, which it would wait
/// for all the time. Agents can put one in the place of a file at any moment.
async fn is_stuck(line: &str, places: pipe::Places) -> GitError {
    let places = Arc::new(places);
    let begin = Instant::now();
    let mut pause = FIRST_LOOK;
    while begin.elapsed() + pause < PATIENCE {
        tokio::time::sleep(pause).await;
        pause *= 2;
        let places = places.clone();
        let found = tokio::task::spawn_blocking(move || pipe::find(&places)).await;
        if let Ok(Some(path)) = found {
            return GitError::Waits { command: line.to_owned(), path };
        }
    }
    tokio::time::sleep(PATIENCE.saturating_sub(begin.elapsed())).await;
    GitError::Slow { command: line.to_owned(), after: PATIENCE }
}
