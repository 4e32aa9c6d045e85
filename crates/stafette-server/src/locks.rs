//! Locks: their holders and leases.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::lock::{
    Claim, Holder, Link, Lock, LockId, LockOutcome, LockRules, Mode, OnConflict, Pattern, Refusal,
    Waiter,
};
use stafette_core::{Millis, TurnKey};
use stafette_engine::{Caller, Right};

use crate::openapi::operations;
use crate::principal::Principal;
use crate::request::{Asked, Body, Named};
use crate::{Edge, Problem};

/// Maximum time that a client may wait in one request.
const LONGEST_CALL: Duration = Duration::from_secs(60);

operations! {
    pub(crate) fn routes() in "locks";
    GET "/v1/locks" => list, Shared, "listLocks", "Who has what, and who waits for it";
    POST "/v1/locks" => take, TakePart, "takeLock", "Take a lock, or a place in the line for it";
    POST "/v1/locks/check" => check, TakePart, "checkLocks", "Whether files may be written";
    GET "/v1/locks/{lock}" => wait, Shared, "waitForLock", "A lock, as soon as it is held";
    POST "/v1/locks/{lock}/renew" => renew, TakePart, "renewLock", "Keep a lock for longer";
    POST "/v1/locks/{lock}/release" => release, TakePart, "releaseLock", "Give a lock back";
    POST "/v1/locks/{lock}/takeover" => take_over, Admin, "takeOverLock",
        "Take a lock from its holder";
}

/// A lock, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TheLock {
    /// Id of the lock, such as `l3`.
    lock: String,
}

/// A lock, or a place in the queue for one.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LockView {
    /// Id of the lock.
    id: LockId,
    /// `held` or `waiting`: holds the lock, or waits for it.
    state: LockState,
    /// Fencing number; left out while waiting.
    #[serde(skip_serializing_if = "Option::is_none")]
    fence: Option<u64>,
    /// Holder or waiter, as one word.
    holder: String,
    /// Holder or waiter, in full.
    by: Holder,
    /// Paths and globs that are locked, relative to the project.
    patterns: Vec<Pattern>,
    /// Shared with other readers, or exclusive.
    mode: Mode,
    /// Purpose that the holder gave.
    reason: String,
    /// Start of the lease or the wait (RFC 3339).
    since: String,
    /// End of the lease or the wait (RFC 3339).
    until: String,
}

/// State of a lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum LockState {
    /// The lock is held.
    Held,
    /// The lock is waited for.
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
    /// Alert code, always `DEADLOCK`.
    code: String,
    /// Time of detection (RFC 3339).
    at: String,
    /// The circle of waiting parties, as a sentence.
    message: String,
    /// The circle of waiting parties, link by link.
    circle: Vec<Link>,
    /// Request that was refused to break the circle.
    refused: LockId,
}

/// All locks of the project.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct LockList {
    /// Version of the lock table; grows with each change.
    version: u64,
    /// Last fencing number that was given out.
    fence: u64,
    /// Locks held and waited for, the oldest first.
    locks: Vec<LockView>,
    /// Deadlocks of the last hour, the newest first.
    alerts: Vec<AlertView>,
}

async fn list(State(edge): State<Edge>) -> Result<Json<LockList>, Problem> {
    let locks = edge.engine.locks().now();
    let alerts = edge.engine.locks().deadlocks().await?.into_iter().map(|alert| AlertView {
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

/// The caller. An agent sends its session's token; everyone else gives a name.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Asker {
    /// Token of an agent's session.
    token: Option<String>,
    /// Name of the person.
    by: String,
    /// Command that needs the lock, if other commands of the same person must wait as well.
    seat: String,
}

/// The holder, and the turn and rules of an agent.
struct Known {
    holder: Holder,
    turn: Option<TurnKey>,
    rules: LockRules,
}

async fn known(edge: &Edge, principal: &Principal, asker: &Asker) -> Result<Known, Problem> {
    let (run, agent, turn) = match (&asker.token, &principal.caller) {
        (Some(token), _) => {
            let (run, agent, turn) = edge.engine.sessions().turn(token, principal.pid()).await?;
            (run, agent, Some(turn))
        }
        (None, Caller::Agent { run, agent, .. }) => {
            let author = principal.caller.author().unwrap_or_default();
            (*run, agent.clone(), crate::changes::turn(edge, &author).await?)
        }
        (None, _) => {
            let holder = crate::changes::hand(principal, asker.by.clone()).holder.at(&asker.seat);
            // A workflow that cannot be read or is not trusted sets no rules.
            let rules = (edge.workflow)().map(|workflow| workflow.locks).unwrap_or_default();
            return Ok(Known { holder, turn: None, rules });
        }
    };
    let rules = edge.engine.state(run).await?.workflow.locks.clone();
    let holder = Holder::session(run, agent).at(&asker.seat);
    Ok(Known { holder, turn, rules })
}

/// Request for a lock.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Take {
    /// Paths and globs, relative to the project; locked all together or not at all.
    patterns: Vec<String>,
    /// Shared with other readers, or exclusive.
    #[serde(default)]
    mode: Mode,
    /// Length of the lease; the workflow's if left out.
    #[serde(default)]
    lease: Option<Millis>,
    /// Maximum wait; the workflow's if left out.
    #[serde(default)]
    wait: Option<Millis>,
    /// Reaction if another holder has the lock; the workflow's if left out.
    #[serde(default)]
    on_conflict: Option<OnConflict>,
    /// Purpose, for the record.
    #[serde(default)]
    reason: String,
    /// Caller that wants the lock.
    #[serde(default)]
    who: Asker,
}

/// Returns the lock, or 202 and a place in the queue, which the client must ask about within two
/// minutes.
async fn take(
    State(edge): State<Edge>,
    principal: Principal,
    Body(take): Body<Take>,
) -> Result<(StatusCode, Json<LockView>), Problem> {
    let Known { holder, turn, rules } = known(&edge, &principal, &take.who).await?;
    let on_conflict = take.on_conflict.unwrap_or(rules.on_conflict);
    // Only a person may, or a workflow that says so in `[locks]`.
    if on_conflict == OnConflict::TakeOver && rules.on_conflict != on_conflict {
        principal.may(Right::Admin)?;
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
    let mut answer = edge.engine.locks().take(claim, on_conflict, wait).await?;
    if let LockOutcome::Waiting(waiter) = &answer {
        // A client that disconnects now does not know its place in the queue, so that dropping
        // frees it.
        let place = edge.engine.locks().place(waiter.id, holder);
        answer = edge.engine.locks().wait(waiter.id, wait.into()).await?;
        place.keep();
    }
    shown(&answer)
}

fn shown(answer: &LockOutcome) -> Result<(StatusCode, Json<LockView>), Problem> {
    match answer {
        LockOutcome::Held(lock) => Ok((StatusCode::OK, Json(lock.into()))),
        LockOutcome::Waiting(waiter) => Ok((StatusCode::ACCEPTED, Json(waiter.into()))),
        LockOutcome::Done => Err(Problem::new(409, "lock_lost", "The lock is not held any more")),
    }
}

/// Time to wait for a change.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Patience {
    /// Maximum wait; at most one minute.
    wait: Millis,
}

/// Returns the lock as soon as it is held, or the place in the queue after `wait`.
async fn wait(
    State(edge): State<Edge>,
    Named(TheLock { lock }): Named<TheLock>,
    Asked(Patience { wait }): Asked<Patience>,
) -> Result<(StatusCode, Json<LockView>), Problem> {
    let within = Duration::from(wait).min(LONGEST_CALL);
    shown(&edge.engine.locks().wait(find(&lock)?, within).await?)
}

/// Request to renew a lease.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Renew {
    /// Fencing number of the lock; not checked if left out.
    #[serde(default)]
    fence: Option<u64>,
    /// New length of the lease from now; the old length if left out.
    #[serde(default)]
    lease: Option<Millis>,
    /// Caller that holds the lock.
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
    shown(&edge.engine.locks().renew(find(&lock)?, holder, fence, lease).await?)
}

/// Request to release a lock.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Release {
    /// Caller that holds the lock.
    who: Asker,
}

/// Confirms that a lock was released.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Released {
    /// Id of the released lock.
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
    edge.engine.locks().release(id, holder).await?;
    Ok(Json(Released { released: id }))
}

/// Request to take a lock from its holder.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TakeOver {
    /// Reason, which is recorded.
    reason: String,
    /// Caller that takes the lock.
    #[serde(default)]
    who: Asker,
}

async fn take_over(
    State(edge): State<Edge>,
    principal: Principal,
    Named(TheLock { lock }): Named<TheLock>,
    Body(TakeOver { reason, who }): Body<TakeOver>,
) -> Result<(StatusCode, Json<LockView>), Problem> {
    let Known { holder, .. } = known(&edge, &principal, &who).await?;
    shown(&edge.engine.locks().take_over(find(&lock)?, holder, reason).await?)
}

/// Question whether files may be written.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Check {
    /// Files, relative to the project.
    paths: Vec<String>,
    /// Fencing number of the lock that covers them; left out without a lock.
    #[serde(default)]
    fence: Option<u64>,
    /// Caller that wants to write.
    #[serde(default)]
    who: Asker,
}

/// Confirms that the files may be written.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Checked {
    /// Always true: a refusal is a problem document.
    allowed: bool,
}

async fn check(
    State(edge): State<Edge>,
    principal: Principal,
    Body(Check { paths, fence, who }): Body<Check>,
) -> Result<Json<Checked>, Problem> {
    let Known { holder, .. } = known(&edge, &principal, &who).await?;
    edge.engine.locks().may_write(&holder, &paths, fence).await?;
    Ok(Json(Checked { allowed: true }))
}

fn find(text: &str) -> Result<LockId, Problem> {
    text.parse().map_err(|error: stafette_core::lock::NotALock| {
        Problem::new(422, "not_a_lock", error.to_string())
    })
}
