//! How far a turn has come on its way into its agent: each step is told once and in order, on every
//! runner, so that nobody has to know the transport to read it.
//!
//! | runner | delivered | ingested | acknowledged |
//! |---|---|---|---|
//! | `exec` | the prompt is written to its standard input, or was an argument of the process that started | the first output after that | a message or a tool call of its model where the profile reads a stream, a frame, the result |
//! | `pty` | the prompt is typed and there to be seen, or was an argument | after Enter something new was printed, or the screen shows that it works | a frame, the result |
//! | `acp` | the prompt is written to its standard input | the first update or request after that | a message, a thought, a tool call or a question of it, the result |
//! | `a2a` | the message is sent | the other side made a task of it | the task is worked on, or asks |
//! | `scripted` | the order is written to its standard input | it says the order's key | whatever it says after that |
//!
//! An agent that comes by itself (`external`) acknowledges by taking its turn.
//!
//! `queued` is the run's own word: the turn is in the outbox. What an agent tells by a channel of its
//! own (`stafette emit`) acknowledges its turn too; the run sees to that. A turn that breaks keeps
//! the last step that was proven.

use stafette_core::handoff::Receipt;
use tokio::sync::mpsc;

use crate::Signal;

/// The steps after [`Receipt::Queued`], in order.
const STEPS: [Receipt; 3] = [Receipt::Delivered, Receipt::Ingested, Receipt::Acknowledged];

/// How far one turn has come.
#[derive(Debug)]
pub(crate) struct Receipts {
    reached: Receipt,
    sender: mpsc::Sender<Signal>,
}

impl Receipts {
    /// It is given out.
    pub(crate) fn new(sender: mpsc::Sender<Signal>) -> Self {
        Receipts { reached: Receipt::Queued, sender }
    }

    /// The turn has come so far: tells this step and those before it that were not told, because
    /// whoever answers has read, and whoever has read was given it.
    pub(crate) async fn reach(&mut self, receipt: Receipt) {
        for step in STEPS.into_iter().filter(|step| *step <= receipt) {
            if self.reached < step {
                self.reached = step;
                // Nobody listening is no trouble: the owner is gone.
                drop(self.sender.send(Signal::Receipt(step)).await);
            }
        }
    }

    /// Whether it has come so far.
    pub(crate) fn has(&self, receipt: Receipt) -> bool {
        self.reached >= receipt
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn b_06_no_step_is_left_out_and_none_is_told_twice() {
        let (sender, mut signals) = mpsc::channel(8);
        let mut receipts = Receipts::new(sender);
        receipts.reach(Receipt::Delivered).await;
        receipts.reach(Receipt::Acknowledged).await;
        receipts.reach(Receipt::Ingested).await;
        drop(receipts);
        let mut told = Vec::new();
        while let Some(signal) = signals.recv().await {
            told.push(signal);
        }
        assert_eq!(told, STEPS.map(Signal::Receipt));
    }
}
