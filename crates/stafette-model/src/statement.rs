//! An answer as its giver states it: every interface reads its fields into this, so that what they mean
//! together, and whether they say anything, is decided in one place.

use crate::offer::{Outcome, Response};
use crate::{Fields, Party};

/// The fields of an answer. Those that were not given are empty.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Statement {
    /// The outcome; `None` if the giver named none.
    pub outcome: Option<Outcome>,
    /// What was done, in a few sentences.
    pub summary: String,
    /// The values that are provided.
    pub outputs: Fields,
    /// The names of the inputs that could not be provided.
    pub unresolved: Vec<String>,
    /// The cause, if the work failed.
    pub failure: Option<String>,
    /// Suggested next steps for the asker.
    pub recommendations: Vec<String>,
}

impl Statement {
    /// The complaint about an answer that says nothing.
    pub const NOTHING: &'static str = "it says nothing: give a text, or a `status` (by HTTP an `outcome`), a `summary` or `outputs`";

    /// True if nothing is stated: to take that for success would be to guess.
    pub fn is_empty(&self) -> bool {
        let is_blank = |text: &String| text.trim().is_empty();
        self.outcome.is_none()
            && is_blank(&self.summary)
            && self.outputs.is_empty()
            && self.unresolved.iter().all(is_blank)
            && self.failure.iter().all(is_blank)
            && self.recommendations.iter().all(is_blank)
    }

    /// Converts it to an answer. Without an outcome, work with a cause of failure has failed and any
    /// other is done. A recovery needs a cause, so that the summary stands in for a missing one.
    #[must_use]
    pub fn response(self, by: Party) -> Response {
        let said = |text: &String| !text.trim().is_empty();
        let failure = self.failure.filter(said);
        let otherwise = if failure.is_some() { Outcome::Failed } else { Outcome::Resolved };
        let outcome = self.outcome.unwrap_or(otherwise);
        let summary = Some(&self.summary).filter(|it| outcome == Outcome::Failed && said(it));
        Response {
            failure: failure.or_else(|| summary.cloned()),
            summary: self.summary,
            outputs: self.outputs,
            unresolved: self.unresolved,
            recommendations: self.recommendations,
            ..Response::new(by, outcome)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_19_an_answer_states_something() {
        let blank = Statement {
            summary: " \n".into(),
            failure: Some(String::new()),
            unresolved: vec![" ".into()],
            ..Statement::default()
        };
        for empty in [Statement::default(), blank] {
            assert!(empty.is_empty(), "{empty:?}");
        }
        let outputs = Fields::from_iter([("n".to_owned(), serde_json::Value::Null)]);
        for stated in [
            Statement { outcome: Some(Outcome::Resolved), ..Statement::default() },
            Statement { outputs, ..Statement::default() },
            Statement { recommendations: vec!["ask ada".into()], ..Statement::default() },
            Statement { unresolved: vec!["size".into()], ..Statement::default() },
        ] {
            assert!(!stated.is_empty(), "{stated:?}");
        }
    }

    #[test]
    fn b_19_a_failure_is_no_success_and_has_a_cause() {
        let read = |outcome, failure: Option<&str>| {
            let (summary, failure) = ("no space".to_owned(), failure.map(str::to_owned));
            let stated = Statement { outcome, summary, failure, ..Statement::default() };
            let response = stated.response("planner".into());
            (response.outcome, response.failure)
        };
        let because = |why: &str| Some(why.to_owned());
        assert_eq!(read(None, None), (Outcome::Resolved, None));
        assert_eq!(read(None, Some("disk full")), (Outcome::Failed, because("disk full")));
        assert_eq!(read(None, Some(" ")), (Outcome::Resolved, None));
        assert_eq!(read(Some(Outcome::Failed), None), (Outcome::Failed, because("no space")));
        assert_eq!(read(Some(Outcome::Partial), None), (Outcome::Partial, None));
    }
}
