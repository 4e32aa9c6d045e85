//! Changes to the project that are proposed in a run: a set is proposed, discussed, revised,
//! approved and settled.
//!
//! The edits themselves are stored beside the runs; recorded here are the proposal, the digests of
//! the
//! contents and the outcome. A required approval is a question of the run, and comments on a set go
//! back to the agent that proposed it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Coordinator;
use crate::change::{Action, ChangeId, ChangeStatus, Comment, Digest, FilePath, Gate, GateKind};
use crate::handoff::{About, Way};
use crate::run::answer::Answer;
use crate::run::propose::{self, Proposal, propose};
use crate::run::{Draft, Run, Stage, close};
use crate::{
    AgentName, Event, Handoff, HandoffId, Ignored, Kind, Offer, Party, Question, Reason, Reply,
    Response, TeamAbout, TeamEvent, TurnKey,
};

/// The maximum number of sets that a run keeps; settled ones are dropped first.
pub const MOST_SETS: usize = 64;

/// The maximum number of comments that one turn receives, and that a run keeps per set.
const REMARKS: usize = 32;

/// The maximum number of files recorded per set; the set itself has them all.
pub const FILES_TOLD: usize = 100;

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
}

/// A comment was made on a set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeCommented {
    /// The set that the comment is about.
    pub change: ChangeId,
    /// The handoff in which the set was proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// The comment, with its author and place.
    pub comment: Comment,
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
}

/// The status of a set changed: approved, rejected, applied or undone.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeSettled {
    /// The set whose status changed.
    pub change: ChangeId,
    /// The handoff in which the set was proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// The new status of the set.
    pub status: ChangeStatus,
    /// Who made the decision.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// Details: the cause of a failure, or the commit.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// The state of a set that a run keeps.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
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
    /// The handoff that asks for a revision.
    pub returned: Option<HandoffId>,
    /// Comments that have not gone back to the agent yet.
    pub remarks: Vec<Comment>,
    /// The latest comments: the set itself has them too, or gets them after a crash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<Comment>,
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
    if !fits(&draft.run, &set) {
        return Reply::Ignored(Ignored::NoRoom);
    }
    if let Some(handoff) = turn.and_then(|turn| draft.run.handoff(turn.handoff)) {
        set.handoff = Some(handoff.id);
        set.agent = draft.run.workflow.agent(&handoff.offer.to).map(|(name, _)| name.clone());
    }
    // A question about the previous revision is withdrawn and asked anew.
    withdraw(draft, set.change, "the set was revised");
    draft.record(Event::Team(TeamEvent::ChangeProposed(Box::new(ChangeProposed { turn, set }))));
    Reply::Recorded
}

fn fits(run: &Run, set: &ProposedSet) -> bool {
    match run.team.changes.get(&set.change) {
        Some(known) => known.revision < set.revision && !known.status.is_in(),
        None => {
            run.team.changes.len() < MOST_SETS
                || run.team.changes.values().any(SetState::is_settled)
        }
    }
}

/// Records a comment on a set; the reply says whether an agent receives it.
pub(super) fn comment(draft: &mut Draft, change: ChangeId, comment: Comment) -> Reply {
    let Some(known) = draft.run.team.changes.get(&change) else {
        return Reply::Ignored(Ignored::Unknown);
    };
    let event = ChangeCommented { change, handoff: known.handoff, comment };
    draft.record(Event::Team(TeamEvent::ChangeCommented(Box::new(event))));
    ChangeCoordinator.advance(draft);
    let known = draft.run.team.changes.get(&change);
    match known.is_some_and(|known| !known.remarks.is_empty() || known.returned.is_some()) {
        true => Reply::Recorded,
        false => Reply::Ignored(Ignored::NoListener),
    }
}

/// Records a request to apply or undo a set.
pub(super) fn order(draft: &mut Draft, change: ChangeId, work: ChangeWork, by: String) -> Reply {
    let Some(known) = draft.run.team.changes.get(&change) else {
        return Reply::Ignored(Ignored::Unknown);
    };
    let handoff = known.handoff;
    draft.record(Event::Team(TeamEvent::ChangeOrdered(ChangeOrdered {
        change,
        handoff,
        work,
        by,
    })));
    Reply::Recorded
}

/// Records the status of a set; a repeated report changes nothing.
pub(super) fn settle(
    draft: &mut Draft,
    change: ChangeId,
    status: ChangeStatus,
    by: String,
    note: String,
) -> Reply {
    let Some(known) = draft.run.team.changes.get(&change) else {
        return Reply::Ignored(Ignored::Unknown);
    };
    if known.status == status && known.ordered.is_none() && !known.asks {
        return Reply::Recorded;
    }
    let handoff = known.handoff;
    let event = ChangeSettled { change, handoff, status, by, note };
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
    settle(draft, change, status, by, String::new());
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
    let again = if known.revision > 1 { ", revised" } else { "" };
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
#[must_use]
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
        instructions: Some(format!(
            "Propose {change} again as it should be: the new set replaces it as a whole. If it is \
             right as it is, say so in your result."
        )),
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
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !self.asks
            && self.ordered.is_none()
            && self.remarks.is_empty()
            && !matches!(self.status, ChangeStatus::Pending | ChangeStatus::Approved)
    }
}

impl ChangeProposed {
    pub(super) fn apply(&self, run: &mut Run) {
        let set = &self.set;
        if !run.team.changes.contains_key(&set.change) && run.team.changes.len() >= MOST_SETS {
            let oldest = run.team.changes.iter().find(|(_, known)| known.is_settled());
            if let Some(oldest) = oldest.map(|(id, _)| *id) {
                run.team.changes.remove(&oldest);
            }
        }
        let earlier = run.team.changes.remove(&set.change);
        let (returned, remarks, said) = earlier
            .map_or_else(Default::default, |known| (known.returned, known.remarks, known.said));
        run.team.changes.insert(
            set.change,
            SetState {
                handoff: set.handoff,
                agent: set.agent.clone(),
                reason: set.reason.clone(),
                revision: set.revision,
                count: set.count,
                gates: set.gates.clone(),
                status: ChangeStatus::Pending,
                asks: !set.gates.is_empty() || run.workflow.changes.ask_always,
                ordered: None,
                returned,
                remarks,
                said,
            },
        );
    }
}

impl ChangeCommented {
    pub(super) fn apply(&self, run: &mut Run) {
        let is_over = run.status().is_final();
        let Some(known) = run.team.changes.get_mut(&self.change) else { return };
        known.said.push(self.comment.clone());
        let surplus = known.said.len().saturating_sub(REMARKS);
        known.said.drain(..surplus);
        // Comments on an applied set are only recorded.
        let goes_back = known.agent.is_some() && !known.status.is_in() && !is_over;
        if goes_back && known.remarks.len() < REMARKS {
            known.remarks.push(self.comment.clone());
        }
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
        if let Some(known) = run.team.changes.get_mut(&self.change) {
            known.ordered = Some(self.work);
        }
    }
}

impl ChangeSettled {
    pub(super) fn apply(&self, run: &mut Run) {
        if let Some(known) = run.team.changes.get_mut(&self.change) {
            // A failed attempt leaves the question open.
            known.asks &= known.ordered.is_some() && self.status == ChangeStatus::Pending;
            known.status = self.status;
            known.ordered = None;
        }
    }
}

#[cfg(test)]
mod tests;
