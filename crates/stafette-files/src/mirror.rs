//! Mirrors each handoff to a file, in the folder of its state.

use serde_json::{Value, json};
use stafette_core::handoff::State;
use stafette_core::team::council;
use stafette_core::wire::message::{Message, MessageContext, MessageStatus, WorkflowType};
use stafette_core::{Fields, Handoff, HandoffId, RunId};
use stafette_engine::{HandoffView, Stored};
use uuid::Uuid;

use crate::Coordination;
use crate::folder::Place;
use crate::intake::ours;

impl Coordination {
    /// Finds our files, and updates those of every open run.
    pub(crate) async fn catch_up(&mut self) {
        for place in Place::ALL {
            for name in self.folder.list(place).unwrap_or_default().into_keys() {
                let Ok(bytes) = self.folder.read(place, &name) else { continue };
                let value: Value = serde_json::from_slice(&bytes).unwrap_or_default();
                let Some(key) = ours(&value) else { continue };
                if is_own_name(&value, &name) {
                    self.known.insert(key, (place, name));
                }
            }
        }
        for run in self.engine.store().unfinished().await.unwrap_or_default() {
            self.mirror_run(run).await;
        }
        self.mirror_state().await;
    }

    pub(crate) async fn mirror_event(&mut self, stored: &Stored) {
        let run = stored.run;
        match (stored.entry.name.as_str(), stored.entry.handoff) {
            ("run_adopted" | "run_finished", _) => self.mirror_run(run).await,
            // Closing one may change other open handoffs; ended ones stay as they are.
            ("handoff_closed", Some(handoff)) => {
                let state = self.engine.state(run).await;
                let open = state.iter().flat_map(|state| state.open()).map(|open| open.id);
                let touched: Vec<_> = open.chain([handoff]).collect();
                for id in touched {
                    self.mirror(run, id).await;
                }
            }
            // The results of a blind vote may be open by now.
            ("council_heard", Some(handoff)) => {
                let state = self.engine.state(run).await;
                let blind = state.iter().filter(|state| {
                    let rules = state.workflow.council.as_ref();
                    rules.is_some_and(|rules| rules.blind_first_vote) && !state.votes_blindly()
                });
                let ballots = blind.flat_map(|state| state.handoffs.values());
                let ballots = ballots.filter(|it| council::is_turn(&it.constraints));
                let touched: Vec<_> = ballots.map(|ballot| ballot.id).chain([handoff]).collect();
                for id in touched {
                    self.mirror(run, id).await;
                }
            }
            (_, Some(handoff)) => self.mirror(run, handoff).await,
            (_, None) => {}
        }
    }

    pub(crate) async fn mirror_run(&mut self, run: RunId) {
        for row in self.engine.log().handoffs(run).await.unwrap_or_default() {
            self.show(run, row.id, &row.body);
        }
    }

    pub(crate) async fn mirror(&mut self, run: RunId, handoff: HandoffId) {
        if let Ok(Some(row)) = self.engine.log().handoff(run, handoff).await {
            self.show(run, handoff, &row.body);
        }
    }

    /// Writes a handoff's file to its folder, and removes it from the old one.
    fn show(&mut self, run: RunId, id: HandoffId, body: &str) {
        // A refused proposal never became a handoff: its file is in `rejected`.
        let Ok(HandoffView::Admitted(handoff)) = serde_json::from_str(body) else { return };
        let (place, name, document) = shown(run, &handoff);
        let text = serde_json::to_vec_pretty(&document).unwrap_or_default();
        let before = self.known.get(&(run, id)).cloned();
        let is_over = matches!(handoff.state, State::Closed(_));
        if is_over
            && before.as_ref() == Some(&(place, name.clone()))
            && self.folder.lacks(place, &name)
        {
            // The file existed and was removed by the clean-up.
            return;
        }
        let same = self.folder.read(place, &name).is_ok_and(|there| there == text);
        if !same {
            match self.folder.write(place, &name, &text) {
                Ok(seen) => self.seen.insert((place, name.clone()), seen),
                Err(error) => {
                    tracing::warn!(%error, name, "cannot be mirrored");
                    return;
                }
            };
        }
        if let Some((old, old_name)) = before
            && (old, &old_name) != (place, &name)
        {
            let _ = self.folder.remove(old, &old_name);
        }
        self.known.insert((run, id), (place, name));
    }
}

/// Returns the folder of a handoff's file, its name, and its content.
fn shown(run: RunId, handoff: &Handoff) -> (Place, String, Value) {
    let (place, status) = match &handoff.state {
        State::Pending { .. } | State::Ordered(_) | State::Parked { .. } | State::Asked { .. } => {
            (Place::Pending, MessageStatus::Pending)
        }
        State::Accepted(_) | State::Running(_) | State::Undecided | State::Blocked { .. } => {
            (Place::Accepted, MessageStatus::Accepted)
        }
        State::Closed(_) => match handoff.state.word() {
            "resolved" | "partial" => (Place::Completed, MessageStatus::Completed),
            _ => (Place::Rejected, MessageStatus::Rejected),
        },
    };
    let mut extra = Fields::new();
    extra.insert("run".into(), json!(run));
    extra.insert("handoff".into(), json!(handoff.id));
    let round = handoff.trail.lap().map_or(1, |lap| lap.round);
    let context = MessageContext {
        workflow: WorkflowType::Feature,
        spec: handoff.offer.item.clone(),
        iteration: Some(u64::from(round).into()),
        extra: extra.clone(),
    };
    let own = Uuid::new_v5(&run.0, handoff.id.to_string().as_bytes());
    let mut message = Message::from_offer(&handoff.offer, own, handoff.admitted_at, context);
    message.status = status;
    // A message from outside keeps its own context; the position in the run is added by us.
    message.context.extra.extend(extra);
    let name = file_name(&message.message_id.0);
    let mut document = json!(message);
    if let State::Closed(closing) = &handoff.state {
        document["response"] = json!(handoff.answer());
        if let Some(failure) = &closing.response.failure {
            document["reason"] = failure.as_str().into();
        }
    }
    (place, name, document)
}

/// Returns the name of a message's file. An id that is no plain file name is replaced by a UUID.
pub(crate) fn file_name(id: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    match !id.is_empty() && id.len() <= 100 && id.chars().all(plain) {
        true => format!("handoff-{id}.json"),
        false => format!("handoff-{}.json", Uuid::new_v5(&Uuid::NAMESPACE_OID, id.as_bytes())),
    }
}

pub(crate) fn is_own_name(value: &Value, name: &str) -> bool {
    let id = value.get("message_id").and_then(Value::as_str);
    id.is_some_and(|id| file_name(id) == name)
}
