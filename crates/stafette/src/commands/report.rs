//! `report`: exports a run as one page that can be mailed.

use serde_json::json;

use super::{Context, daemon, open, run_path};
use crate::cli;
use crate::exit::{Exit, Failure};

pub(crate) async fn run(context: &Context, arguments: cli::Report) -> Result<Exit, Failure> {
    let client = daemon(context).await?;
    let page = client.text(&run_path(arguments.run.as_deref(), "/report")).await?;
    let path = match (&arguments.output, arguments.open) {
        (Some(path), _) => path.clone(),
        (None, true) => {
            let name = format!("stafette-report-{}.html", std::process::id());
            context.project()?.state()?.join(name)
        }
        (None, false) => {
            context.output.line(page.trim_end());
            return Ok(Exit::Ok);
        }
    };
    stafette_disk::write(&path, page).map_err(|error| {
        Failure::failed(format!("Cannot write {}", path.display()))
            .because(&error)
            .fix("name a file that you may write to with --output")
    })?;
    match context.output.json {
        true => context.output.data(&json!({ "file": path })),
        false => context.output.say(format!("{} is written", path.display())),
    }
    let link = || path.canonicalize().map(|path| format!("file://{}", path.display()));
    if arguments.open && !link().is_ok_and(|link| open::browse(&link)) {
        context.output.say("no browser was found; open the file yourself");
    }
    Ok(Exit::Ok)
}
