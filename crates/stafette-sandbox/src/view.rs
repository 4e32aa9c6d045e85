//! The view of the file system that an agent gets: what its policy grants, and nothing else. The
//! steps that lead to it are the same for bubblewrap and for our own mounts.

use std::path::{Path, PathBuf};

use crate::policy::real;
use crate::{Pin, Policy};

/// A step towards the view, which begins empty. Later steps cover earlier ones.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Step {
    Link {
        at: PathBuf,
        target: PathBuf,
    },
    /// Shows `from`, if it is there, at `at`.
    Bind {
        from: PathBuf,
        at: PathBuf,
        is_read_only: bool,
    },
    /// Mounts what is seen at a place there once more. The place lies where the agent can make links:
    /// it is looked for in the view, so that no link brings anything into it.
    Pin(Pin),
    /// The processes of the sandbox.
    Proc,
    /// Harmless devices, and terminals and shared memory of the sandbox's own.
    Dev,
    /// Covers a folder with an empty one.
    Cover(PathBuf),
}

/// Returns the steps to a view in which only what the policy grants is visible, and the pins stay in
/// their places; `also` is what the launcher itself needs to see.
pub(crate) fn steps(policy: &Policy, pins: &[Pin], also: &[&Path]) -> Vec<Step> {
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
    let sockets = policy.sockets.iter().map(PathBuf::as_path);
    let also: Vec<&Path> = sockets.chain(also.iter().copied()).collect();
    let mut steps: Vec<Step> = read
        .iter()
        .map(|path| match path.read_link() {
            // A link in the root, such as /bin, stays a link.
            Ok(target) if path.parent() == Some(Path::new("/")) => {
                Step::Link { at: path.clone(), target }
            }
            _ => show(path, true),
        })
        .collect();
    steps.extend([Step::Proc, Step::Dev]);
    let granted = read.iter().chain(&write).map(PathBuf::as_path).chain(also.iter().copied());
    if !granted.map(real).any(|path| path.starts_with("/tmp")) {
        let (from, at) = (policy.temp.clone(), "/tmp".into());
        steps.push(Step::Bind { from, at, is_read_only: false });
    }
    steps.extend(write.iter().map(|path| show(path, false)));
    for swap in &policy.swaps {
        if let Some(kept) = &swap.kept {
            let (from, at) = (swap.over.clone(), kept.clone());
            steps.push(Step::Bind { from, at, is_read_only: true });
        }
        let (from, at) = (swap.with.clone(), swap.over.clone());
        let is_read_only = from.is_file();
        steps.push(Step::Bind { from, at, is_read_only });
    }
    steps.extend(also.iter().map(|path| show(path, true)));
    steps.extend(pins.iter().cloned().map(Step::Pin));
    let grants: Vec<PathBuf> = read.iter().chain(&write).map(|path| real(path)).collect();
    for path in policy.hidden.iter().chain(&policy.closed).map(|path| real(path)) {
        // A path that no grant covers is not visible anyway.
        if grants.iter().any(|grant| path.starts_with(grant)) {
            hide(policy, &path, &mut steps);
        }
    }
    steps
}

fn show(path: &Path, is_read_only: bool) -> Step {
    Step::Bind { from: path.to_owned(), at: path.to_owned(), is_read_only }
}

/// Returns the place to mount a granted path on. A link in a granted folder is visible with the
/// folder, and nothing can be mounted on it: its target is what has to be there.
fn place(policy: &Policy, path: &Path) -> PathBuf {
    let contains = |grant: &PathBuf| grant != path && path.starts_with(grant);
    let is_visible = path.is_symlink() && policy.read.iter().chain(&policy.write).any(contains);
    if is_visible { real(path) } else { path.to_owned() }
}

/// Covers a path, or what else is in it if the agent needs something there.
fn hide(policy: &Policy, path: &Path, steps: &mut Vec<Step>) {
    let Ok(metadata) = path.metadata() else { return };
    let needed = policy.write.iter().chain(&policy.sockets).map(|needed| real(needed));
    let needed: Vec<PathBuf> = needed.filter(|needed| needed.starts_with(path)).collect();
    if needed.iter().any(|needed| needed == path) {
        return;
    }
    if !needed.is_empty() {
        let children = std::fs::read_dir(path).into_iter().flatten().flatten();
        return children.for_each(|child| hide(policy, &child.path(), steps));
    }
    let (from, at) = ("/dev/null".into(), path.to_owned());
    steps.push(match metadata.is_dir() {
        true => Step::Cover(at),
        false => Step::Bind { from, at, is_read_only: true },
    });
}
