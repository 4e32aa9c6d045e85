//! A run begins: the user's request becomes the first handoff.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::budget::{Forecast, Purse};
use super::propose::{self, Proposal};
use super::{Draft, Run, Stage, Status, Tally, close};
use crate::handoff::Foreign;
use crate::team::{self, Inheritance};
use crate::trace::Traceparent;
use crate::workflow::Budget;
use crate::{
    AgentName, Event, Fields, HandoffId, Kind, Offer, Party, Reason, RunId, Time, Workflow,
};

/// The run was created. Includes its workflow, so that replaying needs no file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct RunCreated {
    /// The id of the run.
    pub run: RunId,
    /// The workflow that the run follows.
    pub workflow: Arc<Workflow>,
    /// The user's request, word for word.
    pub request: String,
    /// The inputs that are known from the start.
    #[serde(default)]
    pub inputs: Fields,
    /// The amounts that the run may spend.
    pub budget: Budget,
    /// The name of the requester.
    pub by: String,
    /// The requester's own id for the run, if it came through a protocol with its own ids.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub origin: Option<Foreign>,
    /// The span of the requester's own trace in which the run was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trace: Option<Traceparent>,
    /// The expected cost of each agent's turns; an agent without an entry may cost any amount.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forecasts: Option<BTreeMap<String, Forecast>>,
    /// The agent that gets the request instead of the workflow's entry; then no coordinator hands out
    /// work, and its result ends the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entry: Option<AgentName>,
    /// The initial state of the coordinators.
    #[serde(flatten)]
    pub team: Inheritance,
}

impl RunCreated {
    /// Creates a run of `workflow` with the workflow's own budget.
    pub fn new(
        run: RunId,
        workflow: Arc<Workflow>,
        request: impl Into<String>,
        by: impl Into<String>,
    ) -> Self {
        RunCreated {
            run,
            budget: workflow.budget.clone(),
            workflow,
            request: request.into(),
            inputs: Fields::new(),
            by: by.into(),
            origin: None,
            trace: None,
            forecasts: None,
            entry: None,
            team: Inheritance::default(),
        }
    }
}

impl Run {
    /// Returns the events of a new run.
    pub fn begin(now: Time, created: RunCreated) -> Vec<Event> {
        let run = Run::new(now, &created);
        let only = created.entry.as_ref().map(Party::from);
        let is_only = only.is_some();
        let entry = only.unwrap_or_else(|| created.workflow.workflow.entry.clone());
        let given = created.inputs.clone();
        let offer = Offer {
            summary: created.request.clone(),
            outputs: created.inputs.clone(),
            foreign: created.origin.clone(),
            ..Offer::new(Party::Human, entry, Kind::Transfer, Reason::TaskHandoff)
        };
        let mut draft = Draft { run, now, events: vec![Event::RunCreated(Box::new(created))] };
        if (is_only || !team::begin(&mut draft, &given))
            && let Err(refusal) = propose::propose(&mut draft, Proposal::of(offer))
        {
            close::end(&mut draft, Status::Failed, &refusal.to_string());
        }
        let first: Vec<HandoffId> = draft.run.open().map(|handoff| handoff.id).collect();
        team::begun(&mut draft, &first);
        draft.advance();
        draft.events
    }

    pub(crate) fn new(at: Time, created: &RunCreated) -> Run {
        Run {
            id: created.run,
            seq: 1,
            workflow: created.workflow.clone(),
            request: created.request.clone(),
            trace: created.trace,
            stage: Stage::Active,
            handoffs: BTreeMap::new(),
            next_handoff: 1,
            tally: Tally::default(),
            recent: VecDeque::new(),
            last_use: Vec::new(),
            purse: Purse {
                limit: created.budget.clone(),
                forecasts: created.forecasts.clone(),
                ..Purse::default()
            },
            sessions: BTreeMap::new(),
            mail: super::message::Mailbox::default(),
            team: team::new(at, created),
            created_at: at,
            updated_at: at,
        }
    }
}
