//! Generations: notes for the next one, its briefing and context, and the council of a run.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_core::team::council::Council;
use stafette_core::team::generation::{Lineage, Plan};
use stafette_core::wire::context::OrchestratorContext;
use stafette_core::workflow::Budget;
use stafette_core::workflow::generations::GenerationRules;
use stafette_core::{Fields, Millis, RunId, Usd, Workflow};
use stafette_engine::{Ancestry, Briefing, Right, clock};

use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Body, Named};
use crate::runs::{TheRun, find};
use crate::{Edge, Problem};

operations! {
    pub(crate) fn routes() in "generations";
    POST "/v1/runs/{run}/notes" => note, Run, "leaveNote", "Leave a note for the next generation";
    GET "/v1/runs/{run}/briefing" => briefing, Read, "getBriefing",
        "What the next generation reads first";
    GET "/v1/runs/{run}/context" => context, Read, "getContext", "Where the team of a run stands";
    GET "/v1/runs/{run}/generations" => generations, Read, "getGenerations",
        "The generations of a run's team";
    GET "/v1/runs/{run}/council" => council, Read, "getCouncil",
        "The discussion and votes of a run's council";
}

/// Note for the next generation.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LeaveNote {
    /// Text of the note.
    #[schemars(length(min = 1))]
    text: String,
    /// Name of the author, for the record.
    #[serde(default)]
    by: String,
}

/// Confirms that a note was stored.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct NoteTaken {
    /// Run that passes the note on: the newest generation.
    run: RunId,
}

async fn note(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheRun { run }): Named<TheRun>,
    Body(LeaveNote { text, by }): Body<LeaveNote>,
) -> Result<Json<NoteTaken>, Problem> {
    if text.trim().is_empty() {
        return Err(Problem::new(422, "empty_note", "The note is empty"));
    }
    let run = find(&edge, &run).await?;
    let run = edge.engine.generations().note(run, text, principal.signed(by)).await?;
    Ok(Json(NoteTaken { run }))
}

async fn briefing(
    State(edge): State<Edge>,
    Named(TheRun { run }): Named<TheRun>,
) -> Result<Json<Briefing>, Problem> {
    let run = find(&edge, &run).await?;
    Ok(Json(edge.engine.generations().briefing(run).await?))
}

async fn context(
    State(edge): State<Edge>,
    Named(TheRun { run }): Named<TheRun>,
) -> Result<Json<OrchestratorContext>, Problem> {
    let run = find(&edge, &run).await?;
    Ok(Json(edge.engine.generations().context(run).await?))
}

async fn generations(
    State(edge): State<Edge>,
    Named(TheRun { run }): Named<TheRun>,
) -> Result<Json<Ancestry>, Problem> {
    let run = find(&edge, &run).await?;
    Ok(Json(edge.engine.generations().of(run).await?))
}

async fn council(
    State(edge): State<Edge>,
    Named(TheRun { run }): Named<TheRun>,
) -> Result<Json<Council>, Problem> {
    let run = find(&edge, &run).await?;
    let state = edge.engine.state(run).await?;
    let none = || Problem::new(404, "no_council", "No council has met in this run");
    Ok(Json(state.shown_council().ok_or_else(none)?))
}

/// Settings for generations that follow each other automatically; the workflow's value applies to
/// each one left out.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Continuous {
    /// Maximum number of generations, including the first.
    #[schemars(range(min = 1))]
    max_runs: Option<u32>,
    /// Maximum cost of all generations together.
    max_cost: Option<Usd>,
    /// Number of generations between questions to a person; 0 never asks.
    check_in_every: Option<u32>,
    /// Wait before the next generation starts.
    pause: Option<Millis>,
}

impl Continuous {
    /// Returns the right that these settings need: more than the workflow allows is for people who
    /// decide, as its budget is.
    pub(crate) fn right(&self, rules: Option<&GenerationRules>) -> Right {
        let is_within = rules.is_some_and(|rules| {
            // Zero asks never.
            let often = |every: u32| if every == 0 { u32::MAX } else { every };
            self.max_runs.is_none_or(|runs| runs <= rules.max_runs)
                && self.max_cost.is_none_or(|cost| cost <= rules.max_cost)
                && self.check_in_every.is_none_or(|it| often(it) <= often(rules.check_in_every))
                && self.pause.is_none_or(|pause| pause >= rules.pause)
        });
        if is_within { Right::Run } else { Right::Decide }
    }
}

/// Parameters of a run that starts as a generation of its team.
#[derive(Debug)]
pub(crate) struct Begun {
    pub(crate) request: String,
    pub(crate) budget: Budget,
    pub(crate) lineage: Option<Box<Lineage>>,
}

impl Begun {
    /// Returns a run that may continue from a context, and may have further generations follow.
    pub(crate) async fn of(
        edge: &Edge,
        workflow: &Workflow,
        (request, budget, inputs): (String, Budget, &Fields),
        context: Option<Value>,
        continuous: Option<Continuous>,
    ) -> Result<Self, Problem> {
        let imported = match context {
            Some(context) => Some(edge.engine.generations().import(&read(context)?).await?),
            None => None,
        };
        let given = request.trim().is_empty().then_some(()).and(imported.as_ref());
        let request = given.map_or(request, |imported| imported.request.clone());
        if request.trim().is_empty() {
            let problem = Problem::new(422, "empty_request", "The request is empty");
            return Err(problem.because("say what the agents should do"));
        }
        if imported.is_none() && continuous.is_none() {
            return Ok(Begun { request, budget, lineage: None });
        }
        let first = || Lineage::first(clock::now(), Fields::new());
        let mut lineage = imported.map_or_else(first, |imported| imported.lineage);
        lineage.given = inputs.clone();
        let mut budget = budget;
        if let Some(wanted) = continuous {
            let rules = workflow.generations.clone().unwrap_or_default();
            let plan = Plan {
                max_runs: wanted.max_runs.unwrap_or(rules.max_runs).max(1),
                max_cost: wanted.max_cost.unwrap_or(rules.max_cost),
                check_in_every: wanted.check_in_every.unwrap_or(rules.check_in_every),
                pause: wanted.pause.unwrap_or(rules.pause),
                budget: budget.clone(),
                first: lineage.number,
                spent: lineage.spent,
            };
            budget.money = budget.money.min(plan.max_cost);
            lineage = lineage.planned(plan);
        }
        Ok(Begun { request, budget, lineage: Some(Box::new(lineage)) })
    }
}

fn read(context: Value) -> Result<OrchestratorContext, Problem> {
    serde_json::from_value(context).map_err(|error| {
        Problem::new(422, "not_a_context", "The context cannot be understood")
            .because(error.to_string())
    })
}
