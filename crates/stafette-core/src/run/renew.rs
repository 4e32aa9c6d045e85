//! An agent shows that it is alive: its lease is renewed, but not recorded more often than needed.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run, receipt};
use crate::handoff::{Receipt, State};
use crate::{Event, Millis, Reply, Time, TurnKey};

/// The maximum number of new notes recorded per lease.
const NEWS: u64 = 12;

/// The lease of a live agent was renewed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct LeaseRenewed {
    /// The turn whose lease is renewed.
    pub turn: TurnKey,
    /// The deadline for the next sign of life.
    pub due: Time,
    /// The agent's description of its current activity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

pub(super) fn decide(draft: &mut Draft, turn: TurnKey, note: Option<String>) -> Reply {
    if receipt::decide(draft, turn, Receipt::Delivered) == Reply::Late {
        return Reply::Late;
    }
    let out = draft.run.handoff(turn.handoff).and_then(|handoff| handoff.state.turn());
    let taken = out.and_then(|out| out.taken.as_ref());
    let lease = taken.map_or(draft.run.workflow.limits.lease, |taken| taken.lease);
    let worth_recording = match draft.run.handoff(turn.handoff).map(|h| &h.state) {
        Some(State::Accepted(_)) => true,
        Some(State::Running(out)) => {
            let news = note.is_some() && note != out.note;
            // A chatty agent must not fill the history either.
            let left = if news { lease.0 - lease.0 / NEWS } else { lease.0 / 2 };
            out.due.since(draft.now) <= Millis(left)
        }
        _ => false,
    };
    if worth_recording {
        let due = draft.now + lease;
        draft.record(Event::LeaseRenewed(LeaseRenewed { turn, due, note }));
    }
    Reply::Recorded
}

impl LeaseRenewed {
    pub(super) fn apply(&self, run: &mut Run) {
        let Some(handoff) = run.handoff_mut(self.turn.handoff) else { return };
        if let Some(turn) = handoff.state.turn() {
            let mut turn = turn.clone();
            turn.due = self.due;
            if self.note.is_some() {
                turn.note.clone_from(&self.note);
            }
            handoff.state = State::Running(turn);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::run::story::{RELAY, Story, h};
    use crate::{Input, Millis};

    #[test]
    fn b_02_what_an_agent_says_it_does_is_kept_but_not_each_word_of_it() {
        let mut story = Story::new(RELAY);
        story.accept(h(1));
        let mut says = |after: Millis, note: Option<&str>| {
            let before = story.later(after).log.len();
            let turn = story.key(h(1));
            story.input(Input::Heartbeat { turn, note: note.map(str::to_owned) });
            let known = story.run.handoff(h(1)).and_then(|h| h.state.turn()?.note.clone());
            (story.log.len() - before, known.unwrap_or_default())
        };
        assert_eq!(says(Millis(0), None), (1, String::new()));
        assert_eq!(says(Millis::seconds(1), Some("reads")), (0, String::new()), "too soon");
        assert_eq!(says(Millis::seconds(10), Some("reads")), (1, "reads".into()));
        assert_eq!(says(Millis::seconds(15), Some("reads")), (0, "reads".into()), "no news");
        assert_eq!(says(Millis::seconds(15), Some("writes")), (1, "writes".into()));
        assert_eq!(
            says(Millis::minutes(1), None),
            (1, "writes".into()),
            "it has not taken it back"
        );
    }
}
