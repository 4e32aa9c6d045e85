//! Generations: a team that hands over to its next self.
//!
//! A generation is a run. When it is over, a rule says what comes next ([`next`]); the one that
//! follows is made of nothing but what the last one left ([`successor`]), under a name that follows
//! from the last one's, so that making it twice makes it once.

mod briefing;
mod context;
pub mod hand_over;
mod next;
pub mod note;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::{Builder, Uuid};

use super::council::{Council, Verdict};
use super::phase::Phases;
use super::{Closed, Coordinator, Inheritance};
use crate::handoff::{About, Outcome, State};
use crate::run::Draft;
use crate::run::close::HandoffClosed;
use crate::run::create::RunCreated;
use crate::wire::context::{CodeChange, TeamPhase};
use crate::workflow::Budget;
use crate::workflow::council::party as party_of_council;
use crate::{
    Event, Fields, Handoff, HandoffId, Millis, MissingInput, Party, Question, Run, RunId,
    TeamAbout, Time, Usd,
};

use hand_over::GenerationHandedOver;

pub use briefing::{BRIEFING, briefing, narrative};
pub use context::{Imported, context, import};
pub use next::{Cause, ChangeCounts, Next, next};

/// The most of each kind that is remembered over generations.
const KEPT: usize = 32;

/// The longest note of a person, in characters.
pub const NOTE: usize = 2000;

/// How generations follow each other without a person.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// How many, the first one included.
    pub max_runs: u32,
    /// What they may cost together.
    pub max_cost: Usd,
    /// After how many a person is asked; 0 is never.
    pub check_in_every: u32,
    /// The wait before the next one.
    pub pause: Millis,
    /// What each may spend.
    pub budget: Budget,
    /// The number of the first one.
    pub first: u32,
    /// What had been spent before it.
    pub spent: Usd,
}

/// Something that a person wants the team to know.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// What.
    pub text: String,
    /// Who says it.
    pub by: String,
    /// Since when.
    pub at: Time,
}

/// A generation that was before.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Past {
    /// Which one.
    pub number: u32,
    /// Its run, when it was here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// What it was in.
    pub phase: TeamPhase,
    /// What it did.
    pub summary: String,
    /// What it cost.
    pub cost: Usd,
}

/// What an agent did in earlier generations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Service {
    /// Turns.
    pub turns: u64,
    /// What they cost.
    pub cost: Usd,
}

/// What somebody in a generation has to hear from a person before it can go on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Awaited {
    /// Who asks.
    pub from: Party,
    /// What.
    pub question: Question,
    /// The inputs that the answer fills in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingInput>,
    /// Whether somebody waits for what it is about, so that to take what there is would not be all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owed: bool,
    /// What a council that does not agree would have decided, if a person takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Box<Verdict>>,
}

impl Awaited {
    /// What the open handoff `asked` asks a person.
    fn of(run: &Run, asked: &Handoff) -> Self {
        let question = asked.offer.question.clone().unwrap_or_default();
        let waits = |id| run.handoff(id).is_some_and(|handoff| handoff.returns_to.is_some());
        let (owed, verdict) = match question.about {
            About::Recovery(id) | About::Loop(id) => (waits(id), None),
            About::Team(TeamAbout::Council(id)) => (waits(id), run.acceptable(id).map(Box::new)),
            _ => (false, None),
        };
        let (from, missing) = (asked.offer.from.clone(), asked.offer.missing.clone());
        Awaited { from, question, missing, owed, verdict }
    }

    /// Whether the answer decides what becomes of the work, rather than going into it.
    pub(crate) fn decides(&self) -> bool {
        self.question.about != About::Inputs
    }

    /// How the work comes out when a person says this: nothing when it goes on.
    pub(crate) fn settles(&self, word: &str) -> Option<Outcome> {
        match (&self.question.about, word) {
            _ if self.owed => None,
            (About::Recovery(_), "skip") => Some(Outcome::Partial),
            (About::Loop(_) | About::Team(TeamAbout::Council(_)), "accept") => {
                Some(Outcome::Resolved)
            }
            _ => None,
        }
    }
}

/// What a run asks people at the moment and cannot go on without.
fn blocking(run: &Run) -> impl Iterator<Item = &Handoff> {
    let blocks = |asked: &&Handoff| {
        let question = asked.offer.question.as_ref();
        matches!(asked.state, State::Asked { .. }) && question.is_some_and(|it| it.blocking)
    };
    run.open().filter(blocks)
}

/// What a run asks people at the moment and cannot go on without.
pub(crate) fn awaited(run: &Run) -> Vec<Awaited> {
    blocking(run).take(KEPT).map(|asked| Awaited::of(run, asked)).collect()
}

/// Whether all that a run asks people can be asked by the generation after it as well, and nothing is
/// lost by that.
pub(crate) fn can_be_left(run: &Run) -> bool {
    // What an agent has passed on and nobody has begun yet is in this run alone.
    let is_in_the_air = |handoff: &Handoff| {
        let is_begun = match &handoff.offer.to {
            party if *party == party_of_council() => {
                run.in_council(handoff.id).is_some_and(Council::has_heard)
            }
            Party::Agent(_) => handoff.turn > 0,
            Party::Human | Party::Orchestrator => true,
        };
        is_agent(&handoff.offer.from) && !is_begun
    };
    !run.open().any(is_in_the_air)
        && blocking(run).all(|asked| {
            let is_for_team =
                asked.offer.question.as_ref().is_some_and(|it| is_for_team(&it.about));
            // What the stages ask a person to approve comes with the question, and is approved there.
            let approves = run.workflow.knowledge.is_some() && !asked.offer.outputs.is_empty();
            is_for_team && !approves
        })
}

/// Whether it is about how a team goes on, which its next generation can be told as well. What a
/// person allows or refuses is something that only the run has that asks.
fn is_for_team(about: &About) -> bool {
    match about {
        About::Inputs | About::Recovery(_) | About::Loop(_) => true,
        About::Team(about) => matches!(about, TeamAbout::Council(_)),
        About::Confirm(..) | About::Permission(..) | About::Budget => false,
    }
}

/// Whether a party is one agent, rather than those who decide together.
fn is_agent(party: &Party) -> bool {
    matches!(party, Party::Agent(_)) && *party != party_of_council()
}

/// Hands over to the next generation when a run is over, or nobody can go on in it.
pub(super) struct GenerationCoordinator;

impl Coordinator for GenerationCoordinator {
    fn begun(&self, draft: &mut Draft, first: &[HandoffId]) {
        hand_over::ask_first(draft, first);
    }

    fn closing(&self, run: &Run, closed: &HandoffClosed, follows: &mut Closed) {
        follows.given = hand_over::learned(run, closed);
    }

    fn advance(&self, draft: &mut Draft) {
        hand_over::if_needed(draft);
    }

    fn follow(&self, run: &mut Run, event: &Event) {
        if let (Event::RunFinished(finished), Some(lineage)) = (event, &mut run.team.lineage) {
            lineage.awaits.clone_from(&finished.awaits);
        }
    }
}

/// Where a new run stands: after those that it follows, or at the beginning of a team.
pub(super) fn lineage(at: Time, created: &RunCreated) -> Option<Box<Lineage>> {
    let workflow = &created.workflow;
    let is_team = workflow.council.is_some() || workflow.generations.is_some();
    let first = || Box::new(Lineage::first(at, created.inputs.clone()));
    created.team.lineage.clone().or_else(|| is_team.then(first))
}

/// Where a run stands among the generations of its team.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Lineage {
    /// Which generation it is, from 1.
    pub number: u32,
    /// When the first one began.
    pub since: Time,
    /// The run before it, when it was here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<RunId>,
    /// What the team is doing.
    pub phase: TeamPhase,
    /// How others follow by themselves, if they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Whether a person is asked before it begins.
    #[serde(default)]
    pub check_in: bool,
    /// What the one before it has left for a person to say before it begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<Awaited>,
    /// What a person has to say before the team can go on, when it ended for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<Awaited>,
    /// How far the one before it was in its phases, when it ended in the middle of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// Those before it, the oldest first.
    #[serde(default)]
    pub past: Vec<Past>,
    /// What those before it have cost.
    #[serde(default)]
    pub spent: Usd,
    /// What each agent did in them.
    #[serde(default)]
    pub agents: BTreeMap<String, Service>,
    /// What they have settled.
    #[serde(default)]
    pub decisions: Vec<String>,
    /// What people want it to know.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// What was known from the start.
    #[serde(default)]
    pub given: Fields,
    /// Changes that another orchestrator left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<CodeChange>,
    /// Fields of another orchestrator's own.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub foreign: Fields,
    /// What comes after it, once it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<Box<GenerationHandedOver>>,
}

impl Lineage {
    /// The first generation of a team.
    #[must_use]
    pub fn first(since: Time, given: Fields) -> Self {
        Lineage {
            number: 1,
            since,
            previous: None,
            phase: TeamPhase::Discussion,
            plan: None,
            check_in: false,
            asks: Vec::new(),
            awaits: Vec::new(),
            phases: None,
            past: Vec::new(),
            spent: Usd(0),
            agents: BTreeMap::new(),
            decisions: Vec::new(),
            notes: Vec::new(),
            given,
            changes: Vec::new(),
            foreign: Fields::new(),
            handed_over: None,
        }
    }

    /// Begins a series that goes on by itself.
    #[must_use]
    pub fn planned(mut self, plan: Plan) -> Self {
        self.plan = Some(Plan { first: self.number, spent: self.spent, ..plan });
        self
    }

    /// What people have said, as an input.
    pub(crate) fn said(&self) -> Fields {
        let notes: Vec<&str> = self.notes.iter().map(|note| note.text.as_str()).collect();
        let said = (!notes.is_empty()).then(|| ("human_notes".to_owned(), json!(notes)));
        said.into_iter().collect()
    }

    /// How many generations of the series there have been, this one included.
    pub(crate) fn count(&self) -> u32 {
        let first = self.plan.as_ref().map_or(self.number, |plan| plan.first);
        self.number.saturating_sub(first).saturating_add(1)
    }

    /// Adds a note; the oldest goes when there are too many.
    pub(crate) fn note(&mut self, note: Note) {
        self.notes.push(note);
        trim(&mut self.notes);
    }
}

fn trim<T>(items: &mut Vec<T>) {
    let surplus = items.len().saturating_sub(KEPT);
    items.drain(..surplus);
}

/// The name of the generation after `run`, which ended at `at`: a UUIDv7 of that moment whose chance
/// is the last one's name.
#[must_use]
pub fn successor_id(run: RunId, at: Time) -> RunId {
    let whole = Uuid::new_v5(&run.0, b"stafette:generation");
    let mut chance = [0; 10];
    // The ends of the hash: its middle says what kind of UUID it is.
    chance[..6].copy_from_slice(&whole.as_bytes()[..6]);
    chance[6..].copy_from_slice(&whole.as_bytes()[12..]);
    let moment = u64::try_from(at.0).unwrap_or(0);
    RunId(Builder::from_unix_timestamp_millis(moment, &chance).into_uuid())
}

/// What a run leaves to the generation after it.
fn heir(run: &Run, lineage: &Lineage, over: &GenerationHandedOver) -> Lineage {
    let mut heir = Lineage {
        number: lineage.number.saturating_add(1),
        previous: Some(run.id),
        phase: over.phase,
        check_in: over.next.as_ref().is_some_and(|next| next.check_in),
        asks: lineage.awaits.clone(),
        awaits: Vec::new(),
        phases: run.team.phases.clone().filter(|_| !lineage.awaits.is_empty()).map(Phases::left),
        spent: Usd(lineage.spent.0.saturating_add(run.purse.spent.money.0)),
        agents: services(run),
        decisions: decisions(run, run.team.council.as_deref()),
        handed_over: None,
        ..lineage.clone()
    };
    heir.past.push(Past {
        number: lineage.number,
        run: Some(run.id),
        phase: lineage.phase,
        summary: over.summary.clone(),
        cost: run.purse.spent.money,
    });
    trim(&mut heir.past);
    heir
}

/// What each agent did, in this generation and those before.
fn services(run: &Run) -> BTreeMap<String, Service> {
    let mut agents =
        run.team.lineage.as_ref().map(|lineage| lineage.agents.clone()).unwrap_or_default();
    for (name, account) in &run.purse.agents {
        let service = agents.entry(name.clone()).or_default();
        service.turns += u64::from(account.turns);
        service.cost = Usd(service.cost.0.saturating_add(account.spent.money.0));
    }
    agents
}

/// What is settled, by this generation and those before.
fn decisions(run: &Run, council: Option<&Council>) -> Vec<String> {
    let earlier = run.team.lineage.iter().flat_map(|lineage| &lineage.decisions);
    let now = council.iter().flat_map(|council| &council.decisions);
    let mut all: Vec<String> = Vec::new();
    for decision in earlier.chain(now) {
        if !all.contains(decision) {
            all.push(decision.clone());
        }
    }
    trim(&mut all);
    all
}

/// The generation that follows, if one does: all of it is in the one that is over.
#[must_use]
pub fn successor(run: &Run) -> Option<RunCreated> {
    let lineage = run.team.lineage.as_deref()?;
    let over = lineage.handed_over.as_deref()?;
    let next = over.next.as_ref()?;
    let plan = lineage.plan.as_ref()?;
    let heir = heir(run, lineage, over);
    let spent = heir.spent.0.saturating_sub(plan.spent.0);
    let left = Usd(plan.max_cost.0.saturating_sub(spent));
    let budget = Budget { money: plan.budget.money.min(left), ..plan.budget.clone() };
    Some(RunCreated {
        run: next.run,
        workflow: run.workflow.clone(),
        request: over.topic.clone().unwrap_or_else(|| run.request.clone()),
        inputs: inputs(run, &heir, over),
        budget,
        by: format!("generation {}", lineage.number),
        origin: None,
        trace: run.trace,
        forecasts: Some(run.purse.learned()),
        team: Inheritance { lineage: Some(Box::new(heir)) },
    })
}

fn inputs(run: &Run, heir: &Lineage, over: &GenerationHandedOver) -> Fields {
    let mut inputs = heir.given.clone();
    let text = briefing(&context(run, &[], &ChangeCounts::default(), run.updated_at));
    inputs.insert("briefing".into(), text.into());
    let generation = json!({
        "number": heir.number,
        "phase": heir.phase,
        "next_action": over.action,
        "reason": over.reason,
    });
    inputs.insert("generation".into(), generation);
    inputs.extend(heir.said());
    inputs
}
