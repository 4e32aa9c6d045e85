//! The state of a council, as people and programs see it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::team::council::vote::Stance;
use stafette_core::team::council::{Decision, Verdict};
use stafette_core::{AgentName, HandoffId, Run};

/// The state of a council.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CouncilView {
    /// The handoff that it decides on; missing in what older versions recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// The topic that it decides on.
    pub topic: String,
    /// The maximum number of turns of each member.
    #[serde(default)]
    pub limit: u32,
    /// The members with a vote, in the order in which they speak.
    pub members: Vec<MemberView>,
    /// True while votes are secret: the first vote is blind, and not every member has voted.
    pub sealed: bool,
    /// The weight of the members that agree, as far as it is public.
    pub agreed: u32,
    /// The weight that a decision needs.
    pub needed: u32,
    /// The weight of all members.
    pub total: u32,
    /// The decision; `None` while the council continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The decision in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The whole verdict; `None` while the council continues.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The key decisions that members consider settled, in the order in which they were made.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// The member that settled each of these decisions first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub decided_by: BTreeMap<String, AgentName>,
    /// The topic that members want to discuss next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_topic: Option<String>,
}

/// A member of a council.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MemberView {
    /// The name of the agent.
    pub member: AgentName,
    /// The weight of its vote.
    pub weight: u32,
    /// The number of turns in which it has spoken.
    pub turns: u32,
    /// Its stance; `None` before it has stated one, and while votes are secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Stance>,
    /// The reason that it gave for its stance.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The handoff in which it is speaking now, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speaks_in: Option<HandoffId>,
}

impl CouncilView {
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let council = run.shown_council()?;
        let rules = run.workflow.council.as_ref()?;
        let member = |name: &AgentName| {
            let position = council.positions.get(name).cloned().unwrap_or_default();
            let sitting = council.sitting.iter().find(|(_, member)| *member == name);
            MemberView {
                member: name.clone(),
                weight: rules.weight(name),
                turns: position.turns,
                signal: position.signal,
                reason: position.reason,
                speaks_in: sitting.map(|(handoff, _)| *handoff),
            }
        };
        let members: Vec<MemberView> = rules.members.iter().map(member).collect();
        let agrees = members.iter().filter(|member| member.signal == Some(Stance::Agree));
        let agreed = agrees.fold(0, |sum: u32, member| sum.saturating_add(member.weight));
        let verdict = council.verdict.as_ref();
        Some(CouncilView {
            handoff: Some(council.handoff),
            topic: council.topic.clone(),
            limit: council.limit,
            sealed: run.votes_blindly(),
            agreed,
            needed: rules.needed(),
            total: rules.total(),
            decision: verdict.map(|verdict| verdict.decision),
            why: verdict.map(|verdict| verdict.why.clone()),
            verdict: verdict.cloned(),
            decisions: council.decisions.clone(),
            decided_by: council.decided_by.clone(),
            next_topic: council.next_topic.clone(),
            members,
        })
    }
}
