//! Somebody who looks at what arrives for a run before it is decided upon: at what agents hand on,
//! and at what people answer. What they find is part of the input, so that a replay needs nobody.

use std::fmt::Debug;
use std::pin::Pin;
use std::time::Duration;

use stafette_core::{Fields, HandoffId, Input, Offer, Party, Run, Workflow};

use crate::EngineError;

/// How long a look may take.
const LOOK: Duration = Duration::from_secs(10);

/// A look that takes its time.
pub type Looked<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// What a person answers.
#[derive(Clone, Copy, Debug)]
pub struct Answered<'a> {
    /// Which question.
    pub handoff: HandoffId,
    /// With these values.
    pub values: &'a Fields,
    /// In these words.
    pub text: &'a str,
    /// Who.
    pub by: &'a str,
}

/// Looks at what arrives.
pub trait Gate: Debug + Send + Sync {
    /// Whether a run by this workflow can be looked at as that wants it.
    ///
    /// # Errors
    /// Why not, and what to do; the run does not begin.
    fn begins(&self, workflow: &Workflow) -> Result<(), String>;

    /// Whether there is anything to look at in this run.
    fn minds(&self, run: &Run) -> bool;

    /// What somebody hands on, with what speaks against it and what belongs to it. `cause` is the
    /// handoff that the giver works on.
    fn offer<'a>(
        &'a self,
        run: &'a Run,
        cause: Option<HandoffId>,
        offer: Offer,
    ) -> Looked<'a, Offer>;

    /// What an answer brings besides what was said, or why it cannot be taken as things are.
    fn answer<'a>(
        &'a self,
        run: &'a Run,
        answered: Answered<'a>,
    ) -> Looked<'a, Result<Fields, String>>;
}

/// The input as it is after somebody has looked at it.
///
/// # Errors
/// What speaks against an answer: whoever gave it hears of it, and the question stays open.
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
    // Who gives is whoever has the turn, whatever it says.
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
