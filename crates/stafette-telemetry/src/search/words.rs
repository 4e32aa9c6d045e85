//! The searchable words of an event: its texts, without the data format around them.

use serde_json::Value;
use stafette_core::{Event, Offer, TeamEvent};
use stafette_engine::Seen;
use stafette_store::Text;

/// Maximum indexed size of one event, in bytes.
const MOST: usize = 256 * 1024;

/// Returns the text of an event, if it contains any.
pub(super) fn of(seen: &Seen) -> Option<Text> {
    if is_mute(seen.name()) {
        return None;
    }
    let mut words = Words::default();
    let who = match seen.event()? {
        Event::RunCreated(created) => {
            words.say(&created.request);
            created.inputs.iter().for_each(|(key, value)| words.field(key, value));
            created.by.clone()
        }
        Event::RunFinished(finished) => {
            words.say(&finished.ending.why);
            String::new()
        }
        Event::HandoffAdmitted(admitted) => words.offer(&admitted.offer),
        Event::HandoffRefused(refused) => {
            words.say(&refused.refusal.to_string());
            words.offer(&refused.offer)
        }
        Event::TurnFinished(finished) => words.value(&finished.result.response),
        Event::LateResultKept(late) => words.value(&late.result.response),
        Event::TurnTold(told) => words.value(told),
        Event::HandoffClosed(closed) => {
            words.say(closed.response.failure.as_deref().unwrap_or_default());
            closed.response.by.to_string()
        }
        Event::TurnFailed(failed) => {
            words.say(&failed.failure.message);
            String::new()
        }
        Event::QuestionAnswered(answered) => {
            words.say(&answered.answer.text);
            answered.answer.values.iter().for_each(|(key, value)| words.field(key, value));
            answered.answer.by.clone()
        }
        Event::Team(TeamEvent::ChangeProposed(proposed)) => {
            words.say(&proposed.set.reason);
            proposed.set.files.iter().for_each(|note| words.say(note.file.as_str()));
            proposed.set.agent.as_ref().map(ToString::to_string).unwrap_or_default()
        }
        Event::Team(TeamEvent::ChangeCommented(said)) => {
            words.say(&said.comment.text);
            said.comment.by.clone()
        }
        Event::RecoveryChosen(chosen) => {
            words.say(&chosen.reason);
            String::new()
        }
        Event::Team(TeamEvent::PhaseEnded(ended)) => {
            words.say(&ended.why);
            words.say(&ended.summary);
            String::new()
        }
        Event::AlertRaised(alert) => {
            words.say(&alert.code);
            words.say(&alert.message);
            String::new()
        }
        Event::MessageSent(sent) => {
            words.say(&sent.text);
            String::new()
        }
        Event::FrameIgnored(ignored) => {
            words.say(&ignored.reason);
            String::new()
        }
        Event::SessionChanged(changed) => {
            words.say(&changed.note);
            changed.agent.to_string()
        }
        Event::HandoffParked(parked) => {
            words.say(&parked.why);
            String::new()
        }
        _ => return None,
    };
    (!words.text.is_empty()).then(|| Text {
        run: seen.run,
        seq: seen.seq(),
        handoff: seen.handoff(),
        at: seen.at(),
        kind: seen.name().to_owned(),
        who,
        body: words.text,
    })
}

/// Returns true for the most frequent events without text; they need not be parsed.
fn is_mute(name: &str) -> bool {
    matches!(name, "turn_ordered" | "receipt_given" | "lease_renewed" | "handoff_resumed")
}

#[derive(Default)]
struct Words {
    text: String,
}

impl Words {
    fn say(&mut self, text: &str) {
        let text = text.trim();
        if text.is_empty() || self.text.len() >= MOST {
            return;
        }
        if !self.text.is_empty() {
            self.text.push('\n');
        }
        let room = MOST - self.text.len().min(MOST);
        self.text.push_str(&text[..text.floor_char_boundary(room)]);
    }

    fn field(&mut self, key: &str, value: &Value) {
        match value {
            Value::String(text) => self.say(&format!("{key}: {text}")),
            Value::Array(items) => items.iter().for_each(|item| self.field(key, item)),
            Value::Object(fields) => fields.iter().for_each(|(key, value)| self.field(key, value)),
            Value::Null => {}
            other => self.say(&format!("{key}: {other}")),
        }
    }

    /// Adds the texts of an offer, and returns its author.
    fn offer(&mut self, offer: &Offer) -> String {
        self.say(&offer.summary);
        self.say(&offer.detail);
        self.say(offer.instructions.as_deref().unwrap_or_default());
        offer.outputs.iter().for_each(|(key, value)| self.field(key, value));
        offer.missing.iter().for_each(|missing| self.say(&missing.description));
        if let Some(question) = &offer.question {
            self.say(&question.details);
            self.say(&question.context);
        }
        offer.from.to_string()
    }

    /// Adds all texts of a value, and returns its author if it names one.
    fn value(&mut self, said: &impl serde::Serialize) -> String {
        let Ok(value) = serde_json::to_value(said) else { return String::new() };
        let by = value["by"].as_str().unwrap_or_default().to_owned();
        let dull = ["by", "outcome", "took", "usage", "turn", "foreign"];
        for (key, value) in value.as_object().into_iter().flatten() {
            match value {
                _ if dull.contains(&key.as_str()) => {}
                Value::String(text) => self.say(text),
                other => self.field(key, other),
            }
        }
        by
    }
}
