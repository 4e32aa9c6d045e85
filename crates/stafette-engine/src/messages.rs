//! Messages to agents. A program asks at each of its steps whether there are any, and confirms those
//! that it showed to its model: what is not confirmed still waits.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, test_kill_process};
use schemars::JsonSchema;
use serde::Serialize;
use stafette_agents::profile;
use stafette_core::run::message::{Message, Way};
use stafette_core::workflow::Runner;
use stafette_core::{
    AgentName, Ignored, Input, MessageId, Party, Reply, Run, RunId, TurnKey, Usage,
};

use crate::{Engine, EngineError, dispatch};

/// The longest text that a program is given at once, in bytes: Claude Code and Codex cut what is longer
/// than 10,000 characters.
const AT_ONCE: usize = 9_500;

/// The messages that a process was given: no other one is given them while it lives. A daemon that
/// starts again has forgotten them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Claims(Arc<Mutex<HashMap<(RunId, MessageId), i32>>>);

impl Claims {
    /// Keeps those of the messages that no other process has, and claims them.
    fn claim(&self, run: RunId, messages: &mut Vec<Arc<Message>>, process: i32) {
        let mut claims = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        claims.retain(|_, by| *by != process && is_alive(*by));
        messages
            .retain(|message| *claims.entry((run, message.sent.id)).or_insert(process) == process);
    }
}

fn is_alive(process: i32) -> bool {
    let gone = rustix::io::Errno::SRCH;
    Pid::from_raw(process).is_some_and(|pid| test_kill_process(pid) != Err(gone))
}

/// A message with its receipt.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct MessageView {
    /// The run that it belongs to.
    pub run: RunId,
    /// The id of the message, unique in the run.
    pub id: MessageId,
    /// The agent that it is for.
    pub to: AgentName,
    /// `human`, or the agent that sent it.
    pub from: Party,
    /// The name of the person; empty for an agent.
    pub by: String,
    /// The text of the message.
    pub text: String,
    /// The time at which it was sent (RFC 3339).
    pub sent_at: String,
    /// `queued`, `delivered` or `unread`: the run ended before its agent was given it.
    pub status: &'static str,
    /// The status in words, with the moment of the delivery.
    pub receipt: String,
    /// The moment of the delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub way: Option<Way>,
    /// The turn in which the agent was given it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<TurnKey>,
    /// The time at which the agent was given it (RFC 3339).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<String>,
}

impl MessageView {
    fn of(run: &Run, message: &Message) -> Self {
        let sent = message.sent.clone();
        let over = run.status().is_final();
        let delivery = message.delivered;
        let mut turns = run.outbox().filter(|order| order.agent == sent.to);
        let at_work = turns.any(|order| !is_closing(run, &sent.to, order.key));
        let (status, receipt) = match delivery {
            Some(delivery) if over || !message.again => {
                ("delivered", delivery.way.words().to_owned())
            }
            Some(delivery) => {
                let words = delivery.way.words();
                ("queued", format!("{words}; that turn failed, so it goes with the next one"))
            }
            None if over => ("unread", "the run ended before it was read".to_owned()),
            None if message.given_to.is_some_and(|turn| run.order(turn).is_some()) => {
                ("queued", "queued: it goes with the turn that begins".to_owned())
            }
            None if at_work && has_steps(run, &sent.to) => {
                ("queued", format!("queued: {} gets it at its next step", sent.to))
            }
            None if at_work && is_external(run, &sent.to) => {
                let when = "when its program asks for messages, or with its next turn";
                ("queued", format!("queued: {} gets it {when}", sent.to))
            }
            None => ("queued", format!("queued: {} gets it with its next turn", sent.to)),
        };
        MessageView {
            run: run.id,
            id: sent.id,
            to: sent.to,
            from: sent.from,
            by: sent.by,
            text: sent.text,
            sent_at: message.sent_at.rfc3339(),
            status,
            receipt,
            way: delivery.map(|it| it.way),
            turn: delivery.map(|it| it.turn),
            delivered_at: delivery.map(|it| it.at.rfc3339()),
        }
    }
}

/// True if the program of an agent asks for messages during its turns.
fn has_steps(run: &Run, agent: &AgentName) -> bool {
    let Some(agent) = run.workflow.agents.get(agent) else { return false };
    let profile = agent.profile.as_deref().and_then(|name| dispatch::profile(&run.workflow, name));
    profile.is_some_and(|known| profile::asks_for_messages(&known, agent))
}

/// True if Stafette does not start the agent: nobody knows whether its program asks for messages.
fn is_external(run: &Run, agent: &AgentName) -> bool {
    run.workflow.agents.get(agent).is_some_and(|agent| agent.runner == Runner::External)
}

/// True if the turn of an agent in a terminal has its answer: it ends as soon as the program is quiet,
/// and a message would only have the agent continue in a turn that ends with this answer.
fn is_closing(run: &Run, agent: &AgentName, turn: TurnKey) -> bool {
    let agent = run.workflow.agents.get(agent);
    agent.is_some_and(|agent| agent.runner == Runner::Pty) && run.reported(turn).is_some()
}

/// A message for the program that asked.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
pub struct WaitingMessage {
    /// The id of the message.
    pub id: MessageId,
    /// The words that only this message has: a program that finds them in its own records has shown
    /// it already.
    pub mark: String,
    /// The message as its model is to read it.
    pub text: String,
}

/// The agent whose messages a program asks for.
#[derive(Clone, Copy, Debug)]
pub enum Reader<'a> {
    /// The agent whose session has this token.
    Session(&'a str),
    /// The agent with this name, which Stafette has not started and which has taken a turn.
    External(&'a AgentName),
}

/// Messages to agents: `Engine::messages`.
#[derive(Clone, Copy, Debug)]
pub struct Messages<'a> {
    pub(crate) engine: &'a Engine,
}

impl Messages<'_> {
    /// Sends a message to an agent of a run. Returns once it is stored.
    ///
    /// # Errors
    /// When the run or its agent is not there, or the message is refused.
    pub async fn send(
        self,
        run: RunId,
        to: &str,
        from: Party,
        by: String,
        text: String,
    ) -> Result<MessageView, EngineError> {
        let not_sent = |why: String| EngineError::NotSent { to: to.to_owned(), why };
        let workflow = self.engine.state(run).await?.workflow.clone();
        let names: Vec<&str> = workflow.agents.keys().map(AgentName::as_str).collect();
        let unknown = || {
            let (short, names) = (run.short(), names.join(", "));
            not_sent(format!("run {short} has no agent `{to}`; it has {names}"))
        };
        let agent: AgentName = to.parse().map_err(|_| unknown())?;
        let input = Input::Send { to: agent, from, by, text };
        match self.engine.send(run, input).await? {
            Reply::Sent { message } => self.get(run, message).await,
            Reply::Unfit { complaints } => Err(not_sent(complaints.join("; "))),
            Reply::Ignored(Ignored::Unknown) => Err(unknown()),
            Reply::Ignored(Ignored::NoRoom) => {
                Err(not_sent("too many messages of the run wait to be read".to_owned()))
            }
            Reply::Ignored(Ignored::Unchanged) => Err(not_sent("it is empty".to_owned())),
            _ => Err(EngineError::Over { run }),
        }
    }

    /// Returns the latest messages of a run, oldest first.
    ///
    /// # Errors
    /// When there is no such run.
    pub async fn list(self, run: RunId) -> Result<Vec<MessageView>, EngineError> {
        let state = self.engine.state(run).await?;
        Ok(state.mail.messages.values().map(|message| MessageView::of(&state, message)).collect())
    }

    /// Returns a message of a run.
    ///
    /// # Errors
    /// When there is no such run, or it keeps no such message.
    pub async fn get(self, run: RunId, id: MessageId) -> Result<MessageView, EngineError> {
        let state = self.engine.state(run).await?;
        let message = state.mail.messages.get(&id).ok_or(EngineError::NoMessage { run, id })?;
        Ok(MessageView::of(&state, message))
    }

    /// Returns a message as soon as it was delivered or its run has ended, or as it is after `within`.
    ///
    /// # Errors
    /// When there is no such run, or it keeps no such message.
    pub async fn settled(
        self,
        run: RunId,
        id: MessageId,
        within: Duration,
    ) -> Result<MessageView, EngineError> {
        let mut head = self.engine.head_changes();
        let settled = async {
            loop {
                // Marked before reading, so that a change in between wakes this task again.
                head.borrow_and_update();
                let is_open = self.get(run, id).await.is_ok_and(|it| it.status == "queued");
                if !is_open || head.changed().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(within, settled).await;
        self.get(run, id).await
    }

    /// Returns the messages that wait for an agent, for a process of it that shows them to its model.
    /// Asking is a sign of life.
    ///
    /// # Errors
    /// When it is not the agent, or has no turn.
    pub async fn take(
        self,
        reader: Reader<'_>,
        process: Option<i32>,
    ) -> Result<Vec<WaitingMessage>, EngineError> {
        let (run, agent, turn) = self.turn(reader, process).await?;
        let process = process.ok_or(EngineError::NotYours)?;
        let shared = self.engine.shared();
        match reader {
            Reader::Session(_) => shared.tokens.beat(turn),
            Reader::External(_) => {
                self.engine.external().report(turn, None, Usage::default()).await?;
            }
        }
        let state = self.engine.state(run).await?;
        if is_closing(&state, &agent, turn) {
            return Ok(Vec::new());
        }
        let mut left = AT_ONCE;
        let mut waiting: Vec<_> = state.waiting_messages(&agent).cloned().collect();
        waiting.retain(|message| {
            let mark = shared.tokens.mark(run, message.sent.id);
            let fits = left.checked_sub(message.told_as(&mark).len() + 2);
            // Those behind one that does not fit wait as well, so that they stay in order.
            left = fits.unwrap_or(0);
            fits.is_some()
        });
        shared.claims.claim(run, &mut waiting, process);
        // Another process may have confirmed some, and ended, since the state was read.
        let state = self.engine.state(run).await?;
        let still: HashSet<_> = state.waiting_messages(&agent).map(|it| it.sent.id).collect();
        waiting.retain(|message| still.contains(&message.sent.id));
        if !waiting.is_empty() {
            shared.terminals.given(run, &agent);
        }
        let shown = |message: Arc<Message>| {
            let (id, mark) = (message.sent.id, shared.tokens.mark(run, message.sent.id));
            let text = message.told_as(&mark);
            WaitingMessage { id, mark, text }
        };
        Ok(waiting.into_iter().map(shown).collect())
    }

    /// Records that a process of an agent has shown messages to its model.
    ///
    /// # Errors
    /// When it is not the agent, has no turn, or it could not be stored.
    pub async fn delivered(
        self,
        reader: Reader<'_>,
        process: Option<i32>,
        messages: Vec<MessageId>,
        way: Way,
    ) -> Result<(), EngineError> {
        let (run, _, turn) = self.turn(reader, process).await?;
        self.engine.send(run, Input::Deliver { turn, messages, way }).await?;
        Ok(())
    }

    /// The turn in which an agent reads its messages.
    async fn turn(
        self,
        reader: Reader<'_>,
        process: Option<i32>,
    ) -> Result<(RunId, AgentName, TurnKey), EngineError> {
        match reader {
            Reader::Session(token) => self.engine.sessions().turn(token, process).await,
            Reader::External(agent) => {
                let turn = self.engine.external().turn_of(None, agent).await?;
                Ok((turn.run, agent.clone(), turn))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Child, Command};

    use stafette_core::Time;
    use stafette_core::run::message::MessageSent;

    use super::*;

    fn process() -> (Child, i32) {
        let child = Command::new("sleep").arg("1000").spawn().expect("a process");
        let id = child.id().try_into().expect("an id");
        (child, id)
    }

    #[test]
    fn b_30_a_message_belongs_to_the_process_that_took_it_until_that_has_ended() {
        let (mut first, taker) = process();
        let (mut second, other) = process();
        let sent = MessageSent {
            id: MessageId(1),
            to: "builder".parse().expect("a name"),
            from: Party::Human,
            by: String::new(),
            text: "hello".into(),
            forgets: None,
        };
        let (sent_at, given_to, delivered) = (Time(0), None, None);
        let message = Arc::new(Message { sent, sent_at, given_to, delivered, again: false });
        let (claims, run) = (Claims::default(), RunId(uuid::Uuid::nil()));
        let claim = |process| {
            let mut messages = vec![message.clone()];
            claims.claim(run, &mut messages, process);
            messages.len()
        };
        assert_eq!((claim(taker), claim(other)), (1, 0));
        assert_eq!(claim(taker), 1, "it asks again");
        first.kill().and_then(|()| first.wait()).expect("an end");
        assert_eq!(claim(other), 1);
        second.kill().and_then(|()| second.wait()).expect("an end");
    }
}
