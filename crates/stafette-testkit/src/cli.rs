//! The agents' own command lines, pinned, each with a home of its own that points at a model server.

mod home;
mod install;

use std::path::{Path, PathBuf};
use std::process::Command;

pub use home::HomeError;
pub use install::InstallError;

/// A command line that tests can use.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Cli {
    /// Claude Code.
    Claude,
    /// Codex.
    Codex,
}

impl Cli {
    /// All of them.
    pub const ALL: [Cli; 2] = [Cli::Claude, Cli::Codex];

    /// The name of its program.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Cli::Claude => "claude",
            Cli::Codex => "codex",
        }
    }

    /// The version that everyone uses.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Cli::Claude => "2.1.325",
            Cli::Codex => "0.166.0",
        }
    }

    /// The package and everything that it needs, with the sums of all of it.
    fn manifest(self) -> (&'static str, &'static str) {
        match self {
            Cli::Claude => (
                include_str!("../cli/claude/package.json"),
                include_str!("../cli/claude/package-lock.json"),
            ),
            Cli::Codex => (
                include_str!("../cli/codex/package.json"),
                include_str!("../cli/codex/package-lock.json"),
            ),
        }
    }

    /// The program, installed beside what cargo builds if it is not there yet.
    ///
    /// # Errors
    ///
    /// When npm is missing or cannot do it. What to do is said with it.
    pub fn install(self) -> Result<PathBuf, InstallError> {
        install::program(self)
    }

    /// Makes it ready to work in `project` with the model at `url`: its settings go into `home`,
    /// which may be shared with the others.
    ///
    /// # Errors
    ///
    /// When it cannot be installed, or `home` cannot be written.
    pub fn prepare(self, home: &Path, project: &Path, url: &str) -> Result<Prepared, PrepareError> {
        let program = self.install()?;
        let env = match self {
            Cli::Claude => home::claude(home, project, url)?,
            Cli::Codex => home::codex(home, project, url)?,
        };
        Ok(Prepared { cli: self, program, env })
    }
}

/// Why a command line is not ready.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// It is not installed.
    #[error(transparent)]
    Install(#[from] InstallError),
    /// Its home is not there.
    #[error(transparent)]
    Home(#[from] HomeError),
}

/// A command line that is ready to work.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Prepared {
    /// Which one.
    pub cli: Cli,
    /// Its program.
    pub program: PathBuf,
    /// What it has to see of the environment, besides `PATH` and `HOME`.
    pub env: Vec<(String, String)>,
}

impl Prepared {
    /// The words that start a turn without a terminal: the prompt comes on standard input, the
    /// answer goes to standard output, and nobody is asked for permission.
    #[must_use]
    pub fn headless(&self) -> Vec<String> {
        let words: &[&str] = match self.cli {
            Cli::Claude => &["-p", "--permission-mode", "acceptEdits", "--allowedTools", "Bash"],
            Cli::Codex => &["exec", "--skip-git-repo-check", "-"],
        };
        self.words(words)
    }

    /// The same with a stream of JSON lines on standard output.
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

    /// The words that open it in a terminal. A first prompt may follow them.
    #[must_use]
    pub fn terminal(&self) -> Vec<String> {
        let words: &[&str] = match self.cli {
            // With a blank instead of `=`, the prompt would be taken for one more tool.
            Cli::Claude => &["--permission-mode", "acceptEdits", "--allowedTools=Bash"],
            Cli::Codex => &["--no-alt-screen"],
        };
        self.words(words)
    }

    /// The same as somebody with an account and not with a key: Claude Code tells only them when
    /// their quota is back. Codex tells everyone.
    #[must_use]
    pub fn with_account(mut self) -> Self {
        for (name, _) in &mut self.env {
            if name == "ANTHROPIC_API_KEY" {
                *name = "CLAUDE_CODE_OAUTH_TOKEN".to_owned();
            }
        }
        self
    }

    /// A command of these words with nothing in its environment but what it needs.
    #[must_use]
    pub fn command(&self, words: &[String]) -> Command {
        let mut command = Command::new(words.first().map_or("false", String::as_str));
        command.args(words.iter().skip(1)).env_clear();
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    /// The names of the variables that it has to see, for an allow-list.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        self.env.iter().map(|(name, _)| name.as_str()).collect()
    }

    fn words(&self, words: &[&str]) -> Vec<String> {
        let program = self.program.display().to_string();
        [program].into_iter().chain(words.iter().map(|word| (*word).to_owned())).collect()
    }
}
