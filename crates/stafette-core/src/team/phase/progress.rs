//! How far a run is in its phases. Bounded: one line for each phase, however often it is entered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Measured, PartClosed, PhaseEnded};
use crate::wire::phase::{Decision, Phase};
use crate::{Fields, HandoffId, Party};

/// How far a run is in its phases.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Phases {
    /// The task, by the name that requests and answers carry.
    pub task_id: String,
    /// Which one it is in, by its place among the phases of the workflow.
    pub place: usize,
    /// The parts of that one; none between two phases and at the end.
    pub parts: Vec<Part>,
    /// What the phase before has found, for the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<String>,
    /// What became of each phase so far, as it was the last time.
    pub hops: Vec<Hop>,
    /// What the run was given.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub given: Fields,
}

/// What became of a phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Hop {
    /// Its place among the phases of the workflow.
    pub place: usize,
    /// Which phase.
    pub phase: Phase,
    /// How often it was entered.
    pub rounds: u32,
    /// How it ended the last time; nothing while it goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// What it took, all rounds together.
    pub tokens: Tokens,
    /// What was handed on instead of everything.
    pub saving: Saving,
}

/// What a phase took, in tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// What its agents were given, as counted.
    pub request: u64,
    /// What they answered, as counted.
    pub response: u64,
    /// What they say that they used.
    pub reported: u64,
}

/// What a summary saves the next phase from reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Saving {
    /// What there was to hand on: what its agents say that they used, or at least all that they
    /// answered.
    pub raw: u64,
    /// What was handed on.
    pub handed_on: u64,
}

/// One agent's part in a phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// Its handoff.
    pub handoff: HandoffId,
    /// Who works on it.
    pub agent: Party,
    /// The name that its request carries.
    pub task_id: String,
    /// What it took so far.
    pub tokens: Tokens,
    /// What was counted of its last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// What it brought, once it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brought: Option<Brought>,
}

/// What a part brought.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Brought {
    /// Whether it came to a good end.
    pub passed: bool,
    /// What its agent recommends, if it said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// What the next phase needs to know of it.
    pub summary: String,
    /// What is wrong, if something is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Default for Part {
    fn default() -> Self {
        Part {
            handoff: HandoffId(0),
            agent: Party::Orchestrator,
            task_id: String::new(),
            tokens: Tokens::default(),
            measured: None,
            brought: None,
        }
    }
}

impl Part {
    /// Why it is not good, in a few words.
    pub(super) fn why(&self) -> String {
        let Some(brought) = &self.brought else { return "it is not over".to_owned() };
        let problem = brought.problem.clone().filter(|problem| !problem.is_empty());
        problem.unwrap_or_else(|| brought.summary.clone())
    }

    fn passed(&self) -> bool {
        self.brought.as_ref().is_some_and(|brought| brought.passed)
    }

    /// Notes what was counted of its last answer.
    pub(super) fn measure(&mut self, measured: Measured) {
        self.tokens.request += measured.request.unwrap_or(0);
        self.tokens.response += measured.response.unwrap_or(0);
        self.measured = Some(measured);
    }

    /// The line that stands for it among several.
    fn line(&self) -> String {
        let said = self.brought.as_ref().map_or("", |brought| brought.summary.trim());
        format!("{}{said}", lead(&self.agent, self.passed()))
    }
}

/// What stands before the summary of one part among several.
pub(super) fn lead(agent: &Party, passed: bool) -> String {
    format!("{agent} {}: ", if passed { "passed" } else { "failed" })
}

impl Tokens {
    pub(super) fn plus(self, other: Tokens) -> Tokens {
        Tokens {
            request: self.request.saturating_add(other.request),
            response: self.response.saturating_add(other.response),
            reported: self.reported.saturating_add(other.reported),
        }
    }
}

impl Phases {
    pub(super) fn new(task_id: String) -> Self {
        Phases {
            task_id,
            place: 0,
            parts: Vec::new(),
            findings: None,
            hops: Vec::new(),
            given: Fields::new(),
        }
    }

    /// Notes what becomes of the part whose handoff `id` is closed.
    pub(in crate::team) fn closed(&mut self, id: HandoffId, closed: &PartClosed) {
        let Some(part) = self.part_mut(id) else { return };
        part.tokens.reported += closed.reported;
        if let Some((handoff, agent)) = &closed.successor {
            (part.handoff, part.agent) = (*handoff, agent.clone());
        }
        if closed.brought.is_some() {
            part.brought.clone_from(&closed.brought);
        }
    }

    pub(super) fn part(&self, id: HandoffId) -> Option<&Part> {
        self.parts.iter().find(|part| part.handoff == id)
    }

    pub(super) fn part_mut(&mut self, id: HandoffId) -> Option<&mut Part> {
        self.parts.iter_mut().find(|part| part.handoff == id)
    }

    /// How often the phase at `place` was entered.
    pub(super) fn rounds(&self, place: usize) -> u32 {
        self.hops.iter().find(|hop| hop.place == place).map_or(0, |hop| hop.rounds)
    }

    /// Whether it is in a phase whose parts are all over.
    pub(super) fn is_complete(&self) -> bool {
        !self.parts.is_empty() && self.parts.iter().all(|part| part.brought.is_some())
    }

    /// Whether the one agent of a phase says STOP. One of several says so for its own part.
    pub(super) fn is_halted(&self) -> bool {
        let stops = |part: &Part| {
            part.brought.as_ref().and_then(|brought| brought.decision) == Some(Decision::Stop)
        };
        matches!(self.parts.as_slice(), [part] if stops(part))
    }

    pub(super) fn passed(&self) -> usize {
        self.parts.iter().filter(|part| part.passed()).count()
    }

    /// What the next phase is told: the summary, or a line for each part.
    pub(super) fn summary(&self) -> String {
        match self.parts.as_slice() {
            [part] => part.brought.as_ref().map(|b| b.summary.clone()).unwrap_or_default(),
            parts => parts.iter().map(Part::line).collect::<Vec<_>>().join("\n"),
        }
    }

    pub(super) fn tokens(&self) -> Tokens {
        self.parts.iter().fold(Tokens::default(), |sum, part| sum.plus(part.tokens))
    }

    pub(super) fn begun(mut self, place: usize, phase: Phase, parts: Vec<Part>) -> Self {
        self.place = place;
        self.parts = parts;
        match self.hops.iter_mut().find(|hop| hop.place == place) {
            Some(hop) => {
                hop.rounds += 1;
                hop.decision = None;
            }
            None => self.hops.push(Hop {
                place,
                phase,
                rounds: 1,
                decision: None,
                why: String::new(),
                tokens: Tokens::default(),
                saving: Saving::default(),
            }),
        }
        self
    }

    /// What a run leaves of the phase that it is called off in: the parts that are over. The phase is
    /// entered for the others once more, in the same round.
    pub(crate) fn left(mut self) -> Self {
        self.parts.retain(|part| part.brought.is_some());
        // Its handoffs are of another run.
        self.parts.iter_mut().for_each(|part| part.handoff = HandoffId(0));
        if let Some(hop) = self.hops.iter_mut().find(|hop| hop.place == self.place) {
            hop.rounds = hop.rounds.saturating_sub(1);
        }
        self
    }

    pub(super) fn ended(&mut self, event: &PhaseEnded, goes_on: bool) {
        let counted = |part: &Part| part.measured.and_then(|measured| measured.summary);
        let summaries: u64 = event.parts.iter().filter_map(counted).sum();
        let again = event.decision == Decision::Stop;
        if let Some(hop) = self.hops.iter_mut().find(|hop| hop.place == event.place) {
            hop.decision = Some(event.decision);
            hop.why.clone_from(&event.why);
            hop.tokens = hop.tokens.plus(event.tokens);
            if goes_on || again {
                let raw = event.tokens.reported.max(event.tokens.response);
                hop.saving.raw = hop.saving.raw.saturating_add(raw);
                hop.saving.handed_on = hop.saving.handed_on.saturating_add(summaries);
            }
        }
        self.findings = Some(event.summary.clone()).filter(|summary| !summary.is_empty());
        self.parts.clear();
    }

    /// What summaries have saved so far.
    #[must_use]
    pub fn saving(&self) -> Saving {
        self.hops.iter().fold(Saving::default(), |sum, hop| Saving {
            raw: sum.raw.saturating_add(hop.saving.raw),
            handed_on: sum.handed_on.saturating_add(hop.saving.handed_on),
        })
    }
}
