//! Redaction of everything that arrives: inputs, new runs, and requests to the locks.

use super::{Redact, Redactor};
use crate::lock::{Ask, Claim};
use crate::run::create::RunCreated;
use crate::team::Inheritance;
use crate::team::change::{Hand, Heard};
use crate::team::order::{LeftFile, Leftover};
use crate::{Input, PrintedFrame, TeamInput};

redact! {
    Claim { clean: reason; keep: holder, turn, patterns, mode, lease }
}

impl Redact for Input {
    fn redact(&mut self, redactor: &Redactor) {
        match self {
            Input::Tick => {}
            Input::Adopt { by } => by.redact(redactor),
            Input::Receipt { turn: _, receipt: _ } => {}
            Input::Take { turn: _, by, lease: _ } => by.redact(redactor),
            Input::Tell { turn: _, told } => told.redact(redactor),
            // The agent waits for an answer under the id that it gave the request.
            Input::Ask { turn: _, request: _, question } => question.redact(redactor),
            Input::Settle { turn: _, request: _, choice } => choice.redact(redactor),
            Input::Session { agent: _, state: _, note } => note.redact(redactor),
            Input::Heartbeat { turn: _, note } => note.redact(redactor),
            Input::Finish { turn: _, result } => result.redact(redactor),
            Input::Fail { turn: _, failure, usage: _ } => failure.redact(redactor),
            Input::Propose { offer } => offer.redact(redactor),
            Input::Answer { handoff: _, values, text, by } => {
                values.redact(redactor);
                text.redact(redactor);
                by.redact(redactor);
            }
            Input::Postpone { handoff: _, until: _, why } => why.redact(redactor),
            Input::Send { to: _, from: _, by, text } => {
                by.redact(redactor);
                text.redact(redactor);
            }
            Input::Deliver { turn: _, messages: _, way: _ } => {}
            Input::Printed { turn: _, frame: PrintedFrame::Unreadable { reason } } => {
                reason.redact(redactor);
            }
            Input::Printed { turn: _, frame: PrintedFrame::Error { code, message } }
            | Input::Alert { code, message } => {
                code.redact(redactor);
                message.redact(redactor);
            }
            Input::ClockJumped { by: _ } | Input::RaiseBudget(_) => {}
            Input::Pause { by } | Input::Unpause { by } => by.redact(redactor),
            Input::Cancel { by, why } => {
                by.redact(redactor);
                why.redact(redactor);
            }
            Input::Team(input) => input.redact(redactor),
        }
    }
}

impl Redact for TeamInput {
    fn redact(&mut self, redactor: &Redactor) {
        match self {
            TeamInput::ProposeChange { turn: _, set } => set.redact(redactor),
            TeamInput::CommentChange { change: _, comment } => comment.redact(redactor),
            // The holder of a lock is compared with the lock's.
            TeamInput::OrderChange {
                change: _,
                revision: _,
                work: _,
                by: Hand { name, holder: _ },
                batch: _,
                as_it_is: _,
            } => {
                name.redact(redactor);
            }
            TeamInput::DecideChange { change: _, revision: _, status: _, by, note }
            | TeamInput::SettleChange { change: _, order: _, status: _, by, note } => {
                by.redact(redactor);
                note.redact(redactor);
            }
            TeamInput::OrderDone { order: _, heard, left } => {
                if let Some(Heard::Nobody { why }) = heard {
                    why.redact(redactor);
                }
                if let Some(left) = left {
                    let Leftover { branch, folder, why, count: _, files } = &mut **left;
                    branch.iter_mut().chain(folder).chain([why]).for_each(|it| it.redact(redactor));
                    for LeftFile { file, why } in files {
                        file.redact(redactor);
                        why.redact(redactor);
                    }
                }
            }
            TeamInput::Note { text, by } => {
                text.redact(redactor);
                by.redact(redactor);
            }
            TeamInput::HandOver { changes: _ } => {}
        }
    }
}

impl Redact for RunCreated {
    fn redact(&mut self, redactor: &Redactor) {
        let RunCreated {
            run: _,
            // Its user wrote it and trusts it, and the run has to follow it to the letter.
            workflow: _,
            request,
            inputs,
            budget: _,
            by,
            origin,
            trace: _,
            forecasts: _,
            entry: _,
            team: Inheritance { lineage },
        } = self;
        request.redact(redactor);
        inputs.redact(redactor);
        by.redact(redactor);
        origin.redact(redactor);
        lineage.redact(redactor);
    }
}

impl Redact for Ask {
    fn redact(&mut self, redactor: &Redactor) {
        match self {
            Ask::Take { claim, on_conflict: _, wait: _ } => claim.redact(redactor),
            Ask::TakeOver { id: _, by: _, why } => why.redact(redactor),
            Ask::Renew { id: _, by: _, fence: _, lease: _ }
            | Ask::Release { id: _, by: _ }
            | Ask::Clear { run: _, keep: _ }
            | Ask::Tick => {}
        }
    }
}
