//! Inspects the inputs of a run before they are decided: the proposals of agents and the answers of
//! people. The findings become part of the input, so that a replay needs no gate. It also says
//! whether a workflow is trusted.

use std::fmt::Debug;
use std::path::Path;
use std::pin::Pin;
use std::time::Duration;

use stafette_core::{Fields, HandoffId, Input, Offer, Party, Run, Workflow};

use crate::EngineError;

/// The maximum time for one inspection.
const LOOK: Duration = Duration::from_secs(10);

/// The future of an inspection.
pub type Looked<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The answer of a person.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// The question that is answered.
    pub handoff: HandoffId,
    /// The values of the answer.
    pub values: &'a Fields,
    /// The text of the answer.
    pub text: &'a str,
    /// The name of the person.
    pub by: &'a str,
}

/// Inspects inputs before they are decided.
pub trait Gate: Debug + Send + Sync {
    /// Checks that what this workflow names may be run: asked before a run begins, and again before
    /// one of an earlier process continues.
    ///
    /// # Errors
    /// The reason why not, and what to do; nothing of the run is started.
    fn trusts(&self, workflow: &Workflow) -> Result<(), String> {
        let _ = workflow;
        Ok(())
    }

    /// Returns the workflow of the project, as it is now: a run that revises a set follows it.
    ///
    /// # Errors
    /// The reason why it cannot be read, or is not trusted.
    fn workflow(&self) -> Result<Workflow, String> {
        Err("this daemon knows no workflow".to_owned())
    }

    /// Checks that the files which a command of this workflow names are those that were trusted, in
    /// the folder that it starts in: asked before every start, as an agent may have changed them.
    ///
    /// # Errors
    /// The reason why not, and what to do; the command is not started.
    fn trusts_command(
        &self,
        workflow: &Workflow,
        command: &[String],
        folder: &Path,
    ) -> Result<(), String> {
        let _ = (workflow, command, folder);
        Ok(())
    }

    /// Checks that runs of this workflow can be inspected as it demands.
    ///
    /// # Errors
    /// The reason why not, and what to do; the run does not begin.
    fn begins(&self, workflow: &Workflow) -> Result<(), String>;

    /// True if inputs of this run need inspection.
    fn minds(&self, run: &Run) -> bool;

    /// Inspects a proposal and adds objections and related facts. `cause` is the handoff that the
    /// giver works on.
    fn offer<'a>(
        &'a self,
        run: &'a Run,
        cause: Option<HandoffId>,
        offer: Offer,
    ) -> Looked<'a, Offer>;

    /// Returns the fields that an answer gains besides its text, or the reason why it cannot be
    /// accepted now.
    fn answer<'a>(
        &'a self,
        run: &'a Run,
        answered: Answered<'a>,
    ) -> Looked<'a, Result<Fields, String>>;
}

/// Returns the input after its inspection.
///
/// # Errors
/// The objection to an answer: its author receives it, and the question stays open.
pub(crate) async fn look(gate: &dyn Gate, run: &Run, input: Input) -> Result<Input, EngineError> {
    Ok(match input {
        Input::Tell { turn, mut told } => {
            told.offers = offers(gate, run, Some(turn.handoff), told.offers).await;
            Input::Tell { turn, told }
        }
        Input::Finish { turn, mut result } => {
            result.offers = offers(gate, run, Some(turn.handoff), result.offers).await;
            Input::Finish { turn, result }
        }
        Input::Propose { offer } if offer.from != Party::Human => {
            Input::Propose { offer: Box::new(one(gate, run, None, *offer).await) }
        }
        Input::Answer { handoff, mut values, text, by } => {
            let answered = Answered { handoff, values: &values, text: &text, by: &by };
            let more = tokio::time::timeout(LOOK, gate.answer(run, answered)).await;
            let more = more.unwrap_or_else(|_| Err(late()));
            values.extend(more.map_err(|why| EngineError::Objected { why })?);
            Input::Answer { handoff, values, text, by }
        }
        input => input,
    })
}

fn late() -> String {
    format!("it was not looked at within {LOOK:?}")
}

async fn offers(
    gate: &dyn Gate,
    run: &Run,
    cause: Option<HandoffId>,
    offers: Vec<Offer>,
) -> Vec<Offer> {
    // The giver is the holder of the turn, whatever the proposal claims.
    let giver = cause.and_then(|id| run.handoff(id)).map(|handoff| handoff.offer.to.clone());
    let mut looked = Vec::with_capacity(offers.len());
    for mut offer in offers {
        if let Some(giver) = &giver {
            offer.from.clone_from(giver);
        }
        looked.push(one(gate, run, cause, offer).await);
    }
    looked
}

async fn one(gate: &dyn Gate, run: &Run, cause: Option<HandoffId>, mut offer: Offer) -> Offer {
    offer.objections.clear();
    let late = Offer { objections: vec![late()], ..offer.clone() };
    tokio::time::timeout(LOOK, gate.offer(run, cause, offer)).await.unwrap_or(late)
}
