//! The terminals of agents: watch, type, restart, and replay.

mod live;
mod recorded;

use aide::axum::ApiRouter;
use axum::Json;
use axum::extract::State;
use axum::routing::get;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{AgentName, RunId};
use stafette_engine::{InputError, Terminal, TerminalError, TerminalState, TerminalView};

pub use live::{Told, Wish};
pub use recorded::Moment;

use crate::openapi::operations;
use crate::request::{Asked, Body, Named};
use crate::{Edge, Problem};

/// Maximum length of a text to type, in bytes.
pub const SEND_LIMIT: usize = 256 * 1024;

operations! {
    fn documented() in "terminals";
    GET "/v1/terminals" => list, Read, "listTerminals", "List the terminals";
    GET "/v1/runs/{run}/terminals/{agent}" => show, Read, "getTerminal",
        "Show a terminal at a glance";
    POST "/v1/runs/{run}/terminals/{agent}/send" => send, Decide, "sendText",
        "Type a text into a terminal";
    POST "/v1/runs/{run}/terminals/{agent}/restart" => restart, Decide, "restartTerminal",
        "Start a terminal's program again";
    POST "/v1/runs/{run}/terminals/{agent}/interrupt" => interrupt, Decide, "interruptTerminal",
        "Press Ctrl-C in a terminal";
}

pub(crate) fn routes() -> ApiRouter<Edge> {
    documented()
        .route("/v1/runs/{run}/terminals/{agent}/live", get(live::live))
        .route("/v1/runs/{run}/terminals/{agent}/recording", get(recorded::recording))
}

/// A terminal, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TheTerminal {
    /// Run id, some of its digits, or `latest` for the newest run that has the terminal.
    run: String,
    /// Name of the agent.
    agent: String,
}

/// Summary of a terminal.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Glance {
    /// Run of the terminal.
    pub run: RunId,
    /// Agent of the terminal.
    pub agent: AgentName,
    /// State of the session: starting, ready, not_ready, working, waiting, crashed, restarting or
    /// ended.
    pub state: String,
    /// Title that the program has set.
    pub title: Option<String>,
    /// Width in columns.
    pub cols: u16,
    /// Height in rows.
    pub rows: u16,
    /// Process id while the program runs.
    pub pid: Option<i32>,
    /// Time of the last change of state (RFC 3339).
    pub since: String,
    /// Note for people, such as the cause of a crash with the last screen.
    pub note: Option<String>,
}

impl From<TerminalView> for Glance {
    fn from(view: TerminalView) -> Self {
        Glance {
            run: view.run,
            agent: view.agent,
            state: word(view.state),
            title: view.title,
            cols: view.cols,
            rows: view.rows,
            pid: view.pid,
            since: view.since.rfc3339(),
            note: view.note,
        }
    }
}

/// Returns the name of a state in the API.
fn word(state: TerminalState) -> String {
    let value = serde_json::to_value(state).ok();
    value.as_ref().and_then(|value| value.as_str()).unwrap_or_default().to_owned()
}

/// Filter for the list of terminals.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Which {
    /// Only terminals of this run.
    run: Option<String>,
}

async fn list(
    State(edge): State<Edge>,
    Asked(which): Asked<Which>,
) -> Result<Json<Vec<Glance>>, Problem> {
    let run = match which.run {
        Some(run) => Some(crate::runs::find(&edge, &run).await?),
        None => None,
    };
    Ok(Json(edge.engine.terminals().list(run).into_iter().map(Glance::from).collect()))
}

async fn show(
    State(edge): State<Edge>,
    Named(place): Named<TheTerminal>,
) -> Result<Json<Glance>, Problem> {
    let place = Place::find(&edge, &place).await?;
    Ok(Json(place.glance()))
}

/// Text to type into a terminal.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Send {
    /// Text to type, at most 256 KiB.
    text: String,
    /// True to press Enter once the whole text is visible.
    #[serde(default = "yes")]
    submit: bool,
}

fn yes() -> bool {
    true
}

/// Result of typing a text.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Sent {
    /// Run of the terminal.
    pub run: RunId,
    /// Agent that received the text.
    pub agent: AgentName,
    /// True if Enter was pressed.
    pub submitted: bool,
}

async fn send(
    State(edge): State<Edge>,
    Named(place): Named<TheTerminal>,
    Body(Send { text, submit }): Body<Send>,
) -> Result<Json<Sent>, Problem> {
    if text.trim().is_empty() {
        return Err(Problem::new(422, "empty_text", "There is nothing to type"));
    }
    if text.len() > SEND_LIMIT {
        let problem = Problem::new(413, "text_too_long", "The text is too long to be typed");
        return Err(problem.because(format!(
            "it has {} bytes, the limit is {SEND_LIMIT}\n\
             fix: write it to a file that the agent can read, and send its name",
            text.len()
        )));
    }
    let Place { run, agent, terminal } = Place::find(&edge, &place).await?;
    terminal.note(&format!("a person sends {} bytes", text.len())).await;
    let typed = terminal.send(&text, submit).await;
    typed.map_err(|error| untyped(&agent, error))?;
    Ok(Json(Sent { run, agent, submitted: submit }))
}

async fn restart(
    State(edge): State<Edge>,
    Named(place): Named<TheTerminal>,
) -> Result<Json<Glance>, Problem> {
    let Place { run, agent, terminal } = Place::find(&edge, &place).await?;
    terminal.note("a person starts it again").await;
    Ok(Json(edge.engine.terminals().restart(run, agent.as_str()).await?.into()))
}

async fn interrupt(
    State(edge): State<Edge>,
    Named(place): Named<TheTerminal>,
) -> Result<Json<Glance>, Problem> {
    let place = Place::find(&edge, &place).await?;
    place.terminal.note("a person interrupts it").await;
    let pressed = place.terminal.interrupt().await;
    pressed.map_err(|error| untyped(&place.agent, error))?;
    Ok(Json(place.glance()))
}

/// A terminal with its run and agent.
#[derive(Debug)]
struct Place {
    run: RunId,
    agent: AgentName,
    terminal: Terminal,
}

impl Place {
    /// Finds a terminal. `latest` is the newest run that has it.
    async fn find(edge: &Edge, place: &TheTerminal) -> Result<Self, Problem> {
        let TheTerminal { run, agent } = place;
        let run = run_of(edge, run, agent).await?;
        let (agent, terminal) = edge.engine.terminals().get(run, agent).await?;
        Ok(Place { run, agent, terminal })
    }

    fn glance(&self) -> Glance {
        TerminalView::of(&self.terminal, self.run, &self.agent).into()
    }
}

/// Finds a run; `latest` is the newest one in which the agent has a terminal.
async fn run_of(edge: &Edge, run: &str, agent: &str) -> Result<RunId, Problem> {
    match edge.engine.terminals().newest(agent).filter(|_| run == "latest") {
        Some(run) => Ok(run),
        None => crate::runs::find(edge, run).await,
    }
}

fn untyped(agent: &AgentName, error: InputError) -> Problem {
    let fix = format!("look at it with `stafette attach {agent}`, or `stafette restart {agent}`");
    let code = match error {
        InputError::Gone => "nothing_runs",
        InputError::Unseen => "not_seen",
        InputError::Unread => "not_read",
    };
    let what = match error {
        InputError::Gone => format!("{agent} runs no program that could take it"),
        InputError::Unseen => format!("{agent} did not show what was typed; Enter was not pressed"),
        InputError::Unread => format!("{agent} does not read what is typed"),
    };
    Problem::new(409, code, what).because(error.to_string()).fix(fix)
}

impl From<TerminalError> for Problem {
    fn from(error: TerminalError) -> Self {
        let what = error.to_string();
        let (status, code, there, otherwise) = match error {
            TerminalError::Engine(error) => return error.into(),
            TerminalError::NoStart { .. } => {
                return Problem::new(409, "does_not_start", what).fix("see `stafette doctor`");
            }
            TerminalError::NoAgent { there, .. } if there.is_empty() => (
                404,
                "no_agent",
                there,
                "`stafette top` shows the agents, and who is in a terminal",
            ),
            TerminalError::NoAgent { there, .. } => (404, "no_agent", there, ""),
            TerminalError::OtherRunner { there, .. } => {
                let fix =
                    "`stafette log` shows what it does; `runner = \"pty\"` gives it a terminal";
                (409, "no_terminal", there, fix)
            }
            TerminalError::NotThere { over: true, there, agent, run } => {
                let fix = format!(
                    "the run is over; see it with `stafette replay {} {agent}`",
                    run.short()
                );
                let problem = Problem::new(409, "no_terminal", what);
                return problem.because(listed(&there)).fix(fix);
            }
            TerminalError::NotThere { there, .. } => (
                409,
                "no_terminal",
                there,
                "it gets one with its first turn; `stafette top` shows when",
            ),
        };
        let fix = match otherwise.is_empty() {
            true => "name one of those; `stafette status` lists the runs",
            false => otherwise,
        };
        Problem::new(status, code, what).because(listed(&there)).fix(fix)
    }
}

fn listed(there: &[AgentName]) -> String {
    match there {
        [] => "no agent of this run is in a terminal now".to_owned(),
        there => {
            let names: Vec<&str> = there.iter().map(AgentName::as_str).collect();
            format!("in a terminal now: {}", names.join(", "))
        }
    }
}
