//! A place of its own for each test: a project, a home, and the binary.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use sha2::{Digest, Sha256};

/// Longer than anything takes, however busy the machine is, and though it stands still for a while.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// Looks again and again until there is something to be found.
pub(crate) fn until<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let since = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(since.elapsed() < PATIENCE, "never: {what}");
        // Whoever looks without a pause takes the processor from what is waited for.
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// Looks again and again until it is so.
pub(crate) fn until_so(what: &str, mut is_so: impl FnMut() -> bool) {
    until(what, || is_so().then_some(()));
}

/// A project in a folder that goes away with the test, and the daemon with it.
pub(crate) struct World {
    folder: tempfile::TempDir,
}

/// What a command said.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Said {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    /// The last line of standard output as JSON.
    pub(crate) fn json(&self) -> Value {
        let last = self.out.lines().last().unwrap_or_default();
        serde_json::from_str(last).unwrap_or_else(|error| panic!("{error} in {self:?}"))
    }

    /// Every line of standard output as JSON.
    pub(crate) fn lines(&self) -> Vec<Value> {
        let parse = |line: &str| {
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error} in {line:?}"))
        };
        self.out.lines().map(parse).collect()
    }

    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:?}");
        self
    }
}

/// A workflow with one agent, which does nothing.
pub(crate) const ECHO: &str = r#"
[workflow]
name = "echo"
entry = "one"
[agents.one]
runner = "exec"
result = "exit"
command = ["sh", "-c", "true"]
"#;

/// An agent that notes that it has begun, and works until the project has a file `go`.
pub(crate) const WAITS: &str = r#"
[workflow]
name = "waits"
entry = "one"
[agents.one]
runner = "exec"
result = "exit"
command = ["sh", "-c", "touch begun; while [ ! -e go ]; do sleep 0.01; done"]
"#;

impl World {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        fs::create_dir_all(folder.path().join("project")).expect("a project");
        World { folder }
    }

    /// A world with one of the repository's examples in it, trusted.
    pub(crate) fn example(name: &str) -> Self {
        let world = Self::new();
        copy(&repository().join("examples").join(name), &world.project());
        world.run(&["trust", "--yes"]).ok();
        world
    }

    /// A world with this workflow in it, trusted.
    pub(crate) fn workflow(text: &str) -> Self {
        Self::with(text, &[])
    }

    /// A world with this workflow and these files in it, such as its agents' scripts, trusted.
    pub(crate) fn with(text: &str, files: &[(&str, &str)]) -> Self {
        let world = Self::new();
        world.write("stafette.toml", text);
        files.iter().for_each(|(name, text)| world.write(name, text));
        world.run(&["trust", "--yes"]).ok();
        world
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.folder.path().join("project")
    }

    /// The folder in which the project's state is kept.
    pub(crate) fn state(&self) -> PathBuf {
        state_of(self.home(), &self.project())
    }

    /// A file of the project's state.
    pub(crate) fn kept(&self, name: &str) -> String {
        fs::read_to_string(self.state().join(name)).unwrap_or_default()
    }

    /// The home of the user, outside of the project.
    pub(crate) fn home(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.project().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.project().join(name)).unwrap_or_default()
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Said {
        self.run_with(arguments, b"", &[])
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: &[u8], env: &[(&str, &str)]) -> Said {
        let mut child = self
            .command(program())
            .args(arguments)
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts");
        let mut stdin = child.stdin.take().expect("standard input");
        let input = input.to_vec();
        // A program that has heard enough may close its end first.
        let writer = std::thread::spawn(move || drop(stdin.write_all(&input)));
        let output = child.wait_with_output().expect("the program ends");
        writer.join().expect("written");
        Said {
            code: output.status.code().unwrap_or(-1),
            out: String::from_utf8(output.stdout).expect("UTF-8"),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Starts a daemon with this in its environment; its number, unless it is dead already.
    pub(crate) fn up(&self, env: &[(&str, &str)]) -> Option<u64> {
        let said = self.run_with(&["up", "--json"], b"", env);
        (said.code == 0).then(|| said.json()["pid"].as_u64().expect("a process"))
    }

    /// A command with nothing of the tester's own in its environment.
    pub(crate) fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.project())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.folder.path())
            .env("USER", "ada");
        command
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // What a failed test leaves is gone with its folder: here is what it was about.
        if std::thread::panicking() {
            for asked in ["status", "inbox", "handoffs", "log"] {
                let Ok(said) = self.command(program()).arg(asked).output() else { continue };
                let (out, err) = (&said.stdout, &said.stderr);
                eprintln!("--- stafette {asked}");
                eprintln!("{}{}", String::from_utf8_lossy(out), String::from_utf8_lossy(err));
            }
        }
        // Leaves no daemon behind; most tests have none by now.
        let _ = self.command(program()).arg("down").output();
    }
}

/// The folder in which a user with this home has the state of a project.
pub(crate) fn state_of(home: &Path, project: &Path) -> PathBuf {
    let root = project.canonicalize().expect("a project");
    let digest = Sha256::digest(root.as_os_str().as_encoded_bytes());
    let key: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    let name = root.file_name().expect("a name").to_string_lossy().into_owned();
    home.join(format!(".local/state/stafette/projects/{name}-{key}"))
}

/// Whether a process is there and not dead.
pub(crate) fn lives(pid: u64) -> bool {
    let state = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !state.is_empty() && !state.contains(") Z ")
}

/// Returns once the process is no more.
pub(crate) fn gone(pid: u64) {
    until_so(&format!("the end of {pid}"), || !lives(pid));
}

pub(crate) fn program() -> &'static str {
    env!("CARGO_BIN_EXE_stafette")
}

/// The folder of the repository, with its examples and fixtures.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy(&entry.path(), &target),
            false => drop(
                fs::copy(entry.path(), target)
                    .unwrap_or_else(|error| panic!("{}: {error}", entry.path().display())),
            ),
        }
    }
}
