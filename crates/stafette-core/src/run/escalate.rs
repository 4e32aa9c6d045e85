//! A person is asked.

use super::Draft;
use super::propose::{Proposal, Refusal, propose};
use super::resume;
use crate::handoff::About;
use crate::{HandoffId, Kind, MissingInput, Offer, Party, Question, Reason};

/// What a person can do about an open question, for those who ask by the contract.
pub(super) fn recommendations() -> Vec<String> {
    [
        "Look at the question and its context with `stafette inbox`",
        "Give the missing inputs with `stafette answer`",
        "The run goes on by itself once it has its answer",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// Whatever goes to a person is a question, also when the giver did not phrase one.
pub(super) fn with_question(offer: Offer) -> Offer {
    if offer.to != Party::Human || offer.question.is_some() {
        return offer;
    }
    let question = question_of(&offer);
    Offer { question: Some(question), ..offer }
}

pub(super) fn question_of(offer: &Offer) -> Question {
    let details = match (offer.missing.is_empty(), offer.detail.is_empty()) {
        (false, _) => format!("{} needs {}", offer.from, wanted(offer)),
        (true, false) => offer.detail.clone(),
        (true, true) => offer.summary.clone(),
    };
    let plain = Question {
        reason: offer.reason.as_str().to_owned(),
        details,
        context: offer.summary.clone(),
        blocking: offer.kind == Kind::Delegate,
        ..Question::default()
    };
    offer.question.clone().unwrap_or(plain)
}

/// The inputs that are asked for, each with what it is.
fn wanted(offer: &Offer) -> String {
    let one = |input: &crate::MissingInput| match input.description.as_str() {
        "" => input.key.clone(),
        what => format!("{} ({what})", input.key),
    };
    offer.missing.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Holds `id` back until `question` is answered; what the answer means is the question's `about`.
pub(super) fn park(draft: &mut Draft, id: HandoffId, question: Question) {
    park_for(draft, id, question, Vec::new());
}

/// The same for an answer that fills in inputs. Gives the question, when it could be asked.
pub(super) fn park_for(
    draft: &mut Draft,
    id: HandoffId,
    question: Question,
    missing: Vec<MissingInput>,
) -> Option<HandoffId> {
    let handoff = draft.run.handoff(id)?;
    let offer = Offer {
        detail: question.details.clone(),
        item: handoff.offer.item.clone(),
        priority: handoff.offer.priority,
        question: Some(question),
        missing,
        ..Offer::new(
            handoff.offer.to.clone(),
            Party::Human,
            Kind::Delegate,
            Reason::RequiresHumanDecision,
        )
    };
    // The answer is acted upon by its meaning, not merged: so nothing returns to `id` by itself.
    let proposal = Proposal { cause: Some(id), ..Proposal::of(offer) };
    let question = propose(draft, proposal).ok()?;
    resume::block(draft, id, vec![question], Vec::new());
    Some(question)
}

/// A handoff failed for good, and nothing in the workflow helps.
pub(super) fn about_failure(draft: &mut Draft, id: HandoffId, failure: &str) {
    let Some(handoff) = draft.run.handoff(id) else {
        return;
    };
    let question = Question {
        reason: "handoff_failed".into(),
        details: format!("{} could not do its work: {failure}", handoff.offer.to),
        options: vec!["retry".into(), "skip".into(), "stop".into()],
        context: handoff.offer.summary.clone(),
        blocking: true,
        about: About::Recovery(id),
        ..Question::default()
    };
    park(draft, id, question);
}

/// A loop went round too often, or for nothing.
pub(super) fn about_loop(draft: &mut Draft, id: HandoffId, refusal: &Refusal) {
    let reason = match refusal {
        Refusal::NoProgress { .. } => "no_progress",
        _ => "loop_limit",
    };
    let question = Question {
        reason: reason.into(),
        details: format!("{}. Accept the work as it is, stop, or say what to do", refusal.detail()),
        options: vec!["accept".into(), "stop".into()],
        blocking: true,
        about: About::Loop(id),
        ..Question::default()
    };
    park(draft, id, question);
}
