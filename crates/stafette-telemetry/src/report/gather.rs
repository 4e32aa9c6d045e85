//! The content of a report, gathered from the events.

use std::collections::BTreeMap;

use stafette_core::{Event, HandoffId, Offer, Party, RunId, Time, Usage};
use stafette_engine::Stored;

use crate::book::{Book, Fact};
use crate::metrics::AgentCounts;

/// Content of a report.
pub(super) struct Gathered {
    pub(super) request: String,
    pub(super) workflow: String,
    pub(super) by: String,
    pub(super) status: String,
    pub(super) why: String,
    pub(super) began: Time,
    pub(super) ended: Time,
    pub(super) spent: Usage,
    pub(super) rows: Vec<Row>,
    pub(super) costs: BTreeMap<String, AgentCounts>,
    /// Time, kind, subject and reason of each dissent.
    pub(super) dissent: Vec<(Time, String, String, String)>,
}

/// A handoff in the report.
pub(super) struct Row {
    number: HandoffId,
    pub(super) id: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) reason: String,
    pub(super) state: String,
    pub(super) said: String,
    pub(super) answer: String,
    pub(super) question: Option<String>,
    pub(super) answered: Option<(String, String)>,
    pub(super) began: Time,
    pub(super) ended: Option<Time>,
    /// Start and end of each turn, and true if it failed.
    pub(super) turns: Vec<(Time, Time, bool)>,
}

impl Row {
    fn new(number: HandoffId, offer: &Offer, at: Time) -> Self {
        let details = offer.question.as_ref().map(|question| question.details.clone());
        let said = [&offer.summary, &offer.detail].into_iter().find(|text| !text.is_empty());
        Row {
            number,
            id: number.to_string(),
            from: offer.from.to_string(),
            to: offer.to.to_string(),
            reason: offer.reason.as_str().to_owned(),
            state: "open".into(),
            said: said.cloned().unwrap_or_default(),
            answer: String::new(),
            question: details.or_else(|| (offer.to == Party::Human).then(|| offer.summary.clone())),
            answered: None,
            began: at,
            ended: None,
            turns: Vec::new(),
        }
    }

    /// Returns true if the handoff is to a person.
    pub(super) fn is_person(&self) -> bool {
        self.to == Party::Human.as_str()
    }
}

impl Gathered {
    pub(super) fn of(run: RunId, events: &[Stored]) -> Self {
        let first = events.first().map_or(Time(0), |stored| stored.entry.at);
        let last = events.last().map_or(first, |stored| stored.entry.at);
        let mut told = Gathered {
            request: String::new(),
            workflow: String::new(),
            by: String::new(),
            status: "not over yet".into(),
            why: String::new(),
            began: first,
            ended: last,
            spent: Usage::default(),
            rows: Vec::new(),
            costs: BTreeMap::new(),
            dissent: Vec::new(),
        };
        let mut book = Book::default();
        for stored in events {
            let at = stored.entry.at;
            let Ok(event) = Event::from_json(&stored.entry.body) else { continue };
            told.event(at, &event);
            for fact in book.apply(run, at, &event) {
                told.fact(at, &fact);
            }
        }
        told
    }

    fn row(&mut self, id: HandoffId) -> Option<&mut Row> {
        self.rows.iter_mut().rev().find(|row| row.number == id)
    }

    fn event(&mut self, at: Time, event: &Event) {
        match event {
            Event::RunCreated(created) => {
                self.request.clone_from(&created.request);
                self.workflow.clone_from(&created.workflow.workflow.name);
                self.by.clone_from(&created.by);
            }
            Event::RunForked(forked) => {
                self.request.clone_from(&forked.state.request);
                self.workflow.clone_from(&forked.state.workflow.workflow.name);
                self.by =
                    format!("{}, from run {} after event {}", forked.by, forked.from, forked.after);
                for handoff in forked.state.open() {
                    self.rows.push(Row::new(handoff.id, &handoff.offer, at));
                }
            }
            Event::RunFinished(finished) => {
                self.status = finished.ending.status.word().to_owned();
                self.why.clone_from(&finished.ending.why);
            }
            Event::HandoffAdmitted(admitted) => {
                self.rows.push(Row::new(admitted.id, &admitted.offer, at));
            }
            Event::HandoffRefused(refused) => {
                let mut row = Row::new(refused.id, &refused.offer, at);
                (row.state, row.answer) = ("refused".into(), refused.refusal.to_string());
                row.ended = Some(at);
                let about = format!("{} {} → {}", row.id, row.from, row.to);
                self.dissent.push((at, "refused".into(), about, row.answer.clone()));
                self.rows.push(row);
            }
            Event::HandoffClosed(closed) => {
                let Some(row) = self.row(closed.handoff) else { return };
                let response = &closed.response;
                row.ended = Some(at);
                row.state = closed.way.word(response.outcome).into();
                row.answer = match response.summary.is_empty() {
                    true => response.failure.clone().unwrap_or_default(),
                    false => response.summary.clone(),
                };
            }
            Event::QuestionAnswered(answered) => {
                let answer = &answered.answer;
                let values = answer.values.iter().map(|(key, value)| format!("{key} = {value}"));
                let words = std::iter::once(answer.text.clone()).chain(values);
                let words = words.filter(|words| !words.is_empty()).collect::<Vec<_>>().join("\n");
                let by = answer.by.clone();
                if let Some(row) = self.row(answered.handoff) {
                    row.answered = Some((words, by));
                }
            }
            Event::RecoveryChosen(chosen) => {
                let action = serde_json::to_value(chosen.action).unwrap_or_default();
                let action = action.as_str().unwrap_or_default().to_owned();
                self.dissent.push((at, action, chosen.handoff.to_string(), chosen.reason.clone()));
            }
            Event::BudgetReached(reached) => {
                self.dissent.push((at, "budget".into(), reached.part.clone(), reached.why.clone()));
            }
            Event::AlertRaised(alert) => {
                let word = if alert.printed { "printed alert" } else { "alert" };
                self.dissent.push((at, word.into(), alert.code.clone(), alert.message.clone()));
            }
            Event::FrameIgnored(ignored) => {
                let about = ignored.turn.handoff.to_string();
                self.dissent.push((at, "ignored frame".into(), about, ignored.reason.clone()));
            }
            Event::LateResultKept(late) => {
                let why = "its result came too late and is kept as evidence".to_owned();
                self.dissent.push((at, "late".into(), late.turn.handoff.to_string(), why));
            }
            _ => {}
        }
    }

    fn fact(&mut self, at: Time, fact: &Fact) {
        let Fact::TurnEnded { about, turn, began, usage, failure, .. } = fact else { return };
        let cost = self.costs.entry(about.to.to_string()).or_default();
        cost.turns += 1;
        cost.time_ms += at.since(*began).0;
        cost.tokens += usage.tokens;
        cost.micro_usd += usage.money.0;
        cost.unknown = cost.unknown + usage.unknown;
        self.spent += *usage;
        if let Some(failure) = failure {
            let about = format!("{} of {}", turn.handoff, about.to);
            self.dissent.push((at, "broke".into(), about, failure.message.clone()));
        }
        if let Some(row) = self.row(turn.handoff) {
            row.turns.push((*began, at, failure.is_some()));
        }
    }
}
