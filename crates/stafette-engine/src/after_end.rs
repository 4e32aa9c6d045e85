//! Records inputs in a run, whether it continues or has ended.

use stafette_core::{Input, Reply, RunId};
use stafette_store::AppendError;

use crate::task::First;
use crate::{Driver, Engine, EngineError, clock, crash};

/// Attempts to write to a run that has ended while another writer keeps changing it.
const TRIES: usize = 8;

impl Engine {
    /// Gives an input to a run, also to one that has ended: no task lives for that any more, so it
    /// goes to the store directly. If that orders something, the run gets a task again.
    pub(crate) async fn record(&self, run: RunId, input: Input) -> Result<Reply, EngineError> {
        // No task redacts the inputs of a run that has ended.
        let input = self.redacted(input);
        let mut tries = 0;
        loop {
            match self.send(run, input.clone()).await {
                Err(EngineError::Over { .. }) => {}
                other => return other,
            }
            let loaded = self.store().load(run).await?;
            let loaded = loaded.ok_or_else(|| EngineError::NoRun { run: run.to_string() })?;
            let driver = Driver::restore(&loaded)?;
            if !driver.run().status().is_final() {
                // The run continues, but not in this daemon, which is about to stop.
                return Err(EngineError::Stopping);
            }
            let mut step = driver.decide(clock::now(), [input.clone()]);
            let reply = step.replies.pop().unwrap_or(Reply::Recorded);
            if step.is_empty() {
                return Ok(reply);
            }
            crash::point();
            match self.store().append(step.batch()).await {
                Ok(position) => {
                    crash::point();
                    self.bump(position);
                    if !step.orders().is_empty() {
                        self.spawn(driver, First::Stored(Box::new(step)));
                    }
                    return Ok(reply);
                }
                Err(AppendError::Conflict { .. }) if tries < TRIES => tries += 1,
                Err(error) => return Err(error.into()),
            }
        }
    }
}
