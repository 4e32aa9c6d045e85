//! How a council stands, as people and programs see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::team::council::vote::Stance;
use stafette_core::team::council::{Decision, Verdict};
use stafette_core::{AgentName, HandoffId, Run};

/// How a council stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CouncilView {
    /// The handoff that it decides on; missing in what older versions recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// What about.
    pub topic: String,
    /// How often each member may speak.
    #[serde(default)]
    pub limit: u32,
    /// Who has a voice, in the order in which they speak.
    pub members: Vec<MemberView>,
    /// Whether nobody may know yet who votes how: the first vote is blind, and not everyone has voted.
    pub sealed: bool,
    /// The weight of those who agree, as far as it may be known.
    pub agreed: u32,
    /// The weight that is needed.
    pub needed: u32,
    /// The weight of all.
    pub total: u32,
    /// How it ended, when it has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The whole verdict, when it has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    /// The key decisions that members hold to be settled, the first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<String>,
    /// The topic that members want to discuss next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next_topic: Option<String>,
}

/// A member of a council.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MemberView {
    /// Who.
    pub member: AgentName,
    /// How much its voice counts.
    pub weight: u32,
    /// How often it has spoken.
    pub turns: u32,
    /// Where it stands; nothing before it has said so, and while nobody may know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<Stance>,
    /// The reason that it gave for its signal.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// The handoff in which it is speaking, while it is.
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
            next_topic: council.next_topic.clone(),
            members,
        })
    }
}
