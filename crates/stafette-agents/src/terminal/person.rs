//! Input of people in a terminal, beside the turns that are carried out there.

use stafette_core::{AgentName, RunId};

use super::pump::Order;
use super::{InputError, Terminal, TerminalInfo};

impl Terminal {
    /// Types a message of a person, and presses Enter if `submit` is set and all of it is visible.
    /// Waits until no one else types.
    ///
    /// # Errors
    /// When it was not seen in time, or no program is there to take it.
    pub async fn send(&self, text: &str, submit: bool) -> Result<(), InputError> {
        let _hand = self.hand().await;
        self.paste_seen(text).await?;
        if submit { self.submit().await } else { Ok(()) }
    }

    /// Types a person's keys as they are, but not in the middle of a text that is being typed.
    ///
    /// # Errors
    /// When no program is there to take them.
    pub async fn press(&self, keys: Vec<u8>) -> Result<(), InputError> {
        let _hand = self.hand().await;
        self.write(keys).await
    }

    /// Waits until no one else types a text.
    pub(crate) async fn hand(&self) -> tokio::sync::OwnedMutexGuard<()> {
        self.hand.clone().lock_owned().await
    }

    /// Adds a note to the recording for later viewers.
    pub async fn note(&self, text: &str) {
        // A terminal that has ended records nothing any more.
        drop(self.orders.send(Order::Note { text: text.to_owned() }).await);
    }

    /// A summary of it, as the terminal of `agent` in `run`.
    pub fn info(&self, run: RunId, agent: &AgentName) -> TerminalInfo {
        let facts = self.board.facts();
        let (cols, rows) = facts.view.screen.size();
        TerminalInfo {
            run,
            agent: agent.clone(),
            state: facts.status.state,
            title: facts.view.title.clone(),
            cols,
            rows,
            pid: facts.status.pid,
            since: facts.status.since,
            note: facts.status.note.clone(),
        }
    }
}
