//! Runs that start automatically: by schedule, and by webhook.

mod deliveries;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stafette_core::run::create::RunCreated;
use stafette_core::trace::Traceparent;
use stafette_core::workflow::triggers::{Cron, NotCron, Template, TemplateError, Trigger};
use stafette_core::{Millis, RunId, Time, Workflow};
use stafette_engine::{Engine, EngineError};
use thiserror::Error;
use tokio::sync::{Mutex, watch};

use crate::memory::Memory;
use crate::schedule::{self, BadZone};
use crate::{ReadWorkflow, clock};
use deliveries::Deliveries;

pub use deliveries::Delivery;

/// Delay after which a scheduled time counts as missed.
const GRACE: Millis = Millis::minutes(2);

/// Interval of checking the workflow and the clock for changes.
const LOOK: Duration = Duration::from_secs(30);

/// A trigger could not start a run.
#[derive(Debug, Error)]
pub enum TriggerError {
    #[error("there is no trigger `{name}`")]
    NoSuch { name: String },
    /// The workflow cannot be read, or is not trusted.
    #[error("{why}")]
    Workflow { why: String },
    #[error("the environment variable {variable} is not set where the daemon runs")]
    NoSecret { variable: String },
    #[error("the signature does not fit")]
    BadSignature,
    #[error("the same was delivered before, as `{id}`")]
    Replayed { id: String },
    #[error("what was brought is not JSON")]
    NotJson { source: serde_json::Error },
    /// The request template cannot be filled in from the payload.
    #[error("{source}")]
    Request {
        #[from]
        source: TemplateError,
    },
    /// The schedule cannot be parsed.
    #[error("{source}")]
    Times {
        #[from]
        source: NotCron,
    },
    /// The time zone does not exist.
    #[error("{source}")]
    Zone {
        #[from]
        source: BadZone,
    },
    /// The engine refused to start the run.
    #[error("{source}")]
    Engine {
        #[from]
        source: EngineError,
    },
}

/// Result of a trigger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fired {
    /// The started run; `None` for a ping.
    pub run: Option<RunId>,
    /// True if the run had already been started.
    pub repeated: bool,
}

/// Summary of a trigger.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TriggerView {
    /// Name of the trigger.
    pub name: String,
    /// Schedule in cron syntax; left out for a pure webhook.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cron: Option<String>,
    /// Time zone of the schedule; this machine's if left out.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timezone: Option<String>,
    /// True if programs may fire it by webhook.
    pub webhook: bool,
    /// True if its secret is set; left out if it needs none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub secret_set: Option<bool>,
    /// Next scheduled times (RFC 3339).
    pub next: Vec<String>,
    /// Request for the agents, as a template.
    pub request: String,
}

/// State that survives a restart.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Kept {
    since: BTreeMap<String, Since>,
    deliveries: Deliveries,
}

/// Time up to which the schedule of a trigger was handled.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
struct Since {
    cron: String,
    timezone: Option<String>,
    last: Time,
}

/// The triggers of a project.
pub struct Triggers {
    engine: Engine,
    workflow: Arc<ReadWorkflow>,
    kept: Mutex<Memory<Kept>>,
}

impl std::fmt::Debug for Triggers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Triggers").finish_non_exhaustive()
    }
}

impl Triggers {
    /// Opens the triggers of `workflow`; `memory` is the file that keeps their state.
    #[must_use]
    pub fn open(engine: Engine, workflow: Arc<ReadWorkflow>, memory: PathBuf) -> Self {
        Triggers { engine, workflow, kept: Mutex::new(Memory::open(memory)) }
    }

    /// Follows the schedules until `stop` is set.
    pub async fn live(self: Arc<Self>, mut stop: watch::Receiver<bool>) {
        loop {
            let next = self.keep(clock::now()).await;
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = clock::reach(next, LOOK) => {}
            }
        }
    }

    /// Starts the runs that are due by `now`, and returns the next scheduled time.
    pub async fn keep(&self, now: Time) -> Option<Time> {
        // Not trusted, or being written at the moment: then nothing is due.
        let workflow = self.read().ok()?;
        let mut kept = self.kept.lock().await;
        let timed = |trigger: &&Trigger| trigger.cron.is_some();
        let mut next: Option<Time> = None;
        for trigger in workflow.triggers.iter().filter(timed) {
            match self.keep_one(&workflow, trigger, &mut kept, now).await {
                Ok(Some(time)) => next = Some(next.map_or(time, |next| next.min(time))),
                Ok(None) => {}
                Err(error) => tracing::error!(trigger = trigger.name, %error, "did not begin"),
            }
        }
        let names: Vec<&str> =
            workflow.triggers.iter().filter(timed).map(|trigger| trigger.name.as_str()).collect();
        let before = kept.value.since.len();
        kept.value.since.retain(|name, _| names.contains(&name.as_str()));
        if kept.value.since.len() != before {
            kept.save();
        }
        next
    }

    async fn keep_one(
        &self,
        workflow: &Workflow,
        trigger: &Trigger,
        kept: &mut Memory<Kept>,
        now: Time,
    ) -> Result<Option<Time>, TriggerError> {
        let cron = trigger.cron.clone().unwrap_or_default();
        let (times, zone) = (Cron::parse(&cron)?, schedule::zone(trigger.timezone.as_deref())?);
        let timezone = trigger.timezone.clone();
        let known = kept.value.since.get(&trigger.name);
        let same = known.filter(|since| since.cron == cron && since.timezone == timezone);
        // A clock that was set back does not repeat earlier times.
        let since = same.map(|since| since.last);
        let Some(last) = since else {
            let since = Since { cron, timezone, last: now };
            kept.value.since.insert(trigger.name.clone(), since);
            kept.save();
            return Ok(schedule::next_after(&times, &zone, now));
        };
        if let Some(due) = schedule::last_due(&times, &zone, last, now) {
            let missed = now.since(due) > GRACE;
            let begun = match missed && !trigger.catch_up {
                true => Ok(()),
                false => self.begin_at(workflow, trigger, due).await,
            };
            // A failure that would repeat is not tried again.
            let hopeless = matches!(
                begun,
                Err(TriggerError::Engine { source: EngineError::Blocked { .. } })
                    | Err(TriggerError::Request { .. })
            );
            if begun.is_ok() || hopeless {
                kept.value.since.insert(trigger.name.clone(), Since { cron, timezone, last: due });
                kept.save();
            }
            begun?;
        }
        Ok(schedule::next_after(&times, &zone, now.max(last)))
    }

    async fn begin_at(
        &self,
        workflow: &Workflow,
        trigger: &Trigger,
        due: Time,
    ) -> Result<(), TriggerError> {
        let key = format!("trigger\n{}\n{due}", trigger.name);
        let request = request(trigger, due, &Value::Null)?;
        let (run, repeated) = self.begin(&key, workflow, trigger, request, None).await?;
        tracing::info!(trigger = trigger.name, %run, repeated, %due, "it is time");
        Ok(())
    }

    async fn begin(
        &self,
        key: &str,
        workflow: &Workflow,
        trigger: &Trigger,
        request: String,
        trace: Option<Traceparent>,
    ) -> Result<(RunId, bool), TriggerError> {
        let by = format!("trigger {}", trigger.name);
        let workflow = Arc::new(workflow.clone());
        let created =
            RunCreated { trace, ..RunCreated::new(Engine::NEW_RUN, workflow, request, by) };
        match self.engine.start_keyed(key, created).await {
            // The request contains the time or was changed since: it is still the same scheduled
            // run.
            Err(EngineError::OtherRequest { run }) => Ok((run, true)),
            other => Ok(other?),
        }
    }

    /// Returns all triggers, with their next times after `now`.
    pub fn list(&self, now: Time) -> Result<Vec<TriggerView>, TriggerError> {
        let workflow = self.read()?;
        let view = |trigger: &Trigger| {
            let times = trigger.cron.as_deref().and_then(|text| Cron::parse(text).ok());
            let zone = schedule::zone(trigger.timezone.as_deref()).ok();
            let mut next = Vec::new();
            if let Some((times, zone)) = times.zip(zone) {
                let mut at = now;
                while let Some(time) =
                    schedule::next_after(&times, &zone, at).filter(|_| next.len() < 3)
                {
                    next.push(time.rfc3339());
                    at = time;
                }
            }
            TriggerView {
                name: trigger.name.clone(),
                cron: trigger.cron.clone(),
                timezone: trigger.timezone.clone(),
                webhook: trigger.webhook,
                secret_set: trigger.webhook.then(|| secret(trigger).is_ok()),
                next,
                request: trigger.request.clone(),
            }
        };
        Ok(workflow.triggers.iter().map(view).collect())
    }

    /// Fires a trigger by hand.
    ///
    /// # Errors
    /// When there is no such trigger, or the engine does not start the run.
    pub async fn fire(
        &self,
        name: &str,
        by: String,
        payload: &Value,
        now: Time,
    ) -> Result<RunId, TriggerError> {
        let workflow = self.read()?;
        let trigger = find(&workflow, name)?;
        let request = request(trigger, now, payload)?;
        let by = format!("{by}, trigger {name}");
        let created = RunCreated::new(Engine::NEW_RUN, Arc::new(workflow), request, by);
        Ok(self.engine.start(created).await?)
    }

    /// Starts a run for a webhook, after checking its signature.
    ///
    /// # Errors
    /// When the signature does not match, there is no such trigger, or the engine does not start
    /// the run.
    pub async fn deliver(
        &self,
        name: &str,
        delivery: &Delivery,
        body: &[u8],
        now: Time,
    ) -> Result<Fired, TriggerError> {
        let workflow = self.read()?;
        let found = find(&workflow, name).ok().filter(|trigger| trigger.webhook);
        // A caller without a valid signature learns nothing about existing triggers.
        let trigger = found.ok_or(TriggerError::BadSignature)?;
        let secret = secret(trigger)?;
        if !crate::verify_payload(&secret, body, &delivery.signature) {
            return Err(TriggerError::BadSignature);
        }
        if delivery.is_ping {
            return Ok(Fired { run: None, repeated: false });
        }
        let payload: Value =
            serde_json::from_slice(body).map_err(|source| TriggerError::NotJson { source })?;
        let hash = crate::signature::hash(body);
        let id = delivery.id.clone().unwrap_or_else(|| format!("sha256:{hash}"));
        // One at a time: of two equal deliveries, only one may be the first.
        let mut kept = self.kept.lock().await;
        if let Some(run) = kept.value.deliveries.known(name, &id, &hash, now)? {
            return Ok(Fired { run: Some(run), repeated: true });
        }
        let request = request(trigger, now, &payload)?;
        let key = format!("trigger\n{name}\n{id}");
        let begun = self.begin(&key, &workflow, trigger, request, delivery.within).await;
        let (run, repeated) = begun?;
        kept.value.deliveries.note(name, id, hash, now, run);
        kept.save();
        Ok(Fired { run: Some(run), repeated })
    }

    fn read(&self) -> Result<Workflow, TriggerError> {
        (self.workflow)().map_err(|why| TriggerError::Workflow { why })
    }
}

fn find<'w>(workflow: &'w Workflow, name: &str) -> Result<&'w Trigger, TriggerError> {
    let found = workflow.triggers.iter().find(|trigger| trigger.name == name);
    found.ok_or_else(|| TriggerError::NoSuch { name: name.to_owned() })
}

fn request(trigger: &Trigger, time: Time, payload: &Value) -> Result<String, TriggerError> {
    Ok(Template::parse(&trigger.request)?.fill(&trigger.name, &time.rfc3339(), payload)?)
}

fn secret(trigger: &Trigger) -> Result<String, TriggerError> {
    let variable = trigger.secret_env.clone().unwrap_or_default();
    match std::env::var(&variable) {
        Ok(secret) if !secret.is_empty() => Ok(secret),
        _ => Err(TriggerError::NoSecret { variable }),
    }
}
