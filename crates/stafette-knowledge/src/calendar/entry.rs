//! Calendar entries that Stafette writes: a block of time for a task.

use stafette_core::Time;

use super::content::{Component, ContentError, Property};
use super::zone::utc;
use crate::graph::NodeKey;

/// The property with the key of the task.
pub const TASK: &str = "X-STAFETTE-TASK";

/// Returns the name of a new entry, made from the id of its event.
pub fn name(uid: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '@');
    let uid: String = uid.chars().map(|c| if plain(c) { c } else { '-' }).take(190).collect();
    format!("{uid}.ics")
}

/// Returns the iCalendar text of a new entry.
pub fn event(
    uid: &str,
    title: &str,
    notes: &str,
    (start, end): (Time, Time),
    task: Option<&NodeKey>,
    now: Time,
) -> String {
    let mut event = Component::new("VEVENT");
    event.properties = vec![
        Property::text("UID", uid),
        Property::new("DTSTAMP", utc(now)),
        Property::new("DTSTART", utc(start)),
        Property::new("DTEND", utc(end)),
        Property::text("SUMMARY", title),
    ];
    if !notes.is_empty() {
        event.properties.push(Property::text("DESCRIPTION", notes));
    }
    if let Some(task) = task {
        event.properties.push(Property::text(TASK, &task.to_string()));
    }
    let mut calendar = Component::new("VCALENDAR");
    calendar.properties =
        vec![Property::new("VERSION", "2.0"), Property::new("PRODID", "-//Stafette//EN")];
    calendar.components.push(event);
    calendar.print()
}

/// Returns the same entry at another time; everything else in it stays.
pub fn moved(text: &str, start: Time, end: Time, now: Time) -> Result<String, ContentError> {
    let mut calendar = Component::parse(text)?;
    let event = calendar.components.iter_mut().find(|part| part.name == "VEVENT");
    let Some(event) = event else {
        return Err(ContentError { line: 1, why: "it has no event".to_owned() });
    };
    let sequence = event.text("SEQUENCE").and_then(|number| number.parse::<u32>().ok());
    event.properties.retain(|property| property.name != "DURATION");
    event.set(Property::new("DTSTART", utc(start)));
    event.set(Property::new("DTEND", utc(end)));
    event.set(Property::new("DTSTAMP", utc(now)));
    event.set(Property::new("SEQUENCE", (sequence.unwrap_or(0) + 1).to_string()));
    Ok(calendar.print())
}
