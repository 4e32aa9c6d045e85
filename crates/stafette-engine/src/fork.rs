//! Runs that go their own way from a moment in another one's past.

use stafette_core::RunId;
use uuid::Uuid;

use crate::interceptor::Beginning;
use crate::task::First;
use crate::{Driver, clock};
use crate::{Engine, EngineError};

impl Engine {
    /// Begins a run that goes its own way from event `seq` of another one, or from where that is
    /// now.
    ///
    /// # Errors
    /// When there is no such run or event, it was over by then, or the store does not take it.
    pub async fn fork(
        &self,
        from: RunId,
        seq: Option<u64>,
        by: String,
    ) -> Result<RunId, EngineError> {
        let moment = match seq {
            None => self.state(from).await?,
            Some(seq) => self.state_at(from, seq).await?,
        };
        // All of the rest was cleaned when it came into the run that this one comes from.
        let by = self.redacted(by);
        let run = RunId(Uuid::now_v7());
        let (workflow, request) = (&*moment.workflow, moment.request.as_str());
        let alerts = self.ask_about(Beginning { run, workflow, request, by: &by }).await?;
        let forked = Driver::fork(clock::now(), &moment, run, by);
        let (driver, step) = forked.ok_or(EngineError::Over { run: from })?;
        let position = self.store().append(step.batch()).await?;
        self.bump(position);
        // What it has out is given out once it is adopted, as after every other start.
        let by = self.settings().node.clone();
        self.spawn(driver, First::Adopt { by });
        self.alert(run, alerts).await;
        Ok(run)
    }
}
