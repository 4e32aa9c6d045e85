//! `state`: shows where a project's state is, takes one over, or puts it aside.

use std::path::Path;

use serde_json::json;
use stafette_engine::garbage;
use stafette_store::{RunFilter, Store};

use super::Context;
use crate::cli::StateAction;
use crate::daemon::ground::{self, Lock};
use crate::exit::{Exit, Failure};
use crate::project::Project;
use crate::state::{self, older};
use crate::store;
use crate::trust;

pub(crate) async fn run(context: &Context, action: Option<StateAction>) -> Result<Exit, Failure> {
    let project = context.project()?;
    match action {
        None => show(context, &project).await,
        Some(StateAction::Adopt) => adopt(context, &project).await,
        Some(StateAction::Forget) => forget(context, &project),
    }
}

async fn show(context: &Context, project: &Project) -> Result<Exit, Failure> {
    let (folder, log) = (project.state()?, project.log());
    let socket = project.socket()?;
    let older = older::find(&project.root).await.map(|older| older.line());
    let output = context.output;
    if output.json {
        output.data(&json!({
            "project": project.root, "state": folder, "socket": socket, "log": log, "older": older,
        }));
        return Ok(Exit::Ok);
    }
    output.line(folder.display().to_string());
    output.say(format!("The daemon's log is {}", log.display()));
    if let Some(older) = older {
        output.say(older);
    }
    Ok(Exit::Ok)
}

async fn adopt(context: &Context, project: &Project) -> Result<Exit, Failure> {
    let _lock = locked(project)?;
    if let Err(another) = state::check(&project.root) {
        let question = format!("{}. Keep it for this folder?", another.why);
        return match context.confirm(&question)? {
            true => done(context, state::note(&project.root).and_then(|()| project.state())?),
            false => Ok(Exit::Failed),
        };
    }
    let older = older::find(&project.root).await.ok_or_else(|| {
        Failure::usage("There is nothing to adopt")
            .why(format!("{} has no state of an older release", project.root.display()))
            .fix("go on as usual; `stafette state` says where the state is")
    })?;
    if let Some(why) = older.objection {
        return Err(Failure::failed(format!("{} is not adopted", older.folder.display()))
            .why(why)
            .fix("remove it, unless you know where it comes from"));
    }
    let folder = project.state()?;
    if has_runs(&project.store()).await? {
        return Err(Failure::failed("This project has runs already")
            .why(format!("they are in {}", folder.display()))
            .fix("put them aside with `stafette state forget`, or remove .stafette"));
    }
    let question = format!(
        "Move the runs and worktrees in {} to {}? A run continues with the next `stafette up` if \
         its workflow is trusted; tokens are made anew",
        older.folder.display(),
        folder.display()
    );
    if !context.confirm(&question)? {
        return Ok(Exit::Failed);
    }
    older::take(&older.folder, &folder)?;
    if let Err(error) = garbage::repair(&project.root, &folder).await {
        context.output.say(format!("git does not find the worktrees any more: {error}"));
    }
    done(context, folder)
}

fn forget(context: &Context, project: &Project) -> Result<Exit, Failure> {
    let _lock = locked(project)?;
    let folder = state::place(&project.root);
    let question = format!("Put {} aside? The project begins without its runs", folder.display());
    if !folder.exists() {
        return Err(Failure::usage("There is no state to forget")
            .why(format!("{} does not exist", folder.display()))
            .fix("go on as usual: the first command creates it"));
    }
    if !context.confirm(&question)? {
        return Ok(Exit::Failed);
    }
    // Another project may lie in its place now.
    trust::end(project)?;
    done(context, state::put_aside(&project.root)?)
}

fn done(context: &Context, folder: std::path::PathBuf) -> Result<Exit, Failure> {
    match context.output.json {
        true => context.output.data(&json!({ "state": folder })),
        false => context.output.say(format!("It is in {}", folder.display())),
    }
    Ok(Exit::Ok)
}

fn locked(project: &Project) -> Result<Lock, Failure> {
    ground::lock(project)?.ok_or_else(|| {
        Failure::failed("The project's daemon runs").fix("stop it first with `stafette down`")
    })
}

async fn has_runs(path: &Path) -> Result<bool, Failure> {
    if !path.exists() {
        return Ok(false);
    }
    let store = store::open_file(path)?;
    let runs = store.runs(RunFilter { limit: 1, ..RunFilter::default() }).await;
    store.close().await;
    let runs = runs.map_err(|error| store::unreadable(&error))?;
    Ok(!runs.is_empty())
}
