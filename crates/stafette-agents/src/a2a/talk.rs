//! The messages to and from a remote agent.

use std::collections::{HashMap, HashSet, VecDeque};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use a2a_types::{Message, Part, PartContent, Role, Task, TaskState};
use serde_json::{Value, json};
use stafette_core::wire::frame::Word;
use stafette_core::workflow::ResultFormat;
use stafette_core::{
    Failure, FailureKind, Fields, Kind, Offer, Outcome, Party, Question, Reason, Response,
    TurnResult,
};
use uuid::Uuid;

use crate::acp::hearing::Hearing;
use crate::{Job, Link, Signal, output, prompt};

/// The number of messages that are remembered, so that none counts twice.
const REMEMBERED: usize = 4096;

/// The maximum size of a file that is kept with the answer, in bytes.
const FILE: usize = 256 * 1024;

/// The longest question, in characters.
const QUESTION: usize = 4000;

/// The messages of a turn.
pub(super) struct Talk<'a> {
    job: &'a Job,
    hearing: Hearing,
    heard: HashSet<String>,
    /// The message ids in order, so that the oldest can be forgotten.
    order: VecDeque<String>,
    news: bool,
}

impl<'a> Talk<'a> {
    /// Begins a turn without messages.
    pub(super) fn new(job: &'a Job, word: Word) -> Self {
        Talk {
            job,
            hearing: Hearing::new(job, word),
            heard: HashSet::new(),
            order: VecDeque::new(),
            news: false,
        }
    }

    /// Builds this turn's message, which is the same at each delivery. For a task that asked, it is
    /// the answer; for a new one, everything the agent needs to know.
    pub(super) fn message(&self, answers: bool) -> Message {
        let order = &self.job.order;
        let mut parts = Vec::new();
        if answers {
            parts.extend(order.answers.iter().flat_map(answer));
        }
        if parts.is_empty() {
            parts.push(Part::text(prompt::text(self.job)));
        }
        let about = json!({
            "key": order.key,
            "run": order.key.run,
            "handoff": order.key.handoff,
            "attempt": order.key.attempt,
            "turn": order.key.turn,
            "agent": order.agent,
            "round": order.round,
            "delivery": order.deliveries,
            "request": order.request,
        });
        Message {
            message_id: self.id(),
            metadata: Some(HashMap::from([("stafette".to_owned(), about)])),
            ..Message::new(Role::User, parts)
        }
    }

    fn id(&self) -> String {
        Uuid::new_v5(&Uuid::NAMESPACE_URL, self.job.order.key.to_string().as_bytes()).to_string()
    }

    /// Takes a message, once.
    pub(super) async fn hear(&mut self, message: &Message, link: &Link) {
        let id = &message.message_id;
        if message.role == Role::User || !id.is_empty() && !self.heard.insert(id.clone()) {
            return;
        }
        self.order.push_back(id.clone());
        if self.order.len() > REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.heard.remove(&oldest);
        }
        let text = text(&message.parts);
        if !text.is_empty() {
            self.hearing.hear(Some(message.message_id.clone()), &text, link).await;
            self.news = true;
        }
    }

    /// True if a message has arrived since the last call.
    pub(super) fn is_news(&mut self) -> bool {
        std::mem::take(&mut self.news)
    }

    /// The last message of the remote agent.
    pub(super) fn doing(&self) -> Option<String> {
        self.hearing.doing()
    }

    /// Ends the turn after a complete answer.
    pub(super) async fn done(self, link: &Link) -> Signal {
        self.hearing.end(None, ExitStatus::from_raw(0), None, link).await
    }

    /// Ends the turn with the outcome of a task that has ended or asks a question.
    pub(super) async fn end(mut self, task: Task, link: &Link) -> Signal {
        let said = task.status.message.as_ref().map(|message| text(&message.parts));
        let said = said.and_then(|said| output::plain(&said, QUESTION));
        let failed = |kind, otherwise: &str| {
            Some(Failure::new(kind, said.clone().unwrap_or_else(|| otherwise.to_owned())))
        };
        let failure = match task.status.state {
            TaskState::Failed => failed(FailureKind::Recoverable, "it failed and does not say why"),
            TaskState::Rejected => failed(FailureKind::Fatal, "it refuses to do this"),
            TaskState::Canceled => {
                failed(FailureKind::Recoverable, "its task was called off over there")
            }
            TaskState::InputRequired | TaskState::AuthRequired => {
                return self.asks(&task, said, link).await;
            }
            _ => None,
        };
        self.catch_up(&task, link).await;
        let mut outputs = Fields::new();
        for artifact in task.artifacts.iter().flatten() {
            let words = text(&artifact.parts);
            if !words.is_empty() {
                self.hearing.hear(Some(artifact.artifact_id.clone()), &words, link).await;
            }
            let name = artifact.name.as_deref().unwrap_or(&artifact.artifact_id);
            for part in &artifact.parts {
                self.give(name, part, &mut outputs, link).await;
            }
        }
        let end = self.hearing.end(failure, ExitStatus::from_raw(0), None, link).await;
        match end {
            Signal::Finished(mut result) => {
                for (name, value) in outputs {
                    result.response.outputs.entry(name).or_insert(value);
                }
                Signal::Finished(result)
            }
            end => end,
        }
    }

    /// Takes the messages after this turn's message that have not been taken yet.
    async fn catch_up(&mut self, task: &Task, link: &Link) {
        let history = task.history.as_deref().unwrap_or_default();
        let last = self.order.back().cloned().unwrap_or_else(|| self.id());
        if let Some(at) = history.iter().rposition(|message| message.message_id == last) {
            for message in &history[at + 1..] {
                self.hear(message, link).await;
            }
        }
        // The reason of a failure is no result.
        let done = matches!(task.status.state, TaskState::Completed | TaskState::InputRequired);
        if let Some(message) = task.status.message.as_ref().filter(|_| done) {
            self.hear(message, link).await;
        }
    }

    /// Takes a part that is not text.
    async fn give(&mut self, name: &str, part: &Part, outputs: &mut Fields, link: &Link) {
        let name = part.filename.as_deref().unwrap_or(name);
        let value = match &part.content {
            PartContent::Text(_) => return,
            PartContent::Data(value) if self.job.agent.result == ResultFormat::Json => {
                // The result that this agent ends with.
                let line = format!("\n{value}\n");
                return self.hearing.hear(None, &line, link).await;
            }
            PartContent::Data(Value::Object(fields)) => {
                for (name, value) in fields {
                    outputs.insert(name.clone(), value.clone());
                }
                return;
            }
            PartContent::Data(value) => value.clone(),
            PartContent::Url(url) => json!({ "url": url, "media_type": part.media_type }),
            PartContent::Raw(bytes) if bytes.len() > FILE => {
                json!({ "bytes": bytes.len(), "media_type": part.media_type, "left_out": true })
            }
            PartContent::Raw(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => json!({ "text": text, "media_type": part.media_type }),
                Err(_) => serde_json::to_value(part).unwrap_or_default(),
            },
        };
        outputs.insert(name.to_owned(), value);
    }

    /// The remote agent asks: the turn asks the same question and ends with it.
    async fn asks(mut self, task: &Task, said: Option<String>, link: &Link) -> Signal {
        self.catch_up(task, link).await;
        let parts = task.status.message.iter().flat_map(|message| &message.parts);
        let options: Vec<String> = parts
            .filter_map(|part| match &part.content {
                PartContent::Data(data) => data.get("options")?.as_array(),
                _ => None,
            })
            .flatten()
            .filter_map(|option| option.as_str().map(str::to_owned))
            .take(16)
            .collect();
        let (reason, otherwise) = match task.status.state {
            TaskState::AuthRequired => ("auth_required", "It needs to be let in somewhere"),
            _ => ("input_required", "It needs to know more, and does not say what"),
        };
        let agent = Party::from(&self.job.order.agent);
        let question = Question {
            reason: reason.into(),
            details: said.unwrap_or_else(|| otherwise.to_owned()),
            options,
            context: format!("task {} of the remote agent", task.id),
            blocking: true,
            ..Question::default()
        };
        let offer = Offer {
            detail: question.details.clone(),
            question: Some(question),
            ..Offer::new(agent.clone(), Party::Human, Kind::Delegate, Reason::Escalation)
        };
        // Its messages so far are kept; its handoffs count when it is done.
        let summary = self.hearing.doing().unwrap_or_default();
        let response = Response { summary, ..Response::new(agent, Outcome::Resolved) };
        let result = TurnResult { offers: vec![offer], ..TurnResult::new(response) };
        Signal::Finished(Box::new(result))
    }
}

/// An answer as parts of a message: its text, and its values when there are others.
fn answer(response: &Response) -> Vec<Part> {
    let mut parts = Vec::new();
    let words = match response.summary.as_str() {
        "" => response.failure.as_deref().unwrap_or_default(),
        summary => summary,
    };
    if !words.is_empty() {
        parts.push(Part::text(words));
    }
    let told = |value: &Value| value.as_str() == Some(words);
    if response.outputs.values().any(|value| !told(value)) {
        parts.push(Part::data(json!(response.outputs)));
    }
    parts
}

fn text(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
    texts.join("\n")
}
