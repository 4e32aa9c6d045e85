//! Somebody in the run wants to change the project: the set is proposed, talked about, revised,
//! allowed and settled.
//!
//! The edits themselves are kept beside the runs; what is recorded here is that they are proposed,
//! which contents they are, and what became of them. What a person has to allow is a question of
//! the run, and what somebody says about a set goes back to the agent that proposed it.

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

/// The most sets that a run remembers; those that are settled are forgotten first.
pub const MOST_SETS: usize = 64;

/// The most remarks that one turn is given, and that a run remembers of a set.
const REMARKS: usize = 32;

/// The most files that are told of a set; the set itself has them all.
pub const FILES_TOLD: usize = 100;

/// The most gates that are named in a question.
const GATES_TOLD: usize = 10;

/// A file of a set, with what it was and what it becomes.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FileNote {
    /// Which file.
    pub file: FilePath,
    /// What is done to it.
    pub action: Action,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<FilePath>,
    /// Its content before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Digest>,
    /// Its content afterwards.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Digest>,
}

/// A set as the run knows it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProposedSet {
    /// Which set.
    pub change: ChangeId,
    /// By which agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// In which handoff.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// How often it was proposed: 1 at first, one more with each revision.
    pub revision: u32,
    /// What for.
    pub reason: String,
    /// How many files it touches.
    pub count: usize,
    /// The first of them.
    pub files: Vec<FileNote>,
    /// What a person has to say yes to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<Gate>,
}

/// A set was proposed, or revised when its revision is not the first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeProposed {
    /// In which turn; none when it came when that was over, or from a person.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnKey>,
    /// What.
    #[serde(flatten)]
    pub set: ProposedSet,
}

/// Somebody said something about a set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeCommented {
    /// About which set.
    pub change: ChangeId,
    /// The handoff that it was proposed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// Who, about which place, and what.
    pub comment: Comment,
}

/// What was said about a set went back to the agent that proposed it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeReturned {
    /// Which set.
    pub change: ChangeId,
    /// The handoff that it went back with; none when it could not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
}

/// What is to be done to the project.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ChangeWork {
    /// The set is to get in.
    Apply,
    /// It is to get out again.
    Undo,
}

/// Somebody wants a set in the project, or out of it. Nothing is touched before this is recorded.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeOrdered {
    /// Which set.
    pub change: ChangeId,
    /// The handoff that it was proposed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// What is to be done.
    pub work: ChangeWork,
    /// Who wants it.
    pub by: String,
}

/// A set is allowed, refused, in the project, or out of it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeSettled {
    /// Which set.
    pub change: ChangeId,
    /// The handoff that it was proposed in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// How far it is now.
    pub status: ChangeStatus,
    /// Who had it so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// What is worth knowing about it: why it failed, which commit it became.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// What a run remembers of a set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SetState {
    /// The handoff that it was proposed in.
    pub handoff: Option<HandoffId>,
    /// Who proposed it.
    pub agent: Option<AgentName>,
    /// What for.
    pub reason: String,
    /// Its revision.
    pub revision: u32,
    /// How many files it touches.
    pub count: usize,
    /// What a person has to say yes to.
    pub gates: Vec<Gate>,
    /// How far it is.
    pub status: ChangeStatus,
    /// Whether a person is still to be asked about it.
    pub asks: bool,
    /// What is being done to the project and has no outcome yet.
    pub ordered: Option<ChangeWork>,
    /// The handoff that asks for its revision.
    pub returned: Option<HandoffId>,
    /// What was said about it and has not gone back yet.
    pub remarks: Vec<Comment>,
    /// What was said about it last: the set itself has it too, or gets it after a crash.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub said: Vec<Comment>,
}

/// Takes sets of edits from their proposal into the project, by way of a person where one has to agree.
pub(super) struct ChangeCoordinator;

impl Coordinator for ChangeCoordinator {
    fn advance(&self, draft: &mut Draft) {
        if draft.run.stage == Stage::Active {
            advance(draft);
        }
    }
}

/// A set is proposed. What comes twice is proposed once, and what comes for a turn that is over is
/// not taken.
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
    // Whoever is asked about the set as it was is asked anew.
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

/// Somebody says something about a set; the reply is whether an agent hears it.
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

/// Somebody wants a set in the project, or out of it.
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

/// A set is so far; to hear it again changes nothing.
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

/// A person answered the question about a set.
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

/// Asks what is to be asked, and gives back what was said.
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
        // An agent that is still at it hears of it afterwards.
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
    // Nobody waits for the answer but the run: the agent has long gone on.
    propose::ask(draft, Proposal { cause, ..Proposal::of(offer) });
}

/// What the gates are about, in words that follow "it".
#[must_use]
pub fn told(gates: &[Gate]) -> String {
    let mut said: Vec<String> = gates
        .iter()
        .take(GATES_TOLD)
        .map(|gate| match gate.kind {
            GateKind::Deletion => format!("deletes {}", gate.file),
            GateKind::OwnLogic => format!("steers the team by {}", gate.file),
            GateKind::Dependencies => format!("changes dependencies in {}", gate.file),
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
    // A refusal is recorded like any other; what was said stays with the set.
    let handoff = propose(draft, Proposal::of(offer)).ok();
    draft.record(Event::Team(TeamEvent::ChangeReturned(ChangeReturned { change, handoff })));
}

impl SetState {
    /// Whether nothing more is expected of it here.
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
        // What is in the project is talked about, no more.
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
            // An attempt that came to nothing leaves the question open.
            known.asks &= known.ordered.is_some() && self.status == ChangeStatus::Pending;
            known.status = self.status;
            known.ordered = None;
        }
    }
}

#[cfg(test)]
mod tests;
