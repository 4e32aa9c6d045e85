//! Gathers the control signals of a turn into its result.

mod dialect;
mod plain;

use std::process::ExitStatus;

use serde_json::{Value, json};
use stafette_core::change::Proposal;
use stafette_core::run::tell::TurnReport;
use stafette_core::team::Said;
use stafette_core::team::council::vote::Vote;
use stafette_core::wire::frame::{Code, Found, Frame};
use stafette_core::wire::phase::{Decision, decision};
use stafette_core::{
    AgentName, Failure, FailureKind, Millis, Offer, Outcome, Party, PrintedFrame, Response,
    TurnResult, Usage,
};
use tokio::time::Instant;

use crate::Signal;
use crate::output;
use crate::seal;

/// The most handoffs that one turn may propose.
const OFFERS: usize = 32;

/// The most alerts that one turn may raise; further ones are dropped.
const ALERTS: u32 = 32;

/// The most sets of edits that one turn may propose.
const SETS: u32 = 16;

/// The maximum number of mistakes that are reported together.
const MISTAKES: usize = 16;

/// The longest reason why a printed frame cannot be read, in characters.
const REASON: usize = 300;

/// The longest code of an error, in bytes.
const CODE: usize = 64;

/// The longest message of an agent that is passed on, in characters.
const MESSAGE: usize = 2000;

/// A document of an agent: work to hand over, or an answer.
#[derive(Debug)]
enum Piece {
    Offer(Box<Offer>),
    Response(Box<Response>),
}

/// The signals of a turn so far.
#[derive(Debug)]
pub(crate) struct Harvest {
    agent: Party,
    began: Instant,
    /// True if signals are read from plain output, where any printed text can be one.
    bare: bool,
    /// True if the workflow takes frames in plain output for the agent's word.
    trusted: bool,
    /// True while a frame is read that was only printed.
    printed: bool,
    /// The printed frames that could not be read and were not reported yet, and how many there were.
    unreadable: Vec<String>,
    ignored: usize,
    /// The token that frames are signed with.
    token: Option<String>,
    /// The number of the last signed frame: earlier ones do not count again, and unsigned ones no
    /// longer count.
    sealed: Option<u64>,
    response: Option<Response>,
    offers: Vec<Offer>,
    /// The consumption that the agent reports.
    usage: Usage,
    /// The consumption that the transport reports.
    metered: Usage,
    vote: Option<Vote>,
    mistakes: Vec<String>,
    alerts: u32,
    sets: u32,
    /// The last error that the agent reported.
    trouble: Option<String>,
    /// A failure that the transport has already reported.
    failure: Option<Failure>,
    /// True if the program stays after the turn, so that only its output shows the end of the turn.
    runs_on: bool,
    /// True if a program that leaves with exit status 0 has answered by that.
    by_exit: bool,
}

impl Harvest {
    /// The same, for a session with a token: frames signed with it need no further proof.
    pub(crate) fn with_token(self, token: Option<&str>) -> Self {
        Harvest { token: token.map(str::to_owned), ..self }
    }

    /// Begins a turn without signals.
    pub(crate) fn new(agent: &AgentName, bare: bool) -> Self {
        Harvest {
            token: None,
            sealed: None,
            agent: agent.into(),
            began: Instant::now(),
            bare,
            trusted: false,
            printed: false,
            unreadable: Vec::new(),
            ignored: 0,
            response: None,
            offers: Vec::new(),
            usage: Usage::default(),
            metered: Usage::unknown(),
            vote: None,
            mistakes: Vec::new(),
            alerts: 0,
            sets: 0,
            trouble: None,
            failure: None,
            runs_on: false,
            by_exit: false,
        }
    }

    /// The same, for a workflow that may take printed frames for the agent's word.
    pub(crate) fn trusting(self, trusted: bool) -> Self {
        Harvest { trusted, ..self }
    }

    /// The same, for a program that does not exit with the turn.
    pub(crate) fn of_one_that_runs_on(self) -> Self {
        Harvest { runs_on: true, ..self }
    }

    /// Takes exit status 0 of the program for its answer.
    pub(crate) fn answered_by_exit(self, by_exit: bool) -> Self {
        Harvest { by_exit, ..self }
    }

    /// Marks the turn as failed, whatever its exit status will be.
    pub(crate) fn fail(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Records the consumption that the transport reports: it counts as a minimum, whatever the
    /// agent reported.
    pub(crate) fn used(&mut self, usage: Usage) {
        self.metered = usage;
    }

    /// The consumption of the turn by both accounts.
    fn total(&self) -> Usage {
        let reported = Usage::unknown().and_reported(self.usage);
        self.metered.max(reported)
    }

    /// Takes what was found in the output, and returns the signals to report immediately.
    pub(crate) fn found(&mut self, found: &Found) -> Vec<Signal> {
        match found {
            Found::Frame { frame, .. } => self.frame(frame),
            Found::Malformed { fault, text, .. } => {
                self.ignore(&format!("{fault}: `{text}`"));
                self.unread()
            }
        }
    }

    /// Takes a frame, and returns the signals to report immediately.
    pub(crate) fn frame(&mut self, frame: &Frame) -> Vec<Signal> {
        let number = self.token.as_ref().and_then(|token| seal::verify(frame, token));
        match (number, self.sealed) {
            (Some(number), Some(last)) if number <= last => return Vec::new(),
            (Some(number), None) => {
                // From here on the session proves its signals: those that were only printed are
                // dropped.
                self.offers.clear();
                self.response = None;
                self.vote = None;
                self.mistakes.clear();
                self.sealed = Some(number);
            }
            (Some(number), _) => self.sealed = Some(number),
            (None, Some(_)) if self.bare && matters(&frame.kind) => return Vec::new(),
            (None, _) => {}
        }
        self.printed = self.bare && number.is_none();
        if self.printed && !KINDS.contains(&frame.kind.as_str()) {
            self.ignore(&format!("`{}` is not a signal: it is one of {NAMED}", frame.kind));
        }
        let said = self.signal(&frame.kind, frame.value());
        self.printed = false;
        said.into_iter().chain(self.unread()).collect()
    }

    /// True if the output holds an answer or a handoff.
    pub(crate) fn has_answer(&self) -> bool {
        self.response.is_some() || !self.offers.is_empty()
    }

    /// True if the frame that is read is only shown: a file that the agent displays can hold it.
    fn only_shows(&self) -> bool {
        self.printed && !self.trusted
    }

    /// Takes a control signal, and returns the signal to report immediately, if any.
    pub(crate) fn signal(&mut self, kind: &str, payload: Value) -> Option<Signal> {
        match kind {
            "READY" => {
                let note = self.only_shows().then(|| "READY (printed)".to_owned());
                Some(Signal::Alive { note })
            }
            "ERROR" => self.error(&payload),
            "HANDOFF" => {
                self.handoff(payload);
                None
            }
            "RESULT" => {
                self.result(payload, false);
                None
            }
            "REPORT" => Some(self.report(&payload)),
            "CHANGE" => self.change(payload),
            "SIGNAL" => {
                self.stand(&payload);
                None
            }
            // A type of a later version.
            _ => None,
        }
    }

    /// Takes a JSON result — a document, or several in an array — and returns the signals to report
    /// immediately.
    pub(crate) fn document(&mut self, value: Value) -> Vec<Signal> {
        let values = match value {
            Value::Array(values) => values,
            value => vec![value],
        };
        let mut signals = Vec::new();
        for mut value in values {
            // An answer may contain edits.
            let edits = value.as_object_mut().and_then(|fields| fields.remove("codeChanges"));
            if let Some(edits) = edits {
                let reason = value.get("summary").cloned().unwrap_or_else(|| "".into());
                signals.extend(self.change(json!({ "codeChanges": edits, "reason": reason })));
                if value.as_object().is_some_and(serde_json::Map::is_empty) {
                    continue;
                }
            }
            signals.extend(self.single(value));
        }
        signals.extend(self.unread());
        signals
    }

    /// Records the stance of a council member; the last one counts.
    fn stand(&mut self, payload: &Value) {
        match Vote::read(payload) {
            Ok(vote) => self.vote = Some(vote),
            Err(mistake) => self.mistake(&format!("SIGNAL: {mistake}")),
        }
    }

    fn single(&mut self, mut value: Value) -> Option<Signal> {
        if let Some((kind, payload)) = signal_in(&value) {
            return self.signal(&kind, payload);
        }
        let votes = value.get("signal").is_some_and(Value::is_string);
        if votes {
            self.stand(&value);
            // The rest is the answer itself.
            if let Some(fields) = value.as_object_mut() {
                ["signal", "reason"].iter().for_each(|name| drop(fields.shift_remove(*name)));
            }
        }
        match value.get("to") {
            Some(_) => self.handoff(value),
            None => self.result(value, votes),
        }
        None
    }

    fn handoff(&mut self, payload: Value) {
        match dialect::read(&self.agent, &payload) {
            Some(piece) => self.keep("HANDOFF", piece),
            None => {
                let offer = plain::offer(&self.agent, payload);
                self.keep("HANDOFF", offer.map(|offer| Piece::Offer(Box::new(offer))));
            }
        }
    }

    /// Takes an answer; one that comes with a vote need not say anything else.
    fn result(&mut self, payload: Value, votes: bool) {
        match dialect::read(&self.agent, &payload) {
            Some(piece) => self.keep("RESULT", piece),
            None => {
                let response = plain::response(&self.agent, payload, votes);
                self.keep("RESULT", response.map(|response| Piece::Response(Box::new(response))));
            }
        }
    }

    /// Takes a set of edits. One that is only printed needs a person's approval.
    fn change(&mut self, payload: Value) -> Option<Signal> {
        if self.sets == SETS {
            self.mistake(&format!("CHANGE: more than {SETS} sets in one turn"));
            return None;
        }
        match serde_json::from_value::<Proposal>(payload) {
            Ok(proposal) => {
                self.sets += 1;
                let printed = self.only_shows();
                Some(Signal::Change(Box::new(Proposal { printed, ..proposal })))
            }
            Err(error) => {
                self.mistake(&format!("CHANGE: {error}"));
                None
            }
        }
    }

    fn keep(&mut self, kind: &str, piece: Result<Piece, Vec<String>>) {
        // Whatever a document claims: no agent gives in the name of another. The name in an answer is
        // judged with the handoff, which knows its addressee.
        match piece {
            Ok(Piece::Offer(_)) if self.offers.len() == OFFERS => {
                self.mistake(&format!("{kind}: more than {OFFERS} handoffs in one turn"));
            }
            Ok(Piece::Offer(offer)) => {
                self.offers.push(Offer { from: self.agent.clone(), ..*offer });
            }
            Ok(Piece::Response(mut response)) => {
                if self.only_shows() {
                    response.usage = Usage::default();
                }
                self.response = Some(*response);
            }
            Err(mistakes) => {
                mistakes.iter().for_each(|mistake| self.mistake(&format!("{kind}: {mistake}")));
            }
        }
    }

    fn report(&mut self, payload: &Value) -> Signal {
        let (usage, note, mistakes) = plain::report(payload);
        if !self.only_shows() {
            self.usage += usage;
        }
        // No work fails for them.
        mistakes.iter().for_each(|mistake| self.ignore(&format!("REPORT: {mistake}")));
        Signal::Alive { note: note.and_then(|note| output::plain(note, 200)) }
    }

    fn error(&mut self, payload: &Value) -> Option<Signal> {
        let text = |name| payload.get(name).and_then(Value::as_str).unwrap_or_default();
        let word = payload.as_str().unwrap_or(text("code"));
        let (code, named) = match Code::try_from(word.to_owned()) {
            Ok(code) if word.len() <= CODE => (code.into(), true),
            _ => ("AGENT_ERROR".to_owned(), false),
        };
        let message = match text("message") {
            "" => word.to_owned(),
            message if named || word.is_empty() => message.to_owned(),
            message => format!("{word}: {message}"),
        };
        let message = output::plain(&message, MESSAGE).unwrap_or_else(|| code.clone());
        self.trouble = Some(message.clone());
        self.alerts += 1;
        let signal = match self.only_shows() {
            true => Signal::Printed(PrintedFrame::Error { code, message }),
            false => Signal::Alert { code, message },
        };
        (self.alerts <= ALERTS).then_some(signal)
    }

    /// Notes a mistake that the agent must avoid next time. It fails the turn, unless the frame was
    /// only printed.
    pub(crate) fn mistake(&mut self, mistake: &str) {
        if self.printed {
            return self.ignore(mistake);
        }
        if self.mistakes.len() < MISTAKES {
            self.mistakes.extend(output::plain(mistake, MESSAGE));
        }
    }

    /// Notes a printed frame that cannot be read; further ones are dropped.
    fn ignore(&mut self, reason: &str) {
        self.ignored += 1;
        if self.ignored <= MISTAKES
            && let Some(reason) = output::plain(reason, REASON)
        {
            self.unreadable.push(reason);
        }
    }

    /// Takes the signals about what could not be read since the last time.
    fn unread(&mut self) -> Vec<Signal> {
        let signal = |reason| Signal::Printed(PrintedFrame::Unreadable { reason });
        std::mem::take(&mut self.unreadable).into_iter().map(signal).collect()
    }

    /// Returns the report so far, for a signal that was sent separately.
    pub(crate) fn told(mut self) -> Result<TurnReport, Vec<String>> {
        self.mistakes.append(&mut self.unreadable);
        match self.mistakes.is_empty() {
            true => Ok(TurnReport {
                offers: self.offers,
                response: self.response,
                usage: self.usage,
                said: Said { vote: self.vote, ..Said::default() },
            }),
            false => Err(self.mistakes),
        }
    }

    /// Ends the turn and returns its outcome. A `summary` is used where the agent gave no result, a
    /// `complaint` where it did not state what went wrong.
    pub(crate) fn end(
        self,
        status: ExitStatus,
        summary: String,
        complaint: Option<String>,
    ) -> Signal {
        let usage = self.total();
        if let Some(failure) = self.failure {
            return Signal::Failed { failure, usage };
        }
        if !status.success() {
            return broken(status, self.trouble.or(complaint), usage);
        }
        if !self.mistakes.is_empty() {
            let list = self.mistakes.join("; ");
            let message = format!("what it handed in is not valid: {list}");
            let kind = if self.bare { FailureKind::Invalid } else { FailureKind::Recoverable };
            return Signal::Failed { failure: Failure::new(kind, message), usage };
        }
        // A program that exits needs no proof that it has done its work; everything else would move
        // work.
        let moves = !self.offers.is_empty()
            || self.vote.is_some()
            || self.response.as_ref().is_some_and(|response| self.runs_on || steers(response));
        let answers = self.response.is_some()
            || !self.offers.is_empty()
            || self.vote.is_some()
            || self.sets > 0
            || self.by_exit;
        let mut response = self.response.unwrap_or_else(|| Response {
            summary,
            ..Response::new(self.agent.clone(), Outcome::Resolved)
        });
        let took = self.began.elapsed().as_millis();
        response.took = Millis(u64::try_from(took).unwrap_or(u64::MAX));
        match decision(&response) {
            // The consumption that it reports for a phase is the same that was metered.
            Some(_) => response.usage = usage.max(Usage::unknown().and_reported(response.usage)),
            None => response.usage = usage.and_reported(response.usage),
        }
        Signal::Finished(Box::new(TurnResult {
            bare: self.bare && self.sealed.is_none() && moves,
            offers: self.offers,
            usage: response.usage,
            fingerprint: None,
            said: Said { vote: self.vote, ..Said::default() },
            unanswered: !answers,
            response,
        }))
    }
}

/// The types of signals.
pub(crate) const KINDS: [&str; 7] =
    ["READY", "HANDOFF", "RESULT", "REPORT", "CHANGE", "SIGNAL", "ERROR"];

/// The same, in a sentence.
pub(crate) const NAMED: &str = "READY, HANDOFF, RESULT, REPORT, CHANGE, SIGNAL or ERROR";

/// True if an answer does more than report that the work is done.
fn steers(response: &Response) -> bool {
    let halts = decision(response).is_some_and(|decision| decision != Decision::Proceed);
    halts || response.outcome != Outcome::Resolved
}

/// True if a signal moves work.
fn matters(kind: &str) -> bool {
    matches!(kind, "HANDOFF" | "RESULT" | "SIGNAL")
}

/// A control signal that is written as a JSON object.
fn signal_in(value: &Value) -> Option<(String, Value)> {
    let fields = value.as_object()?;
    let kind = fields.get("type")?.as_str()?;
    KINDS
        .contains(&kind)
        .then(|| (kind.to_owned(), fields.get("payload").cloned().unwrap_or_default()))
}

/// The failure of a process that did not exit successfully.
fn broken(status: ExitStatus, said: Option<String>, usage: Usage) -> Signal {
    let with = |what: String| match &said {
        Some(said) => format!("{what}: {said}"),
        None => what,
    };
    match status.code() {
        Some(code @ (126 | 127)) => Signal::fatal(
            format!(
                "{}; a program that the command needs is missing or may not be run: install it, or \
                 change the command",
                with(format!("exit status {code}"))
            ),
            // Nothing has run.
            usage.amounts(),
        ),
        Some(code) => Signal::recoverable(with(format!("exit status {code}")), usage),
        None => {
            let signal = std::os::unix::process::ExitStatusExt::signal(&status).unwrap_or(0);
            Signal::recoverable(with(format!("killed by signal {signal}")), usage)
        }
    }
}

/// The JSON document that an output is, or ends with.
pub(crate) fn last_document(output: &[u8]) -> Option<Value> {
    let text = String::from_utf8_lossy(output);
    // Models often put a fence around it.
    let text = text.trim_end().trim_end_matches("```").trim_end();
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_start().starts_with(['{', '['])
            && let Ok(value) = serde_json::from_str(&text[start..])
        {
            return Some(value);
        }
        start += line.len();
    }
    None
}

#[cfg(test)]
mod tests;
