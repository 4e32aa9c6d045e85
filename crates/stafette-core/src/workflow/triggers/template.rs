//! A request with placeholders for the data of a trigger.

use serde_json::Value;
use thiserror::Error;

/// The maximum size of a filled-in value, in bytes.
const MOST: usize = 8 * 1024;

/// A request with placeholders.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template(Vec<Part>);

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    Trigger,
    Time,
    Payload(Vec<String>),
}

/// A request cannot be built.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum TemplateError {
    #[error("a `{{` is not closed; write `{{{{` for the sign itself")]
    Open,
    #[error(
        "`{{{name}}}` is nothing that a trigger knows: it is {{trigger}}, {{time}} or {{payload.…}}"
    )]
    Unknown { name: String },
    #[error("the payload has no `{path}`")]
    Missing { path: String },
}

impl Template {
    /// Parses a text with placeholders in braces; `{{` and `}}` are literal braces.
    ///
    /// # Errors
    /// A brace is not closed, or a placeholder is unknown.
    pub fn parse(text: &str) -> Result<Self, TemplateError> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(at) = rest.find(['{', '}']) {
            plain.push_str(&rest[..at]);
            let sign = &rest[at..];
            if let Some(after) = sign.strip_prefix("{{") {
                plain.push('{');
                rest = after;
            } else if let Some(after) = sign.strip_prefix("}}").or_else(|| sign.strip_prefix('}')) {
                plain.push('}');
                rest = after;
            } else {
                let end = sign.find('}').ok_or(TemplateError::Open)?;
                parts.push(Part::Text(std::mem::take(&mut plain)));
                parts.push(Part::of(sign[1..end].trim())?);
                rest = &sign[end + 1..];
            }
        }
        plain.push_str(rest);
        parts.push(Part::Text(plain));
        Ok(Template(parts))
    }

    /// True if it needs a payload.
    pub fn wants_payload(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Payload(_)))
    }

    /// Fills in the placeholders and returns the request.
    ///
    /// # Errors
    /// The payload lacks a value that the request names.
    pub fn fill(
        &self,
        trigger: &str,
        time: &str,
        payload: &Value,
    ) -> Result<String, TemplateError> {
        let mut text = String::new();
        for part in &self.0 {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Trigger => text.push_str(trigger),
                Part::Time => text.push_str(time),
                Part::Payload(path) => {
                    let found = path.iter().try_fold(payload, |value, step| match value {
                        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
                        value => value.get(step),
                    });
                    let missing = || TemplateError::Missing { path: path.join(".") };
                    let said = match found.ok_or_else(missing)? {
                        Value::String(said) => said.clone(),
                        Value::Null => return Err(missing()),
                        other => other.to_string(),
                    };
                    text.push_str(&said[..said.floor_char_boundary(MOST)]);
                }
            }
        }
        Ok(text)
    }
}

impl Part {
    fn of(name: &str) -> Result<Self, TemplateError> {
        match name {
            "trigger" => Ok(Part::Trigger),
            "time" => Ok(Part::Time),
            "payload" => Ok(Part::Payload(Vec::new())),
            name => match name.strip_prefix("payload.") {
                Some(path) if path.split('.').all(|step| !step.is_empty()) => {
                    Ok(Part::Payload(path.split('.').map(str::to_owned).collect()))
                }
                _ => Err(TemplateError::Unknown { name: name.to_owned() }),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn b_16_a_request_is_filled_from_the_payload() {
        let text =
            "Look at {payload.issue.title} ({payload.labels.0}, {payload.n}) by {trigger} {{so}}";
        let template = Template::parse(text).expect("a template");
        assert!(template.wants_payload());
        let payload =
            json!({ "issue": { "title": "It broke {payload.n}" }, "labels": ["bug"], "n": 3 });
        assert_eq!(
            template.fill("issues", "now", &payload).as_deref(),
            Ok("Look at It broke {payload.n} (bug, 3) by issues {so}")
        );
        let missing = template.fill("issues", "now", &json!({})).expect_err("nothing there");
        assert_eq!(missing.to_string(), "the payload has no `issue.title`");
    }

    #[test]
    fn places_that_nothing_fills_are_named() {
        assert_eq!(Template::parse("a { b"), Err(TemplateError::Open));
        for wrong in ["{}", "{who}", "{payload.}", "{payload..a}"] {
            assert!(
                matches!(Template::parse(wrong), Err(TemplateError::Unknown { .. })),
                "{wrong}"
            );
        }
        let long = json!({ "a": "ä".repeat(10_000) });
        let filled = Template::parse("{payload.a}").expect("one").fill("t", "", &long);
        assert!(filled.expect("cut").len() <= MOST);
    }
}
