//! Generations: a team that hands over to a successor run.
//!
//! A generation is a run. When it has ended, a rule decides what comes next ([`next`]); the next
//! generation is built only from the state of the last one ([`successor`]), under an id derived
//! from the
//! last one's, so that creating it twice creates it once.

mod briefing;
mod context;
pub mod hand_over;
mod next;
pub mod note;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::council::{Council, Verdict};
use super::order::{DoneOrders, Order, begun_id};
use super::phase::Phases;
use super::{Closed, Coordinator, Inheritance, change};
use crate::handoff::{About, Outcome, State};
use crate::run::Draft;
use crate::run::close::HandoffClosed;
use crate::run::create::RunCreated;
use crate::wire::context::{ChangeStatus, CodeChange, TeamPhase};
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

/// The maximum number of entries of each kind that are kept over generations.
const KEPT: usize = 32;

/// The maximum length of a person's note, in characters.
pub const NOTE: usize = 2000;

/// The plan for a series of generations that follow each other automatically.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Plan {
    /// The maximum number of generations, including the first one.
    pub max_runs: u32,
    /// The maximum total cost, in US dollars.
    pub max_cost: Usd,
    /// The number of generations after which a person is asked; 0 means never.
    pub check_in_every: u32,
    /// The pause before the next generation.
    pub pause: Millis,
    /// The budget of each generation.
    pub budget: Budget,
    /// The number of the first generation of the series.
    pub first: u32,
    /// The cost before the series began, in US dollars.
    pub spent: Usd,
}

/// A person's note for the team.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Note {
    /// The text of the note.
    pub text: String,
    /// The name of the person.
    pub by: String,
    /// The time of the note.
    pub at: Time,
}

/// An earlier generation of the team.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Past {
    /// The number of the generation.
    pub number: u32,
    /// Its run; `None` if it ran under another orchestrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    /// The team's phase in that generation.
    pub phase: TeamPhase,
    /// A summary of its work.
    pub summary: String,
    /// Its cost, in US dollars.
    pub cost: Usd,
}

/// The work of an agent in earlier generations.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Service {
    /// The number of turns.
    pub turns: u64,
    /// The cost of those turns, in US dollars.
    pub cost: Usd,
    /// The number of turns whose cost is not known.
    #[serde(default, skip_serializing_if = "crate::is_default")]
    pub unknown: u64,
}

/// A question that a person must answer before the team can continue.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Awaited {
    /// The party that asks.
    pub from: Party,
    /// The question as the person reads it.
    pub question: Question,
    /// The inputs that the answer fills in.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<MissingInput>,
    /// True if another handoff waits for the result, so that accepting what there is would not be
    /// enough.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub owed: bool,
    /// The result of a council that does not agree, for a person to accept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Box<Verdict>>,
}

impl Awaited {
    /// Creates the entry for the open question `asked`.
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

    /// True if the answer decides how the work continues, rather than becoming an input.
    pub(crate) fn decides(&self) -> bool {
        self.question.about != About::Inputs
    }

    /// Returns the outcome of the work for this answer; `None` if it continues.
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

/// Returns the open questions that block the run.
fn blocking(run: &Run) -> impl Iterator<Item = &Handoff> {
    let blocks = |asked: &&Handoff| {
        let question = asked.offer.question.as_ref();
        matches!(asked.state, State::Asked { .. }) && question.is_some_and(|it| it.blocking)
    };
    run.open().filter(blocks)
}

/// Returns the open questions that block the run, for the next generation.
pub(crate) fn awaited(run: &Run) -> Vec<Awaited> {
    blocking(run).take(KEPT).map(|asked| Awaited::of(run, asked)).collect()
}

/// True if the next generation can ask all open questions of a run instead, without loss.
pub(crate) fn can_be_left(run: &Run) -> bool {
    // Work that an agent has passed on and that has not begun yet exists in this run alone.
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
            // An approval requested by the stages belongs to its question, and is given there.
            let approves = run.workflow.knowledge.is_some() && !asked.offer.outputs.is_empty();
            is_for_team && !approves
        })
}

/// True if the question is about how a team continues, so that its next generation can ask it as
/// well. Permissions belong to the run that asks for them.
fn is_for_team(about: &About) -> bool {
    match about {
        About::Inputs | About::Recovery(_) | About::Loop(_) => true,
        About::Team(about) => matches!(about, TeamAbout::Council(_)),
        About::Unconfirmed(_) | About::Confirm(..) => false,
        About::Permission(..) | About::Budget => false,
    }
}

/// True if a party is a single agent, not the council.
fn is_agent(party: &Party) -> bool {
    matches!(party, Party::Agent(_)) && *party != party_of_council()
}

/// Hands over to the next generation when a run has ended, or when no agent can continue in it.
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

    fn orders(&self, run: &Run, orders: &mut Vec<Order>) {
        let Some(lineage) = &run.team.lineage else { return };
        let is_left = |change: &CodeChange| change.status == ChangeStatus::Pending;
        let is_old = DoneOrders::is_old(run);
        if !is_old && !run.team.done.imported && lineage.changes.iter().any(is_left) {
            orders.push(Order::Import);
        }
        match &lineage.handed_over {
            // The outcome of the run counts among its changes.
            None if run.status().is_final() && !change::is_uncollected(run) => {
                orders.push(Order::HandOver);
            }
            None => {}
            Some(over) => {
                let next = over.next.as_ref().filter(|_| !is_old && !run.team.done.begun);
                orders.extend(next.map(|next| Order::Begin { not_before: next.not_before }));
            }
        }
    }

    fn follow(&self, run: &mut Run, event: &Event) {
        let Event::RunFinished(finished) = event else { return };
        run.team.done.listed = finished.lists_orders;
        if let Some(lineage) = &mut run.team.lineage {
            lineage.awaits.clone_from(&finished.awaits);
        }
    }
}

/// Returns the lineage of a new run: after the generations that it follows, or at the start of a
/// team.
pub(super) fn lineage(at: Time, created: &RunCreated) -> Option<Box<Lineage>> {
    let workflow = &created.workflow;
    let is_team = workflow.council.is_some() || workflow.generations.is_some();
    let first = || Box::new(Lineage::first(at, created.inputs.clone()));
    let is_team = is_team && created.entry.is_none();
    created.team.lineage.clone().or_else(|| is_team.then(first))
}

/// The position of a run among the generations of its team.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Lineage {
    /// The number of the generation, from 1.
    pub number: u32,
    /// The time at which the first generation began.
    pub since: Time,
    /// The previous run; `None` if it ran under another orchestrator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<RunId>,
    /// The current phase of the team.
    pub phase: TeamPhase,
    /// The plan for generations that follow automatically, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// True if a person is asked before the generation begins.
    #[serde(default)]
    pub check_in: bool,
    /// Questions of the previous generation that a person must answer before this one begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub asks: Vec<Awaited>,
    /// Questions that a person must answer before the team can continue, if the run ended because
    /// of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaits: Vec<Awaited>,
    /// The progress of the previous generation in its phases, if it ended in the middle of one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phases: Option<Phases>,
    /// The earlier generations, oldest first.
    #[serde(default)]
    pub past: Vec<Past>,
    /// The total cost of the earlier generations, in US dollars.
    #[serde(default)]
    pub spent: Usd,
    /// The work of each agent in the earlier generations.
    #[serde(default)]
    pub agents: BTreeMap<String, Service>,
    /// The decisions of the earlier generations.
    #[serde(default)]
    pub decisions: Vec<String>,
    /// People's notes for the team.
    #[serde(default)]
    pub notes: Vec<Note>,
    /// The inputs that were known from the start.
    #[serde(default)]
    pub given: Fields,
    /// Changes that another orchestrator left.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<CodeChange>,
    /// Additional fields of another orchestrator.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub foreign: Fields,
    /// The handover to the next generation, once the run has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handed_over: Option<Box<GenerationHandedOver>>,
}

impl Lineage {
    /// Creates the lineage of a team's first generation.
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

    /// Starts a series that continues automatically.
    #[must_use]
    pub fn planned(mut self, plan: Plan) -> Self {
        self.plan = Some(Plan { first: self.number, spent: self.spent, ..plan });
        self
    }

    /// Returns people's notes as an input.
    pub(crate) fn said(&self) -> Fields {
        let notes: Vec<&str> = self.notes.iter().map(|note| note.text.as_str()).collect();
        let said = (!notes.is_empty()).then(|| ("human_notes".to_owned(), json!(notes)));
        said.into_iter().collect()
    }

    /// Returns the number of generations in the series, including this one.
    pub(crate) fn count(&self) -> u32 {
        let first = self.plan.as_ref().map_or(self.number, |plan| plan.first);
        self.number.saturating_sub(first).saturating_add(1)
    }

    /// Adds a note; the oldest one is dropped if there are too many.
    pub(crate) fn note(&mut self, note: Note) {
        self.notes.push(note);
        trim(&mut self.notes);
    }
}

fn trim<T>(items: &mut Vec<T>) {
    let surplus = items.len().saturating_sub(KEPT);
    items.drain(..surplus);
}

/// Returns the id of the generation after `run`, which ended at `at`.
pub fn successor_id(run: RunId, at: Time) -> RunId {
    begun_id(run, "stafette:generation", at)
}

/// Returns the lineage that a run leaves to the next generation.
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

/// Returns the work of each agent in this generation and those before.
fn services(run: &Run) -> BTreeMap<String, Service> {
    let mut agents =
        run.team.lineage.as_ref().map(|lineage| lineage.agents.clone()).unwrap_or_default();
    for (name, account) in &run.purse.agents {
        let service = agents.entry(name.clone()).or_default();
        service.turns += u64::from(account.turns);
        service.unknown += u64::from(account.spent.unknown.money);
        service.cost = Usd(service.cost.0.saturating_add(account.spent.money.0));
    }
    agents
}

/// Returns the decisions of this generation and those before.
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

/// Returns the next generation, if one follows, built only from the run that has ended.
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
        entry: None,
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
