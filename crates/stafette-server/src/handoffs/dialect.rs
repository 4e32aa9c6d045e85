//! Dialects: how a handoff was written, and how its answer is written the same way.

use serde_json::Value;
use stafette_core::wire::Document;
use stafette_core::wire::contract::HandoffResponse;
use stafette_core::wire::message::{Message, MessageContext, WorkflowType};
use stafette_core::wire::phase::{Phase, PhaseRequest, PhaseResponse};
use stafette_core::wire::scalar::Id;
use stafette_core::{Fields, Kind, Offer, Outcome, Party, Reason, Response, Time};

use crate::Problem;
use crate::clock::now;

/// Description of proposals for the API document.
pub(super) const ABOUT: &str = "The body is a handoff request (`sourceAgent`, `handoffTo`, …), a \
    phase request (`task_id`, `phase`, …) or a message (`message_id`, `from`, `to`, …); \
    `/v1/schemas` has their schemas. An agent proposes within a turn that it has accepted, and what \
    it proposes moves when that turn ends; `human` and `orchestrator` may propose at any time. A \
    refusal carries the answer in the same dialect.";

/// Dialect that an offer came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Came {
    /// A handoff request, or no dialect.
    Contract,
    /// A phase request.
    Phase,
    /// A message between agents.
    Message,
}

/// Reads a document into an offer and its dialect.
pub(super) fn read(document: &Value, to: Option<&str>) -> Result<(Offer, Came), Problem> {
    let read = Document::read(document).map_err(|violations| {
        let said: Vec<String> = violations
            .iter()
            .take(16)
            .map(|violation| match violation.path.is_empty() {
                true => violation.message.clone(),
                false => format!("{}: {}", violation.path, violation.message),
            })
            .collect();
        Problem::new(422, "not_a_document", "The document cannot be understood")
            .because(said.join("; "))
    })?;
    match read {
        Document::HandoffRequest(request) => Ok((request.into_offer(), Came::Contract)),
        Document::Message(message) => Ok((message.into_offer(), Came::Message)),
        Document::PhaseRequest(request) => {
            let to = to.map_or_else(|| Party::from(request.phase.as_str()), Party::from);
            Ok((request.into_offer(to), Came::Phase))
        }
        Document::HandoffResponse(_) | Document::PhaseResponse(_) => {
            let problem = Problem::new(422, "not_a_request", "This is an answer, not a request");
            Err(problem.because("an answer ends a turn: send it to its `complete`"))
        }
    }
}

impl Came {
    pub(crate) fn of(offer: &Offer) -> Self {
        match offer.foreign.as_ref().map(|foreign| foreign.dialect.as_str()) {
            Some("phase") => Came::Phase,
            Some("message") => Came::Message,
            _ => Came::Contract,
        }
    }

    pub(crate) fn word(self) -> &'static str {
        match self {
            Came::Contract => "contract",
            Came::Phase => "phase",
            Came::Message => "message",
        }
    }

    /// Returns the response for an offer that a rule refuses.
    pub(crate) fn refusal(self, offer: &Offer, why: &str) -> Value {
        let id = offer.foreign.as_ref().map_or_else(String::new, |foreign| foreign.id.clone());
        self.answer(offer, &Response::failed(why), &id, now())
    }

    /// Returns an answer in this dialect.
    pub(crate) fn answer(self, offer: &Offer, answer: &Response, id: &str, at: Time) -> Value {
        let known = offer.foreign.as_ref().map_or(id, |foreign| foreign.id.as_str());
        let document = match self {
            Came::Contract => serde_json::to_value(HandoffResponse::from_response(
                answer,
                Id(known.to_owned()),
                at,
            )),
            Came::Phase => {
                let phase = PhaseRequest::from_offer(offer, known, Phase::Research).phase;
                serde_json::to_value(PhaseResponse::from_response(answer, known, phase))
            }
            Came::Message => serde_json::to_value(message(offer, answer, id, at)),
        };
        document.unwrap_or_default()
    }
}

/// Builds the reply message, with sender and receiver swapped.
fn message(offer: &Offer, answer: &Response, id: &str, at: Time) -> Message {
    // An offer that came as a message brings its own context; this is the default for all others.
    let context = MessageContext {
        workflow: WorkflowType::Feature,
        spec: None,
        iteration: None,
        extra: Fields::new(),
    };
    let asked = Message::from_offer(offer, Id(id.to_owned()), at, context);
    let reason = match answer.outcome {
        Outcome::Resolved | Outcome::Partial => Reason::Completion,
        Outcome::Failed | Outcome::Escalated => Reason::Escalation,
    };
    let said = [answer.summary.as_str(), answer.failure.as_deref().unwrap_or_default()];
    let back = Offer {
        detail: said.into_iter().find(|text| !text.is_empty()).unwrap_or_default().to_owned(),
        summary: answer.summary.clone(),
        item: offer.item.clone(),
        outputs: answer.outputs.clone(),
        ..Offer::new(answer.by.clone(), offer.from.clone(), Kind::Transfer, reason)
    };
    Message::from_offer(&back, Id(id.to_owned()), at, asked.context)
}
