//! Pausing and unpausing a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run, Stage};
use crate::{Event, Ignored, Reply};

/// The run was paused: no new turns are ordered.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunPaused {
    /// The name of the person who paused it.
    pub by: String,
}

/// The run continues after a pause.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunUnpaused {
    /// The name of the person who resumed it.
    pub by: String,
}

pub(super) fn pause(draft: &mut Draft, by: String) -> Reply {
    if draft.run.stage != Stage::Active {
        return Reply::Ignored(Ignored::Unchanged);
    }
    draft.record(Event::RunPaused(RunPaused { by }));
    Reply::Recorded
}

pub(super) fn unpause(draft: &mut Draft, by: String) -> Reply {
    if draft.run.stage != Stage::Paused {
        return Reply::Ignored(Ignored::Unchanged);
    }
    draft.record(Event::RunUnpaused(RunUnpaused { by }));
    Reply::Recorded
}

impl RunPaused {
    pub(super) fn apply(&self, run: &mut Run) {
        run.stage = Stage::Paused;
    }
}

impl RunUnpaused {
    pub(super) fn apply(&self, run: &mut Run) {
        run.stage = Stage::Active;
    }
}

#[cfg(test)]
mod tests {
    use crate::run::story::{RELAY, Story, h, pass};
    use crate::{Input, Status};

    #[test]
    fn a_paused_run_gives_out_nothing_new_and_loses_nothing() {
        let mut story = Story::new(RELAY);
        story.input(Input::Pause { by: "ada".into() }).hands(h(1), vec![pass("builder")]);
        assert_eq!(story.status(), Status::Paused);
        assert_eq!(story.run.outbox().count(), 0);
        story.input(Input::Unpause { by: "ada".into() });
        assert_eq!(story.run.outbox().count(), 1);
    }

    #[test]
    fn a_cancelled_run_is_over_and_wants_nothing() {
        let mut story = Story::new(RELAY);
        story.accept(h(1)).input(Input::Cancel { by: "ada".into(), why: String::new() });
        assert_eq!(story.status(), Status::Cancelled);
        assert_eq!(story.run.outbox().count(), 0);
        assert_eq!(story.state(h(1)), "cancelled");
        let before = story.log.len();
        story.input(Input::Tick).input(Input::Pause { by: "ada".into() });
        assert_eq!(story.log.len(), before);
    }
}
