//! Time for tasks: how long each takes, where there is room, and the calendar as it is.

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
use crate::{Actor, Fault, Stages, clock};

/// The longest task, in hours.
pub(crate) const LONGEST: f64 = 1000.0;

/// The longest time that is looked at.
pub(crate) const SPAN: Millis = Millis::hours(100 * 24);

/// A task as an agent wishes it to be planned.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct TaskWish {
    /// Its name among the others.
    pub id: String,
    /// What is to be done.
    pub title: String,
    /// How many hours it should take, by the agent's own estimate.
    pub hours: f64,
    /// The kind of work, by which estimates are learned.
    #[serde(default)]
    pub kind: Option<String>,
    /// How urgent it is.
    #[serde(default)]
    pub priority: Priority,
    /// When it must be done, as RFC 3339.
    #[serde(default)]
    pub deadline: Option<String>,
    /// When it can begin, as RFC 3339.
    #[serde(default)]
    pub not_before: Option<String>,
    /// The names of those that must be done first.
    #[serde(default)]
    pub after: Vec<String>,
}

/// How long a task is planned to take, and why.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The task's name among the others.
    pub task: String,
    /// What its agent thinks.
    pub estimated: f64,
    /// What that is multiplied with, by what was learned about its kind.
    pub factor: f64,
    /// The two multiplied.
    pub hours: f64,
}

/// One block of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Planned {
    /// For which task, by its name among the others.
    pub task: String,
    /// What it is called.
    pub title: String,
    /// From when, as RFC 3339.
    pub start: String,
    /// Until when, as RFC 3339.
    pub end: String,
}

/// A plan that waits for a person.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanView {
    /// The decision that it carries out.
    pub decision: String,
    /// The tasks as they were wished for.
    pub tasks: Vec<TaskWish>,
    /// How long each takes.
    pub estimates: Vec<Estimate>,
    /// When each is to be done.
    pub blocks: Vec<Planned>,
    /// What found no place.
    pub homeless: Vec<UnplacedTask>,
    /// The version of the parameters.
    pub version: u32,
    /// What was learned and made a difference.
    pub learned: Vec<Learned>,
}

/// What takes place between two moments, and what is proposed for them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct WeekView {
    /// What is in the calendar.
    pub events: Vec<Occurrence>,
    /// What was proposed, with what became of it.
    pub proposals: Vec<Proposal>,
    /// What could not be read of the calendar.
    pub doubts: Vec<String>,
}

/// A calendar and what was last seen of it.
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

    /// Why it cannot be used at the moment.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// All entries as they are now.
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
    pub(crate) fn diary(&self) -> Result<&CalendarCache, Fault> {
        self.0.diary.as_ref().ok_or(Fault::NoCalendar)
    }

    /// The user's own time zone; what cannot be one was refused when the workflow was checked.
    pub(crate) fn zone(&self) -> TimeZone {
        TimeZone::get(&self.0.settings.week.timezone).unwrap_or(TimeZone::UTC)
    }

    /// What takes place between two moments by the calendar; nothing when there is none.
    pub(crate) async fn agenda(&self, from: Time, to: Time) -> Result<Agenda, Fault> {
        let Some(diary) = &self.0.diary else {
            return Ok(Agenda { occurrences: Vec::new(), doubts: Vec::new() });
        };
        Ok(agenda(&diary.entries().await?, from, to, &self.zone()))
    }

    /// What takes place and what is proposed between two moments.
    ///
    /// # Errors
    /// When they may not look, the time is none, or the calendar cannot be reached.
    pub async fn between(&self, actor: &Actor, from: Time, to: Time) -> Result<WeekView, Fault> {
        actor.may(Access::Read, Data::Calendar)?;
        if to <= from || to.since(from) > SPAN {
            return Err(Fault::Span);
        }
        let proposals = self.0.proposals.between(from, to).await?;
        let Agenda { occurrences, doubts } = self.agenda(from, to).await?;
        Ok(WeekView { events: occurrences, proposals, doubts })
    }

    /// All that takes time between two moments: the calendar, and what was proposed and is not in it.
    pub(crate) async fn busy(&self, from: Time, to: Time) -> Result<Vec<Occurrence>, Fault> {
        let calendar = self.agenda(from, to).await?.occurrences;
        self.with_blocks(calendar, from, to, Stand::holds_time).await
    }

    /// What is in the calendar, and the blocks `counting` that are not in it.
    pub(crate) async fn with_blocks(
        &self,
        mut busy: Vec<Occurrence>,
        from: Time,
        to: Time,
        counting: fn(Stand) -> bool,
    ) -> Result<Vec<Occurrence>, Fault> {
        let proposals = self.0.proposals.between(from, to).await?;
        let waiting = proposals
            .iter()
            .filter(|one| counting(one.state) && !busy.iter().any(|event| event.uid == one.id));
        let waiting: Vec<Occurrence> = waiting.map(Proposal::occurrence).collect();
        busy.extend(waiting);
        Ok(busy)
    }

    /// The time in which room is looked for.
    pub(crate) fn ahead(&self) -> (Time, Time) {
        let (now, home) = (clock::now(), self.0.settings.calendar.as_ref());
        (now, now + home.map_or(Millis::hours(14 * 24), |home| home.ahead))
    }

    /// A plan for these tasks: how long each takes by what was learned, and where there is room.
    ///
    /// # Errors
    /// When a wish cannot be meant, or the calendar cannot be reached.
    pub async fn plan(
        &self,
        actor: &Actor,
        decision: String,
        tasks: Vec<TaskWish>,
    ) -> Result<PlanView, Fault> {
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

fn check(all: &[TaskWish], place: usize, task: &TaskWish) -> Result<(), Fault> {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    if task.id.is_empty() || task.id.len() > 40 || !task.id.chars().all(plain) {
        return Err(Fault::mistaken(format!(
            "the task's id `{}` must have 1 to 40 letters, digits, `-` or `_`",
            task.id
        )));
    }
    if all[..place].iter().any(|other| other.id == task.id) {
        return Err(Fault::mistaken(format!("two tasks are called `{}`", task.id)));
    }
    if let Some(none) = task.after.iter().find(|id| !all.iter().any(|other| other.id == **id)) {
        let id = &task.id;
        return Err(Fault::mistaken(format!("task `{id}` comes after `{none}`, which is no task")));
    }
    if !(task.hours > 0.0 && task.hours <= LONGEST) {
        return Err(Fault::mistaken(format!(
            "task `{}` takes {} hours, it must be more than 0 and at most {LONGEST}",
            task.id, task.hours
        )));
    }
    Ok(())
}

fn want(task: &TaskWish, hours: f64) -> Result<Wanted, Fault> {
    let moment = |text: &Option<String>| match text {
        None => Ok(None),
        Some(text) => Time::parse(text).map(Some).ok_or_else(|| {
            Fault::mistaken(format!("task `{}`: `{text}` is not a moment", task.id))
        }),
    };
    Ok(Wanted {
        task: NodeKey::task(&task.id),
        title: task.title.clone(),
        // Bounded above, and a minute at least.
        length: Millis::minutes(((hours * 60.0).round() as u64).max(1)),
        priority: task.priority,
        deadline: moment(&task.deadline)?,
        not_before: moment(&task.not_before)?,
        after: task.after.iter().map(|id| NodeKey::task(id)).collect(),
    })
}

impl PlanView {
    /// The plan as people read it.
    #[must_use]
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
