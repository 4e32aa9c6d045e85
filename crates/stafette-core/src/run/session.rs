//! The life of an agent's process, for people to see: it starts, is ready, works, waits, dies.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run};
use crate::{AgentName, Event, Reply};

/// The state of an agent's process.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// The process was started.
    Starting,
    /// The process accepts input.
    Ready,
    /// The process did not become ready in time. It still may.
    NotReady,
    /// The agent is working.
    Working,
    /// The agent waits for an answer, such as a person's permission.
    Waiting,
    /// The process died unexpectedly.
    Crashed,
    /// The process is being started again.
    Restarting,
    /// The process has ended.
    Ended,
}

/// The maximum length of a note, in characters: enough for a last screen.
const NOTE: usize = 4000;

/// The state of an agent's process changed.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SessionChanged {
    /// The agent that the process belongs to.
    pub agent: AgentName,
    /// The new state of the process.
    pub state: SessionState,
    /// Details, such as the last screen of a process that died.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

pub(super) fn decide(
    draft: &mut Draft,
    agent: AgentName,
    state: SessionState,
    mut note: String,
) -> Reply {
    // The end of a screen says more than its beginning.
    if let Some((cut, _)) = note.char_indices().rev().nth(NOTE) {
        note.replace_range(..cut, "…");
    }
    let known = draft.run.workflow.agents.contains_key(&agent);
    if known && draft.run.sessions.get(&agent) != Some(&state) {
        draft.record(Event::SessionChanged(SessionChanged { agent, state, note }));
    }
    Reply::Recorded
}

impl SessionChanged {
    pub(super) fn apply(&self, run: &mut Run) {
        run.sessions.insert(self.agent.clone(), self.state);
    }
}

#[cfg(test)]
mod tests {
    use super::SessionState;
    use crate::Input;
    use crate::run::story::{RELAY, Story};

    #[test]
    fn s1_16_each_change_of_an_agent_is_recorded_once() {
        let mut story = Story::new(RELAY);
        let agent: crate::AgentName = "planner".parse().expect("a name");
        let mut says = |state| {
            let note = String::new();
            story.input(Input::Session { agent: agent.clone(), state, note }).log.len()
        };
        let first = says(SessionState::Starting);
        assert_eq!(says(SessionState::Starting), first);
        assert_eq!(says(SessionState::Ready), first + 1);
        assert_eq!(story.run.sessions[&agent], SessionState::Ready);
    }

    #[test]
    fn s1_15_the_last_screen_of_a_dead_agent_is_kept_though_not_all_of_it() {
        let mut story = Story::new(RELAY);
        let agent: crate::AgentName = "planner".parse().expect("a name");
        let note = "é".repeat(100_000) + "the end";
        story.input(Input::Session { agent, state: SessionState::Crashed, note });
        let kept = match &story.log.last().expect("an event").event {
            crate::Event::SessionChanged(changed) => changed.note.clone(),
            other => panic!("{other:?}"),
        };
        assert!(kept.starts_with('…') && kept.ends_with("the end"));
        assert!(kept.chars().count() <= super::NOTE + 2);
    }
}
