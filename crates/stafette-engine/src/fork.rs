//! Runs that branch off from an earlier point of another run.

use stafette_core::RunId;
use uuid::Uuid;

use crate::interceptor::Beginning;
use crate::task::First;
use crate::{Driver, clock};
use crate::{Engine, EngineError};

impl Engine {
    /// Starts a run that branches off from event `seq` of another one, or from its present state.
    ///
    /// # Errors
    /// When there is no such run or event, the run had ended by then, or the store fails to write.
    pub async fn fork(
        &self,
        from: RunId,
        seq: Option<u64>,
        by: String,
    ) -> Result<RunId, EngineError> {
        let moment = self.log().state(from, seq).await?;
        // Everything else was redacted when it came into the original run.
        let by = self.redacted(by);
        let run = RunId(Uuid::now_v7());
        let (workflow, request) = (&*moment.workflow, moment.request.as_str());
        let alerts = self.ask_about(Beginning { run, workflow, request, by: &by }).await?;
        let forked = Driver::fork(clock::now(), &moment, run, by);
        let (driver, step) = forked.ok_or(EngineError::Over { run: from })?;
        let position = self.store().append(step.batch()).await?;
        self.bump(position);
        // Its turns are given out once it is adopted, as after every other start.
        let by = self.settings().node.clone();
        self.spawn(driver, First::Adopt { by, left: Vec::new() });
        self.alert(run, alerts).await;
        Ok(run)
    }
}
