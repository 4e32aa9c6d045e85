//! Coordinators: ways of working together that are more than handing work on.
//!
//! The kernel (`run/`) knows handoffs, turns, questions, budgets and limits. A coordinator gives out
//! handoffs by rules of its own and hears what becomes of them. Each has a folder here, keeps its
//! state in [`Team`], and has inputs and events of its own. The kernel calls all of them through
//! [`Coordinator`] and knows none by name; a coordinator acts through the same transitions as
//! everybody else.

pub mod change;
pub mod council;
pub mod generation;
pub mod phase;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::change::{ChangeId, ChangeStatus, Comment};
use crate::handoff::Constraints;
use crate::run::answer::Answer;
use crate::run::close::HandoffClosed;
use crate::{
    Draft, Event, Fields, Handoff, HandoffId, Offer, Party, Reply, Response, Run, Time, TurnKey,
    TurnResult,
};
use change::{ChangeWork, ProposedSet};
use council::vote::Vote;
use generation::{ChangeCounts, Lineage};

pub use generation::Awaited;
use phase::Measured;

/// The hooks of the kernel. Every one of them may be left out.
pub(crate) trait Coordinator: Sync {
    /// A run begins: whoever gives out its first handoffs says so, or else the entry gets the request.
    fn begin(&self, _: &mut Draft, _given: &Fields) -> bool {
        false
    }

    /// The first handoffs of a run were admitted.
    fn begun(&self, _: &mut Draft, _first: &[HandoffId]) {}

    /// Whether `to`, which is no agent, takes handoffs.
    fn takes(&self, _: &Run, _to: &Party) -> bool {
        false
    }

    /// The moment of a handoff has come: whether the coordinator deals with it instead of an agent.
    fn due(&self, _: &mut Draft, _: HandoffId) -> bool {
        false
    }

    /// Whether a handoff waits for something else although its moment has come.
    fn holds_back(&self, _: &Run, _: &Handoff) -> bool {
        false
    }

    /// A turn has ended.
    fn turn_ended(&self, _: &mut Draft, _: HandoffId, _: &TurnResult) {}

    /// A turn ended with an answer and hands nothing on. Returns the answer when it is for the kernel to
    /// deal with.
    fn conclude(&self, _: &mut Draft, _: HandoffId, response: Response) -> Option<Response> {
        Some(response)
    }

    /// What follows from the end of a handoff, as far as the coordinator knows.
    fn closing(&self, _: &Run, _: &HandoffClosed, _: &mut Closed) {}

    /// Lets everything happen that no one has to wait for.
    fn advance(&self, _: &mut Draft) {}

    /// Makes an event of the kernel part of the coordinator's own state.
    fn follow(&self, _: &mut Run, _: &Event) {}
}

/// In the order in which they are asked. Generations come last: a team hands over when nobody else has
/// anything to do.
const COORDINATORS: [&dyn Coordinator; 4] = [
    &change::ChangeCoordinator,
    &phase::PhaseCoordinator,
    &council::CouncilCoordinator,
    &generation::GenerationCoordinator,
];

/// What the coordinators of a run know.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Team {
    /// How far the run is in its phases, when its workflow has some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<phase::Phases>,
    /// The sets of edits that were proposed, the newest ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub changes: BTreeMap<ChangeId, change::SetState>,
    /// The council that met last, if one has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub council: Option<Box<council::Council>>,
    /// Where the run stands among the generations of its team, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Box<Lineage>>,
}

/// What a run begins with besides its request.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Inheritance {
    /// What earlier generations have left, when it follows some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lineage: Option<Box<Lineage>>,
}

/// What a coordinator wants to know of a turn besides its answer.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Said {
    /// Where a member of a council stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vote: Option<Vote>,
    /// How many tokens the answer to a phase has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
}

impl Said {
    /// Whether an agent said something that its turn can end with.
    #[must_use]
    pub fn is_answer(&self) -> bool {
        self.vote.is_some()
    }

    /// What of it counts for a handoff, no longer than it may be.
    pub(crate) fn bounded(self, constraints: Constraints) -> Said {
        let vote = self.vote.filter(|_| constraints.fixed_taker).map(Vote::bounded);
        Said { vote, measured: self.measured }
    }

    /// What was said later replaces what was said before.
    pub(crate) fn update(&mut self, later: &Said) {
        let Said { vote, measured } = later;
        self.vote = vote.clone().or(self.vote.take());
        self.measured = measured.or(self.measured);
    }

    /// In a word, for a person.
    pub(crate) fn word(&self) -> Option<&'static str> {
        self.vote.as_ref().map(|vote| vote.signal.as_str())
    }
}

/// What follows from the end of a handoff.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Closed {
    /// Whoever waits for the handoff does not get its answer.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub withheld: bool,
    /// What becomes of the part of a phase that it was.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub part: Option<phase::PartClosed>,
    /// What later generations are given, too.
    #[serde(skip_serializing_if = "Fields::is_empty")]
    pub given: Fields,
}

/// What the answer to a coordinator's question decides.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TeamAbout {
    /// Whether a set of edits may be applied: approve, refuse or later; anything else goes back to
    /// the agent that proposed it.
    Change(ChangeId),
    /// What becomes of a council that does not agree: accept, again or stop; anything else is
    /// something for it to consider.
    Council(HandoffId),
    /// Whether the next generation begins: stop, or go on; anything else is a note for it.
    CheckIn(HandoffId),
}

/// Something that arrived for a coordinator.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TeamInput {
    /// A set of edits is proposed; it is kept already.
    ProposeChange {
        /// In which turn, when in one.
        turn: Option<TurnKey>,
        /// Which set.
        set: Box<ProposedSet>,
    },
    /// Somebody says something about a set.
    CommentChange {
        /// About which set.
        change: ChangeId,
        /// What, and about which place.
        comment: Comment,
    },
    /// Somebody wants a set in the project, or out of it.
    OrderChange {
        /// Which set.
        change: ChangeId,
        /// What is to be done.
        work: ChangeWork,
        /// Who wants it.
        by: String,
    },
    /// A set is allowed, refused, in the project, or out of it.
    SettleChange {
        /// Which set.
        change: ChangeId,
        /// How far it is.
        status: ChangeStatus,
        /// Who had it so.
        by: String,
        /// What is worth knowing about it.
        note: String,
    },
    /// A person wants the next generation to know something.
    Note {
        /// What.
        text: String,
        /// Who says it.
        by: String,
    },
    /// The run is over and hands over to the next generation.
    HandOver {
        /// How the changes stand that it has made.
        changes: ChangeCounts,
    },
}

/// Something that became true for a coordinator. One variant a transition; each is defined, decided
/// and applied in the folder of its coordinator.
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
    CouncilOpened(Box<council::CouncilOpened>),
    CouncilHeard(Box<council::CouncilHeard>),
    CouncilConcluded(Box<council::CouncilConcluded>),
    CouncilReopened(Box<council::CouncilReopened>),
    NoteLeft(generation::note::NoteLeft),
    GenerationHandedOver(Box<generation::hand_over::GenerationHandedOver>),
}

impl TeamEvent {
    /// All names.
    pub const NAMES: [&str; 14] = [
        "phase_begun",
        "phase_ended",
        "turn_measured",
        "change_proposed",
        "change_commented",
        "change_returned",
        "change_ordered",
        "change_settled",
        "council_opened",
        "council_heard",
        "council_concluded",
        "council_reopened",
        "note_left",
        "generation_handed_over",
    ];

    /// The event's name, as it is stored.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            TeamEvent::PhaseBegun(_) => "phase_begun",
            TeamEvent::PhaseEnded(_) => "phase_ended",
            TeamEvent::TurnMeasured(_) => "turn_measured",
            TeamEvent::ChangeProposed(_) => "change_proposed",
            TeamEvent::ChangeCommented(_) => "change_commented",
            TeamEvent::ChangeReturned(_) => "change_returned",
            TeamEvent::ChangeOrdered(_) => "change_ordered",
            TeamEvent::ChangeSettled(_) => "change_settled",
            TeamEvent::CouncilOpened(_) => "council_opened",
            TeamEvent::CouncilHeard(_) => "council_heard",
            TeamEvent::CouncilConcluded(_) => "council_concluded",
            TeamEvent::CouncilReopened(_) => "council_reopened",
            TeamEvent::NoteLeft(_) => "note_left",
            TeamEvent::GenerationHandedOver(_) => "generation_handed_over",
        }
    }

    /// The handoff that it is about, if it is about one.
    #[must_use]
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

/// What the coordinators of a new run know.
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

/// What follows from the end of a handoff; none when nothing does.
pub(crate) fn closing(run: &Run, closed: &HandoffClosed) -> Option<Box<Closed>> {
    let mut follows = Closed::default();
    COORDINATORS.iter().for_each(|it| it.closing(run, closed, &mut follows));
    (follows != Closed::default()).then(|| Box::new(follows))
}

/// Makes what follows from the end of a handoff part of the state.
pub(crate) fn closed(run: &mut Run, id: HandoffId, follows: &Closed) {
    if let (Some(phases), Some(part)) = (&mut run.team.phases, &follows.part) {
        phases.closed(id, part);
    }
    if let Some(lineage) = &mut run.team.lineage {
        lineage.given.extend(follows.given.clone());
    }
}

/// A person answered a coordinator's question.
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

/// Something arrived for a coordinator. What was proposed in a run goes its way into the project and
/// out of it also when the run is over.
pub(crate) fn input(draft: &mut Draft, input: TeamInput) -> Reply {
    match input {
        TeamInput::ProposeChange { turn, set } => change::propose_set(draft, turn, *set),
        TeamInput::CommentChange { change, comment } => change::comment(draft, change, comment),
        TeamInput::OrderChange { change, work, by } => change::order(draft, change, work, by),
        TeamInput::SettleChange { change, status, by, note } => {
            change::settle(draft, change, status, by, note)
        }
        TeamInput::Note { text, by } => generation::note::decide(draft, &text, by),
        TeamInput::HandOver { changes } => generation::hand_over::decide(draft, &changes),
    }
}

pub(crate) fn advance(draft: &mut Draft) {
    COORDINATORS.iter().for_each(|it| it.advance(draft));
}

/// Makes an event part of what the coordinators know.
pub(crate) fn apply(run: &mut Run, at: Time, event: &Event) {
    let Event::Team(event) = event else {
        return COORDINATORS.iter().for_each(|it| it.follow(run, event));
    };
    match event {
        TeamEvent::PhaseBegun(e) => e.apply(run),
        TeamEvent::PhaseEnded(e) => e.apply(run),
        TeamEvent::TurnMeasured(e) => e.apply(run),
        TeamEvent::ChangeProposed(e) => e.apply(run),
        TeamEvent::ChangeCommented(e) => e.apply(run),
        TeamEvent::ChangeReturned(e) => e.apply(run),
        TeamEvent::ChangeOrdered(e) => e.apply(run),
        TeamEvent::ChangeSettled(e) => e.apply(run),
        TeamEvent::CouncilOpened(e) => e.apply(run),
        TeamEvent::CouncilHeard(e) => e.apply(run),
        TeamEvent::CouncilConcluded(e) => e.apply(run),
        TeamEvent::CouncilReopened(e) => e.apply(run),
        TeamEvent::NoteLeft(e) => e.apply(run, at),
        TeamEvent::GenerationHandedOver(e) => e.apply(run),
    }
}

/// The run has become one of its own: what belongs to the run that it comes from stays there.
pub(crate) fn forked(team: &mut Team) {
    team.changes.clear();
    if let Some(lineage) = &mut team.lineage {
        // The series goes on where it was; a fork is no second one.
        lineage.plan = None;
    }
}

/// The constraints of a handoff that an older release admitted, which did not say them.
pub(crate) fn old_constraints(run: &Run, offer: &Offer) -> Constraints {
    let fixed_taker = council::is_turn(offer);
    let keeps = phase::is_part(offer);
    let optional = keeps && phase::is_shared(run, &offer.to);
    Constraints { fresh: keeps, fixed_taker, keeps, optional }
}
