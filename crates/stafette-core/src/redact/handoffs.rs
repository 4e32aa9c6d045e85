//! Redaction of handoffs, answers and their parts.

use super::{Redact, Redactor};
use crate::change::{Comment, Gate};
use crate::handoff::{About, Foreign, PriorAttempt};
use crate::input::Failure;
use crate::run::tell::TurnReport;
use crate::team::Said;
use crate::team::change::{FileNote, ProposedSet};
use crate::team::council::vote::Vote;
use crate::{MissingInput, Offer, Question, Reason, Response, TurnResult};

redact! {
    Offer {
        clean: reason, detail, item, summary, instructions, outputs, missing, prior_attempts,
            question, foreign, objections;
        keep: from, to, kind, priority, timeout, trace
    }
    // Field names are cleaned as well: the value that answers it has the same name.
    MissingInput { clean: key, expected_type, description, source; keep: }
    PriorAttempt { clean: action, result; keep: attempt, tried }
    Foreign { clean: fields; keep: dialect, id }
    Question {
        clean: reason, details, options, context, default, about, answer_with;
        keep: blocking, within
    }
    Response {
        clean: outputs, unresolved, failure, recommendations, summary, question, foreign;
        keep: by, outcome, took, usage
    }
    // The fingerprint is a digest of files.
    TurnResult { clean: response, offers, said; keep: usage, fingerprint, bare, unanswered }
    TurnReport { clean: offers, response, said; keep: usage }
    Said { clean: vote; keep: measured }
    Vote { clean: reason, key_decisions, next_topic; keep: signal }
    Failure { clean: message; keep: kind, until }
    ProposedSet {
        clean: reason, files, gates;
        keep: change, agent, handoff, revision, count, status
    }
    FileNote { clean:; keep: file, action, from, before, after }
    Gate { clean:; keep: kind, file }
    Comment { clean: by, text; keep: at, file, line, revision }
}

impl Redact for Reason {
    fn redact(&mut self, redactor: &Redactor) {
        match self {
            // The giver may write anything here.
            Reason::Other(word) => word.redact(redactor),
            Reason::MissingRequiredInput
            | Reason::ValidationFailure
            | Reason::ExpertiseMismatch
            | Reason::ResourceExhausted
            | Reason::RequiresHumanDecision
            | Reason::TaskHandoff
            | Reason::ReviewRequest
            | Reason::FixRequest
            | Reason::RereviewRequest
            | Reason::Completion
            | Reason::Escalation
            | Reason::Stage => {}
        }
    }
}

impl Redact for About {
    fn redact(&mut self, redactor: &Redactor) {
        match self {
            About::Confirm(_, result) => result.redact(redactor),
            About::Inputs
            | About::Recovery(_)
            | About::Loop(_)
            | About::Unconfirmed(_)
            // The agent waits for an answer under the id that it gave the request.
            | About::Permission(_, _)
            | About::Budget
            | About::Team(_) => {}
        }
    }
}
