//! The current activity of every agent of every run, for display to people.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::run::Stage;
use stafette_core::run::session::SessionState;
use stafette_core::{Handoff, HandoffId, Party, Run, RunId, State, Time, Usage};

use crate::record::is_offered;
use crate::{Engine, EngineError, RunView, clock};

/// The maximum length, in characters, of a text shown with an agent; the handoff has it in full.
const LONGEST: usize = 600;

/// The urgency of an agent for the person who looks at it, most urgent first.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// It cannot continue, or not well, until a person answers.
    NeedsYou,
    /// It has a turn in progress.
    Working,
    /// It has work, but something holds it back.
    Waiting,
    /// It has no work at the moment.
    Idle,
    /// Its run has ended.
    Done,
}

/// An agent of a run, as people and programs see it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentView {
    /// The id of the agent's run.
    pub run: RunId,
    /// The short form of the run's id that people type.
    pub short: String,
    /// The request of the user that the run works on.
    pub request: String,
    /// The status of the run, as one word.
    pub status: String,
    /// The sequence number of the run's last event.
    pub seq: u64,
    /// The name of the agent; `orchestrator` when Stafette itself asks.
    pub agent: String,
    /// The urgency group that the agent is in.
    pub group: Group,
    /// The state of its process; `None` when it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionState>,
    /// The current activity: the agent's own words if it reported some.
    pub doing: String,
    /// The time at which this activity began.
    pub since: String,
    /// The latest time at which it ends; `None` when there is no deadline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// The handoff that it works on or waits with; `None` when it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// The open question that it asked, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<HandoffId>,
    /// The tokens and money that it has used so far.
    pub spent: Usage,
}

/// A handoff in an agent's hands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    /// The id of the handoff.
    pub handoff: HandoffId,
    /// The state of the handoff, as one word.
    pub state: String,
    /// The name of the giver.
    pub from: String,
    /// The reason that the giver stated for the handoff.
    pub reason: String,
    /// The summary of the work.
    pub summary: String,
    /// The names of the inputs that came with it.
    pub inputs: Vec<String>,
    /// The round of its loop, counted from 1.
    pub round: u32,
    /// The number of the attempt, counted from 1.
    pub attempt: u32,
}

impl AgentView {
    /// Returns the agents of all active runs, and those that worked in the newest `finished` runs
    /// that have ended. The most urgent come first, and within a group those of the newest run.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn list(engine: &Engine, finished: usize) -> Result<Vec<Self>, EngineError> {
        let mut living = engine.living();
        // A run that has ended is in the store before it is visible here.
        living.retain(|run| !run.status().is_final());
        let now = clock::now();
        let mut views: Vec<AgentView> = living.iter().flat_map(|run| of_run(now, run)).collect();
        views.iter_mut().filter(|view| engine.stopped().contains(view.run)).for_each(stop);
        // Active runs are among the newest, so as many rows more have to be read.
        let mut rows = engine.runs(finished.saturating_add(living.len())).await?;
        rows.retain(|row| row.is_over() && living.iter().all(|run| run.id != row.run));
        rows.truncate(finished);
        views.extend(rows.iter().flat_map(of_row));
        views.sort_by(|a, b| {
            let place = |view: &AgentView| (view.group, std::cmp::Reverse(view.run));
            place(a).cmp(&place(b)).then_with(|| a.agent.cmp(&b.agent))
        });
        Ok(views)
    }
}

/// Nothing is started for it until somebody continues its run.
fn stop(view: &mut AgentView) {
    view.status = "stopped".to_owned();
    if view.group == Group::Working {
        view.group = Group::Waiting;
        view.doing = "stopped: continues with its run".to_owned();
    }
}

/// Of a run that has ended, only the row is read: the agents that worked, or the orchestrator that
/// cancelled the run when none did.
fn of_row(row: &RunView) -> Vec<AgentView> {
    let view = |agent: &str, spent: Usage| AgentView {
        run: row.run,
        short: row.run.short(),
        request: short(&row.request),
        status: row.status.clone(),
        seq: row.seq,
        agent: agent.to_owned(),
        group: Group::Done,
        session: None,
        doing: short(row.why.as_deref().unwrap_or_default()),
        since: row.updated_at.clone(),
        until: None,
        work: None,
        question: None,
        spent,
    };
    let worked = row.purse.agents.iter().filter(|(_, account)| account.turns > 0);
    let views: Vec<AgentView> = worked.map(|(agent, account)| view(agent, account.spent)).collect();
    match views.is_empty() {
        true => vec![view(Party::Orchestrator.as_str(), Usage::default())],
        false => views,
    }
}

/// Returns the agents of a run, and the orchestrator when it asks something itself.
fn of_run(now: Time, run: &Run) -> Vec<AgentView> {
    let asks = asked(run).any(|question| *asker(run, question) == Party::Orchestrator);
    let orchestrator = asks.then_some(Party::Orchestrator);
    let agents = run.workflow.agents.keys().map(Party::from);
    agents.chain(orchestrator).map(|party| Look { now, run, party: &party }.view()).collect()
}

/// The open questions of a run.
fn asked(run: &Run) -> impl Iterator<Item = &Handoff> {
    run.open().filter(|handoff| matches!(handoff.state, State::Asked { .. }))
}

/// The party on whose behalf a question is asked: the orchestrator passes on the questions of
/// agents.
fn asker<'a>(run: &'a Run, question: &'a Handoff) -> &'a Party {
    let mut asked = question;
    while asked.offer.from == Party::Orchestrator {
        // A question that is passed on returns to an older handoff, so the loop ends.
        let passed_on = asked.returns_to.filter(|id| *id < asked.id);
        let Some(earlier) = passed_on.and_then(|id| run.handoff(id)) else { break };
        asked = earlier;
    }
    &asked.offer.from
}

/// A view of one party of a run.
struct Look<'a> {
    now: Time,
    run: &'a Run,
    party: &'a Party,
}

/// The result of a look: group, activity, start of the activity, and deadline.
type Seen = (Group, String, Time, Option<Time>);

impl<'a> Look<'a> {
    fn view(&self) -> AgentView {
        let (run, name) = (self.run, self.party.as_str());
        let question = self.question();
        let work = self.work();
        let (group, doing, since, until) = self.seen(question, work);
        AgentView {
            run: run.id,
            short: run.id.short(),
            request: short(&run.request),
            status: run.status().word().to_owned(),
            seq: run.seq,
            agent: name.to_owned(),
            group,
            session: run.sessions.get(name).copied(),
            doing: short(&doing),
            since: since.rfc3339(),
            until: until.map(Time::rfc3339),
            work: work.map(of_handoff),
            question: question.map(|question| question.id),
            spent: run.purse.agents.get(name).map(|account| account.spent).unwrap_or_default(),
        }
    }

    /// The oldest open question that it asked, or that its work waits for.
    fn question(&self) -> Option<&'a Handoff> {
        let held = |question: &Handoff| {
            self.mine().any(|handoff| {
                matches!(&handoff.state, State::Blocked { on } if on.contains(&question.id))
            })
        };
        asked(self.run).find(|question| asker(self.run, question) == self.party || held(question))
    }

    /// The handoff of its current turn, otherwise the oldest that it waits with.
    fn work(&self) -> Option<&'a Handoff> {
        let out = self.mine().find(|handoff| handoff.state.turn().is_some());
        out.or_else(|| self.mine().next())
    }

    fn mine(&self) -> impl Iterator<Item = &'a Handoff> {
        let party = self.party;
        self.run.open().filter(move |handoff| handoff.offer.to == *party)
    }

    fn seen(&self, question: Option<&Handoff>, work: Option<&Handoff>) -> Seen {
        match (question, work) {
            (Some(question), _) => {
                let until = match question.state {
                    State::Asked { until } => Some(until),
                    _ => None,
                };
                let asked = question.offer.question.as_ref();
                let details = asked.map_or("", |asked| asked.details.as_str());
                (Group::NeedsYou, details.to_owned(), question.admitted_at, until)
            }
            (None, Some(work)) => self.at_work(work),
            (None, None) => self.idle(),
        }
    }

    fn at_work(&self, work: &Handoff) -> Seen {
        let since = work.admitted_at;
        let (what, until) = match &work.state {
            State::Blocked { on } => (format!("waits for {}", self.names(on)), None),
            _ if self.run.stage == Stage::Paused && work.state.turn().is_none() => {
                ("the run is paused".to_owned(), None)
            }
            State::Pending { not_before } if *not_before > self.now => {
                (format!("attempt {} follows", work.attempt), Some(*not_before))
            }
            State::Pending { .. } => ("waits for its turn".to_owned(), None),
            state => match state.turn() {
                Some(turn) if is_offered(self.run, work) => {
                    let what = "waits for its agent to take the turn".to_owned();
                    (what, Some(turn.finish_by))
                }
                Some(turn) => {
                    let is_ballot = stafette_core::team::council::is_turn(&work.constraints)
                        && self.run.votes_blindly();
                    let said = turn.note.clone().filter(|_| !is_ballot);
                    let doing = said.unwrap_or_else(|| about(work).to_owned());
                    return (Group::Working, doing, turn.ordered_at, Some(turn.finish_by));
                }
                None => (String::new(), None),
            },
        };
        (Group::Waiting, what, since, until)
    }

    fn idle(&self) -> Seen {
        let last = self.run.handoffs.values().rev().find_map(|handoff| match &handoff.state {
            State::Closed(closing) if handoff.offer.to == *self.party => Some((handoff, closing)),
            _ => None,
        });
        match last {
            Some((handoff, closing)) => {
                let what = format!("{} is {}", handoff.id, handoff.state.word());
                (Group::Idle, what, closing.at, None)
            }
            None => (Group::Idle, "had nothing to do yet".to_owned(), self.run.created_at, None),
        }
    }

    /// The holders of these handoffs, each with the number of its handoff.
    fn names(&self, ids: &[HandoffId]) -> String {
        let name = |id: &HandoffId| match self.run.handoff(*id) {
            Some(handoff) => format!("{} ({id})", handoff.offer.to),
            None => id.to_string(),
        };
        ids.iter().map(name).collect::<Vec<_>>().join(", ")
    }
}

fn of_handoff(handoff: &Handoff) -> Work {
    Work {
        handoff: handoff.id,
        state: handoff.state.word().to_owned(),
        from: handoff.offer.from.to_string(),
        reason: handoff.offer.reason.as_str().to_owned(),
        summary: short(about(handoff)),
        inputs: handoff.inputs.keys().take(64).map(|key| short(key)).collect(),
        round: handoff.trail.lap().map_or(1, |lap| lap.round),
        attempt: handoff.attempt,
    }
}

/// The subject of a handoff: the first summary that was given for it.
fn about(handoff: &Handoff) -> &str {
    let offer = &handoff.offer;
    let said = [offer.summary.as_str(), offer.detail.as_str()];
    let said = said.into_iter().chain(offer.instructions.as_deref());
    said.into_iter().find(|text| !text.is_empty()).unwrap_or_default()
}

fn short(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests;
