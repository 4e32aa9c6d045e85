//! The end of a turn, reported again: whoever lost the answer to it asks for it in the same words.

use stafette_core::{Event, Input, Outcome, Recorded, Reply, TurnKey, TurnResult};

use super::{ExternalTurns, Finished};
use crate::engine::parse;
use crate::{Driver, EngineError, gate};

/// The most characters of an agent's words in the error about a turn that has ended.
const SAID: usize = 200;

impl ExternalTurns<'_> {
    /// The outcome of a turn that has ended, if this is the input that ended it: decided again at
    /// the moment of that end, it gives the same event, and its reply is that of the first one.
    pub(super) async fn repeated(
        self,
        mut input: Input,
        turn: TurnKey,
    ) -> Result<Option<Finished>, EngineError> {
        let Some(end) = self.end_of(turn).await? else { return Ok(None) };
        let log = self.engine.log();
        let before = log.state(turn.run, Some(end.seq.saturating_sub(1))).await?;
        if let (Input::Finish { result, .. }, Event::TurnFinished(first)) = (&mut input, &end.event)
            && result.fingerprint.is_none()
        {
            // That of the project's folder, which has gone on since.
            result.fingerprint.clone_from(&first.result.fingerprint);
        }
        if let Some(gate) = self.engine.shared().gate.as_ref().filter(|gate| gate.minds(&before)) {
            input = gate::look(&**gate, &before, input).await?;
        }
        let mut step = Driver::of(before.as_ref().clone()).decide(end.at, [input]);
        if step.events.first().is_none_or(|first| first.event != end.event) {
            return Ok(None);
        }
        Ok(step.replies.pop().map(|reply| match reply {
            Reply::Finished { admitted, refused } => Finished { admitted, refused },
            _ => Finished { admitted: Vec::new(), refused: Vec::new() },
        }))
    }

    /// The error for an input that comes after the end of its turn.
    pub(super) async fn ended(self, turn: TurnKey) -> Result<EngineError, EngineError> {
        Ok(match self.end_of(turn).await?.map(|end| end.event) {
            Some(Event::TurnFinished(end)) => {
                EngineError::EndedBefore { turn, how: told(&end.result) }
            }
            Some(Event::TurnFailed(end)) => {
                let how = format!("failed: {}", head(&end.failure.message));
                EngineError::EndedBefore { turn, how }
            }
            _ => EngineError::Late { turn },
        })
    }

    /// The event with which a turn ended.
    async fn end_of(self, turn: TurnKey) -> Result<Option<Recorded>, EngineError> {
        let entries = self.engine.store().entries_of(turn.run, turn.handoff).await?;
        for entry in entries.into_iter().map(|stored| stored.entry) {
            if !matches!(entry.name.as_str(), "turn_finished" | "turn_failed") {
                continue;
            }
            let event: Event = parse(entry.seq, &entry.body)?;
            let ended = match &event {
                Event::TurnFinished(end) => end.turn,
                Event::TurnFailed(end) => end.turn,
                _ => continue,
            };
            if ended == turn {
                return Ok(Some(Recorded { seq: entry.seq, at: entry.at, event }));
            }
        }
        Ok(None)
    }
}

/// What was recorded of a result, for the one who sent another.
fn told(result: &TurnResult) -> String {
    let to: Vec<&str> = result.offers.iter().map(|offer| offer.to.as_str()).collect();
    let what = match (to.as_slice(), result.response.outcome) {
        ([], Outcome::Resolved) => "resolved".to_owned(),
        ([], Outcome::Partial) => "partial".to_owned(),
        ([], Outcome::Failed) => "failed".to_owned(),
        ([], Outcome::Escalated) => "escalated".to_owned(),
        (to, _) => format!("handed over to {}", to.join(", ")),
    };
    match head(&result.response.summary) {
        said if said.is_empty() => what,
        said => format!("{what}: {said}"),
    }
}

fn head(text: &str) -> String {
    text.chars().take(SAID).collect()
}
