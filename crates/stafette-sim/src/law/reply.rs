//! Laws about replies: every sender receives the outcome of its own input, and not that of another.

use std::collections::BTreeSet;

use stafette_core::handoff::About;
use stafette_core::run::propose::Refusal;
use stafette_core::workflow::Runner;
use stafette_core::{
    Event, HandoffId, Ignored, Input, Offer, Party, Reason, Recorded, Reply, Run, State, TeamInput,
    TurnKey, TurnResult,
};

use super::{LawResult, must};

const LAW: &str = "everyone hears what became of their own";

/// The decisions of one step: many inputs, and one reply to each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round<'a> {
    pub(crate) before: &'a Run,
    pub(crate) after: &'a Run,
    pub(crate) events: &'a [Recorded],
}

impl Round<'_> {
    /// Every input has its own reply, and the reply agrees with the events that carry its handoff
    /// or its turn.
    pub(crate) fn everyone_hears_their_own(
        &self,
        inputs: &[&Input],
        replies: &[Reply],
    ) -> LawResult {
        must(inputs.len() == replies.len(), LAW, || {
            format!("{} inputs, {} replies", inputs.len(), replies.len())
        })?;
        // A number, an answer and the end of a turn belong to one sender.
        let (mut numbers, mut ended) = (BTreeSet::new(), BTreeSet::new());
        let mut answered = BTreeSet::new();
        for (input, reply) in inputs.iter().zip(replies) {
            let first = match (input, reply) {
                (
                    Input::Propose { .. },
                    Reply::Admitted { handoff } | Reply::Refused { handoff, .. },
                ) => numbers.insert(*handoff),
                (Input::Answer { handoff, .. }, Reply::Answered) => answered.insert(*handoff),
                (
                    Input::Finish { turn, .. } | Input::Fail { turn, .. },
                    Reply::Finished { .. } | Reply::Recorded,
                ) => ended.insert(*turn),
                _ => true,
            };
            must(first && self.agrees(input, reply), LAW, || {
                let names: Vec<&str> = self.events.iter().map(|it| it.event.name()).collect();
                format!("{reply:?} to {:.300}, with {names:?}", format!("{input:?}"))
            })?;
        }
        Ok(())
    }

    fn agrees(&self, input: &Input, reply: &Reply) -> bool {
        match (input, reply) {
            (_, Reply::Ignored(Ignored::Ended)) => self.after.status().is_final(),
            (Input::Team(TeamInput::HandOver { .. }), Reply::Ignored(Ignored::NotEnded)) => {
                !self.before.status().is_final()
            }
            (Input::Propose { offer }, Reply::Admitted { handoff }) => {
                self.admitted(*handoff).is_some_and(|(given, _)| is_same(given, offer))
            }
            (Input::Propose { offer }, Reply::Refused { handoff, refusal }) => {
                self.events.iter().any(|it| match &it.event {
                    Event::HandoffRefused(e) => {
                        e.id == *handoff && e.refusal == **refusal && is_same(&e.offer, offer)
                    }
                    _ => false,
                })
            }
            (Input::Ask { turn, request, .. }, Reply::Admitted { handoff }) => {
                let known = self.before.handoff(*handoff).map(|handoff| &handoff.offer);
                let offer = known.or(self.admitted(*handoff).map(|(offer, _)| offer));
                let about = offer.and_then(|offer| offer.question.as_ref()).map(|it| &it.about);
                matches!(about, Some(About::Permission(of, name)) if of == turn && name == request)
            }
            (Input::Answer { handoff, values, text, by }, Reply::Answered) => {
                self.events.iter().any(|it| match &it.event {
                    Event::QuestionAnswered(e) => {
                        let said = &e.answer;
                        let same = said.values == *values && said.text == *text && said.by == *by;
                        e.handoff == *handoff && same
                    }
                    _ => false,
                })
            }
            (Input::Answer { handoff, .. }, Reply::Unfit { complaints }) => {
                !complaints.is_empty() && self.was_asked(*handoff)
            }
            (Input::Answer { handoff, .. }, Reply::Ignored(Ignored::NotOpen)) => {
                let asked = |run: &Run| {
                    let handoff = run.handoff(*handoff);
                    handoff.is_some_and(|it| matches!(it.state, State::Asked { .. }))
                };
                !(asked(self.before) && asked(self.after))
            }
            (Input::Finish { turn, result }, Reply::Finished { admitted, refused }) => {
                let proposed = admitted.len() + refused.len();
                // What was told before counts instead of what the result has.
                let result_kept = self.result(*turn);
                let whole =
                    proposed == 0 || result_kept.is_some_and(|kept| proposed == proposals(kept));
                let theirs = admitted.iter().all(|id| {
                    self.admitted(*id).is_some_and(|(_, cause)| cause == Some(turn.handoff))
                });
                whole
                    && theirs
                    && self.refused(*turn, refused)
                    && self.has_result(*turn, Some(result))
            }
            (Input::Tell { turn, .. }, Reply::Reported { refused }) => {
                let ordered =
                    |it: &Recorded| matches!(&it.event, Event::TurnOrdered(e) if e.turn == *turn);
                let was_out = is_out(self.before, *turn) || self.events.iter().any(ordered);
                was_out && self.refused(*turn, refused)
            }
            (Input::Tell { told, .. }, Reply::Unfit { complaints }) => {
                told.response.is_some() && !complaints.is_empty()
            }
            (Input::Finish { turn, result }, Reply::Late) => {
                self.events.iter().any(|it| match &it.event {
                    Event::LateResultKept(e) => e.turn == *turn && e.result == **result,
                    _ => false,
                })
            }
            (Input::Fail { turn, .. }, Reply::Finished { .. }) => self.has_result(*turn, None),
            (Input::Fail { turn, .. }, Reply::Recorded) => self
                .events
                .iter()
                .any(|it| matches!(&it.event, Event::TurnFailed(e) if e.turn == *turn)),
            (Input::Take { turn, .. }, Reply::Taken { by }) => {
                self.holder(*turn).is_some_and(|holder| holder == by)
            }
            (Input::Take { turn, .. }, Reply::Ignored(Ignored::NotExternal)) => {
                !self.is_external(*turn)
            }
            (
                Input::Receipt { turn, .. }
                | Input::Heartbeat { turn, .. }
                | Input::Ask { turn, .. }
                | Input::Take { turn, .. }
                | Input::Printed { turn, .. }
                | Input::Tell { turn, .. }
                | Input::Fail { turn, .. },
                Reply::Late,
            ) => !(is_out(self.before, *turn) && is_out(self.after, *turn)),
            (
                Input::Receipt { turn, .. }
                | Input::Heartbeat { turn, .. }
                | Input::Printed { turn, .. },
                Reply::Recorded,
            ) => {
                let ordered =
                    |it: &Recorded| matches!(&it.event, Event::TurnOrdered(e) if e.turn == *turn);
                is_out(self.before, *turn) || self.events.iter().any(ordered)
            }
            (
                Input::Team(TeamInput::ProposeChange { .. }),
                Reply::Recorded | Reply::Late | Reply::Ignored(_),
            )
            | (
                Input::Team(TeamInput::CommentChange { .. } | TeamInput::OrderChange { .. }),
                Reply::Ordered { .. },
            )
            | (
                Input::Team(TeamInput::CommentChange { .. })
                | Input::Team(TeamInput::DecideChange { .. })
                | Input::Team(TeamInput::OrderDone { .. })
                | Input::Team(TeamInput::OrderChange { .. })
                | Input::Team(TeamInput::SettleChange { .. })
                | Input::ClockJumped { .. }
                | Input::Pause { .. }
                | Input::Unpause { .. }
                | Input::Team(TeamInput::Note { .. })
                | Input::Team(TeamInput::HandOver { .. }),
                Reply::Recorded | Reply::Ignored(_),
            )
            | (
                Input::Tick
                | Input::Adopt { .. }
                | Input::Session { .. }
                | Input::Alert { .. }
                | Input::RaiseBudget(_)
                | Input::Cancel { .. },
                Reply::Recorded,
            ) => true,
            _ => false,
        }
    }

    /// Returns the offer that a handoff was admitted with in this step, and its cause.
    fn admitted(&self, id: HandoffId) -> Option<(&Offer, Option<HandoffId>)> {
        self.events.iter().find_map(|it| match &it.event {
            Event::HandoffAdmitted(e) if e.id == id => Some((&e.offer, e.cause)),
            _ => None,
        })
    }

    fn was_asked(&self, id: HandoffId) -> bool {
        let before = self.before.handoff(id).map(|handoff| &handoff.offer);
        let offer = before.or(self.admitted(id).map(|(offer, _)| offer));
        offer.is_some_and(|offer| offer.to == Party::Human)
    }

    fn has_result(&self, turn: TurnKey, result: Option<&TurnResult>) -> bool {
        let same = |kept: &TurnResult, given: &TurnResult| {
            kept.response.summary == given.response.summary || self.has_told(turn)
        };
        self.result(turn).is_some_and(|kept| result.is_none_or(|given| same(kept, given)))
    }

    /// Returns the result that ended the turn in this step.
    fn result(&self, turn: TurnKey) -> Option<&TurnResult> {
        self.events.iter().find_map(|it| match &it.event {
            Event::TurnFinished(e) if e.turn == turn => Some(&e.result),
            _ => None,
        })
    }

    /// True if an agent told the answer of the turn before its end.
    fn has_told(&self, turn: TurnKey) -> bool {
        let before = self.before.handoff(turn.handoff).filter(|_| is_out(self.before, turn));
        before.is_some_and(|handoff| handoff.told.response.is_some())
            || self.events.iter().any(|it| match &it.event {
                Event::TurnTold(e) => e.turn == turn && e.told.response.is_some(),
                _ => false,
            })
    }

    /// True if each of these refusals is recorded for a proposal of the turn.
    fn refused(&self, turn: TurnKey, refusals: &[Refusal]) -> bool {
        refusals.iter().all(|refusal| {
            self.events.iter().any(|it| match &it.event {
                Event::HandoffRefused(e) => e.cause == Some(turn.handoff) && e.refusal == *refusal,
                _ => false,
            })
        })
    }

    /// Returns the holder of a turn that an external agent took.
    fn holder(&self, turn: TurnKey) -> Option<&String> {
        let taken = |it: &&Recorded| matches!(&it.event, Event::TurnTaken(e) if e.turn == turn);
        let handoff = self.before.handoff(turn.handoff).filter(|_| is_out(self.before, turn));
        let held = handoff.and_then(|it| it.state.turn()?.taken.as_ref()).map(|taken| &taken.by);
        held.or(self.events.iter().find(taken).and_then(|it| match &it.event {
            Event::TurnTaken(e) => Some(&e.taken.by),
            _ => None,
        }))
    }

    fn is_external(&self, turn: TurnKey) -> bool {
        let handoff = self.before.handoff(turn.handoff);
        let agent = handoff.and_then(|handoff| self.before.workflow.agent(&handoff.offer.to));
        agent.is_some_and(|(_, agent)| agent.runner == Runner::External)
    }
}

/// True if an offer is the one that was sent: additions of the orchestrator are ignored.
fn is_same(given: &Offer, sent: &Offer) -> bool {
    given.from == sent.from
        && given.to == sent.to
        && given.reason == sent.reason
        && given.summary == sent.summary
        && given.outputs == sent.outputs
}

fn is_out(run: &Run, turn: TurnKey) -> bool {
    run.turns_out().any(|(key, _)| key == turn)
}

/// Returns the number of proposals in a result: a finished result is an answer, and no proposal.
fn proposals(result: &TurnResult) -> usize {
    let done =
        |offer: &&Offer| offer.to == Party::Orchestrator && offer.reason == Reason::Completion;
    result.offers.iter().filter(|offer| !done(offer)).count()
}
