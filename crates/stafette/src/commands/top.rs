//! `top`: shows every agent, those that need you first.

#[cfg(test)]
mod sample;
mod state;
mod terminal;
pub(super) mod text;
mod view;

use std::io::IsTerminal;
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde_json::{Value, json};
use stafette_core::{RunId, Time};
use stafette_engine::{AgentView, RunView};
use tokio::sync::mpsc;
use tokio::time::{interval, sleep, timeout};

use super::{Context, attach, daemon_of_runs, segment};
use crate::client::Client;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::window::Signals;
use state::{Answer, Asked, Effect, Input, Looked, Snapshot, State};
use terminal::Terminal;
use view::Theme;

/// The least time between two requests to the daemon.
const GAP: Duration = Duration::from_millis(100);

/// The longest time between two requests to the daemon.
const OFTEN: Duration = Duration::from_secs(2);

/// The pause before a daemon that does not answer is tried again.
const PATIENCE: Duration = Duration::from_secs(1);

/// The number of inputs that may wait to be shown.
const QUEUE: usize = 16;

pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let client = daemon_of_runs(context).await?;
    let watched = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
    if !context.output.json && !watched {
        return Err(Failure::usage("`stafette top` needs a terminal")
            .fix("`stafette status` prints the runs once, and `stafette top --json` the agents"));
    }
    if context.output.json {
        let mut agents: Value = client.get("/v1/agents").await?;
        let questions: Value = client.get("/v1/inbox").await?;
        if let Some(fields) = agents.as_object_mut() {
            fields.insert("questions".into(), questions);
            fields.insert("alerts".into(), super::alerts::firing(&client).await.into());
        }
        context.output.data(&agents);
        return Ok(Exit::Ok);
    }
    let broken = |error: std::io::Error| {
        Failure::failed("The terminal cannot be used")
            .because(&error)
            .fix("`stafette top --json` needs none")
    };
    let signals = Signals::new().map_err(broken)?;
    show(client.muted(), signals).await.map_err(broken)
}

/// Shows the agents until the user leaves.
async fn show(client: Client, mut signals: Signals) -> std::io::Result<Exit> {
    let theme = Theme { colour: output::colour_wanted() };
    let mut terminal = Terminal::take(theme)?;
    let (sender, mut news) = mpsc::channel(QUEUE);
    let mut clock = interval(Duration::from_secs(1));
    let mut state = State::new(Time::of(SystemTime::now()));
    tokio::spawn(watch(client.clone(), sender.clone()));
    loop {
        terminal.draw(&mut state)?;
        let input = tokio::select! {
            typed = terminal.next() => typed,
            input = news.recv() => input,
            _ = clock.tick() => Some(Input::Tick(Time::of(SystemTime::now()))),
            () = signals.any() => None,
        };
        // A terminal that went away, or a signal, counts as a key.
        let Some(input) = input else { return Ok(Exit::Ok) };
        match state.update(input) {
            Some(Effect::Quit) => return Ok(Exit::Ok),
            Some(Effect::Look { run, after }) => {
                tokio::spawn(look(client.clone(), sender.clone(), run, after));
            }
            Some(Effect::Answer(answer)) => {
                tokio::spawn(give(client.clone(), sender.clone(), answer));
            }
            Some(Effect::Attach { run, agent }) => {
                let path = attach::path(Some(&run.to_string()), &agent, "");
                let said = match client.get(&path).await {
                    Err(failure) => words(&failure),
                    Ok(glance) => {
                        drop(terminal);
                        let said = attach::watch(&client, &glance, false).await;
                        terminal = Terminal::take(theme)?;
                        said.unwrap_or_else(|failure| words(&failure))
                    }
                };
                state.update(Input::Said(said));
            }
            None => {}
        }
    }
}

/// Sends the daemon's present state, after each change, and when the daemon is back.
async fn watch(client: Client, news: mpsc::Sender<Input>) {
    while !news.is_closed() {
        let Err(failure) = follow(&client, &news).await else { return };
        if news.send(Input::Trouble(words(&failure))).await.is_err() {
            return;
        }
        sleep(PATIENCE).await;
    }
}

async fn follow(client: &Client, news: &mpsc::Sender<Input>) -> Result<(), Failure> {
    let (position, mut snapshot) = load(client).await?;
    let mut lines = client.lines(&format!("/v1/events?follow=true&after={position}")).await?;
    loop {
        if news.send(Input::Snapshot(Box::new(snapshot))).await.is_err() {
            return Ok(());
        }
        // Asks again now and then: an event is stored shortly before the state of its run shows it.
        if let Ok(line) = timeout(OFTEN, lines.next()).await {
            line?.ok_or_else(gone)?;
        }
        // Events that happen together are shown together.
        let pause = sleep(GAP);
        tokio::pin!(pause);
        loop {
            tokio::select! {
                () = &mut pause => break,
                line = lines.next() => line?.ok_or_else(gone)?,
            };
        }
        (_, snapshot) = load(client).await?;
    }
}

fn gone() -> Failure {
    Failure::new(Exit::NoDaemon, "The daemon went away").fix("start it with `stafette up`")
}

async fn load(client: &Client) -> Result<(u64, Snapshot), Failure> {
    #[derive(Deserialize)]
    struct Agents {
        position: u64,
        agents: Vec<AgentView>,
    }
    let Agents { position, agents } = client.get("/v1/agents").await?;
    let questions: Vec<Asked> = client.get("/v1/inbox").await?;
    let alerts = super::alerts::firing(client).await;
    Ok((position, Snapshot { agents, questions, alerts }))
}

/// Reads the last events of a run, and the state of its council.
async fn look(client: Client, news: mpsc::Sender<Input>, run: RunId, after: u64) {
    let read = async {
        let mut lines = client.lines(&format!("/v1/runs/{run}/events?after={after}")).await?;
        let mut events = Vec::new();
        while let Some(event) = lines.next().await? {
            events.push(super::log::line(&event));
        }
        let view: RunView = client.get(&super::run_path(Some(&run.to_string()), "")).await?;
        Ok::<_, Failure>((events, view.council.map(Box::new)))
    };
    let input = match read.await {
        Ok((events, council)) => Input::Looked(Looked { run, events, council }),
        Err(failure) => Input::Said(words(&failure)),
    };
    drop(news.send(input).await);
}

/// Sends an answer and reports the outcome.
async fn give(client: Client, news: mpsc::Sender<Input>, answer: Answer) {
    let Answer { run, handoff, text, typed } = answer;
    let post = async {
        let named = format!("{run}:{handoff}");
        let body = match typed {
            true => {
                let questions: Vec<Value> = client.get("/v1/inbox").await?;
                let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
                super::answer::body(&words, &super::answer::asked_for(&questions, &named))?
            }
            false => json!({ "text": text, "by": crate::project::person() }),
        };
        let path = format!("/v1/inbox/{}", segment(&named));
        client.post::<Value>(&path, &body).await
    };
    let said = match post.await {
        Ok(_) => format!("{handoff} is answered."),
        Err(failure) => words(&failure),
    };
    drop(news.send(Input::Said(said)).await);
}

/// A failure on one line.
fn words(failure: &Failure) -> String {
    let parts = [&failure.what, &failure.why, &failure.fix];
    let said: Vec<&str> =
        parts.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect();
    said.join(": ")
}
