//! Who does what at the moment: every agent of every run, as people want to see them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::run::Stage;
use stafette_core::run::session::SessionState;
use stafette_core::{Handoff, HandoffId, Party, Run, RunId, State, Time, Usage};

use crate::{Engine, EngineError, RunView, clock};

/// The most characters of a text that is shown along with an agent; the handoff has it all.
const LONGEST: usize = 600;

/// What an agent means to the person who looks; the order is the order of urgency.
#[derive(
    Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Group {
    /// It cannot go on, or not well, before a person has answered.
    NeedsYou,
    /// It has a turn.
    Working,
    /// It has work, but something holds it back.
    Waiting,
    /// It has nothing to do.
    Idle,
    /// Its run is over.
    Done,
}

/// An agent of a run, as people and programs see it.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct AgentView {
    /// Its run.
    pub run: RunId,
    /// The digits of the run that people type.
    pub short: String,
    /// What the user asked for.
    pub request: String,
    /// Where the run stands, in a word.
    pub status: String,
    /// The run's last event.
    pub seq: u64,
    /// Its name; `orchestrator` when Stafette itself asks.
    pub agent: String,
    /// What it means to the person who looks.
    pub group: Group,
    /// How its process stands, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionState>,
    /// What it is doing: in its own words, when it says something.
    pub doing: String,
    /// Since when.
    pub since: String,
    /// Until when at the latest, when that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
    /// What it is working on, or waits with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work: Option<Work>,
    /// The question that it asked and that is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub question: Option<HandoffId>,
    /// What it has used so far.
    pub spent: Usage,
}

/// A handoff in an agent's hands.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Work {
    /// The handoff.
    pub handoff: HandoffId,
    /// Where it stands, in a word.
    pub state: String,
    /// Who gave it.
    pub from: String,
    /// Why.
    pub reason: String,
    /// What it is about.
    pub summary: String,
    /// The names of what came along.
    pub inputs: Vec<String>,
    /// How often it has gone round its loop, from 1.
    pub round: u32,
    /// Which try, from 1.
    pub attempt: u32,
}

impl Engine {
    /// The agents of all runs that live, and those who worked in the newest `finished` ones that
    /// have ended. The most urgent come first, within that the newest run.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn agents(&self, finished: usize) -> Result<Vec<AgentView>, EngineError> {
        let mut living = self.living();
        // What has ended is in the store before anyone sees it here.
        living.retain(|run| !run.status().is_final());
        let now = clock::now();
        let mut views: Vec<AgentView> = living.iter().flat_map(|run| of_run(now, run)).collect();
        // Runs that live are among the newest, so that they have to be read past.
        let mut rows = self.runs(finished.saturating_add(living.len())).await?;
        rows.retain(|row| is_over(row) && living.iter().all(|run| run.id != row.run));
        rows.truncate(finished);
        views.extend(rows.iter().flat_map(of_row));
        views.sort_by(|a, b| {
            let place = |view: &AgentView| (view.group, std::cmp::Reverse(view.run));
            place(a).cmp(&place(b)).then_with(|| a.agent.cmp(&b.agent))
        });
        Ok(views)
    }
}

fn is_over(row: &RunView) -> bool {
    matches!(row.status.as_str(), "succeeded" | "failed" | "cancelled")
}

/// Of a run that has ended, only its row is looked at: those who have worked, and when nobody has,
/// the orchestrator who called it off.
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

/// The agents of a run, and the orchestrator when it asks something itself.
fn of_run(now: Time, run: &Run) -> Vec<AgentView> {
    let asks = asked(run).any(|question| *asker(run, question) == Party::Orchestrator);
    let orchestrator = asks.then_some(Party::Orchestrator);
    let agents = run.workflow.agents.keys().map(Party::from);
    agents.chain(orchestrator).map(|party| Look { now, run, party: &party }.view()).collect()
}

/// The questions that are open.
fn asked(run: &Run) -> impl Iterator<Item = &Handoff> {
    run.open().filter(|handoff| matches!(handoff.state, State::Asked { .. }))
}

/// On whose behalf a question is asked: the orchestrator passes on what agents ask it for.
fn asker<'a>(run: &'a Run, question: &'a Handoff) -> &'a Party {
    let mut asked = question;
    while asked.offer.from == Party::Orchestrator {
        // What is passed on returns to an older handoff, so this ends.
        let passed_on = asked.returns_to.filter(|id| *id < asked.id);
        let Some(earlier) = passed_on.and_then(|id| run.handoff(id)) else { break };
        asked = earlier;
    }
    &asked.offer.from
}

/// A look at one party of a run.
struct Look<'a> {
    now: Time,
    run: &'a Run,
    party: &'a Party,
}

/// What was seen: the group, what it is doing, since when, and until when.
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

    /// What it has a turn for, otherwise the oldest that it waits with.
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
                Some(turn) => {
                    let is_ballot = stafette_core::team::council::is_turn(&work.offer)
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

    /// Who has these handoffs, each with its number.
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

/// What a handoff is about, by the first who said something.
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
