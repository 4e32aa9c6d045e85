//! Plans time for tasks: estimates, free time, and the current calendar.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jiff::tz::TimeZone;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Millis, Priority, Time};
use stafette_knowledge::calendar::occurrence::{Agenda, Occurrence, agenda};
use stafette_knowledge::calendar::proposal::{Proposal, Stand};
use stafette_knowledge::calendar::slots::{UnplacedTask, Wanted, propose};
use stafette_knowledge::calendar::{Calendar, CalendarError, Entry, Seen};
use stafette_knowledge::graph::NodeKey;
use stafette_knowledge::mind::Change;
use stafette_knowledge::rights::{Access, Data};

use crate::ranking::{Learned, in_force};
use crate::{Actor, StageError, Stages, clock};

/// The longest task, in hours.
pub(crate) const LONGEST: f64 = 1000.0;

/// The longest span of one request.
pub(crate) const SPAN: Millis = Millis::hours(100 * 24);

/// A task as an agent wants it planned.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskWish {
    /// The id, unique within the plan.
    pub id: String,
    /// The work to do, in a few words.
    pub title: String,
    /// The agent's own estimate, in hours.
    pub hours: f64,
    /// The kind of work; estimates are learned per kind.
    #[serde(default)]
    pub kind: Option<String>,
    /// The urgency of the task.
    #[serde(default)]
    pub priority: Priority,
    /// The moment by which it must be done, as RFC 3339; `None` without a deadline.
    #[serde(default)]
    pub deadline: Option<String>,
    /// The earliest start, as RFC 3339; `None` if it can begin immediately.
    #[serde(default)]
    pub not_before: Option<String>,
    /// The ids of the tasks that must be done first.
    #[serde(default)]
    pub after: Vec<String>,
}

/// The planned effort of a task, and its derivation.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The id of the task within the plan.
    pub task: String,
    /// The agent's estimate, in hours.
    pub estimated: f64,
    /// The learned factor for its kind of work; 1 if nothing was learned.
    pub factor: f64,
    /// The planned effort in hours: estimate times factor.
    pub hours: f64,
}

/// One block of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Planned {
    /// The id of its task within the plan.
    pub task: String,
    /// The title of the task.
    pub title: String,
    /// The start of the block, as RFC 3339.
    pub start: String,
    /// The end of the block, as RFC 3339.
    pub end: String,
}

/// A plan that waits for a person.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanView {
    /// The id of the decision that it carries out.
    pub decision: String,
    /// The tasks as requested.
    pub tasks: Vec<TaskWish>,
    /// The planned effort of each task.
    pub estimates: Vec<Estimate>,
    /// The proposed blocks, by start.
    pub blocks: Vec<Planned>,
    /// The tasks for which no time was found.
    pub homeless: Vec<UnplacedTask>,
    /// The version of the parameters that was used.
    pub version: u32,
    /// The insights that made a difference.
    pub learned: Vec<Learned>,
}

/// The events and proposals between two moments.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WeekView {
    /// The events of the calendar.
    pub events: Vec<Occurrence>,
    /// The proposed blocks with their states.
    pub proposals: Vec<Proposal>,
    /// One sentence for each part of the calendar that could not be read.
    pub doubts: Vec<String>,
}

/// A calendar and its last known content.
#[derive(Debug)]
pub(crate) struct CalendarCache {
    pub(crate) calendar: Arc<dyn Calendar>,
    page: tokio::sync::Mutex<Page>,
    trouble: Mutex<Option<String>>,
}

#[derive(Debug, Default)]
struct Page {
    seen: Seen,
    entries: BTreeMap<String, Entry>,
}

impl CalendarCache {
    pub(crate) fn new(calendar: Arc<dyn Calendar>) -> Self {
        CalendarCache { calendar, page: tokio::sync::Mutex::default(), trouble: Mutex::new(None) }
    }

    /// Returns the reason why it cannot be used at the moment; `None` if it can.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns all entries as they are now.
    pub(crate) async fn entries(&self) -> Result<Vec<Entry>, CalendarError> {
        let mut page = self.page.lock().await;
        let looked = self.calendar.changes(&page.seen).await;
        let trouble = looked.as_ref().err().map(ToString::to_string);
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
        let changes = looked?;
        for name in changes.removed {
            page.entries.remove(&name);
        }
        for entry in changes.changed {
            page.entries.insert(entry.name.clone(), entry);
        }
        page.seen = changes.seen;
        Ok(page.entries.values().cloned().collect())
    }
}

impl Stages {
    pub(crate) fn diary(&self) -> Result<&CalendarCache, StageError> {
        self.0.diary.as_ref().ok_or(StageError::NoCalendar)
    }

    /// Returns the user's time zone; invalid ones were refused when the workflow was checked.
    pub(crate) fn zone(&self) -> TimeZone {
        TimeZone::get(&self.0.settings.week.timezone).unwrap_or(TimeZone::UTC)
    }

    /// Returns what takes place between two moments; nothing without a calendar.
    pub(crate) async fn agenda(&self, from: Time, to: Time) -> Result<Agenda, StageError> {
        let Some(diary) = &self.0.diary else {
            return Ok(Agenda { occurrences: Vec::new(), doubts: Vec::new() });
        };
        Ok(agenda(&diary.entries().await?, from, to, &self.zone()))
    }

    /// Returns the events and proposals between two moments.
    ///
    /// # Errors
    /// If the actor lacks the right, the time is invalid, or the calendar cannot be reached.
    pub async fn between(
        &self,
        actor: &Actor,
        from: Time,
        to: Time,
    ) -> Result<WeekView, StageError> {
        actor.may(Access::Read, Data::Calendar)?;
        if to <= from || to.since(from) > SPAN {
            return Err(StageError::Span);
        }
        let proposals = self.0.proposals.between(from, to).await?;
        let Agenda { occurrences, doubts } = self.agenda(from, to).await?;
        Ok(WeekView { events: occurrences, proposals, doubts })
    }

    /// Returns everything that takes time between two moments: the calendar, and proposed blocks
    /// that are not in it.
    pub(crate) async fn busy(&self, from: Time, to: Time) -> Result<Vec<Occurrence>, StageError> {
        let calendar = self.agenda(from, to).await?.occurrences;
        self.with_blocks(calendar, from, to, Stand::holds_time).await
    }

    /// Adds the blocks outside the calendar that `counting` selects to the events.
    pub(crate) async fn with_blocks(
        &self,
        mut busy: Vec<Occurrence>,
        from: Time,
        to: Time,
        counting: fn(Stand) -> bool,
    ) -> Result<Vec<Occurrence>, StageError> {
        let proposals = self.0.proposals.between(from, to).await?;
        let waiting = proposals
            .iter()
            .filter(|one| counting(one.state) && !busy.iter().any(|event| event.uid == one.id));
        let waiting: Vec<Occurrence> = waiting.map(Proposal::occurrence).collect();
        busy.extend(waiting);
        Ok(busy)
    }

    /// Returns the span in which free time is searched.
    pub(crate) fn ahead(&self) -> (Time, Time) {
        let (now, home) = (clock::now(), self.0.settings.calendar.as_ref());
        (now, now + home.map_or(Millis::hours(14 * 24), |home| home.ahead))
    }

    /// Plans these tasks: the effort of each by what was learned, and free time for it.
    ///
    /// # Errors
    /// If a task is invalid, or the calendar cannot be reached.
    pub async fn plan(
        &self,
        actor: &Actor,
        decision: String,
        tasks: Vec<TaskWish>,
    ) -> Result<PlanView, StageError> {
        actor.may(Access::Write, Data::Tasks)?;
        actor.may(Access::Read, Data::Calendar)?;
        let ledger = self.ledger().await?;
        let current = ledger.current();
        let factors = &current.parameters.estimates;
        let mut estimates = Vec::new();
        let mut wanted = Vec::new();
        for (place, task) in tasks.iter().enumerate() {
            check(&tasks, place, task)?;
            let factor = task.kind.as_ref().and_then(|kind| factors.get(kind)).copied();
            let factor = factor.unwrap_or(1.0);
            let hours = task.hours * factor;
            estimates.push(Estimate {
                task: task.id.clone(),
                estimated: task.hours,
                factor,
                hours,
            });
            wanted.push(want(task, hours)?);
        }
        let (from, to) = self.ahead();
        let plan = propose(&wanted, &self.busy(from, to).await?, &self.week(), (from, to))?;
        let blocks = plan.blocks.iter().map(|block| Planned {
            task: block.task.id.clone(),
            title: block.title.clone(),
            start: block.start.rfc3339(),
            end: block.end.rfc3339(),
        });
        let kinds: Vec<&String> = tasks.iter().filter_map(|task| task.kind.as_ref()).collect();
        let learned = in_force(&ledger, |change| match change {
            Change::Estimate { kind, .. } => kinds.contains(&kind),
            Change::Weight { .. } => false,
        });
        Ok(PlanView {
            decision,
            estimates,
            blocks: blocks.collect(),
            homeless: plan.homeless,
            version: current.number,
            learned,
            tasks,
        })
    }
}

fn check(all: &[TaskWish], place: usize, task: &TaskWish) -> Result<(), StageError> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if task.id.is_empty() || task.id.len() > 40 || !task.id.chars().all(plain) {
        return Err(StageError::mistaken(format!(
            "the task's id `{}` must have 1 to 40 letters, digits, `-` or `_`",
            task.id
        )));
    }
    if all[..place].iter().any(|other| other.id == task.id) {
        return Err(StageError::mistaken(format!("two tasks are called `{}`", task.id)));
    }
    if let Some(none) = task.after.iter().find(|id| !all.iter().any(|other| other.id == **id)) {
        let id = &task.id;
        return Err(StageError::mistaken(format!(
            "task `{id}` comes after `{none}`, which is no task"
        )));
    }
    if !(task.hours > 0.0 && task.hours <= LONGEST) {
        return Err(StageError::mistaken(format!(
            "task `{}` takes {} hours, it must be more than 0 and at most {LONGEST}",
            task.id, task.hours
        )));
    }
    Ok(())
}

fn want(task: &TaskWish, hours: f64) -> Result<Wanted, StageError> {
    let moment = |text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => Time::parse(text).map(Some).ok_or_else(|| {
            StageError::mistaken(format!("task `{}`: `{text}` is not a moment", task.id))
        }),
    };
    Ok(Wanted {
        task: NodeKey::task(&task.id),
        title: task.title.clone(),
        // Bounded above, and at least a minute.
        length: Millis::minutes(((hours * 60.0).round() as u64).max(1)),
        priority: task.priority,
        deadline: moment(&task.deadline)?,
        not_before: moment(&task.not_before)?,
        after: task.after.iter().map(|id| NodeKey::task(id)).collect(),
    })
}

impl PlanView {
    /// Returns the plan as a table for people.
    pub fn table(&self) -> String {
        let mut lines = Vec::new();
        for block in &self.blocks {
            lines.push(format!("{} – {}  {}", block.start, block.end, block.title));
        }
        for homeless in &self.homeless {
            lines.push(format!("no place for {}: {}", homeless.task, homeless.why));
        }
        for estimate in self.estimates.iter().filter(|estimate| estimate.factor != 1.0) {
            let Estimate { task, estimated, factor, hours } = estimate;
            lines.push(format!(
                "{task}: {estimated} h estimated, {hours:.2} h planned (×{factor:.2})"
            ));
        }
        for learned in &self.learned {
            let Learned { says, insight, version, .. } = learned;
            lines.push(format!("Learned: {says} ({insight}, version {version})"));
        }
        lines.join("\n")
    }
}
