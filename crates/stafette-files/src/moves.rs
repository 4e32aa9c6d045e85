//! Moves of our files by an agent: that is how it accepts, completes and rejects.

use serde_json::Value;
use stafette_core::handoff::State;
use stafette_core::{
    AgentName, HandoffId, Outcome, Response, Run, RunId, TurnKey, TurnResult, Usage,
};
use stafette_engine::{EngineError, ExternalTurns};

use crate::Coordination;
use crate::folder::Place;
use crate::intake::{Rejection, ours};
use crate::origin::Origin;

impl Coordination {
    /// Handles a file that appeared or changed in a folder that only we write to, usually by a
    /// move. Returns true if it is handled.
    pub(crate) async fn moved(&mut self, place: Place, name: &str) -> bool {
        let Ok(bytes) = self.folder.read(place, name) else { return true };
        let Ok(value) = serde_json::from_slice::<Value>(&bytes) else { return true };
        let Some((run, handoff)) = ours(&value) else { return true };
        if self.known.get(&(run, handoff)).is_some_and(|known| *known == (place, name.to_owned())) {
            return true;
        }
        match self.origin(Some(place), name).await {
            Ok(Origin::Here) => {
                if let Err(error) = self.act(place, run, handoff, &value).await {
                    tracing::warn!(%error, name, folder = place.name(), "this move is not taken");
                }
            }
            Ok(Origin::NotKnownYet) => return false,
            Err(Rejection { reason, .. }) => {
                tracing::warn!(reason, name, folder = place.name(), "this move is not taken");
                return true;
            }
        }
        // In any case the file goes to the folder of its handoff.
        self.mirror(run, handoff).await;
        if self.known.get(&(run, handoff)).is_some_and(|known| *known != (place, name.to_owned())) {
            let _ = self.folder.remove(place, name);
        }
        true
    }

    async fn act(
        &self,
        place: Place,
        run: RunId,
        handoff: HandoffId,
        value: &Value,
    ) -> Result<(), EngineError> {
        let state = self.engine.state(run).await?;
        let Some((turn, agent)) = turn(&state, handoff) else {
            return Err(EngineError::NothingOut { run });
        };
        let by = format!("{agent} by file");
        match place {
            Place::Pending => Ok(()),
            Place::Accepted => {
                self.engine.external().accept(run, handoff, &by, None).await.map(drop)
            }
            Place::Completed => {
                self.engine.external().accept(run, handoff, &by, None).await?;
                let result = result(&agent, value)?;
                self.engine.external().complete(turn, result).await.map(drop)
            }
            Place::Rejected => {
                self.engine.external().accept(run, handoff, &by, None).await?;
                let reason = value.get("reason").and_then(Value::as_str);
                let reason = reason.unwrap_or("it was moved to rejected").to_owned();
                self.engine.external().reject(turn, reason).await.map(drop)
            }
        }
    }
}

fn turn(run: &Run, id: HandoffId) -> Option<(TurnKey, AgentName)> {
    let handoff = run.handoff(id)?;
    let (agent, _) = run.workflow.agent(&handoff.offer.to)?;
    let out = matches!(handoff.state, State::Ordered(_) | State::Accepted(_) | State::Running(_));
    out.then(|| (handoff.key(run.id), agent.clone()))
}

/// Parses the result in the agent's file: an answer in any dialect under `response`, or none.
fn result(agent: &AgentName, value: &Value) -> Result<TurnResult, EngineError> {
    let (mut offers, mut answer, mut usage) = (Vec::new(), None, Usage::default());
    if let Some(response) = value.get("response").filter(|response| !response.is_null()) {
        let told = ExternalTurns::understand(agent, "RESULT", response.clone())?;
        (offers, answer, usage) = (told.offers, told.response, told.usage);
    }
    let response = answer.unwrap_or_else(|| Response::new(agent.into(), Outcome::Resolved));
    Ok(TurnResult { offers, usage, ..TurnResult::new(response) })
}
