//! The progress of a turn into its agent: each step is reported once and in order, on every runner,
//! so that no reader has to know the transport.
//!
//! | runner | delivered | ingested | acknowledged |
//! |---|---|---|---|
//! | `exec` | the prompt is written to its standard input, or was an argument of the process that started | the first output after that | a message or a tool call of its model where the profile reads a stream, a frame, the result |
//! | `pty` | the prompt is typed and visible, or was an argument | after Enter its input is another one (where the profile does not know that, something new was printed), or the screen shows that it works | a frame, the result |
//! | `acp` | the prompt is written to its standard input | the first update or request after that | a message, a thought, a tool call or a question of it, the result |
//! | `a2a` | the message is sent | the remote agent made a task of it | the task is in progress, or asks a question |
//! | `scripted` | the order is written to its standard input | it sends the order's key | any message after that |
//!
//! An external agent acknowledges by taking its turn.
//!
//! `queued` is recorded by the run: the turn is in the outbox. A report through the agent's own
//! channel (`stafette emit`) acknowledges its turn too; the run records that. A turn that fails
//! keeps the last step that was proven.

use stafette_core::handoff::Receipt;
use tokio::sync::mpsc;

use crate::Signal;

/// The steps after [`Receipt::Queued`], in order.
const STEPS: [Receipt; 3] = [Receipt::Delivered, Receipt::Ingested, Receipt::Acknowledged];

/// The progress of one turn.
#[derive(Debug)]
pub(crate) struct Receipts {
    reached: Receipt,
    sender: mpsc::Sender<Signal>,
}

impl Receipts {
    /// A turn that has just been given out.
    pub(crate) fn new(sender: mpsc::Sender<Signal>) -> Self {
        Receipts { reached: Receipt::Queued, sender }
    }

    /// Reports that the turn has reached this step, and those before it that were not reported: an
    /// agent that answers has read its order, and an agent that has read it was given it.
    pub(crate) async fn reach(&mut self, receipt: Receipt) {
        for step in STEPS.into_iter().filter(|step| *step <= receipt) {
            if self.reached < step {
                self.reached = step;
                // Ignored if the owner is gone.
                drop(self.sender.send(Signal::Receipt(step)).await);
            }
        }
    }

    /// True if the turn has reached this step.
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
