//! `stafette` alone: says where the project stands, and the one next step. It starts nothing.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use super::{Context, changes};
use crate::client::Client;
use crate::daemon;
use crate::exit::{Exit, Failure};
use crate::output::{Tone, count};
use crate::project::{Project, WORKFLOW, is_repository};
use crate::store::Home;
use crate::trust;

/// What a project needs next, the most urgent first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// No repository and no workflow.
    #[default]
    Outside,
    NoWorkflow,
    InvalidWorkflow,
    NotTrusted,
    /// The folder was at another path before, and its runs are kept there.
    Moved,
    /// Questions or changes wait for a person.
    WaitingForYou,
    /// Runs are stopped until the user acts.
    Stopped,
    Running,
    /// The state of earlier runs is not known without a daemon.
    DaemonDown,
    NoRuns,
    Idle,
}

/// Where a project stands.
#[derive(Clone, Debug, Default, Serialize)]
struct Standing {
    state: State,
    project: Option<PathBuf>,
    workflow: Option<String>,
    /// True if a daemon answers; otherwise the counts are zero.
    daemon: bool,
    /// Runs that have not ended and are not stopped.
    running: usize,
    stopped: usize,
    questions: usize,
    /// Changes that wait for a person's approval.
    changes: usize,
    /// What is wrong, if anything is.
    why: String,
    /// The command to run next.
    next: &'static str,
}

const RUN: &str = "stafette run \"…\"";

pub(crate) async fn run(context: &Context) -> Result<Exit, Failure> {
    let standing = Standing::here(context).await?;
    match context.output.json {
        true => context.output.data(&standing),
        false => standing.show(context),
    }
    Ok(Exit::Ok)
}

/// Prints the same in one line, for the status line of an assistant: nothing outside of a project,
/// and no advice while there is nothing to do.
pub(crate) async fn line(context: &Context) -> Result<Exit, Failure> {
    let standing = Standing::here(context).await?;
    match context.output.json {
        true => context.output.data(&standing),
        false if standing.line().is_empty() => {}
        false => context.output.line(standing.line()),
    }
    Ok(Exit::Ok)
}

impl Standing {
    async fn here(context: &Context) -> Result<Self, Failure> {
        match context.find_project()? {
            Some(project) => Standing::of(&project).await,
            None => Ok(Standing::without(context.project.as_deref())),
        }
    }

    fn line(&self) -> String {
        match self.state {
            State::Outside | State::NoWorkflow => String::new(),
            State::Idle | State::NoRuns => "stafette: idle".to_owned(),
            State::DaemonDown => "stafette: not running".to_owned(),
            _ => {
                let said = self.sentence();
                format!("stafette: {} ({})", said.trim_end_matches('.'), self.next)
            }
        }
    }

    fn without(named: Option<&Path>) -> Self {
        let here = named.map_or_else(std::env::current_dir, Path::canonicalize);
        let (state, next) = match here.is_ok_and(|folder| is_repository(&folder)) {
            true => (State::NoWorkflow, "stafette init"),
            false => (State::Outside, "stafette demo"),
        };
        Standing { state, next, ..Standing::default() }
    }

    async fn of(project: &Project) -> Result<Self, Failure> {
        let mut standing = Standing { project: Some(project.root.clone()), ..Standing::default() };
        let mistake = match project.load() {
            Ok(loaded) => {
                standing.workflow = Some(loaded.workflow.workflow.name.to_string());
                let trusted = trust::check(project, &loaded);
                trusted.err().map(|failure| (State::NotTrusted, failure.why, "stafette trust"))
            }
            Err(failure) => Some((State::InvalidWorkflow, failure.what, "stafette check")),
        };
        let moved = daemon::moved(project).await;
        let moved = moved.map(|moved| (State::Moved, moved.line(), "stafette state adopt"));
        let client = Client::new(&project.socket()?);
        let held = if client.is_up().await? { standing.ask(&client).await? } else { false };
        let (state, why, next) = match moved.or(mistake) {
            Some(first) => first,
            None => {
                let (state, next) = standing.next(project, held);
                (state, String::new(), next)
            }
        };
        Ok(Standing { state, why, next, ..standing })
    }

    /// Counts what the daemon has. Returns true if it continues no run before the user acts.
    async fn ask(&mut self, client: &Client) -> Result<bool, Failure> {
        let runs = super::unfinished(client).await?;
        let questions: Vec<Value> = client.get("/v1/inbox").await?;
        let health: Value = client.get("/healthz").await?;
        self.daemon = true;
        self.running = runs.iter().filter(|run| !run.stopped).count();
        self.stopped = super::stopped(client, &health).await?;
        self.questions = questions.len();
        self.changes = changes::waiting(client, &questions).await?.len();
        Ok(health["held"] == true)
    }

    fn next(&self, project: &Project, held: bool) -> (State, &'static str) {
        match self {
            Standing { daemon: false, .. } => match Home::of(project).map(|home| home.exists()) {
                Ok(false) => (State::NoRuns, RUN),
                _ => (State::DaemonDown, "stafette up"),
            },
            Standing { questions: 0, changes: 0, stopped: 0, running: 0, .. } => (State::Idle, RUN),
            Standing { questions: 0, changes: 0, stopped: 0, .. } => {
                (State::Running, "stafette status")
            }
            // Those that stay stopped when the others continue are not trusted.
            Standing { questions: 0, changes: 0, .. } => match held {
                true => (State::Stopped, "stafette up"),
                false => (State::Stopped, "stafette why"),
            },
            _ => (State::WaitingForYou, "stafette inbox"),
        }
    }

    fn show(&self, context: &Context) {
        let output = context.output;
        if self.state == State::Outside {
            output.line("Stafette lets AI agents hand work to each other and to people without losing any of it.");
            output.line("");
            output.line("  stafette demo  shows it with scripted agents: no keys, no network");
            output.line("  stafette init  sets it up in a project of yours");
            output.line("  stafette help  lists the commands");
            return;
        }
        if let Some(project) = &self.project {
            let workflow = self.workflow.as_ref().map(|name| format!(", workflow `{name}`"));
            let place = format!("{}{}", project.display(), workflow.unwrap_or_default());
            output.line(output.paint(Tone::Quiet, place));
        }
        output.line(self.sentence());
        if !self.why.is_empty() {
            output.line(format!("  why: {}", self.why));
        }
        let counts = self.counts();
        if matches!(self.state, State::InvalidWorkflow | State::NotTrusted) && !counts.is_empty() {
            output.line(counts);
        }
        output.line(output.paint(Tone::Good, "Next:") + " " + self.next);
    }

    fn sentence(&self) -> String {
        match self.state {
            State::Outside => String::new(),
            State::NoWorkflow => format!("There is no {WORKFLOW} in this repository yet."),
            State::InvalidWorkflow => format!("{WORKFLOW} is not valid."),
            State::Moved => "The runs of this project are kept under another path.".to_owned(),
            State::NotTrusted => "This workflow is not trusted yet.".to_owned(),
            State::DaemonDown => "The daemon is not running.".to_owned(),
            State::NoRuns => "Ready, with no runs yet.".to_owned(),
            State::Idle => "Idle: every run has ended, and nothing is waiting for you.".to_owned(),
            State::WaitingForYou | State::Stopped | State::Running => self.counts(),
        }
    }

    /// The counts that are not zero, in a sentence; empty if all are.
    fn counts(&self) -> String {
        let some = |number: usize, said: String| (number > 0).then_some(said);
        let waiting = [
            some(self.questions, count(self.questions, "question")),
            some(self.changes, count(self.changes, "change")),
        ];
        let waiting: Vec<String> = waiting.into_iter().flatten().collect();
        let parts = [
            some(waiting.len(), format!("{} waiting for you", waiting.join(" and "))),
            some(self.running, format!("{} active", count(self.running, "run"))),
            some(self.stopped, format!("{} stopped", count(self.stopped, "run"))),
        ];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        if parts.is_empty() { String::new() } else { format!("{}.", parts.join(", ")) }
    }
}
