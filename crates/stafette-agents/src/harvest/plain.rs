//! The short forms: a stage's name, or an object with the fields that matter.

use serde_json::Value;
use stafette_core::{
    Fields, Kind, Millis, MissingInput, Offer, Outcome, Party, Priority, Question, Reason, Response,
};

/// An object whose fields are taken out one by one; mistakes are collected.
struct Form {
    fields: Fields,
    mistakes: Vec<String>,
}

impl Form {
    /// Takes out a field of any type that can be read; `null` counts as absent.
    fn take<T: serde::de::DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let value = self.fields.shift_remove(name).filter(|value| !value.is_null())?;
        match serde_json::from_value(value) {
            Ok(value) => Some(value),
            Err(error) => {
                self.mistakes.push(format!("/{name}: {error}"));
                None
            }
        }
    }

    /// The remaining fields, with those of `name`: all of them are handed along.
    fn rest(&mut self, name: &str) -> Fields {
        let mut outputs: Fields = self.take(name).unwrap_or_default();
        for (key, value) in std::mem::take(&mut self.fields) {
            outputs.entry(key).or_insert(value);
        }
        outputs
    }
}

/// Reads `"reviewer"` or `{to, summary, …}`.
pub(super) fn offer(from: &Party, payload: Value) -> Result<Offer, Vec<String>> {
    let fields = match payload {
        Value::String(stage) => Fields::from_iter([("to".to_owned(), stage.into())]),
        Value::Object(fields) => fields,
        other => {
            return Err(vec![format!("`{other}` is neither a stage nor an object with `to`")]);
        }
    };
    let mut form = Form { fields, mistakes: Vec::new() };
    let Some(to) = form.take::<String>("to") else {
        form.mistakes.push("/to: say who is to take it".into());
        return Err(form.mistakes);
    };
    if !is_name(&to) {
        form.mistakes.push(format!("/to: `{to}` is not a name"));
    }
    let to = Party::from(to);
    let missing: Vec<MissingInput> = form.take("missing").unwrap_or_default();
    let question = question(&mut form, &to);
    let waits = !missing.is_empty() || question.is_some();
    let kind = form.take("kind").unwrap_or(if waits { Kind::Delegate } else { Kind::Transfer });
    let mut offer = Offer::new(from.clone(), to, kind, Reason::Stage);
    match form.take::<Reason>("reason") {
        Some(reason) => offer.reason = reason,
        None if question.is_some() => offer.reason = Reason::RequiresHumanDecision,
        None if !missing.is_empty() => offer.reason = Reason::MissingRequiredInput,
        None => {}
    }
    offer.missing = missing;
    offer.question = question;
    offer.detail = form.take("detail").unwrap_or_default();
    offer.item = form.take("item");
    offer.priority = form.take::<Priority>("priority").unwrap_or_default();
    offer.summary = form.take("summary").unwrap_or_default();
    offer.instructions = form.take("instructions");
    offer.timeout = form.take::<Millis>("timeout");
    // `key_decisions` stays among the outputs: the taker should see it.
    offer.outputs = form.rest("outputs");
    if form.mistakes.is_empty() { Ok(offer) } else { Err(form.mistakes) }
}

/// A handoff to a person asks something; `question` may be a sentence or an object.
fn question(form: &mut Form, to: &Party) -> Option<Question> {
    let mut question = match form.take::<Value>("question") {
        Some(Value::String(details)) => Question { details, blocking: true, ..Question::default() },
        Some(Value::Object(mut fields)) => {
            fields.entry("blocking").or_insert(true.into());
            match serde_json::from_value(Value::Object(fields)) {
                Ok(question) => question,
                Err(error) => {
                    form.mistakes.push(format!("/question: {error}"));
                    return None;
                }
            }
        }
        Some(_) => {
            form.mistakes.push("/question: expected a sentence or an object".into());
            return None;
        }
        None if *to == Party::Human => Question { blocking: true, ..Question::default() },
        None => return None,
    };
    if let Some(options) = form.take("options") {
        question.options = options;
    }
    if question.details.is_empty() {
        let summary = form.fields.get("summary").and_then(Value::as_str);
        question.details = summary.unwrap_or_default().to_owned();
    }
    Some(question)
}

/// Reads `{status, outputs, summary, unresolved, failure}`, or a sentence.
pub(super) fn response(by: &Party, payload: Value) -> Result<Response, Vec<String>> {
    let fields = match payload {
        Value::Object(fields) => fields,
        Value::Null => Fields::new(),
        Value::String(text) => return sentence(by, text),
        other => {
            return Err(vec![format!("`{other}` is neither an object nor a sentence")]);
        }
    };
    let mut form = Form { fields, mistakes: Vec::new() };
    let failure: Option<String> = form.take("failure");
    let outcome = match form.take::<String>("status").as_deref() {
        Some("resolved") => Outcome::Resolved,
        Some("partial") => Outcome::Partial,
        Some("failed") => Outcome::Failed,
        Some(other) => {
            form.mistakes.push(format!("/status: `{other}` is not resolved, partial or failed"));
            Outcome::Failed
        }
        None if failure.is_some() => Outcome::Failed,
        None => Outcome::Resolved,
    };
    let mut response = Response::new(by.clone(), outcome);
    response.summary = form.take("summary").unwrap_or_default();
    let said =
        Some(&response.summary).filter(|said| outcome == Outcome::Failed && !said.is_empty());
    response.failure = failure.or_else(|| said.cloned());
    response.unresolved = form.take("unresolved").unwrap_or_default();
    response.recommendations = form.take("recommendations").unwrap_or_default();
    response.outputs = form.rest("outputs");
    if form.mistakes.is_empty() { Ok(response) } else { Err(form.mistakes) }
}

/// Reads an answer that is one word for its outcome, or a sentence about work that is done.
fn sentence(by: &Party, text: String) -> Result<Response, Vec<String>> {
    let outcome = match text.trim() {
        "failed" => Outcome::Failed,
        "partial" => Outcome::Partial,
        // A document that was cut off says something else than that the work is done.
        torn if torn.starts_with(['{', '[']) => {
            return Err(vec![format!("`{torn}` begins like JSON, and is none")]);
        }
        _ => Outcome::Resolved,
    };
    Ok(Response { summary: text, ..Response::new(by.clone(), outcome) })
}

/// True if the text can name a party.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.len() <= 64 && text.chars().all(plain)
}
