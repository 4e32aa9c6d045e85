//! Licences, bans and sources of our dependencies: cargo-deny checks them against `deny.toml`.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::shell;

/// The pinned version of cargo-deny.
const VERSION: &str = "0.20.2";

/// Checks the dependencies. Advisories are left out: their database changes daily and is elsewhere,
/// so a test that used it would not be repeatable.
pub(crate) fn check(root: &Path) -> Result<(), String> {
    let program = find_or_install(root)?;
    let mut deny = Command::new(program);
    deny.current_dir(root);
    deny.args(["check", "--hide-inclusion-graph", "licenses", "bans", "sources"]);
    shell::run(&mut deny).map_err(|error| error.to_string())
}

fn find_or_install(root: &Path) -> Result<PathBuf, String> {
    let folder = tools(root);
    let ours = folder.join("bin").join("cargo-deny");
    if let Some(there) = [ours.clone(), "cargo-deny".into()].into_iter().find(is_ours) {
        return Ok(there);
    }
    eprintln!("cargo-deny {VERSION} is missing: building it once, which takes a minute or two");
    let mut install = shell::cargo(root);
    install.args(["install", "cargo-deny", "--version", VERSION, "--locked", "--quiet"]);
    // Its advisories would need a git and an HTTP client; a quick build matters more than speed.
    install.args(["--no-default-features", "--debug", "--root"]).arg(&folder);
    install.env("CARGO_PROFILE_DEV_DEBUG", "0").env("CARGO_PROFILE_DEV_INCREMENTAL", "false");
    install.env_remove("CARGO_TARGET_DIR");
    shell::run(&mut install).map_err(|error| {
        format!("{error}; it needs crates.io once, `cargo xtask test --fast` does without it")
    })?;
    Ok(ours)
}

fn is_ours(program: &PathBuf) -> bool {
    let said = shell::probe(Command::new(program).arg("--version"));
    said.is_some_and(|said| said.split_whitespace().last() == Some(VERSION))
}

/// Returns a folder beside the build output, so that both are removed together.
fn tools(root: &Path) -> PathBuf {
    let target = env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into());
    root.join(target).join("tools")
}
