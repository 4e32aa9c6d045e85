//! Checks that a signal says something. What is empty, or uses names that nobody reads, would count
//! as success or ask a person nothing: it is refused while the agent can still correct it.

use serde_json::Value;
use stafette_core::{Fields, Offer, Party, Reason, Usd};
use stafette_text::nearest;

use crate::harvest::is_document;

/// The fields of an answer; each of them says something about the turn.
const ANSWER: [&str; 6] =
    ["status", "summary", "outputs", "failure", "unresolved", "recommendations"];

/// The fields that can hold a question to a person.
const QUESTION: [&str; 2] = ["question", "summary"];

/// Checks that an answer says something, and that a report's amounts are amounts.
///
/// # Errors
/// Every mistake, with its path.
pub(crate) fn says(kind: &str, payload: &Value) -> Result<(), Vec<String>> {
    let mistakes = match kind {
        "RESULT" => answers(payload).into_iter().collect(),
        "REPORT" => amounts(payload),
        _ => Vec::new(),
    };
    if mistakes.is_empty() { Ok(()) } else { Err(mistakes) }
}

/// Checks that the offers to a person ask something, and those to the orchestrator, which asks a
/// person too.
///
/// # Errors
/// What is missing, with the field that was probably meant.
pub(super) fn asks(offers: &[Offer], payload: &Value) -> Result<(), Vec<String>> {
    let is_silent = |to: &Party, offer: &Offer| {
        let details = offer.question.as_ref().map(|question| question.details.trim());
        offer.to == *to
            && offer.reason != Reason::Completion
            && offer.missing.is_empty()
            && details.unwrap_or_default().is_empty()
            && offer.summary.trim().is_empty()
            && offer.detail.trim().is_empty()
    };
    if offers.iter().any(|offer| is_silent(&Party::Orchestrator, offer)) {
        let nothing = "HANDOFF: /summary: the orchestrator is told nothing: say in `summary` what a \
                       person is to decide; work that is done ends with `RESULT`";
        return Err(vec![nothing.to_owned()]);
    }
    if !offers.iter().any(|offer| is_silent(&Party::Human, offer)) {
        return Ok(());
    }
    let fields = payload.as_object();
    let unknown = fields.into_iter().flat_map(|fields| fields.keys()).map(String::as_str);
    let meant = meant(unknown.filter(|name| !QUESTION.contains(name)), &QUESTION);
    let meant = meant.map(|(word, known)| format!("; did you mean `{known}` by `{word}`?"));
    Err(vec![format!(
        "HANDOFF: /question: a person is asked nothing: say it in `question` or `summary`{}",
        meant.unwrap_or_default()
    )])
}

/// The mistake of an answer that says nothing.
fn answers(payload: &Value) -> Option<String> {
    let nothing = "RESULT: it says nothing: give a text, or a `status`, a `summary` or `outputs`";
    match payload {
        Value::Object(fields) if is_document(fields) => None,
        Value::Object(fields) if ANSWER.iter().any(|name| holds(fields, name)) => None,
        Value::Object(fields) => {
            let mut unknown =
                fields.keys().map(String::as_str).filter(|name| !ANSWER.contains(name));
            let Some(first) = unknown.next() else { return Some(nothing.to_owned()) };
            let words = std::iter::once(first).chain(unknown);
            // Whatever its name, one word about the outcome is what every answer has.
            let (word, known) = meant(words, &ANSWER).unwrap_or((first, "status"));
            Some(format!(
                "RESULT: /{word}: it has no `status`, `summary` or `outputs`; did you mean \
                 `{known}`? Outputs go into `outputs`"
            ))
        }
        payload if is_empty(payload) => Some(nothing.to_owned()),
        _ => None,
    }
}

/// The mistakes in the amounts of a report: what is negative or no number would be dropped.
fn amounts(payload: &Value) -> Vec<String> {
    let is_count = |value: &Value| value.as_u64().is_some();
    let is_money = |value: &Value| value.as_f64().and_then(Usd::from_dollars).is_some();
    let wrong = |name: &str, is_amount: &dyn Fn(&Value) -> bool, what: &str| {
        let value = payload.get(name).filter(|value| !value.is_null() && !is_amount(value))?;
        Some(format!("REPORT: /{name}: `{value}` is not {what}"))
    };
    let money = "an amount of dollars, 0 or more";
    let mistakes = [
        wrong("tokens", &is_count, "a whole number, 0 or more"),
        wrong("cost_usd", &is_money, money),
        wrong("usd", &is_money, money),
    ];
    mistakes.into_iter().flatten().collect()
}

fn holds(fields: &Fields, name: &str) -> bool {
    fields.get(name).is_some_and(|value| !is_empty(value))
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.trim().is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
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

#[cfg(test)]
mod tests {
    use serde_json::json;
    use stafette_core::AgentName;

    use super::*;
    use crate::tell::read;

    fn mistake(kind: &str, payload: Value) -> String {
        let agent: AgentName = "builder".parse().expect("a name");
        let told = read(&agent, kind, payload);
        told.map_or_else(|mistakes| mistakes.join("; "), |_| "taken".to_owned())
    }

    #[test]
    fn b_19_an_answer_that_says_nothing_is_refused() {
        for empty in [json!(""), json!(" \n"), json!(null), json!({}), json!({ "summary": "" })] {
            let said = mistake("RESULT", empty.clone());
            assert!(said.starts_with("RESULT: it says nothing: give a text"), "{empty}: {said}");
        }
        for (payload, meant) in [
            (
                json!({ "stat": "failed" }),
                "RESULT: /stat: it has no `status`, `summary` or `outputs`; did you mean `status`?",
            ),
            (
                json!({ "n": 1, "sumary": "x" }),
                "RESULT: /sumary: it has no `status`, `summary` or `outputs`; did you mean `summary`?",
            ),
            (
                json!({ "verdict": "good" }),
                "RESULT: /verdict: it has no `status`, `summary` or `outputs`; did you mean `status`?",
            ),
        ] {
            let said = mistake("RESULT", payload);
            assert!(said.starts_with(meant), "{said}");
        }
        for said in [
            json!("done"),
            json!({ "status": "resolved" }),
            json!({ "summary": "done" }),
            json!({ "outputs": { "n": 1 }, "commit": "abc" }),
            json!({ "failure": "no space left" }),
        ] {
            assert_eq!(mistake("RESULT", said.clone()), "taken", "{said}");
        }
    }

    #[test]
    fn b_18_a_person_is_not_asked_an_empty_question() {
        let nothing =
            "HANDOFF: /question: a person is asked nothing: say it in `question` or `summary`";
        for empty in [
            json!("human"),
            json!({ "to": "human" }),
            json!({ "to": "human", "question": " ", "options": ["a", "b"] }),
        ] {
            assert_eq!(mistake("HANDOFF", empty.clone()), nothing, "{empty}");
        }
        let typo = mistake("HANDOFF", json!({ "to": "human", "questions": "Which?" }));
        assert_eq!(typo, format!("{nothing}; did you mean `question` by `questions`?"));
        for asked in [
            json!({ "to": "human", "question": "Which?" }),
            json!({ "to": "human", "question": { "details": "Which?" } }),
            json!({ "to": "human", "summary": "Have a look" }),
            json!({ "to": "human", "missing": [{ "key": "port", "expectedType": "number" }] }),
            json!({ "to": "reviewer" }),
        ] {
            let said = mistake("HANDOFF", asked.clone());
            assert!(!said.contains("/question"), "{asked}: {said}");
        }
    }

    #[test]
    fn b_18_the_orchestrator_is_told_what_to_ask() {
        let said = mistake("HANDOFF", json!("orchestrator"));
        assert!(said.starts_with("HANDOFF: /summary: the orchestrator is told nothing"), "{said}");
        for told in [
            json!({ "to": "orchestrator", "summary": "Two ways are open" }),
            json!({ "to": "orchestrator", "reason": "completion" }),
        ] {
            assert_eq!(mistake("HANDOFF", told.clone()), "taken", "{told}");
        }
    }

    #[test]
    fn b_05_a_report_has_no_amounts_below_zero() {
        for (payload, wrong) in [
            (json!({ "tokens": -5 }), "REPORT: /tokens: `-5` is not a whole number, 0 or more"),
            (json!({ "tokens": "5" }), "REPORT: /tokens: `\"5\"` is not a whole number, 0 or more"),
            (
                json!({ "cost_usd": -0.5 }),
                "REPORT: /cost_usd: `-0.5` is not an amount of dollars, 0 or more",
            ),
            (json!({ "usd": -1 }), "REPORT: /usd: `-1` is not an amount of dollars, 0 or more"),
        ] {
            assert_eq!(mistake("REPORT", payload), wrong);
        }
        let fine = json!({ "tokens": 5, "cost_usd": 0.5, "note": "half way" });
        assert_eq!(mistake("REPORT", fine), "taken");
        assert_eq!(mistake("REPORT", json!({ "tokens": null })), "taken");
    }

    #[test]
    fn the_kinds_are_named_when_one_is_not_known() {
        let said = mistake("DONE", json!("x"));
        assert!(said.contains("READY, HANDOFF,") && said.contains("or MESSAGE"), "{said}");
    }
}
