//! The calendar, and time blocks that wait for a person.

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use stafette_core::{Millis, Time};
use stafette_knowledge::calendar::proposal::Proposal;
use stafette_stages::{Moved, WeekView};

use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Asked, Body, Named};
use crate::{Edge, Problem, clock};

operations! {
    pub(super) fn routes() in "knowledge";
    GET "/v1/calendar" => between, Shared, "readCalendar", "Events and proposed blocks of a time";
    POST "/v1/calendar/blocks/{block}/accept" => accept, Decide, "acceptBlock",
        "Say yes to a proposed block";
    POST "/v1/calendar/blocks/{block}/drop" => drop_block, Decide, "dropBlock",
        "Say no to a proposed block";
    POST "/v1/calendar/blocks/{block}/move" => move_block, Decide, "moveBlock",
        "Move a block to another time";
}

fn moment(name: &str, text: &str) -> Result<Time, Problem> {
    Time::parse(text).ok_or_else(|| {
        Problem::new(422, "bad_time", format!("`{name}` is not a moment"))
            .because("write it like 2026-03-02T09:00:00Z")
    })
}

/// Period of the calendar to show.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Span {
    /// Start of the period; now if left out.
    #[serde(default)]
    from: Option<String>,
    /// End of the period; a week later if left out.
    #[serde(default)]
    to: Option<String>,
}

async fn between(
    State(edge): State<Edge>,
    principal: Principal,
    Asked(Span { from, to }): Asked<Span>,
) -> Result<Json<WeekView>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    let from = from.map_or(Ok(clock::now()), |text| moment("from", &text))?;
    let to = to.map_or(Ok(from + Millis::hours(7 * 24)), |text| moment("to", &text))?;
    Ok(Json(stages.between(&actor, from, to).await?))
}

/// A time block, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
struct TheBlock {
    /// Id of the block.
    block: String,
}

/// Decision on a time block.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct Word {
    /// Name of the person who decides, for the record.
    by: String,
}

async fn accept(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheBlock { block }): Named<TheBlock>,
    Body(Word { by }): Body<Word>,
) -> Result<Json<Proposal>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(stages.accept(&actor, &edge.engine, &block, &principal.signed(by)).await?))
}

async fn drop_block(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheBlock { block }): Named<TheBlock>,
    Body(Word { by }): Body<Word>,
) -> Result<Json<Proposal>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    Ok(Json(stages.drop_block(&actor, &edge.engine, &block, &principal.signed(by)).await?))
}

/// New time for a block.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Move {
    /// Start of the block.
    start: String,
    /// End of the block.
    end: String,
}

async fn move_block(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheBlock { block }): Named<TheBlock>,
    Body(Move { start, end }): Body<Move>,
) -> Result<Json<Moved>, Problem> {
    let (stages, actor) = edge.knower(&principal)?;
    let times = (moment("start", &start)?, moment("end", &end)?);
    Ok(Json(stages.move_block(&actor, &block, times).await?))
}
