//! Handoffs: list them, propose them in any dialect, and read the answer in the same dialect.

mod dialect;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_core::handoff::State as Stands;
use stafette_core::{AgentName, HandoffId, Input, Offer, Party, Reply, RunId, TurnKey};
use stafette_engine::{EngineError, HandoffRow, HandoffView, Right};

use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Asked, Body, Named, Within};
use crate::runs::{TheHandoff, TheRun, patience};
use crate::turns::{not_theirs, within_run};
use crate::{Edge, Problem};

pub(crate) use dialect::Came;

operations! {
    pub(crate) fn routes() in "handoffs";
    POST "/v1/handoffs" => propose, TakePart, "propose",
        "Propose a handoff in any dialect, recognised by its shape",
        dialect::ABOUT;
    GET "/v1/runs/{run}/handoffs" => list, Read, "listHandoffs", "List the handoffs of a run";
    POST "/v1/runs/{run}/handoffs" => propose_in, TakePart, "proposeInRun",
        "Propose a handoff within a run, in any dialect",
        dialect::ABOUT;
    GET "/v1/runs/{run}/handoffs/{handoff}" => show, Read, "getHandoff", "Show a handoff";
    GET "/v1/runs/{run}/handoffs/{handoff}/answer" => answer, Read, "waitForAnswer",
        "Wait for a handoff's answer, in the dialect it came in";
}

/// A handoff in one line, with its full record under `handoff`.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "HandoffRow")]
pub(crate) struct Row {
    /// Run that the handoff belongs to.
    run: RunId,
    /// Id of the handoff within the run.
    id: HandoffId,
    /// Party that gave the work.
    from: String,
    /// Party that the work was given to.
    to: String,
    /// Reason code, such as `task_handoff`.
    reason: String,
    /// State of the handoff, as one word.
    state: String,
    /// Time of the proposal (RFC 3339).
    opened_at: String,
    /// Time of closing (RFC 3339); null while it is open.
    closed_at: Option<String>,
    /// Full record: admitted, or refused with the rule.
    handoff: HandoffView,
}

impl Row {
    pub(crate) fn of(row: &HandoffRow) -> Result<Self, Problem> {
        let handoff = serde_json::from_str(&row.body).map_err(|error| {
            Problem::new(500, "not_readable", format!("{} cannot be understood", row.id))
                .because(error.to_string())
        })?;
        Ok(Row {
            run: row.run,
            id: row.id,
            from: row.from.clone(),
            to: row.to.clone(),
            reason: row.reason.clone(),
            state: row.state.clone(),
            opened_at: row.opened_at.rfc3339(),
            closed_at: row.closed_at.map(|at| at.rfc3339()),
            handoff,
        })
    }
}

async fn list(
    State(edge): State<Edge>,
    Named(TheRun { run }): Named<TheRun>,
) -> Result<Json<Vec<Row>>, Problem> {
    let run = crate::runs::find(&edge, &run).await?;
    let rows = edge.engine.log().handoffs(run).await?;
    Ok(Json(rows.iter().map(Row::of).collect::<Result<_, _>>()?))
}

async fn show(
    State(edge): State<Edge>,
    Named(place): Named<TheHandoff>,
) -> Result<Json<Row>, Problem> {
    let (run, handoff) = place.find(&edge).await?;
    Ok(Json(row(&edge, run, handoff).await?))
}

async fn row(edge: &Edge, run: RunId, handoff: HandoffId) -> Result<Row, Problem> {
    let row = edge.engine.log().handoff(run, handoff).await?;
    Row::of(&row.ok_or(EngineError::NoHandoff { run, handoff })?)
}

/// Parameters that the document itself does not contain.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Besides {
    /// Run id; the run in which the giver has a turn if left out.
    #[serde(default)]
    run: Option<String>,
    /// Agent for a phase request; the agent named like the phase if left out.
    #[serde(default)]
    to: Option<String>,
}

/// Result of a proposal.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Proposed {
    /// Run that the handoff belongs to.
    run: RunId,
    /// Id of the handoff; left out within a turn, because the handoff is admitted when the turn
    /// ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    handoff: Option<HandoffId>,
    /// Turn in which it was proposed.
    #[serde(skip_serializing_if = "Option::is_none")]
    turn: Option<TurnKey>,
    /// Dialect of the document: `contract`, `phase` or `message`.
    dialect: String,
    /// The document as it was understood, in that dialect.
    document: Value,
}

async fn propose(
    State(edge): State<Edge>,
    principal: Principal,
    Asked(besides): Asked<Besides>,
    within: Within,
    Body(document): Body<Value>,
) -> Result<Json<Proposed>, Problem> {
    let run = match &besides.run {
        Some(run) => Some(crate::runs::find(&edge, run).await?),
        None => None,
    };
    take(&edge, &principal, run, &besides, within, &document).await
}

async fn propose_in(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheRun { run }): Named<TheRun>,
    Asked(besides): Asked<Besides>,
    within: Within,
    Body(document): Body<Value>,
) -> Result<Json<Proposed>, Problem> {
    let run = crate::runs::find(&edge, &run).await?;
    take(&edge, &principal, Some(run), &besides, within, &document).await
}

async fn take(
    edge: &Edge,
    principal: &Principal,
    run: Option<RunId>,
    besides: &Besides,
    Within(trace): Within,
    document: &Value,
) -> Result<Json<Proposed>, Problem> {
    let (offer, came) = dialect::read(document, besides.to.as_deref())?;
    let run = match principal.caller.run() {
        Some(own) => Some(within_run(principal, run.unwrap_or(own))?),
        None => run,
    };
    may_give(principal, &offer.from)?;
    // The response shows what is stored, so that both are redacted.
    let offer = edge.engine.redacted(Offer { trace, ..offer });
    let document = edge.engine.redacted(document.clone());
    let given = Proposal { offer, came, document };
    let turn = match &given.offer.from {
        Party::Agent(name) => {
            let bad = |_| Problem::new(422, "no_agent", "The giver's name cannot be an agent's");
            let agent: AgentName = name.parse().map_err(bad)?;
            Some(edge.engine.external().turn_of(run, &agent).await?)
        }
        // These parties have no turns and may propose at any time.
        Party::Orchestrator | Party::Human => None,
    };
    match turn {
        Some(turn) => given.within(edge, turn).await,
        None => given.outside(edge, run).await,
    }
}

/// Checks that the caller may hand work over in this name: an agent in its own, and only those who
/// decide for a person in a person's.
fn may_give(principal: &Principal, from: &Party) -> Result<(), Problem> {
    match (from, principal.caller.agent()) {
        (Party::Human, _) => principal.may(Right::Decide),
        (from, Some(own)) if *from != Party::from(own) => Err(not_theirs(own, from)),
        _ => Ok(()),
    }
}

struct Proposal {
    offer: Offer,
    came: Came,
    document: Value,
}

impl Proposal {
    /// Proposes within a turn: the handoff moves when the turn ends.
    async fn within(self, edge: &Edge, turn: TurnKey) -> Result<Json<Proposed>, Problem> {
        match edge.engine.external().propose(turn, self.offer.clone()).await {
            Ok(()) => Ok(self.proposed(turn.run, None, Some(turn))),
            Err(EngineError::Refused { refusal }) => Err(self.refused(&refusal.to_string())),
            Err(error) => Err(error.into()),
        }
    }

    async fn outside(self, edge: &Edge, run: Option<RunId>) -> Result<Json<Proposed>, Problem> {
        let Some(run) = run else {
            let problem = Problem::new(422, "which_run", "Which run is this for?");
            return Err(
                problem.because(format!("say so with `?run=`: {} has no turns", self.offer.from))
            );
        };
        let input = Input::Propose { offer: Box::new(self.offer.clone()) };
        match edge.engine.send(run, input).await? {
            Reply::Admitted { handoff } => Ok(self.proposed(run, Some(handoff), None)),
            Reply::Refused { refusal, .. } => Err(self.refused(&refusal.to_string())),
            _ => Err(Problem::new(409, "refused", "The run does not take it at the moment")),
        }
    }

    fn proposed(
        self,
        run: RunId,
        handoff: Option<HandoffId>,
        turn: Option<TurnKey>,
    ) -> Json<Proposed> {
        let dialect = self.came.word().to_owned();
        Json(Proposed { run, handoff, turn, dialect, document: self.document })
    }

    fn refused(&self, why: &str) -> Problem {
        let problem = Problem::new(409, "refused", "The handoff is refused").because(why);
        problem.with_answer(self.came.refusal(&self.offer, why))
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Patience {
    /// Seconds to wait, at most 60; 60 if left out.
    #[serde(default)]
    #[schemars(range(max = 60))]
    within: Option<u32>,
}

/// The answer to a handoff.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AnswerOf {
    /// True once the handoff is answered; false if the wait timed out.
    answered: bool,
    /// State of the handoff, as one word.
    state: String,
    /// Dialect that the handoff came in.
    dialect: String,
    /// The answer in that dialect; in the contract's if the handoff came in none.
    #[serde(skip_serializing_if = "Option::is_none")]
    document: Option<Value>,
}

async fn answer(
    State(edge): State<Edge>,
    Named(place): Named<TheHandoff>,
    Asked(Patience { within }): Asked<Patience>,
) -> Result<Json<AnswerOf>, Problem> {
    let (run, handoff) = place.find(&edge).await?;
    let mut feed = edge.engine.feed(edge.engine.store().head().await.unwrap_or(0));
    let until = tokio::time::Instant::now() + patience(within)?;
    loop {
        let row = row(&edge, run, handoff).await?;
        let closed = row.closed_at.is_some();
        let more = async {
            // Only events of this run can have changed it.
            while let Ok(Some(page)) = feed.next().await {
                if page.iter().any(|stored| stored.run == run) {
                    return true;
                }
            }
            false
        };
        if closed || !tokio::time::timeout_at(until, more).await.unwrap_or(false) {
            return Ok(Json(answer_of(run, row)));
        }
    }
}

fn answer_of(run: RunId, row: Row) -> AnswerOf {
    let (offer, answer) = match &row.handoff {
        HandoffView::Refused(refused) => {
            let came = Came::of(&refused.offer);
            (&refused.offer, Some(came.refusal(&refused.offer, &refused.refusal.to_string())))
        }
        HandoffView::Admitted(handoff) => {
            let came = Came::of(&handoff.offer);
            let answer = match &handoff.state {
                Stands::Closed(closing) => handoff.answer().map(|response| {
                    let id = handoff.id.uuid(run).to_string();
                    came.answer(&handoff.offer, &response, &id, closing.at)
                }),
                _ => None,
            };
            (&handoff.offer, answer)
        }
    };
    let dialect = Came::of(offer).word().to_owned();
    AnswerOf { answered: answer.is_some(), state: row.state, dialect, document: answer }
}
