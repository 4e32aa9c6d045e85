//! Bubblewrap: a program that builds a restricted view of the file system for another one.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use crate::Policy;
use crate::policy::real;

/// Returns the path of bubblewrap, if it is installed and works here.
pub fn find_bubblewrap() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    let program = std::env::split_paths(&path)
        .map(|folder| folder.join("bwrap"))
        .find(|program| program.is_file())?;
    // It needs namespaces, which some systems deny to their users.
    let mut probe = std::process::Command::new(&program);
    probe.args(["--ro-bind", "/", "/", "--unshare-pid", "--proc", "/proc", "true"]);
    probe.stdin(std::process::Stdio::null());
    probe.output().is_ok_and(|output| output.status.success()).then_some(program)
}

/// Returns the place to mount a granted path on. A link in a granted folder is visible with the
/// folder, and nothing can be mounted on it: its target is what has to be there.
fn place(policy: &Policy, path: &Path) -> PathBuf {
    let contains = |grant: &PathBuf| grant != path && path.starts_with(grant);
    let is_visible = path.is_symlink() && policy.read.iter().chain(&policy.write).any(contains);
    if is_visible { real(path) } else { path.to_owned() }
}

/// Returns the arguments with which only what the policy grants is visible; `also` is what the
/// launcher itself needs to see. Later arguments cover earlier ones.
pub(crate) fn arguments(policy: &Policy, also: &[&Path], folder: Option<&Path>) -> Vec<OsString> {
    let mut all: Vec<OsString> =
        ["--die-with-parent", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
            .map(OsString::from)
            .to_vec();
    let mut add = |option: &str, paths: &[&Path]| {
        all.push(option.into());
        all.extend(paths.iter().map(|path| path.as_os_str().to_owned()));
    };
    let is_special = |path: &Path| path.starts_with("/dev") || path.starts_with("/proc");
    let places = |grants: &[PathBuf]| {
        let grants = grants.iter().filter(|path| !is_special(path));
        let mut places: Vec<PathBuf> = grants.map(|path| place(policy, path)).collect();
        // Shorter paths first: a nested path must come after its folder.
        places.sort();
        places.dedup();
        places
    };
    let (read, write) = (places(&policy.read), places(&policy.write));
    for path in &read {
        // A link in the root, such as /bin, stays a link.
        match path.read_link() {
            Ok(target) if path.parent() == Some(Path::new("/")) => {
                add("--symlink", &[&target, path]);
            }
            _ => add("--ro-bind-try", &[path, path]),
        }
    }
    add("--proc", &[Path::new("/proc")]);
    add("--dev", &[Path::new("/dev")]);
    let in_tmp = |path: &PathBuf| real(path).starts_with("/tmp");
    if !write.iter().any(in_tmp) && !also.iter().any(|path| real(path).starts_with("/tmp")) {
        add("--bind", &[&policy.temp, Path::new("/tmp")]);
    }
    for path in &write {
        add("--bind-try", &[path, path]);
    }
    for swap in &policy.swaps {
        if let Some(kept) = &swap.kept {
            add("--ro-bind-try", &[&swap.over, kept]);
        }
        add("--bind-try", &[&swap.with, &swap.over]);
    }
    for path in policy.sockets.iter().map(PathBuf::as_path).chain(also.iter().copied()) {
        add("--ro-bind-try", &[path, path]);
    }
    // A place that something is mounted on cannot be renamed or removed.
    for path in &policy.held() {
        add("--bind-try", &[path, path]);
    }
    for path in &policy.pinned {
        add("--ro-bind-try", &[path, path]);
    }
    for path in policy.hidden.iter().chain(&policy.closed) {
        // A path that no grant covers is not visible anyway.
        let is_granted = |grant: &PathBuf| path.starts_with(grant);
        if !policy.read.iter().chain(&policy.write).any(is_granted) {
            continue;
        }
        match path.metadata() {
            Ok(metadata) if metadata.is_dir() => add("--tmpfs", &[path]),
            Ok(_) => add("--ro-bind", &[Path::new("/dev/null"), path]),
            Err(_) => {}
        }
    }
    if let Some(folder) = folder {
        add("--chdir", &[folder]);
    }
    all.push("--".into());
    all
}
