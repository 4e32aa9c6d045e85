//! The messages of an agent.

use std::process::ExitStatus;

use stafette_core::wire::frame::{Scanner, Word};
use stafette_core::workflow::{ResultFormat, Runner};
use stafette_core::{Failure, Usage};

use crate::harvest::{Harvest, last_document};
use crate::output::Tail;
use crate::{Job, Link, Signal};

/// The size of an agent's messages that is kept, in bytes: the largest JSON result.
const TALK: usize = 1024 * 1024;

/// Lines of messages that stand in for a summary.
const SUMMARY_LINES: usize = 5;

/// The messages of a turn.
pub(crate) struct Hearing {
    format: ResultFormat,
    word: Word,
    scanner: Scanner,
    harvest: Harvest,
    talk: Tail,
    /// The id of the current message.
    message: Option<String>,
    /// True if another event came between two pieces of text.
    interrupted: bool,
    /// The current activity of the agent besides messages.
    doing: Option<String>,
}

impl Hearing {
    /// Begins a turn without messages.
    pub(crate) fn new(job: &Job, word: Word) -> Self {
        let format = job.agent.result;
        Hearing {
            format,
            scanner: Scanner::new(word.clone()),
            word,
            harvest: Harvest::new(&job.order.agent, format == ResultFormat::Frames)
                // A remote agent's task says itself that it is completed.
                .answered_by_exit(format == ResultFormat::Exit || job.agent.runner == Runner::A2a)
                .with_token(job.token())
                .trusting(job.trust_bare_frames),
            talk: Tail::new(TALK),
            message: None,
            interrupted: false,
            doing: None,
        }
    }

    /// Takes a piece of a message.
    pub(crate) async fn hear(&mut self, message: Option<String>, text: &str, link: &Link) {
        // Messages follow each other without a line end, and no frame reaches from one to the next.
        if self.interrupted || message != self.message {
            self.message = message;
            if !self.talk.bytes().is_empty() {
                self.talk.push(b"\n");
                self.message_ends(link).await;
                self.scanner = Scanner::new(self.word.clone());
            }
        }
        self.interrupted = false;
        self.doing = None;
        self.listen(text.as_bytes(), link).await;
    }

    async fn listen(&mut self, bytes: &[u8], link: &Link) {
        self.talk.push(bytes);
        if self.format != ResultFormat::Frames {
            return;
        }
        let mut found = Vec::new();
        self.scanner.scan(bytes, |it| found.push(it));
        for it in found {
            link.tell_all(self.harvest.found(&it)).await;
        }
    }

    /// Reports a frame that the message leaves open.
    async fn message_ends(&mut self, link: &Link) {
        let mut found = Vec::new();
        self.scanner.finish(|it| found.push(it));
        for it in found {
            link.tell_all(self.harvest.found(&it)).await;
        }
    }

    /// Notes an event between messages.
    pub(crate) fn note(&mut self, note: Option<String>) {
        self.interrupted = true;
        if note.is_some() {
            self.doing = note;
        }
    }

    /// The current activity of the agent, or its last message.
    pub(crate) fn doing(&self) -> Option<String> {
        self.doing.clone().or_else(|| self.talk.note())
    }

    /// The last line for which this holds, of those that stand in for a summary; `None` in a turn that
    /// has an answer.
    pub(crate) fn last_line(&self, holds: impl Fn(&str) -> bool) -> Option<String> {
        let lines = self.talk.lines(SUMMARY_LINES).into_iter();
        lines.rev().find(|line| holds(line)).filter(|_| !self.harvest.has_answer())
    }

    /// Records the consumption that the protocol reports for the turn.
    pub(crate) fn used(&mut self, usage: Usage) {
        self.harvest.used(usage);
    }

    /// Ends the turn and returns its outcome. An `aside` is used where the agent did not state what
    /// went wrong.
    pub(crate) async fn end(
        mut self,
        failure: Option<Failure>,
        status: ExitStatus,
        aside: Option<String>,
        link: &Link,
    ) -> Signal {
        self.message_ends(link).await;
        let done = failure.is_none() && status.success();
        if let Some(failure) = failure {
            self.harvest.fail(failure);
        }
        let mut summary = String::new();
        match self.format {
            ResultFormat::Frames | ResultFormat::Exit => {
                summary = self.talk.lines(SUMMARY_LINES).join("\n");
            }
            ResultFormat::Json if !done => {}
            ResultFormat::Json => match last_document(self.talk.bytes()) {
                Some(value) => {
                    for signal in self.harvest.document(value) {
                        link.tell(signal).await;
                    }
                }
                None => self.harvest.mistake("the messages do not end with a JSON document"),
            },
        }
        let complaint = aside.or_else(|| self.talk.note());
        self.harvest.end(status, summary, complaint)
    }
}
