//! The permissions that an agent waits for.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use super::wire::{Choice, PermissionDecision, Responder};
use crate::{Reply, Signal};

/// The maximum number of open questions; further ones are answered with no.
const OPEN: usize = 16;

#[derive(Debug)]
struct Question {
    choices: Vec<Choice>,
    answer: Responder<PermissionDecision>,
    until: Instant,
}

/// The open questions of a turn.
#[derive(Debug)]
pub(super) struct Questions {
    delivery: u32,
    open: BTreeMap<String, Question>,
    last: u64,
}

impl Questions {
    /// Begins without questions. Those of another delivery have other ids, so that an answer to one
    /// of them is not taken for an answer to one of these.
    pub(super) fn new(delivery: u32) -> Self {
        Questions { delivery, open: BTreeMap::new(), last: 0 }
    }

    /// Asks a question; the signal goes to the person who decides. `None` when there is only one
    /// possible answer, so that no one needs to be asked.
    pub(super) fn ask(
        &mut self,
        title: String,
        detail: String,
        choices: Vec<Choice>,
        answer: Responder<PermissionDecision>,
        within: Duration,
    ) -> Option<Signal> {
        if self.open.len() >= OPEN || !choices.iter().any(|choice| choice.yes) {
            answer.give(Ok(no(&choices)));
            return None;
        }
        self.last += 1;
        let choices = distinct(choices);
        let options = choices.iter().map(|choice| choice.name.clone()).collect();
        let default = match no(&choices) {
            PermissionDecision::Chosen(id) => name(&choices, &id),
            PermissionDecision::Dropped => None,
        };
        let until = Instant::now() + within;
        let id = format!("{}.{}", self.delivery, self.last);
        self.open.insert(id.clone(), Question { choices, answer, until });
        Some(Signal::Asks { id, title, detail, options, default, within })
    }

    /// Takes an answer. Anything that is not an option means no.
    pub(super) fn reply(&mut self, reply: &Reply) -> Option<Signal> {
        let question = self.open.remove(&reply.id)?;
        let wanted = reply.choice.trim();
        let meant = question.choices.iter().find(|choice| choice.name == wanted).or_else(|| {
            question.choices.iter().find(|choice| choice.name.eq_ignore_ascii_case(wanted))
        });
        let verdict = match meant {
            Some(choice) => PermissionDecision::Chosen(choice.id.clone()),
            None => no(&question.choices),
        };
        Some(settle(reply.id.clone(), question, verdict))
    }

    /// The time at which the first of them expires.
    pub(super) fn until(&self) -> Option<Instant> {
        self.open.values().map(|question| question.until).min()
    }

    /// Answers no to the questions that have expired.
    pub(super) fn expire(&mut self) -> Vec<Signal> {
        let now = Instant::now();
        let late = self.open.iter().filter(|(_, question)| question.until <= now);
        let late: Vec<String> = late.map(|(id, _)| id.clone()).collect();
        late.into_iter()
            .filter_map(|id| {
                let question = self.open.remove(&id)?;
                let verdict = no(&question.choices);
                Some(settle(id, question, verdict))
            })
            .collect()
    }

    /// Drops all questions, since the turn has ended.
    pub(super) fn fall_away(&mut self) -> Vec<Signal> {
        let open = std::mem::take(&mut self.open).into_iter();
        open.map(|(id, question)| settle(id, question, PermissionDecision::Dropped)).collect()
    }
}

fn settle(id: String, question: Question, verdict: PermissionDecision) -> Signal {
    let choice = match &verdict {
        PermissionDecision::Chosen(chosen) => name(&question.choices, chosen),
        PermissionDecision::Dropped => None,
    };
    question.answer.give(Ok(verdict));
    Signal::Settled { id, choice }
}

/// The display name of a choice.
fn name(choices: &[Choice], id: &str) -> Option<String> {
    choices.iter().find(|choice| choice.id == id).map(|choice| choice.name.clone())
}

/// The choice that allows it, if there is one: preferably once, not for ever.
pub(super) fn yes(choices: &[Choice]) -> Option<PermissionDecision> {
    said(choices, true)
}

/// The choice that denies it: preferably once, not for ever.
pub(super) fn no(choices: &[Choice]) -> PermissionDecision {
    said(choices, false).unwrap_or(PermissionDecision::Dropped)
}

fn said(choices: &[Choice], yes: bool) -> Option<PermissionDecision> {
    let mut fitting: Vec<&Choice> = choices.iter().filter(|choice| choice.yes == yes).collect();
    fitting.sort_by_key(|choice| choice.always);
    fitting.first().map(|choice| PermissionDecision::Chosen(choice.id.clone()))
}

/// Makes the names of the choices unique.
fn distinct(mut choices: Vec<Choice>) -> Vec<Choice> {
    for at in 1..choices.len() {
        let (before, rest) = choices.split_at_mut(at);
        if before.iter().any(|earlier| earlier.name == rest[0].name) {
            rest[0].name = format!("{} ({})", rest[0].name, rest[0].id);
        }
    }
    choices
}
