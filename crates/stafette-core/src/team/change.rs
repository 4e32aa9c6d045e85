//! Changes to the project that are proposed in a run: a set is proposed, discussed, revised,
//! approved and settled.
//!
//! The edits themselves are stored beside the runs; recorded here are the proposal, the digests of
//! the contents and the outcome. A required approval is a question of the run, and comments on a set
//! go back to the agent that proposed it.

mod comment;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::order::{DoneOrders, Order, OrderBatch, WorkKey};
use super::{Coordinator, legacy};
use crate::change::{
    Action, ChangeId, ChangeStatus, Comment, Digest, FilePath, Gate, GateKind, revised_by,
};
use crate::handoff::{About, Way};
use crate::lock::Holder;
use crate::run::answer::Answer;
use crate::run::propose::{self, Proposal, propose};
use crate::run::{Draft, Run, Stage, close};
use crate::{
    AgentName, Event, Handoff, HandoffId, Ignored, Kind, Offer, Party, Question, Reason, Reply,
    Response, RunId, TeamAbout, TeamEvent, TurnKey,
};

pub(super) use comment::comment;
pub use comment::{ChangeCommented, Forward, Forwarded, Heard};

/// The maximum number of sets that a run keeps; settled ones are dropped first.
pub const MOST_SETS: usize = 64;

/// The maximum number of comments that one turn receives, that a run keeps per set, and that wait
/// to be forwarded.
const REMARKS: usize = 32;

/// The maximum number of files recorded per set; the set itself has them all.
pub const FILES_TOLD: usize = 100;

/// The maximum number of handoffs that one is followed back over.
const CHAIN: usize = 256;

/// The maximum number of gates named in a question.
const GATES_TOLD: usize = 10;

/// A file of a set, with its content before and after.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FileNote {
    /// The path of the file.
    pub file: FilePath,
    /// The effect on the file.
    pub action: Action,
    /// The previous path, for a rename.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FilePath>,
    /// The digest of the content before; `None` if the file did not exist.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// The digest of the content afterwards; `None` if the file is deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
}

/// The summary of a set that the run records.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProposedSet {
    /// The id of the set.
    pub change: ChangeId,
    /// The agent that proposed it, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// The handoff in which it was proposed, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// The number of the revision, from 1.
    pub revision: u32,
    /// The purpose of the set.
    pub reason: String,
    /// The number of files that it touches.
    pub count: usize,
    /// The first files of the set, up to `FILES_TOLD`.
    pub files: Vec<FileNote>,
    /// The gates that a person has to approve.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
    /// Its status so far: a run may hear of a set later than others decide about it.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub status: ChangeStatus,
}

/// A set was proposed, or revised if its revision is not the first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeProposed {
    /// The turn in which it was proposed; `None` if it came after the turn, or from a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnKey>,
    /// The summary of the set.
    #[serde(flatten)]
    pub set: ProposedSet,
    /// True if a person has to be asked about it; `None` in events of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asks: Option<bool>,
    /// The set that the run drops for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgets: Option<ChangeId>,
}

/// The comments on a set went back to the agent that proposed it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeReturned {
    /// The set that the comments are about.
    pub change: ChangeId,
    /// The handoff that carries them; `None` if it was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
}

/// An action on the project.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeWork {
    /// Applies the set to the project.
    Apply,
    /// Undoes the applied set.
    Undo,
    /// Undoes the applied set and the later sets on the same files.
    UndoWithLater,
    /// Gives the team's own program the code of the set, and restarts it.
    Renew,
}

/// The party that applies a set or takes it back.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Hand {
    /// Its name, for the record.
    pub name: String,
    /// The lock holder that it acts as: locks of this holder are not in the way.
    pub holder: Holder,
}

impl Hand {
    /// Creates a person, or a program that acts in its own name.
    #[must_use]
    pub fn named(name: &str) -> Self {
        Hand { name: name.to_owned(), holder: Holder::person(name) }
    }
}

/// A set is to be applied or undone. Nothing is touched before this is recorded.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeOrdered {
    /// The set to apply or undo.
    pub change: ChangeId,
    /// The handoff in which the set was proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// The action that is requested.
    pub work: ChangeWork,
    /// The name of the requester.
    pub by: String,
    /// The lock holder that the requester acts as; `None` stands for the person of that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<Holder>,
    /// The place among the sets that are applied together; `None` if it is applied alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<OrderBatch>,
}

/// The status of a set changed: approved, rejected, applied or undone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeSettled {
    /// The set whose status changed.
    pub change: ChangeId,
    /// The handoff in which the set was proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// The order that this is the outcome of; `None` for a person's decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub order: Option<WorkKey>,
    /// The new status of the set.
    pub status: ChangeStatus,
    /// Who made the decision.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Details: the cause of a failure, or the commit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// True if it is a person's decision, for the record of the set; `None` in older events.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided: Option<bool>,
    /// True if the order came to nothing and the set is as it was.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
}

/// The state of a set that a run keeps.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SetState {
    /// The handoff in which the set was proposed.
    pub handoff: Option<HandoffId>,
    /// The agent that proposed it, if any.
    pub agent: Option<AgentName>,
    /// The purpose of the set.
    pub reason: String,
    /// The number of the latest revision.
    pub revision: u32,
    /// The number of files that it touches.
    pub count: usize,
    /// The gates that a person has to approve.
    pub gates: Vec<Gate>,
    /// The current status of the set.
    pub status: ChangeStatus,
    /// True if a person still has to be asked about it.
    pub asks: bool,
    /// The action that is under way and has no outcome yet.
    pub ordered: Option<ChangeWork>,
    /// The party that ordered it; `None` if no action is under way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ordered_by: Option<Hand>,
    /// The number of the event that ordered the latest action.
    #[serde(default)]
    pub ordered_at: u64,
    /// The place of the latest order among those that are carried out together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<OrderBatch>,
    /// The person who decided last; empty if none did.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub decided_by: String,
    /// The number of the last event with words of people that the record of the set lacks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unwritten: Option<u64>,
    /// The handoff that asks for a revision.
    pub returned: Option<HandoffId>,
    /// Comments that have not gone back to the agent yet.
    pub remarks: Vec<Comment>,
    /// The latest comments: the record of the set gets them too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<Comment>,
    /// Comments that were made after the end of the run and are to be forwarded, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub forwards: Vec<Forward>,
    /// The comment that was forwarded last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forwarded: Option<Forwarded>,
}

/// Takes sets of edits from their proposal into the project, with a person's approval where
/// required.
pub(super) struct ChangeCoordinator;

impl Coordinator for ChangeCoordinator {
    fn advance(&self, draft: &mut Draft) {
        if draft.run.stage == Stage::Active {
            advance(draft);
        }
    }

    fn orders(&self, run: &Run, orders: &mut Vec<Order>) {
        for (id, known) in &run.team.changes {
            orders.extend(known.unwritten.map(|upto| Order::Note { change: *id, upto }));
            orders.extend(known.work(run, *id));
            // One after the other: the first one may give the set to the run that has the next.
            let next = known.forwards.first().cloned();
            orders.extend(next.map(|forward| Order::Forward { change: *id, forward }));
        }
        if is_uncollected(run) {
            orders.push(Order::Collect);
        }
    }
}

/// True if the outcome of the run's worktrees is still to be proposed.
pub(super) fn is_uncollected(run: &Run) -> bool {
    let is_open = run.status().is_final() && !run.team.done.collected;
    run.workflow.workflow.worktrees && is_open && !DoneOrders::is_old(run)
}

/// Records a proposed set. A repeated proposal counts once, and a proposal for a turn that has
/// ended is not accepted.
pub(super) fn propose_set(draft: &mut Draft, turn: Option<TurnKey>, mut set: ProposedSet) -> Reply {
    let known = draft.run.team.changes.get(&set.change);
    if known.is_some_and(|known| known.revision == set.revision) {
        return Reply::Recorded;
    }
    if turn.is_some() && draft.run.status().is_final() {
        return Reply::Ignored(Ignored::Ended);
    }
    if turn.is_some_and(|turn| !draft.run.is_current(turn)) {
        return Reply::Late;
    }
    if let Some(why) = obstacle(&draft.run, &set) {
        return Reply::Ignored(why);
    }
    if let Some(handoff) = turn.and_then(|turn| draft.run.handoff(turn.handoff)) {
        set.handoff = Some(handoff.id);
        set.agent = draft.run.workflow.agent(&handoff.offer.to).map(|(name, _)| name.clone());
    }
    // A question about the previous revision is withdrawn and asked anew.
    withdraw(draft, set.change, "the set was revised");
    let asks = Some(legacy::asks(&draft.run, &set));
    let forgets = legacy::forgotten(&draft.run, &set);
    let event = ChangeProposed { turn, set, asks, forgets };
    draft.record(Event::Team(TeamEvent::ChangeProposed(Box::new(event))));
    Reply::Recorded
}

/// Returns the reason why a set cannot be recorded now, if any.
fn obstacle(run: &Run, set: &ProposedSet) -> Option<Ignored> {
    let changes = &run.team.changes;
    match changes.get(&set.change) {
        Some(known) if known.revision > set.revision => Some(Ignored::Revised),
        Some(known) if known.status.is_in() || known.ordered.is_some() => Some(Ignored::Busy),
        Some(_) => None,
        None => {
            let has_room = changes.len() < MOST_SETS || changes.values().any(SetState::is_settled);
            (!has_room).then_some(Ignored::NoRoom)
        }
    }
}

/// Records a person's decision about a set, unless it is being applied or was revised since.
pub(super) fn decide(
    draft: &mut Draft,
    change: ChangeId,
    revision: Option<u32>,
    status: ChangeStatus,
    by: String,
    note: String,
) -> Reply {
    match draft.run.team.changes.get(&change) {
        None => Reply::Ignored(Ignored::Unknown),
        Some(known) if revision.is_some_and(|seen| seen != known.revision) => {
            Reply::Ignored(Ignored::Revised)
        }
        Some(known) if known.ordered.is_some() => Reply::Ignored(Ignored::Busy),
        Some(known) if !known.status.is_open() => Reply::Ignored(Ignored::NotOpen),
        Some(known) if known.status == status && !known.asks => Reply::Recorded,
        Some(_) => record(draft, change, None, status, by, note),
    }
}

/// True while an agent revises a set that a person has sent back, or is about to.
pub fn is_being_revised(run: &Run, change: ChangeId) -> bool {
    let Some(known) = run.team.changes.get(&change) else { return false };
    if run.status().is_final() {
        return !known.forwards.is_empty();
    }
    // Whoever has the work by now: the agent that received it may have passed it on.
    let is_asked = |handoff: &Handoff| {
        let cause = |it: &&Handoff| it.cause.and_then(|cause| run.handoff(cause));
        let mut chain = std::iter::successors(Some(handoff), cause).take(CHAIN);
        chain.any(|it| revised_by(&it.offer) == Some(change))
    };
    let mut at_work = run.open().filter(|handoff| matches!(handoff.offer.to, Party::Agent(_)));
    !known.remarks.is_empty() || at_work.any(is_asked)
}

/// What the agent that revises a set is asked to do. With `worktrees` it has the set in its folder.
pub fn revision_request(change: ChangeId, worktrees: bool) -> String {
    match worktrees {
        true => format!(
            "Revise {change} as is said about it. Your working folder has its edits in it: edit the \
             files there, and what you leave in them replaces {change} as a whole. If it is right as \
             it is, say so in your result."
        ),
        false => format!(
            "Revise {change} as is said about it and propose it again: the new set replaces it as a \
             whole. `stafette diff {change}` shows it as it is. If it is right as it is, say so in \
             your result."
        ),
    }
}

/// Records a request to apply or undo a set. One request is carried out at a time.
pub(super) fn order(
    draft: &mut Draft,
    change: ChangeId,
    revision: Option<u32>,
    work: ChangeWork,
    by: Hand,
    batch: Option<OrderBatch>,
) -> Reply {
    let handoff = match draft.run.team.changes.get(&change) {
        None => return Reply::Ignored(Ignored::Unknown),
        Some(known) if revision.is_some_and(|seen| seen != known.revision) => {
            return Reply::Ignored(Ignored::Revised);
        }
        Some(known) if known.ordered.is_some() => return Reply::Ignored(Ignored::Busy),
        Some(known) => known.handoff,
    };
    let Hand { name: by, holder } = by;
    let holder = (holder != Holder::person(&by)).then_some(holder);
    let event = ChangeOrdered { change, handoff, work, by, holder, batch };
    draft.record(Event::Team(TeamEvent::ChangeOrdered(event)));
    Reply::Ordered { seq: draft.run.seq }
}

/// Records the outcome of an order; a repeated report changes nothing.
pub(super) fn settle(
    draft: &mut Draft,
    change: ChangeId,
    order: WorkKey,
    status: ChangeStatus,
    by: String,
    note: String,
) -> Reply {
    let Some(known) = draft.run.team.changes.get(&change) else {
        return Reply::Ignored(Ignored::Unknown);
    };
    // A set that is undone together with an earlier one has no order of its own.
    let is_open = known.is_ordered_by(draft.run.id, change, order);
    let is_news = order.change != change && known.status != status;
    match is_open || is_news {
        true => record(draft, change, Some(order), status, by, note),
        false => Reply::Ignored(Ignored::Unchanged),
    }
}

/// Records the status of a set.
fn record(
    draft: &mut Draft,
    change: ChangeId,
    order: Option<WorkKey>,
    status: ChangeStatus,
    by: String,
    note: String,
) -> Reply {
    let known = draft.run.team.changes.get(&change);
    let handoff = known.and_then(|known| known.handoff);
    let unchanged = order.is_some() && known.is_some_and(|known| known.status == status);
    let decided = None;
    let mut event = ChangeSettled { change, handoff, order, status, by, note, decided, unchanged };
    event.decided = Some(legacy::is_decided(&event));
    draft.record(Event::Team(TeamEvent::ChangeSettled(event)));
    if !draft.run.team.changes.get(&change).is_some_and(|known| known.asks) {
        withdraw(draft, change, "it was decided elsewhere");
    }
    Reply::Recorded
}

/// Applies a person's answer to the question about a set.
pub(super) fn answered(draft: &mut Draft, change: ChangeId, word: &str, answer: &Answer) {
    let by = answer.by.clone();
    let status = match word {
        "approve" => ChangeStatus::Approved,
        "refuse" => ChangeStatus::Refused,
        "later" => ChangeStatus::Pending,
        _ => {
            let at = draft.now.rfc3339();
            let revision = draft.run.team.changes.get(&change).map_or(1, |known| known.revision);
            let text = answer.text.clone();
            let said = Comment { by, at, file: None, line: None, revision, text };
            comment(draft, change, said);
            return;
        }
    };
    decide(draft, change, None, status, by, String::new());
}

/// Asks pending questions, and sends comments back to their agents.
fn advance(draft: &mut Draft) {
    let waiting = |known: &SetState| known.asks || !known.remarks.is_empty();
    let waiting = draft.run.team.changes.iter().filter(|(_, known)| waiting(known));
    let waiting: Vec<ChangeId> = waiting.map(|(id, _)| *id).collect();
    for change in waiting {
        let run = &draft.run;
        let Some(known) = run.team.changes.get(&change) else { continue };
        let handoff = |id: Option<HandoffId>| id.and_then(|id| run.handoff(id));
        if handoff(known.returned).is_some_and(Handoff::is_open) {
            continue;
        }
        // An agent that is still working receives it afterwards.
        let is_at_it = handoff(known.handoff).is_some_and(|h| h.state.turn().is_some());
        match known.remarks.is_empty() {
            false if is_at_it => {}
            false => send_back(draft, change),
            true if question(run, change).is_none() => ask(draft, change),
            true => {}
        }
    }
}

/// True if a question to a person about a set is open.
pub fn is_asked_about(run: &Run, change: ChangeId) -> bool {
    question(run, change).is_some()
}

fn question(run: &Run, change: ChangeId) -> Option<HandoffId> {
    let about = |handoff: &&Handoff| {
        let question = handoff.offer.question.as_ref();
        question.is_some_and(|question| question.about == About::Team(TeamAbout::Change(change)))
    };
    run.open().find(about).map(|handoff| handoff.id)
}

fn withdraw(draft: &mut Draft, change: ChangeId, why: &str) {
    if let Some(id) = question(&draft.run, change) {
        close::close(draft, id, Response::failed(why), Way::Cancelled);
    }
}

fn ask(draft: &mut Draft, change: ChangeId) {
    let Some(known) = draft.run.team.changes.get(&change) else { return };
    let who = known.agent.as_ref().map_or("somebody", AgentName::as_str);
    let files = match known.count {
        1 => "1 file".to_owned(),
        count => format!("{count} files"),
    };
    let again = if known.revision > 1 { format!("@{}", known.revision) } else { String::new() };
    let what = told(&known.gates);
    let what = if what.is_empty() { String::new() } else { format!(": it {what}") };
    let question = Question {
        reason: "change".into(),
        details: format!("{who} wants to change {files} ({change}{again}){what}. Is that right?"),
        options: ["approve", "refuse", "later"].map(str::to_owned).to_vec(),
        context: format!(
            "{}\nSee `stafette diff {change}`; anything else you say goes back to {who}",
            known.reason
        ),
        blocking: true,
        default: Some("later".into()),
        about: About::Team(TeamAbout::Change(change)),
        ..Question::default()
    };
    let from = known.agent.as_ref().map_or(Party::Orchestrator, Party::from);
    let cause = known.handoff;
    let offer = Offer {
        detail: question.details.clone(),
        question: Some(question),
        ..Offer::new(from, Party::Human, Kind::Delegate, Reason::RequiresHumanDecision)
    };
    // Only the run waits for the answer: the agent has long continued.
    propose::ask(draft, Proposal { cause, ..Proposal::of(offer) });
}

/// Describes the gates in words that follow "it".
pub fn told(gates: &[Gate]) -> String {
    let mut said: Vec<String> = gates
        .iter()
        .take(GATES_TOLD)
        .map(|gate| match gate.kind {
            GateKind::Deletion => format!("deletes {}", gate.file),
            GateKind::OwnLogic => format!("steers the team by {}", gate.file),
            GateKind::Dependencies => format!("changes dependencies in {}", gate.file),
            GateKind::Validation => {
                format!("changes {}, by which changes are validated", gate.file)
            }
            GateKind::Steering => format!("changes {}, which agents and tools obey", gate.file),
            GateKind::Printed => format!("changes {}, and was only printed", gate.file),
            GateKind::Foreign => format!("changes {} as another orchestrator left it", gate.file),
        })
        .collect();
    if gates.len() > GATES_TOLD {
        said.push(format!("{} more of that kind", gates.len() - GATES_TOLD));
    }
    said.join(", ")
}

fn send_back(draft: &mut Draft, change: ChangeId) {
    let Some(known) = draft.run.team.changes.get(&change) else { return };
    let Some(agent) = &known.agent else { return };
    let remarks: Vec<String> = known.remarks.iter().take(REMARKS).map(Comment::told).collect();
    let offer = Offer {
        detail: format!("{change} is to be revised"),
        summary: remarks.join("\n"),
        instructions: Some(revision_request(change, draft.run.workflow.workflow.worktrees)),
        outputs: [
            ("change".to_owned(), json!(change)),
            ("comments".to_owned(), json!(known.remarks.iter().take(REMARKS).collect::<Vec<_>>())),
        ]
        .into_iter()
        .collect(),
        ..Offer::new(Party::Human, Party::from(agent), Kind::Transfer, Reason::FixRequest)
    };
    withdraw(draft, change, "it goes back to be revised");
    // A refusal is recorded like any other; the comments stay with the set.
    let handoff = propose(draft, Proposal::of(offer)).ok();
    draft.record(Event::Team(TeamEvent::ChangeReturned(ChangeReturned { change, handoff })));
}

impl SetState {
    /// True if nothing more is expected of the set in this run.
    pub fn is_settled(&self) -> bool {
        !self.asks
            && self.ordered.is_none()
            && self.unwritten.is_none()
            && self.remarks.is_empty()
            && self.forwards.is_empty()
            && !matches!(self.status, ChangeStatus::Pending | ChangeStatus::Approved)
    }

    /// Returns the receiver of the comment of that event, or of a later one, once it is forwarded:
    /// they are forwarded one after the other, each to where the one before it went.
    #[must_use]
    pub fn forwarded_to(&self, seq: u64) -> Option<&Heard> {
        self.forwarded.as_ref().filter(|last| last.seq >= seq).map(|last| &last.heard)
    }

    /// Notes the receiver of a comment.
    pub(super) fn forward(&mut self, seq: u64, heard: Heard) {
        self.forwards.retain(|forward| forward.seq != seq);
        self.forwarded = Some(Forwarded { seq, heard });
    }

    /// True if `order` is the open order for this set.
    fn is_ordered_by(&self, run: RunId, change: ChangeId, order: WorkKey) -> bool {
        self.ordered.is_some() && order == WorkKey { run, change, seq: self.ordered_at }
    }

    /// Returns the open order for this set.
    fn work(&self, run: &Run, change: ChangeId) -> Option<Order> {
        Some(Order::Change {
            key: WorkKey { run: run.id, change, seq: self.ordered_at },
            work: self.ordered?,
            revision: self.revision,
            by: self.ordered_by.clone().unwrap_or_else(|| Hand::named("somebody")),
        })
    }
}

impl ChangeProposed {
    pub(super) fn apply(&self, run: &mut Run) {
        let set = &self.set;
        let forgets = match self.asks {
            Some(_) => self.forgets,
            None => legacy::forgotten(run, set),
        };
        let asks = self.asks.unwrap_or_else(|| legacy::asks(run, set));
        forgets.map(|oldest| run.team.changes.remove(&oldest));
        let earlier = run.team.changes.remove(&set.change).unwrap_or_default();
        run.team.changes.insert(
            set.change,
            SetState {
                handoff: set.handoff,
                agent: set.agent.clone(),
                reason: set.reason.clone(),
                revision: set.revision,
                count: set.count,
                gates: set.gates.clone(),
                status: set.status,
                asks,
                ordered: None,
                ordered_by: None,
                ordered_at: 0,
                batch: None,
                decided_by: String::new(),
                // What people have said of an earlier revision stays.
                ..earlier
            },
        );
    }
}

impl ChangeReturned {
    pub(super) fn apply(&self, run: &mut Run) {
        let Some(known) = run.team.changes.get_mut(&self.change) else { return };
        known.remarks.clear();
        known.returned = self.handoff;
    }
}

impl ChangeOrdered {
    pub(super) fn apply(&self, run: &mut Run) {
        let seq = run.seq;
        if let Some(known) = run.team.changes.get_mut(&self.change) {
            let name = self.by.clone();
            let holder = self.holder.clone().unwrap_or_else(|| Holder::person(&name));
            known.ordered = Some(self.work);
            known.ordered_by = Some(Hand { name, holder });
            known.ordered_at = seq;
            known.batch = self.batch;
        }
    }
}

impl ChangeSettled {
    pub(super) fn apply(&self, run: &mut Run) {
        let (id, seq) = (run.id, run.seq);
        let Some(known) = run.team.changes.get_mut(&self.change) else { return };
        // A failed attempt leaves the question open.
        known.asks &= known.ordered.is_some() && self.status == ChangeStatus::Pending;
        known.status = self.status;
        if self.decided.unwrap_or_else(|| legacy::is_decided(self)) {
            known.decided_by.clone_from(&self.by);
            known.unwritten = Some(seq);
        }
        // Older releases recorded outcomes without their order.
        if self.order.is_none_or(|order| known.is_ordered_by(id, self.change, order)) {
            known.ordered = None;
        }
        if known.ordered.is_none() {
            known.ordered_by = None;
        }
    }
}

#[cfg(test)]
mod tests;
