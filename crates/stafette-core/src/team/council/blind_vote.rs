//! Confidentiality while the first vote is open: it is visible that a member has voted, but nothing
//! of its speech. The run itself has everything; the data that leaves the daemon is redacted.

use super::{Council, is_turn};
use crate::handoff::State;
use crate::{Event, Handoff, HandoffId, Response, Run, TeamEvent, TurnResult};

impl Run {
    /// True if a blind vote is open.
    pub fn votes_blindly(&self) -> bool {
        let (Some(rules), Some(council)) = (&self.workflow.council, self.team.council.as_deref())
        else {
            return false;
        };
        let open = council.verdict.is_none() && !self.status().is_final();
        open && !council.may_hear(rules)
    }

    /// Removes confidential data from an event. Returns true if there was any.
    pub fn veil(&self, event: &mut Event) -> bool {
        if !self.votes_blindly() {
            return false;
        }
        match event {
            Event::Team(TeamEvent::CouncilHeard(heard)) => {
                heard.said.clear();
                heard.vote = None;
            }
            Event::RunForked(forked) => return forked.state.veil_all(),
            Event::TurnTold(told) if self.is_ballot(told.turn.handoff) => {
                told.told.said.vote = None;
                told.told.response.iter_mut().for_each(hush);
            }
            Event::TurnFinished(finished) if self.is_ballot(finished.turn.handoff) => {
                hide(&mut finished.result);
            }
            Event::LateResultKept(late) if self.is_ballot(late.turn.handoff) => {
                hide(&mut late.result);
            }
            Event::LeaseRenewed(renewed) if self.is_ballot(renewed.turn.handoff) => {
                renewed.note = None;
            }
            Event::FrameIgnored(ignored) if self.is_ballot(ignored.turn.handoff) => {
                ignored.reason.clear();
            }
            Event::HandoffClosed(closed) if self.is_ballot(closed.handoff) => {
                hush(&mut closed.response);
            }
            _ => return false,
        }
        true
    }

    /// Removes confidential data from a handoff. Returns true if there was any.
    pub fn veil_handoff(&self, handoff: &mut Handoff) -> bool {
        if !self.votes_blindly() {
            return false;
        }
        let is_own =
            self.team.council.as_ref().is_some_and(|council| council.handoff == handoff.id);
        if is_own {
            handoff.answers.iter_mut().for_each(hush);
            return true;
        }
        if !is_turn(&handoff.constraints) {
            return false;
        }
        handoff.told.said.vote = None;
        handoff.told.response.iter_mut().for_each(hush);
        handoff.ignored.clear();
        handoff.unconfirmed = None;
        match &mut handoff.state {
            State::Closed(closing) => hush(&mut closing.response),
            State::Ordered(turn) | State::Accepted(turn) | State::Running(turn) => turn.note = None,
            _ => {}
        }
        true
    }

    /// Removes confidential data from the whole state.
    fn veil_all(&mut self) -> bool {
        if !self.votes_blindly() {
            return false;
        }
        let ids: Vec<HandoffId> = self.handoffs.keys().copied().collect();
        for id in ids {
            let Some(mut handoff) = self.handoff(id).cloned() else { continue };
            if self.veil_handoff(&mut handoff)
                && let Some(kept) = self.handoff_mut(id)
            {
                *kept = handoff;
            }
        }
        self.team.council = self.shown_council().map(Box::new);
        true
    }

    /// Returns the council without confidential data.
    pub fn shown_council(&self) -> Option<Council> {
        let mut council = self.team.council.as_deref()?.clone();
        if self.votes_blindly() {
            for position in council.positions.values_mut() {
                position.signal = None;
                position.reason.clear();
            }
            council.discussion.clear();
            council.decisions.clear();
            council.decided_by.clear();
            council.next_topic = None;
        }
        Some(council)
    }

    /// True if a member votes, or has voted, in this handoff.
    fn is_ballot(&self, id: HandoffId) -> bool {
        self.handoff(id).is_some_and(|handoff| is_turn(&handoff.constraints))
    }
}

fn hide(result: &mut TurnResult) {
    result.said.vote = None;
    hush(&mut result.response);
}

/// Removes the content of a response; its cost and outcome stay.
fn hush(response: &mut Response) {
    let (took, usage) = (response.took, response.usage);
    *response = Response { took, usage, ..Response::new(response.by.clone(), response.outcome) };
}
