//! The agents' own command lines in pinned versions, each with a separate home that points at a
//! model server.

mod home;
pub(crate) mod install;
pub(crate) mod package;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use home::HomeError;
pub use install::InstallError;
use package::Package;

/// A command line that tests can use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cli {
    /// The Claude Code command line.
    Claude,
    /// The Codex command line.
    Codex,
}

impl Cli {
    /// All command lines that tests can use.
    pub const ALL: [Cli; 2] = [Cli::Claude, Cli::Codex];

    /// Returns the name of its program.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.package().name
    }

    /// Returns the pinned version.
    #[must_use]
    pub fn version(self) -> &'static str {
        self.package().version
    }

    fn package(self) -> Package {
        match self {
            Cli::Claude => Package::CLAUDE,
            Cli::Codex => Package::CODEX,
        }
    }

    /// Returns the program, and installs it beside cargo's build output if it is missing.
    ///
    /// # Errors
    ///
    /// If npm is missing or fails. The message says what to do.
    pub fn install(self) -> Result<PathBuf, InstallError> {
        install::program(self.package())
    }

    /// Prepares it to work in `project` with the model at `url`: its settings go into `home`, which
    /// several command lines may share.
    ///
    /// # Errors
    ///
    /// If it cannot be installed, or `home` cannot be written.
    pub fn prepare(self, home: &Path, project: &Path, url: &str) -> Result<Prepared, PrepareError> {
        let program = self.install()?;
        let env = match self {
            Cli::Claude => home::claude(home, project, url)?,
            Cli::Codex => home::codex(home, project, url)?,
        };
        Ok(Prepared { cli: self, program, env })
    }
}

/// The reason why a command line is not ready.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// It could not be installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// Its home could not be written.
    #[error(transparent)]
    Home(#[from] HomeError),
}

/// A command line that is ready to work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prepared {
    /// The kind of command line.
    pub cli: Cli,
    /// The path of its program.
    pub program: PathBuf,
    /// The environment variables that it needs, besides `PATH` and `HOME`.
    pub env: Vec<(String, String)>,
}

impl Prepared {
    /// Returns the arguments that start a turn without a terminal: the prompt comes on standard
    /// input, the answer goes to standard output, and no permission is asked for.
    #[must_use]
    pub fn headless(&self) -> Vec<String> {
        let words: &[&str] = match self.cli {
            Cli::Claude => &["-p", "--permission-mode", "acceptEdits", "--allowedTools", "Bash"],
            Cli::Codex => &["exec", "--skip-git-repo-check", "-"],
        };
        self.words(words)
    }

    /// Returns the same arguments with a stream of JSON lines on standard output.
    #[must_use]
    pub fn streamed(&self) -> Vec<String> {
        let mut words = self.headless();
        match self.cli {
            Cli::Claude => {
                words.extend(["--output-format", "stream-json", "--verbose"].map(str::to_owned))
            }
            Cli::Codex => words.insert(2, "--json".to_owned()),
        }
        words
    }

    /// Returns the arguments that open it in a terminal. A first prompt may follow them.
    #[must_use]
    pub fn terminal(&self) -> Vec<String> {
        let words: &[&str] = match self.cli {
            // With a space instead of `=`, the prompt would be read as one more tool.
            Cli::Claude => &["--permission-mode", "acceptEdits", "--allowedTools=Bash"],
            Cli::Codex => &["--no-alt-screen"],
        };
        self.words(words)
    }

    /// Signs in with an account instead of a key: Claude Code reports only to accounts when their
    /// quota is back. Codex reports it to everyone.
    #[must_use]
    pub fn with_account(mut self) -> Self {
        for (name, _) in &mut self.env {
            if name == "ANTHROPIC_API_KEY" {
                *name = "CLAUDE_CODE_OAUTH_TOKEN".to_owned();
            }
        }
        self
    }

    /// Makes a command of these arguments, with nothing in its environment but what it needs.
    #[must_use]
    pub fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(words.first().map_or("false", String::as_str));
        command.args(words.iter().skip(1)).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Returns the names of the variables that it needs, for an allow-list.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.env.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn words(&self, words: &[&str]) -> Vec<String> {
        let program = self.program.display().to_string();
        [program].into_iter().chain(words.iter().map(|word| (*word).to_owned())).collect()
    }
}
