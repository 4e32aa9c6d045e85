//! The progress of a run through its phases, as people and programs see it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::Run;
use stafette_core::team::phase::{Hop, Part, Saving};
use stafette_core::wire::phase::{Phase, Typical};

/// The progress of a run through its phases.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhasesView {
    /// The id of the task in requests and answers.
    pub task_id: String,
    /// The position of the phase that was entered last among those of the workflow, from 0.
    #[serde(default)]
    pub place: usize,
    /// The current phase; `None` when none is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<Phase>,
    /// The parts of the current phase, one for each agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Part>,
    /// The phases that were entered, in order.
    pub phases: Vec<PhaseLine>,
    /// The tokens that summaries saved, over all phases.
    pub saving: Saving,
}

/// One phase of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PhaseLine {
    /// The outcome of the phase.
    #[serde(flatten)]
    pub hop: Hop,
    /// The typical size of the phase, in tokens; `None` for parallel phases, which have no figure.
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
            place: phases.place,
            now: step.map(|step| step.phase),
            parts: phases.parts.clone(),
            phases: phases.hops.iter().map(line).collect(),
            saving: phases.saving(),
        })
    }
}
