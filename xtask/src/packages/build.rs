//! Builds the program that is packaged.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::contents::read;
use super::elf::{self, Glibc};
use super::target::Target;
use crate::shell;

/// The profile that packages are built with.
const PROFILE: &str = "dist";

/// The oldest glibc that Rust's own library supports: that of RHEL 7, Debian 8 and Ubuntu 14.04.
const OLDEST: Glibc = (2, 17);

/// Zig has the symbols of every glibc, so that a program can be linked for one that is older than
/// this machine's. Both come as Python packages.
const ZIG: [&str; 2] = ["cargo-zigbuild==0.24.0", "ziglang==0.17.0"];

/// Builds the program for a target, and returns where it is.
pub(super) fn build(root: &Path, target: &Target) -> Result<PathBuf, String> {
    let output = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    let output = root.join(output);
    let mut command = shell::cargo(root);
    let mut triple = target.triple.to_owned();
    if target.has_glibc() {
        let tools = zig(&output.join("tools/zig"))?;
        let cargo = command;
        command = Command::new(tools.join("cargo-zigbuild"));
        command.current_dir(root).arg("zigbuild").env("CARGO", cargo.get_program());
        let path = env::var_os("PATH").unwrap_or_default();
        let path = env::join_paths([tools].into_iter().chain(env::split_paths(&path)));
        command.env("PATH", path.map_err(|error| error.to_string())?);
        triple = format!("{triple}.{}.{}", OLDEST.0, OLDEST.1);
    } else {
        command.arg("build");
    }
    command.args(["--locked", "--profile", PROFILE, "-p", "stafette", "--target", &triple]);
    shell::run(&mut command).map_err(|error| {
        format!("{error}; is its standard library there (`rustup target add {}`)?", target.triple)
    })?;
    let program = output.join(target.triple).join(PROFILE).join("stafette");
    let needed = elf::needs(&read(&program)?).and_then(|needs| needs.glibc);
    if needed > Some(OLDEST) {
        return Err(format!("it needs glibc {needed:?}, and should do with {OLDEST:?}"));
    }
    Ok(program)
}

/// Returns the folder of Zig's programs, installed into a Python environment if they are not there.
fn zig(folder: &Path) -> Result<PathBuf, String> {
    let programs = folder.join("bin");
    let has = |package: &str| {
        let (name, version) = package.split_once("==").unwrap_or((package, ""));
        let mut pip = Command::new(programs.join("python"));
        let shown = shell::probe(pip.args(["-m", "pip", "show", name])).unwrap_or_default();
        shown.lines().any(|line| line.strip_prefix("Version: ") == Some(version))
    };
    if !ZIG.into_iter().all(has) {
        let help = "it needs Python 3 with venv and PyPI once; or package a program of your own \
                    build with `--binary`";
        let told = |error: shell::CommandError| format!("{error}; {help}");
        shell::run(Command::new("python3").args(["-m", "venv"]).arg(folder)).map_err(told)?;
        let mut pip = Command::new(programs.join("python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(ZIG);
        shell::run(&mut pip).map_err(told)?;
    }
    Ok(programs)
}
