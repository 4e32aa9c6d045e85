//! The progress of a run in its phases. Bounded: one entry per phase, however often it is entered.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Measured, PartClosed, PhaseEnded};
use crate::wire::phase::{Decision, Phase};
use crate::{Fields, HandoffId, Party};

/// The progress of a run in its phases.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Phases {
    /// The task id that requests and answers carry.
    pub task_id: String,
    /// The position of the current phase in the workflow, from 0.
    pub place: usize,
    /// The parts of the current phase; empty between two phases and at the end.
    pub parts: Vec<Part>,
    /// The summary of the previous phase, for the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub findings: Option<String>,
    /// The latest result of each phase so far.
    pub hops: Vec<Hop>,
    /// The inputs of the run.
    #[serde(default, skip_serializing_if = "Fields::is_empty")]
    pub given: Fields,
}

/// The result of a phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Hop {
    /// The position among the phases of the workflow, from 0.
    pub place: usize,
    /// The kind of phase.
    pub phase: Phase,
    /// The number of times that it was entered.
    pub rounds: u32,
    /// Its latest decision; `None` while it is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The reason for the decision.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// The total tokens of all rounds.
    pub tokens: Tokens,
    /// The tokens saved by handing on a summary.
    pub saving: Saving,
}

/// The tokens of a phase.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Tokens {
    /// The tokens given to its agents, as counted.
    pub request: u64,
    /// The tokens of their answers, as counted.
    pub response: u64,
    /// The tokens that the agents report.
    pub reported: u64,
}

/// The effect of a summary on what the next phase has to read, in tokens.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Saving {
    /// The tokens without a summary: what its agents report, or at least the size of their answers.
    pub raw: u64,
    /// The tokens that were handed on.
    pub handed_on: u64,
}

/// One agent's part in a phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Part {
    /// The handoff of the part.
    pub handoff: HandoffId,
    /// The agent that works on it.
    pub agent: Party,
    /// The task id of its request.
    pub task_id: String,
    /// The tokens of the part so far.
    pub tokens: Tokens,
    /// The token counts of its last answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// The result, once the part has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub brought: Option<Brought>,
}

/// The result of a part.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Brought {
    /// True if the part ended well.
    pub passed: bool,
    /// The agent's recommendation, if it gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The summary for the next phase.
    pub summary: String,
    /// The problem, if there is one.
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
    /// Returns the reason why it did not pass, in a few words.
    pub(super) fn why(&self) -> String {
        let Some(brought) = &self.brought else { return "it is not over".to_owned() };
        let problem = brought.problem.clone().filter(|problem| !problem.is_empty());
        problem.unwrap_or_else(|| brought.summary.clone())
    }

    fn passed(&self) -> bool {
        self.brought.as_ref().is_some_and(|brought| brought.passed)
    }

    /// Records the token counts of its last answer.
    pub(super) fn measure(&mut self, measured: Measured) {
        self.tokens.request += measured.request.unwrap_or(0);
        self.tokens.response += measured.response.unwrap_or(0);
        self.measured = Some(measured);
    }

    /// Returns its line in the summary of several parts.
    fn line(&self) -> String {
        let said = self.brought.as_ref().map_or("", |brought| brought.summary.trim());
        format!("{}{said}", lead(&self.agent, self.passed()))
    }
}

/// Returns the prefix of one part's summary among several.
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

impl Saving {
    fn plus(self, other: Saving) -> Saving {
        Saving {
            raw: self.raw.saturating_add(other.raw),
            handed_on: self.handed_on.saturating_add(other.handed_on),
        }
    }
}

impl Phases {
    /// Records the effect on the part whose handoff `id` is closed.
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

    /// Returns the number of times that the phase at `place` was entered.
    pub(super) fn rounds(&self, place: usize) -> u32 {
        self.hops.iter().find(|hop| hop.place == place).map_or(0, |hop| hop.rounds)
    }

    /// True if all parts of the current phase have ended.
    pub(super) fn is_complete(&self) -> bool {
        !self.parts.is_empty() && self.parts.iter().all(|part| part.brought.is_some())
    }

    /// True if the only agent of a phase answers STOP. One of several does so for its own part
    /// only.
    pub(super) fn is_halted(&self) -> bool {
        let stops = |part: &Part| {
            part.brought.as_ref().and_then(|brought| brought.decision) == Some(Decision::Stop)
        };
        matches!(self.parts.as_slice(), [part] if stops(part))
    }

    pub(super) fn passed(&self) -> usize {
        self.parts.iter().filter(|part| part.passed()).count()
    }

    /// Returns the text for the next phase: the summary, or a line for each part.
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

    /// Returns what remains of a phase that is cancelled: the parts that have ended. The phase is
    /// entered again for the others, in the same round.
    pub(crate) fn left(mut self) -> Self {
        self.parts.retain(|part| part.brought.is_some());
        // The handoffs belong to another run.
        self.parts.iter_mut().for_each(|part| part.handoff = HandoffId(0));
        if let Some(hop) = self.hops.iter_mut().find(|hop| hop.place == self.place) {
            hop.rounds = hop.rounds.saturating_sub(1);
        }
        self
    }

    pub(super) fn ended(&mut self, event: &PhaseEnded, saving: Saving) {
        if let Some(hop) = self.hops.iter_mut().find(|hop| hop.place == event.place) {
            hop.decision = Some(event.decision);
            hop.why.clone_from(&event.why);
            hop.tokens = hop.tokens.plus(event.tokens);
            hop.saving = hop.saving.plus(saving);
        }
        self.findings = Some(event.summary.clone()).filter(|summary| !summary.is_empty());
        self.parts.clear();
    }

    /// Returns the tokens that summaries have saved so far.
    pub fn saving(&self) -> Saving {
        self.hops.iter().fold(Saving::default(), |sum, hop| sum.plus(hop.saving))
    }
}
