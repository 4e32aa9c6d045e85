//! One turn in a terminal: typed in, watched, and read from the screen.

mod ready;

use std::time::Duration;

use stafette_core::handoff::Receipt;
use stafette_core::run::session::SessionState;
use stafette_core::workflow::ResultFormat;
use stafette_core::{Failure, FailureKind, Usage};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout};

use super::Voice;
use super::glance::Glance;
use super::progress::Progress;
use super::question::{Doubt, Question};
use crate::harvest::Harvest;
use crate::process::TurnNote;
use crate::profile::{self, Wall};
use crate::receipts::Receipts;
use crate::screen::{Sighting, Tier};
use crate::terminal::{InputError, Terminal};
use crate::transcript::Transcript;
use crate::{GRACE, HEARTBEAT, HEARTBEAT_GAP, Job, LAST_CALL, Reply, Signal};

/// Lines of output that are used in place of a summary.
const SUMMARY_LINES: usize = 5;

/// Lines of the last screen that are reported of a program which draws.
const SCREEN_LINES: usize = 12;

/// A program that is back at its prompt and quiet for so many times the usual has nothing to add.
const RESTS: u32 = 4;

/// The wait before Enter is pressed for the second time; each further one is twice as long.
const ENTER: Duration = Duration::from_millis(500);

/// The most times that Enter is pressed for one prompt.
const ENTERS: u32 = 7;

/// The message for a program that exits too soon, though with success.
const LEFT_EARLY: &str = "it left before it was given its order";

/// The condition for the end of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Close {
    /// The turn does not end yet.
    Open,
    /// The turn ends when it is quiet after this moment.
    WhenQuiet { since: Instant },
    /// The turn ends immediately.
    Now,
}

/// A turn in a terminal.
pub(super) struct Turn<'a> {
    pub(super) terminal: &'a Terminal,
    pub(super) link: &'a Voice,
    pub(super) changes: watch::Receiver<u64>,
    answers: &'a mut mpsc::Receiver<Reply>,
    /// The question that waits for a person.
    pub(super) question: Option<Question>,
    /// The number of questions that were asked, and of dialogs that the profile answered.
    pub(super) questions: u32,
    pub(super) dialogs: u32,
    harvest: Option<Harvest>,
    pub(super) job: &'a Job,
    note: Option<TurnNote>,
    /// The number of the program's start that has the turn.
    life: u32,
    close: Close,
    /// True if the program has its order.
    handed_in: bool,
    heard: u64,
    receipts: Receipts,
    /// The row with the order before it was submitted, where the profile knows it.
    typed: Option<String>,
    /// The number of times that Enter was pressed, and the time of the next.
    presses: u32,
    press_at: Option<Instant>,
    /// The time of an interruption, unless the program has continued since.
    interrupted: Option<Instant>,
    printed_at: Instant,
    progress: Progress,
    /// The row that shows an error that no further attempt helps.
    hopeless: Option<String>,
    reported: Option<Instant>,
    /// True if there is output that was not reported.
    unreported: bool,
    /// The row in which the order was typed, if there is a prompt in it.
    prompt: Option<String>,
    /// True if the screen was checked since it became quiet; `busy`, `rests` and `asked` hold the
    /// result.
    glanced: bool,
    busy: bool,
    rests: bool,
    asked: bool,
    /// True if it was reported that the program is not ready.
    late: bool,
    /// True if stray text is left in the program's input, or the program has stalled.
    pub(super) spoiled: bool,
}

/// The early end of a turn's beginning: a signal, or `None` for the program's exit.
pub(super) type Early = Option<Box<Signal>>;

impl<'a> Turn<'a> {
    pub(super) fn new(
        job: &'a Job,
        terminal: &'a Terminal,
        link: &'a Voice,
        answers: &'a mut mpsc::Receiver<Reply>,
    ) -> Self {
        Turn {
            terminal,
            link,
            changes: terminal.changes(),
            answers,
            question: None,
            questions: 0,
            dialogs: 0,
            harvest: Harvest::new(&job.order.agent, true)
                .answered_by_exit(job.agent.result == ResultFormat::Exit)
                .trusting(job.trust_bare_frames)
                .into(),
            job,
            note: None,
            life: 0,
            close: Close::Open,
            handed_in: false,
            heard: 0,
            receipts: Receipts::new(link.0.clone()),
            typed: None,
            presses: 0,
            press_at: None,
            interrupted: None,
            spoiled: false,
            late: false,
            prompt: None,
            glanced: false,
            busy: false,
            rests: false,
            asked: false,
            printed_at: Instant::now(),
            progress: Progress::new(),
            hopeless: None,
            reported: None,
            unreported: false,
        }
    }

    /// Marks that the program got its order with its command.
    pub(super) async fn passed(&mut self) -> Result<(), Early> {
        self.life = self.terminal.status().life;
        self.begin();
        self.terminal.turn_has_begun();
        self.handed_in = true;
        self.printed_at = Instant::now();
        self.progress.mark();
        self.receipts.reach(Receipt::Delivered).await;
        Ok(())
    }

    /// Gives the program its order: waits until it takes input, types, and presses Enter when all
    /// of the text is visible.
    pub(super) async fn hand_in(&mut self, text: &str) -> Result<(), Early> {
        self.await_ready().await?;
        let _hand = self.terminal.hand().await;
        self.prompt = Some(self.terminal.line()).filter(|line| !line.is_empty());
        self.begin();
        self.terminal.turn_begins(text);
        let typed = self.terminal.paste_seen(text).await;
        self.refused(typed)?;
        self.receipts.reach(Receipt::Delivered).await;
        self.typed = self.input();
        self.terminal.listen();
        self.printed_at = Instant::now();
        self.progress.mark();
        let sent = self.terminal.submit().await;
        self.refused(sent)?;
        self.presses = 1;
        // Without a sight of its input, its silence is the only sign that Enter was lost.
        let wait = if self.typed.is_some() { ENTER } else { self.terminal.setup().arrival };
        self.press_at = Some(Instant::now() + wait);
        self.handed_in = true;
        Ok(())
    }

    /// The state that the screen shows now.
    pub(super) fn glance(&self) -> Glance {
        Glance::at(self.job, self.terminal, self.terminal.is_fresh())
    }

    /// The row with the program's input, where the profile knows it.
    fn input(&self) -> Option<String> {
        let mode = self.job.profile.as_ref().and_then(|profile| profile.pty.as_ref());
        mode.and_then(|mode| mode.input(&self.terminal.text()))
    }

    /// True if the program has taken what was typed: its input is another one now, or it shows that it
    /// works. An input that is only hidden may come back as it was. Where the profile does not know
    /// it, any new output counts.
    fn is_taken(&self) -> bool {
        match &self.typed {
            // The options of a menu have the same sign in front as the input.
            Some(typed) => match self.glance() {
                Glance::Busy => true,
                Glance::Dialog | Glance::Asks => false,
                _ => self.input().is_some_and(|input| input != *typed),
            },
            None => self.terminal.says_something(),
        }
    }

    /// Presses Enter again if it was lost, which happens more easily than with a text. Fails if that
    /// does not help.
    async fn press_again(&mut self) -> Option<Signal> {
        let lost = match &self.typed {
            Some(_) => !self.receipts.has(Receipt::Ingested) && !self.is_taken(),
            None => self.heard == 0,
        };
        self.press_at = None;
        if !lost {
            return None;
        }
        // Enter would answer a question, and nobody knows what it does where the input is hidden.
        let is_hidden = self.typed.is_some() && self.input().is_none();
        if is_hidden || !matches!(self.glance(), Glance::Quiet | Glance::Unready) {
            self.press_at = Some(Instant::now() + ENTER);
            return None;
        }
        let limit = if self.typed.is_some() { ENTERS } else { 2 };
        if self.presses >= limit {
            self.typed.as_ref()?;
            self.spoiled = true;
            let screen = self.terminal.text().join("\n");
            let message = format!("its prompt was typed, but Enter did nothing:\n{screen}");
            return Some(Signal::recoverable(message, Usage::default()));
        }
        // A program that reads nothing must not hold us up.
        let _ = timeout(self.terminal.setup().arrival, self.terminal.submit()).await;
        self.press_at = Some(Instant::now() + ENTER * (1 << self.presses.min(4)));
        self.presses += 1;
        None
    }

    /// Assigns the turn to the current program, which signs with its own token.
    fn begin(&mut self) {
        let leader = self.terminal.status().pid;
        self.note = leader.and_then(|leader| TurnNote::new(self.job, leader));
        let token = self.terminal.token();
        self.harvest = self.harvest.take().map(|harvest| harvest.with_token(token.as_deref()));
    }

    /// Ends the turn if input did not arrive.
    fn refused(&mut self, typed: Result<(), InputError>) -> Result<(), Early> {
        let error = match typed {
            Ok(()) => return Ok(()),
            Err(InputError::Gone) => return Err(None),
            Err(error) => error,
        };
        self.spoiled = true;
        let screen = self.terminal.text().join("\n");
        let message = format!("{error}, so it was not sent; the screen shows:\n{screen}");
        Err(Some(Box::new(Signal::recoverable(message, Usage::default()))))
    }

    async fn tell_that_it_asks(&mut self) {
        if !self.asked {
            self.asked = true;
            let code = "AGENT_ASKS".to_owned();
            let said = self.terminal.text();
            let message = format!("waits for a person's word:\n{}", said.join("\n"));
            let state = SessionState::Waiting;
            self.link.tell(Signal::Session { state, note: message.clone() }).await;
            self.link.tell(Signal::Alert { code, message }).await;
        }
    }

    /// Clears the state of waiting for a person's answer, if it was set.
    async fn goes_on(&mut self) {
        if std::mem::take(&mut self.asked) {
            let state = SessionState::Working;
            self.link.tell(Signal::Session { state, note: String::new() }).await;
        }
    }

    /// Looks at the screen anew after an answer.
    async fn answered(&mut self) {
        self.goes_on().await;
        self.printed_at = Instant::now();
        self.progress.mark();
        self.glanced = false;
    }

    /// Checks a screen that has become quiet. A used-up quota ends the turn.
    async fn settled(&mut self) -> Option<Signal> {
        self.glanced = true;
        self.busy = false;
        let mut glance = self.glance();
        if glance == Glance::Dialog {
            if self.answer_dialog().await {
                self.glanced = false;
                self.printed_at = Instant::now();
                return None;
            }
            glance = Glance::Asks;
        }
        if glance != Glance::Asks {
            self.drop_question().await;
        }
        match glance {
            Glance::Asks | Glance::Dialog => {
                self.tell_that_it_asks().await;
                if let Some(end) = self.ask(Doubt::Asks).await {
                    return Some(end);
                }
            }
            Glance::Busy => {
                self.goes_on().await;
                self.busy = true;
                self.terminal.has_taken();
                self.receipts.reach(Receipt::Ingested).await;
            }
            Glance::Quiet | Glance::Unready => self.goes_on().await,
        }
        // What it did before it was interrupted is no answer, and neither is the echo of the order.
        self.rests = self.interrupted.is_none()
            && self.receipts.has(Receipt::Ingested)
            && Glance::is_at_rest(self.job, self.terminal, self.prompt.as_deref());
        // While it works, it may be a tool that prints these words.
        let may_be_over = self.close == Close::Open && !self.busy;
        let profile = self.job.profile.as_ref().filter(|_| may_be_over)?;
        let (said, wall) = (self.terminal.lines(SCREEN_LINES), Wall::here());
        let used_up = profile.used_up(&said.join("\n"), &wall)?;
        let line = said.into_iter().find(|line| profile.used_up(line, &wall).is_some());
        let failure = Failure::quota(used_up.until, line.unwrap_or_default());
        Some(Signal::Failed { failure, usage: self.used().await })
    }

    /// Watches until the turn has ended.
    pub(super) async fn watch(&mut self) -> Signal {
        let mut beat = Instant::now() + HEARTBEAT;
        loop {
            self.changes.borrow_and_update();
            if self.look().await {
                return self.end().await;
            }
            if self.expire().await {
                self.answered().await;
            }
            let now = Instant::now();
            let setup = self.terminal.setup();
            let quiet = self.printed_at + setup.quiet;
            if !self.glanced
                && quiet <= now
                && let Some(end) = self.settled().await
            {
                return end;
            }
            let over = match self.close {
                // It has said everything, and no signal was in it.
                Close::Open if self.glanced && self.rests => {
                    Some(self.printed_at + setup.quiet * RESTS)
                }
                Close::Open => None,
                Close::WhenQuiet { since } if self.busy || self.asked => {
                    Some(since + setup.unquiet)
                }
                Close::WhenQuiet { since } => {
                    Some(quiet.max(since + setup.quiet).min(since + setup.unquiet))
                }
                Close::Now => Some(now),
            };
            if over.is_some_and(|at| at <= now) {
                return self.end().await;
            }
            // A result that waits for quiet counts, whatever the program shows by now.
            if let Some(row) = self.hopeless.take().filter(|_| self.close == Close::Open) {
                self.spoiled = true;
                return Signal::fatal(row, self.used().await);
            }
            let stalls = self.progress.at + setup.stall;
            // A program that waits for a person does not stall.
            let may_stall = self.interrupted.is_none() && !self.asked;
            if may_stall && stalls <= now {
                let program = self.terminal.status().pid;
                let beats = self.job.pulse.has_beaten();
                match beats || self.progress.works(program, setup.stall) {
                    true => self.progress.mark(),
                    false => self.interrupt().await,
                }
            }
            let open = self.close == Close::Open;
            let given_up = self.interrupted.filter(|_| open).map(|at| at + LAST_CALL);
            if given_up.is_some_and(|at| at <= now) {
                self.spoiled = true;
                let failure = crate::stalled(setup.stall);
                return Signal::Failed { failure, usage: self.used().await };
            }
            if self.press_at.is_some_and(|at| at <= now)
                && let Some(end) = self.press_again().await
            {
                return end;
            }
            let due = self.reported.map_or(now, |at| at + HEARTBEAT_GAP);
            let beats = beat <= now;
            if self.interrupted.is_none() && (beats || self.unreported && due <= now) {
                self.report(beats);
            }
            if beats {
                beat = now + HEARTBEAT;
            }
            let waits = [
                Some(beat),
                over,
                may_stall.then_some(stalls),
                given_up,
                (!self.glanced).then_some(quiet),
                self.press_at,
                self.question.as_ref().map(|question| question.until),
                (self.unreported && self.interrupted.is_none()).then_some(due),
            ];
            let next = waits.into_iter().flatten().min().unwrap_or(beat);
            tokio::select! {
                changed = self.changes.changed() => {
                    if changed.is_err() {
                        return self.end().await;
                    }
                }
                Some(reply) = self.answers.recv() => {
                    self.reply(&reply).await;
                    self.answered().await;
                }
                () = sleep_until(next) => {}
            }
        }
    }

    /// Takes the new output. Returns true if the program has exited.
    async fn look(&mut self) -> bool {
        let news = self.terminal.news();
        for sighting in &news.frames {
            self.frame(sighting).await;
        }
        if news.given && self.close != Close::Now {
            self.close = Close::Open;
        }
        if news.told && self.close == Close::Open {
            self.close = Close::WhenQuiet { since: Instant::now() };
        }
        if news.heard > self.heard {
            self.heard = news.heard;
            self.printed_at = Instant::now();
            self.unreported = true;
            self.glanced = false;
            if self.is_new() {
                self.progress.mark();
                // The echo of the interruption, and a prompt after it, are no signs of work.
                self.interrupted.take_if(|at| at.elapsed() > GRACE);
            }
            // The echo of a key is the terminal's own.
            let unread = !self.receipts.has(Receipt::Ingested) && self.interrupted.is_none();
            if unread && self.is_taken() {
                self.terminal.has_taken();
                self.receipts.reach(Receipt::Ingested).await;
            }
        }
        let status = news.status;
        status.over || status.life != self.life || status.exit.is_some()
    }

    /// True if it printed something new. A program that draws shows more than it says.
    fn is_new(&mut self) -> bool {
        if !self.terminal.draws() {
            return true;
        }
        let pty = self.job.profile.as_ref().and_then(|profile| profile.pty.as_ref());
        let is_hopeless = |row: &String| pty.is_some_and(|pty| pty.is_hopeless(row));
        self.hopeless = self.terminal.text().into_iter().find(is_hopeless);
        self.progress.sees(&self.terminal.lines(usize::MAX))
    }

    async fn frame(&mut self, sighting: &Sighting) {
        let ends = matches!(sighting.frame.kind.as_str(), "HANDOFF" | "RESULT");
        let signed = sighting.tier == Tier::Signed;
        let Some(harvest) = &mut self.harvest else {
            return;
        };
        let said = harvest.frame(&sighting.frame);
        // One that cannot be read ends nothing.
        let ends = ends && (signed || harvest.has_answer());
        if self.handed_in {
            self.receipts.reach(Receipt::Acknowledged).await;
        }
        self.link.tell_all(said).await;
        if ends && signed {
            self.close = Close::Now;
        } else if ends && self.close == Close::Open {
            self.close = Close::WhenQuiet { since: Instant::now() };
        }
    }

    /// Interrupts a program that does nothing, and reports it to people.
    async fn interrupt(&mut self) {
        self.interrupted = Some(Instant::now());
        let code = "AGENT_STALLED".to_owned();
        let setup = self.terminal.setup();
        let quiet = setup.stall.as_secs_f32();
        let message = format!("printed nothing for {quiet} s and was interrupted");
        self.link.tell(Signal::Alert { code, message }).await;
        // A program that is gone needs no interruption, and one that reads nothing cannot be
        // interrupted.
        let _ = timeout(setup.arrival, self.terminal.interrupt()).await;
    }

    /// Reports that the program is alive, if it has new output or a heartbeat is due.
    fn report(&mut self, beats: bool) {
        self.unreported = false;
        let note = self.terminal.lines(1).pop();
        if beats || note.is_some() {
            self.reported = Some(Instant::now());
            self.link.mention(Signal::Alive { note });
        }
    }

    /// The consumption that its program has recorded since the last turn.
    async fn used(&self) -> Usage {
        if !self.handed_in {
            return Usage::default();
        }
        match (Transcript::of(self.job), self.terminal.session()) {
            (Some(transcript), Some(session)) => transcript.used(&session).await,
            _ => Usage::unknown(),
        }
    }

    /// Ends the turn and returns its outcome.
    pub(super) async fn end(&mut self) -> Signal {
        for sighting in self.terminal.news().frames {
            self.frame(&sighting).await;
        }
        let Some(mut harvest) = self.harvest.take() else {
            return Signal::recoverable("the turn was over before", Usage::default());
        };
        // A program that draws tears frames apart which its screen shows whole: they are worth a
        // word only if nothing else was said.
        if !harvest.has_answer() {
            for found in self.terminal.malformed() {
                self.link.tell_all(harvest.found(&found)).await;
            }
        }
        let usage = self.used().await;
        harvest.used(usage);
        let status = self.terminal.status();
        let left = status.exit.filter(|_| status.life == self.life);
        let gone = left.is_none() && (status.over || status.life != self.life);
        if gone {
            return Signal::recoverable("its program was ended", usage);
        }
        if !self.handed_in && left.is_some_and(|status| status.success()) {
            return Signal::recoverable(LEFT_EARLY, usage);
        }
        // The program ended when it was interrupted.
        if self.interrupted.is_some() && left.is_some_and(|status| !status.success()) {
            let failure = crate::stalled(self.terminal.setup().stall);
            return Signal::Failed { failure, usage };
        }
        let summary = self.terminal.lines(SUMMARY_LINES).join("\n");
        let complaint = match self.terminal.draws() && left.is_some() {
            true => Some(format!("last screen:\n{}", self.terminal.lines(SCREEN_LINES).join("\n"))),
            false => self.terminal.lines(1).pop(),
        };
        let harvest = if left.is_none() { harvest.of_one_that_runs_on() } else { harvest };
        let end = harvest.end(left.unwrap_or_default(), summary, complaint);
        if let Signal::Finished(_) = end {
            self.terminal.has_taken();
            self.receipts.reach(Receipt::Acknowledged).await;
        }
        match end {
            // The program's profile may know what its error means.
            Signal::Failed { failure, usage } if failure.kind == FailureKind::Recoverable => {
                let failure = profile::named(self.job, failure.kind, failure.message);
                Signal::Failed { failure, usage }
            }
            end => end,
        }
    }
}
