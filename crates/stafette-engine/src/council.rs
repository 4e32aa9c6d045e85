//! How a council stands, as people and programs see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::run::council::Decision;
use stafette_core::run::vote::Stance;
use stafette_core::{AgentName, Run};

/// How a council stands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct CouncilView {
    /// What about.
    pub topic: String,
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
}

impl CouncilView {
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let council = run.shown_council()?;
        let rules = run.workflow.council.as_ref()?;
        let member = |name: &AgentName| {
            let position = council.positions.get(name).cloned().unwrap_or_default();
            let (turns, signal) = (position.turns, position.signal);
            MemberView { member: name.clone(), weight: rules.weight(name), turns, signal }
        };
        let members: Vec<MemberView> = rules.members.iter().map(member).collect();
        let agrees = members.iter().filter(|member| member.signal == Some(Stance::Agree));
        let agreed = agrees.fold(0, |sum: u32, member| sum.saturating_add(member.weight));
        let verdict = council.verdict.as_ref();
        Some(CouncilView {
            topic: council.topic.clone(),
            sealed: run.votes_blindly(),
            agreed,
            needed: rules.needed(),
            total: rules.total(),
            decision: verdict.map(|verdict| verdict.decision),
            why: verdict.map(|verdict| verdict.why.clone()),
            members,
        })
    }
}
