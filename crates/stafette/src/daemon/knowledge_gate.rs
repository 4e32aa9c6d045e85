//! The conditions under which runs begin and continue. Their workflow is one that was trusted. And
//! knowledge is opened when the daemon starts: a run that wants other settings does not begin, and
//! one that depends on it does not continue without it.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use stafette_core::{Fields, HandoffId, Offer, Party, Run, Workflow};
use stafette_engine::{Answered, Gate, Looked};
use stafette_server::ReadWorkflow;
use stafette_stages::{CHANGED, Stages};

use super::trusted::TrustedWorkflows;

/// The message for a run that depends on knowledge which this daemon has not opened: evidence that
/// only a person may give could be claimed by any agent.
const NOT_OPEN: &str = "this run goes by [knowledge], and the daemon was started without it: \
    see that stafette.toml has it and is trusted (`stafette trust`), and end the daemon with \
    `stafette down`";

/// The knowledge, if any, and the means to check what should be open.
pub(super) struct KnowledgeGate {
    stages: Option<Stages>,
    read: Arc<ReadWorkflow>,
    trusted: Arc<TrustedWorkflows>,
}

impl KnowledgeGate {
    pub(super) fn new(
        stages: Option<Stages>,
        read: Arc<ReadWorkflow>,
        trusted: Arc<TrustedWorkflows>,
    ) -> Self {
        KnowledgeGate { stages, read, trusted }
    }
}

impl fmt::Debug for KnowledgeGate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KnowledgeGate").field("stages", &self.stages).finish_non_exhaustive()
    }
}

impl Gate for KnowledgeGate {
    fn trusts(&self, workflow: &Workflow) -> Result<(), String> {
        self.trusted.holds(workflow)
    }

    fn workflow(&self) -> Result<Workflow, String> {
        (self.read)().map_err(|problem| problem.title)
    }

    fn trusts_command(
        &self,
        workflow: &Workflow,
        command: &[String],
        folder: &Path,
    ) -> Result<(), String> {
        self.trusted.holds_command(workflow, command, folder)
    }

    fn begins(&self, workflow: &Workflow) -> Result<(), String> {
        let fits = match (&self.stages, &workflow.knowledge) {
            (Some(stages), _) => stages.begins(workflow),
            (None, Some(_)) => Err(CHANGED.to_owned()),
            (None, None) => Ok(()),
        };
        // A run that continues from an earlier one has the settings of that time, and no other
        // daemon would help it.
        let says_so =
            || (self.read)().is_ok_and(|now| now.knowledge.as_ref() == workflow.knowledge.as_ref());
        fits.or_else(|why| if says_so() { Err(why) } else { Ok(()) })
    }

    fn minds(&self, run: &Run) -> bool {
        run.workflow.knowledge.is_some()
    }

    fn offer<'a>(
        &'a self,
        run: &'a Run,
        cause: Option<HandoffId>,
        mut offer: Offer,
    ) -> Looked<'a, Offer> {
        let Some(stages) = &self.stages else {
            if matches!(offer.from, Party::Agent(_)) {
                offer.objections.push(NOT_OPEN.to_owned());
            }
            return Box::pin(async move { offer });
        };
        stages.offer(run, cause, offer)
    }

    fn answer<'a>(
        &'a self,
        run: &'a Run,
        answered: Answered<'a>,
    ) -> Looked<'a, Result<Fields, String>> {
        match &self.stages {
            Some(stages) => stages.answer(run, answered),
            None => Box::pin(async { Err(NOT_OPEN.to_owned()) }),
        }
    }
}
