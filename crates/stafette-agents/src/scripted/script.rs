//! A script: the steps that an agent takes in each turn.

use std::path::{Component, Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use stafette_core::{Millis, TurnKey, TurnOrder, Usd};
use thiserror::Error;
use toml::Spanned;

use crate::harvest::KINDS;

/// The largest script, in bytes.
const LARGEST: u64 = 16 << 20;

/// The script of an agent.
#[derive(Clone, PartialEq, Debug)]
pub struct Script {
    /// The path of the agent's own account, relative to the script.
    pub ledger: Option<PathBuf>,
    /// The turns of the script; the first one that matches is taken.
    pub turns: Vec<Turn>,
}

/// The steps of an agent in one turn.
#[derive(Clone, PartialEq, Debug)]
pub struct Turn {
    pub when: When,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// A condition on a turn; fields that are not set match every turn.
#[derive(Clone, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// The round of the loop, from 1.
    pub round: Option<u32>,
    /// The number of the turn within the handoff, from 1.
    pub turn: Option<u32>,
    /// The number of the attempt, from 1.
    pub attempt: Option<u32>,
    /// The number of the delivery, from 1.
    pub delivery: Option<u32>,
    /// Inputs that must be present.
    pub has: Vec<String>,
    /// Inputs that must be absent.
    pub lacks: Vec<String>,
}

/// One step of an agent.
#[derive(Clone, PartialEq, Debug)]
pub enum Step {
    /// Prints a text as the agent's talk.
    Say(String),
    /// Writes a file in the agent's folder.
    Write {
        path: String,
        /// The content of the file.
        text: String,
    },
    /// Appends to a file in the agent's folder.
    Append {
        path: String,
        text: String,
    },
    /// Runs a command in a shell.
    Run {
        /// The command line for the shell.
        command: String,
        ok: bool,
    },
    /// Commits everything with this message, once for each key.
    Commit(String),
    /// Waits for this time, in milliseconds.
    Wait(Millis),
    /// Reports tokens and money that were used.
    Report {
        tokens: u64,
        /// The amount of money, in dollars.
        usd: Usd,
        /// The purpose, in a sentence.
        note: Option<String>,
    },
    /// Emits a control signal.
    Emit {
        /// The type of the signal.
        kind: String,
        payload: Value,
    },
    /// Crashes immediately, without a result.
    Crash,
    Exit(u8),
    /// Shows no sign of life any more.
    Hang,
}

/// A script that cannot be played.
#[derive(Debug, Error)]
pub enum ScriptError {
    #[error("cannot read the script {}: {source}", path.display())]
    Unreadable { path: PathBuf, source: std::io::Error },
    #[error("the script has a mistake at line {line}, column {column}: {message}")]
    Wrong {
        /// The line of the mistake, from 1.
        line: usize,
        /// The column of the mistake, from 1.
        column: usize,
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawScript {
    ledger: Option<PathBuf>,
    #[serde(default, rename = "turn")]
    turns: Vec<RawTurn>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTurn {
    #[serde(default)]
    when: When,
    #[serde(default)]
    steps: Vec<Spanned<RawStep>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    say: Option<String>,
    write: Option<String>,
    append: Option<String>,
    text: Option<String>,
    run: Option<String>,
    ok: Option<bool>,
    commit: Option<String>,
    wait: Option<Millis>,
    report: Option<RawReport>,
    emit: Option<String>,
    payload: Option<Value>,
    crash: Option<bool>,
    exit: Option<u8>,
    hang: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawReport {
    #[serde(default)]
    tokens: u64,
    #[serde(default)]
    usd: Usd,
    note: Option<String>,
}

impl Script {
    /// Reads a script from a file.
    ///
    /// # Errors
    /// When the file cannot be read, or is not a script.
    pub fn read(path: &Path) -> Result<Script, ScriptError> {
        let text = stafette_disk::read_text(path, LARGEST)
            .map_err(|source| ScriptError::Unreadable { path: path.to_owned(), source })?;
        Script::parse(&text)
    }

    /// Reads a script from its text.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse(text: &str) -> Result<Script, ScriptError> {
        let raw: RawScript = toml::from_str(text).map_err(|error| {
            wrong(text, error.span().map_or(0, |span| span.start), error.message())
        })?;
        let mut turns = Vec::new();
        for turn in raw.turns {
            let mut steps = Vec::new();
            for step in turn.steps {
                let start = step.span().start;
                let step = step.into_inner().checked();
                steps.push(step.map_err(|message| wrong(text, start, &message))?);
            }
            turns.push(Turn { when: turn.when, steps });
        }
        Ok(Script { ledger: raw.ledger, turns })
    }

    /// The steps for an order; `None` when no turn matches.
    pub fn turn_for(&self, order: &TurnOrder) -> Option<&Turn> {
        self.turns.iter().find(|turn| turn.when.fits(order))
    }
}

impl When {
    /// True if it matches an order.
    pub fn fits(&self, order: &TurnOrder) -> bool {
        let same = |wanted: Option<u32>, is: u32| wanted.is_none_or(|wanted| wanted == is);
        same(self.round, order.round)
            && same(self.turn, order.key.turn)
            && same(self.attempt, order.key.attempt)
            && same(self.delivery, order.deliveries)
            && self.has.iter().all(|key| order.inputs.contains_key(key))
            && !self.lacks.iter().any(|key| order.inputs.contains_key(key))
    }
}

impl RawStep {
    fn checked(self) -> Result<Step, String> {
        let RawStep { mut text, mut ok, mut payload, .. } = self;
        let mut steps: Vec<Step> = Vec::new();
        steps.extend(self.say.map(Step::Say));
        if let Some(path) = self.write {
            inside(&path)?;
            steps.push(Step::Write { path, text: text.take().ok_or("`write` needs `text`")? });
        }
        if let Some(path) = self.append {
            inside(&path)?;
            steps.push(Step::Append { path, text: text.take().ok_or("`append` needs `text`")? });
        }
        if let Some(command) = self.run {
            steps.push(Step::Run { command, ok: ok.take().unwrap_or(true) });
        }
        steps.extend(self.commit.map(Step::Commit));
        steps.extend(self.wait.map(Step::Wait));
        if let Some(RawReport { tokens, usd, note }) = self.report {
            steps.push(Step::Report { tokens, usd, note });
        }
        if let Some(kind) = self.emit {
            if !KINDS.contains(&kind.as_str()) {
                return Err(format!(
                    "`{kind}` is not a signal: use READY, HANDOFF, ERROR, RESULT, REPORT, CHANGE or SIGNAL"
                ));
            }
            if payload.is_none()
                && matches!(kind.as_str(), "HANDOFF" | "ERROR" | "CHANGE" | "SIGNAL")
            {
                return Err(format!("`{kind}` needs a `payload`"));
            }
            let payload = payload.take().unwrap_or_else(|| Value::Object(Default::default()));
            steps.push(Step::Emit { kind, payload });
        }
        steps.extend((self.crash == Some(true)).then_some(Step::Crash));
        steps.extend(self.exit.map(Step::Exit));
        steps.extend((self.hang == Some(true)).then_some(Step::Hang));
        let left = [("text", text.is_some()), ("ok", ok.is_some()), ("payload", payload.is_some())];
        if let Some((name, _)) = left.iter().find(|(_, left)| *left) {
            return Err(format!("`{name}` does not belong to this step"));
        }
        match (steps.pop(), steps.is_empty()) {
            (Some(step), true) => Ok(step),
            (None, _) => Err("the step does nothing".into()),
            (Some(_), false) => Err("a step does one thing: make it several steps".into()),
        }
    }
}

/// Checks that a path stays in the agent's folder.
pub(super) fn inside(path: &str) -> Result<(), String> {
    let plain = |part| matches!(part, Component::Normal(_) | Component::CurDir);
    if path.is_empty() || path.ends_with('/') || !Path::new(path).components().all(plain) {
        return Err(format!("`{path}` is not a file in the agent's folder"));
    }
    Ok(())
}

fn wrong(text: &str, at: usize, message: &str) -> ScriptError {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    ScriptError::Wrong { line, column, message: message.to_owned() }
}

/// The values of the placeholders in a script.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blanks {
    /// `{key}`: the idempotency key of the turn.
    pub key: TurnKey,
    /// `{round}`: the round of the loop.
    pub round: u32,
    /// `{request}`: the request of the user.
    pub request: String,
    /// `{commit}`: the turn's commit, once there is one.
    pub commit: String,
    /// `{task_id}`: the id of the task, where a phase is requested.
    pub task_id: String,
}

impl Blanks {
    /// The values for an order.
    #[must_use]
    pub fn of(order: &TurnOrder) -> Self {
        Blanks {
            key: order.key,
            round: order.round,
            request: order.request.clone(),
            commit: String::new(),
            task_id: order.offer.foreign.as_ref().map(|f| f.id.clone()).unwrap_or_default(),
        }
    }

    /// Replaces the placeholders in a text. Inserted text is not searched again.
    pub fn fill(&self, text: &str) -> String {
        self.fill_in(text, true)
    }

    /// Replaces the placeholders in a command. The request is left out: it is the user's text and
    /// no code, and the command finds it in `$STAFETTE_REQUEST`.
    pub fn fill_command(&self, text: &str) -> String {
        self.fill_in(text, false)
    }

    /// Replaces the placeholders in every text of a value.
    pub fn fill_value(&self, value: &Value) -> Value {
        match value {
            Value::String(text) => self.fill(text).into(),
            Value::Array(values) => values.iter().map(|value| self.fill_value(value)).collect(),
            Value::Object(fields) => {
                let fill = |(name, value): (&String, _)| (name.clone(), self.fill_value(value));
                Value::Object(fields.iter().map(fill).collect())
            }
            other => other.clone(),
        }
    }

    fn fill_in(&self, text: &str, with_request: bool) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            filled.push_str(&rest[..at]);
            rest = &rest[at..];
            let known = [
                ("{key}", self.key.to_string()),
                ("{round}", self.round.to_string()),
                ("{commit}", self.commit.clone()),
                ("{task_id}", self.task_id.clone()),
                ("{request}", self.request.clone()),
            ];
            let known = &known[..if with_request { 5 } else { 3 }];
            match known.iter().find(|(name, _)| rest.starts_with(name)) {
                Some((name, value)) => {
                    filled.push_str(value);
                    rest = &rest[name.len()..];
                }
                None => {
                    filled.push('{');
                    rest = &rest[1..];
                }
            }
        }
        filled + rest
    }
}

#[cfg(test)]
mod tests;
