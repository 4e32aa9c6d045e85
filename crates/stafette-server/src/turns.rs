//! Turns of external agents: wait for one, accept it, return its result.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_core::wire::Document;
use stafette_core::{
    AgentName, Fields, HandoffId, Kind, Millis, MissingInput, Offer, Outcome, Party, Question,
    Reason, Response, RunId, Statement, TurnKey, TurnOrder, TurnResult, Usage,
};
use stafette_engine::{Finished, Wanted};

use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Asked, Body, Named};
use crate::runs::{TheHandoff, patience};
use crate::{Edge, Problem};

operations! {
    pub(crate) fn routes() in "turns";
    GET "/v1/turns" => wait, Shared, "waitForTurn",
        "Wait for work: the turns that nobody has taken";
    POST "/v1/runs/{run}/handoffs/{handoff}/accept" => accept, TakePart, "acceptTurn",
        "Take a turn";
    POST "/v1/runs/{run}/handoffs/{handoff}/report" => report, TakePart, "reportProgress",
        "Show that a turn goes on, and what it used";
    POST "/v1/runs/{run}/handoffs/{handoff}/complete" => complete, TakePart, "completeTurn",
        "End a turn with its result";
    POST "/v1/runs/{run}/handoffs/{handoff}/reject" => reject, TakePart, "rejectTurn",
        "Give a turn back: it cannot be done";
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    /// Only turns of this run.
    #[serde(default)]
    run: Option<String>,
    /// Only turns of this agent.
    #[serde(default)]
    agent: Option<AgentName>,
    /// Seconds to wait for a turn, at most 60; no wait if left out.
    #[serde(default)]
    #[schemars(range(max = 60))]
    within: Option<u32>,
}

async fn wait(
    State(edge): State<Edge>,
    principal: Principal,
    Asked(Wish { run, agent, within }): Asked<Wish>,
) -> Result<Json<Vec<TurnOrder>>, Problem> {
    let run = match run {
        Some(run) => Some(crate::runs::find(&edge, &run).await?),
        None => None,
    };
    let within = patience(Some(within.unwrap_or(0)))?;
    let agent = match (principal.caller.agent(), agent) {
        (Some(own), Some(other)) if *own != other => return Err(not_theirs(own, &other)),
        (Some(own), _) => Some(own.clone()),
        (None, agent) => agent,
    };
    let run = match principal.caller.run() {
        Some(own) => Some(within_run(&principal, run.unwrap_or(own))?),
        None => run,
    };
    Ok(Json(edge.engine.external().offered(&Wanted { run, agent }, within).await))
}

/// Returns the run, if the caller may take part in it: an agent that Stafette started takes part in
/// its own alone.
pub(crate) fn within_run(principal: &Principal, run: RunId) -> Result<RunId, Problem> {
    match (principal.caller.run(), principal.caller.agent()) {
        (Some(own), Some(agent)) if own != run => Err(not_theirs(agent, &run)),
        _ => Ok(run),
    }
}

/// Finds the handoff, if the caller may take its turns: an agent takes only its own.
async fn theirs(
    edge: &Edge,
    principal: &Principal,
    place: &TheHandoff,
) -> Result<(RunId, HandoffId), Problem> {
    let (run, handoff) = place.find(edge).await?;
    if let Some(own) = principal.caller.agent() {
        within_run(principal, run)?;
        let state = edge.engine.state(run).await?;
        let to = state.handoff(handoff).map(|handoff| &handoff.offer.to);
        if let Some(to) = to.filter(|to| **to != Party::from(own)) {
            return Err(not_theirs(own, to));
        }
    }
    Ok((run, handoff))
}

pub(crate) fn not_theirs(own: &AgentName, other: &dyn std::fmt::Display) -> Problem {
    tracing::warn!(%own, %other, "an agent may not take the turns of another");
    let title = format!("`{own}` may not take part as or in `{other}`");
    Problem::new(403, "not_yours", title)
}

/// Request to accept a turn.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Accept {
    /// Name of the caller: the same name may accept the turn again and gets the same response.
    by: String,
    /// Maximum time between two signs of life; the workflow's lease if left out.
    lease: Option<Millis>,
}

async fn accept(
    State(edge): State<Edge>,
    principal: Principal,
    Named(place): Named<TheHandoff>,
    Body(Accept { by, lease }): Body<Accept>,
) -> Result<Json<TurnOrder>, Problem> {
    let (run, handoff) = theirs(&edge, &principal, &place).await?;
    let by = principal.taker(by);
    Ok(Json(edge.engine.external().accept(run, handoff, &by, lease).await?))
}

/// Parses a turn: `1.1`, or the whole key as it was given out.
fn turn(run: RunId, handoff: HandoffId, text: &str) -> Result<TurnKey, Problem> {
    let bad = |why: &str| {
        Problem::new(
            422,
            "not_a_turn",
            format!("`{}` is not a turn", text.chars().take(80).collect::<String>()),
        )
        .because(why)
    };
    let whole =
        if text.contains('/') { text.to_owned() } else { format!("{run}/{handoff}/{text}") };
    let key: TurnKey = whole.parse().map_err(|_| bad("they look like 1.1 or RUN/h7/1.1"))?;
    match key.run == run && key.handoff == handoff {
        true => Ok(key),
        false => Err(bad("it is a turn of another handoff")),
    }
}

/// Progress of a turn.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Report {
    /// The turn: its key, or the end of it such as `1.1`.
    turn: String,
    /// Current activity, in a few words.
    #[serde(default)]
    note: Option<String>,
    /// Usage since the last report.
    #[serde(default)]
    usage: Usage,
}

/// Confirms a progress report.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Heard {
    /// Key of the turn.
    turn: TurnKey,
}

async fn report(
    State(edge): State<Edge>,
    principal: Principal,
    Named(place): Named<TheHandoff>,
    Body(Report { turn: text, note, usage }): Body<Report>,
) -> Result<Json<Heard>, Problem> {
    let (run, handoff) = theirs(&edge, &principal, &place).await?;
    let turn = turn(run, handoff, &text)?;
    edge.engine.external().report(turn, note, usage).await?;
    Ok(Json(Heard { turn }))
}

/// Result of a turn.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Complete {
    /// The turn: its key, or the end of it such as `1.1`.
    turn: String,
    /// Status of the work; if left out, `failed` with a `failure` and `resolved` with anything else.
    /// `outcome` is its earlier name.
    #[serde(default, alias = "outcome")]
    status: Option<Outcome>,
    /// Summary in a few sentences.
    #[serde(default)]
    summary: String,
    /// Outputs that the turn provides.
    #[serde(default)]
    outputs: Fields,
    /// Reason why it failed; left out otherwise.
    #[serde(default)]
    failure: Option<String>,
    /// Keys that could not be provided.
    #[serde(default)]
    unresolved: Vec<String>,
    /// Recommended next steps, one per entry.
    #[serde(default)]
    recommendations: Vec<String>,
    /// Handoffs that the turn makes.
    #[serde(default)]
    handoffs: Vec<Onward>,
    /// Alternatively, a response in a dialect: a handoff response or a phase response.
    #[serde(default)]
    document: Option<Value>,
    /// Usage that was not reported yet.
    #[serde(default)]
    usage: Usage,
}

/// A handoff that the turn makes.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Onward {
    /// Agent or party that receives the work.
    to: String,
    /// True if the giver continues with the answer; otherwise the baton moves. If left out, a person's
    /// answer is waited for.
    #[serde(default)]
    wait: Option<bool>,
    /// Reason code, such as `review_request`; `task_handoff` if left out.
    #[serde(default = "task")]
    reason: Reason,
    /// Summary that the receiver should read first.
    #[serde(default)]
    summary: String,
    /// Instructions for the receiver.
    #[serde(default)]
    instructions: Option<String>,
    /// Outputs that are passed along.
    #[serde(default)]
    outputs: Fields,
    /// Inputs that the giver wants back.
    #[serde(default)]
    missing: Vec<MissingInput>,
    /// Question to a person: a sentence, or an object with `details`. The giver waits for the answer.
    #[serde(default)]
    question: Option<Asks>,
    /// Answers to choose from, for a question.
    #[serde(default)]
    options: Vec<String>,
}

/// A question to a person, as a sentence or with more about it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Asks {
    Sentence(String),
    Question {
        /// The question as the person reads it.
        details: String,
        /// Answers to choose from.
        #[serde(default)]
        options: Vec<String>,
        /// The situation in which it arose.
        #[serde(default)]
        context: String,
    },
}

fn task() -> Reason {
    Reason::TaskHandoff
}

impl Onward {
    fn offer(self, from: &Party) -> Offer {
        let to = Party::from(self.to);
        let waits = self.wait.unwrap_or(to == Party::Human || self.question.is_some());
        let question = self.question.map(|asks| {
            let (details, mut options, context) = match asks {
                Asks::Sentence(details) => (details, Vec::new(), String::new()),
                Asks::Question { details, options, context } => (details, options, context),
            };
            options.extend(self.options);
            Question { details, options, context, blocking: waits, ..Question::default() }
        });
        let reason = match question.is_some() && self.reason == task() {
            true => Reason::RequiresHumanDecision,
            false => self.reason,
        };
        let kind = if waits { Kind::Delegate } else { Kind::Transfer };
        Offer {
            summary: self.summary,
            instructions: self.instructions,
            outputs: self.outputs,
            missing: self.missing,
            question,
            ..Offer::new(from.clone(), to, kind, reason)
        }
    }
}

impl Complete {
    fn result(self, by: &Party) -> Result<TurnResult, Problem> {
        let offers: Vec<Offer> = self.handoffs.into_iter().map(|it| it.offer(by)).collect();
        let stated = Statement {
            outcome: self.status,
            summary: self.summary,
            outputs: self.outputs,
            unresolved: self.unresolved,
            failure: self.failure,
            recommendations: self.recommendations,
        };
        let unanswered = stated.is_empty() && offers.is_empty() && self.document.is_none();
        let response = match self.document {
            Some(document) => answer(&document, by)?,
            None => stated.response(by.clone()),
        };
        let usage = self.usage.max(response.usage);
        Ok(TurnResult { offers, usage, unanswered, ..TurnResult::new(response) })
    }
}

fn answer(document: &Value, by: &Party) -> Result<Response, Problem> {
    let bad =
        |why: String| Problem::new(422, "not_an_answer", "The document is no answer").because(why);
    let read = Document::read(document).map_err(|violations| {
        let said = violations.iter().take(16).map(|v| format!("{} {}", v.path, v.message));
        bad(said.collect::<Vec<_>>().join("; "))
    })?;
    match read {
        Document::HandoffResponse(response) => Ok(response.into_response()),
        Document::PhaseResponse(response) => Ok(response.into_response(by.clone())),
        other => Err(bad(format!("it is a {}", other.name()))),
    }
}

/// Result of completing a turn.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Ended {
    /// Key of the turn.
    turn: TurnKey,
    /// Handoffs that were admitted.
    admitted: Vec<HandoffId>,
    /// Handoffs that were refused, each with the rule.
    refused: Vec<String>,
}

impl Ended {
    fn of(turn: TurnKey, Finished { admitted, refused }: Finished) -> Self {
        let refused = refused.iter().map(ToString::to_string).collect();
        Ended { turn, admitted, refused }
    }
}

async fn complete(
    State(edge): State<Edge>,
    principal: Principal,
    Named(place): Named<TheHandoff>,
    Body(body): Body<Complete>,
) -> Result<Json<Ended>, Problem> {
    let (run, handoff) = theirs(&edge, &principal, &place).await?;
    let turn = turn(run, handoff, &body.turn)?;
    let state = edge.engine.state(run).await?;
    let missing = stafette_engine::EngineError::NoHandoff { run, handoff };
    let by = state.handoff(handoff).map(|handoff| handoff.offer.to.clone()).ok_or(missing)?;
    let finished = edge.engine.external().complete(turn, body.result(&by)?).await?;
    Ok(Json(Ended::of(turn, finished)))
}

/// Request to reject a turn.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reject {
    /// The turn: its key, or the end of it such as `1.1`.
    turn: String,
    /// Reason why it cannot be done.
    #[schemars(length(min = 1))]
    why: String,
}

async fn reject(
    State(edge): State<Edge>,
    principal: Principal,
    Named(place): Named<TheHandoff>,
    Body(Reject { turn: text, why }): Body<Reject>,
) -> Result<Json<Ended>, Problem> {
    let (run, handoff) = theirs(&edge, &principal, &place).await?;
    let turn = turn(run, handoff, &text)?;
    edge.engine.external().reject(turn, why).await?;
    Ok(Json(Ended { turn, admitted: Vec::new(), refused: Vec::new() }))
}
