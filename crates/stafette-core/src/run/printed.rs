//! Frames that an agent's output merely shows: a file that it displays can hold them, so they count
//! nothing and fail nothing. People see them, and an agent whose turn ends without an answer is told
//! what was wrong with its frames.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::alert::AlertRaised;
use super::{Draft, Run};
use crate::text::clip;
use crate::{Event, HandoffId, PrintedFrame, Reply, TurnKey};

/// The most unreadable frames of a turn that are recorded.
const MAX_IGNORED: usize = 16;

/// The longest reason that is recorded, in characters.
const REASON: usize = 300;

/// Printed text that opens like a control frame was ignored, because it cannot be read as one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct FrameIgnored {
    /// The turn whose output it was in.
    pub turn: TurnKey,
    /// The reason, with the beginning of the frame.
    pub reason: String,
}

pub(super) fn decide(draft: &mut Draft, turn: TurnKey, frame: PrintedFrame) -> Reply {
    if !draft.run.is_current(turn) {
        return Reply::Late;
    }
    match frame {
        PrintedFrame::Error { code, message } => {
            draft.record(Event::AlertRaised(AlertRaised { code, message, printed: true }));
        }
        PrintedFrame::Unreadable { reason } => {
            let reason = clip(&reason, REASON);
            let known = ignored(&draft.run, turn.handoff);
            // A program that redraws its screen prints the same frame again and again.
            if known.len() < MAX_IGNORED && !known.contains(&reason) {
                draft.record(Event::FrameIgnored(FrameIgnored { turn, reason }));
            }
        }
    }
    Reply::Recorded
}

/// Returns the reasons why frames of the open turn could not be read.
pub(super) fn ignored(run: &Run, id: HandoffId) -> &[String] {
    run.handoff(id).map_or(&[], |handoff| &handoff.ignored)
}

impl FrameIgnored {
    pub(super) fn apply(&self, run: &mut Run) {
        if let Some(handoff) = run.handoff_mut(self.turn.handoff) {
            handoff.ignored.push(self.reason.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::run::story::{RELAY, Story, done, h};
    use crate::{Event, Input, PrintedFrame, Status, TurnResult};

    fn unreadable(story: &mut Story, reason: &str) {
        let frame = PrintedFrame::Unreadable { reason: reason.to_owned() };
        story.input(Input::Printed { turn: story.key(h(1)), frame });
    }

    fn silent() -> TurnResult {
        TurnResult { unanswered: true, ..done() }
    }

    #[test]
    fn b_07_a_frame_that_cannot_be_read_is_recorded_and_the_reminder_names_it() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        unreadable(&mut story, "HANDOFF: /to is missing");
        story.ends(h(1), silent());
        assert!(story.transcript().contains("h1 ignored a frame: HANDOFF: /to is missing"));
        assert_eq!((story.key(h(1)).attempt, story.key(h(1)).turn), (1, 2), "no attempt failed");
        let order = story.run.outbox().next().expect("its second turn");
        let told = order.answers[0].failure.as_deref().unwrap_or_default();
        assert!(told.contains("HANDOFF: /to is missing"), "{told}");
        story.accept(h(1));
        unreadable(&mut story, "the payload is not valid JSON: `<<<ODEI:HANDOFF:{`");
        story.ends(h(1), silent());
        assert_eq!(story.status(), Status::WaitingForHuman);
        let asked = story.question(h(2)).details.clone();
        assert!(asked.contains("not valid JSON") && !asked.contains("/to is missing"), "{asked}");
    }

    #[test]
    fn b_07_a_frame_that_cannot_be_read_fails_no_turn_that_is_answered() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        unreadable(&mut story, "the payload is not valid JSON");
        story.done(h(1));
        assert_eq!(story.status(), Status::Succeeded);
    }

    #[test]
    fn b_07_a_printed_error_is_shown_as_printed_and_stops_nothing() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        let frame = PrintedFrame::Error { code: "NO_GRAPH".into(), message: "away".into() };
        story.input(Input::Printed { turn: story.key(h(1)), frame });
        let raised = story.log.iter().find_map(|recorded| match &recorded.event {
            Event::AlertRaised(alert) => Some(alert.clone()),
            _ => None,
        });
        assert!(raised.is_some_and(|alert| alert.printed && alert.code == "NO_GRAPH"));
        assert_eq!(story.status(), Status::Running);
    }

    #[test]
    fn b_07_a_turn_records_only_so_many_frames_and_only_so_much_of_each() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        for number in 0..100 {
            unreadable(&mut story, &format!("{number} {}", "x".repeat(10_000)));
            unreadable(&mut story, "the same again");
        }
        let reasons: Vec<&String> = story
            .log
            .iter()
            .filter_map(|recorded| match &recorded.event {
                Event::FrameIgnored(ignored) => Some(&ignored.reason),
                _ => None,
            })
            .collect();
        assert_eq!(reasons.len(), super::MAX_IGNORED);
        assert!(reasons.iter().all(|reason| reason.chars().count() <= super::REASON + 1));
        story.done(h(1));
        assert!(story.run.handoff(h(1)).is_some_and(|handoff| handoff.ignored.is_empty()));
    }
}
