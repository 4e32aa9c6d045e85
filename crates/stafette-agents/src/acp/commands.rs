//! Commands that run on behalf of an agent: each is a process group, and the end of its output is
//! kept.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::process::Command;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::wire::{Responder, Run};
use crate::Job;
use crate::exec::{CHUNK, DRAIN};
use crate::process::Group;

/// The maximum number of commands at a time.
const COMMANDS: usize = 16;

/// The maximum size of a command's output that is kept, in bytes.
const OUTPUT: usize = 1024 * 1024;

/// The size that is kept when the agent does not name one, in bytes.
const USUAL_OUTPUT: usize = 256 * 1024;

/// The exit status of a command.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Exit {
    pub(super) code: Option<u32>,
    pub(super) signal: Option<i32>,
}

impl From<ExitStatus> for Exit {
    fn from(status: ExitStatus) -> Self {
        Exit { code: status.code().and_then(|c| u32::try_from(c).ok()), signal: status.signal() }
    }
}

/// The visible output of a command.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Shown {
    pub(super) text: String,
    pub(super) truncated: bool,
    pub(super) exit: Option<Exit>,
}

/// The end of a command's output.
#[derive(Debug)]
struct Output {
    bytes: Vec<u8>,
    limit: usize,
    truncated: bool,
}

impl Output {
    fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
        // Some room to grow, so that a byte is moved once and not at every read.
        if self.bytes.len() > self.limit + CHUNK.max(self.limit) {
            self.cut();
        }
    }

    fn cut(&mut self) {
        if self.bytes.len() > self.limit {
            self.bytes.drain(..self.bytes.len() - self.limit);
            self.truncated = true;
        }
    }

    /// The end as text, which begins with a whole character.
    fn text(&mut self) -> String {
        self.cut();
        let mut start = 0;
        if self.truncated {
            let middle = |byte: &u8| byte & 0b1100_0000 == 0b1000_0000;
            start = self.bytes.iter().take(3).take_while(|byte| middle(byte)).count();
        }
        let mut text = String::from_utf8_lossy(&self.bytes[start..]).into_owned();
        // The replacement for a broken character is longer than it.
        if let Some(over) = text.len().checked_sub(self.limit) {
            drop(text.drain(..text.ceil_char_boundary(over)));
        }
        text
    }
}

/// A command that was started.
#[derive(Debug)]
struct Running {
    output: Arc<Mutex<Output>>,
    exit: watch::Receiver<Option<Exit>>,
    kill: watch::Sender<bool>,
    task: JoinHandle<()>,
}

/// All commands of a session. Dropping it kills them.
#[derive(Debug, Default)]
pub(super) struct Commands {
    running: BTreeMap<String, Running>,
    next: u64,
    waiting: JoinSet<()>,
}

impl Commands {
    /// Starts a command in `folder`. Returns the id that later calls use.
    pub(super) fn start(&mut self, job: &Job, run: Run, folder: &Path) -> Result<String, String> {
        if self.running.len() >= COMMANDS {
            return Err(format!("more than {COMMANDS} commands at once: release some first"));
        }
        let failed = |error: std::io::Error| format!("`{}` did not start: {error}", run.command);
        let (ours, theirs) = std::io::pipe().map_err(failed)?;
        let mut words: Vec<OsString> = Vec::new();
        if run.arguments.is_empty() && is_line(&run.command) {
            words.extend(["sh".into(), "-c".into(), run.command.clone().into()]);
        } else {
            words.push(run.command.clone().into());
            words.extend(run.arguments.iter().map(OsString::from));
        }
        // It is the agent's command, though we start it.
        let words = job.within(&words);
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]);
        // One pipe for both streams, so that they stay in order.
        command.current_dir(folder).stdin(Stdio::null());
        command.stdout(theirs.try_clone().map_err(failed)?).stderr(theirs);
        let group = Group::beside(job, command, run.variables).map_err(failed)?;
        let pipe = Receiver::from_owned_fd(OwnedFd::from(ours)).map_err(failed)?;
        let asked = run.limit.map_or(USUAL_OUTPUT, |n| usize::try_from(n).unwrap_or(OUTPUT));
        let output = Output { bytes: Vec::new(), limit: asked.clamp(1, OUTPUT), truncated: false };
        let output = Arc::new(Mutex::new(output));
        let (ending, exit) = watch::channel(None);
        let (kill, killed) = watch::channel(false);
        let task = tokio::spawn(watch_over(group, pipe, Arc::clone(&output), ending, killed));
        self.next += 1;
        let id = format!("command-{}", self.next);
        self.running.insert(id.clone(), Running { output, exit, kill, task });
        Ok(id)
    }

    /// Returns the output of a command.
    pub(super) fn show(&self, id: &str) -> Result<Shown, String> {
        let running = self.find(id)?;
        // The exit status is read first: if it is there, all of the output is there as well.
        let exit = *running.exit.borrow();
        let mut output = running.output.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(Shown { text: output.text(), truncated: output.truncated, exit })
    }

    /// Answers as soon as a command has ended.
    pub(super) fn wait(&mut self, id: &str, answer: Responder<Exit>) {
        let mut exit = match self.find(id) {
            Ok(running) => running.exit.clone(),
            Err(why) => return answer.give(Err(why)),
        };
        while self.waiting.try_join_next().is_some() {}
        self.waiting.spawn(async move {
            let ended = exit.wait_for(Option::is_some).await;
            let ended = ended.ok().and_then(|exit| *exit);
            answer.give(ended.ok_or_else(|| "the command was released".to_owned()));
        });
    }

    /// True if the agent waits for the end of one.
    pub(super) fn are_awaited(&mut self) -> bool {
        while self.waiting.try_join_next().is_some() {}
        !self.waiting.is_empty()
    }

    /// Ends a command; its output can still be read.
    pub(super) fn kill(&self, id: &str) -> Result<(), String> {
        self.find(id)?.kill.send_replace(true);
        Ok(())
    }

    /// Ends a command and forgets it.
    pub(super) fn release(&mut self, id: &str) -> Result<(), String> {
        self.kill(id)?;
        if let Some(running) = self.running.remove(id) {
            // It ends in its own time, but is still awaited.
            self.waiting.spawn(async move { drop(running.task.await) });
        }
        Ok(())
    }

    /// Ends all commands, and returns when nothing of them is left.
    pub(super) async fn end(mut self) {
        for running in self.running.values() {
            running.kill.send_replace(true);
        }
        for running in std::mem::take(&mut self.running).into_values() {
            drop(running.task.await);
        }
        while self.waiting.join_next().await.is_some() {}
    }

    fn find(&self, id: &str) -> Result<&Running, String> {
        self.running.get(id).ok_or_else(|| format!("there is no command {id}"))
    }
}

/// True if a command is a line for a shell: some agents pass a whole line.
fn is_line(command: &str) -> bool {
    command.contains(|c: char| c.is_whitespace() || "|&;<>()$`*?\"'~".contains(c))
}

/// Reads the output of a command until it has ended, or has to.
async fn watch_over(
    mut group: Group,
    mut pipe: Receiver,
    output: Arc<Mutex<Output>>,
    ending: watch::Sender<Option<Exit>>,
    mut killed: watch::Receiver<bool>,
) {
    let mut chunk = vec![0; CHUNK];
    let mut open = true;
    let mut ended: Option<(ExitStatus, Instant)> = None;
    loop {
        let drained = match ended {
            Some((status, _)) if !open => {
                ending.send_replace(Some(status.into()));
                return;
            }
            Some((_, at)) => at + DRAIN,
            None => Instant::now(),
        };
        tokio::select! {
            read = pipe.read(&mut chunk), if open => match read {
                Ok(count @ 1..) => {
                    output.lock().unwrap_or_else(PoisonError::into_inner).push(&chunk[..count]);
                }
                Ok(0) | Err(_) => open = false,
            },
            status = group.leader_ends(), if ended.is_none() => {
                // Processes that it left behind would hold the pipe open.
                group.end().await;
                ended = Some((status, Instant::now()));
            }
            // Without a receiver that could want it, it is not wanted.
            () = unwanted(&mut killed), if ended.is_none() => {
                group.end().await;
                ended = Some((group.leader_ends().await, Instant::now()));
            }
            () = sleep_until(drained), if ended.is_some() => open = false,
        }
    }
}

/// Waits until a command is no longer wanted.
async fn unwanted(killed: &mut watch::Receiver<bool>) {
    drop(killed.wait_for(|killed| *killed).await);
}

#[cfg(test)]
mod tests;
