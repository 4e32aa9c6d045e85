//! Starts a command for each turn: the prompt goes in, the result is read from its output.

mod inputs;
pub(crate) mod session;
mod voice;

use std::ffi::OsString;
use std::process::ExitStatus;
use std::time::Duration;

use stafette_core::handoff::Receipt;
use stafette_core::wire::frame::{Found, Scanner, Word};
use stafette_core::workflow::{PromptVia, ResultFormat, Runner};
use stafette_core::{FailureKind, Usage};
use tokio::io::AsyncReadExt;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep_until};

use crate::harvest::{Harvest, last_document};
use crate::output::Tail;
use crate::process::{Group, Outputs};
use crate::receipts::Receipts;
use crate::{
    HEARTBEAT, HEARTBEAT_GAP, Job, LAST_CALL, Link, Pulse, Signal, process, profile, prompt,
};
use inputs::Inputs;
use session::{Native, Notebook};
use voice::Voice;

/// The size of standard output that is kept, in bytes: the largest JSON result.
const OUTPUT: usize = 1024 * 1024;

/// The size of standard error that is kept, in bytes.
const ERRORS: usize = 64 * 1024;

/// The number of bytes in one read.
pub(crate) const CHUNK: usize = 64 * 1024;

/// The time for which output may continue after the whole group is gone: only a process that has
/// left the group can hold the pipe, and it is not waited for.
pub(crate) const DRAIN: Duration = Duration::from_secs(2);

/// Lines of plain output that are used in place of a summary.
const SUMMARY_LINES: usize = 5;

/// Lines of output and of standard error that are kept of a command that died.
const LAST_LINES: usize = 6;

/// Lines of output that are searched for a reason when a command has failed.
const REASON_LINES: usize = 20;

/// Carries out a turn by its command.
pub(crate) async fn run(mut job: Job, mut link: Link) {
    let word = match job.frame_word.parse::<Word>() {
        Ok(word) => word,
        Err(error) => {
            return link.tell(Signal::fatal(error.to_string(), Usage::default())).await;
        }
    };
    if let Some(message) = profile::unusable(&job) {
        return link.tell(Signal::fatal(message, Usage::default())).await;
    }
    // Removed when the turn has ended.
    let _inputs = match Inputs::write(&mut job) {
        Ok(written) => written,
        Err(error) => {
            let message = format!("its inputs cannot be written: {error}");
            return link.tell(Signal::recoverable(message, Usage::default())).await;
        }
    };
    let native = Notebook::of(&job).and_then(|notebook| notebook.read());
    let prompt = prompt::text(&job);
    let command = command(&job, &prompt, native.as_ref());
    let input = match prompt_via(&job) {
        PromptVia::Stdin => prompt.as_str(),
        PromptVia::Argument => "",
    };
    // The pipes stay open until the end: an agent that is asked to end may still write to them.
    let (mut group, mut outputs) = match Group::start_fed(&job, &command, input).await {
        Ok(started) => started,
        Err(failed) => return link.tell(*failed).await,
    };
    let mut hearing = Hearing::new(&job, word, native, link.receipts());
    match hearing.listen(&mut group, &mut outputs, &mut link).await {
        Some(Ending::Left(status)) => link.tell(hearing.end(status, &link).await).await,
        Some(Ending::Hopeless) => {
            group.end().await;
            // What it says is the reason.
            link.tell(hearing.end(ExitStatus::default(), &link).await).await;
        }
        Some(Ending::Stalled) => {
            group.end().await;
            let failure = crate::stalled(hearing.stall);
            hearing.harvest.fail(failure);
            link.tell(hearing.end(ExitStatus::default(), &link).await).await;
        }
        None => {}
    }
    // Ends the processes that remain when the owner wants the end.
    group.end().await;
}

/// The way the prompt goes in. An agent with its own command also sets this.
pub(crate) fn prompt_via(job: &Job) -> PromptVia {
    let exec = job.profile.as_ref().and_then(|profile| profile.exec.as_ref());
    match exec {
        Some(exec) if job.agent.command.is_empty() && job.agent.runner == Runner::Exec => {
            exec.prompt_via
        }
        _ => job.agent.prompt_via,
    }
}

/// The command with the session that it continues, and with its prompt, if that is an argument.
fn command(job: &Job, prompt: &str, native: Option<&Native>) -> Vec<OsString> {
    let words = profile::words(job, native.map(|native| native.id.as_str()));
    with_prompt(job, &words, prompt)
}

/// The words of a command with the prompt, if that is an argument.
pub(crate) fn with_prompt(job: &Job, words: &[String], prompt: &str) -> Vec<OsString> {
    let as_argument = prompt_via(job) == PromptVia::Argument;
    let mut command: Vec<OsString> = Vec::new();
    let mut placed = !as_argument;
    for (at, part) in words.iter().enumerate() {
        if at > 0 && as_argument && part.contains("{prompt}") {
            command.push(part.replace("{prompt}", prompt).into());
            placed = true;
        } else {
            command.push(part.into());
        }
    }
    if !placed && !command.is_empty() {
        command.push(prompt.into());
    }
    command
}

/// The end of a command.
enum Ending {
    Left(ExitStatus),
    /// It would only try the same again.
    Hopeless,
    /// It gave no sign of life for too long, even when it was interrupted.
    Stalled,
}

/// The output of a command.
struct Hearing {
    format: ResultFormat,
    /// The reader of the output, when a profile has one; otherwise it is plain text.
    voice: Option<Voice>,
    scanner: Scanner,
    harvest: Harvest,
    output: Tail,
    /// The output in its original form, where a reader makes text of it.
    raw: Tail,
    errors: Tail,
    reported: Option<Instant>,
    receipts: Receipts,
    /// The time for which it may be silent.
    stall: Duration,
    pulse: Pulse,
    heard_at: Instant,
    /// The time at which it was interrupted, if it has been silent since.
    interrupted: Option<Instant>,
    /// The time at which it was interrupted last.
    last_call: Option<Instant>,
}

impl Hearing {
    fn new(job: &Job, word: Word, native: Option<Native>, receipts: Receipts) -> Self {
        let format = job.agent.result;
        Hearing {
            format,
            voice: Voice::of(job, native),
            scanner: Scanner::new(word),
            harvest: Harvest::new(&job.order.agent, format == ResultFormat::Frames)
                .answered_by_exit(format == ResultFormat::Exit)
                .with_token(job.token())
                .trusting(job.trust_bare_frames),
            output: Tail::new(OUTPUT),
            raw: Tail::new(OUTPUT),
            errors: Tail::new(ERRORS),
            reported: None,
            receipts,
            stall: job.stall(),
            pulse: job.pulse.clone(),
            heard_at: Instant::now(),
            interrupted: None,
            last_call: None,
        }
    }

    /// Listens until the command has ended and all of its output is read, or until it stalls; `None`
    /// when the owner wants the end first.
    async fn listen(
        &mut self,
        group: &mut Group,
        outputs: &mut Outputs,
        link: &mut Link,
    ) -> Option<Ending> {
        let Outputs { output, errors } = outputs;
        let (mut output_ended, mut errors_ended) = (false, false);
        let (mut output_chunk, mut errors_chunk) = (vec![0; CHUNK], vec![0; CHUNK]);
        let mut heartbeat = interval_at(Instant::now() + HEARTBEAT, HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ended: Option<(ExitStatus, Instant)> = None;
        self.receipts.reach(Receipt::Delivered).await;
        loop {
            if let Some((status, _)) = ended
                && (output_ended && errors_ended)
            {
                return Some(self.left(status));
            }
            let drained = ended.map_or_else(Instant::now, |(_, at)| at + DRAIN);
            let stalls = self.stalls();
            tokio::select! {
                wish = link.wish() => {
                    wish?;
                }
                read = output.read(&mut output_chunk), if !output_ended => match read {
                    Ok(count @ 1..) => {
                        self.hear(&output_chunk[..count], link).await;
                        if self.voice.as_ref().is_some_and(Voice::is_hopeless) {
                            return Some(Ending::Hopeless);
                        }
                    }
                    Ok(0) | Err(_) => output_ended = true,
                },
                read = errors.read(&mut errors_chunk), if !errors_ended => match read {
                    Ok(count @ 1..) => {
                        self.lives();
                        self.errors.push(&errors_chunk[..count]);
                    }
                    Ok(0) | Err(_) => errors_ended = true,
                },
                status = group.leader_ends(), if ended.is_none() => {
                    // Processes that the leader left behind would hold the pipes open.
                    group.end().await;
                    ended = Some((status, Instant::now()));
                }
                () = sleep_until(stalls), if ended.is_none() => {
                    if self.interrupted.is_some() {
                        return Some(Ending::Stalled);
                    }
                    match self.pulse.has_beaten() || group.has_worked(self.stall) {
                        true => self.lives(),
                        false => self.interrupt(group, link).await,
                    }
                }
                _ = heartbeat.tick(), if ended.is_none() && self.interrupted.is_none() => {
                    self.report(link);
                }
                () = sleep_until(drained), if ended.is_some() => {
                    return ended.map(|(status, _)| self.left(status));
                }
            }
        }
    }

    /// The time at which it is interrupted for its silence, or given up after that.
    fn stalls(&self) -> Instant {
        self.interrupted.map_or(self.heard_at + self.stall, |at| at + LAST_CALL)
    }

    /// The end of a command that has exited. One that was interrupted had stalled, whatever it said
    /// to that.
    fn left(&self, status: ExitStatus) -> Ending {
        let was_interrupted = self.last_call.is_some_and(|at| at.elapsed() < LAST_CALL);
        match was_interrupted && !status.success() {
            true => Ending::Stalled,
            false => Ending::Left(status),
        }
    }

    /// Marks a sign of life.
    fn lives(&mut self) {
        (self.heard_at, self.interrupted) = (Instant::now(), None);
    }

    /// Interrupts a command that does nothing, and reports it to people. It counts as alive again
    /// when it prints something.
    async fn interrupt(&mut self, group: &Group, link: &Link) {
        self.interrupted = Some(Instant::now());
        self.last_call = self.interrupted;
        let code = "AGENT_STALLED".to_owned();
        let quiet = self.stall.as_secs_f32();
        let message = format!("printed nothing for {quiet} s and was interrupted");
        link.tell(Signal::Alert { code, message }).await;
        group.interrupt();
    }

    /// Takes a piece of standard output.
    async fn hear(&mut self, bytes: &[u8], link: &Link) {
        self.lives();
        self.receipts.reach(Receipt::Ingested).await;
        match &mut self.voice {
            None => self.read(bytes, link).await,
            Some(voice) => {
                self.raw.push(bytes);
                let (text, tools) = voice.hear(bytes);
                // In a stream it is the model that speaks and uses tools.
                if voice.streams() && !(text.is_empty() && tools.is_empty()) {
                    self.receipts.reach(Receipt::Acknowledged).await;
                }
                self.read(&text, link).await;
                if let Some(note) = tools.last() {
                    link.mention(Signal::Alive { note: Some(note.clone()) });
                    self.reported = Some(Instant::now());
                }
            }
        }
        if self.reported.is_none_or(|last| last.elapsed() >= HEARTBEAT_GAP) {
            self.report(link);
        }
    }

    /// Takes a piece of text.
    async fn read(&mut self, text: &[u8], link: &Link) {
        self.output.push(text);
        if self.format != ResultFormat::Frames {
            return;
        }
        let mut found = Vec::new();
        self.scanner.scan(text, |it| found.push(it));
        self.take(found, link).await;
    }

    /// Takes what was found in the output.
    async fn take(&mut self, found: Vec<Found>, link: &Link) {
        if found.iter().any(|it| matches!(it, Found::Frame { .. })) {
            self.receipts.reach(Receipt::Acknowledged).await;
        }
        for it in found {
            link.tell_all(self.harvest.found(&it)).await;
        }
    }

    /// Reports that the command is alive.
    fn report(&mut self, link: &Link) {
        self.reported = Some(Instant::now());
        link.mention(Signal::Alive { note: self.output.note() });
    }

    /// Returns the outcome of the turn after the command has ended.
    async fn end(mut self, status: ExitStatus, link: &Link) -> Signal {
        if let Some(mut voice) = self.voice.take() {
            let mut rest = voice.end_of_output(self.raw.bytes());
            if self.output.bytes().is_empty() && rest.is_empty() {
                rest = voice.last_words().unwrap_or_default().into_bytes();
            }
            self.read(&rest, link).await;
            link.tell_all(voice.denials()).await;
            if let Some(usage) = voice.usage() {
                self.harvest.used(usage);
            }
            let mut said = self.errors.lines(REASON_LINES);
            if voice.is_plain() {
                said.extend(self.output.lines(REASON_LINES));
            }
            if let Some(failure) = voice.failure(status, &said, self.harvest.has_answer()) {
                // A missing program says more than a failure.
                let missing = matches!(status.code(), Some(126 | 127));
                if !(missing && failure.kind == FailureKind::Recoverable) {
                    self.harvest.fail(failure);
                }
            }
        }
        let mut found = Vec::new();
        self.scanner.finish(|it| found.push(it));
        self.take(found, link).await;
        let mut summary = String::new();
        match self.format {
            ResultFormat::Frames | ResultFormat::Exit => {
                summary = self.output.lines(SUMMARY_LINES).join("\n");
            }
            ResultFormat::Json if !status.success() => {}
            ResultFormat::Json => match last_document(self.output.bytes()) {
                Some(value) => {
                    for signal in self.harvest.document(value) {
                        link.tell(signal).await;
                    }
                }
                None => self.harvest.mistake("the output does not end with a JSON document"),
            },
        }
        if !status.success() {
            let mut last = self.output.lines(LAST_LINES);
            last.extend(self.errors.lines(LAST_LINES));
            link.tell(process::died(status, &last)).await;
        }
        let complaint = self.errors.complaint().or_else(|| self.output.complaint());
        let end = self.harvest.end(status, summary, complaint);
        if let Signal::Finished(_) = end {
            self.receipts.reach(Receipt::Acknowledged).await;
        }
        end
    }
}

#[cfg(test)]
mod tests;
