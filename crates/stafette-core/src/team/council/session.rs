//! How a council stands: who has said what, and whether that is enough.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::vote::Stance;
use super::{CouncilHeard, CouncilOpened};
use crate::workflow::council::{CouncilRules, Mode};
use crate::{AgentName, HandoffId, Party};

/// The longest speech that is kept, in characters.
pub(super) const SPEECH: usize = 1200;

/// As much of the discussion is kept, and given to whoever speaks next, in bytes.
const DISCUSSION: usize = 16 * 1024;

/// The most key decisions that are kept.
const DECISIONS: usize = 32;

/// A council, while it speaks and after.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Council {
    /// The handoff that it decides on.
    pub handoff: HandoffId,
    /// What about.
    pub topic: String,
    /// Who has the word, by the handoff that they have it in.
    #[serde(default)]
    pub sitting: BTreeMap<HandoffId, AgentName>,
    /// How often each may speak.
    pub limit: u32,
    /// Where each member stands.
    #[serde(default)]
    pub positions: BTreeMap<AgentName, Position>,
    /// What was said last.
    #[serde(default)]
    pub discussion: VecDeque<Speech>,
    /// What is held to be settled.
    #[serde(default)]
    pub decisions: Vec<String>,
    /// What should be taken up next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_topic: Option<String>,
    /// What came of it, when it is over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
}

/// Where a member stands.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Position {
    /// How often it has spoken.
    pub turns: u32,
    /// Its last signal; nothing before it has given one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Stance>,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

/// Something that was said.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Speech {
    /// By whom.
    pub by: Party,
    /// In which of its turns.
    pub round: u32,
    /// Its signal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Stance>,
    /// What.
    pub said: String,
}

/// What came of a council.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Verdict {
    /// How it ended.
    pub decision: Decision,
    /// In a sentence.
    pub why: String,
    /// The weight of those who agree.
    pub agreed: u32,
    /// The weight that was needed.
    pub needed: u32,
    /// The weight of all.
    pub total: u32,
    /// The last signal of each who gave one.
    pub signals: BTreeMap<AgentName, Stance>,
    /// Who is not for it, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dissent: Vec<Dissent>,
    /// What is settled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub key_decisions: Vec<String>,
    /// What should be taken up next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_topic: Option<String>,
}

/// How a council ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    /// Enough of them agree.
    Consensus,
    /// They do not, and have spoken as often as allowed.
    Exhausted,
    /// They do not, and a person takes what they have.
    Accepted,
}

/// Somebody who is not for it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Dissent {
    /// Who.
    pub member: AgentName,
    /// Where it stands; nothing when it never said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Stance>,
    /// Why.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl Council {
    pub(super) fn new(opened: &CouncilOpened, decisions: Vec<String>) -> Self {
        Council {
            handoff: opened.handoff,
            topic: opened.topic.clone(),
            sitting: BTreeMap::new(),
            limit: opened.turns,
            positions: BTreeMap::new(),
            discussion: VecDeque::new(),
            decisions,
            next_topic: None,
            verdict: None,
        }
    }

    /// How often a member has spoken.
    #[must_use]
    pub fn turns_of(&self, member: &AgentName) -> u32 {
        self.positions.get(member).map_or(0, |position| position.turns)
    }

    /// The last signal of each member that gave one.
    #[must_use]
    pub fn signals(&self) -> BTreeMap<AgentName, Stance> {
        let given =
            |(name, position): (&AgentName, &Position)| Some((name.clone(), position.signal?));
        self.positions.iter().filter_map(given).collect()
    }

    /// Whether anybody has spoken.
    pub(crate) fn has_heard(&self) -> bool {
        !self.positions.is_empty()
    }

    /// Whether members hear each other yet.
    pub(super) fn may_hear(&self, rules: &CouncilRules) -> bool {
        !rules.blind_first_vote || rules.members.iter().all(|member| self.turns_of(member) > 0)
    }

    /// Who speaks next: whoever spoke least, in the order of the members, or everyone who may.
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

    /// Whether enough of them agree.
    pub(super) fn consensus(&self, rules: &CouncilRules) -> Option<Verdict> {
        if !self.may_hear(rules) {
            return None;
        }
        let verdict = self.verdict(rules, Decision::Consensus);
        (verdict.agreed >= verdict.needed && verdict.total > 0).then_some(verdict)
    }

    /// How it stands now, as its end.
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
                    self.settle(decision);
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

    fn settle(&mut self, decision: &str) {
        if self.decisions.iter().any(|known| known == decision) {
            return;
        }
        if self.decisions.len() == DECISIONS {
            self.decisions.remove(0);
        }
        self.decisions.push(decision.to_owned());
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
    /// Where everyone stands, in a line.
    #[must_use]
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
