//! A question gets more time because no one can answer at the moment.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run};
use crate::handoff::State;
use crate::{Event, HandoffId, Ignored, Millis, Reply, Time};

/// The latest deadline that a question can get, counted from now.
pub const FURTHEST: Millis = Millis::hours(60 * 24);

/// A question has a later deadline.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct QuestionPostponed {
    /// The handoff that asks the question.
    pub handoff: HandoffId,
    /// The new deadline for the answer.
    pub until: Time,
    /// The reason for the extension.
    pub why: String,
}

/// Moves a deadline further away, up to [`FURTHEST`] from now; it never moves closer.
pub(super) fn decide(draft: &mut Draft, handoff: HandoffId, until: Time, why: String) -> Reply {
    let Some(State::Asked { until: before }) = draft.run.handoff(handoff).map(|h| &h.state) else {
        return Reply::Ignored(Ignored::NotOpen);
    };
    let until = until.min(draft.now + FURTHEST);
    if until > *before {
        draft.record(Event::QuestionPostponed(QuestionPostponed { handoff, until, why }));
    }
    Reply::Recorded
}

impl QuestionPostponed {
    pub(super) fn apply(&self, run: &mut Run) {
        if let Some(handoff) = run.handoff_mut(self.handoff)
            && let State::Asked { until } = &mut handoff.state
        {
            *until = self.until;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::run::story::{RELAY, Story, ask, h};
    use crate::{Input, Millis, Status};

    #[test]
    fn b_13_a_question_gets_more_time_while_nobody_can_answer_and_never_less() {
        let mut story = Story::new(RELAY);
        story.hands(h(1), vec![ask("human")]);
        let (week, now) = (Millis::hours(7 * 24), story.now);
        let why = || "nobody is there".to_owned();
        let monday = now + Millis::hours(9 * 24);
        story.input(Input::Postpone { handoff: h(2), until: monday, why: why() });
        let sooner = now + Millis::hours(1);
        let before = story.log.len();
        story.input(Input::Postpone { handoff: h(2), until: sooner, why: why() });
        story.input(Input::Postpone { handoff: h(1), until: monday, why: why() });
        assert_eq!(story.log.len(), before, "neither sooner nor for what is no question");
        story.later(week);
        assert_eq!(story.status(), Status::WaitingForHuman);
        story.later(Millis::hours(2 * 24));
        assert_eq!(story.status(), Status::Failed);
        assert!(story.transcript().contains("more time"), "{}", story.transcript());
    }
}
