//! The wait for a program to take input, before its order is typed.

use std::time::Duration;

use stafette_core::Usage;
use tokio::time::{Instant, sleep_until};

use super::{Doubt, Early, Glance, LEFT_EARLY, Turn};
use crate::Signal;
use crate::terminal::State;

impl Turn<'_> {
    /// Waits until the program takes input, over its restarts.
    pub(super) async fn await_ready(&mut self) -> Result<(), Early> {
        let mut late = None;
        let (quiet, arrival) = (self.terminal.setup().quiet, self.terminal.setup().arrival);
        // The time since which the screen changes, and at which it is still.
        let mut moving = Instant::now();
        let mut still = moving + quiet;
        loop {
            let mut waits = None;
            self.changes.borrow_and_update();
            if self.expire().await {
                moving = Instant::now();
                still = moving + quiet;
            }
            let news = self.terminal.news();
            for sighting in news.frames.iter().filter(|found| found.frame.kind == "ERROR") {
                self.frame(sighting).await;
            }
            self.life = news.status.life;
            let note = news.status.note.unwrap_or_default();
            let early = |signal: Signal| Err(Some(Box::new(signal)));
            match news.status.state {
                State::Ready | State::Waiting | State::Working | State::NotReady => {
                    let now = Instant::now();
                    let late = *late.get_or_insert(now + self.patience());
                    // One that never stops to change is judged all the same.
                    let settles = still.min(moving + arrival);
                    match self.glance() {
                        // Half of a menu has other options.
                        Glance::Dialog | Glance::Asks if settles > now => waits = Some(settles),
                        Glance::Dialog => {
                            if self.answer_dialog().await {
                                moving = Instant::now();
                                still = moving + quiet;
                                continue;
                            }
                            if let Some(end) = self.ask(Doubt::Asks).await {
                                return early(end);
                            }
                        }
                        // Text typed now would be taken for the answer.
                        Glance::Asks => {
                            self.tell_that_it_asks().await;
                            if let Some(end) = self.ask(Doubt::Asks).await {
                                return early(end);
                            }
                        }
                        // A screen that still changes may become one that is known.
                        Glance::Unready | Glance::Busy if late.max(still) > now => {
                            waits = Some(late.max(still));
                        }
                        Glance::Unready => {
                            self.tell_that_it_is_not_ready().await;
                            if let Some(end) = self.ask(Doubt::Unknown).await {
                                return early(end);
                            }
                        }
                        _ if news.status.state == State::NotReady && !self.is_known() => {
                            self.tell_that_it_is_not_ready().await;
                            return Ok(());
                        }
                        _ => {
                            self.drop_question().await;
                            self.goes_on().await;
                            return Ok(());
                        }
                    }
                }
                State::Crashed => return early(Signal::fatal(note, Usage::default())),
                State::Ended => {
                    return early(Signal::recoverable(LEFT_EARLY, Usage::default()));
                }
                State::Starting | State::Restarting => {}
            }
            let expires = self.question.as_ref().map(|question| question.until);
            let waits = waits.into_iter().chain(expires).min();
            let wait = sleep_until(waits.unwrap_or_else(Instant::now));
            tokio::select! {
                changed = self.changes.changed() => {
                    if changed.is_err() {
                        return Err(None);
                    }
                    let now = Instant::now();
                    moving = if still <= now { now } else { moving };
                    still = now + quiet;
                }
                Some(reply) = self.answers.recv() => {
                    if self.reply(&reply).await {
                        self.goes_on().await;
                        return Ok(());
                    }
                }
                () = wait, if waits.is_some() => {}
            }
        }
    }

    /// True if the profile describes the screen of a program that takes input.
    fn is_known(&self) -> bool {
        let mode = self.job.profile.as_ref().and_then(|profile| profile.pty.as_ref());
        mode.is_some_and(|mode| !mode.ready.is_empty())
    }

    fn patience(&self) -> Duration {
        self.terminal.setup().patience.ready_timeout
    }

    async fn tell_that_it_is_not_ready(&mut self) {
        if std::mem::replace(&mut self.late, true) {
            return;
        }
        let code = "AGENT_NOT_READY".to_owned();
        let waited = self.patience().as_secs_f32();
        let message = format!("did not say that it takes input within {waited} s");
        self.link.tell(Signal::Alert { code, message }).await;
    }
}
