//! The short forms: a stage's name, or an object with the fields that matter.

use serde_json::Value;
use stafette_core::{
    Fields, Kind, Millis, MissingInput, Offer, Outcome, Party, Priority, Question, Reason,
    Response, Statement, Usage, Usd,
};
use stafette_text::nearest;

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

    /// The remaining fields, with these: all of them are handed along.
    fn rest(&mut self, mut outputs: Fields) -> Fields {
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
    let outputs = form.take("outputs").unwrap_or_default();
    offer.outputs = form.rest(outputs);
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

/// The fields of an answer; each of them states something about the turn.
const ANSWER: [&str; 6] =
    ["status", "summary", "outputs", "failure", "unresolved", "recommendations"];

/// Other names that programs give the status of their work.
const STATUS: [&str; 3] = ["status", "state", "outcome"];

/// Reads `{status, outputs, summary, unresolved, failure}`, or a sentence. Nothing else has to be said
/// with a vote.
pub(super) fn response(by: &Party, payload: Value, votes: bool) -> Result<Response, Vec<String>> {
    let fields = match payload {
        Value::Object(fields) => fields,
        Value::Null => Fields::new(),
        Value::String(text) => return sentence(by, text),
        other => {
            return Err(vec![format!("`{other}` is neither an object nor a sentence")]);
        }
    };
    let mut form = Form { fields, mistakes: Vec::new() };
    let outcome = status(&mut form);
    let mut stated = Statement {
        outcome,
        summary: form.take("summary").unwrap_or_default(),
        outputs: form.take("outputs").unwrap_or_default(),
        unresolved: form.take("unresolved").unwrap_or_default(),
        failure: form.take("failure"),
        recommendations: form.take("recommendations").unwrap_or_default(),
    };
    if form.mistakes.is_empty() && stated.is_empty() && !votes {
        form.mistakes.push(nothing(&form.fields));
    }
    stated.outputs = form.rest(stated.outputs);
    if form.mistakes.is_empty() { Ok(stated.response(by.clone())) } else { Err(form.mistakes) }
}

/// Reads the status of the work. Under a name that is not quite its own it would be one more output, and
/// the work a success.
fn status(form: &mut Form) -> Option<Outcome> {
    if let Some(word) = form.take::<String>("status") {
        let outcome = Outcome::read(&word);
        if outcome.is_none() {
            form.mistakes.push(format!("/status: `{word}` is not resolved, partial or failed"));
        }
        return outcome;
    }
    let is_other = |name: &str| STATUS.iter().any(|other| name.eq_ignore_ascii_case(other));
    let is_meant = |name: &str, word: &str| {
        is_other(name)
            || (!word.contains(char::is_whitespace)
                && meant(std::iter::once(name), &ANSWER)
                    .is_some_and(|(_, known)| known == "status"))
    };
    let words = form.fields.iter().filter_map(|(name, value)| Some((name, value.as_str()?)));
    let (name, word) = words.into_iter().find(|(name, word)| is_meant(name, word))?;
    let (name, word) = (name.clone(), word.to_owned());
    let outcome = Outcome::read(&word).filter(|_| is_other(&name));
    if outcome.is_some() {
        form.fields.shift_remove(&name);
    } else {
        form.mistakes.push(format!(
            "/{name}: did you mean `status`? It is resolved, partial or failed; an output of that \
             name goes into `outputs`"
        ));
    }
    outcome
}

/// The mistake of an answer that says nothing, with the field that was probably meant.
fn nothing(fields: &Fields) -> String {
    let mut names = fields.keys().map(String::as_str);
    let Some(first) = names.next() else { return Statement::NOTHING.to_owned() };
    // Whatever its name, one word about the outcome is what every answer has.
    let words = std::iter::once(first).chain(names);
    let (word, known) = meant(words, &ANSWER).unwrap_or((first, "status"));
    format!(
        "/{word}: it has no `status`, `summary` or `outputs`; did you mean `{known}`? Outputs go \
         into `outputs`"
    )
}

/// The first of the words that is nearly a known one, or the beginning of it, and that one.
fn meant<'a>(
    words: impl Iterator<Item = &'a str>,
    known: &[&'static str],
) -> Option<(&'a str, &'static str)> {
    let begins =
        |word: &str| known.iter().copied().find(|known| word.len() > 2 && known.starts_with(word));
    let mut words =
        words.map(|word| (word, begins(word).or_else(|| nearest(word, known.iter().copied()))));
    words.find_map(|(word, known)| Some((word, known?)))
}

/// Reads an answer that is one word for its outcome, or a sentence about work that is done.
fn sentence(by: &Party, summary: String) -> Result<Response, Vec<String>> {
    // A document that was cut off says something else than that the work is done.
    if summary.trim().starts_with(['{', '[']) {
        return Err(vec![format!("`{}` begins like JSON, and is none", summary.trim())]);
    }
    let outcome = Outcome::read(&summary);
    let stated = Statement { outcome, summary, ..Statement::default() };
    if stated.is_empty() {
        return Err(vec![Statement::NOTHING.to_owned()]);
    }
    Ok(stated.response(by.clone()))
}

/// The fields of a progress report.
const REPORT: [&str; 4] = ["tokens", "cost_usd", "usd", "note"];

/// Reads `{tokens, cost_usd, note}`, or a note: what was used and what is going on, as far as it can be
/// read, and the mistakes. What is negative, no number or of another name would count as nothing.
pub(super) fn report(payload: &Value) -> (Usage, Option<&str>, Vec<String>) {
    let mut mistakes = Vec::new();
    for name in payload.as_object().into_iter().flat_map(Fields::keys) {
        if !REPORT.contains(&name.as_str()) {
            let known = meant(std::iter::once(name.as_str()), &REPORT).map(|(_, known)| known);
            let cost = || name.to_lowercase().contains("cost").then_some("cost_usd");
            let hint = known.or_else(cost).map(|known| format!("did you mean `{known}`? "));
            mistakes.push(format!(
                "/{name}: {}a report has `tokens`, `cost_usd` and `note`",
                hint.unwrap_or_default()
            ));
        }
    }
    let given = |name: &str| payload.get(name).filter(|value| !value.is_null());
    let tokens = given("tokens").map(|value| value.as_u64().ok_or(value));
    let tokens = tokens.transpose().unwrap_or_else(|value| {
        mistakes.push(format!("/tokens: `{value}` is not a whole number, 0 or more"));
        None
    });
    let mut dollars = None;
    for name in ["cost_usd", "usd"] {
        let Some(value) = given(name) else { continue };
        match value.as_f64().and_then(Usd::from_dollars) {
            Some(amount) => dollars = dollars.or(Some(amount)),
            None => {
                mistakes.push(format!("/{name}: `{value}` is not an amount of dollars, 0 or more"))
            }
        }
    }
    let note = payload.as_str().or_else(|| payload.get("note").and_then(Value::as_str));
    let usage = Usage::exactly(tokens.unwrap_or(0), dollars.unwrap_or_default());
    (usage, note, mistakes)
}

/// True if the text can name a party.
fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    !text.is_empty() && text.len() <= 64 && text.chars().all(plain)
}
