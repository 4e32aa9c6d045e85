//! What the events of a seed amount to, so that it can be seen what the seeds cover.

use stafette_core::handoff::{About, Way};
use stafette_core::run::propose::Refusal;
use stafette_core::workflow::Strategy;
use stafette_core::{Event, Party, Status};
use stafette_store::Stored;

use super::World;

impl World {
    /// Counts what the events tell.
    pub(super) fn count(&mut self, added: &[Stored]) {
        for stored in added {
            let Ok(event) = serde_json::from_str::<Event>(&stored.entry.body) else { continue };
            self.counts.note(event.name());
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
                    About::Confirm(..) => "question about plain output",
                    About::Permission(..) => "question about a permission",
                    About::Budget => "budget stop",
                    About::Change(_) => "question about a change",
                    About::Council(_) => "question about a council",
                    About::CheckIn(_) => "question about a generation",
                });
            }
        }
    }
}

/// What else an event is counted as.
fn detail(event: &Event) -> Option<&'static str> {
    Some(match event {
        Event::HandoffRefused(e) => match e.refusal {
            Refusal::TooLarge { .. } => "refused: too large",
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
