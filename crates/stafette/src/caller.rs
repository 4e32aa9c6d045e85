//! Commands that are for people. The daemon refuses an agent what is not its own; this refuses what
//! needs no daemon as well, and says so before anything is done.

use std::path::Path;

use serde_json::Value;

use crate::cli::{ChangesCommand, Command, LockAction};
use crate::client::Client;
use crate::exit::Failure;
use crate::project::Project;
use crate::state;

/// Checks that this process may use a command: an agent's process may not decide for a person.
pub(crate) fn check(command: &Command) -> Result<(), Failure> {
    match is_for_people(command) && stafette_agents::tell::in_session() {
        true => Err(Failure::failed("This is for a person, and this process is an agent's")
            .why("it was started in an agent's turn: STAFETTE_KEY or the like is set for it, or for a process that started it")
            .fix("take part with `stafette emit`, `stafette mcp` and `stafette lock`, and hand to `human` what a person has to decide")),
        false => Ok(()),
    }
}

/// True for a command that is for people and would ask no daemon who uses it.
pub(crate) fn asks_nobody(command: &Command) -> bool {
    let asks_nobody = matches!(
        command,
        Command::Trust(_)
            | Command::SelfUpdate(_)
            | Command::Init(_)
            | Command::Replay(_)
            | Command::Pr(_)
            | Command::Lock(_)
            | Command::State { .. }
    );
    asks_nobody && is_for_people(command)
}

/// Asks the project's daemon, if one answers, whether this process is a person's. A process in a
/// namespace of its own does not see that an agent has started it, and the daemon does.
pub(crate) async fn ask(project: &Project) -> Result<(), Failure> {
    let Some(socket) = state::socket_elsewhere(&project.root, Path::new("")) else { return Ok(()) };
    let client = Client::new(&socket);
    match client.is_up().await? {
        // Who may see the tokens decides for the person.
        true => client.get::<Value>("/v1/tokens").await.map(drop),
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
