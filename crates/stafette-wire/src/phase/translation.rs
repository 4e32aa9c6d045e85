//! Translation of phases to the model, and back.

use serde_json::{Value, json};

use super::{DIALECT, Decision, Findings, Phase, PhaseRequest, PhaseResponse, PhaseStatus};
use crate::remainder::{foreign, rebuild, value_of};
use stafette_model::{Fields, Kind, Offer, Outcome, Party, Reason, Response, Usage};

/// The fields of a request's context that have their own place in the model; all others are passed
/// along as outputs.
const PLACED: [&str; 2] = ["feature", "previous_findings"];

impl PhaseRequest {
    /// Converts the request to the model: the orchestrator waits for the answer of `to`. The
    /// feature is the work item, the findings of the previous phase are the summary, and the rest
    /// of the context is passed along.
    #[must_use]
    pub fn into_offer<A: Default>(self, to: Party) -> Offer<A> {
        let document = value_of(&self);
        let mut outputs = fields_of(&document["context"]);
        outputs.retain(|name, value| !PLACED.contains(&name.as_str()) && !value.is_null());
        let mut offer = Offer {
            detail: format!("{} phase", self.phase),
            item: Some(self.context.feature),
            summary: self.context.previous_findings.flatten().unwrap_or_default(),
            instructions: Some(self.instructions),
            outputs,
            ..Offer::new(Party::Orchestrator, to, Kind::Delegate, Reason::Other(DIALECT.into()))
        };
        let known = known_request(&offer, &self.task_id);
        offer.foreign = Some(foreign(DIALECT, &self.task_id, &document, &known));
        offer
    }

    /// Converts an offer to a request. An offer that came as a request is restored as it was; any
    /// other gets `task_id` and `phase`.
    #[must_use]
    pub fn from_offer<A: Default>(offer: &Offer<A>, task_id: &str, phase: Phase) -> Self {
        let came = offer.foreign.as_ref().filter(|foreign| foreign.dialect == DIALECT);
        let id = came.map_or(task_id, |foreign| &foreign.id);
        rebuild(DIALECT, came, known_request(offer, id), |document| {
            document["phase"] = json!(phase);
            document["expected_output"] = json!(phase.output());
            if !fits_context(&offer.outputs) {
                let mut context = json!({ "outputs": offer.outputs });
                if !offer.summary.is_empty() {
                    context["previous_findings"] = offer.summary.as_str().into();
                }
                document["context"] = context;
            }
            document["context"]["feature"] = offer.item.as_deref().unwrap_or(task_id).into();
            if offer.instructions.is_none() {
                document["instructions"] = offer.detail.as_str().into();
            }
        })
    }
}

/// Returns the parts of a request that the model has.
fn known_request<A: Default>(offer: &Offer<A>, id: &str) -> Value {
    let mut context = offer.outputs.clone();
    if let Some(item) = &offer.item {
        context.insert("feature".into(), item.as_str().into());
    }
    if !offer.summary.is_empty() {
        context.insert("previous_findings".into(), offer.summary.as_str().into());
    }
    let mut document = json!({ "task_id": id, "context": context });
    if let Some(instructions) = &offer.instructions {
        document["instructions"] = instructions.as_str().into();
    }
    document
}

/// True if values can appear in a context under their own names, without changing the meaning of
/// the names that a context already has.
fn fits_context(outputs: &Fields) -> bool {
    let texts =
        |value: &Value| value.as_array().is_some_and(|items| items.iter().all(Value::is_string));
    outputs.iter().all(|(name, value)| match name.as_str() {
        "feature" | "previous_findings" => false,
        "spec_path" => value.is_string() || value.is_null(),
        "relevant_files" | "constraints" => texts(value),
        _ => true,
    })
}

impl PhaseResponse {
    /// Converts the response to the model, as given by `by`. The findings are the outputs.
    #[must_use]
    pub fn into_response(self, by: Party) -> Response {
        let document = value_of(&self);
        let outcome = match self.status {
            PhaseStatus::Complete => Outcome::Resolved,
            PhaseStatus::Partial => Outcome::Partial,
            PhaseStatus::Blocked => Outcome::Failed,
        };
        let issues = self.issues.unwrap_or_default();
        let why = if issues.is_empty() { self.context_summary.clone() } else { issues.join("; ") };
        let recommendations = match &self.findings {
            Findings::Research(research) => research.recommendations.clone(),
            Findings::Write(_) | Findings::Validate(_) | Findings::Parallel(_) => Vec::new(),
        };
        let mut response = Response {
            outputs: fields_of(&document["findings"]),
            failure: (outcome == Outcome::Failed).then_some(why),
            recommendations,
            summary: self.context_summary,
            usage: Usage {
                tokens: self.tokens_used.map_or(0, |tokens| tokens.get()),
                ..Usage::default()
            },
            ..Response::new(by, outcome)
        };
        let known = known_response(&response, &self.task_id);
        response.foreign = Some(foreign(DIALECT, &self.task_id, &document, &known));
        response
    }

    /// Converts a response to a phase response. A response that came in this form is restored as it
    /// was; any other gets the `task_id` and the `phase` of its request.
    #[must_use]
    pub fn from_response(response: &Response, task_id: &str, phase: Phase) -> Self {
        let came = response.foreign.as_ref().filter(|foreign| foreign.dialect == DIALECT);
        let id = came.map_or(task_id, |foreign| &foreign.id);
        rebuild(DIALECT, came, known_response(response, id), |document| {
            let decision = match response.outcome {
                Outcome::Resolved | Outcome::Partial => Decision::Proceed,
                Outcome::Failed => Decision::Stop,
                Outcome::Escalated => Decision::Clarify,
            };
            document["phase"] = json!(phase);
            document["decision"] = json!(decision);
            document["findings"] = findings(response, phase);
            let issues = response.failure.iter().chain(&response.unresolved);
            document["issues"] = issues.map(String::as_str).collect();
        })
    }
}

/// Returns the phase that an offer asks for, if it came as a phase request.
pub fn asked<A: Default>(offer: &Offer<A>) -> Option<Phase> {
    let foreign = offer.foreign.as_ref().filter(|foreign| foreign.dialect == DIALECT)?;
    serde_json::from_value(foreign.fields.get("phase")?.clone()).ok()
}

/// Returns the phase response that a response came as; `None` if it came in another form.
pub fn given(response: &Response) -> Option<PhaseResponse> {
    let foreign = response.foreign.as_ref().filter(|foreign| foreign.dialect == DIALECT)?;
    let phase = serde_json::from_value(foreign.fields.get("phase")?.clone()).ok()?;
    Some(PhaseResponse::from_response(response, &foreign.id, phase))
}

/// Returns the decision of a response that came as a phase response.
pub fn decision(response: &Response) -> Option<Decision> {
    let foreign = response.foreign.as_ref().filter(|foreign| foreign.dialect == DIALECT)?;
    serde_json::from_value(foreign.fields.get("decision")?.clone()).ok()
}

/// Returns the parts of a response that the model has.
fn known_response(response: &Response, id: &str) -> Value {
    let status = match response.outcome {
        Outcome::Resolved => PhaseStatus::Complete,
        Outcome::Partial => PhaseStatus::Partial,
        Outcome::Failed | Outcome::Escalated => PhaseStatus::Blocked,
    };
    let mut document = json!({
        "task_id": id,
        "status": status,
        "findings": response.outputs,
        "context_summary": response.summary,
    });
    if response.usage.tokens > 0 {
        document["tokens_used"] = response.usage.tokens.into();
    }
    document
}

/// Returns a response's outputs in the shape of a phase: unchanged if they match, and otherwise
/// beside an empty shape.
fn findings(response: &Response, phase: Phase) -> Value {
    let passed = response.outcome == Outcome::Resolved;
    let failures: Vec<&String> = response.failure.iter().collect();
    let empty = match phase {
        Phase::Research => json!({
            "existing_implementations": [], "conflicts": [], "patterns_found": [],
            "recommendations": response.recommendations,
        }),
        Phase::Write => json!({
            "files_created": [], "files_modified": [], "tests_written": [],
            "implementation_notes": [],
        }),
        Phase::Validate => json!({
            "checks": {}, "overall_passed": passed, "blocking_issues": failures, "warnings": [],
        }),
        Phase::Parallel => json!({
            "results": [],
            "aggregation": {
                "total": 0, "passed": 0, "failed": 0, "rule": "all", "overall_passed": passed,
            },
        }),
    };
    let mut filled = fields_of(&empty);
    filled.extend(response.outputs.clone());
    let filled = Value::Object(filled);
    let fits = serde_json::from_value::<Findings>(json!({ "phase": phase, "findings": filled }));
    if fits.is_ok() {
        return filled;
    }
    let mut beside = empty;
    beside["outputs"] = response.outputs.clone().into();
    beside
}

fn fields_of(value: &Value) -> Fields {
    value.as_object().cloned().unwrap_or_default()
}
