//! Files dropped into `pending`: they are parsed and accepted, or moved to `rejected`.

use std::sync::Arc;

use serde_json::{Value, json};
use stafette_core::run::create::RunCreated;
use stafette_core::wire::Document;
use stafette_core::{
    AgentName, Fields, HandoffId, Offer, Outcome, Party, Reason, Response, RunId, TurnOrder,
    TurnResult,
};
use stafette_engine::{Engine, EngineError};

use crate::folder::{Kind, MAX_FILE, Place, Seen};
use crate::mirror::is_own_name;
use crate::origin::Origin;
use crate::{Coordination, SETTLES};

/// Reason why a file is not accepted.
#[derive(Debug)]
pub(crate) struct Rejection {
    code: &'static str,
    pub(crate) reason: String,
}

impl Rejection {
    pub(crate) fn new(code: &'static str, reason: impl Into<String>) -> Self {
        Rejection { code, reason: reason.into() }
    }
}

impl From<EngineError> for Rejection {
    fn from(error: EngineError) -> Self {
        let (_, code) = error.code();
        let reason = match &error {
            EngineError::StartedHere { agent } => format!(
                "{agent} is started by Stafette, and a file can be anybody's: it hands on with \
                 `stafette emit HANDOFF` or the MCP tool `handoff`"
            ),
            other => other.to_string(),
        };
        Rejection { code, reason }
    }
}

/// Result of accepting a file.
enum Taken {
    /// The mirror of the new handoff replaces it.
    Mirrored,
    /// It reported that the work is done.
    Done(RunId),
    Begun(RunId),
}

impl Coordination {
    /// Accepts a file. Returns true if it is handled; otherwise it is looked at again.
    pub(crate) async fn take_in(&mut self, name: &str, seen: Seen) -> bool {
        if !name.ends_with(".json") {
            return self.other(name, seen).await;
        }
        let value = match self.understood(name, seen) {
            Ok(Some(value)) => value,
            Ok(None) => return false,
            Err(rejection) => return self.turn_away(name, &rejection, None),
        };
        if let Some(key) = ours(&value) {
            // Our own file, or one that an agent moved back: the mirror decides where it belongs.
            if self
                .known
                .get(&key)
                .is_some_and(|(place, at)| *place == Place::Pending && at == name)
            {
                return true;
            }
            self.mirror(key.0, key.1).await;
            let (run, handoff) = key;
            let reason = match self.known.get(&key) {
                _ if !is_own_name(&value, name) => format!(
                    "it names {handoff} of run {run}, which has a file of its own: leave out \
                     `context.handoff` to hand on"
                ),
                None => format!("there is no {handoff} in run {run}"),
                Some((_, at)) if at == name => return true,
                Some(_) => {
                    let _ = self.folder.remove(Place::Pending, name);
                    return true;
                }
            };
            let rejection = Rejection::new("not_a_message", reason);
            return self.turn_away(name, &rejection, Some(value));
        }
        match self.origin(Some(Place::Pending), name).await {
            Ok(Origin::Here) => {}
            Ok(Origin::NotKnownYet) => return false,
            Err(rejection) => return self.turn_away(name, &rejection, Some(value)),
        }
        match self.taken(name, seen, &value).await {
            Ok(Taken::Mirrored) => {
                let mirrored =
                    self.known.values().any(|(place, at)| *place == Place::Pending && at == name);
                if !mirrored {
                    let _ = self.folder.remove(Place::Pending, name);
                }
                true
            }
            Ok(Taken::Done(run)) => self.put_away(name, value, run, "completed"),
            Ok(Taken::Begun(run)) => self.put_away(name, value, run, "accepted"),
            Err(rejection) => self.turn_away(name, &rejection, Some(value)),
        }
    }

    /// Says why a file that is not called JSON is not taken, once its writer has had the time to rename
    /// it. It stays where it is: it may belong to somebody.
    async fn other(&mut self, name: &str, seen: Seen) -> bool {
        if seen.age() < SETTLES {
            return false;
        }
        match self.origin(Some(Place::Pending), name).await {
            Ok(Origin::Here) => {
                let reason = "only files whose names end with `.json` are taken: rename it";
                let note = note(name, &Rejection::new("not_json", reason), None);
                if let Err(error) = self.folder.explain(name, &note) {
                    tracing::warn!(%error, name, "cannot be explained");
                }
                true
            }
            Ok(Origin::NotKnownYet) => false,
            Err(_) => true,
        }
    }

    /// Parses the JSON in a file; `None` while it may still be being written.
    fn understood(&self, name: &str, seen: Seen) -> Result<Option<Value>, Rejection> {
        match seen.kind {
            Kind::Link => {
                return Err(Rejection::new("link", "it is a link; links are not followed"));
            }
            Kind::Other => return Err(Rejection::new("not_a_file", "it is not a plain file")),
            Kind::File if seen.size > MAX_FILE => {
                let reason = format!("it has {} bytes; the most is {MAX_FILE}", seen.size);
                return Err(Rejection::new("too_large", reason));
            }
            Kind::File => {}
        }
        let read = self.folder.read(Place::Pending, name);
        let parsed = match &read {
            Ok(bytes) => serde_json::from_slice(bytes).map_err(|error| error.to_string()),
            Err(error) => Err(error.to_string()),
        };
        match parsed {
            Ok(value) => Ok(Some(value)),
            Err(_) if seen.age() < SETTLES => Ok(None),
            Err(error) => {
                let reason = format!("it is not JSON, or was left half-written: {error}");
                Err(Rejection::new("not_json", reason))
            }
        }
    }

    async fn taken(&mut self, name: &str, seen: Seen, value: &Value) -> Result<Taken, Rejection> {
        if let (Some(request), None) = (value.get("request"), value.get("message_id")) {
            let inputs = wish(value)?;
            return self.begin(&seen.key(name), request.as_str().unwrap_or(""), inputs).await;
        }
        let document = Document::read(value).map_err(|violations| {
            let list: Vec<String> = violations.iter().map(ToString::to_string).collect();
            Rejection::new("invalid", list.join("; "))
        })?;
        let offer = match document {
            Document::Message(message) => message.into_offer(),
            Document::HandoffRequest(request) => request.into_offer(),
            other => {
                let reason = format!("a {} document does not say who hands to whom", other.name());
                return Err(Rejection::new("no_direction", reason));
            }
        };
        let id = offer.foreign.as_ref().map(|foreign| foreign.id.clone()).unwrap_or_default();
        let canonical = crate::mirror::file_name(&id);
        if self.known.values().any(|(_, known)| *known == canonical)
            || (name != canonical && self.holds(&canonical))
        {
            let reason = format!("a handoff {id} is there already");
            return Err(Rejection::new("duplicate", reason));
        }
        match &offer.from {
            Party::Agent(name) => {
                let agent: AgentName = name.parse().map_err(|_| {
                    Rejection::new("invalid", format!("`{name}` cannot be an agent's name"))
                })?;
                self.hand_on(&agent, offer, value).await
            }
            Party::Human | Party::Orchestrator => Err(Rejection::new(
                "not_yours",
                "only agents hand on by a message; a run begins with a file {\"request\": \"…\"}",
            )),
        }
    }

    fn holds(&self, name: &str) -> bool {
        Place::ALL
            .iter()
            .any(|place| self.folder.list(*place).is_ok_and(|all| all.contains_key(name)))
    }

    /// Ends the agent's turn with the work that it hands on.
    async fn hand_on(
        &mut self,
        agent: &AgentName,
        offer: Offer,
        value: &Value,
    ) -> Result<Taken, Rejection> {
        let order = self.turn_of(agent, value).await?;
        let run = order.key.run;
        let by = format!("{agent} by file");
        self.engine.external().accept(run, order.key.handoff, &by, None).await?;
        let completes = offer.reason == Reason::Completion;
        let summary = offer.summary.clone();
        self.engine.external().propose(order.key, offer).await?;
        let response = Response { summary, ..Response::new(agent.into(), Outcome::Resolved) };
        self.engine.external().complete(order.key, TurnResult::new(response)).await?;
        self.mirror_run(run).await;
        Ok(if completes { Taken::Done(run) } else { Taken::Mirrored })
    }

    /// Returns the current turn of an agent: in the run that the file names, or in the only one.
    async fn turn_of(&self, agent: &AgentName, value: &Value) -> Result<TurnOrder, Rejection> {
        let named = value.pointer("/context/run").and_then(Value::as_str);
        let runs = match named {
            Some(named) => named.parse().into_iter().collect(),
            None => self.engine.store().unfinished().await.unwrap_or_default(),
        };
        let mut found = Vec::new();
        for run in runs {
            let Ok(state) = self.engine.state(run).await else { continue };
            found.extend(state.outbox().filter(|order| order.agent == *agent));
        }
        match (found.pop(), found.is_empty()) {
            (Some(order), true) => Ok(order),
            (None, _) => {
                let reason =
                    format!("{agent} has no turn at the moment, so it has nothing to hand on");
                Err(Rejection::new("no_turn", reason))
            }
            (Some(_), false) => {
                let reason = format!("{agent} has several turns: say which in `context.run`");
                Err(Rejection::new("ambiguous", reason))
            }
        }
    }

    /// Starts a run for a person's request: `{"request": "…", "inputs": {…}}`. A file that could not be
    /// put away starts it once.
    async fn begin(
        &mut self,
        key: &str,
        request: &str,
        inputs: Fields,
    ) -> Result<Taken, Rejection> {
        if request.trim().is_empty() {
            return Err(Rejection::new("no_request", "the request is empty: say what to do"));
        }
        let workflow = (self.workflow)().map_err(|why| Rejection::new("workflow", why))?;
        if workflow.coordination.is_none() {
            // The folder is not closed to the agents of such a workflow.
            let reason = "stafette.toml has no [coordination] any more";
            return Err(Rejection::new("workflow", reason));
        }
        let created = RunCreated::new(Engine::NEW_RUN, Arc::new(workflow), request, "a file");
        let begun = self.engine.start_keyed(key, RunCreated { inputs, ..created }).await;
        Ok(Taken::Begun(begun?.0))
    }

    /// Moves a handled file that represents no handoff to `completed`.
    fn put_away(&mut self, name: &str, mut value: Value, run: RunId, status: &str) -> bool {
        value["status"] = status.into();
        value["context"]["run"] = json!(run);
        let text = serde_json::to_vec_pretty(&value).unwrap_or_default();
        let put = self.folder.write(Place::Completed, name, &text);
        match put.and_then(|_| self.folder.remove(Place::Pending, name)) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, name, "cannot be put away");
                false
            }
        }
    }

    fn turn_away(&mut self, name: &str, rejection: &Rejection, value: Option<Value>) -> bool {
        tracing::info!(name, code = rejection.code, reason = rejection.reason, "not taken");
        let note = note(name, rejection, value.as_ref());
        match self.folder.reject(Place::Pending, name, &note) {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, name, "cannot be moved to rejected");
                false
            }
        }
    }
}

/// The file with the reason why another one is not taken.
fn note(name: &str, rejection: &Rejection, value: Option<&Value>) -> Vec<u8> {
    let note = json!({
        "code": rejection.code,
        "reason": rejection.reason,
        "file": name,
        "message_id": value.and_then(|value| value.get("message_id")),
    });
    serde_json::to_vec_pretty(&note).unwrap_or_default()
}

/// Returns the inputs of a file that asks for a run.
///
/// # Errors
/// For a field that nobody reads: what it was to say, such as a limit, would be lost.
fn wish(value: &Value) -> Result<Fields, Rejection> {
    let is_unknown = |name: &&String| !["request", "inputs"].contains(&name.as_str());
    let fields = value.as_object().into_iter().flat_map(Fields::keys);
    let unknown: Vec<String> = fields.filter(is_unknown).map(|name| format!("`{name}`")).collect();
    if !unknown.is_empty() {
        let reason = format!(
            "a file that starts a run has `request` and `inputs`, and nothing else: leave out {}",
            unknown.join(", ")
        );
        return Err(Rejection::new("invalid", reason));
    }
    match value.get("inputs") {
        None | Some(Value::Null) => Ok(Fields::new()),
        Some(Value::Object(inputs)) => Ok(inputs.clone()),
        Some(_) => Err(Rejection::new("invalid", "/inputs: it is not an object")),
    }
}

/// Returns the handoff that one of our files represents.
pub(crate) fn ours(value: &Value) -> Option<(RunId, HandoffId)> {
    let context = value.get("context")?;
    let run = context.get("run")?.as_str()?.parse().ok()?;
    let handoff = context.get("handoff")?.as_str()?.parse().ok()?;
    Some((run, handoff))
}
