//! A run that starts from an earlier point of another run.
//!
//! It begins with the complete state of that point, so that replaying it needs no events of the
//! other
//! run. Turns that were open then are open again, under keys of their own; earlier spending is not
//! counted.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Run;
use crate::handoff::About;
use crate::team;
use crate::{Event, RunId, Time};

/// The run was created from the state of another run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunForked {
    /// The id of the new run.
    pub run: RunId,
    /// The id of the original run.
    pub from: RunId,
    /// The number of the last event that the two runs have in common.
    pub after: u64,
    /// The name of the requester.
    pub by: String,
    /// The state of the original run at that point.
    #[schemars(with = "crate::Fields")]
    pub state: Box<Run>,
}

impl Run {
    /// Returns the events of a new run that continues from the current state; `None` if this run
    /// has ended, because there is nothing to continue.
    pub fn fork(&self, now: Time, run: RunId, by: String) -> Option<Vec<Event>> {
        if self.status().is_final() {
            return None;
        }
        let state = Box::new(self.clone());
        let forked = RunForked { run, from: self.id, after: self.seq, by, state };
        debug_assert!(now >= self.updated_at, "a fork is later than what it comes from");
        Some(vec![Event::RunForked(Box::new(forked))])
    }

    pub(super) fn forked(at: Time, forked: &RunForked) -> Run {
        let mut run = (*forked.state).clone();
        run.id = forked.run;
        run.seq = 1;
        run.created_at = at;
        run.updated_at = at;
        run.purse.begin_anew();
        run.sessions.clear();
        run.mail.forked(forked.run);
        team::forked(&mut run.team);
        for handoff in run.handoffs.values_mut() {
            let about = handoff.offer.question.as_ref().map(|question| &question.about);
            if let Some(About::Permission(turn, request)) = about {
                let about =
                    About::Permission(crate::TurnKey { run: forked.run, ..*turn }, request.clone());
                if let Some(question) = &mut Arc::make_mut(handoff).offer.question {
                    question.about = about;
                }
            }
        }
        run
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use crate::run::story::{RELAY, Story, h, pass};
    use crate::{Input, Run, RunId, Status};

    #[test]
    fn b_12_a_fork_goes_its_own_way_from_a_handoff_on() {
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![pass("builder")]);
        let moment = story.run.clone();
        story.done(h(2));
        assert_eq!(story.status(), Status::Succeeded);
        assert_eq!(story.run.fork(story.now, RunId(Uuid::from_u128(2)), "me".into()), None);

        let other = RunId(Uuid::from_u128(7));
        let events = moment.fork(story.now, other, "me".into()).expect("it was not over then");
        let mut fork = Story::from_events(story.now, events);
        assert_eq!(fork.key(h(2)).run, other, "its turns are its own");
        fork.input(Input::Adopt { by: "node".into() });
        fork.hands(h(2), vec![pass("reviewer")]).done(h(3));
        assert_eq!(fork.status(), Status::Succeeded);
        assert_eq!(fork.run.purse.spent, crate::Usage::default());
        assert!(Run::replay(&fork.log).is_some_and(|again| again == fork.run));
    }
}
