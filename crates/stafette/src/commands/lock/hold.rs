//! `lock PATH -- command`: holds the lock, and renews it, for as long as the command runs.

use std::io::IsTerminal;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use stafette_core::Time;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::{Instant, sleep_until};

use super::{Asker, Context, release, text};
use crate::client::Client;
use crate::exit::{Exit, Failure};

/// The time that a command which lost its lock has to exit on its own.
const GRACE: Duration = Duration::from_secs(5);

/// The fix for a lock that was lost while the command ran.
const LOST: &str = "the command was ended: check what it finished, and run it again";

/// The least time between two renewals.
const SHORTEST: Duration = Duration::from_millis(20);

pub(super) async fn run(
    context: &Context,
    client: &Client,
    asker: &Asker,
    lock: &Value,
    command: &[String],
) -> Result<Exit, Failure> {
    let id = text(lock, "id");
    let held = Held { client, asker, id: id.clone(), fence: lock["fence"].clone() };
    // Counted from when it was granted, so that our end of it is never later than the daemon's.
    let given = Time::parse(&text(lock, "since")).unwrap_or_default();
    let until = Time::parse(&text(lock, "until")).unwrap_or_default();
    let lease: Duration = until.since(given).into();
    let ends = Instant::now() + Duration::from(until.since(super::now()));
    let mut running = match Running::start(command, lock, asker) {
        Ok(running) => running,
        Err(failure) => {
            let _ = release(client, asker, &id).await;
            return Err(failure);
        }
    };
    let status = tokio::select! {
        status = running.ended() => status,
        lost = held.keep(lease, ends) => {
            running.end().await;
            return Err(lost.fix(LOST));
        }
    };
    if let Err(failure) = release(client, asker, &id).await {
        context.output.say(format!("{id} was not given back: {}", failure.what));
    }
    match status.code() {
        Some(0) => Ok(Exit::Ok),
        // The same exit code as the command's: our caller must not see a difference.
        Some(code) => std::process::exit(code),
        None => Err(Failure::failed("The command was killed by a signal")
            .fix("see what killed it, and run it again; the lock is released")),
    }
}

/// A lock that this process holds.
struct Held<'a> {
    client: &'a Client,
    asker: &'a Asker,
    id: String,
    fence: Value,
}

impl Held<'_> {
    /// Renews it from time to time; returns when it is lost.
    async fn keep(&self, lease: Duration, mut ends: Instant) -> Failure {
        let mut next = Instant::now() + lease / 3;
        loop {
            sleep_until(next.min(ends)).await;
            let asked = Instant::now();
            if asked >= ends {
                return Failure::new(Exit::Lock, format!("The lock {} was lost", self.id))
                    .why("its lease ended before it could be renewed")
                    .fix(LOST);
            }
            let path = format!("/v1/locks/{}/renew", self.id);
            let body = json!({ "fence": self.fence, "who": self.asker.json() });
            let answer = tokio::time::timeout_at(ends, self.client.post::<Value>(&path, &body));
            match answer.await {
                Ok(Ok(_)) => {
                    ends = asked + lease;
                    next = asked + lease / 3;
                }
                Ok(Err(failure)) if failure.code == Exit::Lock => return failure,
                // The daemon may be restarting.
                _ => next = Instant::now() + (lease / 20).max(SHORTEST),
            }
        }
    }
}

/// The command that runs under the lock.
struct Running {
    child: Child,
    /// True if it has a process group of its own; at a terminal it stays in ours.
    alone: bool,
}

impl Running {
    fn start(command: &[String], lock: &Value, asker: &Asker) -> Result<Running, Failure> {
        let alone = !std::io::stdin().is_terminal();
        let [program, arguments @ ..] = command else {
            return Err(Failure::usage("There is no command")
                .fix("name one after `--`, as in `stafette lock src/** -- make`"));
        };
        let mut prepared = Command::new(program);
        prepared
            .args(arguments)
            .env("STAFETTE_FENCE", lock["fence"].to_string())
            .env("STAFETTE_LOCK", text(lock, "id"))
            .env("STAFETTE_SEAT", &asker.seat)
            .kill_on_drop(true);
        if alone {
            prepared.process_group(0);
        }
        let child = prepared.spawn().map_err(|error| {
            Failure::usage(format!("Cannot start {program}"))
                .because(&error)
                .fix("install it, or give its path; the lock is released")
        })?;
        Ok(Running { child, alone })
    }

    /// Waits for its end; signals that we receive are passed on to it.
    async fn ended(&mut self) -> std::process::ExitStatus {
        let (mut terminate, mut interrupt) =
            (signal(SignalKind::terminate()).ok(), signal(SignalKind::interrupt()).ok());
        loop {
            tokio::select! {
                status = self.child.wait() => return status.unwrap_or_default(),
                _ = heard(&mut terminate) => self.tell(Signal::TERM),
                // At a terminal it receives this directly.
                _ = heard(&mut interrupt) => if self.alone { self.tell(Signal::INT) },
            }
        }
    }

    /// Ends it, gently at first.
    async fn end(&mut self) {
        self.tell(Signal::TERM);
        if tokio::time::timeout(GRACE, self.child.wait()).await.is_err() {
            self.tell(Signal::KILL);
            let _ = self.child.wait().await;
        }
    }

    fn tell(&self, signal: Signal) {
        let pid = self.child.id().and_then(|pid| i32::try_from(pid).ok()).and_then(Pid::from_raw);
        let Some(pid) = pid else { return };
        // If it is gone already, there is nothing to signal.
        let _ = match self.alone {
            true => kill_process_group(pid, signal),
            false => kill_process(pid, signal),
        };
    }
}

async fn heard(signal: &mut Option<tokio::signal::unix::Signal>) {
    match signal {
        Some(signal) => drop(signal.recv().await),
        None => std::future::pending().await,
    }
}
