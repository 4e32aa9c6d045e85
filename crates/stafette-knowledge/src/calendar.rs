//! Events with a time, in files or behind CalDAV, and where there is room for more of them.
//!
//! A calendar is kept as entries: one iCalendar text each, with a version (an ETag) that changes
//! with it. [`entry`] makes and reads them, [`occurrence`] says when they take place, [`slots`] finds
//! room, [`order`] keeps blocks behind what they wait for. Everything that another program wrote
//! into an entry stays in it.

use std::collections::BTreeMap;
use std::fmt;
use std::pin::Pin;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use thiserror::Error;

mod caldav;
pub mod content;
pub mod entry;
mod folder;
pub mod occurrence;
pub mod order;
pub mod proposal;
pub mod recurrence;
pub mod slots;
pub mod zone;

pub use caldav::{CalDav, CalDavSettings};
pub use folder::Folder;

/// The largest entry, in bytes.
pub const LARGEST_ENTRY: usize = 1 << 20;

/// The most entries of one calendar.
pub const MOST_ENTRIES: usize = 20_000;

/// One entry: an event with all its exceptions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// What the calendar calls it: a file's name or the last part of an address.
    pub name: String,
    /// Its version.
    pub etag: String,
    /// Its iCalendar text.
    pub text: String,
}

/// Which versions somebody has seen, by name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// The version of the calendar as a whole, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ctag: Option<String>,
    /// The version of each entry.
    pub etags: BTreeMap<String, String>,
}

/// What is different from what was seen.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// Entries that are new or have another version.
    pub changed: Vec<Entry>,
    /// Names that are gone.
    pub removed: Vec<String>,
    /// What has been seen now.
    pub seen: Seen,
}

/// Something went wrong with a calendar.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CalendarError {
    /// Somebody else changed or made it in the meantime. Read it again and decide again.
    #[error("`{name}` was changed by somebody else")]
    Conflict {
        /// Which entry.
        name: String,
    },
    /// It is not there.
    #[error("there is no `{name}` in the calendar")]
    Gone {
        /// Which entry.
        name: String,
    },
    /// The entry cannot be used.
    #[error("`{name}` cannot be used: {why}")]
    Unusable {
        /// Which entry.
        name: String,
        /// Why.
        why: String,
    },
    /// The calendar cannot be reached; the same can be tried again.
    #[error("the calendar cannot be reached: {why}")]
    Away {
        /// What was heard.
        why: String,
    },
    /// The calendar does not let us.
    #[error("the calendar refuses: {why}")]
    Refused {
        /// What it said.
        why: String,
    },
    /// Anything else.
    #[error("the calendar failed: {why}")]
    Failed {
        /// What was said.
        why: String,
    },
}

/// An answer that comes later.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, CalendarError>> + Send + 'a>>;

/// A place where entries are kept.
pub trait Calendar: fmt::Debug + Send + Sync {
    /// What has changed since `seen`; all of it for somebody who has seen nothing.
    fn changes<'a>(&'a self, seen: &'a Seen) -> Reply<'a, Changes>;
    /// One entry.
    fn get<'a>(&'a self, name: &'a str) -> Reply<'a, Entry>;
    /// Writes an entry: a new one without `etag`, or in place of exactly that version.
    fn put<'a>(&'a self, name: &'a str, text: &'a str, etag: Option<&'a str>) -> Reply<'a, Entry>;
    /// Removes exactly that version.
    fn remove<'a>(&'a self, name: &'a str, etag: &'a str) -> Reply<'a, ()>;
}

/// A name that can be a file and a part of an address, and nothing more.
pub(crate) fn check_name(name: &str) -> Result<(), CalendarError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    let fits = (1..=200).contains(&name.len()) && !name.starts_with('.');
    if fits && name.chars().all(plain) && name.ends_with(".ics") {
        return Ok(());
    }
    let why = "a name has letters, digits, `-`, `_`, `@` or `.` and ends with .ics".to_owned();
    Err(CalendarError::Unusable { name: name.to_owned(), why })
}
