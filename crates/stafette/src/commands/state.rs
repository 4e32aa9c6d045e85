//! `state`: shows where a project's state is, takes one over, or puts it aside.

use std::path::Path;

use serde_json::json;
use stafette_engine::garbage;

use super::Context;
use crate::cli::StateAction;
use crate::daemon::{
    self,
    ground::{self, Lock},
};
use crate::exit::{Exit, Failure};
use crate::project::Project;
use crate::state::{self, moved, older};
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
    let moved = daemon::moved(project).await;
    let output = context.output;
    if output.json {
        output.data(&json!({
            "project": project.root, "state": folder, "socket": socket, "log": log, "older": older,
            "moved_from": moved.as_ref().map(|moved| &moved.from),
        }));
        return Ok(Exit::Ok);
    }
    output.line(folder.display().to_string());
    output.say(format!("The daemon's log is {}", log.display()));
    for line in older.into_iter().chain(moved.map(|moved| moved.line())) {
        output.say(line);
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
    if let Some(moved) = moved::find(&project.root) {
        return take_along(context, project, &moved).await;
    }
    let older = older::find(&project.root).await.ok_or_else(|| {
        Failure::usage("There is nothing to adopt")
            .why(format!(
                "{} has no state of an older release, and none of another path where it was before",
                project.root.display()
            ))
            .fix("go on as usual; `stafette state` says where the state is")
    })?;
    if let Some(why) = older.objection {
        return Err(Failure::failed(format!("{} is not adopted", older.folder.display()))
            .why(why)
            .fix("remove it, unless you know where it comes from"));
    }
    let folder = project.state()?;
    if store::has_runs(&project.store()).await? {
        return Err(has_runs(&folder, ", or remove .stafette"));
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

/// Takes over the state that this folder had at another path.
async fn take_along(
    context: &Context,
    project: &Project,
    moved: &moved::Moved,
) -> Result<Exit, Failure> {
    let folder = state::place(&project.root);
    if store::has_runs(&project.store()).await? {
        return Err(has_runs(&folder, ""));
    }
    let question = format!(
        "This project was at {}. Take its runs and worktrees along to {}? A run continues with \
         the next `stafette up` if its workflow is trusted",
        moved.from.display(),
        folder.display()
    );
    if !context.confirm(&question)? {
        return Ok(Exit::Failed);
    }
    let folder = moved::take(moved, &project.root)?;
    if let Err(error) = garbage::repair(&project.root, &folder).await {
        context.output.say(format!("git does not find the worktrees any more: {error}"));
    }
    context.output.say("trust is given for a path: see `stafette trust` before the next run");
    done(context, folder)
}

fn has_runs(folder: &Path, or: &str) -> Failure {
    Failure::failed("This project has runs already")
        .why(format!("they are in {}", folder.display()))
        .fix(format!("put them aside with `stafette state forget`{or}"))
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
