//! `lock hook`: git's pre-commit hook, which refuses files locked by another holder.

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Component, Path, PathBuf};

use serde_json::json;
use stafette_core::fields::shell_word;

use super::Context;
use super::check::git;
use crate::cli::LockHook;
use crate::daemon;
use crate::exit::{Exit, Failure};

/// The line by which our hook is recognised.
const MARK: &str = "# stafette lock hook";

/// The largest hook that can be ours, in bytes.
const LARGEST: u64 = 1 << 20;

/// The name of the previous hook while ours is installed.
const BEFORE: &str = "pre-commit.before-stafette";

pub(super) async fn run(context: &Context, action: LockHook) -> Result<Exit, Failure> {
    let root = context.project()?.root;
    let folder = git(&root, &["rev-parse", "--git-path", "hooks"]).await?;
    let folder = root.join(String::from_utf8_lossy(&folder).trim_end_matches('\n'));
    refuse_outside(&root, &folder).await?;
    let hook = folder.join("pre-commit");
    let said = match action {
        LockHook::Install => install(&folder, &hook, &root)?,
        LockHook::Uninstall => uninstall(&folder, &hook)?,
    };
    match context.output.json {
        true => context.output.data(&json!({ "hook": hook, "said": said })),
        false => context.output.say(format!("{}: {said}", hook.display())),
    }
    Ok(Exit::Ok)
}

/// Checks that the folder of the hooks belongs to the repository: `core.hooksPath` can name any.
async fn refuse_outside(root: &Path, folder: &Path) -> Result<(), Failure> {
    let is_plain = folder.components().all(|part| part != Component::ParentDir);
    let real = match fs::canonicalize(folder) {
        Ok(real) => Some(real),
        // It is made, in a folder that is there.
        Err(_) if is_plain => folder.ancestors().find_map(|outer| fs::canonicalize(outer).ok()),
        Err(_) => None,
    };
    for place in ["--git-common-dir", "--show-toplevel"] {
        let place = git(root, &["rev-parse", "--path-format=absolute", place]).await?;
        let place = Path::new(String::from_utf8_lossy(&place).trim_end_matches('\n')).to_owned();
        let place = fs::canonicalize(&place).unwrap_or(place);
        if real.as_ref().is_some_and(|real| real.starts_with(&place)) {
            return Ok(());
        }
    }
    Err(Failure::usage("The hooks of git are outside this repository")
        .why(format!("`core.hooksPath` names {}", folder.display()))
        .fix("unset it with `git config --unset core.hooksPath`, or call `stafette lock check --staged` from your own hook"))
}

fn install(folder: &Path, hook: &Path, root: &Path) -> Result<&'static str, Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("Cannot write {}", hook.display()))
            .because(&error)
            .fix("make the folder of git's hooks writable")
    };
    fs::create_dir_all(folder).map_err(failed)?;
    let before = folder.join(BEFORE);
    let other = hook.exists() && !is_ours(hook);
    if other && before.exists() {
        let (hook, before) = (hook.display(), before.display());
        return Err(Failure::usage("There are two hooks already")
            .why(format!("{hook} and {before} were not written by Stafette"))
            .fix("merge them into one, and run it again"));
    }
    let program = daemon::program()?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(script(&program, root).as_bytes()).map_err(failed)?;
    file.as_file().set_permissions(fs::Permissions::from_mode(0o755)).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    if other {
        fs::rename(hook, &before).map_err(failed)?;
    }
    file.persist(hook).map_err(|error| failed(error.error))?;
    Ok(match before.exists() {
        true => "installed; the hook from before runs first",
        false => "installed",
    })
}

fn uninstall(folder: &Path, hook: &Path) -> Result<&'static str, Failure> {
    let failed = |error: std::io::Error| {
        Failure::failed(format!("Cannot remove {}", hook.display()))
            .because(&error)
            .fix("make the folder of git's hooks writable")
    };
    if !is_ours(hook) {
        return Ok("there is no hook of ours");
    }
    let before: PathBuf = folder.join(BEFORE);
    if before.exists() {
        fs::rename(before, hook).map_err(failed)?;
        return Ok("removed; the hook from before is back");
    }
    fs::remove_file(hook).map_err(failed)?;
    Ok("removed")
}

fn is_ours(hook: &Path) -> bool {
    let read = stafette_disk::read(hook, LARGEST);
    read.is_ok_and(|bytes| String::from_utf8_lossy(&bytes).contains(MARK))
}

fn script(program: &Path, root: &Path) -> String {
    let (program, root) =
        (shell_word(&program.display().to_string()), shell_word(&root.display().to_string()));
    format!(
        r#"#!/bin/sh
{MARK}: refuses to commit what somebody else has locked.
# `stafette lock hook uninstall` removes it; `git commit --no-verify` goes past it.
before="$(dirname "$0")/{BEFORE}"
if [ -x "$before" ]; then
    "$before" "$@" || exit $?
fi
if [ ! -x {program} ]; then
    echo "the lock hook does not find" {program} >&2
    echo "install it anew with: stafette lock hook install" >&2
    exit 1
fi
exec {program} --project {root} lock check --staged
"#
    )
}
