//! Agents in terminals that are idle, or only print.

use std::path::Path;
use std::time::Duration;

use serde_json::json;
use stafette_agents::terminal::{Terminal, Terminals};
use stafette_agents::{Job, Permissions, Session, Signal, start_in};
use stafette_core::redact::Redactor;
use stafette_core::{
    AgentName, Fields, Kind, Offer, Party, Reason, RunId, Time, TurnKey, TurnOrder,
};
use tokio::time::timeout;

use crate::BenchError;

/// The time limit for a program to start, or to print everything.
const PATIENCE: Duration = Duration::from_secs(300);

/// The id of their run.
const RUN: &str = "00000000-0000-7000-8000-000000000000";

/// The agents of one run, recorded as a daemon records them.
pub(super) struct Crew {
    folder: std::path::PathBuf,
    run: RunId,
    terminals: Terminals,
    sessions: Vec<Session>,
    count: u32,
}

impl Crew {
    pub(super) fn new(folder: &Path) -> Result<Self, BenchError> {
        let recordings = folder.join("recordings");
        Ok(Crew {
            folder: folder.to_owned(),
            run: RUN.parse()?,
            terminals: Terminals::new().recorded_in(recordings, Redactor::new()),
            sessions: Vec::new(),
            count: 0,
        })
    }

    /// Adds an agent, in a terminal in which `program` runs.
    pub(super) async fn join(&mut self, program: &str) -> Result<Terminal, BenchError> {
        let (mut session, agent) = self.start(program)?;
        loop {
            match timeout(PATIENCE, session.signals.recv()).await? {
                Some(Signal::Receipt(_)) => break,
                Some(Signal::Session { .. }) => {}
                other => return Err(format!("{other:?} instead of a program that runs").into()),
            }
        }
        self.sessions.push(session);
        Ok(self.terminals.get(self.run, &agent).ok_or("no terminal")?)
    }

    /// Adds an agent and waits until its program has printed everything.
    pub(super) async fn see_through(&mut self, program: &str) -> Result<(), BenchError> {
        let (mut session, agent) = self.start(program)?;
        loop {
            match timeout(PATIENCE, session.signals.recv()).await? {
                Some(Signal::Receipt(_) | Signal::Alive { .. } | Signal::Session { .. }) => {}
                Some(Signal::Finished(_)) => break,
                other => return Err(format!("{other:?} instead of the end").into()),
            }
        }
        self.terminals.end(self.run, &agent).await;
        Ok(())
    }

    fn start(&mut self, program: &str) -> Result<(Session, AgentName), BenchError> {
        self.count += 1;
        let agent: AgentName = format!("agent-{}", self.count).parse()?;
        let key: TurnKey = format!("{}/h{}/1.1", self.run, self.count).parse()?;
        let of = Party::from(&agent);
        let job = Job {
            order: TurnOrder {
                key,
                agent: agent.clone(),
                request: "Measure what a terminal costs".into(),
                offer: Offer::new(Party::Human, of, Kind::Transfer, Reason::TaskHandoff),
                constraints: stafette_core::handoff::Constraints::default(),
                trace_id: String::new(),
                cause: None,
                inputs: Fields::new(),
                replies: std::collections::BTreeSet::new(),
                answers: Vec::new(),
                permits: Vec::new(),
                messages: Vec::new(),
                routes: Vec::new(),
                round: 1,
                finish_by: Time(i64::MAX),
                deliveries: 1,
            },
            agent: serde_json::from_value(json!({
                "runner": "pty", "command": ["sh", "-c", program, "sh"], "prompt_via": "argument",
            }))?,
            profile: None,
            folder: self.folder.clone(),
            scratch: self.folder.join("scratch"),
            frame_word: "ODEI".into(),
            trust_bare_frames: false,
            program: "stafette".into(),
            given: Vec::new(),
            pulse: Default::default(),
            permissions: Permissions::default(),
            confined: None,
            ready_timeout: None,
        };
        Ok((start_in(job, &self.terminals), agent))
    }

    /// Ends all of them. Returns when nothing is left.
    pub(super) async fn leave(self) {
        let Crew { terminals, sessions, .. } = self;
        drop(sessions);
        terminals.end_all().await;
    }
}
