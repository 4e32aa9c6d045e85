//! Translation of the contract's documents to the model, and back.

use serde_json::{Value, json};

use super::{DIALECT, HandoffRequest, HandoffResponse, RequestReason};
use crate::remainder::{foreign, rebuild, value_of};
use crate::scalar::Id;
use stafette_model::PriorAttempt;
use stafette_model::{
    Kind, Millis, MissingInput, Offer, Party, Question, Reason, Response, Time, Usage,
};

impl From<RequestReason> for Reason {
    fn from(reason: RequestReason) -> Self {
        match reason {
            RequestReason::MissingRequiredInput => Reason::MissingRequiredInput,
            RequestReason::ValidationFailure => Reason::ValidationFailure,
            RequestReason::ExpertiseMismatch => Reason::ExpertiseMismatch,
            RequestReason::ResourceExhausted => Reason::ResourceExhausted,
            RequestReason::RequiresHumanDecision => Reason::RequiresHumanDecision,
        }
    }
}

impl RequestReason {
    /// Returns the closest code of the contract.
    #[must_use]
    pub fn nearest(reason: &Reason) -> Self {
        match reason {
            Reason::MissingRequiredInput => RequestReason::MissingRequiredInput,
            Reason::ValidationFailure | Reason::FixRequest => RequestReason::ValidationFailure,
            Reason::ResourceExhausted => RequestReason::ResourceExhausted,
            Reason::RequiresHumanDecision | Reason::Escalation => {
                RequestReason::RequiresHumanDecision
            }
            Reason::ExpertiseMismatch
            | Reason::TaskHandoff
            | Reason::ReviewRequest
            | Reason::RereviewRequest
            | Reason::Completion
            | Reason::Stage
            | Reason::Other(_) => RequestReason::ExpertiseMismatch,
        }
    }
}

impl HandoffRequest {
    /// Converts the request to the model. The asker waits for the answer.
    #[must_use]
    pub fn into_offer<A: Default>(self) -> Offer<A> {
        let document = value_of(&self);
        let reason = Reason::from(self.reason);
        let target = self.context_for_target;
        // A person needs something to answer: for them, the reason is the question.
        let question = (self.handoff_to == Party::Human).then(|| Question {
            reason: reason.as_str().to_owned(),
            details: self.reason_detail.clone(),
            context: target.summary.clone(),
            blocking: true,
            ..Question::default()
        });
        let missing = self.missing_inputs.unwrap_or_default().into_iter().map(|input| {
            let (key, expected_type) = (input.key, input.expected_type);
            MissingInput {
                key,
                expected_type,
                description: input.description,
                source: input.source,
            }
        });
        let prior = target.prior_attempts.unwrap_or_default().into_iter().map(|prior| {
            let attempt = u32::try_from(prior.attempt.get()).unwrap_or(u32::MAX);
            PriorAttempt { attempt, action: prior.action, result: prior.result, tried: None }
        });
        let mut offer = Offer {
            detail: self.reason_detail,
            item: self.source_context.document_type,
            priority: self.priority,
            summary: target.summary,
            outputs: target.relevant_outputs.unwrap_or_default(),
            missing: missing.collect(),
            prior_attempts: prior.collect(),
            timeout: self.timeout_ms.map(|timeout| timeout.millis()),
            question,
            ..Offer::new(self.source_agent, self.handoff_to, Kind::Delegate, reason)
        };
        let known = known_request(&offer, &self.trace_id.0);
        offer.foreign = Some(foreign(DIALECT, &self.trace_id.0, &document, &known));
        offer
    }

    /// Converts an offer to a request. An offer that came as a request is restored as it was; any
    /// other gets `trace_id` and `at`.
    #[must_use]
    pub fn from_offer<A: Default>(offer: &Offer<A>, trace_id: impl Into<Id>, at: Time) -> Self {
        let came = offer.foreign.as_ref().filter(|foreign| foreign.dialect == DIALECT);
        let id = came.map_or_else(|| trace_id.into().0, |foreign| foreign.id.clone());
        rebuild(DIALECT, came, known_request(offer, &id), |document| {
            document["timestamp"] = at.rfc3339().into();
            document["sourceContext"]["currentStep"] = 1.into();
            document["sourceContext"]["attemptNumber"] = (offer.prior_attempts.len() + 1).into();
            if offer.detail.is_empty() {
                let question = offer.question.as_ref().map(|question| question.details.as_str());
                document["reasonDetail"] = question.unwrap_or(offer.reason.as_str()).into();
            }
            if let Some(instructions) = &offer.instructions {
                document["contextForTarget"]["instructions"] = instructions.as_str().into();
            }
        })
    }
}

/// Returns the parts of a request that the model has.
fn known_request<A: Default>(offer: &Offer<A>, id: &str) -> Value {
    let mut source = json!({});
    if let Some(item) = &offer.item {
        source["documentType"] = item.as_str().into();
    }
    let mut target = json!({ "summary": offer.summary });
    if !offer.outputs.is_empty() {
        target["relevantOutputs"] = offer.outputs.clone().into();
    }
    if !offer.prior_attempts.is_empty() {
        let prior = offer.prior_attempts.iter().map(|prior| {
            json!({ "attempt": prior.attempt, "action": prior.action, "result": prior.result })
        });
        target["priorAttempts"] = prior.collect();
    }
    let mut document = json!({
        "schemaVersion": "1.0.0",
        "traceId": id,
        "sourceAgent": offer.from,
        "sourceContext": source,
        "canHandle": false,
        "handoffTo": offer.to,
        "reason": RequestReason::nearest(&offer.reason),
        "reasonDetail": offer.detail,
        "contextForTarget": target,
        "priority": offer.priority,
    });
    if !offer.missing.is_empty() {
        let missing = offer.missing.iter().map(|input| {
            let mut wanted = json!({
                "key": input.key,
                "expectedType": input.expected_type,
                "description": input.description,
            });
            if let Some(source) = &input.source {
                wanted["source"] = source.as_str().into();
            }
            wanted
        });
        document["missingInputs"] = missing.collect();
    }
    if let Some(Millis(timeout)) = offer.timeout {
        document["timeoutMs"] = timeout.into();
    }
    document
}

impl HandoffResponse {
    /// Converts the response to the model.
    #[must_use]
    pub fn into_response(self) -> Response {
        let document = value_of(&self);
        // The contract has no field for a summary, but agents often send one.
        let summary = self.extra.get("summary").and_then(Value::as_str).unwrap_or_default();
        let mut response = Response {
            outputs: self.provided_inputs.unwrap_or_default(),
            unresolved: self.unresolved.unwrap_or_default(),
            failure: self.failure_reason,
            recommendations: self.recommendations.unwrap_or_default(),
            summary: summary.to_owned(),
            took: self.execution_time_ms.millis(),
            usage: Usage {
                tokens: self.tokens_used.map_or(0, |tokens| tokens.get()),
                ..Usage::default()
            },
            ..Response::new(self.responding_agent, self.status)
        };
        let known = known_response(&response, &self.trace_id.0);
        response.foreign = Some(foreign(DIALECT, &self.trace_id.0, &document, &known));
        response
    }

    /// Converts a response to the contract. A response that came in this form is restored as it
    /// was; any other gets `trace_id`, which is the request's, and `at`.
    #[must_use]
    pub fn from_response(response: &Response, trace_id: impl Into<Id>, at: Time) -> Self {
        let came = response.foreign.as_ref().filter(|foreign| foreign.dialect == DIALECT);
        let id = came.map_or_else(|| trace_id.into().0, |foreign| foreign.id.clone());
        rebuild(DIALECT, came, known_response(response, &id), |document| {
            document["timestamp"] = at.rfc3339().into();
            if !response.summary.is_empty() {
                document["summary"] = response.summary.as_str().into();
            }
        })
    }
}

/// Returns the parts of a response that the model has.
fn known_response(response: &Response, id: &str) -> Value {
    let mut document = json!({
        "schemaVersion": "1.0.0",
        "traceId": id,
        "respondingAgent": response.by,
        "status": response.outcome,
        "executionTimeMs": response.took.0,
    });
    if !response.outputs.is_empty() {
        document["providedInputs"] = response.outputs.clone().into();
    }
    if !response.unresolved.is_empty() {
        document["unresolved"] = response.unresolved.clone().into();
    }
    if let Some(failure) = &response.failure {
        document["failureReason"] = failure.as_str().into();
    }
    if !response.recommendations.is_empty() {
        document["recommendations"] = response.recommendations.clone().into();
    }
    if response.usage.tokens > 0 {
        document["tokensUsed"] = response.usage.tokens.into();
    }
    document
}
