//! The reply to one input, for its sender.
//!
//! Many inputs are decided as one step, so the events of a step do not show which input caused
//! them.
//! Every transition therefore returns the reply to its own input, and no caller searches events for
//! an
//! answer.

use crate::run::propose::Refusal;
use crate::{HandoffId, MessageId};

/// The outcome of one input.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// The input is recorded, now or earlier.
    Recorded,
    /// The input is recorded, now or earlier, as an order of the run.
    Ordered {
        /// The number of the event that recorded it.
        seq: u64,
    },
    /// The proposal was admitted; a repeated request gets the number of the first one.
    Admitted {
        /// The new handoff, or the question to a person.
        handoff: HandoffId,
    },
    /// A rule refuses the proposal.
    Refused {
        /// The number that the refused proposal is recorded under.
        handoff: HandoffId,
        /// The rule, with its details.
        refusal: Box<Refusal>,
    },
    /// A turn's report was recorded, except for the handoffs that a rule refuses.
    Reported {
        /// The handoffs that were refused, in the order of the report.
        refused: Vec<Refusal>,
    },
    /// The turn ended with its result.
    Finished {
        /// The handoffs and questions created from its proposals.
        admitted: Vec<HandoffId>,
        /// The proposals that a rule refuses.
        refused: Vec<Refusal>,
    },
    /// An external agent holds the turn, this caller or an earlier one.
    Taken { by: String },
    /// The message is recorded and reaches its agent at the next step or turn.
    Sent { message: MessageId },
    /// The question was open, and this answer closed it.
    Answered,
    /// The answer does not match the question. Nothing is recorded, and the sender may try again.
    Unfit { complaints: Vec<String> },
    /// The turn is no longer open. A result is kept as evidence, anything else is dropped.
    Late,
    /// The input changes nothing.
    Ignored(Ignored),
}

/// The reason why an input changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ignored {
    Ended,
    /// The run has not ended yet.
    NotEnded,
    /// There is no such question, or it is already answered.
    NotOpen,
    /// The turn belongs to an agent that Stafette starts itself.
    NotExternal,
    /// The run has nothing of that name.
    Unknown,
    /// The run has the maximum number of undecided ones.
    NoRoom,
    /// No agent is left that could act on it.
    NoListener,
    /// The state is already as requested, or the input is empty.
    Unchanged,
    /// Something else is being done with it.
    Busy,
    /// It was revised since the sender has seen it.
    Revised,
    /// An agent is revising it.
    BeingRevised,
}
