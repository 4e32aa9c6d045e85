//! What a program's screen says about it, as far as its profile knows.

use crate::Job;
use crate::terminal::Terminal;

/// What a screen shows at a glance.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Glance {
    /// Nothing against typing.
    Quiet,
    /// It works.
    Busy,
    /// It waits for a person's word.
    Asks,
    /// It does not look ready.
    Unready,
}

impl Glance {
    /// What is to be seen now.
    pub(super) fn at(job: &Job, terminal: &Terminal) -> Self {
        let mode = job.profile.as_ref().and_then(|profile| profile.pty.as_ref());
        let Some(mode) = mode else {
            return Glance::Quiet;
        };
        // Blanks at the end of a line are not kept, but a prompt ends with one.
        let screen = terminal.text().join(" \n") + " ";
        if mode.is_asking(&screen) {
            Glance::Asks
        } else if mode.is_busy(&screen) {
            Glance::Busy
        } else if mode.is_ready(&screen) == Some(false) {
            Glance::Unready
        } else {
            Glance::Quiet
        }
    }
}
