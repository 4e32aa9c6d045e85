//! What became of one input, for the one that sent it.
//!
//! Many inputs are decided as one step, so the events of a step say nothing about whose they are.
//! Every transition therefore returns the reply to its own input, and nobody searches events for an
//! answer.

use crate::HandoffId;
use crate::run::propose::Refusal;

/// What became of one input.
#[derive(Clone, PartialEq, Debug)]
pub enum Reply {
    /// The input is part of the run, or was so before.
    Recorded,
    /// The proposal was admitted; a request that was made twice has the number of the first one.
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
    /// A turn's report was recorded, apart from the handoffs that a rule refuses.
    Reported {
        /// The handoffs that were refused, in the order of the report.
        refused: Vec<Refusal>,
    },
    /// The turn ended with its result.
    Finished {
        /// The handoffs and questions that its proposals became.
        admitted: Vec<HandoffId>,
        /// The proposals that a rule refuses.
        refused: Vec<Refusal>,
    },
    /// An external agent holds the turn, this caller or an earlier one.
    Taken {
        /// The holder.
        by: String,
    },
    /// The question was open, and this answer closed it.
    Answered,
    /// The answer is not what was asked for. Nothing is recorded, and the asker may try again.
    Unfit {
        /// What is wrong with each value.
        complaints: Vec<String>,
    },
    /// The turn is no longer the one that is out. A result is kept as evidence, anything else is
    /// dropped.
    Late,
    /// The input changes nothing.
    Ignored(Ignored),
}

/// Why an input changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ignored {
    /// The run has ended.
    Ended,
    /// The run has not ended yet.
    NotEnded,
    /// There is no such question, or it has its answer.
    NotOpen,
    /// The turn belongs to an agent that Stafette starts itself.
    NotExternal,
    /// The run knows nothing of that name.
    Unknown,
    /// The run has as many undecided ones as it may, or knows a newer revision.
    NoRoom,
    /// No agent is left that could act on it.
    NoListener,
    /// It is so already, or the input is empty.
    Unchanged,
}
