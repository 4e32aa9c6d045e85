//! A person leaves a note: it reaches the next generation, even if this one has ended.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Lineage, NOTE, Note};
use crate::run::{Draft, Run};
use crate::text::clip;
use crate::{Event, Fields, Ignored, Reply, TeamEvent, Time};

/// A person left a note.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct NoteLeft {
    /// The text of the note.
    pub text: String,
    /// The name of the person.
    pub by: String,
}

pub(in crate::team) fn decide(draft: &mut Draft, text: &str, by: String) -> Reply {
    let text = clip(text, NOTE);
    if text.is_empty() {
        return Reply::Ignored(Ignored::Unchanged);
    }
    draft.record(Event::Team(TeamEvent::NoteLeft(NoteLeft { text, by })));
    Reply::Recorded
}

impl NoteLeft {
    pub(in crate::team) fn apply(&self, run: &mut Run, at: Time) {
        let since = run.created_at;
        let note = Note { text: self.text.clone(), by: self.by.clone(), at };
        let first = || Box::new(Lineage::first(since, Fields::new()));
        run.team.lineage.get_or_insert_with(first).note(note);
    }
}
