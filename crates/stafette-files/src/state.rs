//! `state.json`: a projection of the newest run, in which other programs may write too.
//!
//! Edits of others are recognised by comparison with what we wrote last. For most keys the last
//! write wins. The current work, its agent and the locks are ours: another value there is a
//! conflict that is sent to a person.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use serde_json::{Map, Value, json};
use stafette_core::wire::message::WorkflowType;
use stafette_core::wire::scalar::Stamp;
use stafette_core::wire::state::{AgentEntry, CurrentWorkflow, SharedState};
use stafette_core::{Fields, Input, Kind, Offer, Party, Question, Reason, Reply, Run};

use crate::folder::{Seen, look, read, write};
use crate::intake::Rejection;
use crate::origin::Origin;
use crate::{Coordination, SETTLES};

const NAME: &str = "state.json";

/// Keys that others must not change.
const CRITICAL: [&str; 3] = ["current_workflow", "current_agent", "locks"];

/// The file, and its last known version.
#[derive(Debug)]
pub(crate) struct StateFile {
    folder: OwnedFd,
    memory: PathBuf,
    /// Content that we wrote last; null before the first write.
    ours: Value,
    seen: Option<Seen>,
}

impl StateFile {
    pub(crate) fn open(folder: OwnedFd, memory: PathBuf) -> Self {
        let ours = std::fs::read(&memory).ok();
        let ours = ours.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or(Value::Null);
        StateFile { folder, memory, ours, seen: None }
    }

    /// Returns true if another program has written since we did.
    pub(crate) fn was_touched(&self) -> bool {
        self.look() != self.seen
    }

    fn look(&self) -> Option<Seen> {
        look(&self.folder, NAME).ok().flatten()
    }

    /// Returns the content of the file: null if it does not exist, an error if it cannot be read.
    fn theirs(&self) -> Result<Value, String> {
        match read(&self.folder, NAME) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| error.to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Value::Null),
            Err(error) => Err(error.to_string()),
        }
    }

    fn put(&mut self, state: Value) {
        let text = serde_json::to_vec_pretty(&state).unwrap_or_default();
        let _ = stafette_disk::folder_of(&self.memory);
        // Saved first: a crash in between looks like an edit that changed nothing.
        let _ = stafette_disk::write(&self.memory, &text);
        match write(&self.folder, NAME, &text) {
            Ok(seen) => {
                self.seen = Some(seen);
                self.ours = state;
            }
            Err(error) => tracing::warn!(%error, "state.json cannot be written"),
        }
    }
}

impl Coordination {
    /// Merges edits of others and writes the current state.
    pub(crate) async fn mirror_state(&mut self) {
        let newest = self.engine.runs(1).await.unwrap_or_default().pop();
        let run = match &newest {
            Some(view) => self.engine.state(view.run).await.ok(),
            None => None,
        };
        let truth = json!(projection(run.as_deref()));
        // Read first: a write from here on is found the next time.
        let seen = self.state.look();
        let theirs = match self.state.theirs() {
            Ok(theirs) => theirs,
            Err(error) => {
                if seen.is_some_and(|seen| seen.age() < SETTLES) {
                    return;
                }
                tracing::warn!(error, "state.json was not readable and is written anew");
                Value::Null
            }
        };
        if self.state.look() != seen {
            // Another program is writing right now; its edit is merged the next time, so that a
            // conflict is reported only once.
            return;
        }
        let mut merged = merge(&self.state.ours, &truth, &theirs);
        if !merged.conflicts.is_empty() {
            match self.origin(None, NAME).await {
                Ok(Origin::Here) => {}
                Ok(Origin::NotKnownYet) => return,
                Err(Rejection { reason, .. }) => {
                    tracing::warn!(reason, "nobody is asked about state.json");
                    merged.conflicts.clear();
                }
            }
        }
        for key in &merged.conflicts {
            tracing::warn!(key, "state.json was changed where it must not be");
        }
        if let (Some(run), false) = (&run, merged.conflicts.is_empty()) {
            self.report(run, &merged.conflicts, &theirs).await;
        }
        if self.state.look() != seen {
            // Another program wrote while a person was asked; that is merged the next time, too.
        } else if merged.state != theirs || self.state.seen.is_none() {
            self.state.put(merged.state);
        } else {
            self.state.seen = seen;
            self.state.ours = merged.state;
        }
    }

    /// Asks a person about a conflicting edit. The run continues unchanged.
    async fn report(&self, run: &Run, conflicts: &[String], theirs: &Value) {
        // Redacted before it is cut: half of a secret could not be recognised any more.
        let theirs = self.engine.redacted(theirs.clone());
        let wanted: Vec<String> =
            conflicts.iter().map(|key| format!("{key} = {}", short(&theirs[key]))).collect();
        let question = Question {
            reason: "state_conflict".into(),
            details: format!(
                "Somebody wrote {} into state.json. Only Stafette decides that, and it was put \
                 back. Should something be done about it?",
                wanted.join(", ")
            ),
            options: vec!["leave it".into(), "cancel the run".into()],
            blocking: false,
            ..Question::default()
        };
        let offer = Offer {
            question: Some(question),
            ..Offer::new(
                Party::Orchestrator,
                Party::Human,
                Kind::Transfer,
                Reason::RequiresHumanDecision,
            )
        };
        match self.engine.send(run.id, Input::Propose { offer: Box::new(offer) }).await {
            Ok(Reply::Refused { refusal, .. }) => {
                tracing::warn!(%refusal, "the question about the conflict was refused");
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "nobody could be asked about the conflict"),
        }
    }
}

fn short(value: &Value) -> String {
    value.to_string().chars().take(120).collect()
}

/// Result of a three-way merge.
struct Merged {
    state: Value,
    conflicts: Vec<String>,
}

/// Merges our last write, the current state, and the content of the file.
fn merge(last: &Value, truth: &Value, theirs: &Value) -> Merged {
    let empty = Map::new();
    let of = |value: &Value| value.as_object().cloned().unwrap_or_default();
    let (last, mut state, theirs) = (of(last), of(truth), theirs.as_object().unwrap_or(&empty));
    let mut conflicts = Vec::new();
    for (key, value) in theirs {
        let before = last.get(key);
        if before == Some(value) && truth.get(key).is_some() {
            continue;
        }
        if CRITICAL.contains(&key.as_str()) {
            // Before our first write, everything in the file was written by others.
            if !last.is_empty() && truth.get(key) != Some(value) {
                conflicts.push(key.clone());
            }
        } else if key == "agents" {
            let merged = merge_agents(before, &state[key], value);
            state.insert(key.clone(), merged);
        } else if truth.get(key) == before || truth.get(key).is_none() {
            state.insert(key.clone(), value.clone());
        }
    }
    Merged { state: Value::Object(state), conflicts }
}

/// Merges one level deeper: each agent writes its own entry.
fn merge_agents(last: Option<&Value>, truth: &Value, theirs: &Value) -> Value {
    let mut merged = truth.clone();
    let (Some(agents), Some(wanted)) = (merged.as_object_mut(), theirs.as_object()) else {
        return merged;
    };
    for (agent, entry) in wanted {
        let before = last.and_then(|last| last.get(agent));
        let (Some(own), Some(fields)) = (agents.get_mut(agent), entry.as_object()) else {
            agents.entry(agent.clone()).or_insert_with(|| entry.clone());
            continue;
        };
        for (key, value) in fields {
            let unchanged = own.get(key) == before.and_then(|before| before.get(key));
            if unchanged || own.get(key).is_none() {
                own[key] = value.clone();
            }
        }
    }
    merged
}

/// Returns the state of the newest run in the format of the file.
fn projection(run: Option<&Run>) -> SharedState {
    let stamp = |time: stafette_core::Time| Stamp::from(time);
    let mut agents = BTreeMap::new();
    let (mut current, mut last, mut iteration) = (None, None, 1);
    if let Some(run) = run {
        for name in run.workflow.agents.keys() {
            let entry =
                AgentEntry { status: "idle".into(), last_active: None, extra: Fields::new() };
            agents.insert(name.to_string(), entry);
        }
        for handoff in run.handoffs.values() {
            let to = handoff.offer.to.to_string();
            last = Some(handoff);
            iteration = iteration.max(handoff.trail.lap().map_or(1, |lap| lap.round));
            let Some(entry) = agents.get_mut(&to) else { continue };
            let active = handoff.state.turn().is_some();
            if active {
                current = Some(to);
            }
            entry.status = if active { "active" } else { "completed" }.into();
            let seen = handoff.state.turn().map_or(handoff.admitted_at, |turn| turn.ordered_at);
            entry.last_active = Some(Some(stamp(seen)));
        }
    }
    let workflow = run.filter(|run| !run.status().is_final()).map(|run| CurrentWorkflow {
        id: run.id.to_string(),
        kind: WorkflowType::Feature,
        started: stamp(run.created_at),
        spec: None,
        extra: Fields::new(),
    });
    let last = run.zip(last).map(|(run, handoff)| {
        let foreign = handoff.offer.foreign.as_ref().filter(|foreign| foreign.dialect == "message");
        let own = || uuid::Uuid::new_v5(&run.id.0, handoff.id.to_string().as_bytes()).to_string();
        foreign.map_or_else(own, |foreign| foreign.id.clone())
    });
    SharedState {
        schema_version: Default::default(),
        current_workflow: Some(workflow),
        current_agent: Some(current),
        last_handoff: Some(last),
        locks: BTreeMap::new(),
        iteration: u64::from(iteration).into(),
        agents,
        extra: Fields::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s5_03_of_most_keys_the_last_write_counts() {
        let last = json!({ "iteration": 1, "current_agent": "a", "agents": { "a": { "status": "idle" } } });
        let truth = json!({ "iteration": 2, "current_agent": "a", "agents": { "a": { "status": "idle" } } });
        let theirs = json!({
            "iteration": 7,
            "note": "mine",
            "current_agent": "a",
            "agents": { "a": { "status": "approved", "score": 3 } },
        });
        let merged = merge(&last, &truth, &theirs);
        assert_eq!(merged.conflicts, [""; 0]);
        let expected = json!({
            "iteration": 2,
            "current_agent": "a",
            "agents": { "a": { "status": "approved", "score": 3 } },
            "note": "mine",
        });
        assert_eq!(merged.state, expected);
    }

    #[test]
    fn s5_03_who_has_the_work_is_not_changed_by_an_edit() {
        let last = json!({ "current_agent": "a", "locks": {} });
        let theirs = json!({ "current_agent": "b", "locks": { "x": { "agent": "b" } } });
        let merged = merge(&last, &last, &theirs);
        assert_eq!(merged.conflicts, ["current_agent", "locks"]);
        assert_eq!(merged.state, last);
    }
}
