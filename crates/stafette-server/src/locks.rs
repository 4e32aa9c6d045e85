//! Locks: who has what, and until when.

use std::time::Duration;

use aide::axum::ApiRouter;
use aide::axum::routing::{get_with, post_with};
use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::lock::{
    Answer, Claim, Conflict, Holder, Link, Lock, LockId, LockRules, Mode, OnConflict, Pattern,
    Refusal, Waiter, Who,
};
use stafette_core::{Millis, TurnKey};
use stafette_engine::Engine;

use crate::openapi::named;
use crate::principal::{Principal, Scope, Via};
use crate::request::{Asked, Body, Named};
use crate::{Edge, Problem};

/// How long a client may wait in one request.
const LONGEST_CALL: Duration = Duration::from_secs(60);

/// What can be asked about locks.
pub(crate) fn routes() -> ApiRouter<Edge> {
    let about = |id, summary| named("locks", id, summary);
    ApiRouter::new()
        .api_route(
            "/v1/locks",
            get_with(list, about("listLocks", "Who has what, and who waits for it"))
                .post_with(take, about("takeLock", "Take a lock, or a place in the line for it")),
        )
        .api_route(
            "/v1/locks/check",
            post_with(check, about("checkLocks", "Whether files may be written")),
        )
        .api_route(
            "/v1/locks/{lock}",
            get_with(wait, about("waitForLock", "A lock, as soon as it is held")),
        )
        .api_route(
            "/v1/locks/{lock}/renew",
            post_with(renew, about("renewLock", "Keep a lock for longer")),
        )
        .api_route(
            "/v1/locks/{lock}/release",
            post_with(release, about("releaseLock", "Give a lock back")),
        )
        .api_route(
            "/v1/locks/{lock}/takeover",
            post_with(take_over, about("takeOverLock", "Take a lock from its holder")),
        )
}

/// Which lock is meant.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TheLock {
    /// Its name, such as `l3`.
    lock: String,
}

/// A lock, or a place in the line for one.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LockView {
    /// Its name.
    id: LockId,
    /// `held` or `waiting`.
    state: LockState,
    /// The fencing number, when it is held.
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<u64>,
    /// Who, in a word.
    holder: String,
    /// Who, in full.
    by: Holder,
    /// On what.
    patterns: Vec<Pattern>,
    /// Whether others may have it too.
    mode: Mode,
    /// What for.
    reason: String,
    /// Since when it is held or waited for.
    since: String,
    /// When the lease or the wait is over.
    until: String,
}

/// Whether a lock is held.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LockState {
    /// It is held.
    Held,
    /// It is waited for.
    Waiting,
}

impl From<&Lock> for LockView {
    fn from(lock: &Lock) -> Self {
        let ends = (lock.taken_at.rfc3339(), lock.expires_at.rfc3339());
        view(lock.id, LockState::Held, Some(lock.fence), &lock.claim, ends)
    }
}

impl From<&Waiter> for LockView {
    fn from(waiter: &Waiter) -> Self {
        let ends = (waiter.since.rfc3339(), waiter.until.rfc3339());
        view(waiter.id, LockState::Waiting, None, &waiter.claim, ends)
    }
}

fn view(
    id: LockId,
    state: LockState,
    fence: Option<u64>,
    claim: &Claim,
    (since, until): (String, String),
) -> LockView {
    LockView {
        id,
        state,
        fence,
        holder: claim.holder.to_string(),
        by: claim.holder.clone(),
        patterns: claim.patterns.clone(),
        mode: claim.mode,
        reason: claim.reason.clone(),
        since,
        until,
    }
}

/// A deadlock of the last hour.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct AlertView {
    /// `DEADLOCK`.
    code: String,
    /// When it was found.
    at: String,
    /// Who waited for whom, in a sentence.
    message: String,
    /// Who waited for whom.
    circle: Vec<Link>,
    /// Who was refused.
    refused: LockId,
}

/// All locks of the project.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LockList {
    /// Counts the changes.
    version: u64,
    /// The last fencing number that was given.
    fence: u64,
    /// What is held and waited for, the oldest first.
    locks: Vec<LockView>,
    /// The deadlocks of the last hour, the newest first.
    alerts: Vec<AlertView>,
}

async fn list(State(edge): State<Edge>) -> Result<Json<LockList>, Problem> {
    let locks = edge.engine.locks();
    let alerts = edge.engine.deadlocks().await?.into_iter().map(|alert| AlertView {
        code: "DEADLOCK".to_owned(),
        at: alert.at.rfc3339(),
        message: Refusal::Deadlock { circle: alert.circle.clone() }.to_string(),
        circle: alert.circle,
        refused: alert.refused,
    });
    let mut all: Vec<LockView> = locks.held.values().map(LockView::from).collect();
    all.extend(locks.waiting.values().map(LockView::from));
    let (version, fence) = (locks.version, locks.fence);
    Ok(Json(LockList { version, fence, locks: all, alerts: alerts.collect() }))
}

/// Who asks. An agent shows its session's token; everybody else says their name.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Asker {
    /// The token of an agent's session.
    token: Option<String>,
    /// The name of a person.
    by: String,
    /// The command that it is for, when others of the same person must wait too.
    seat: String,
}

/// Who asks, and the turn and rules of an agent.
struct Known {
    holder: Holder,
    turn: Option<TurnKey>,
    rules: LockRules,
}

async fn known(edge: &Edge, principal: &Principal, asker: &Asker) -> Result<Known, Problem> {
    let Some(token) = &asker.token else {
        // At the socket sits the user, under any name; who came by TCP has the one they were given.
        let holder = match (&principal.via, asker.by.trim()) {
            (Via::Socket { .. }, "") => Holder::person("someone"),
            (Via::Socket { .. }, name) => Holder::person(name),
            _ => Holder::visitor(&principal.name),
        };
        let holder = holder.at(&asker.seat);
        // A workflow that cannot be read or is not trusted sets no rules.
        let rules = (edge.workflow)().map(|workflow| workflow.locks).unwrap_or_default();
        return Ok(Known { holder, turn: None, rules });
    };
    let (run, agent, turn) = edge.engine.session(token, principal.pid()).await?;
    let rules = edge.engine.state(run).await?.workflow.locks.clone();
    let holder = Holder::session(run, agent).at(&asker.seat);
    Ok(Known { holder, turn: Some(turn), rules })
}

/// A wish for a lock.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Take {
    /// Paths and globs, relative to the project; all of them or nothing.
    patterns: Vec<String>,
    /// Whether others may have it too.
    #[serde(default)]
    mode: Mode,
    /// For how long; as the workflow says otherwise.
    #[serde(default)]
    lease: Option<Millis>,
    /// How long to wait for it; as the workflow says otherwise.
    #[serde(default)]
    wait: Option<Millis>,
    /// What to do when somebody else has it; as the workflow says otherwise.
    #[serde(default)]
    on_conflict: Option<OnConflict>,
    /// What for.
    #[serde(default)]
    reason: String,
    /// Who asks.
    #[serde(default)]
    who: Asker,
}

/// Answers with the lock, or with 202 and a place in the line, to be asked about within two minutes.
async fn take(
    State(edge): State<Edge>,
    principal: Principal,
    Body(take): Body<Take>,
) -> Result<(StatusCode, Json<LockView>), Problem> {
    let Known { holder, turn, rules } = known(&edge, &principal, &take.who).await?;
    let on_conflict = take.on_conflict.unwrap_or(rules.on_conflict);
    let is_agent = matches!(holder.who, Who::Session { .. });
    if on_conflict == OnConflict::TakeOver && rules.on_conflict != on_conflict {
        principal.may(Scope::Admin)?;
    }
    if on_conflict == OnConflict::TakeOver && is_agent && rules.on_conflict != on_conflict {
        let problem = Problem::new(403, "not_allowed", "An agent may not take a lock from others");
        return Err(problem.because("only a person may, or a workflow that says so in `[locks]`"));
    }
    let patterns = take.patterns.iter().map(|text| text.parse::<Pattern>());
    let patterns = patterns
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| Problem::new(422, "bad_pattern", error.to_string()))?;
    let reason = match take.reason.trim().is_empty() && rules.on_conflict == OnConflict::TakeOver {
        true => "the workflow takes locks over".to_owned(),
        false => take.reason,
    };
    let lease = take.lease.unwrap_or(rules.lease);
    let claim = Claim { holder: holder.clone(), turn, patterns, mode: take.mode, lease, reason };
    let wait = take.wait.unwrap_or(rules.wait);
    let mut answer = edge.engine.take_lock(claim, on_conflict, wait).await?;
    if let Answer::Waiting(waiter) = &answer {
        // Who goes away now has never heard of its place in the line.
        let mut place = Place { engine: edge.engine.clone(), id: waiter.id, holder: Some(holder) };
        answer = edge.engine.wait_lock(waiter.id, wait.into()).await?;
        place.holder = None;
    }
    shown(&answer)
}

/// A place in the line whose owner has not heard of it yet.
struct Place {
    engine: Engine,
    id: LockId,
    holder: Option<Holder>,
}

impl Drop for Place {
    fn drop(&mut self) {
        if let Some(holder) = self.holder.take() {
            let (engine, id) = (self.engine.clone(), self.id);
            tokio::spawn(async move { engine.release_lock(id, holder).await });
        }
    }
}

fn shown(answer: &Answer) -> Result<(StatusCode, Json<LockView>), Problem> {
    match answer {
        Answer::Held(lock) => Ok((StatusCode::OK, Json(lock.into()))),
        Answer::Waiting(waiter) => Ok((StatusCode::ACCEPTED, Json(waiter.into()))),
        Answer::Done => Err(Problem::new(409, "lock_lost", "The lock is not held any more")),
    }
}

/// How long to wait for a change.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default)]
pub(crate) struct Patience {
    /// At most a minute.
    wait: Millis,
}

/// A lock as soon as it is held, or the place in the line after `wait`.
async fn wait(
    State(edge): State<Edge>,
    Named(TheLock { lock }): Named<TheLock>,
    Asked(Patience { wait }): Asked<Patience>,
) -> Result<(StatusCode, Json<LockView>), Problem> {
    let within = Duration::from(wait).min(LONGEST_CALL);
    shown(&edge.engine.wait_lock(find(&lock)?, within).await?)
}

/// A wish to keep a lock for longer.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Renew {
    /// Its fencing number, if it is known.
    #[serde(default)]
    fence: Option<u64>,
    /// For how long from now; as long as before otherwise.
    #[serde(default)]
    lease: Option<Millis>,
    /// Who asks.
    #[serde(default)]
    who: Asker,
}

async fn renew(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheLock { lock }): Named<TheLock>,
    Body(Renew { fence, lease, who }): Body<Renew>,
) -> Result<(StatusCode, Json<LockView>), Problem> {
    let Known { holder, .. } = known(&edge, &principal, &who).await?;
    shown(&edge.engine.renew_lock(find(&lock)?, holder, fence, lease).await?)
}

/// A wish to give a lock back.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Release {
    /// Who asks.
    who: Asker,
}

/// A lock was given back.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Released {
    /// Which.
    released: LockId,
}

async fn release(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheLock { lock }): Named<TheLock>,
    Body(Release { who }): Body<Release>,
) -> Result<Json<Released>, Problem> {
    let id = find(&lock)?;
    let Known { holder, .. } = known(&edge, &principal, &who).await?;
    edge.engine.release_lock(id, holder).await?;
    Ok(Json(Released { released: id }))
}

/// A wish to take a lock from its holder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TakeOver {
    /// Why; it is written down.
    reason: String,
    /// Who asks.
    #[serde(default)]
    who: Asker,
}

async fn take_over(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheLock { lock }): Named<TheLock>,
    Body(TakeOver { reason, who }): Body<TakeOver>,
) -> Result<(StatusCode, Json<LockView>), Problem> {
    principal.may(Scope::Admin)?;
    let Known { holder, .. } = known(&edge, &principal, &who).await?;
    if matches!(holder.who, Who::Session { .. }) {
        return Err(Problem::new(403, "not_allowed", "Only a person may take a lock over"));
    }
    shown(&edge.engine.take_over_lock(find(&lock)?, holder, reason).await?)
}

/// Whether something may be written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    /// Files, relative to the project.
    paths: Vec<String>,
    /// The fencing number of the lock that they are written with, if there is one.
    #[serde(default)]
    fence: Option<u64>,
    /// Who asks.
    #[serde(default)]
    who: Asker,
}

/// It may be written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Checked {
    /// Always true: what must not be written is a problem.
    allowed: bool,
}

async fn check(
    State(edge): State<Edge>,
    principal: Principal,
    Body(Check { paths, fence, who }): Body<Check>,
) -> Result<Json<Checked>, Problem> {
    let Known { holder, .. } = known(&edge, &principal, &who).await?;
    edge.engine.may_write(&holder, &paths, fence).await?;
    Ok(Json(Checked { allowed: true }))
}

fn find(text: &str) -> Result<LockId, Problem> {
    text.parse().map_err(|error: stafette_core::lock::NotALock| {
        Problem::new(422, "not_a_lock", error.to_string())
    })
}

/// The status and code of a lock that is not to be had.
pub(crate) fn refused(refusal: &Refusal) -> (u16, &'static str) {
    match refusal {
        Refusal::Locked { .. } | Refusal::Awaited { .. } | Refusal::Late { .. } => (423, "locked"),
        Refusal::Deadlock { .. } => (409, "deadlock"),
        Refusal::Lost { .. } => (409, "lock_lost"),
        Refusal::NotYours { .. } => (403, "lock_not_yours"),
        Refusal::NoReason => (422, "no_reason"),
        Refusal::Limit { .. } => (422, "lock_limit"),
    }
}

/// The status and code of what must not be written.
pub(crate) fn in_the_way(conflict: &Conflict) -> (u16, &'static str) {
    match conflict {
        Conflict::Locked { .. } => (423, "locked"),
        Conflict::Lost { .. } | Conflict::NotCovered { .. } => (409, "lock_lost"),
    }
}
