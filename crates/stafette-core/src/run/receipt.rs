//! An agent received its turn: the progress is recorded step by step, and the deadline changes from
//! acceptance to the lease.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run, message};
use crate::handoff::{Receipt, State};
use crate::{Event, Reply, Time, TurnKey};

/// The delivery of a turn made progress.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ReceiptGiven {
    /// The turn that was delivered.
    pub turn: TurnKey,
    /// The new progress of the delivery.
    pub receipt: Receipt,
    /// The deadline for the next sign of life.
    pub due: Time,
}

pub(crate) fn decide(draft: &mut Draft, turn: TurnKey, receipt: Receipt) -> Reply {
    if !draft.run.is_current(turn) {
        return Reply::Late;
    }
    let out = draft.run.handoff(turn.handoff).and_then(|handoff| handoff.state.turn());
    if out.is_some_and(|out| out.receipt < receipt) {
        let due = draft.now + draft.run.workflow.limits.lease;
        draft.record(Event::ReceiptGiven(ReceiptGiven { turn, receipt, due }));
    }
    if receipt >= Receipt::Ingested {
        message::read_with(draft, turn);
    }
    Reply::Recorded
}

impl ReceiptGiven {
    pub(crate) fn apply(&self, run: &mut Run) {
        let Some(handoff) = run.handoff_mut(self.turn.handoff) else { return };
        let Some(turn) = handoff.state.turn() else { return };
        let mut turn = turn.clone();
        turn.receipt = self.receipt;
        turn.due = match handoff.state {
            // The time to accept has ended, however much of it is left.
            State::Ordered(_) => self.due,
            _ => turn.due.max(self.due),
        };
        handoff.state = match handoff.state {
            State::Running(_) => State::Running(turn),
            _ => State::Accepted(turn),
        };
    }
}

#[cfg(test)]
mod tests {
    use crate::handoff::Receipt;
    use crate::run::story::{RELAY, Story, h};
    use crate::{Input, Millis};

    #[test]
    fn b_02_an_accepted_turn_has_its_lease_and_not_what_was_left_to_accept_it() {
        let short = RELAY.replace("[limits]", "[limits]\nlease = \"1ms\"");
        let mut story = Story::new(&short);
        let due = |story: &Story| {
            story.run.handoff(h(1)).and_then(|h| h.state.turn()).map(|turn| turn.due)
        };
        let turn = story.key(h(1));
        story.input(Input::Receipt { turn, receipt: Receipt::Delivered });
        assert_eq!(due(&story), Some(story.now + Millis(1)));
    }

    #[test]
    fn b_06_a_turn_is_queued_delivered_ingested_and_acknowledged() {
        let mut story = Story::new(RELAY);
        let receipt = |story: &Story| {
            story.run.handoff(h(1)).and_then(|h| h.state.turn()).map(|turn| turn.receipt)
        };
        assert_eq!(receipt(&story), Some(Receipt::Queued));
        for step in [Receipt::Delivered, Receipt::Ingested, Receipt::Acknowledged] {
            let turn = story.key(h(1));
            story.later(Millis::seconds(1)).input(Input::Receipt { turn, receipt: step });
            assert_eq!(receipt(&story), Some(step));
        }
        let before = story.log.len();
        let turn = story.key(h(1));
        story.input(Input::Receipt { turn, receipt: Receipt::Delivered });
        assert_eq!(story.log.len(), before, "what is known already is not said again");
    }
}
