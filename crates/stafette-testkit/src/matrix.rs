//! The first contact with real agents: each command line with the profile that is shipped, in a home
//! that is new, hands a piece of work from a builder to a reviewer.
//!
//! The builder runs a command, writes a file and hands over with Stafette's tool; the reviewer reads
//! the file and completes. Nobody prepares anything but the way to the model. What Stafette asks is
//! counted and answered with yes, as a person would.

mod agent;
mod cell;

pub use agent::Agent;
pub use cell::{Cell, TrialError, Verdict, new_home};

use std::fmt::Write as _;

/// The way in which Stafette drives an agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Runner {
    /// A process for each turn.
    Exec,
    /// A terminal that stays.
    Pty,
    /// The Agent Client Protocol.
    Acp,
}

impl Runner {
    /// All of them.
    pub const ALL: [Runner; 3] = [Runner::Exec, Runner::Pty, Runner::Acp];

    /// Returns its name in a workflow.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Runner::Exec => "exec",
            Runner::Pty => "pty",
            Runner::Acp => "acp",
        }
    }
}

/// Returns the table of these verdicts, for people.
#[must_use]
pub fn table(verdicts: &[(Cell, Verdict)]) -> String {
    let mut text =
        String::from("| agent | runner | complete | questions | tokens | time | remarks |\n");
    text.push_str("|---|---|---|---|---|---|---|\n");
    for (cell, verdict) in verdicts {
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} of {} | {:.0} s | {} |",
            cell.agent.name(),
            cell.runner.name(),
            if verdict.is_complete() { "yes" } else { "no" },
            verdict.questions.len(),
            verdict.spent.map_or_else(|| "?".to_owned(), |spent| spent.to_string()),
            verdict.answered,
            verdict.time.as_secs_f32(),
            verdict.remarks().replace('|', "\\|"),
        );
    }
    let complete = verdicts.iter().filter(|(_, verdict)| verdict.is_complete());
    let alone = complete.clone().filter(|(_, verdict)| verdict.questions.is_empty()).count();
    let _ = writeln!(
        text,
        "\n{} of {} complete, {alone} with nobody",
        complete.count(),
        verdicts.len()
    );
    text
}
