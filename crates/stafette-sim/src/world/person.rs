//! People: they answer in time, late, never or with invalid values, and sometimes they intervene.

use serde_json::json;
use stafette_core::handoff::About;
use stafette_core::run::budget::Grant;
use stafette_core::team::generation::ChangeCounts;
use stafette_core::{
    Fields, HandoffId, Input, Kind, Millis, MissingInput, Offer, Party, Question, Reason, State,
    TeamInput, Usd,
};

use super::{Happening, Message, Reply, World};
use crate::cast::weight;

/// The number of times that a person tries to send an input.
const TRIES: u32 = 5;

impl World {
    /// Decides if, when and how a question is answered.
    pub(super) fn plan_an_answer(&mut self, id: HandoffId) {
        let Some(handoff) = self.witness.run.as_ref().and_then(|run| run.handoff(id)) else {
            return;
        };
        let State::Asked { until } = handoff.state else { return };
        let question = handoff.offer.question.clone().unwrap_or_default();
        let missing = handoff.offer.missing.clone();
        let people = &self.cast.people;
        if self.patience == 0 || self.chance.percent(people.silent) {
            self.counts.note("question overlooked");
            return;
        }
        self.patience -= 1;
        let left = until.since(self.now).0;
        let after = if self.chance.percent(self.cast.people.late) {
            left * self.chance.between(80, 130) / 100
        } else {
            self.chance.between(500, 300_000).min(left / 2)
        };
        let input = self.answer_to(id, &question, &missing);
        match self.chance.below(20) {
            0 | 1 => {
                let again = Happening::Say { input: input.clone(), tries: 0 };
                self.plan(Millis(after + 700), again);
            }
            // Another person answers in the same moment, perhaps with the same words.
            2 => {
                let mut other = self.answer_to(id, &question, &missing);
                if let Input::Answer { by, .. } = &mut other {
                    "ben".clone_into(by);
                }
                let inputs = vec![input, other];
                self.plan(Millis(after), Happening::Crowd { inputs });
                return;
            }
            _ => {}
        }
        let unfit =
            missing.iter().any(|input| !["string", "currency"].contains(&&*input.expected_type));
        if unfit {
            // A rejected answer is improved.
            let better = self.fitting_answer(id, &missing);
            self.plan(Millis(after + 5000), Happening::Say { input: better, tries: 0 });
        }
        self.plan(Millis(after), Happening::Say { input, tries: 0 });
    }

    /// Returns an answer with every value of the requested type.
    fn fitting_answer(&mut self, id: HandoffId, missing: &[MissingInput]) -> Input {
        let fitting = |input: &MissingInput| match input.expected_type.as_str() {
            "number" => json!("7"),
            "string[]" => json!("one, two"),
            "boolean" => json!(true),
            "object" => json!({ "from": "a person" }),
            _ => json!("from a person"),
        };
        let values = missing.iter().map(|input| (input.key.clone(), fitting(input))).collect();
        Input::Answer { handoff: id, values, text: String::new(), by: "ada".to_owned() }
    }

    fn answer_to(&mut self, id: HandoffId, question: &Question, missing: &[MissingInput]) -> Input {
        let mut values = Fields::new();
        let mut text = match self.chance.pick(&question.options) {
            Some(option) => option.clone(),
            None => "so it is".to_owned(),
        };
        // To stop is always among the options, and would end most runs early.
        if text == "stop" && self.chance.percent(85) {
            text = match question.about {
                About::Budget => "raise".to_owned(),
                About::Recovery(_) => "retry".to_owned(),
                _ => "try once more".to_owned(),
            };
        }
        if self.chance.percent(self.cast.people.rubbish) {
            self.counts.note("rubbish answer");
            text = self.chance.one(["", "¿qué?", "0.25usd", "-1", "allow", "retry"]).to_owned();
        } else if self.chance.percent(50) {
            let said = json!("from a person");
            values.extend(missing.iter().map(|input| (input.key.clone(), said.clone())));
        }
        if self.cast.large
            && let Some(value) = weight(&mut self.chance)
        {
            values.insert("notes".to_owned(), value);
        }
        Input::Answer { handoff: id, values, text, by: "ada".to_owned() }
    }

    /// Plans an unrequested action.
    pub(super) fn plan_a_whim(&mut self) {
        let by = || "ada".to_owned();
        let after = self.chance.between(1000, 600_000);
        let input = match self.chance.below(14) {
            0..3 => {
                if self.chance.percent(80) {
                    let later = after + self.chance.between(1000, 3_600_000);
                    let unpause = Happening::Say { input: Input::Unpause { by: by() }, tries: 0 };
                    self.plan(Millis(later), unpause);
                }
                Input::Pause { by: by() }
            }
            3..6 => {
                let grant = Grant { money: Usd(100_000), tokens: 1000, ..Grant::default() };
                Input::RaiseBudget(grant)
            }
            6..8 => self.wish("ada"),
            8..10 => {
                // Several people act in one moment, each with a different wish.
                let inputs = ["ada", "ben", "eve"].map(|by| self.wish(by)).to_vec();
                self.plan(Millis(after), Happening::Crowd { inputs });
                return;
            }
            12 => Input::Team(TeamInput::Note { text: "mind the gap".to_owned(), by: by() }),
            13 => Input::Team(TeamInput::HandOver { changes: ChangeCounts::default() }),
            10 => Input::Alert { code: "ODD".to_owned(), message: "it smells".to_owned() },
            _ => Input::Cancel { by: by(), why: String::new() },
        };
        self.plan(Millis(after), Happening::Say { input, tries: 0 });
    }

    /// Returns a person's request to an agent, or to an unknown one.
    fn wish(&mut self, by: &str) -> Input {
        let agents: Vec<Party> = self.cast.workflow.agents.keys().map(Party::from).collect();
        let to = match self.chance.pick(&agents).cloned() {
            Some(party) if self.chance.percent(75) => party,
            _ => Party::from("nobody"),
        };
        let offer = Offer::new(Party::Human, to, Kind::Transfer, Reason::TaskHandoff);
        let summary = format!("what {by} wants");
        Input::Propose { offer: Box::new(Offer { summary, ..offer }) }
    }

    /// Sends inputs of several people to one process, in one moment.
    pub(super) fn crowd(&mut self, inputs: Vec<Input>) {
        let up = (0..self.nodes.len()).find(|node| self.up(*node).is_some());
        let Some(node) = up else { return self.counts.note("person gave up") };
        for input in inputs {
            self.push(node, Message { input, reply: Reply::Asked { tries: 0 } });
        }
    }

    /// Sends a person's input to any process that runs.
    pub(super) fn say(&mut self, input: Input, tries: u32) {
        let up: Vec<usize> = (0..self.nodes.len())
            .filter(|node| matches!(self.nodes[*node].stand, super::Stand::Up(_)))
            .collect();
        match self.chance.pick(&up).copied() {
            Some(node) => self.push(node, Message { input, reply: Reply::Asked { tries } }),
            None if tries < TRIES => {
                let after = Millis(self.chance.between(1000, 120_000));
                self.plan(after, Happening::Say { input, tries: tries + 1 });
            }
            None => self.counts.note("person gave up"),
        }
    }
}
