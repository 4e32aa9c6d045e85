//! The state of a program by its screen, as far as its profile describes it.

use super::menu::Menu;
use crate::Job;
use crate::profile::Pty;
use crate::terminal::Terminal;

/// The state that a screen shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Glance {
    /// Nothing speaks against typing.
    Quiet,
    /// The program shows that it works.
    Busy,
    /// The program asks what its profile answers.
    Dialog,
    /// The program waits for a person's answer.
    Asks,
    /// The program does not look ready.
    Unready,
}

/// The part of the screen that may ask something.
pub(super) fn asked(mode: &Pty, terminal: &Terminal) -> String {
    // Blanks at the end of a line are not kept, but a prompt ends with one.
    let text = if mode.asks_at_cursor { terminal.line() } else { terminal.text().join(" \n") };
    text + " "
}

impl Glance {
    /// The state that the screen shows now. Only a `fresh` program, which has taken no order yet, is answered
    /// by its profile: later its screen shows what the agent has written, and that can look like a
    /// dialog. In the line of the cursor it cannot.
    pub(super) fn at(job: &Job, terminal: &Terminal, fresh: bool) -> Self {
        let Some((profile, mode)) =
            job.profile.as_ref().and_then(|it| Some((it, it.pty.as_ref()?)))
        else {
            return Glance::Quiet;
        };
        // Blanks at the end of a line are not kept, but a prompt ends with one.
        let screen = terminal.text().join(" \n") + " ";
        let asked = asked(mode, terminal);
        let shows_dialog = profile.dialog(job.agent.permissions, &asked).is_some();
        let has_menu = || Menu::read(&terminal.text()).is_some();
        if shows_dialog && (fresh || mode.asks_at_cursor) {
            Glance::Dialog
        } else if mode.is_asking(&asked) || shows_dialog && has_menu() {
            Glance::Asks
        } else if mode.is_busy(&screen) {
            Glance::Busy
        } else if mode.is_ready(&screen) == Some(false)
            || mode.brackets && !terminal.takes_brackets()
        {
            Glance::Unready
        } else {
            Glance::Quiet
        }
    }

    /// True if the program is back where it takes input, `prompt` being the row in which the order
    /// was typed: its profile says so, or its cursor is behind the same prompt again.
    pub(super) fn is_at_rest(job: &Job, terminal: &Terminal, prompt: Option<&str>) -> bool {
        if Glance::at(job, terminal, false) != Glance::Quiet {
            return false;
        }
        let mode = job.profile.as_ref().and_then(|profile| profile.pty.as_ref());
        let is_ready = |text: &str| mode.and_then(|mode| mode.is_ready(text)) == Some(true);
        // One that shows when it works does not now. Others leave their prompt standing above.
        if mode.is_some_and(|mode| !mode.busy.is_empty()) {
            return is_ready(&(terminal.text().join(" \n") + " "));
        }
        let line = terminal.line();
        prompt.is_some_and(|prompt| prompt == line) || is_ready(&(line + " "))
    }
}
