//! Agents that follow a small script, for tests and for the demonstration.
//!
//! A script is played by a process of its own, so that it lives and dies like any agent. The two
//! sides speak JSON lines over its pipes:
//!
//! | direction | line | meaning |
//! |---|---|---|
//! | in | the whole [`TurnOrder`](stafette_core::TurnOrder) | always the first |
//! | out | `{"accepted":KEY}` | it has its order |
//! | out | `{"say":TEXT}` | talk |
//! | out | `{"emit":{"type":TYPE,"payload":…}}` | a control signal |
//! | out | `{"alive":{}}` | a sign of life |
//! | out | `{"fail":{"message":TEXT,"fatal":BOOL}}` | the turn failed |
//! | out | `{"done":{}}` | the turn has ended |
//! | in | `{"ack":KEY}` | its result is recorded for good |
//!
//! Talk is wrapped, so no output of a script or its commands can pass for a signal.

mod commit;
mod ledger;
mod play;
mod script;

use std::ffi::OsString;
use std::process::ExitStatus;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_core::handoff::Receipt;
use stafette_core::{Failure, FailureKind, TurnKey, Usage};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::ChildStdin;
use tokio::time::{Instant, sleep_until};

pub use ledger::{Entry, Event, read_ledger};
pub use play::play;
pub use script::{Blanks, Script, ScriptError, Step, Turn, When};

use crate::exec::{CHUNK, DRAIN};
use crate::harvest::Harvest;
use crate::output::{Lines, Tail};
use crate::process::{Group, Pipes};
use crate::receipts::Receipts;
use crate::{GRACE, HEARTBEAT_GAP, Job, Link, Signal, Wish, process};

/// The longest line that a player may write, in bytes.
const LINE: usize = 2 * 1024 * 1024;

/// The size of its talk and of its standard error that is kept, in bytes.
const TALK: usize = 64 * 1024;

/// Lines of talk that are used in place of a summary.
const SUMMARY_LINES: usize = 5;

/// A line from a player.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Word {
    Accepted(TurnKey),
    Say(String),
    Emit {
        #[serde(rename = "type")]
        kind: String,
        payload: Value,
    },
    Alive {},
    Fail {
        message: String,
        fatal: bool,
    },
    Done {},
}

/// A line to a player.
#[derive(PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Ack(TurnKey),
}

/// Carries out a turn by its script.
pub(crate) async fn run(job: Job, mut link: Link) {
    let Some(script) = &job.agent.script else {
        let message = format!("agent {} has no script: give it one", job.order.agent);
        return link.tell(Signal::fatal(message, Usage::default())).await;
    };
    let order = match serde_json::to_string(&job.order) {
        Ok(order) => order + "\n",
        Err(error) => {
            let message = format!("the order cannot be written down: {error}");
            return link.tell(Signal::fatal(message, Usage::default())).await;
        }
    };
    let command: [OsString; 3] =
        [job.program.clone().into(), "play".into(), job.folder.join(script).into()];
    let (mut group, pipes) = match Group::start(&job, &command).await {
        Ok(started) => started,
        Err(failed) => return link.tell(*failed).await,
    };
    let mut stage = Stage::new(&job, &link);
    stage.watch(&mut group, pipes, &order, &mut link).await;
    group.end().await;
}

/// The state of a player.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Act {
    /// It takes the steps of its turn.
    Working,
    /// It has sent its result, and waits for the acknowledgement.
    Waiting,
    /// It has received the acknowledgement, and exits.
    Leaving { until: Instant },
}

/// The state of a turn with a player.
struct Stage {
    key: TurnKey,
    /// The signals of the turn; `None` after its end.
    harvest: Option<Harvest>,
    lines: Lines,
    talk: Tail,
    errors: Tail,
    reported: Option<Instant>,
    act: Act,
    receipts: Receipts,
}

impl Stage {
    fn new(job: &Job, link: &Link) -> Self {
        let mut harvest = Harvest::new(&job.order.agent, false).answered_by_exit(true);
        // A script asks no model.
        harvest.used(Usage::default());
        Stage {
            key: job.order.key,
            harvest: Some(harvest),
            lines: Lines::new(LINE),
            talk: Tail::new(TALK),
            errors: Tail::new(TALK),
            reported: None,
            act: Act::Working,
            receipts: link.receipts(),
        }
    }

    /// Watches until the player is gone or the turn is no longer wanted.
    async fn watch(&mut self, group: &mut Group, pipes: Pipes, order: &str, link: &mut Link) {
        let Pipes { mut input, mut output, mut errors } = pipes;
        tokio::select! {
            biased;
            None = link.wish() => return,
            // A player that cannot take its order exits, and its exit status says why.
            _ = input.write_all(order.as_bytes()) => self.receipts.reach(Receipt::Delivered).await,
        }
        let mut input = Some(input);
        let (mut output_ended, mut errors_ended) = (false, false);
        let (mut output_chunk, mut errors_chunk) = (vec![0; CHUNK], vec![0; CHUNK]);
        let mut ended: Option<(ExitStatus, Instant)> = None;
        let mut owned = true;
        loop {
            if let Some((status, _)) = ended
                && (output_ended && errors_ended)
            {
                self.end(status, link).await;
                return;
            }
            let drained = ended.map_or_else(Instant::now, |(_, at)| at + DRAIN);
            let leaving = match self.act {
                Act::Leaving { until } => Some(until),
                Act::Working | Act::Waiting => None,
            };
            tokio::select! {
                wish = link.wish(), if owned => match wish {
                    Some(Wish::Acknowledge) => self.acknowledge(&mut input).await,
                    Some(Wish::Work) => {}
                    None if leaving.is_some() => owned = false,
                    None => return,
                },
                read = output.read(&mut output_chunk), if !output_ended => match read {
                    Ok(count @ 1..) => self.see(&output_chunk[..count], link).await,
                    Ok(0) | Err(_) => output_ended = true,
                },
                read = errors.read(&mut errors_chunk), if !errors_ended => match read {
                    Ok(count @ 1..) => self.errors.push(&errors_chunk[..count]),
                    Ok(0) | Err(_) => errors_ended = true,
                },
                status = group.leader_ends(), if ended.is_none() => {
                    group.end().await;
                    ended = Some((status, Instant::now()));
                }
                () = sleep_until(drained), if ended.is_some() => {
                    (output_ended, errors_ended) = (true, true);
                }
                () = sleep_until(leaving.unwrap_or(drained)), if leaving.is_some() => return,
            }
        }
    }

    /// Takes a piece of the player's output.
    async fn see(&mut self, bytes: &[u8], link: &Link) {
        let mut words: Vec<Word> = Vec::new();
        self.lines.push(bytes, |line| words.extend(serde_json::from_slice::<Word>(line)));
        for word in words {
            self.hear(word, link).await;
        }
    }

    async fn hear(&mut self, word: Word, link: &Link) {
        let Some(harvest) = &mut self.harvest else {
            return;
        };
        match word {
            Word::Accepted(key) if key != self.key => return,
            Word::Accepted(_) => return self.receipts.reach(Receipt::Ingested).await,
            _ => self.receipts.reach(Receipt::Acknowledged).await,
        }
        match word {
            Word::Accepted(_) => {}
            Word::Say(text) => {
                self.talk.push(text.as_bytes());
                self.talk.push(b"\n");
                self.report(link);
            }
            Word::Alive {} => self.report(link),
            Word::Emit { kind, payload } => match harvest.signal(&kind, payload) {
                Some(alive @ Signal::Alive { .. }) => link.mention(alive),
                Some(signal) => link.tell(signal).await,
                None => {}
            },
            Word::Fail { message, fatal } => {
                let kind = if fatal { FailureKind::Fatal } else { FailureKind::Recoverable };
                harvest.fail(Failure::new(kind, message));
            }
            Word::Done {} => {
                self.act = Act::Waiting;
                if !self.end(ExitStatus::default(), link).await {
                    // A failure is not acknowledged, so there is nothing to wait for.
                    self.act = Act::Leaving { until: Instant::now() };
                }
            }
        }
    }

    /// Reports that the player is alive, at a limited rate.
    fn report(&mut self, link: &Link) {
        if self.reported.is_none_or(|last| last.elapsed() >= HEARTBEAT_GAP) {
            self.reported = Some(Instant::now());
            link.mention(Signal::Alive { note: self.talk.note() });
        }
    }

    /// Acknowledges the result to the player. Has no effect before the player has sent its result.
    async fn acknowledge(&mut self, input: &mut Option<ChildStdin>) {
        if self.act != Act::Waiting {
            return;
        }
        self.act = Act::Leaving { until: Instant::now() + GRACE };
        if let Some(mut input) = input.take()
            && let Ok(mut reply) = serde_json::to_vec(&Reply::Ack(self.key))
        {
            reply.push(b'\n');
            // A player that is gone needs no acknowledgement.
            drop(input.write_all(&reply).await);
        }
    }

    /// Ends the turn, unless it has ended before: reports the outcome, and returns true for a
    /// success.
    async fn end(&mut self, status: ExitStatus, link: &Link) -> bool {
        let Some(harvest) = self.harvest.take() else {
            return true;
        };
        let summary = self.talk.lines(SUMMARY_LINES).join("\n");
        if !status.success() {
            let mut last = self.talk.lines(SUMMARY_LINES);
            last.extend(self.errors.lines(SUMMARY_LINES));
            link.tell(process::died(status, &last)).await;
        }
        let complaint = self.errors.note().or_else(|| self.talk.note());
        let signal = harvest.end(status, summary, complaint);
        let well = matches!(signal, Signal::Finished(_));
        link.tell(signal).await;
        well
    }
}
