//! What came of a trial.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use stafette_core::{Time, Usage};
use stafette_fake_model::{self as model, Exchange, Outcome as Answered};

use super::case::{BUILDER, CHECKED, GREETING, REVIEWER};

/// The outcome of a trial, as far as it is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Findings {
    /// The status of the run.
    pub(super) status: String,
    /// True if the builder's prompt has reached its model.
    pub(super) ready: bool,
    /// The time from the start of the run until then.
    pub(super) ready_after: Duration,
    /// True if the builder's command ran and its model saw the output.
    pub(super) ran: bool,
    /// True if the reviewer found what the builder wrote.
    pub(super) edited: bool,
    /// True if the reviewer got the handoff.
    pub(super) handed_over: bool,
    /// The questions that came into the inbox.
    pub(super) asked: Vec<String>,
    /// Those of them that are about a failure.
    pub(super) failures_asked: Vec<String>,
    /// The alerts of the run, and what was refused.
    pub(super) alerts: Vec<String>,
    /// Why turns failed.
    pub(super) failures: Vec<String>,
    /// True if the work waits for a quota.
    pub(super) parked: bool,
    /// The turns that were given out.
    pub(super) turns: usize,
    /// The attempts after the first.
    pub(super) retries: u64,
    /// When its processes were killed.
    pub(super) killed: Option<Time>,
    /// The time from then until their death was on record.
    pub(super) noticed: Option<Duration>,
    /// The requests that the model had no answer for.
    pub(super) surprises: Vec<String>,
    /// The servers elsewhere that were asked for, and refused.
    pub(super) outside: Vec<String>,
    /// The tokens that the model says the agents have used, without those from its cache.
    pub(super) answered: u64,
    /// What the run has spent.
    pub(super) spent: Usage,
    /// The time from the start of the run to its end.
    pub(super) time: Duration,
}

impl Findings {
    /// Reads what the model was told, at this time of the run.
    pub(super) fn read(&mut self, exchanges: &[Exchange], since: Duration) {
        let tells = |prompt: &str, text: &str| {
            exchanges.iter().any(|exchange| {
                let ask = exchange.ask.as_ref().filter(|ask| ask.prompt.contains(prompt));
                ask.is_some() && exchange.body.to_string().contains(text)
            })
        };
        if !self.ready && tells(BUILDER, BUILDER) {
            self.ready = true;
            self.ready_after = since;
        }
        self.ran = tells(BUILDER, CHECKED);
        self.handed_over = tells(REVIEWER, REVIEWER);
        self.edited = tells(REVIEWER, GREETING);
        let model::Usage { input, output, .. } = model::Usage::default();
        let answers = exchanges.iter().filter(|it| matches!(it.outcome, Answered::Rule(_)));
        self.answered = answers.map(|_| input + output).sum();
        let is_outside = |exchange: &&Exchange| exchange.method == "CONNECT";
        let (outside, inside): (Vec<&Exchange>, Vec<&Exchange>) =
            exchanges.iter().filter(|exchange| exchange.is_surprise()).partition(is_outside);
        self.outside = sorted(outside.iter().map(|exchange| exchange.path.clone()));
        let named = |exchange: &&Exchange| format!("{} {}", exchange.method, exchange.path);
        self.surprises = sorted(inside.iter().map(named));
    }

    /// Reads the run as `status --json` has it.
    pub(super) fn read_run(&mut self, run: &Value) {
        self.status = run["status"].as_str().unwrap_or_default().to_owned();
        self.retries = run.pointer("/tally/retries").and_then(Value::as_u64).unwrap_or(0);
        self.spent = serde_json::from_value(run["purse"]["spent"].clone()).unwrap_or_default();
    }

    /// Reads the events of the run.
    pub(super) fn read_events(&mut self, events: &[Value]) {
        let all = |names: &[&str], places: &[&str]| -> Vec<String> {
            let wanted =
                events.iter().filter(|e| names.contains(&e["event"].as_str().unwrap_or("")));
            let words = |event: &Value| {
                let part = |place: &&str| Some(event.pointer(place)?.as_str()?.to_owned());
                places.iter().filter_map(part).collect::<Vec<_>>().join(" ")
            };
            let mut found: Vec<String> = wanted.map(words).collect();
            found.dedup();
            found
        };
        self.alerts = all(&["alert_raised"], &["/code", "/message"]);
        self.alerts.extend(all(&["handoff_refused"], &["/refusal", "/refusal/code"]));
        self.failures = all(&["turn_failed"], &["/failure/message"]);
        self.noticed = self.killed.and_then(|killed| {
            let is_death =
                |event: &&Value| event["event"] == "turn_failed" || event["state"] == "crashed";
            let deaths = events.iter().filter(is_death);
            let times = deaths.filter_map(|event| Time::parse(event["at"].as_str()?));
            let first = times.filter(|at| *at >= killed).min()?;
            u64::try_from(first.0 - killed.0).ok().map(Duration::from_millis)
        });
        self.turns = events.iter().filter(|event| event["event"] == "turn_ordered").count();
        self.parked = events.iter().any(|event| event["event"] == "handoff_parked");
    }

    /// Returns the tokens that the run has spent, if they are known.
    pub(super) fn tokens(&self) -> Option<u64> {
        Some(self.spent.tokens).filter(|_| self.spent.unknown.tokens == 0)
    }

    /// What there is to say besides, on one line.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.handed_over {
            remarks.extend((!self.ran).then(|| "its command did not run".to_owned()));
            remarks.extend((!self.edited).then(|| "its edit was not found".to_owned()));
        }
        if let Some(noticed) = self.noticed {
            remarks.push(format!("its death was noticed after {:.1} s", noticed.as_secs_f32()));
        }
        remarks.extend(self.asked.iter().map(|question| format!("asked: {question}")));
        remarks.extend(self.failures.iter().map(|failure| format!("failed: {failure}")));
        remarks.extend(self.alerts.iter().cloned());
        remarks.extend(self.surprises.iter().map(|what| format!("unexpected request: {what}")));
        if !self.outside.is_empty() {
            remarks.push(format!("refused the network: {}", self.outside.join(", ")));
        }
        let one_line = |text: String| text.split_whitespace().collect::<Vec<_>>().join(" ");
        remarks.into_iter().map(one_line).collect()
    }

    /// The same for programs.
    pub(super) fn json(&self) -> Value {
        let seconds = |time: Duration| (time.as_secs_f64() * 10.0).round() / 10.0;
        json!({
            "status": self.status,
            "ready": self.ready.then(|| seconds(self.ready_after)),
            "ran": self.ran,
            "edited": self.edited,
            "handoff": self.handed_over,
            "asks": self.asked,
            "alerts": self.alerts,
            "failures": self.failures,
            "parked": self.parked,
            "turns": self.turns,
            "retries": self.retries,
            "noticed": self.noticed.map(seconds),
            "unexpected": self.surprises,
            "outside": self.outside,
            "tokens": self.tokens(),
            "answered": self.answered,
            "cost": self.spent.cost(),
            "seconds": seconds(self.time),
        })
    }
}

/// The texts in order, each once.
fn sorted(texts: impl Iterator<Item = String>) -> Vec<String> {
    texts.collect::<BTreeSet<_>>().into_iter().collect()
}
