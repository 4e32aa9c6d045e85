//! Turns the JSON output of a program into plain text and counts.

use std::collections::BTreeSet;
use std::process::ExitStatus;

use stafette_core::{Failure, FailureKind, Time, Usage};

use super::session::{self, Native, Notebook};
use crate::output::plain;
use crate::profile::{Output, Profile, Wall};
use crate::stream::{Decoder, Heard, Meter, Totals, decode};
use crate::{Job, Signal, harvest};

/// The longest message that is passed on, in characters.
const MESSAGE: usize = 2000;

/// The most tools that are named as denied.
const DENIED: usize = 20;

/// The output of a program whose profile describes its format.
#[derive(Debug)]
pub(super) struct Voice {
    profile: Profile,
    output: Output,
    decoder: Decoder,
    meter: Meter,
    notebook: Option<Notebook>,
    native: Option<Native>,
    /// True if a session was to be continued.
    resumed: bool,
    /// True if the program has done something.
    active: bool,
    quota: Option<(Option<Time>, String)>,
    trouble: Option<(String, bool)>,
    ended_badly: bool,
    /// True if it would only try the same again.
    is_hopeless: bool,
    last_words: Option<String>,
    in_line: bool,
    /// The tools that the agent was denied, each once.
    denied: BTreeSet<String>,
    /// The actions that the program denies at the agent's level, if that was not reported in its run.
    denies: Vec<String>,
}

impl Voice {
    /// The reader for a job whose program has a profile, unless it prints only plain text.
    pub(super) fn of(job: &Job, native: Option<Native>) -> Option<Self> {
        let profile = job.profile.clone()?;
        let level = profile.permissions.of(job.agent.permissions);
        let reports = !level.denies.is_empty() && session::is_first_report(job);
        let denies = if reports { level.denies.clone() } else { Vec::new() };
        let output = profile.exec.as_ref().map_or(Output::Text, |exec| exec.output);
        Some(Voice {
            decoder: Decoder::new(&profile),
            profile,
            output,
            meter: Meter::default(),
            notebook: Notebook::of(job),
            resumed: native.is_some(),
            native,
            active: false,
            quota: None,
            trouble: None,
            ended_badly: false,
            is_hopeless: false,
            denied: BTreeSet::new(),
            denies,
            last_words: None,
            in_line: false,
        })
    }

    /// Takes a piece of standard output. Returns the text for people, and the tools that were used.
    pub(super) fn hear(&mut self, bytes: &[u8]) -> (Vec<u8>, Vec<String>) {
        match self.output {
            Output::Text => {
                self.active = true;
                (bytes.to_vec(), Vec::new())
            }
            // It is one document, complete only at the end.
            Output::Json => (Vec::new(), Vec::new()),
            Output::JsonLines => {
                let mut heard = Vec::new();
                self.decoder.push(bytes, &Wall::here(), |it| heard.push(it));
                self.take(heard)
            }
        }
    }

    /// Called when the output has ended; `whole` is all that is left of it.
    pub(super) fn end_of_output(&mut self, whole: &[u8]) -> Vec<u8> {
        let wall = Wall::here();
        let mut heard = Vec::new();
        match self.output {
            Output::Text => {}
            Output::JsonLines => self.decoder.end(&wall, |it| heard.push(it)),
            Output::Json => {
                if let Some(document) = harvest::last_document(whole) {
                    decode(&self.profile, &document, &wall, &mut |it| heard.push(it));
                }
            }
        }
        self.take(heard).0
    }

    fn take(&mut self, heard: Vec<Heard>) -> (Vec<u8>, Vec<String>) {
        let (mut text, mut tools) = (Vec::new(), Vec::new());
        for it in heard {
            match it {
                Heard::Text { text: piece, partial } => {
                    self.active = true;
                    if self.in_line && !partial {
                        text.push(b'\n');
                    }
                    text.extend_from_slice(piece.as_bytes());
                    if !partial {
                        text.push(b'\n');
                    }
                    self.in_line = partial;
                }
                Heard::Tool { name } => {
                    self.active = true;
                    // Text after a tool call is another sentence.
                    if std::mem::take(&mut self.in_line) {
                        text.push(b'\n');
                    }
                    tools.extend(plain(&name, 60));
                }
                Heard::Denied { name } if self.denied.len() < DENIED => {
                    self.denied.extend(plain(&name, 60));
                }
                Heard::Denied { .. } => {}
                Heard::Usage(count) => self.meter.take(&count),
                Heard::Session { id } => self.note(id),
                Heard::Quota { until, message, ends } => {
                    self.ends_with(ends);
                    let (known, said) = self.quota.take().unwrap_or_default();
                    let said = if said.is_empty() { message } else { said };
                    self.quota = Some((known.or(until), said));
                }
                Heard::Error { message, fatal, ends } if !message.is_empty() => {
                    self.ends_with(ends);
                    let fatal = fatal || self.trouble.as_ref().is_some_and(|(_, fatal)| *fatal);
                    self.trouble = Some((message, fatal));
                }
                Heard::Error { .. } => {}
                Heard::Final { text: words, is_error } => {
                    self.ended_badly = is_error;
                    self.last_words = words.or(self.last_words.take());
                }
            }
        }
        (text, tools)
    }

    /// Takes note of whether the turn has to end with what was just reported.
    fn ends_with(&mut self, ends: bool) {
        self.ended_badly |= ends;
        self.is_hopeless |= ends;
    }

    fn note(&mut self, id: String) {
        // A program may continue under a new id; its earlier consumption goes along.
        let totals = self.native.take().map(|native| native.totals).unwrap_or_default();
        let native = Native { id, totals };
        if let Some(notebook) = &self.notebook {
            notebook.write(&native);
        }
        self.native = Some(native);
    }

    /// True if errors and talk come the same way. Otherwise an agent that talks about quotas has
    /// not run out of one.
    pub(super) fn is_plain(&self) -> bool {
        self.output == Output::Text
    }

    /// True if its turn has to be ended, because it would only try the same again.
    pub(super) fn is_hopeless(&self) -> bool {
        self.is_hopeless
    }

    /// True if it streams the activity of its model.
    pub(super) fn streams(&self) -> bool {
        self.output == Output::JsonLines
    }

    /// The reports on tools that the agent was denied, and on what its program denies without a word
    /// about it.
    pub(super) fn denials(&self) -> Vec<Signal> {
        let names: Vec<&str> = self.denied.iter().map(String::as_str).collect();
        let was = (!names.is_empty()).then(|| format!("was denied {}", names.join(", ")));
        let is = (!self.denies.is_empty())
            .then(|| format!("is always denied {} without a terminal", self.denies.join(", ")));
        let alert = |what: String| {
            let message = format!("{what}: see `permissions` of the agent");
            Signal::Alert { code: "PERMISSION_DENIED".to_owned(), message }
        };
        was.into_iter().chain(is).map(alert).collect()
    }

    /// Its last text, for use when it printed nothing else.
    pub(super) fn last_words(&mut self) -> Option<String> {
        self.last_words.take()
    }

    /// The consumption of the turn, if the program counts it.
    pub(super) fn usage(&self) -> Option<Usage> {
        self.meter.usage(&self.profile, self.before())
    }

    fn before(&self) -> Totals {
        self.native.as_ref().map(|native| native.totals).unwrap_or_default()
    }

    /// Returns what went wrong, if anything, after the program has ended. Errors on the way do not
    /// matter when it ended well. `said` is the end of its whole output, and one that `has_answered` has
    /// only talked about errors.
    pub(super) fn failure(
        &mut self,
        status: ExitStatus,
        said: &[String],
        has_answered: bool,
    ) -> Option<Failure> {
        self.settle(status);
        let tells_error = |line: &String| self.profile.tells_error(line);
        let has_failed = self.is_plain() && !has_answered && said.iter().any(tells_error);
        if status.success() && !self.ended_badly && !has_failed {
            return None;
        }
        let wall = Wall::here();
        let quota = self.quota.take().or_else(|| {
            let message = said.iter().find(|line| self.profile.used_up(line, &wall).is_some())?;
            let until = said.iter().find_map(|line| crate::profile::reset(line, &wall));
            Some((until, message.clone()))
        });
        let short = |message: &str| plain(message, MESSAGE);
        if let Some((until, message)) = quota {
            let message = short(&message).unwrap_or_else(|| "its quota is used up".to_owned());
            return Some(Failure::quota(until, message));
        }
        if let Some((message, fatal)) = self.trouble.take() {
            let kind = if fatal { FailureKind::Fatal } else { FailureKind::Recoverable };
            return Some(Failure::new(kind, short(&message)?));
        }
        if let Some(message) = said.iter().find(|line| self.profile.is_fatal(line)) {
            return Some(Failure::new(FailureKind::Fatal, short(message)?));
        }
        self.ended_badly.then(|| Failure::new(FailureKind::Recoverable, "it says that it failed"))
    }

    /// Notes the session's consumption, or forgets a session that could not be continued.
    fn settle(&mut self, status: ExitStatus) {
        let Some(notebook) = &self.notebook else { return };
        let failed = !status.success() || self.ended_badly;
        if self.resumed && failed && !self.active && self.quota.is_none() {
            notebook.forget();
        } else if let (Some(native), Some(totals)) = (&self.native, self.meter.totals()) {
            let totals = totals.max(native.totals);
            notebook.write(&Native { totals, ..native.clone() });
        }
    }
}
