//! Work handed to the orchestrator: it closes what is complete and asks a person for the rest.

use super::propose::{self, Proposal};
use super::{Draft, close, escalate, resume};
use crate::{Fields, HandoffId, Kind, Offer, Outcome, Party, Reason, Response};

pub(super) fn decide(draft: &mut Draft, id: HandoffId) {
    let Some(handoff) = draft.run.handoff(id) else { return };
    let answered = handoff.answers.last().cloned();
    if let Some(answer) = answered {
        // A person has answered: that answer is the orchestrator's answer.
        let response = Response { by: Party::Orchestrator, ..answer };
        return close::answered(draft, id, response);
    }
    if handoff.offer.reason == Reason::Completion {
        let outputs: Fields = handoff.offer.outputs.clone();
        let done = Response::new(Party::Orchestrator, Outcome::Resolved);
        return close::answered(draft, id, Response { outputs, ..done });
    }
    let asked = handoff.offer.clone();
    let question = escalate::question_of(&asked);
    let offer = Offer {
        from: Party::Orchestrator,
        to: Party::Human,
        kind: Kind::Delegate,
        outputs: Fields::new(),
        question: Some(crate::Question { blocking: true, ..question }),
        foreign: None,
        ..asked
    };
    let question = propose::ask(draft, Proposal::within(offer, id));
    resume::block(draft, id, vec![question], Vec::new());
}
