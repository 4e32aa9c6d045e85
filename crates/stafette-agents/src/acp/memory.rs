//! Remembers the session of an agent, for its next turn in the same run and for after a crash.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use stafette_core::{AgentName, RunId, Unknown, Usage, Usd};

use crate::Job;

/// The remembered data of a session.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Past {
    pub(super) session: String,
    /// The tokens that it had used when its last turn ended.
    #[serde(default)]
    tokens: u64,
    #[serde(default)]
    micros: u64,
}

impl Past {
    /// A session that has used nothing yet.
    pub(super) fn new(session: String) -> Self {
        Past { session, tokens: 0, micros: 0 }
    }

    /// The consumption of a turn, from that of the whole session after it. Agents that count each
    /// turn separately are recognised by a count that went down.
    pub(super) fn turn(&mut self, tokens: Option<u64>, money: Option<Usd>) -> Usage {
        let since = |now: Option<u64>, before: &mut u64| {
            let Some(now) = now else { return 0 };
            let used = now.checked_sub(*before).unwrap_or(now);
            *before = now;
            used
        };
        let unknown =
            Unknown { tokens: u32::from(tokens.is_none()), money: u32::from(money.is_none()) };
        let tokens = since(tokens, &mut self.tokens);
        let money = since(money.map(|money| money.0), &mut self.micros);
        Usage { unknown, ..Usage::exactly(tokens, Usd(money)) }
    }
}

/// The file that remembers the session of an agent in a run, locked by one turn at a time.
#[derive(Debug)]
pub(super) struct Memory {
    file: File,
}

impl Memory {
    /// Locks the file; `None` when another turn has it, or when it cannot be used. That turn then
    /// has a session that is not remembered.
    pub(super) fn hold(job: &Job) -> Option<Memory> {
        let path = place(&job.scratch, job.order.key.run, &job.order.agent);
        stafette_disk::folder_of(&path).ok()?;
        let mut options = stafette_disk::private();
        options.read(true).write(true).create(true).truncate(false);
        let file = options.open(path).ok()?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).ok()?;
        Some(Memory { file })
    }

    /// The remembered session, if any.
    pub(super) fn past(&mut self) -> Option<Past> {
        let mut text = String::new();
        self.file.rewind().ok()?;
        self.file.read_to_string(&mut text).ok()?;
        serde_json::from_str(&text).ok()
    }

    /// Remembers a session. If it cannot be written, the agent only loses its memory.
    pub(super) fn keep(&mut self, past: &Past) {
        let mut keep = || -> std::io::Result<()> {
            let text = serde_json::to_vec(past)?;
            self.file.set_len(0)?;
            self.file.rewind()?;
            self.file.write_all(&text)
        };
        drop(keep());
    }
}

fn place(scratch: &Path, run: RunId, agent: &AgentName) -> PathBuf {
    scratch.join("sessions").join(run.to_string()).join(format!("{agent}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn b_09_a_turn_has_used_what_its_session_has_used_since_the_last() {
        let mut past = Past::new("s".into());
        let used = past.turn(Some(100), Some(Usd(30)));
        assert_eq!(used, Usage::exactly(100, Usd(30)));
        let used = past.turn(Some(150), None);
        let unknown = Unknown { tokens: 0, money: 1 };
        assert_eq!(used, Usage { unknown, ..Usage::exactly(50, Usd(0)) });
        // This agent counts each turn separately.
        let used = past.turn(Some(70), Some(Usd(20)));
        assert_eq!(used, Usage::exactly(70, Usd(20)));
    }
}
