//! `up` and `down`: starts and stops the project's daemon.

use serde_json::{Value, json};

use super::Context;
use crate::cli;
use crate::client::Client;
use crate::daemon::door::{Listens, whole};
use crate::daemon::{self, Daemon};
use crate::exit::{Exit, Failure};
use crate::project::Project;
use crate::state;

pub(crate) async fn run(context: &Context, arguments: cli::Up) -> Result<Exit, Failure> {
    let project = context.project()?;
    let cli::Up { foreground, door, trusted, held } = arguments;
    if foreground {
        // The one that a reader started gives way; a second one that would only show does not.
        if !held {
            daemon::end_held(&project).await?;
        }
        let daemon = Daemon { door, trusted, private: false, held };
        daemon.run(&project, context.output, || {}).await?;
        return Ok(Exit::Ok);
    }
    daemon::tell_older(&project).await;
    let client = Client::new(&project.socket()?);
    let mut running = client.is_up().await?;
    if running && let Some(refused) = refused(&project, &door) {
        // One that only shows what is there gives way.
        if !daemon::end_held(&project).await? {
            return Err(refused);
        }
        running = false;
    }
    if !running {
        let before = Listens::read(&state::place(&project.root));
        if let Some(before) = before.filter(|before| !before.has(&door) || door.listen.is_none()) {
            context.output.say(format!(
                "the daemon before was killed; it listened on {}, and this one does as its flags \
                 and the workflow say",
                before.url
            ));
        }
        let extra = door.arguments();
        let extra: Vec<&str> = extra.iter().map(String::as_str).collect();
        daemon::start(&project, &client, &extra).await?;
    }
    // It serves what was there before all the same, so that a mistake made today stops nothing.
    if let Err(failure) = project.load() {
        context.output.say(format!("{}: no new run can begin; {}", failure.what, failure.fix));
    }
    let health: Value = client.get("/healthz").await?;
    let continued = super::continue_runs(context, &client, None).await?;
    match context.output.json {
        true => context.output.data(&json!({
            "running": true,
            "pid": health["pid"],
            "was_running": running,
            "continued": continued.runs,
        })),
        false => {
            let word = if running { "runs already" } else { "runs" };
            context.output.say(format!("the daemon {word}, pid {}", health["pid"]));
        }
    }
    Ok(Exit::Ok)
}

/// The failure for flags that a running daemon does not have; `None` if it has them already.
fn refused(project: &Project, flags: &cli::Door) -> Option<Failure> {
    let arguments = flags.arguments();
    let listens = Listens::read(&state::place(&project.root));
    if arguments.is_empty() || listens.as_ref().is_some_and(|listens| listens.has(flags)) {
        return None;
    }
    let listens = listens.map_or("only on its socket".to_owned(), |listens| listens.url);
    Some(
        Failure::failed(format!("The daemon runs already, without {}", arguments.join(" ")))
            .why(format!("it listens {listens}, and takes such flags only when it starts"))
            .fix("stop it with `stafette down`, and give the same command again; runs continue"),
    )
}

impl cli::Door {
    /// The same for a daemon that is started with it. Paths are absolute: it starts in another
    /// folder.
    pub(crate) fn arguments(&self) -> Vec<String> {
        let whole = |path: &std::path::PathBuf| whole(path).display().to_string();
        let listen = self.listen.map(|address| ["--listen".to_owned(), address.to_string()]);
        let cert = self.tls_cert.as_ref().map(|path| ["--tls-cert".to_owned(), whole(path)]);
        let key = self.tls_key.as_ref().map(|path| ["--tls-key".to_owned(), whole(path)]);
        let hosts = self.hosts.iter().map(|host| ["--host".to_owned(), host.clone()]);
        listen.into_iter().chain(cert).chain(key).chain(hosts).flatten().collect()
    }
}

pub(crate) async fn down(context: &Context) -> Result<Exit, Failure> {
    let project = context.project()?;
    let client = Client::new(&project.socket()?);
    if !client.is_up().await? {
        match context.output.json {
            true => context.output.data(&json!({ "running": false })),
            false => {
                context.output.say("no daemon runs for this project: there is nothing to stop")
            }
        }
        return Ok(Exit::Ok);
    }
    let health: Value = client.get("/healthz").await?;
    let _: Value = client.post("/v1/stop", &json!({})).await?;
    daemon::wait_until_gone(&project, &client, &health["pid"]).await?;
    match context.output.json {
        true => context.output.data(&json!({ "running": false })),
        false => {
            context.output.say("the daemon is down; its runs continue with the next `stafette up`")
        }
    }
    Ok(Exit::Ok)
}
