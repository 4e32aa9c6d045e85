//! The user's constitution: a Markdown document of numbered principles, the answers to each, and
//! the rule for when a recommendation is allowed.
//!
//! A principle is a numbered heading (`## 3. Leave a way back`) with the text below it, or an item
//! of a numbered list (`3. **Leave a way back.** What cannot be undone …`). Everything else is for
//! its readers alone.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The largest document that is read, in bytes.
pub const LARGEST: usize = 256 << 10;

/// The most principles in one constitution.
pub const MOST: usize = 200;

/// One principle of the constitution.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Principle {
    /// The number as it is written: `3`, `2.1`.
    pub id: String,
    /// The title of the principle.
    pub title: String,
    /// The text after the title; may be empty.
    pub text: String,
}

/// The parsed document of principles.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Constitution {
    /// The principles in the order of the document.
    pub principles: Vec<Principle>,
}

/// The document cannot be used.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum ParseError {
    #[error("the constitution has {bytes} bytes, the limit is {LARGEST}")]
    TooLarge {
        /// The size in bytes.
        bytes: usize,
    },
    #[error("the constitution has more than {MOST} principles")]
    TooMany,
    #[error("no principle was found: number them, as in `## 1. Do no harm` or `1. Do no harm`")]
    Empty,
    #[error("line {line}: principle {id} was there already, on line {first}")]
    Twice { id: String, first: usize, line: usize },
    #[error("line {line}: principle {id} says nothing")]
    Untitled {
        id: String,
        /// The line number, from 1.
        line: usize,
    },
}

impl Constitution {
    /// Parses a document.
    ///
    /// # Errors
    /// If it has no principles, too many, one without text or a number twice.
    pub fn parse(document: &str) -> Result<Self, ParseError> {
        if document.len() > LARGEST {
            return Err(ParseError::TooLarge { bytes: document.len() });
        }
        // If headings are numbered, numbered lists belong to the text below them.
        let by_heading = lines(document).any(|(_, line)| heading(line).is_some());
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        let mut principles: Vec<Principle> = Vec::new();
        let mut open = false;
        for (number, line) in lines(document) {
            let begins = if by_heading { heading(line) } else { item(line) };
            if let Some((id, rest)) = begins {
                let (title, text) = titled(rest, by_heading);
                if title.is_empty() {
                    return Err(ParseError::Untitled { id: id.to_owned(), line: number });
                }
                if let Some(first) = seen.insert(id.to_owned(), number) {
                    return Err(ParseError::Twice { id: id.to_owned(), first, line: number });
                }
                if principles.len() == MOST {
                    return Err(ParseError::TooMany);
                }
                principles.push(Principle { id: id.to_owned(), title, text });
                open = true;
            } else if line.starts_with('#') {
                open = false;
            } else if open && let Some(last) = principles.last_mut() {
                let line = line.trim();
                if !last.text.is_empty() || !line.is_empty() {
                    last.text.push_str(if last.text.is_empty() { "" } else { "\n" });
                    last.text.push_str(line);
                }
            }
        }
        if principles.is_empty() {
            return Err(ParseError::Empty);
        }
        for principle in &mut principles {
            principle.text.truncate(principle.text.trim_end().len());
        }
        Ok(Constitution { principles })
    }
}

/// Returns the lines numbered from 1, without fenced code.
fn lines(document: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fenced = false;
    (1..).zip(document.lines()).filter(move |(_, line)| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

fn heading(line: &str) -> Option<(&str, &str)> {
    let rest = line.strip_prefix('#')?.trim_start_matches('#');
    numbered(rest.strip_prefix(' ')?.trim_start())
}

fn item(line: &str) -> Option<(&str, &str)> {
    // Four spaces make it code, and any indent makes it a nested item.
    if line.starts_with([' ', '\t']) { None } else { numbered(line) }
}

/// Splits `2.1. Words`, `2.1 Words` or `2) Words`.
fn numbered(text: &str) -> Option<(&str, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, rest) = text.split_at(end);
    let id = number.strip_suffix('.').unwrap_or(number);
    let rest = rest.strip_prefix(')').unwrap_or(rest);
    let parts = id.split('.').all(|part| (1..=4).contains(&part.len()));
    let marked = rest.len() < text.len() - end || number.ends_with('.') || id.contains('.');
    let apart = rest.is_empty() || rest.starts_with(' ');
    (parts && marked && apart).then_some((id, rest.trim()))
}

/// Splits a line into the title and the text after it.
fn titled(rest: &str, by_heading: bool) -> (String, String) {
    let plain = |text: &str| text.trim().trim_end_matches(['.', ':', '#']).trim().to_owned();
    if !by_heading
        && let Some((title, text)) = rest.strip_prefix("**").and_then(|rest| rest.split_once("**"))
    {
        return (plain(title), text.trim_start_matches(['.', ':', '–', '-']).trim().to_owned());
    }
    (plain(rest), String::new())
}

/// The judgement on one principle.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    /// The proposal complies with the principle.
    Holds,
    /// The proposal violates the principle.
    Violated,
    /// The principle does not apply to the proposal.
    NotApplicable,
}

/// The answer to one principle.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PrincipleCheck {
    /// The number of the principle.
    pub principle: String,
    /// The judgement on the principle.
    pub verdict: Judgement,
    /// The reason for the judgement; must not be empty.
    pub reason: String,
}

/// The result of the discussion.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "UPPERCASE")]
pub enum Recommendation {
    /// The proposal can move on to the decision.
    Approve,
    /// The proposal must not go ahead.
    Reject,
    /// The proposal must be changed and discussed again.
    Revise,
}

/// The reason why a recommendation is not allowed yet.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum Objection {
    #[error("principle {id} ({title}) is not answered")]
    Unanswered { id: String, title: String },
    #[error("the answer to principle {id} gives no reason")]
    NoReason { id: String },
    #[error("there is no principle {id}")]
    Unknown { id: String },
    #[error("principle {id} is answered twice")]
    Twice { id: String },
    #[error("APPROVE is refused: principle {id} ({title}) is violated: {reason}")]
    Violated { id: String, title: String, reason: String },
    /// The alignment is not a number from 0 to 1.
    #[error("the alignment must be a number from 0 to 1")]
    Alignment,
}

/// An allowed recommendation with its grounds: the evidence for the next stage.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Checked {
    /// The answers in the order of the document.
    pub answers: Vec<PrincipleCheck>,
    /// The alignment with the goals, from 0 to 1.
    pub alignment: f64,
    /// The recommendation that was given.
    pub recommendation: Recommendation,
}

impl Constitution {
    /// Checks that these answers allow the recommendation. Returns all objections, not only the
    /// first.
    ///
    /// # Errors
    /// The objections, in the order of the document.
    pub fn recommend(
        &self,
        answers: &[PrincipleCheck],
        alignment: f64,
        recommendation: Recommendation,
    ) -> Result<Checked, Vec<Objection>> {
        let mut objections = Vec::new();
        let mut seen = BTreeSet::new();
        for answer in answers {
            let id = answer.principle.clone();
            if !self.principles.iter().any(|principle| principle.id == id) {
                objections.push(Objection::Unknown { id });
            } else if !seen.insert(&answer.principle) {
                objections.push(Objection::Twice { id });
            }
        }
        let mut ordered = Vec::new();
        for Principle { id, title, .. } in &self.principles {
            let Some(answer) = answers.iter().find(|answer| answer.principle == *id) else {
                objections.push(Objection::Unanswered { id: id.clone(), title: title.clone() });
                continue;
            };
            if answer.reason.trim().is_empty() {
                objections.push(Objection::NoReason { id: id.clone() });
            }
            if answer.verdict == Judgement::Violated && recommendation == Recommendation::Approve {
                objections.push(Objection::Violated {
                    id: id.clone(),
                    title: title.clone(),
                    reason: answer.reason.clone(),
                });
            }
            ordered.push(answer.clone());
        }
        if !(0.0..=1.0).contains(&alignment) {
            objections.push(Objection::Alignment);
        }
        match objections.is_empty() {
            true => Ok(Checked { answers: ordered, alignment, recommendation }),
            false => Err(objections),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SAMPLE: &str = "# Ours\n\nWe decided this together in 2024. It holds.\n\n\
        ## 1. Leave a way back\n\nWhat cannot be undone waits a night.\n\n1. Ask.\n2. Sleep.\n\n\
        ## 2. Health first\n\n## Notes\n\nNot a principle.\n\n## 2.1 Sleep\nEight hours.\n";

    fn answer(id: &str, verdict: Judgement) -> PrincipleCheck {
        PrincipleCheck { principle: id.into(), verdict, reason: "because".into() }
    }

    #[test]
    fn s1_07_numbered_headings_are_principles_and_their_text_is_kept() {
        let found = Constitution::parse(SAMPLE).expect("a constitution").principles;
        let titles: Vec<_> = found.iter().map(|p| (p.id.as_str(), p.title.as_str())).collect();
        assert_eq!(titles, [("1", "Leave a way back"), ("2", "Health first"), ("2.1", "Sleep")]);
        assert_eq!(found[0].text, "What cannot be undone waits a night.\n\n1. Ask.\n2. Sleep.");
        assert_eq!((found[1].text.as_str(), found[2].text.as_str()), ("", "Eight hours."));
    }

    #[test]
    fn s1_07_a_numbered_list_is_a_constitution_too() {
        let text = "Intro\n1. **Be kind.** To all.\n   Even late.\n```\n9. code\n```\n2) No debt\n";
        let found = Constitution::parse(text).expect("a constitution").principles;
        assert_eq!(found[0].title, "Be kind");
        assert_eq!(found[0].text, "To all.\nEven late.");
        assert_eq!((found[1].id.as_str(), found[1].title.as_str()), ("2", "No debt"));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn s1_07_a_document_that_cannot_be_meant_is_refused_with_its_line() {
        let wrong = |text| Constitution::parse(text).expect_err("refused").to_string();
        assert!(wrong("Just words in 2024.").contains("no principle"));
        assert_eq!(wrong("1. A\n1. B"), "line 2: principle 1 was there already, on line 1");
        assert_eq!(wrong("1.\n"), "line 1: principle 1 says nothing");
        assert!(wrong(&"x".repeat(LARGEST + 1)).contains("limit"));
    }

    #[test]
    fn s1_07_nothing_is_recommended_before_every_principle_is_answered() {
        let law = Constitution::parse(SAMPLE).expect("a constitution");
        let one = [answer("1", Judgement::Holds)];
        let missing = law.recommend(&one, 0.5, Recommendation::Reject).expect_err("two are open");
        let said: Vec<_> = missing.iter().map(Objection::to_string).collect();
        assert_eq!(
            said,
            ["principle 2 (Health first) is not answered", "principle 2.1 (Sleep) is not answered"]
        );
    }

    #[test]
    fn s1_07_approval_against_a_principle_is_refused_and_rejection_is_not() {
        let law = Constitution::parse(SAMPLE).expect("a constitution");
        let answers = [
            answer("2.1", Judgement::NotApplicable),
            answer("1", Judgement::Violated),
            answer("2", Judgement::Holds),
        ];
        let refused = law.recommend(&answers, 0.9, Recommendation::Approve).expect_err("violated");
        assert!(matches!(&refused[..], [Objection::Violated { id, .. }] if id == "1"));
        let given = law.recommend(&answers, 0.9, Recommendation::Revise).expect("may be given");
        let order: Vec<_> = given.answers.iter().map(|a| a.principle.as_str()).collect();
        assert_eq!(order, ["1", "2", "2.1"]);
    }

    #[test]
    fn s1_07_answers_that_are_none_are_named() {
        let law = Constitution::parse("1. A").expect("a constitution");
        let mut empty = answer("1", Judgement::Holds);
        empty.reason = "  ".into();
        let answers = [empty.clone(), empty, answer("7", Judgement::Holds)];
        let found = law.recommend(&answers, f64::NAN, Recommendation::Approve).expect_err("bad");
        let said: Vec<_> = found.iter().map(Objection::to_string).collect();
        assert_eq!(
            said,
            [
                "principle 1 is answered twice",
                "there is no principle 7",
                "the answer to principle 1 gives no reason",
                "the alignment must be a number from 0 to 1"
            ]
        );
    }
}
