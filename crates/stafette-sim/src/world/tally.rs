//! Counts the events of a seed, to show what the seeds cover.

use stafette_core::handoff::{About, Way};
use stafette_core::run::propose::Refusal;
use stafette_core::workflow::Strategy;
use stafette_core::{Event, Input, Party, Reply, Status, TeamAbout, Usage, Usd, fields};
use stafette_store::Stored;

use super::World;

impl World {
    /// Counts replies that matter, and inputs that compete in one step.
    pub(super) fn count_replies(&mut self, inputs: &[&Input], replies: &[Reply]) {
        let mut proposals = 0;
        for (index, (input, reply)) in inputs.iter().zip(replies).enumerate() {
            match (input, reply) {
                (Input::Propose { .. }, _) => proposals += 1,
                (Input::Answer { handoff, .. }, _) => {
                    let same = |other: &&&Input| matches!(other, Input::Answer { handoff: other, .. } if other == handoff);
                    if inputs[..index].iter().any(|other| same(&other)) {
                        self.counts.note("two answers at once");
                    }
                    if matches!(reply, Reply::Unfit { .. }) {
                        self.counts.note("answer that does not fit");
                    }
                }
                (Input::Fail { .. }, Reply::Finished { .. }) => {
                    self.counts.note("failure after a report");
                }
                (Input::Take { by, .. }, Reply::Taken { by: holder }) if by != holder => {
                    self.counts.note("turn taken by another");
                }
                _ => {}
            }
        }
        if proposals > 1 {
            self.counts.note("proposals at once");
        }
    }

    /// Counts the kinds of events that were added.
    pub(super) fn count(&mut self, added: &[Stored]) {
        for stored in added {
            let Ok(event) = serde_json::from_str::<Event>(&stored.entry.body) else { continue };
            self.counts.note(event.name());
            self.count_costs_and_sizes(&event);
            let Event::HandoffAdmitted(admitted) = &event else {
                if let Some(detail) = detail(&event) {
                    self.counts.note(detail);
                }
                continue;
            };
            let waiting = admitted.returns_to.filter(|id| Some(*id) != admitted.cause);
            if waiting.is_some() && admitted.offer.to != Party::Human {
                self.counts.note("transfer within a delegation");
            }
            if let Some(question) = &admitted.offer.question {
                self.counts.note(match question.about {
                    About::Inputs => "question about inputs",
                    About::Recovery(_) => "question about a failure",
                    About::Loop(_) => "loop parked",
                    About::Unconfirmed(_) | About::Confirm(..) => "question about plain output",
                    About::Permission(..) => "question about a permission",
                    About::Budget => "budget stop",
                    About::Team(TeamAbout::Change(_)) => "question about a change",
                    About::Team(TeamAbout::Council(_)) => "question about a council",
                    About::Team(TeamAbout::CheckIn(_)) => "question about a generation",
                });
            }
        }
    }
}

impl World {
    /// Counts what is large, what is late, and what costs money beside something else.
    fn count_costs_and_sizes(&mut self, event: &Event) {
        let Some(run) = &self.witness.run else { return };
        match event {
            Event::HandoffAdmitted(e) if fields::size(&e.offer.outputs) > LARGE => {
                self.counts.note("large offer");
            }
            Event::HandoffClosed(e) => {
                if fields::size(&e.response.outputs) > LARGE {
                    self.counts.note("large answer");
                }
                if !e.cuts.is_empty() {
                    self.counts.note("value cut");
                }
                if !e.drops.is_empty() {
                    self.counts.note("value left out");
                }
            }
            Event::TurnOrdered(e) => {
                let metered = run.turns_out().filter(|(_, it)| {
                    it.state.turn().is_some_and(|turn| turn.reserved.money > Usd(0))
                });
                if e.reserved.money > Usd(0) && metered.count() > 1 {
                    self.counts.note("two turns that cost money");
                }
                if e.reserved.money == run.purse.limit.money {
                    self.counts.note("turn of unknown cost");
                }
            }
            Event::TurnFinished(e) if e.result.usage == Usage::unknown() => {
                self.counts.note("result of unknown cost");
            }
            Event::LateResultKept(e)
                if self.witness.history.deadlines.has_ended(e.turn.handoff) =>
            {
                self.counts.note("result after its deadline");
            }
            Event::RecoveryChosen(e) if e.gathered.is_some() => {
                self.counts.note(match e.action {
                    Strategy::Escalate => "part kept, a person asked",
                    _ => "part kept, another target",
                });
            }
            _ => {}
        }
    }
}

/// The size from which a value counts as large, in bytes.
const LARGE: usize = 100_000;

/// Returns a further kind under which an event is counted.
fn detail(event: &Event) -> Option<&'static str> {
    Some(match event {
        Event::HandoffRefused(e) => match e.refusal {
            Refusal::TooLarge { .. } => "refused: too large",
            Refusal::Silent { .. } => "refused: silent",
            Refusal::TooMany { .. } => "refused: too many",
            Refusal::ItemLimit { .. } => "refused: item limit",
            Refusal::RunLimit { .. } => "refused: run limit",
            Refusal::Repeated { .. } => "refused: repeated",
            Refusal::Cycle { .. } => "refused: cycle",
            Refusal::LoopExhausted { .. } => "refused: loop exhausted",
            Refusal::NoProgress { .. } => "refused: no progress",
            Refusal::UnknownTarget { .. } => "refused: unknown target",
            Refusal::Denied { .. } => "refused: denied",
            Refusal::NoRoute { .. } => "refused: no route",
            Refusal::MissingEvidence { .. } => "refused: missing evidence",
            Refusal::Objected { .. } => "refused: objection",
        },
        Event::RecoveryChosen(e) => match e.action {
            Strategy::RetryDifferentTarget => "recovery: another target",
            Strategy::ProceedPartial => "recovery: proceed with a part",
            Strategy::Escalate => "recovery: a person",
            Strategy::SkipAndContinue => "recovery: skip",
            Strategy::FallbackDefault => "recovery: a default",
        },
        Event::HandoffClosed(e) => match e.way {
            Way::Answered => "closed: answered",
            Way::Expired => "closed: expired",
            Way::Cancelled => "closed: cancelled",
        },
        Event::HandoffResumed(e) if e.afresh => "begun afresh",
        Event::QuestionAnswered(e) if e.answer.by == "default" => "default taken",
        Event::RunFinished(e) => match e.ending.status {
            Status::Succeeded => "run succeeded",
            Status::Failed => "run failed",
            _ => "run cancelled",
        },
        _ => return None,
    })
}
