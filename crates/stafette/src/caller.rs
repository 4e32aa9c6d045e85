//! Commands that are for people. The daemon refuses an agent what is not its own; this refuses what
//! needs no daemon as well, and says so before anything is done.

use crate::cli::{ChangesCommand, Command, LockAction};
use crate::exit::Failure;

/// Checks that this process may use a command: an agent's process may not decide for a person.
pub(crate) fn check(command: &Command) -> Result<(), Failure> {
    match is_for_people(command) && stafette_agents::tell::in_session() {
        true => Err(Failure::failed("This is for a person, and this process is an agent's")
            .why("it was started in an agent's turn: STAFETTE_KEY or the like is set for it, or for a process that started it")
            .fix("take part with `stafette emit`, `stafette mcp` and `stafette lock`, and hand to `human` what a person has to decide")),
        false => Ok(()),
    }
}

fn is_for_people(command: &Command) -> bool {
    match command {
        Command::Trust(_)
        | Command::Token(_)
        | Command::Open(_)
        | Command::Up(_)
        | Command::Down
        | Command::Run(_)
        | Command::Resume(_)
        | Command::Answer(_)
        | Command::Cancel(_)
        | Command::Pause(_)
        | Command::Fork(_)
        | Command::Note(_)
        | Command::Send(_)
        | Command::Restart(_)
        | Command::Apply(_)
        | Command::Undo(_)
        | Command::SelfUpdate(_)
        | Command::Init(_)
        | Command::Replay(_)
        | Command::Pr(_)
        | Command::Prune(_) => true,
        // A hook runs whenever somebody commits.
        Command::Lock(lock) => matches!(lock.action, Some(LockAction::Hook(_))),
        Command::State { action } => action.is_some(),
        Command::Changes(changes) => {
            !matches!(changes.command, None | Some(ChangesCommand::Propose { .. }))
        }
        _ => false,
    }
}
