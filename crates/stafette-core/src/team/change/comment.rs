//! Comments on a set: the agent that proposed it receives them, or they are forwarded.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ChangeCoordinator, REMARKS};
use crate::change::{ChangeId, Comment};
use crate::run::{Draft, Run};
use crate::team::{Coordinator, legacy};
use crate::{Event, HandoffId, Ignored, Reply, RunId, TeamEvent, Time};

/// A comment was made on a set.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ChangeCommented {
    /// The set that the comment is about.
    pub change: ChangeId,
    /// The handoff in which the set was proposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff: Option<HandoffId>,
    /// The comment, with its author and place.
    pub comment: Comment,
    /// True if it goes back to the agent of the set; `None` in events of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goes_back: Option<bool>,
    /// True if the run has ended, so that the comment has to be forwarded to another run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forwards: bool,
}

/// The receiver of a comment on a set.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
#[schemars(rename = "CommentReceiver")]
pub enum Heard {
    /// No agent: the comment stays with the set, which no agent made, or which is applied already.
    Nobody {
        /// The reason, if an agent should have received it.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        why: String,
    },
    /// The agent that proposed it, in a run that continues.
    Agent {
        /// The run in which the agent receives it.
        run: RunId,
    },
    /// The generation that begins next.
    NextGeneration {
        /// The run that this generation follows.
        after: RunId,
    },
    /// The agent that proposed it, in a run that was started for this purpose.
    Revision {
        /// The run that was started.
        run: RunId,
    },
    /// Nobody yet: the run in which the set was proposed has ended, and forwards the comment as soon
    /// as it can.
    Later {
        /// The run that shows what is in the way.
        run: RunId,
    },
}

impl Default for Heard {
    fn default() -> Self {
        Heard::Nobody { why: String::new() }
    }
}

/// A comment that a run which has ended is to forward.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Forward {
    /// The number of the event that recorded the comment.
    pub seq: u64,
    /// The time of that event.
    pub at: Time,
    /// The comment, with its author and place.
    pub comment: Comment,
}

/// A comment that was forwarded.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Forwarded {
    /// The number of the event that recorded the comment.
    pub seq: u64,
    /// The receiver of the comment.
    pub heard: Heard,
}

/// Records a comment on a set; the reply says whether an agent receives it, or the order that
/// forwards it.
pub(in crate::team) fn comment(draft: &mut Draft, change: ChangeId, comment: Comment) -> Reply {
    let Some(known) = draft.run.team.changes.get(&change) else {
        return Reply::Ignored(Ignored::Unknown);
    };
    let goes_back = legacy::goes_back(&draft.run, known);
    let forwards = known.agent.is_some() && !known.status.is_in() && !goes_back;
    // A run that forwards it says it once more after a crash.
    if known.said.contains(&comment) {
        let open = known.forwards.iter().find(|forward| forward.comment == comment);
        match open {
            Some(forward) => return Reply::Ordered { seq: forward.seq },
            None if forwards => return Reply::Recorded,
            None => {}
        }
    } else {
        if forwards && known.forwards.len() >= REMARKS {
            return Reply::Ignored(Ignored::NoRoom);
        }
        let (handoff, goes_back) = (known.handoff, Some(goes_back));
        let event = ChangeCommented { change, handoff, comment, goes_back, forwards };
        draft.record(Event::Team(TeamEvent::ChangeCommented(Box::new(event))));
        if forwards {
            return Reply::Ordered { seq: draft.run.seq };
        }
    }
    ChangeCoordinator.advance(draft);
    let known = draft.run.team.changes.get(&change).filter(|_| goes_back);
    match known.is_some_and(|known| !known.remarks.is_empty() || known.returned.is_some()) {
        true => Reply::Recorded,
        false => Reply::Ignored(Ignored::NoListener),
    }
}

impl ChangeCommented {
    pub(in crate::team) fn apply(&self, run: &mut Run, at: Time) {
        let Some(known) = run.team.changes.get(&self.change) else { return };
        let goes_back = self.goes_back.unwrap_or_else(|| legacy::goes_back(run, known));
        let seq = run.seq;
        let Some(known) = run.team.changes.get_mut(&self.change) else { return };
        known.unwritten = Some(seq);
        known.said.push(self.comment.clone());
        let surplus = known.said.len().saturating_sub(REMARKS);
        known.said.drain(..surplus);
        if goes_back && known.remarks.len() < REMARKS {
            known.remarks.push(self.comment.clone());
        }
        if self.forwards {
            known.forwards.push(Forward { seq, at, comment: self.comment.clone() });
        }
    }
}
