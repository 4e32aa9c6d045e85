//! Keeps a daemon alive, and has it killed as often as requested.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use stafette_engine::crash;
use tokio::process::{Child, Command};

use crate::client::Client;
use crate::daemon;
use crate::exit::Failure;
use crate::output::{Output, Tone};
use crate::project::Project;
use crate::store;

/// The number of crash points in the daemon's work among which a crash is placed.
const SPREAD: u64 = 18;

/// Owns the daemon of the demonstration.
#[derive(Debug)]
pub(super) struct Supervisor {
    pub(super) project: Project,
    output: Output,
    hash: String,
    child: Option<Child>,
    /// The number of crashes still to come.
    left: u32,
    /// The number of crashes so far.
    pub(super) crashed: u32,
    pub(super) seed: u64,
    chance: u64,
}

impl Supervisor {
    pub(super) fn new(
        project: &Project,
        output: Output,
        crashes: u32,
        seed: u64,
    ) -> Result<Self, Failure> {
        let hash = project.load()?.hash;
        let project = project.clone();
        let chance = seed;
        Ok(Supervisor {
            project,
            output,
            hash,
            child: None,
            left: crashes,
            crashed: 0,
            seed,
            chance,
        })
    }

    /// Returns once a daemon answers; a dead one is replaced, and its death counted.
    pub(super) async fn keep_alive(&mut self, client: &Client) -> Result<(), Failure> {
        loop {
            if let Some(child) = &mut self.child {
                match child.try_wait() {
                    Ok(None) if client.is_up().await? => return Ok(()),
                    Ok(None) => {
                        // It is starting or stopping: the next check shows which.
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        continue;
                    }
                    Ok(Some(status)) if status.signal() == Some(9) => {
                        self.crashed += 1;
                        self.left = self.left.saturating_sub(1);
                        let mark = self.output.paint(Tone::Bad, "✗");
                        self.output.say(mark + " the daemon was killed (SIGKILL)");
                    }
                    ended => {
                        let log = self.project.log();
                        return Err(Failure::failed("The daemon ended")
                            .why(format!("{ended:?}"))
                            .fix(format!("look at {}", log.display())));
                    }
                }
            }
            self.child = Some(self.spawn()?);
        }
    }

    fn spawn(&mut self) -> Result<Child, Failure> {
        let failed = |error: std::io::Error| daemon::not_started(&error);
        let log = daemon::log_file(&self.project.state()?)?;
        let mut command = Command::new(daemon::program()?);
        command
            .args(["up", "--foreground", "--trusted", &self.hash, "--project"])
            .arg(&self.project.root)
            .env_remove("STAFETTE_JSON")
            // The user keeps other runs elsewhere.
            .env_remove(store::VARIABLE)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .process_group(0)
            .kill_on_drop(true);
        if self.left > 0 {
            command.env(crash::VARIABLE, self.next_place().to_string());
        }
        command.spawn().map_err(failed)
    }

    /// The point of the next crash (xorshift: enough to spread them, and the same for a seed).
    fn next_place(&mut self) -> u64 {
        let mut x = self.chance | 1;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.chance = x;
        1 + x % SPREAD
    }

    /// Stops the daemon in good order.
    pub(super) async fn stop(&mut self, client: &Client) {
        let _: Result<Value, Failure> = client.post("/v1/stop", &json!({})).await;
        if let Some(mut child) = self.child.take() {
            let _ = tokio::time::timeout(Duration::from_secs(10), child.wait()).await;
        }
    }

    pub(super) fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.start_kill();
        }
    }
}
