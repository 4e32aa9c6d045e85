//! The next turn of a handoff is ordered, once nothing prevents it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run, arbitrate, assess, budget, escalate, message, propose, tell};
use crate::handoff::{Receipt, State, Turn};
use crate::team;
use crate::workflow::Runner;
use crate::{Event, Handoff, HandoffId, Millis, Party, Time, TurnKey, TurnOrder, Usage};

/// A turn was ordered, and its cost reserved. From here on it is in the outbox.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TurnOrdered {
    /// The turn that was ordered.
    pub turn: TurnKey,
    /// The deadline for acceptance.
    pub accept_by: Time,
    /// The deadline for the end of the turn.
    pub finish_by: Time,
    /// The amounts reserved for it.
    pub reserved: Usage,
}

/// Handles a pending handoff that is due: the orchestrator decides it, or an agent gets a turn.
pub(super) fn decide(draft: &mut Draft, id: HandoffId) {
    let Some(handoff) = draft.run.handoff(id) else { return };
    if propose::ready_at(&draft.run, handoff).is_none_or(|moment| moment > draft.now) {
        return;
    }
    if handoff.offer.to == Party::Orchestrator {
        return arbitrate::decide(draft, id);
    }
    if team::due(draft, id) {
        return;
    }
    let Some(handoff) = draft.run.handoff(id) else { return };
    if handoff.turn >= handoff.turn_limit {
        let why = format!("it has had {} turns and is not done", handoff.turn);
        return escalate::about_failure(draft, id, &why);
    }
    if !assess::can_start(draft, id) {
        return;
    }
    let Some(reserved) = budget::reserve(draft, id) else { return };
    let run = &draft.run;
    let Some(handoff) = run.handoff(id) else { return };
    let turn = TurnKey { turn: handoff.turn + 1, ..handoff.key(run.id) };
    let limits = &run.workflow.limits;
    let comes = time_to_accept(run, handoff);
    let latest = handoff.deadline.unwrap_or(Time::MAX);
    let accept_by = (draft.now + comes).min(latest);
    let finish_by = (draft.now + limits.finish_timeout).max(accept_by).min(latest);
    draft.record(Event::TurnOrdered(TurnOrdered { turn, accept_by, finish_by, reserved }));
}

/// The time that a profile gives its program to become ready, at most: what it says is not known here.
const READY: Millis = Millis::seconds(30);

/// Returns the time limit for acceptance. External agents connect on their own, so the answer
/// timeout applies. A terminal accepts once its program is ready, and people are asked if it is not:
/// that has to come first.
pub(super) fn time_to_accept(run: &Run, handoff: &Handoff) -> Millis {
    let limits = &run.workflow.limits;
    match run.workflow.agent(&handoff.offer.to).map(|(_, agent)| agent) {
        Some(agent) if agent.runner == Runner::External => limits.answer_timeout,
        Some(agent) if agent.runner == Runner::Pty => {
            let profiled = agent.profile.as_ref().map_or(limits.ready_timeout, |_| READY);
            let ready = agent.ready_timeout.unwrap_or(limits.ready_timeout.max(profiled));
            Millis(limits.accept_timeout.0.saturating_add(ready.0))
        }
        _ => limits.accept_timeout,
    }
}

impl TurnOrdered {
    pub(super) fn apply(&self, run: &mut Run, at: Time) {
        let whose = run.handoff(self.turn.handoff).map(|h| (h.offer.to.clone(), h.turn == 0));
        if let Some((agent, new)) = whose {
            run.purse.reserve(&agent, self.reserved, new);
        }
        if let Some(handoff) = run.handoff(self.turn.handoff).filter(|handoff| handoff.cools) {
            let offer = handoff.offer.clone();
            propose::used(run, &offer, at);
        }
        message::give(run, self.turn);
        let Some(handoff) = run.handoff_mut(self.turn.handoff) else { return };
        handoff.turn = self.turn.turn;
        handoff.state = State::Ordered(Turn {
            ordered_at: at,
            due: self.accept_by,
            finish_by: self.finish_by,
            reserved: self.reserved,
            deliveries: 1,
            receipt: Receipt::Queued,
            note: None,
            taken: None,
        });
    }
}

/// Returns the order that is in the outbox while the turn is open.
pub(super) fn order(run: &Run, handoff: &Handoff) -> Option<TurnOrder> {
    let turn = handoff.state.turn()?;
    let (agent, _) = run.workflow.agent(&handoff.offer.to)?;
    Some(TurnOrder {
        key: handoff.key(run.id),
        agent: agent.clone(),
        request: run.request.clone(),
        offer: handoff.offer.clone(),
        constraints: handoff.constraints,
        trace_id: tell::trace_id(run, handoff),
        cause: handoff.cause,
        inputs: handoff.inputs.clone(),
        replies: handoff.replies.clone(),
        answers: handoff.answers.clone(),
        permits: handoff.permits.clone(),
        messages: run.mail.of_turn(handoff.key(run.id)),
        routes: run.workflow.targets(&handoff.offer.to).iter().map(ToString::to_string).collect(),
        round: handoff.trail.lap().map_or(1, |lap| lap.round),
        finish_by: turn.finish_by,
        deliveries: turn.deliveries,
    })
}

#[cfg(test)]
mod tests {
    use crate::run::story::{RELAY, Story, ask, h};
    use crate::{Millis, Offer, Question, Status};

    #[test]
    fn s1_03_a_terminal_has_its_time_to_become_ready_before_the_time_to_accept_ends() {
        for (agent, within) in [
            ("runner = \"scripted\"", 30),
            ("runner = \"pty\"", 35),
            ("runner = \"pty\", ready_timeout = \"2m\"", 150),
            ("runner = \"pty\", profile = \"opencode\"", 60),
        ] {
            let solo = format!(
                "workflow = {{ name = \"solo\", entry = \"writer\" }}\n\
                 agents.writer = {{ {agent} }}\n"
            );
            let story = Story::new(&solo);
            assert_eq!(story.run.deadline(), Some(story.now + Millis::seconds(within)), "{agent}");
        }
    }

    #[test]
    fn an_agent_that_asks_for_ever_ends_with_a_person_who_may_let_it_go_on() {
        let question = || Question {
            blocking: true,
            default: Some("whatever".into()),
            within: Some(Millis::seconds(1)),
            ..Question::default()
        };
        let mut story = Story::new(&RELAY.replace("[limits]", "[limits]\nturns_per_handoff = 3"));
        for _ in 0..3 {
            story.hands(h(1), vec![Offer { question: Some(question()), ..ask("human") }]);
            story.until_due();
        }
        assert_eq!(story.status(), Status::WaitingForHuman);
        assert!(story.question(h(5)).details.contains("3 turns"));
        story.person_says(h(5), "retry").done(h(1));
        assert_eq!(story.status(), Status::Succeeded);
    }
}
