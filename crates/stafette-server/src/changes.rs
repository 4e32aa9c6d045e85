//! Changes of the project's files: proposed, approved, applied, undone.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::change::{Author, Change, ChangeId, ChangeRules, ChangeStatus, Proposal};
use stafette_core::fields::shell_word;
use stafette_core::lock::Holder;
use stafette_core::{RunId, TurnKey};
use stafette_engine::{
    Caller, ChangeError, Explanation, FileDiff, Hand, Heard, Report, change_code,
};

use crate::openapi::operations;
use crate::principal::{Principal, Via};
use crate::request::{Asked, Body, Named};
use crate::{Edge, Problem};

/// The longest comment, in bytes.
const LONGEST_COMMENT: usize = 16 * 1024;

operations! {
    pub(crate) fn routes() in "changes";
    GET "/v1/changes" => list, Read, "listChanges", "List the changes, the oldest first";
    POST "/v1/changes" => propose, TakePart, "proposeChange", "Propose a set of edits";
    POST "/v1/changes/apply" => apply_all, Decide, "applyChanges", "Apply all that wait for nobody";
    GET "/v1/changes/{change}" => get, Read, "getChange", "A change, line by line";
    GET "/v1/changes/{change}/why" => why, Read, "whyChange",
        "Why a change is there, back to the request";
    POST "/v1/changes/{change}/approve" => approve, Decide, "approveChange",
        "Say yes to what a person has to";
    POST "/v1/changes/{change}/refuse" => refuse, Decide, "refuseChange", "Say no to a change";
    POST "/v1/changes/{change}/apply" => apply, Decide, "applyChange",
        "Apply a change, or take it back";
    POST "/v1/changes/{change}/undo" => undo, Decide, "undoChange",
        "Take a change out of the project again";
    POST "/v1/changes/{change}/comment" => comment, Decide, "commentChange",
        "Say something about a change";
}

/// A change, named in the path.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct TheChange {
    /// Id of the change, such as `c3`; `c3@2` stands for its second revision.
    change: String,
}

impl TheChange {
    pub(crate) fn id(&self) -> Result<ChangeId, Problem> {
        Ok(self.parts()?.0)
    }

    /// Returns the id and the revision that the caller has seen. Without one it is the first: who
    /// has looked at a set must not decide about what it became since.
    fn parts(&self) -> Result<(ChangeId, u32), Problem> {
        let (id, revision) = match self.change.split_once('@') {
            Some((id, revision)) => (id, Some(revision)),
            None => (self.change.as_str(), None),
        };
        let id = id.parse().map_err(|error: stafette_core::change::NotAChange| {
            Problem::new(422, "not_a_change", error.to_string())
        })?;
        let bad = |_| Problem::new(422, "not_a_change", "A revision is a number, as in `c3@2`");
        Ok((id, revision.map_or(Ok(1), str::parse).map_err(bad)?))
    }
}

/// All changes of the project.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeList {
    /// Changes in the order of their proposal, the oldest first.
    changes: Vec<Change>,
}

/// Filter for the list of changes.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Which {
    /// Only changes of this run.
    run: Option<RunId>,
    /// Only changes with this status.
    status: Option<ChangeStatus>,
    /// True for only those that wait for a person to approve, apply or reject them, and that no
    /// question is about.
    waiting: bool,
}

async fn list(
    State(edge): State<Edge>,
    Asked(Which { run, status, waiting }): Asked<Which>,
) -> Result<Json<ChangeList>, Problem> {
    let mut changes = match waiting {
        true => edge.engine.changes().waiting().await?,
        false => edge.engine.changes().with(async |changes| changes.list()).await?,
    };
    changes.retain(|change| {
        run.is_none_or(|run| change.is_of(run))
            && status.is_none_or(|status| change.status == status)
    });
    Ok(Json(ChangeList { changes }))
}

async fn propose(
    State(edge): State<Edge>,
    principal: Principal,
    Body(mut proposal): Body<Proposal>,
) -> Result<(StatusCode, Json<Change>), Problem> {
    let rules = rules(&edge)?;
    // An agent is identified by its connection; a name in the proposal is ignored.
    let turn = match (&principal.caller, &proposal.author) {
        (Caller::Agent { .. }, _) => {
            proposal.author = principal.caller.author().unwrap_or_default();
            turn(&edge, &proposal.author).await?
        }
        // An external agent has a turn; a person's program may speak for it.
        (Caller::External { agent, .. }, Author { run, .. })
        | (_, Author { agent: Some(agent), run: run @ Some(_), .. }) => {
            Some(edge.engine.external().turn_of(*run, agent).await?)
        }
        _ => {
            proposal.author.person = principal.signed(proposal.author.person);
            None
        }
    };
    let change = match turn {
        Some(turn) => edge.engine.changes().propose(turn, proposal).await?,
        None => edge.engine.changes().propose_aside(proposal, rules).await?,
    };
    Ok((StatusCode::CREATED, Json(change)))
}

/// Returns the turn that the agent works on, if any.
pub(crate) async fn turn(edge: &Edge, author: &Author) -> Result<Option<TurnKey>, Problem> {
    let Some(run) = author.run else { return Ok(None) };
    let state = edge.engine.state(run).await?;
    let mut orders = state.outbox();
    let own = orders.find(|order| Some(order.key.handoff) == author.handoff);
    Ok(own.map(|order| order.key))
}

/// A change with its diff, line by line.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ChangeView {
    /// The change, without its diff.
    change: Change,
    /// Diff of each changed file.
    diff: Vec<FileDiff>,
}

async fn get(
    State(edge): State<Edge>,
    Named(the): Named<TheChange>,
) -> Result<Json<ChangeView>, Problem> {
    let id = the.id()?;
    let look = async move |changes: stafette_engine::Changes| {
        let change = changes.get(id)?;
        let diff = changes.diff(&change)?;
        Ok(ChangeView { change, diff })
    };
    Ok(Json(edge.engine.changes().with(look).await?))
}

/// Approval of a change by a person.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ApproveRequest {
    /// Name of the person who approves, for the record.
    by: String,
}

async fn approve(
    State(edge): State<Edge>,
    principal: Principal,
    Named(the): Named<TheChange>,
    Body(ApproveRequest { by }): Body<ApproveRequest>,
) -> Result<Json<Change>, Problem> {
    let ((id, seen), by) = (the.parts()?, principal.signed(by));
    let decided =
        edge.engine.changes().decide(id, Some(seen), ChangeStatus::Approved, by, String::new());
    Ok(Json(decided.await?))
}

/// Rejection of a change by a person.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct RejectRequest {
    /// Name of the person who rejects, for the record.
    by: String,
    /// Reason for the rejection.
    why: String,
}

async fn refuse(
    State(edge): State<Edge>,
    principal: Principal,
    Named(the): Named<TheChange>,
    Body(RejectRequest { by, why }): Body<RejectRequest>,
) -> Result<Json<Change>, Problem> {
    if why.len() > LONGEST_COMMENT {
        return Err(Problem::new(422, "bad_comment", "A reason has up to 16 KiB"));
    }
    let ((id, seen), by) = (the.parts()?, principal.signed(by));
    Ok(Json(edge.engine.changes().decide(id, Some(seen), ChangeStatus::Refused, by, why).await?))
}

/// Request to apply a change.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ApplyRequest {
    /// Name of the person who applies it; locks of that person do not block it.
    pub(crate) by: String,
    /// True to apply it although an agent is revising it.
    pub(crate) as_it_is: bool,
}

async fn apply(
    State(edge): State<Edge>,
    principal: Principal,
    Named(the): Named<TheChange>,
    Body(ApplyRequest { by, as_it_is }): Body<ApplyRequest>,
) -> Result<Json<Report>, Problem> {
    let ((id, seen), rules) = (the.parts()?, rules(&edge)?);
    let (by, changes) = (hand(&principal, by), edge.engine.changes());
    Ok(Json(changes.apply(id, Some(seen), as_it_is, rules, by).await?))
}

async fn apply_all(
    State(edge): State<Edge>,
    principal: Principal,
    Body(ApplyRequest { by, as_it_is }): Body<ApplyRequest>,
) -> Result<Json<Report>, Problem> {
    let rules = rules(&edge)?;
    let open = edge.engine.changes().with(async |changes| changes.open_sets()).await?;
    let ids = open.into_iter().map(|change| change.id).collect();
    let (by, changes) = (hand(&principal, by), edge.engine.changes());
    Ok(Json(changes.apply_all(ids, as_it_is, rules, by).await?))
}

/// Options of an undo.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Undo {
    /// True to also undo later changes of the same files.
    with_later: bool,
    /// Name of the person who undoes it; locks of that person do not block it.
    by: String,
}

async fn undo(
    State(edge): State<Edge>,
    principal: Principal,
    Named(the): Named<TheChange>,
    Body(Undo { with_later, by }): Body<Undo>,
) -> Result<Json<Report>, Problem> {
    let (id, rules) = (the.id()?, rules(&edge)?);
    Ok(Json(edge.engine.changes().undo(id, with_later, rules, hand(&principal, by)).await?))
}

/// Comment on a change.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Said {
    /// Text of the comment, at most 16 KiB.
    text: String,
    /// Name of the author, for the record.
    #[serde(default)]
    by: String,
    /// File that the comment is about; the whole change if left out.
    #[serde(default)]
    file: Option<String>,
    /// Line of that file, counted as it would be after the change.
    #[serde(default)]
    line: Option<u32>,
}

/// A change after a comment on it.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Commented {
    /// The change with the new comment.
    #[serde(flatten)]
    change: Change,
    /// Receiver of the comment: nobody, the author in its run, or a later run.
    heard: Heard,
}

async fn comment(
    State(edge): State<Edge>,
    principal: Principal,
    Named(the): Named<TheChange>,
    Body(said): Body<Said>,
) -> Result<Json<Commented>, Problem> {
    let id = the.id()?;
    if said.text.trim().is_empty() || said.text.len() > LONGEST_COMMENT {
        return Err(Problem::new(422, "bad_comment", "A comment has some text, up to 16 KiB"));
    }
    let by = principal.signed(said.by);
    let place = said.file.map(|file| (file, said.line));
    let (change, heard) = edge.engine.changes().comment(id, by, place, said.text).await?;
    Ok(Json(Commented { change, heard }))
}

/// Returns the change rules of the workflow, which must be trusted: it names a command.
fn rules(edge: &Edge) -> Result<ChangeRules, Problem> {
    Ok((edge.workflow)()?.change_rules())
}

/// Returns who touches the project. On the Unix socket, callers choose their own name.
pub(crate) fn hand(principal: &Principal, by: String) -> Hand {
    let holder = match (&principal.via, by.trim()) {
        (Via::Socket { .. }, "") => Holder::person("someone"),
        (Via::Socket { .. }, name) => Holder::person(name),
        _ => Holder::visitor(&principal.name),
    };
    Hand { name: principal.signed(by), holder }
}

impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Self {
        let (status, code) = change_code(&error);
        let fix = match &error {
            ChangeError::NeedsPerson { id, .. } => {
                format!(
                    "look at it with `stafette diff {id}`, then `stafette changes approve {id}`"
                )
            }
            ChangeError::Later { id, .. } => {
                format!("undo them all with `stafette undo {id} --with-later`")
            }
            ChangeError::Revised { id, revision, .. } => {
                format!("look at it with `stafette diff {id}`, and say `{id}@{revision}` then")
            }
            ChangeError::BeingRevised { id, run } => format!(
                "wait for it with `stafette resume {}`, or take it as it is: `stafette apply {id} \
                 --as-it-is`",
                run.short()
            ),
            ChangeError::Outdated { id, branch, .. } => {
                let merge = match branch {
                    Some(branch) => format!("merge it yourself: `git merge {branch}`"),
                    None => format!("put it in yourself: `stafette diff {id}`"),
                };
                format!(
                    "{merge}, and then `stafette changes reject {id}`; or reject it, and have it \
                     made anew with `stafette run`"
                )
            }
            ChangeError::Edited { file, .. } => format!(
                "if your edit is not committed, put it aside with `git stash push -- {}`, undo, and \
                 bring it back with `git stash pop`; if it is, see `git revert`",
                shell_word(file.as_str())
            ),
            ChangeError::Status { status: ChangeStatus::Refused, wanted: "applied", id } => {
                format!("`stafette changes approve {id}` takes the refusal back")
            }
            _ => String::new(),
        };
        Problem::new(status, code, error.to_string()).fix(fix)
    }
}

/// The origin of a change and its outcome.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct WhyChange {
    /// The change that is explained.
    change: Change,
    /// Steps that led to the proposal; left out if the change is from no run or the run is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    way: Option<Explanation>,
    /// Events that the run recorded about the change, in order.
    events: Vec<serde_json::Value>,
}

async fn why(
    State(edge): State<Edge>,
    Named(the): Named<TheChange>,
) -> Result<Json<WhyChange>, Problem> {
    let id = the.id()?;
    let change = edge.engine.changes().with(async move |changes| changes.get(id)).await?;
    let (mut way, mut events) = (None, Vec::new());
    if let Some(run) = change.author.run {
        way = edge.engine.explain().why(run, change.author.handoff).await.ok();
    }
    let runs = change.author.run.into_iter().chain(change.reviser.iter().map(|it| it.run));
    for run in runs {
        events.extend(edge.engine.explain().change(run, id).await.unwrap_or_default());
    }
    Ok(Json(WhyChange { change, way, events }))
}
