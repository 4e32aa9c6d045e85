//! How a run got on in its phases, as people and programs see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::Run;
use stafette_core::team::phase::{Hop, Part, Saving};
use stafette_core::wire::phase::{Phase, Typical};

/// How a run got on in its phases.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhasesView {
    /// The task, by the name that requests and answers carry.
    pub task_id: String,
    /// Which one it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Phase>,
    /// The parts of that one, one for each agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// Those that were entered, in order.
    pub phases: Vec<PhaseLine>,
    /// What summaries saved, all phases together.
    pub saving: Saving,
}

/// One phase.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseLine {
    /// What became of it.
    #[serde(flatten)]
    pub hop: Hop,
    /// What it usually takes, in tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<Typical>,
}

impl PhasesView {
    pub(crate) fn of(run: &Run) -> Option<Self> {
        let phases = run.team.phases.as_ref()?;
        let step = run.workflow.phases.get(phases.place).filter(|_| !phases.parts.is_empty());
        let line = |hop: &Hop| PhaseLine { hop: hop.clone(), typical: hop.phase.typical() };
        Some(PhasesView {
            task_id: phases.task_id.clone(),
            now: step.map(|step| step.phase),
            parts: phases.parts.clone(),
            phases: phases.hops.iter().map(line).collect(),
            saving: phases.saving(),
        })
    }
}
