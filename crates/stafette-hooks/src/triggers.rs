//! Runs that begin by themselves: at their times, and when another program says so.

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
use stafette_core::{Fields, Millis, RunId, Time, Workflow};
use stafette_engine::{Engine, EngineError};
use thiserror::Error;
use tokio::sync::{Mutex, watch};
use uuid::Uuid;

use crate::memory::Memory;
use crate::schedule::{self, BadZone};
use crate::{ReadWorkflow, clock};
use deliveries::Deliveries;

pub use deliveries::Delivery;

/// Later than this, a time was missed.
const GRACE: Millis = Millis::minutes(2);

/// How often to look whether the workflow or the clock has changed.
const LOOK: Duration = Duration::from_secs(30);

/// A trigger could not begin a run.
#[derive(Debug, Error)]
pub enum TriggerError {
    /// There is none of that name.
    #[error("there is no trigger `{name}`")]
    NoSuch {
        /// What was asked for.
        name: String,
    },
    /// The workflow cannot be read, or is not trusted.
    #[error("{why}")]
    Workflow {
        /// Why.
        why: String,
    },
    /// The secret is not there.
    #[error("the environment variable {variable} is not set where the daemon runs")]
    NoSecret {
        /// Where it should be.
        variable: String,
    },
    /// Whoever came does not know the secret.
    #[error("the signature does not fit")]
    BadSignature,
    /// The same was brought before, under another name.
    #[error("the same was delivered before, as `{id}`")]
    Replayed {
        /// Its name then.
        id: String,
    },
    /// What was brought is not JSON.
    #[error("what was brought is not JSON")]
    NotJson {
        /// Why.
        source: serde_json::Error,
    },
    /// The request cannot be made of what was brought.
    #[error("{source}")]
    Request {
        /// Why.
        #[from]
        source: TemplateError,
    },
    /// The times cannot be understood.
    #[error("{source}")]
    Times {
        /// Why.
        #[from]
        source: NotCron,
    },
    /// There is no such time zone.
    #[error("{source}")]
    Zone {
        /// Why.
        #[from]
        source: BadZone,
    },
    /// The engine did not begin it.
    #[error("{source}")]
    Engine {
        /// Why.
        #[from]
        source: EngineError,
    },
}

/// What came of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fired {
    /// The run; nothing when somebody only tried whether we are there.
    pub run: Option<RunId>,
    /// Whether it was there already.
    pub repeated: bool,
}

/// A trigger as people see it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TriggerView {
    /// Its name.
    pub name: String,
    /// Its times.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cron: Option<String>,
    /// Where its clock hangs.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub timezone: Option<String>,
    /// Whether programs may begin it.
    pub webhook: bool,
    /// Whether its secret is there; nothing when it needs none.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub secret_set: Option<bool>,
    /// The next times.
    pub next: Vec<String>,
    /// What the agents are asked to do.
    pub request: String,
}

/// What is remembered over a restart.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
struct Kept {
    since: BTreeMap<String, Since>,
    deliveries: Deliveries,
}

/// Up to when a trigger's times were kept.
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
    /// The triggers that `workflow` says; `memory` is where we note what we did.
    #[must_use]
    pub fn open(engine: Engine, workflow: Arc<ReadWorkflow>, memory: PathBuf) -> Self {
        Triggers { engine, workflow, kept: Mutex::new(Memory::open(memory)) }
    }

    /// Keeps the times until `stop` is set.
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

    /// Begins what is due by `now`, and tells when the next one will be.
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
        // A clock that was set back does not bring everything again.
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
            // What would end the same way again is not tried again.
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
            RunCreated { trace, ..RunCreated::new(RunId(Uuid::nil()), workflow, request, by) };
        match self.engine.begin_keyed(key, created).await {
            // The request says the moment or was changed since: it is the same time all the same.
            Err(EngineError::OtherRequest { run }) => Ok((run, true)),
            other => Ok(other?),
        }
    }

    /// All triggers, with their next times after `now`.
    ///
    /// # Errors
    /// When the workflow cannot be read.
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

    /// Begins a run by hand.
    ///
    /// # Errors
    /// When there is no such trigger, or the engine does not begin it.
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
        let budget = workflow.budget.clone();
        let by = format!("{by}, trigger {name}");
        Ok(self.engine.start(workflow, request, Fields::new(), budget, by).await?)
    }

    /// Begins a run because another program says so, and can show that it may.
    ///
    /// # Errors
    /// When it cannot, or there is no such trigger, or the engine does not begin it.
    pub async fn deliver(
        &self,
        name: &str,
        delivery: &Delivery,
        body: &[u8],
        now: Time,
    ) -> Result<Fired, TriggerError> {
        let workflow = self.read()?;
        let found = find(&workflow, name).ok().filter(|trigger| trigger.webhook);
        // Whoever cannot sign learns nothing about which triggers there are.
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
        // One at a time: two that are the same must not both be the first.
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
