//! The state of a council: speeches, positions and the quorum.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::vote::Stance;
use super::{CouncilHeard, CouncilOpened};
use crate::workflow::council::{CouncilRules, Mode};
use crate::{AgentName, HandoffId, Party};

/// The maximum length of a stored speech, in characters.
pub(super) const SPEECH: usize = 1200;

/// The maximum size of the discussion that is stored and given to the next speaker, in bytes.
const DISCUSSION: usize = 16 * 1024;

/// The maximum number of stored key decisions.
const DECISIONS: usize = 32;

/// The state of a council, during and after its discussion.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Council {
    /// The handoff that it decides on.
    pub handoff: HandoffId,
    /// The topic of the discussion.
    pub topic: String,
    /// The members that currently speak, by their handoffs.
    #[serde(default)]
    pub sitting: BTreeMap<HandoffId, AgentName>,
    /// The maximum number of turns per member.
    pub limit: u32,
    /// The position of each member.
    #[serde(default)]
    pub positions: BTreeMap<AgentName, Position>,
    /// The most recent speeches.
    #[serde(default)]
    pub discussion: VecDeque<Speech>,
    /// Decisions that members consider settled.
    #[serde(default)]
    pub decisions: Vec<String>,
    /// The member that settled each of these decisions first; members are missing in states of
    /// older releases.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub decided_by: BTreeMap<String, AgentName>,
    /// The suggested next topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_topic: Option<String>,
    /// The result; `None` while the council is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// The position of a member.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// The number of turns that it has used.
    pub turns: u32,
    /// Its last signal; `None` before it has given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Stance>,
    /// The reason for the signal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// One contribution to the discussion.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Speech {
    /// The party that spoke.
    pub by: Party,
    /// The number of the speaker's turn.
    pub round: u32,
    /// The signal given with the speech.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Stance>,
    /// The text of the speech.
    pub said: String,
}

/// The result of a council.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// The way in which it ended.
    pub decision: Decision,
    /// A summary in a sentence.
    pub why: String,
    /// The total weight of those who agree.
    pub agreed: u32,
    /// The weight that the quorum requires.
    pub needed: u32,
    /// The total weight of all members.
    pub total: u32,
    /// The last signal of each member that gave one.
    pub signals: BTreeMap<AgentName, Stance>,
    /// The members that do not agree, with their reasons.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dissent: Vec<Dissent>,
    /// The decisions that were reached.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_decisions: Vec<String>,
    /// The suggested next topic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_topic: Option<String>,
}

/// The way in which a council ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Enough members agree to meet the quorum.
    Consensus,
    /// Not enough members agree, and all turns are used up.
    Exhausted,
    /// Not enough members agree, and a person accepts the result.
    Accepted,
}

/// A member that does not agree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Dissent {
    /// The name of the member.
    pub member: AgentName,
    /// Its last signal; `None` if it never gave one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Stance>,
    /// The reason for the signal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Council {
    /// Opens a council, with the decisions of the one that met before it in the run.
    pub(super) fn new(opened: &CouncilOpened, before: Option<Council>) -> Self {
        let before = before.map(|council| (council.decisions, council.decided_by));
        let (decisions, decided_by) = before.unwrap_or_default();
        Council {
            handoff: opened.handoff,
            topic: opened.topic.clone(),
            limit: opened.turns,
            decisions,
            decided_by,
            ..Council::default()
        }
    }

    /// Returns the number of turns that a member has used.
    pub fn turns_of(&self, member: &AgentName) -> u32 {
        self.positions.get(member).map_or(0, |position| position.turns)
    }

    /// Returns the last signal of each member that gave one.
    pub fn signals(&self) -> BTreeMap<AgentName, Stance> {
        let given =
            |(name, position): (&AgentName, &Position)| Some((name.clone(), position.signal?));
        self.positions.iter().filter_map(given).collect()
    }

    /// True if at least one member has spoken.
    pub(crate) fn has_heard(&self) -> bool {
        !self.positions.is_empty()
    }

    /// True if members may see each other's speeches.
    pub(super) fn may_hear(&self, rules: &CouncilRules) -> bool {
        !rules.blind_first_vote || rules.members.iter().all(|member| self.turns_of(member) > 0)
    }

    /// Returns the next speakers: the member with the fewest turns, in the order of the members, or
    /// all that may speak.
    pub(super) fn next(&self, rules: &CouncilRules) -> Vec<AgentName> {
        let mut may: Vec<&AgentName> =
            rules.members.iter().filter(|member| self.turns_of(member) < self.limit).collect();
        may.sort_by_key(|member| self.turns_of(member));
        let at_once = match rules.mode {
            Mode::InTurn => 1,
            Mode::Parallel => may.len(),
        };
        may.into_iter().take(at_once).cloned().collect()
    }

    /// Returns the result if enough members agree.
    pub(super) fn consensus(&self, rules: &CouncilRules) -> Option<Verdict> {
        if !self.may_hear(rules) {
            return None;
        }
        let verdict = self.verdict(rules, Decision::Consensus);
        (verdict.agreed >= verdict.needed && verdict.total > 0).then_some(verdict)
    }

    /// Returns the current state as a result.
    pub(super) fn verdict(&self, rules: &CouncilRules, decision: Decision) -> Verdict {
        let signals = self.signals();
        let agrees = |member: &&AgentName| signals.get(*member) == Some(&Stance::Agree);
        let agreed = rules
            .members
            .iter()
            .filter(agrees)
            .fold(0, |sum, member| u32::saturating_add(sum, rules.weight(member)));
        let (needed, total) = (rules.needed(), rules.total());
        let stands = format!("{agreed} of {total} agree, {needed} are needed");
        let why = match decision {
            Decision::Consensus => format!("consensus: {stands}"),
            Decision::Exhausted => {
                format!("no consensus after {} turns each: {stands}", self.limit)
            }
            Decision::Accepted => format!("accepted by a person: {stands}"),
        };
        let against = rules.members.iter().filter(|member| !agrees(member));
        let dissent = against.map(|member| {
            let position = self.positions.get(member).cloned().unwrap_or_default();
            Dissent { member: member.clone(), signal: position.signal, reason: position.reason }
        });
        Verdict {
            decision,
            why,
            agreed,
            needed,
            total,
            dissent: dissent.collect(),
            signals,
            key_decisions: self.decisions.clone(),
            next_topic: self.next_topic.clone(),
        }
    }

    pub(super) fn hear(&mut self, heard: &CouncilHeard) {
        if let Some(id) = heard.spoke_in {
            self.sitting.remove(&id);
        }
        let position = self.positions.entry(heard.member.clone()).or_default();
        position.turns = heard.round;
        let signal = heard.vote.as_ref().map(|vote| vote.signal);
        if let Some(vote) = &heard.vote {
            position.signal = signal;
            position.reason.clone_from(&vote.reason);
            if matches!(vote.signal, Stance::Agree | Stance::Building) {
                for decision in &vote.key_decisions {
                    self.settle(decision, &heard.member);
                }
                if vote.next_topic.is_some() {
                    self.next_topic.clone_from(&vote.next_topic);
                }
            }
        }
        let reason = heard.vote.as_ref().map(|vote| vote.reason.clone()).unwrap_or_default();
        let said = if heard.said.is_empty() { reason } else { heard.said.clone() };
        let by = Party::from(&heard.member);
        self.discuss(Speech { by, round: heard.round, signal, said });
    }

    fn settle(&mut self, decision: &str, by: &AgentName) {
        if self.decisions.iter().any(|known| known == decision) {
            return;
        }
        if self.decisions.len() == DECISIONS {
            let oldest = self.decisions.remove(0);
            self.decided_by.remove(&oldest);
        }
        self.decisions.push(decision.to_owned());
        self.decided_by.insert(decision.to_owned(), by.clone());
    }

    pub(super) fn discuss(&mut self, speech: Speech) {
        self.discussion.push_back(speech);
        let size = |speech: &Speech| speech.said.len() + speech.by.as_str().len() + 64;
        let mut whole: usize = self.discussion.iter().map(size).sum();
        while whole > DISCUSSION
            && let Some(oldest) = self.discussion.pop_front()
        {
            whole -= size(&oldest);
        }
    }
}

impl Verdict {
    /// Describes all positions in one line.
    pub fn standing(&self) -> String {
        let for_it = self.signals.iter().filter(|(_, signal)| **signal == Stance::Agree);
        let mut said: Vec<String> = for_it.map(|(name, _)| format!("{name} agrees")).collect();
        for Dissent { member, signal, reason } in &self.dissent {
            let word = signal.map_or("says nothing", Stance::as_str);
            said.push(match reason.as_str() {
                "" => format!("{member}: {word}"),
                reason => format!("{member}: {word} ({reason})"),
            });
        }
        said.join("; ")
    }
}
