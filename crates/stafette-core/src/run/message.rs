//! Messages to agents. One is recorded first; its agent is given it at its next step or with its next
//! turn, and the receipt says which. A turn that fails gives back what it was given.

use std::collections::BTreeMap;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Draft, Run};
use crate::clean::Clean;
use crate::{AgentName, Event, Ignored, MessageId, Party, Reply, RunId, Time, TurnKey};

/// The largest text of a message, in bytes. More would not fit into what programs take from a hook.
pub const MAX_TEXT: usize = 8 * 1024;

/// The longest name of a person, in bytes; the rest is cut off.
const MAX_NAME: usize = 200;

/// The number of messages that a run keeps, and the total length of their texts and names in bytes. Those
/// that still have to reach their agent are never dropped; the log has them all.
const KEPT: usize = 256;
const KEPT_BYTES: usize = 520 * 1024;

/// A message was sent to an agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MessageSent {
    /// The id of the message, unique in the run.
    pub id: MessageId,
    /// The agent that it is for.
    pub to: AgentName,
    /// `human`, or the agent that sent it.
    pub from: Party,
    /// The name of the person; empty for an agent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub by: String,
    /// The text, without characters that steer a terminal or hide.
    pub text: String,
    /// The messages that the run drops for it; `None` in events of older releases.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forgets: Option<Vec<MessageId>>,
}

/// An agent was given messages.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MessageDelivered {
    /// The turn in which it was given them.
    pub turn: TurnKey,
    /// The messages that it was given.
    pub messages: Vec<MessageId>,
    /// The moment at which it was given them.
    pub way: Way,
}

/// The run ends, and these messages have reached nobody.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct MessageUnread {
    /// The messages that no agent was given.
    pub messages: Vec<MessageId>,
}

/// The moment at which an agent is given a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Between two steps of a turn, after its tools have run.
    ToolBoundary,
    /// When its program would have ended the turn.
    Stop,
    /// With the prompt of a turn.
    NextTurn,
}

impl Way {
    /// Describes the moment for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Way::ToolBoundary => "delivered at a tool boundary",
            Way::Stop => "delivered when it would have stopped",
            Way::NextTurn => "delivered with the next turn",
        }
    }
}

/// A message to an agent.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Message {
    /// The message as it was sent.
    #[serde(flatten)]
    pub sent: MessageSent,
    /// The time at which it was sent.
    pub sent_at: Time,
    /// The turn whose prompt has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub given_to: Option<TurnKey>,
    /// The latest delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivered: Option<Delivery>,
    /// True if the turn of that delivery has failed: it is delivered again.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub again: bool,
}

/// The delivery of a message.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// The turn in which the agent was given it.
    pub turn: TurnKey,
    /// The moment at which the agent was given it.
    pub way: Way,
    /// The time of the delivery.
    pub at: Time,
}

impl Message {
    /// Returns the message as its agent reads it.
    #[must_use]
    pub fn told(&self, run: RunId) -> String {
        self.told_as(&format!("[message {run}/{}]", self.sent.id))
    }

    /// Returns the message as its agent reads it, named by a mark. Each line of the text is quoted, so
    /// that none can pose as another message or as somebody else's.
    #[must_use]
    pub fn told_as(&self, mark: &str) -> String {
        let from = match &self.sent.from {
            Party::Human if self.sent.by.is_empty() => "a person".to_owned(),
            Party::Human => format!("a person, {}", self.sent.by),
            agent => format!("the agent {agent}, not from a person"),
        };
        let again = match self.again {
            true => " (sent again, because that turn failed; ignore it if you know it)",
            false => "",
        };
        let text = self.sent.text.replace('\n', "\n> ");
        format!("{mark} from {from}, {}{again}:\n> {text}", self.sent_at)
    }

    /// True if it still has to reach its agent.
    fn is_open(&self) -> bool {
        self.delivered.is_none() || self.again
    }
}

/// The messages of a run. Bounded: all that still have to reach their agent, and the latest others.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Mailbox {
    /// The number of messages that were sent.
    pub count: u32,
    /// The messages, oldest first.
    pub messages: BTreeMap<MessageId, Arc<Message>>,
}

impl Mailbox {
    /// True if no message was ever sent.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the messages that belong to a turn: given with its prompt, or during it.
    pub(super) fn of_turn(&self, turn: TurnKey) -> Vec<Arc<Message>> {
        let is_of = |message: &&Arc<Message>| {
            message.given_to == Some(turn) || message.delivered.is_some_and(|it| it.turn == turn)
        };
        self.messages.values().filter(is_of).cloned().collect()
    }

    /// Opens the messages that were delivered in a turn that has failed.
    pub(super) fn take_back(&mut self, turn: TurnKey) {
        self.change(|message| {
            let lost = message.delivered.is_some_and(|it| it.turn == turn) && !message.again;
            lost.then(|| Message { again: true, ..message.clone() })
        });
    }

    /// Makes the turns those of a run that continues from this one.
    pub(super) fn forked(&mut self, run: RunId) {
        let own = |turn: TurnKey| TurnKey { run, ..turn };
        self.change(|message| {
            let delivered = message.delivered.map(|it| Delivery { turn: own(it.turn), ..it });
            Some(Message { given_to: message.given_to.map(own), delivered, ..message.clone() })
        });
    }

    fn change(&mut self, change: impl Fn(&Message) -> Option<Message>) {
        for message in self.messages.values_mut() {
            if let Some(changed) = change(message) {
                *message = Arc::new(changed);
            }
        }
    }

    /// Returns the messages to drop so that another one has room; `None` if there is none.
    fn surplus(&self, more: usize, holds: impl Fn(&Message) -> bool) -> Option<Vec<MessageId>> {
        let mut count = self.messages.len() + 1;
        let mut bytes = self.messages.values().map(|it| it.sent.bytes()).sum::<usize>() + more;
        let mut dropped = Vec::new();
        let mut settled = self.messages.values().filter(|message| !holds(message));
        while count > KEPT || bytes > KEPT_BYTES {
            let oldest = settled.next()?;
            (count, bytes) = (count - 1, bytes - oldest.sent.bytes());
            dropped.push(oldest.sent.id);
        }
        Some(dropped)
    }
}

impl Run {
    /// Returns the messages that an agent has not been given, oldest first.
    pub fn waiting_messages<'a>(
        &'a self,
        agent: &'a AgentName,
    ) -> impl Iterator<Item = &'a Arc<Message>> {
        let all = self.mail.messages.values().filter(move |message| message.sent.to == *agent);
        all.filter(|message| self.is_waiting(message))
    }

    fn is_waiting(&self, message: &Message) -> bool {
        message.is_open() && !message.given_to.is_some_and(|turn| self.is_current(turn))
    }

    /// True if a message may still be needed: it is open, or the turn that it was delivered in is.
    fn holds(&self, message: &Message) -> bool {
        message.is_open() || message.delivered.is_some_and(|it| self.is_current(it.turn))
    }

    fn room_for(&self, sent: &MessageSent) -> Option<Vec<MessageId>> {
        self.mail.surplus(sent.bytes(), |message| self.holds(message))
    }
}

/// Records a message. An agent reaches those that it hands work to, and those that hand work to it.
pub(super) fn send(draft: &mut Draft, to: AgentName, from: Party, by: String, text: &str) -> Reply {
    let unfit = |complaint: String| Reply::Unfit { complaints: vec![complaint] };
    let workflow = &draft.run.workflow;
    if !workflow.agents.contains_key(&to) {
        return Reply::Ignored(Ignored::Unknown);
    }
    let party = Party::from(&to);
    let know = |one: &Party, other: &Party| workflow.targets(one).contains(other);
    if from != Party::Human && (from == party || !(know(&from, &party) || know(&party, &from))) {
        return unfit(format!("no route connects {from} and {to}"));
    }
    let text = String::from(Clean::from(text));
    let text = text.trim();
    if text.is_empty() {
        return Reply::Ignored(Ignored::Unchanged);
    }
    // Each line gets a mark in front when it is shown.
    let length = text.len() + 2 * text.matches('\n').count();
    if length > MAX_TEXT {
        let fix = "write it to a file that the agent can read, and send its name";
        return unfit(format!("it has {length} bytes, the limit is {MAX_TEXT}: {fix}"));
    }
    let mut by: String = Clean::from(by).on_one_line().into();
    by.truncate(if from == Party::Human { by.floor_char_boundary(MAX_NAME) } else { 0 });
    let id = MessageId(draft.run.mail.count + 1);
    let mut sent = MessageSent { id, to, from, by, text: text.to_owned(), forgets: None };
    sent.forgets = draft.run.room_for(&sent);
    if sent.forgets.is_none() {
        return Reply::Ignored(Ignored::NoRoom);
    }
    draft.record(Event::MessageSent(Box::new(sent)));
    Reply::Sent { message: id }
}

/// Records that the agent of a turn was given messages during it. What was delivered before is
/// delivered once.
pub(super) fn deliver(
    draft: &mut Draft,
    turn: TurnKey,
    mut messages: Vec<MessageId>,
    way: Way,
) -> Reply {
    if !draft.run.is_current(turn) {
        return Reply::Late;
    }
    let agent = draft.run.handoff(turn.handoff).map(|handoff| handoff.offer.to.clone());
    let all = &draft.run.mail.messages;
    let is_its = |message: &Message| agent.as_ref() == Some(&Party::from(&message.sent.to));
    messages.retain(|id| all.get(id).is_some_and(|it| it.is_open() && is_its(it)));
    messages.sort_unstable();
    messages.dedup();
    if !messages.is_empty() {
        draft.record(Event::MessageDelivered(MessageDelivered { turn, messages, way }));
    }
    Reply::Recorded
}

/// Records that the agent of a turn has read the messages in its prompt.
pub(super) fn read_with(draft: &mut Draft, turn: TurnKey) {
    let given = |it: &&Arc<Message>| it.given_to == Some(turn) && it.is_open();
    let given = draft.run.mail.messages.values().filter(given).map(|it| it.sent.id).collect();
    deliver(draft, turn, given, Way::NextTurn);
}

/// Puts the messages that wait for an agent into the prompt of its new turn.
pub(super) fn give(run: &mut Run, turn: TurnKey) {
    let Some(agent) = run.handoff(turn.handoff).map(|handoff| handoff.offer.to.clone()) else {
        return;
    };
    let mut mail = std::mem::take(&mut run.mail);
    mail.change(|message| {
        let wanted = Party::from(&message.sent.to) == agent && run.is_waiting(message);
        wanted.then(|| Message { given_to: Some(turn), ..message.clone() })
    });
    run.mail = mail;
}

/// Records which messages have reached nobody, before the run ends.
pub(super) fn end(draft: &mut Draft) {
    let all = draft.run.mail.messages.values();
    let unread = all.filter(|it| it.delivered.is_none()).map(|it| it.sent.id);
    let messages: Vec<MessageId> = unread.collect();
    if !messages.is_empty() {
        draft.record(Event::MessageUnread(MessageUnread { messages }));
    }
}

impl MessageSent {
    /// Its size in memory, as far as its sender decides about it.
    fn bytes(&self) -> usize {
        self.text.len() + self.by.len()
    }

    pub(super) fn apply(&self, run: &mut Run, at: Time) {
        let forgets = self.forgets.clone().or_else(|| run.room_for(self));
        for id in forgets.unwrap_or_default() {
            run.mail.messages.remove(&id);
        }
        run.mail.count = self.id.0;
        let (sent, given_to, delivered) = (Self { forgets: None, ..self.clone() }, None, None);
        let message = Message { sent, sent_at: at, given_to, delivered, again: false };
        run.mail.messages.insert(self.id, Arc::new(message));
    }
}

impl MessageDelivered {
    pub(super) fn apply(&self, run: &mut Run, at: Time) {
        let delivery = Delivery { turn: self.turn, way: self.way, at };
        for id in &self.messages {
            if let Some(message) = run.mail.messages.get_mut(id).map(Arc::make_mut) {
                message.delivered = Some(delivery);
                message.again = false;
            }
        }
    }
}

#[cfg(test)]
mod tests;
