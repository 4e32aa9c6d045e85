//! Installs a command line once, even if several tests ask for it.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error;

use super::Cli;
use crate::tools;

/// The reason why a command line could not be installed.
#[derive(Debug, Error)]
pub enum InstallError {
    /// Node.js or npm is missing.
    #[error(
        "{name} {version} needs Node.js and npm: install them (`apt-get install nodejs npm`, \
         `brew install node`, or nodejs.org) and try again"
    )]
    NoNode {
        /// The name of the command line.
        name: &'static str,
        /// The pinned version of it.
        version: &'static str,
    },
    /// The installation with npm failed.
    #[error(
        "npm could not install {name} {version} into {}: {message}; it needs the npm registry and \
         about 500 MB once, and nothing afterwards",
        folder.display()
    )]
    Npm {
        /// The name of the command line.
        name: &'static str,
        /// The pinned version of it.
        version: &'static str,
        /// The folder to install into.
        folder: PathBuf,
        /// The first error message of npm.
        message: String,
    },
    /// The installed program reports another version.
    #[error(
        "{} says `{said}` instead of {version}: if npm leaves out install scripts or optional \
         packages, allow them, remove the folder and try again",
        program.display()
    )]
    Wrong {
        /// The path of the program.
        program: PathBuf,
        /// The output when asked for its version.
        said: String,
        /// The version that was expected.
        version: &'static str,
    },
    /// The installation folder cannot be used.
    #[error("{} cannot be used: {source}", path.display())]
    Folder {
        /// The path in question.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

/// Returns the program of a command line, and installs it if it is missing.
pub(super) fn program(cli: Cli) -> Result<PathBuf, InstallError> {
    install(cli, &tools::cache().join("cli"))
}

fn install(cli: Cli, cache: &Path) -> Result<PathBuf, InstallError> {
    let unusable = |path: &Path| {
        let path = path.to_owned();
        move |source| InstallError::Folder { path, source }
    };
    let folder = cache.join(format!("{}-{}", cli.name(), cli.version()));
    let inside = Path::new("node_modules/.bin").join(cli.name());
    // A folder gets its name only when it is complete and was tried.
    if folder.is_dir() {
        return Ok(folder.join(inside));
    }
    fs::create_dir_all(cache).map_err(unusable(cache))?;
    let lock = cache.join(format!("{}.lock", cli.name()));
    let file = File::create(&lock).map_err(unusable(&lock))?;
    file.lock().map_err(unusable(&lock))?;
    if folder.is_dir() {
        return Ok(folder.join(inside));
    }
    // An earlier process has ended, and no other one is installing.
    let making = cache.join(format!("{}-{}.making", cli.name(), cli.version()));
    if making.exists() {
        fs::remove_dir_all(&making).map_err(unusable(&making))?;
    }
    fs::create_dir_all(&making).map_err(unusable(&making))?;
    let (package, sums) = cli.manifest();
    for (name, text) in [("package.json", package), ("package-lock.json", sums)] {
        let path = making.join(name);
        fs::write(&path, text).map_err(unusable(&path))?;
    }
    fetch(cli, &making)?;
    check(cli, &making.join(&inside))?;
    fs::rename(&making, &folder).map_err(unusable(&folder))?;
    Ok(folder.join(inside))
}

fn fetch(cli: Cli, folder: &Path) -> Result<(), InstallError> {
    let (name, version) = (cli.name(), cli.version());
    let mut npm = Command::new("npm");
    npm.current_dir(folder).stdin(Stdio::null());
    npm.args(["ci", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]);
    // A registry may fail for a moment, but a machine without one should report that soon.
    npm.args(["--include=optional", "--fetch-timeout=60000", "--fetch-retries=3"]);
    npm.args(["--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"]);
    let message = match npm.output() {
        Ok(output) if output.status.success() => return Ok(()),
        Ok(output) => first_lines(&output.stderr),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(InstallError::NoNode { name, version });
        }
        Err(error) => error.to_string(),
    };
    Err(InstallError::Npm { name, version, folder: folder.to_owned(), message })
}

fn check(cli: Cli, program: &Path) -> Result<(), InstallError> {
    let said = match Command::new(program).arg("--version").stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        Ok(output) => first_lines(&output.stderr),
        Err(error) => error.to_string(),
    };
    if said.split_whitespace().any(|word| word == cli.version()) {
        return Ok(());
    }
    Err(InstallError::Wrong { program: program.to_owned(), said, version: cli.version() })
}

fn first_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let lines = text.lines().filter(|line| !line.trim().is_empty());
    lines.take(4).collect::<Vec<_>>().join(" / ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_line_is_pinned_with_its_sums() {
        for cli in Cli::ALL {
            let (package, sums) = cli.manifest();
            assert!(package.contains(&format!("\": \"{}\"", cli.version())), "{package}");
            assert!(sums.contains("\"integrity\": \"sha512-"), "{cli:?}");
            assert!(!sums.contains("\"resolved\""), "{cli:?}: any registry will do");
        }
    }

    #[test]
    fn what_is_there_is_used_and_nothing_is_fetched() {
        let cache = tempfile::tempdir().expect("a folder");
        let folder = cache.path().join(format!("claude-{}", Cli::Claude.version()));
        fs::create_dir_all(&folder).expect("a folder");
        let program = install(Cli::Claude, cache.path()).expect("it is there");
        assert_eq!(program, folder.join("node_modules/.bin/claude"));
        assert!(!cache.path().join("claude.lock").exists(), "nobody had to wait");
    }

    #[test]
    fn a_program_of_another_version_is_refused() {
        let trouble = check(Cli::Codex, Path::new("/bin/echo")).expect_err("it is another one");
        assert!(trouble.to_string().contains("instead of 0.166.0"), "{trouble}");
        let missing = check(Cli::Codex, Path::new("/nowhere/codex")).expect_err("it is not there");
        assert!(missing.to_string().contains("try again"), "{missing}");
    }
}
