//! Coordinators: forms of collaboration beyond handing work on.
//!
//! The kernel (`run/`) knows handoffs, turns, questions, budgets and limits. A coordinator creates
//! handoffs by rules of its own and receives their outcomes. Each has a folder here, keeps its
//! state in [`Team`], and has inputs and events of its own. The kernel calls all of them through
//! `Coordinator` and knows none by name; a coordinator acts through the same transitions as
//! every other caller.

pub mod change;
pub mod council;
pub mod generation;
pub(crate) mod legacy;
pub mod order;
pub mod phase;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::{ChangeId, ChangeStatus, Comment};
use crate::handoff::Constraints;
use crate::run::answer::Answer;
use crate::run::close::HandoffClosed;
use crate::{
    Draft, Event, Fields, Handoff, HandoffId, Ignored, Party, Reply, Response, Run, Time, TurnKey,
    TurnResult,
};
use change::{ChangeWork, Hand, ProposedSet};
use council::vote::Vote;
use generation::{ChangeCounts, Lineage};
use order::{DoneOrders, Leftover, Order, OrderBatch, OrderDone, OrderKey, WorkKey};

pub use generation::Awaited;
use phase::Measured;

/// The hooks that the kernel calls. All of them are optional.
pub(crate) trait Coordinator: Sync {
    /// Called when a run begins. Returns true if the coordinator creates the first handoffs;
    /// otherwise the entry agent gets the request.
    fn begin(&self, _: &mut Draft, _given: &Fields) -> bool {
        false
    }

    /// Called when the first handoffs of a run were admitted.
    fn begun(&self, _: &mut Draft, _first: &[HandoffId]) {}

    /// True if `to`, which is not an agent, accepts handoffs.
    fn takes(&self, _: &Run, _to: &Party) -> bool {
        false
    }

    /// Called when a handoff is due. Returns true if the coordinator handles it instead of an
    /// agent.
    fn due(&self, _: &mut Draft, _: HandoffId) -> bool {
        false
    }

    /// True if a handoff that is due waits for something else.
    fn holds_back(&self, _: &Run, _: &Handoff) -> bool {
        false
    }

    /// Called when a turn has ended.
    fn turn_ended(&self, _: &mut Draft, _: HandoffId, _: &TurnResult) {}

    /// Called when a turn ended with an answer and no offers. Returns the answer if the kernel
    /// should handle it.
    fn conclude(&self, _: &mut Draft, _: HandoffId, response: Response) -> Option<Response> {
        Some(response)
    }

    /// Adds the coordinator's consequences of the end of a handoff.
    fn closing(&self, _: &Run, _: &HandoffClosed, _: &mut Closed) {}

    /// Carries out everything that needs no further input.
    fn advance(&self, _: &mut Draft) {}

    /// Adds the work in the world that is to be done now.
    fn orders(&self, _: &Run, _: &mut Vec<Order>) {}

    /// Updates the coordinator's own state from an event of the kernel.
    fn follow(&self, _: &mut Run, _: &Event) {}
}

/// All coordinators, in the order in which they are asked. Generations come last: a team hands over
/// when no other coordinator has anything to do.
const COORDINATORS: [&dyn Coordinator; 4] = [
    &change::ChangeCoordinator,
    &phase::PhaseCoordinator,
    &council::CouncilCoordinator,
    &generation::GenerationCoordinator,
];

/// The state of a run's coordinators.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Team {
    /// The progress in the phases, if the workflow has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<phase::Phases>,
    /// The proposed sets of edits, newest ones only.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<ChangeId, change::SetState>,
    /// The most recent council, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub council: Option<Box<council::Council>>,
    /// The position of the run among the generations of its team, if it has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Box<Lineage>>,
    /// The orders that a run gives once, and that are done.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub done: DoneOrders,
    /// What the agents left at the end that is in no change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left: Option<Box<Leftover>>,
}

/// The initial state of a run besides its request.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Inheritance {
    /// The state inherited from earlier generations, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Box<Lineage>>,
}

/// Data of a turn for a coordinator, besides its answer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// The vote of a council member.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vote: Option<Vote>,
    /// The size of the answer to a phase, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

impl Said {
    /// True if it contains something that a turn can end with.
    pub fn is_answer(&self) -> bool {
        self.vote.is_some()
    }

    /// Returns the parts that count for a handoff, cut to their limits.
    pub(crate) fn bounded(self, constraints: Constraints) -> Said {
        let vote = self.vote.filter(|_| constraints.fixed_taker).map(Vote::bounded);
        Said { vote, measured: self.measured }
    }

    /// Replaces earlier data with later data.
    pub(crate) fn update(&mut self, later: &Said) {
        let Said { vote, measured } = later;
        self.vote = vote.clone().or(self.vote.take());
        self.measured = measured.or(self.measured);
    }

    /// Returns a one-word summary for people.
    pub(crate) fn word(&self) -> Option<&'static str> {
        self.vote.as_ref().map(|vote| vote.signal.as_str())
    }
}

/// The consequences of the end of a handoff.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Closed {
    /// True if the waiting handoff does not receive the answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
    /// The effect on the part of a phase that the handoff was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<phase::PartClosed>,
    /// Values that later generations inherit, too.
    #[serde(skip_serializing_if = "Fields::is_empty")]
    pub given: Fields,
}

/// The decision that the answer to a coordinator's question makes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TeamAbout {
    /// Decides whether a set of edits may be applied: approve, refuse or later; any other text goes
    /// back to the agent that proposed it.
    Change(ChangeId),
    /// Decides how to continue with a council that does not agree: accept, again or stop; any other
    /// text is input for its discussion.
    Council(HandoffId),
    /// Decides whether the next generation begins: stop or continue; any other text is a note for
    /// it.
    CheckIn(HandoffId),
}

/// An input for a coordinator.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TeamInput {
    /// A set of edits, already stored, is proposed.
    ProposeChange {
        /// The turn in which it is proposed, if any.
        turn: Option<TurnKey>,
        /// The summary of the set.
        set: Box<ProposedSet>,
    },
    /// A comment on a set.
    CommentChange {
        /// The set that the comment is about.
        change: ChangeId,
        /// The comment and its place.
        comment: Comment,
    },
    /// A person's decision about a set.
    DecideChange {
        /// The set that is approved or rejected.
        change: ChangeId,
        /// The revision that the person has seen; `None` stands for the latest.
        revision: Option<u32>,
        /// The decision: `approved` or `refused`.
        status: ChangeStatus,
        /// The name of the person.
        by: String,
        /// The reason, in the person's words.
        note: String,
    },
    /// A request to apply a set to the project, or to undo it.
    OrderChange {
        /// The set to apply or undo.
        change: ChangeId,
        /// The revision that the requester has seen; `None` stands for the latest.
        revision: Option<u32>,
        /// The action that is requested.
        work: ChangeWork,
        /// The requester.
        by: Hand,
        /// The place among the sets that are applied together; `None` if it is applied alone.
        batch: Option<OrderBatch>,
        /// True if it is to be applied although an agent is revising it.
        as_it_is: bool,
    },
    /// The outcome for a set: of an order, or of one for another set that it was taken back with.
    SettleChange {
        /// The set that it is about.
        change: ChangeId,
        /// The order that it is the outcome of.
        order: WorkKey,
        /// The status of the set.
        status: ChangeStatus,
        /// The name of the requester.
        by: String,
        /// Details, such as the cause of a failure.
        note: String,
    },
    /// An order was carried out.
    OrderDone {
        /// The identity of the order.
        order: OrderKey,
        /// The receiver of a comment that was forwarded.
        heard: Option<change::Heard>,
        /// What the agents left that is in no change.
        left: Option<Box<Leftover>>,
    },
    /// A person leaves a note for the next generation.
    Note {
        /// The text of the note.
        text: String,
        /// The name of the person.
        by: String,
    },
    /// The run has ended and hands over to the next generation.
    HandOver {
        /// The counts of its changes by status.
        changes: ChangeCounts,
    },
}

/// An event of a coordinator. One variant per transition; each is defined, decided and applied in
/// the folder of its coordinator.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each variant is documented where it is defined")]
pub enum TeamEvent {
    PhaseBegun(Box<phase::PhaseBegun>),
    PhaseEnded(Box<phase::PhaseEnded>),
    TurnMeasured(phase::TurnMeasured),
    ChangeProposed(Box<change::ChangeProposed>),
    ChangeCommented(Box<change::ChangeCommented>),
    ChangeReturned(change::ChangeReturned),
    ChangeOrdered(change::ChangeOrdered),
    ChangeSettled(change::ChangeSettled),
    OrderDone(OrderDone),
    CouncilOpened(Box<council::CouncilOpened>),
    CouncilHeard(Box<council::CouncilHeard>),
    CouncilConcluded(Box<council::CouncilConcluded>),
    CouncilReopened(Box<council::CouncilReopened>),
    NoteLeft(generation::note::NoteLeft),
    GenerationHandedOver(Box<generation::hand_over::GenerationHandedOver>),
}

crate::event::stored_names! { TeamEvent:
    PhaseBegun "phase_begun",
    PhaseEnded "phase_ended",
    TurnMeasured "turn_measured",
    ChangeProposed "change_proposed",
    ChangeCommented "change_commented",
    ChangeReturned "change_returned",
    ChangeOrdered "change_ordered",
    ChangeSettled "change_settled",
    OrderDone "order_done",
    CouncilOpened "council_opened",
    CouncilHeard "council_heard",
    CouncilConcluded "council_concluded",
    CouncilReopened "council_reopened",
    NoteLeft "note_left",
    GenerationHandedOver "generation_handed_over",
}

impl TeamEvent {
    /// Returns the handoff that the event is about, if any.
    pub fn handoff(&self) -> Option<HandoffId> {
        match self {
            TeamEvent::TurnMeasured(e) => Some(e.turn.handoff),
            TeamEvent::ChangeProposed(e) => e.set.handoff,
            TeamEvent::ChangeCommented(e) => e.handoff,
            TeamEvent::ChangeReturned(e) => e.handoff,
            TeamEvent::ChangeOrdered(e) => e.handoff,
            TeamEvent::ChangeSettled(e) => e.handoff,
            TeamEvent::CouncilOpened(e) => Some(e.handoff),
            TeamEvent::CouncilHeard(e) => Some(e.handoff),
            TeamEvent::CouncilConcluded(e) => Some(e.handoff),
            TeamEvent::CouncilReopened(e) => Some(e.handoff),
            TeamEvent::PhaseBegun(_)
            | TeamEvent::PhaseEnded(_)
            | TeamEvent::OrderDone(_)
            | TeamEvent::NoteLeft(_)
            | TeamEvent::GenerationHandedOver(_) => None,
        }
    }
}

impl From<TeamInput> for crate::Input {
    fn from(input: TeamInput) -> Self {
        crate::Input::Team(input)
    }
}

impl From<TeamEvent> for Event {
    fn from(event: TeamEvent) -> Self {
        Event::Team(event)
    }
}

/// Returns the coordinators' state for a new run.
pub(crate) fn new(at: Time, created: &crate::run::create::RunCreated) -> Team {
    Team { lineage: generation::lineage(at, created), ..Team::default() }
}

pub(crate) fn begin(draft: &mut Draft, given: &Fields) -> bool {
    COORDINATORS.iter().any(|it| it.begin(draft, given))
}

pub(crate) fn begun(draft: &mut Draft, first: &[HandoffId]) {
    COORDINATORS.iter().for_each(|it| it.begun(draft, first));
}

pub(crate) fn takes(run: &Run, to: &Party) -> bool {
    COORDINATORS.iter().any(|it| it.takes(run, to))
}

pub(crate) fn due(draft: &mut Draft, id: HandoffId) -> bool {
    COORDINATORS.iter().any(|it| it.due(draft, id))
}

pub(crate) fn holds_back(run: &Run, handoff: &Handoff) -> bool {
    COORDINATORS.iter().any(|it| it.holds_back(run, handoff))
}

pub(crate) fn turn_ended(draft: &mut Draft, id: HandoffId, result: &TurnResult) {
    COORDINATORS.iter().for_each(|it| it.turn_ended(draft, id, result));
}

pub(crate) fn conclude(draft: &mut Draft, id: HandoffId, response: Response) -> Option<Response> {
    COORDINATORS.iter().try_fold(response, |response, it| it.conclude(draft, id, response))
}

/// Returns the consequences of the end of a handoff.
pub(crate) fn closing(run: &Run, closed: &HandoffClosed) -> Box<Closed> {
    let mut follows = Box::<Closed>::default();
    COORDINATORS.iter().for_each(|it| it.closing(run, closed, &mut follows));
    follows
}

/// Applies the consequences of the end of a handoff.
pub(crate) fn closed(run: &mut Run, id: HandoffId, follows: &Closed) {
    if let (Some(phases), Some(part)) = (&mut run.team.phases, &follows.part) {
        phases.closed(id, part);
    }
    if let Some(lineage) = &mut run.team.lineage {
        lineage.given.extend(follows.given.clone());
    }
}

/// Applies a person's answer to a coordinator's question.
pub(crate) fn answered(
    draft: &mut Draft,
    question: HandoffId,
    about: &TeamAbout,
    answer: &Answer,
    values: Fields,
) {
    let word = answer.text.trim().to_lowercase();
    match about {
        TeamAbout::Change(id) => change::answered(draft, *id, &word, answer),
        TeamAbout::Council(id) => council::answered(draft, *id, &word, &answer.text),
        TeamAbout::CheckIn(_) => generation::hand_over::checked_in(draft, question, answer, values),
    }
}

/// Handles an input for a coordinator. Proposed sets can still be applied and undone after the run
/// has ended.
pub(crate) fn input(draft: &mut Draft, input: TeamInput) -> Reply {
    match input {
        TeamInput::ProposeChange { turn, set } => change::propose_set(draft, turn, *set),
        TeamInput::CommentChange { change, comment } => change::comment(draft, change, comment),
        TeamInput::DecideChange { change, revision, status, by, note } => {
            change::decide(draft, change, revision, status, by, note)
        }
        TeamInput::OrderChange { change, revision, work, by, batch, as_it_is } => {
            let applies = matches!(work, ChangeWork::Apply | ChangeWork::Renew);
            match applies && !as_it_is && change::is_being_revised(&draft.run, change) {
                true => Reply::Ignored(Ignored::BeingRevised),
                false => change::order(draft, change, revision, work, by, batch),
            }
        }
        TeamInput::SettleChange { change, order, status, by, note } => {
            change::settle(draft, change, order, status, by, note)
        }
        TeamInput::OrderDone { order, heard, left } => order::done(draft, order, heard, left),
        TeamInput::Note { text, by } => generation::note::decide(draft, &text, by),
        TeamInput::HandOver { changes } => generation::hand_over::decide(draft, &changes),
    }
}

/// Cancels what would follow a run that has ended.
pub(crate) fn cancel(draft: &mut Draft) -> Reply {
    order::cancel(draft)
}

/// Returns the work in the world that is to be done now.
pub(crate) fn orders(run: &Run) -> Vec<Order> {
    let mut orders = Vec::new();
    COORDINATORS.iter().for_each(|it| it.orders(run, &mut orders));
    orders
}

pub(crate) fn advance(draft: &mut Draft) {
    COORDINATORS.iter().for_each(|it| it.advance(draft));
}

/// Applies an event to the coordinators' state.
pub(crate) fn apply(run: &mut Run, at: Time, event: &Event) {
    let Event::Team(event) = event else {
        return COORDINATORS.iter().for_each(|it| it.follow(run, event));
    };
    match event {
        TeamEvent::PhaseBegun(e) => e.apply(run),
        TeamEvent::PhaseEnded(e) => e.apply(run),
        TeamEvent::TurnMeasured(e) => e.apply(run),
        TeamEvent::ChangeProposed(e) => e.apply(run),
        TeamEvent::ChangeCommented(e) => e.apply(run, at),
        TeamEvent::ChangeReturned(e) => e.apply(run),
        TeamEvent::ChangeOrdered(e) => e.apply(run),
        TeamEvent::ChangeSettled(e) => e.apply(run),
        TeamEvent::OrderDone(e) => e.apply(run),
        TeamEvent::CouncilOpened(e) => e.apply(run),
        TeamEvent::CouncilHeard(e) => e.apply(run),
        TeamEvent::CouncilConcluded(e) => e.apply(run),
        TeamEvent::CouncilReopened(e) => e.apply(run),
        TeamEvent::NoteLeft(e) => e.apply(run, at),
        TeamEvent::GenerationHandedOver(e) => e.apply(run),
    }
}

/// Resets the state of a forked run that belongs to the original run.
pub(crate) fn forked(team: &mut Team) {
    team.changes.clear();
    team.done = DoneOrders { imported: true, ..DoneOrders::default() };
    if let Some(lineage) = &mut team.lineage {
        // The series continues in the original run; a fork does not start a second one.
        lineage.plan = None;
    }
}
