//! `demo`: runs a real team of scripted agents on a real small repository, and shows the effects of
//! crashes.

mod accounts;
mod repository;
mod supervisor;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use stafette_engine::RunView;
use stafette_server::LaunchLink;

use super::open::follow;
use super::status::number;
use super::{Context, run_path};
use crate::cli;
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output::Tone;
use crate::project::Project;
use supervisor::Supervisor;

/// The example request of the coordination protocol.
const REQUEST: &str = "Add user auth";

/// The time limit for a demonstration; a longer one has gone wrong.
const PATIENCE: Duration = Duration::from_secs(180);

pub(crate) async fn run(context: &Context, arguments: cli::Demo) -> Result<Exit, Failure> {
    let since = Instant::now();
    let output = context.output;
    let folder = repository::folder(arguments.dir.clone())?;
    output.say(format!("A repository with four scripted agents: {}", folder.display()));
    repository::lay_out(&folder).await?;
    let project = Project { root: folder.clone(), database: None };
    let crashes = if arguments.crash { arguments.crashes } else { 0 };
    let seed = arguments.seed.unwrap_or_else(|| u64::from(std::process::id()) ^ now());
    if arguments.crash {
        output.say(format!("The daemon will be killed {crashes} times, seed {seed}"));
    }
    let mut supervisor = Supervisor::new(&project, output, crashes, seed)?;
    let client = Client::new(&project.socket()?);
    let work = async {
        if arguments.open {
            watch(context, &mut supervisor, &client, arguments.headless).await?;
        }
        let run = begin(&mut supervisor, &client).await?;
        finish(context, &mut supervisor, &client, &run).await
    };
    let view = match tokio::time::timeout(PATIENCE, work).await {
        Ok(view) => view?,
        Err(_) => {
            supervisor.kill();
            return Err(Failure::failed("The demonstration did not end")
                .fix(format!("look at {}", project.log().display())));
        }
    };
    let events = events(&client, &view).await?;
    if arguments.open {
        output.say("It is over, and the page stays until you press Enter");
        enough().await;
    }
    supervisor.stop(&client).await;
    let accounts = accounts::compare(&folder, &events).await?;
    report(context, &arguments, &folder, &view, &supervisor, &accounts, since.elapsed());
    let good = view.status == "succeeded" && accounts.lost == 0 && accounts.repeated == 0;
    Ok(if good { Exit::Ok } else { Exit::Failed })
}

/// Opens the page in a browser before the run begins.
async fn watch(
    context: &Context,
    supervisor: &mut Supervisor,
    client: &Client,
    headless: bool,
) -> Result<(), Failure> {
    supervisor.keep_alive(client).await?;
    let link: LaunchLink = client.post("/v1/launch", &json!({})).await?;
    context.output.say(format!("Watch it: {}", link.url));
    if !headless && !follow(&supervisor.project, &link.url) {
        context.output.say("no browser was found; open the link yourself within two minutes");
    }
    Ok(())
}

/// Waits for a line, the end of the input or an interruption.
async fn enough() {
    let (ended, end) = tokio::sync::oneshot::channel();
    // A thread that no one waits for: a read of the input cannot be cancelled.
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_line(&mut String::new());
        let _ = ended.send(());
    });
    tokio::select! {
        _ = end => {}
        _ = tokio::signal::ctrl_c() => {}
    }
}

/// Starts the run, once: when the daemon dies before it answers, the run may exist already.
async fn begin(supervisor: &mut Supervisor, client: &Client) -> Result<String, Failure> {
    loop {
        supervisor.keep_alive(client).await?;
        let Ok(runs) = client.get::<Vec<RunView>>("/v1/runs").await else { continue };
        if let Some(view) = runs.first() {
            return Ok(view.run.to_string());
        }
        let body = json!({ "request": REQUEST, "by": "demo" });
        match client.post::<Value>("/v1/runs", &body).await {
            Ok(started) => return Ok(started["run"].as_str().unwrap_or_default().to_owned()),
            Err(failure) if failure.code == Exit::NoDaemon => {}
            Err(failure) => return Err(failure),
        }
    }
}

/// Follows the run to its end, over as many daemons as it takes.
async fn finish(
    context: &Context,
    supervisor: &mut Supervisor,
    client: &Client,
    run: &str,
) -> Result<RunView, Failure> {
    let mut seen = 0;
    loop {
        supervisor.keep_alive(client).await?;
        let path = run_path(Some(run), &format!("/events?follow=true&after={seen}"));
        let Ok(mut lines) = client.lines(&path).await else { continue };
        while let Ok(Some(event)) = lines.next().await {
            seen = event["seq"].as_u64().map_or(seen, |seq| seen.max(seq));
            if let Some(line) = super::run::line(context, &event) {
                context.output.say(line);
            }
            if event["event"] == "run_finished" {
                break;
            }
        }
        if let Ok(view) = client.get::<RunView>(&run_path(Some(run), "")).await
            && (view.is_over() || view.waiting_on.as_deref() == Some("human"))
        {
            return Ok(view);
        }
    }
}

async fn events(client: &Client, view: &RunView) -> Result<Vec<Value>, Failure> {
    let mut lines = client.lines(&run_path(Some(&view.run.to_string()), "/events")).await?;
    let mut events = Vec::new();
    while let Some(event) = lines.next().await? {
        events.push(event);
    }
    Ok(events)
}

fn report(
    context: &Context,
    arguments: &cli::Demo,
    folder: &std::path::Path,
    view: &RunView,
    supervisor: &Supervisor,
    accounts: &accounts::Accounts,
    elapsed: Duration,
) {
    let output = context.output;
    let mut line = json!({
        "run": view.run,
        "status": view.status,
        "handoffs": view.tally.handoffs,
        "rounds": view.tally.rounds,
        "lost": accounts.lost,
        "repeated": accounts.repeated,
        "elapsed_ms": u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
        "repository": folder,
    });
    if let (Some(fields), true) = (line.as_object_mut(), arguments.crash) {
        fields.insert("crashes".into(), supervisor.crashed.into());
        fields.insert("redelivered".into(), accounts.redelivered.into());
        fields.insert("acknowledged".into(), accounts.acknowledged.into());
        fields.insert("seed".into(), supervisor.seed.into());
    }
    if output.json {
        return output.data(&line);
    }
    let tone = if view.status == "succeeded" { Tone::Good } else { Tone::Bad };
    let rest = format!(
        " in {:.1} s: {} handoffs, {} review rounds, {} lost, {} repeated",
        elapsed.as_secs_f64(),
        view.tally.handoffs,
        view.tally.rounds,
        accounts.lost,
        accounts.repeated,
    );
    output.line(output.paint(tone, &view.status) + rest);
    if arguments.crash {
        output.line(format!(
            "{}, {} delivered again under the same key; counted from what the agents \
             themselves wrote down",
            number(supervisor.crashed, "crash", "crashes"),
            number(accounts.redelivered as u64, "turn", "turns"),
        ));
    }
    let folder: PathBuf = folder.to_owned();
    output.line(format!("Look at it: git -C {} log --stat", folder.display()));
    if !arguments.open {
        let folder = folder.display();
        output.line(format!(
            "On the page: stafette open --project {folder}; live: stafette demo --open"
        ));
    }
}

fn now() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| u64::from(since.subsec_nanos()))
}
