//! Timed events, in files or on a CalDAV server, and the search for free time between them.
//!
//! A calendar is a set of entries: one iCalendar text each, with a version (an ETag) that changes
//! with it. [`entry`] makes and reads them, [`occurrence`] computes when they take place, [`slots`]
//! finds free time, [`order`] keeps blocks after what they wait for. Everything that another
//! program wrote into an entry stays in it.

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

/// The largest size of one entry, in bytes.
pub const LARGEST_ENTRY: usize = 1 << 20;

/// The largest number of entries in one calendar.
pub const MOST_ENTRIES: usize = 20_000;

/// One entry: an event with all its exceptions.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Entry {
    /// The calendar's name for the entry: a file name or the last part of a URL.
    pub name: String,
    /// The version of the entry; it changes with the text.
    pub etag: String,
    /// The iCalendar text of the entry.
    pub text: String,
}

/// The versions that a caller has already seen, by entry name.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Seen {
    /// The version of the calendar as a whole; `None` where the calendar has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ctag: Option<String>,
    /// The version of each entry, by its name.
    pub etags: BTreeMap<String, String>,
}

/// The differences since a caller last looked.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// Entries that are new or have another version.
    pub changed: Vec<Entry>,
    /// The names of entries that were removed.
    pub removed: Vec<String>,
    /// The versions to pass to the next call.
    pub seen: Seen,
}

/// An operation on a calendar failed.
#[derive(Clone, PartialEq, Eq, Debug, Error)]
pub enum CalendarError {
    /// Another program changed or created the entry in the meantime. Read it and decide again.
    #[error("`{name}` was changed by somebody else")]
    Conflict { name: String },
    #[error("there is no `{name}` in the calendar")]
    Gone { name: String },
    #[error("`{name}` cannot be used: {why}")]
    Unusable { name: String, why: String },
    /// The calendar cannot be reached; the call can be retried.
    #[error("the calendar cannot be reached: {why}")]
    Away { why: String },
    #[error("the calendar refuses: {why}")]
    Refused { why: String },
    #[error("the calendar failed: {why}")]
    Failed { why: String },
}

/// A result that is ready later.
pub type Reply<'a, T> = Pin<Box<dyn Future<Output = Result<T, CalendarError>> + Send + 'a>>;

/// A store of calendar entries.
pub trait Calendar: fmt::Debug + Send + Sync {
    /// Returns what has changed since `seen`; everything if `seen` is empty.
    fn changes<'a>(&'a self, seen: &'a Seen) -> Reply<'a, Changes>;
    /// Returns one entry by its name.
    fn get<'a>(&'a self, name: &'a str) -> Reply<'a, Entry>;
    /// Writes an entry: a new one without `etag`, otherwise only in place of exactly that version.
    fn put<'a>(&'a self, name: &'a str, text: &'a str, etag: Option<&'a str>) -> Reply<'a, Entry>;
    /// Removes an entry if it still has exactly that version.
    fn remove<'a>(&'a self, name: &'a str, etag: &'a str) -> Reply<'a, ()>;
}

/// Accepts only names that are valid both as a file name and as one part of a URL.
pub(crate) fn check_name(name: &str) -> Result<(), CalendarError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@');
    let fits = (1..=200).contains(&name.len()) && !name.starts_with('.');
    if fits && name.chars().all(plain) && name.ends_with(".ics") {
        return Ok(());
    }
    let why = "a name has letters, digits, `-`, `_`, `@` or `.` and ends with .ics".to_owned();
    Err(CalendarError::Unusable { name: name.to_owned(), why })
}
