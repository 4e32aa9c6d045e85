//! The sets of edits: what is kept of them beside the runs, and what became of the project.

use std::collections::BTreeMap;

use stafette_core::change::{Change, ChangeId};
use stafette_core::{Run, RunId};

/// All sets, as they are kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sets {
    kept: BTreeMap<ChangeId, Change>,
}

impl Sets {
    /// Those of a run and of the generations before it.
    pub(crate) fn of_team(&self, run: &Run) -> Vec<Change> {
        let past = run.lineage.iter().flat_map(|lineage| &lineage.past).filter_map(|past| past.run);
        let team: Vec<RunId> = past.chain([run.id]).collect();
        let made = |change: &&Change| change.author.run.is_some_and(|run| team.contains(&run));
        self.kept.values().filter(made).cloned().collect()
    }
}
