//! A run goes its own way from a moment in another one's past.
//!
//! It begins with the state of that moment, whole, so that replaying it needs nobody else's events.
//! What was out then is out again, under keys of its own; what was spent before is not its expense.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Run;
use crate::handoff::About;
use crate::team;
use crate::{Event, RunId, Time};

/// The run began as another one was.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunForked {
    /// Its name.
    pub run: RunId,
    /// The one that it comes from.
    pub from: RunId,
    /// The last event that the two have in common.
    pub after: u64,
    /// Who wanted it.
    pub by: String,
    /// What the other one was then.
    #[schemars(with = "crate::Fields")]
    pub state: Box<Run>,
}

impl Run {
    /// The events of a run that goes on from this one as it is. Nothing when this one is over: then
    /// there is nothing to go on with.
    #[must_use]
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
