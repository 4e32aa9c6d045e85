//! `lock check`: checks whether files may be written.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stafette_core::lock::{Holder, Locks};
use stafette_engine::GitError;

use super::paths::{Places, within};
use super::{Asker, Context, client, now, session};
use crate::cli;
use crate::commands::STUCK;
use crate::daemon;
use crate::exit::{Exit, Failure};
use crate::project::person;
use crate::store::{self, Home};

/// The fix for files that another holder has locked.
const ADVICE: &str = "ask its holder, or wait; `stafette locks` shows who has what";

pub(super) async fn run(context: &Context, arguments: cli::LockCheck) -> Result<Exit, Failure> {
    let places = Places::of(context)?;
    let paths = match arguments.staged {
        true => staged(&places.root).await?,
        false => places.patterns(&arguments.paths)?,
    };
    let asker = Asker::new(false);
    let project = context.project()?;
    if session().is_some() || daemon::find(&project).await.is_ok() {
        let body = json!({ "paths": paths, "fence": arguments.fence, "who": asker.json() });
        let client = client(context).await?;
        client.post::<Value>("/v1/locks/check", &body).await.map_err(advice)?;
    } else if Home::of(&project)?.exists() {
        // No daemon is started for a commit: that would continue the runs as well.
        let store = store::open(&project, false).await?.store;
        let book = store.locks().await.map_err(|error| store::unreadable(&error))?;
        store.close().await;
        let locks = restore(&book)?;
        let holder = Holder::person(&person()).at(&asker.seat);
        let paths = paths.iter().map(String::as_str);
        locks
            .may_write(now(), &holder, paths, arguments.fence)
            .map_err(|conflict| Failure::new(Exit::Lock, conflict.to_string()).fix(ADVICE))?;
    }
    match context.output.json {
        true => context.output.data(&json!({ "allowed": true, "paths": paths })),
        false if arguments.staged => {}
        false => context.output.say("nobody else has it"),
    }
    Ok(Exit::Ok)
}

fn advice(failure: Failure) -> Failure {
    match failure.code {
        Exit::Lock => failure.fix(ADVICE),
        _ => failure,
    }
}

fn restore(book: &stafette_store::LockStore) -> Result<Locks, Failure> {
    stafette_engine::restore_locks(book).map_err(|error| store::unreadable(&error))
}

/// The staged files, as names within the project. Files outside of the project cannot be locked, so
/// they are left out.
async fn staged(root: &Path) -> Result<Vec<String>, Failure> {
    let top = git(Path::new("."), &["rev-parse", "--show-toplevel"]).await?;
    let top = PathBuf::from(String::from_utf8_lossy(&top).trim_end_matches('\n').to_owned());
    // Without renames: a file that moves away is changed as well.
    let names = git(&top, &["diff", "--cached", "--name-only", "--no-renames", "-z"]).await?;
    let names = names.split(|byte| *byte == 0).filter(|name| !name.is_empty());
    let inside = names.filter_map(|name| {
        let path = top.join(&*String::from_utf8_lossy(name));
        Some(within(root, &path)?.display().to_string())
    });
    Ok(inside.collect())
}

/// Runs git and returns its output.
pub(super) async fn git(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>, Failure> {
    let said = stafette_engine::run_git(folder, arguments).await;
    said.map_err(|error| match error {
        GitError::NotStarted { source, .. } => {
            Failure::failed("Cannot start git").because(&source).fix("install git and try again")
        }
        GitError::Failed { stderr, .. } => {
            Failure::usage("This is not a git repository, or git refuses it")
                .why(stderr)
                .fix("run it inside of a repository; `git init` creates one")
        }
        stuck => Failure::failed("Git did not end").because(&stuck).fix(STUCK),
    })
}
