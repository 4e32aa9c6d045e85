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

impl Redact for Offer {
    fn redact(&mut self, redactor: &Redactor) {
        let Offer {
            from: _,
            to: _,
            kind: _,
            reason,
            detail,
            item,
            priority: _,
            summary,
            instructions,
            outputs,
            missing,
            prior_attempts,
            timeout: _,
            question,
            foreign,
            objections,
            trace: _,
        } = self;
        reason.redact(redactor);
        detail.redact(redactor);
        item.redact(redactor);
        summary.redact(redactor);
        instructions.redact(redactor);
        outputs.redact(redactor);
        missing.redact(redactor);
        prior_attempts.redact(redactor);
        question.redact(redactor);
        foreign.redact(redactor);
        objections.redact(redactor);
    }
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

impl Redact for MissingInput {
    fn redact(&mut self, redactor: &Redactor) {
        let MissingInput { key, expected_type, description, source } = self;
        // Field names are cleaned as well: the value that answers it has the same name.
        key.redact(redactor);
        expected_type.redact(redactor);
        description.redact(redactor);
        source.redact(redactor);
    }
}

impl Redact for PriorAttempt {
    fn redact(&mut self, redactor: &Redactor) {
        let PriorAttempt { attempt: _, action, result, tried: _ } = self;
        action.redact(redactor);
        result.redact(redactor);
    }
}

impl Redact for Foreign {
    fn redact(&mut self, redactor: &Redactor) {
        let Foreign { dialect: _, id: _, fields } = self;
        fields.redact(redactor);
    }
}

impl Redact for Question {
    fn redact(&mut self, redactor: &Redactor) {
        let Question {
            reason,
            details,
            options,
            context,
            blocking: _,
            within: _,
            default,
            about,
            answer_with,
        } = self;
        answer_with.redact(redactor);
        reason.redact(redactor);
        details.redact(redactor);
        options.redact(redactor);
        context.redact(redactor);
        default.redact(redactor);
        about.redact(redactor);
    }
}

impl Redact for About {
    fn redact(&mut self, redactor: &Redactor) {
        match self {
            About::Confirm(_, result) => result.redact(redactor),
            About::Inputs
            | About::Recovery(_)
            | About::Loop(_)
            // The agent waits for an answer under the id that it gave the request.
            | About::Permission(_, _)
            | About::Budget
            | About::Team(_) => {}
        }
    }
}

impl Redact for Response {
    fn redact(&mut self, redactor: &Redactor) {
        let Response {
            by: _,
            outcome: _,
            outputs,
            unresolved,
            failure,
            recommendations,
            summary,
            took: _,
            usage: _,
            foreign,
        } = self;
        outputs.redact(redactor);
        unresolved.redact(redactor);
        failure.redact(redactor);
        recommendations.redact(redactor);
        summary.redact(redactor);
        foreign.redact(redactor);
    }
}

impl Redact for TurnResult {
    fn redact(&mut self, redactor: &Redactor) {
        // The fingerprint is a digest of files.
        let TurnResult { response, offers, usage: _, fingerprint: _, said, bare: _, unanswered: _ } =
            self;
        response.redact(redactor);
        offers.redact(redactor);
        said.redact(redactor);
    }
}

impl Redact for TurnReport {
    fn redact(&mut self, redactor: &Redactor) {
        let TurnReport { offers, response, usage: _, said } = self;
        offers.redact(redactor);
        response.redact(redactor);
        said.redact(redactor);
    }
}

impl Redact for Said {
    fn redact(&mut self, redactor: &Redactor) {
        let Said { vote, measured: _ } = self;
        vote.redact(redactor);
    }
}

impl Redact for Vote {
    fn redact(&mut self, redactor: &Redactor) {
        let Vote { signal: _, reason, key_decisions, next_topic } = self;
        reason.redact(redactor);
        key_decisions.redact(redactor);
        next_topic.redact(redactor);
    }
}

impl Redact for Failure {
    fn redact(&mut self, redactor: &Redactor) {
        let Failure { kind: _, message, until: _ } = self;
        message.redact(redactor);
    }
}

impl Redact for ProposedSet {
    fn redact(&mut self, redactor: &Redactor) {
        let ProposedSet {
            change: _,
            agent: _,
            handoff: _,
            revision: _,
            reason,
            count: _,
            files,
            gates,
            status: _,
        } = self;
        reason.redact(redactor);
        files.redact(redactor);
        gates.redact(redactor);
    }
}

impl Redact for FileNote {
    fn redact(&mut self, _: &Redactor) {
        let FileNote { file: _, action: _, from: _, before: _, after: _ } = self;
    }
}

impl Redact for Gate {
    fn redact(&mut self, _: &Redactor) {
        let Gate { kind: _, file: _ } = self;
    }
}

impl Redact for Comment {
    fn redact(&mut self, redactor: &Redactor) {
        let Comment { by, at: _, file: _, line: _, revision: _, text } = self;
        by.redact(redactor);
        text.redact(redactor);
    }
}
