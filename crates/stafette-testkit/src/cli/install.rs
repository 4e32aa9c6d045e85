//! Installs a command line once, even if several tests ask for it.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use thiserror::Error;

use super::package::Package;
use crate::tools::{self, ToolError};

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
    /// The Node.js that it needs could not be installed.
    #[error(transparent)]
    Tool(#[from] ToolError),
    /// The installation folder cannot be used.
    #[error("{} cannot be used: {source}", path.display())]
    Folder {
        /// The path in question.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

/// Returns the program of a package, and installs it if it is missing.
pub(crate) fn program(package: Package) -> Result<PathBuf, InstallError> {
    install(package, &tools::cache().join("cli"))
}

fn install(package: Package, cache: &Path) -> Result<PathBuf, InstallError> {
    let unusable = |path: &Path| {
        let path = path.to_owned();
        move |source| InstallError::Folder { path, source }
    };
    let folder = cache.join(format!("{}-{}", package.name, package.version));
    let inside = Path::new("node_modules/.bin").join(package.program);
    // A folder gets its name only when it is complete and was tried.
    if folder.is_dir() {
        return Ok(folder.join(inside));
    }
    fs::create_dir_all(cache).map_err(unusable(cache))?;
    let lock = cache.join(format!("{}.lock", package.name));
    let file = File::create(&lock).map_err(unusable(&lock))?;
    file.lock().map_err(unusable(&lock))?;
    if folder.is_dir() {
        return Ok(folder.join(inside));
    }
    // An earlier process has ended, and no other one is installing.
    let making = cache.join(format!("{}-{}.making", package.name, package.version));
    if making.exists() {
        fs::remove_dir_all(&making).map_err(unusable(&making))?;
    }
    fs::create_dir_all(&making).map_err(unusable(&making))?;
    for (name, text) in [("package.json", package.manifest), ("package-lock.json", package.sums)] {
        let path = making.join(name);
        fs::write(&path, text).map_err(unusable(&path))?;
    }
    fetch(package, &making)?;
    check(package, &making.join(&inside))?;
    fs::rename(&making, &folder).map_err(unusable(&folder))?;
    Ok(folder.join(inside))
}

fn fetch(package: Package, folder: &Path) -> Result<(), InstallError> {
    let Package { name, version, .. } = package;
    let mut npm = Command::new("npm");
    if package.node_24 {
        let node = tools::node_24()?;
        npm = Command::new(node.join("bin/node"));
        npm.arg(node.join("lib/node_modules/npm/bin/npm-cli.js")).env("PATH", tools::path(&node));
    }
    npm.current_dir(folder).stdin(Stdio::null());
    // A lock file without the packages of other systems is no fault.
    npm.args([if package.node_24 { "install" } else { "ci" }]);
    npm.args(["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]);
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

fn check(package: Package, program: &Path) -> Result<(), InstallError> {
    let mut version = Command::new(program);
    if package.node_24 {
        version.env("PATH", tools::path(&tools::node_24()?));
    }
    let said = match version.arg("--version").stdin(Stdio::null()).output() {
        Ok(output) if output.status.success() => {
            String::from_utf8_lossy(&output.stdout).trim().to_owned()
        }
        Ok(output) => first_lines(&output.stderr),
        Err(error) => error.to_string(),
    };
    if said.split_whitespace().any(|word| word == package.says) {
        return Ok(());
    }
    Err(InstallError::Wrong { program: program.to_owned(), said, version: package.says })
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
        for Package { name, version, manifest, sums, .. } in Package::ALL {
            assert!(manifest.contains(&format!("\": \"{version}\"")), "{manifest}");
            assert!(sums.contains("\"integrity\": \"sha512-"), "{name}");
            assert!(!sums.contains("\"resolved\""), "{name}: any registry will do");
        }
    }

    #[test]
    fn b_23_every_profile_is_proven_with_the_pinned_version() {
        let profiles = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stafette-agents/profiles");
        for Package { name, says, .. } in Package::ALL {
            // An adapter has no profile of its own.
            let Ok(profile) = fs::read_to_string(profiles.join(format!("{name}.toml"))) else {
                continue;
            };
            assert!(profile.contains(&format!("proven = \"{says}\"")), "{name}");
        }
    }

    #[test]
    fn what_is_there_is_used_and_nothing_is_fetched() {
        let cache = tempfile::tempdir().expect("a folder");
        let folder = cache.path().join(format!("claude-{}", Package::CLAUDE.version));
        fs::create_dir_all(&folder).expect("a folder");
        let program = install(Package::CLAUDE, cache.path()).expect("it is there");
        assert_eq!(program, folder.join("node_modules/.bin/claude"));
        assert!(!cache.path().join("claude.lock").exists(), "nobody had to wait");
    }

    #[test]
    fn a_program_of_another_version_is_refused() {
        let trouble = check(Package::CODEX, Path::new("/bin/echo")).expect_err("it is another one");
        assert!(trouble.to_string().contains("instead of 0.166.0"), "{trouble}");
        let missing =
            check(Package::CODEX, Path::new("/nowhere/codex")).expect_err("it is not there");
        assert!(missing.to_string().contains("try again"), "{missing}");
    }
}
