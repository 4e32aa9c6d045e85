//! Translation of messages to the model, and back.

use serde_json::{Value, json};

use super::{DIALECT, Message, MessageContext, MessageType};
use crate::remainder::{foreign, rebuild, value_of};
use crate::scalar::Id;
use stafette_model::{Kind, Offer, Party, Question, Reason, Time};

impl From<MessageType> for Reason {
    fn from(kind: MessageType) -> Self {
        match kind {
            MessageType::TaskHandoff => Reason::TaskHandoff,
            MessageType::ReviewRequest => Reason::ReviewRequest,
            MessageType::FixRequest => Reason::FixRequest,
            MessageType::RereviewRequest => Reason::RereviewRequest,
            MessageType::Completion => Reason::Completion,
            MessageType::Escalation => Reason::Escalation,
        }
    }
}

impl MessageType {
    /// Returns the type that best describes an offer.
    #[must_use]
    pub fn nearest<A: Default>(offer: &Offer<A>) -> Self {
        match (&offer.to, &offer.reason) {
            (Party::Human, _) | (_, Reason::Escalation | Reason::RequiresHumanDecision) => {
                MessageType::Escalation
            }
            (_, Reason::ReviewRequest) => MessageType::ReviewRequest,
            (_, Reason::FixRequest | Reason::ValidationFailure) => MessageType::FixRequest,
            (_, Reason::RereviewRequest) => MessageType::RereviewRequest,
            (Party::Orchestrator, _) | (_, Reason::Completion) => MessageType::Completion,
            (
                Party::Agent(_),
                Reason::TaskHandoff
                | Reason::MissingRequiredInput
                | Reason::ExpertiseMismatch
                | Reason::ResourceExhausted
                | Reason::Stage
                | Reason::Other(_),
            ) => MessageType::TaskHandoff,
        }
    }
}

impl Message {
    /// Converts the message to the model. The sender is done with its work, except if it asks a
    /// person and waits for the answer. On the wire a question goes to the orchestrator, in the
    /// model to the person who answers it.
    #[must_use]
    pub fn into_offer<A: Default>(self) -> Offer<A> {
        let document = value_of(&self);
        let mut offer = match self.escalation() {
            Some(asked) => {
                let blocking = asked.blocking.unwrap_or(true);
                let kind = if blocking { Kind::Delegate } else { Kind::Transfer };
                Offer {
                    detail: asked.details.clone(),
                    outputs: asked.extra,
                    question: Some(Question {
                        reason: asked.reason,
                        details: asked.details,
                        options: asked.options.unwrap_or_default(),
                        context: asked.context.unwrap_or_default(),
                        blocking,
                        ..Question::default()
                    }),
                    ..Offer::new(self.from, Party::Human, kind, Reason::Escalation)
                }
            }
            None => {
                let text = |name: &str| {
                    self.payload.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
                };
                Offer {
                    detail: text("detail"),
                    summary: text("summary"),
                    instructions: Some(text("instructions")).filter(|text| !text.is_empty()),
                    outputs: self.payload,
                    ..Offer::new(self.from, self.to, Kind::Transfer, self.kind.into())
                }
            }
        };
        offer.priority = self.priority;
        offer.item = self.context.spec;
        let known = known(&offer, &self.message_id.0);
        offer.foreign = Some(foreign(DIALECT, &self.message_id.0, &document, &known));
        offer
    }

    /// Converts an offer to a message. An offer that came as a message is restored as it was; any
    /// other gets `message_id`, `at` and `context`, and is pending.
    #[must_use]
    pub fn from_offer<A: Default>(
        offer: &Offer<A>,
        message_id: impl Into<Id>,
        at: Time,
        context: MessageContext,
    ) -> Self {
        let came = offer.foreign.as_ref().filter(|foreign| foreign.dialect == DIALECT);
        let id = came.map_or_else(|| message_id.into().0, |foreign| foreign.id.clone());
        rebuild(DIALECT, came, known(offer, &id), |document| {
            document["timestamp"] = at.rfc3339().into();
            document["status"] = "pending".into();
            let spec = document["context"]["spec"].take();
            document["context"] = value_of(&context);
            if context.spec.is_none() && spec.is_string() {
                document["context"]["spec"] = spec;
            }
            let said = [
                ("detail", offer.detail.as_str()),
                ("summary", &offer.summary),
                ("instructions", offer.instructions.as_deref().unwrap_or_default()),
            ];
            let payload = &mut document["payload"];
            for (name, text) in said {
                if !text.is_empty() && payload.get(name).is_none() {
                    payload[name] = text.into();
                }
            }
            if MessageType::nearest(offer) == MessageType::Escalation {
                complete_escalation(payload, offer);
            }
        })
    }
}

/// Makes sure that an escalation contains its question.
fn complete_escalation<A: Default>(payload: &mut Value, offer: &Offer<A>) {
    let details = [&offer.detail, &offer.summary].into_iter().find(|text| !text.is_empty());
    let texts = [
        ("reason", offer.reason.as_str()),
        ("details", details.map_or(offer.reason.as_str(), |text| text)),
    ];
    for (name, text) in texts {
        if !payload[name].is_string() {
            payload[name] = text.into();
        }
    }
    let question = offer.question.as_ref();
    payload["options"] =
        question.map(|question| question.options.clone()).unwrap_or_default().into();
    payload["context"] = question.map_or("", |question| &question.context).into();
    let waits = offer.kind == Kind::Delegate;
    payload["blocking"] = question.map_or(waits, |question| question.blocking).into();
}

/// Returns the parts of a message that the model has.
fn known<A: Default>(offer: &Offer<A>, id: &str) -> Value {
    let kind = MessageType::nearest(offer);
    let to = match kind {
        MessageType::Escalation => &Party::Orchestrator,
        _ => &offer.to,
    };
    let mut payload = offer.outputs.clone();
    if let Some(question) = &offer.question {
        let mut say = |name: &str, value: Value| payload.insert(name.to_owned(), value);
        say("reason", question.reason.as_str().into());
        say("details", question.details.as_str().into());
        if !question.options.is_empty() {
            say("options", question.options.clone().into());
        }
        if !question.context.is_empty() {
            say("context", question.context.as_str().into());
        }
        // A question blocks by default.
        if !question.blocking {
            say("blocking", false.into());
        }
    }
    let mut context = json!({});
    if let Some(item) = &offer.item {
        context["spec"] = item.as_str().into();
    }
    json!({
        "schema_version": "1.0.0",
        "message_id": id,
        "from": offer.from,
        "to": to,
        "type": kind,
        "priority": offer.priority,
        "payload": payload,
        "context": context,
    })
}
