//! Installs what a machine needs before the tests can run. Existing programs are left alone.

use std::path::Path;
use std::process::Command;

use crate::shell;

/// A program that comes with the system.
struct Tool {
    name: &'static str,
    /// Any of these programs is enough.
    programs: &'static [&'static str],
    debian: &'static [&'static str],
    /// A hint for people without Debian or Homebrew, or without the right to install.
    hint: &'static str,
}

const TOOLS: [Tool; 3] = [
    Tool { name: "git", programs: &["git"], debian: &["git"], hint: "install git" },
    Tool {
        name: "a C compiler",
        programs: &["cc", "gcc", "clang"],
        debian: &["gcc", "libc6-dev"],
        hint: "install a C compiler (on macOS: `xcode-select --install`)",
    },
    // The tests run real agents, which come as npm packages.
    Tool {
        name: "Node.js with npm",
        programs: &["npm"],
        debian: &["nodejs", "npm"],
        hint: "install Node.js and npm (on macOS: `brew install node`)",
    },
];

/// What Linux packages are installed with. Only a machine that tries them needs it.
const PACKAGERS: [Tool; 4] = [
    Tool {
        name: "dpkg",
        programs: &["dpkg"],
        debian: &["dpkg"],
        hint: "install dpkg (on Fedora: `dnf install dpkg`)",
    },
    Tool {
        name: "Python's pip",
        programs: &["pip3", "pip"],
        debian: &["python3", "python3-pip"],
        hint: "install Python 3 with pip",
    },
    Tool { name: "curl", programs: &["curl"], debian: &["curl"], hint: "install curl" },
    Tool { name: "man", programs: &["man"], debian: &["man-db"], hint: "install man-db" },
];

/// Installs what the packages are tried with.
pub(crate) fn prepare_packages() -> Result<(), String> {
    add_tools(&PACKAGERS)
}

/// Installs what is missing.
pub(crate) fn prepare(root: &Path) -> Result<(), String> {
    add_tools(&TOOLS)?;
    add_components(root)?;
    eprintln!("git, a C compiler, npm, rustfmt and clippy are there");
    Ok(())
}

fn add_tools(tools: &[Tool]) -> Result<(), String> {
    for tool in tools {
        if has(tool) {
            continue;
        }
        eprintln!("{} is missing", tool.name);
        install(tool).map_err(|error| format!("{error}; {} and try again", tool.hint))?;
        if !has(tool) {
            return Err(format!("{} is still missing; {} and try again", tool.name, tool.hint));
        }
    }
    Ok(())
}

fn has(tool: &Tool) -> bool {
    tool.programs.iter().any(|program| is_there(program))
}

fn is_there(program: &str) -> bool {
    shell::probe(Command::new(program).arg("--version")).is_some()
}

fn install(tool: &Tool) -> Result<(), String> {
    let told = |error: shell::CommandError| error.to_string();
    if is_there("apt-get") {
        shell::run(&mut as_root(&["apt-get", "update", "-qq"])).map_err(told)?;
        let install = ["apt-get", "install", "-y", "-qq", "--no-install-recommends"];
        shell::run(&mut as_root(&[&install, tool.debian].concat())).map_err(told)
    } else if is_there("brew") && tool.programs.contains(&"git") {
        shell::run(Command::new("brew").args(["install", "git"])).map_err(told)
    } else {
        Err(format!("{} cannot be installed from here", tool.name))
    }
}

fn as_root(words: &[&str]) -> Command {
    let is_root = shell::probe(Command::new("id").arg("-u")).as_deref() == Some("0");
    let mut command = if is_root {
        Command::new("env")
    } else {
        let mut sudo = Command::new("sudo");
        sudo.arg("env");
        sudo
    };
    command.arg("DEBIAN_FRONTEND=noninteractive").args(words);
    command
}

/// `rust-toolchain.toml` names them, so rustup has usually installed them.
fn add_components(root: &Path) -> Result<(), String> {
    let works = |name: &str| shell::probe(shell::cargo(root).args([name, "--version"])).is_some();
    let missing: Vec<&str> = [("fmt", "rustfmt"), ("clippy", "clippy")]
        .into_iter()
        .filter(|(subcommand, _)| !works(subcommand))
        .map(|(_, component)| component)
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let mut rustup = Command::new("rustup");
    rustup.current_dir(root).args(["component", "add"]).args(&missing);
    shell::run(&mut rustup).map_err(|error| {
        format!("{error}; install {} for this toolchain and try again", missing.join(" and "))
    })
}
