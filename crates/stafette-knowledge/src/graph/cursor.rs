//! A position in an export, also as text.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::{NodeKey, Record, Relation};

/// The position at which an export continues.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default)]
pub enum Cursor {
    /// The beginning of the export.
    #[default]
    Start,
    /// The position after this node.
    AfterNode(NodeKey),
    /// The position after all nodes.
    Links,
    /// The position after this link.
    AfterLink(NodeKey, &'static str, NodeKey),
}

impl Cursor {
    /// Returns the position after this page; `None` after the last link.
    pub fn next(&self, page: &[Record]) -> Option<Cursor> {
        match (page.last(), self) {
            (Some(Record::Node(node)), _) => Some(Cursor::AfterNode(node.key())),
            (Some(Record::Link(link)), _) => {
                Some(Cursor::AfterLink(link.from.clone(), link.relation.as_str(), link.to.clone()))
            }
            (None, Cursor::Start | Cursor::AfterNode(_)) => Some(Cursor::Links),
            (None, _) => None,
        }
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = match self {
            Cursor::Start => return Ok(()),
            Cursor::AfterNode(key) => vec![key.to_string()],
            Cursor::Links => Vec::new(),
            Cursor::AfterLink(from, relation, to) => {
                vec![from.to_string(), (*relation).to_owned(), to.to_string()]
            }
        };
        write!(f, "{}", serde_json::json!(parts))
    }
}

/// The text is not a position in an export.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
#[error("`{text}` is no place in an export: they come with its pages")]
pub struct NotACursor {
    pub text: String,
}

impl FromStr for Cursor {
    type Err = NotACursor;
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || match serde_json::from_str::<Vec<String>>(text).ok()?.as_slice() {
            [] => Some(Cursor::Links),
            [key] => Some(Cursor::AfterNode(key.parse().ok()?)),
            [from, relation, to] => {
                let relation = Relation::named(relation)?.as_str();
                Some(Cursor::AfterLink(from.parse().ok()?, relation, to.parse().ok()?))
            }
            _ => None,
        };
        match text.is_empty() {
            true => Ok(Cursor::Start),
            false => parse().ok_or_else(|| NotACursor { text: text.to_owned() }),
        }
    }
}
