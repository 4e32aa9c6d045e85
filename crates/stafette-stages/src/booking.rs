//! A person's yes to a block of time, and the way into the calendar. Nothing is booked where something
//! is: every yes looks again at the calendar and at what others said yes to meanwhile.
//!
//! Those who say yes stand in line. A block whose place was taken gets another one, and waits for
//! a yes to that.

use std::time::{Duration, Instant};

use stafette_core::{Fields, HandoffId, Input, Millis, Run, RunId, Time};
use stafette_engine::Engine;
use stafette_knowledge::calendar::occurrence::{Drift, Occurrence, agenda, drifts};
use stafette_knowledge::calendar::proposal::{Proposal, ProposalError, Stand};
use stafette_knowledge::calendar::slots::{Wanted, overlap, propose};
use stafette_knowledge::calendar::{CalendarError, entry};
use tokio::sync::{Mutex, MutexGuard};

use crate::gate::{APPROVE, DROP, approval};
use crate::planner::{Diary, PlanView};
use crate::{Actor, Fault, Stages, clock};

/// How far around now events of ours are looked for.
const AROUND: Millis = Millis::hours(400 * 24);

/// How long a calendar is waited for before a yes counts without it; it is asked again before
/// anything is written to it.
const GLANCE: Duration = Duration::from_secs(4);

/// How long the time of an approval is kept for it until it is written down.
const KEPT: Duration = Duration::from_secs(60);

/// The line of those who say yes, and what was approved and is not written down yet.
#[derive(Debug, Default)]
pub(crate) struct Booking {
    claims: Mutex<Vec<Claim>>,
    /// One at a time writes to the calendar what was accepted.
    writing: Mutex<()>,
}

/// The time of a plan that somebody has just approved.
#[derive(Debug)]
struct Claim {
    plan: (RunId, HandoffId),
    since: Instant,
    times: Vec<Occurrence>,
}

impl Booking {
    /// Stands in line.
    async fn line(&self) -> MutexGuard<'_, Vec<Claim>> {
        let mut claims = self.claims.lock().await;
        claims.retain(|claim| claim.since.elapsed() < KEPT);
        claims
    }

    /// What was approved is written down.
    pub(crate) async fn settled(&self, run: RunId, handoff: HandoffId) {
        self.claims.lock().await.retain(|claim| claim.plan != (run, handoff));
    }
}

impl Stages {
    /// Says yes to a proposed block. When it was the last of its question, that is answered.
    ///
    /// # Errors
    /// When an agent asks, something stands there by now, or it was decided already.
    pub async fn accept(
        &self,
        actor: &Actor,
        engine: &Engine,
        id: &str,
        by: &str,
    ) -> Result<Proposal, Fault> {
        actor.is_person("accept a block of time")?;
        let accepted = {
            let claims = self.0.booking.line().await;
            let found = self.0.proposals.get(id).await?;
            if found.state == Stand::Proposed
                && let Some(other) = self.in_the_way(&found, &claims).await?
            {
                return Err(self.elsewhere(&found, &other).await?);
            }
            self.hold(&found).await?
        };
        self.settle(engine, &accepted, by).await?;
        self.write_accepted().await?;
        Ok(self.0.proposals.get(id).await?)
    }

    /// Says no to a proposed block.
    ///
    /// # Errors
    /// When an agent asks, or it was decided already.
    pub async fn drop_block(
        &self,
        actor: &Actor,
        engine: &Engine,
        id: &str,
        by: &str,
    ) -> Result<Proposal, Fault> {
        actor.is_person("drop a block of time")?;
        let dropped = |one: &mut Proposal| one.state = Stand::Dropped;
        let dropped = self.0.proposals.change(id, &[Stand::Proposed], dropped).await?;
        self.settle(engine, &dropped, by).await?;
        Ok(dropped)
    }

    /// Moves a block to another time; one that is in the calendar is moved there.
    ///
    /// # Errors
    /// When an agent asks, the time is none, or something stands there.
    pub async fn move_block(
        &self,
        actor: &Actor,
        id: &str,
        (start, end): (Time, Time),
    ) -> Result<Proposal, Fault> {
        actor.is_person("move a block of time")?;
        if end <= start || end.since(start) > Millis::hours(24) {
            return Err(Fault::mistaken("a block ends after it begins, within a day"));
        }
        let claims = self.0.booking.line().await;
        let found = self.0.proposals.get(id).await?;
        let wanted = Proposal { start, end, ..found.clone() };
        let mut busy = self.busy(start, end).await?;
        busy.extend(claimed(&claims, &wanted));
        if let Some(other) = apart(&wanted, busy) {
            return Err(Fault::taken(&wanted, &other, None));
        }
        if found.state.is_in_calendar() {
            let calendar = &self.diary()?.calendar;
            let kept = calendar.get(&found.entry).await?;
            let text = entry::moved(&kept.text, start, end, clock::now())
                .map_err(|error| Fault::mistaken(error.to_string()))?;
            calendar.put(&found.entry, &text, Some(&kept.etag)).await?;
        }
        const MOVABLE: &[Stand] = &[Stand::Proposed, Stand::Accepted, Stand::Written, Stand::Moved];
        Ok(self.0.proposals.hold(id, MOVABLE, to(start, end)).await?)
    }

    /// Looks whether a whole plan can be approved, and keeps its time until that is written down.
    ///
    /// # Errors
    /// What is in the way, with the places that its blocks have now.
    pub(crate) async fn book(
        &self,
        run: &Run,
        question: HandoffId,
        plan: &PlanView,
    ) -> Result<(), Fault> {
        let mut claims = self.0.booking.line().await;
        claims.retain(|claim| claim.plan != (run.id, question));
        // Whoever answers at once may be faster than what follows the runs.
        self.0.proposals.add(approval::blocks(run.id, question, plan)).await?;
        let mut open = self.0.proposals.of(run.id, question).await?;
        open.retain(|one| one.state == Stand::Proposed);
        let mut moved = Vec::new();
        for block in &open {
            if let Some(other) = self.in_the_way(block, &claims).await? {
                moved.push(self.elsewhere(block, &other).await?);
            }
        }
        if !moved.is_empty() {
            return Err(Fault::Moved { blocks: moved });
        }
        let times = open.iter().map(Proposal::occurrence).collect();
        claims.push(Claim { plan: (run.id, question), since: Instant::now(), times });
        Ok(())
    }

    /// Notes that a plan was approved: its blocks have their time now, or get another one.
    pub(crate) async fn approve(&self, run: RunId, question: HandoffId) -> Result<(), Fault> {
        for block in self.0.proposals.of(run, question).await? {
            // One that a person decided by itself stays as they said.
            if block.state != Stand::Proposed {
                continue;
            }
            match self.hold(&block).await {
                Err(Fault::Proposal { source: ProposalError::State { .. } }) | Ok(_) => {}
                Err(fault @ Fault::Taken { .. }) => {
                    tracing::warn!(block = block.id, %fault, "two plans had the same time");
                }
                Err(fault) => return Err(fault),
            }
        }
        self.0.booking.settled(run, question).await;
        Ok(())
    }

    /// Gives a proposed block its time, when nobody else has it.
    async fn hold(&self, block: &Proposal) -> Result<Proposal, Fault> {
        let accepted = |one: &mut Proposal| {
            one.state = Stand::Accepted;
            one.trouble = None;
        };
        match self.0.proposals.hold(&block.id, &[Stand::Proposed], accepted).await {
            Err(ProposalError::Taken { by, .. }) => {
                Err(self.elsewhere(block, &by.occurrence()).await?)
            }
            held => Ok(held?),
        }
    }

    /// What a block would be booked on top of: the calendar, and what people said yes to. What is
    /// only proposed is in nobody's way.
    async fn in_the_way(
        &self,
        block: &Proposal,
        claims: &[Claim],
    ) -> Result<Option<Occurrence>, Fault> {
        let (from, to) = (block.start, block.end);
        let calendar = match tokio::time::timeout(GLANCE, self.agenda(from, to)).await {
            Ok(Err(Fault::Calendar { source: CalendarError::Away { .. } })) | Err(_) => Vec::new(),
            Ok(agenda) => agenda?.occurrences,
        };
        let mut busy = self.with_blocks(calendar, from, to, Stand::is_agreed).await?;
        busy.extend(claimed(claims, block));
        Ok(apart(block, busy))
    }

    /// Proposes another time for a block whose place is taken, not before it was; tells of both.
    async fn elsewhere(&self, block: &Proposal, other: &Occurrence) -> Result<Fault, Fault> {
        let (from, until) = self.ahead();
        let from = from.max(block.start);
        let mut busy = self.busy(from, until).await.unwrap_or_default();
        busy.retain(|event| event.uid != block.id);
        busy.push(other.clone());
        let wanted = Wanted {
            task: block.task.clone(),
            title: block.title.clone(),
            length: block.end.since(block.start),
            priority: stafette_core::Priority::default(),
            deadline: None,
            not_before: Some(from),
            after: Vec::new(),
        };
        let plan = propose(&[wanted], &busy, &self.week(), (from, until))?;
        let place = match plan.blocks.as_slice() {
            [only] if plan.homeless.is_empty() => Some((only.start, only.end)),
            _ => None,
        };
        let fault = Fault::taken(block, other, place);
        let trouble = Some(fault.to_string());
        let note = move |one: &mut Proposal| {
            if let Some((start, end)) = place {
                to(start, end)(one);
            }
            one.trouble = trouble;
        };
        self.0.proposals.change(&block.id, &[Stand::Proposed], note).await?;
        Ok(fault)
    }

    /// Answers the question of a block once nothing of it is open any more.
    async fn settle(&self, engine: &Engine, decided: &Proposal, by: &str) -> Result<(), Fault> {
        let all = self.0.proposals.of(decided.run, decided.handoff).await?;
        if all.iter().any(|one| one.state == Stand::Proposed) {
            return Ok(());
        }
        let dropped = all.iter().all(|one| one.state == Stand::Dropped);
        let text = if dropped { DROP } else { APPROVE };
        let (handoff, values, by) = (decided.handoff, Fields::new(), by.to_owned());
        let answer = Input::Answer { handoff, values, text: text.to_owned(), by };
        match engine.send(decided.run, answer).await {
            // A run that is over needs no answer; the block is the person's all the same.
            Ok(_) | Err(stafette_engine::EngineError::Over { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Puts into the calendar what was accepted. What cannot be put there now waits.
    pub(crate) async fn write_accepted(&self) -> Result<(), Fault> {
        let Some(diary) = &self.0.diary else { return Ok(()) };
        let _writing = self.0.booking.writing.lock().await;
        for proposal in self.0.proposals.in_state(Stand::Accepted).await? {
            if self.lost_its_place(&proposal).await? {
                continue;
            }
            let written = self.put(diary, &proposal).await;
            let away = matches!(&written, Err(CalendarError::Away { .. }));
            let trouble = written.err().map(|error| error.to_string());
            if let Some(trouble) = &trouble {
                tracing::warn!(block = proposal.id, trouble, "not in the calendar yet");
            }
            let note = move |one: &mut Proposal| {
                if trouble.is_none() {
                    one.state = Stand::Written;
                }
                one.trouble = trouble;
            };
            self.0.proposals.change(&proposal.id, &[Stand::Accepted], note).await?;
            if away {
                break;
            }
        }
        Ok(())
    }

    /// Looks whether something came into the calendar since a block was accepted; then it waits for
    /// a yes to another time.
    async fn lost_its_place(&self, block: &Proposal) -> Result<bool, Fault> {
        let calendar = match self.agenda(block.start, block.end).await {
            Err(Fault::Calendar { .. }) => return Ok(false),
            agenda => agenda?.occurrences,
        };
        let Some(other) = apart(block, calendar) else { return Ok(false) };
        let back = |one: &mut Proposal| one.state = Stand::Proposed;
        let back = self.0.proposals.change(&block.id, &[Stand::Accepted], back).await?;
        let fault = self.elsewhere(&back, &other).await?;
        tracing::warn!(block = block.id, %fault, "accepted, and waits again");
        Ok(true)
    }

    async fn put(&self, diary: &Diary, proposal: &Proposal) -> Result<(), CalendarError> {
        let times = (proposal.start, proposal.end);
        let notes = format!("Proposed by Stafette for {}", proposal.task);
        let (id, task) = (&proposal.id, Some(&proposal.task));
        let text = entry::event(id, &proposal.title, &notes, times, task, clock::now());
        match diary.calendar.put(&proposal.entry, &text, None).await {
            Ok(_) => Ok(()),
            // Written before, by somebody who died before it was noted: it has our name.
            Err(CalendarError::Conflict { .. }) => {
                let kept = diary.calendar.get(&proposal.entry).await?;
                match kept.text.contains(id.as_str()) {
                    true => Ok(()),
                    false => Err(CalendarError::Conflict { name: proposal.entry.clone() }),
                }
            }
            Err(error) => Err(error),
        }
    }

    /// Looks at the calendar: what was accepted gets in, what somebody moved or deleted is noticed.
    pub(crate) async fn look_at_calendar(&self) -> Result<Vec<Drift>, Fault> {
        let Some(diary) = &self.0.diary else { return Ok(Vec::new()) };
        self.write_accepted().await?;
        let mut planned = self.0.proposals.in_state(Stand::Written).await?;
        planned.extend(self.0.proposals.in_state(Stand::Moved).await?);
        let mut entries = diary.entries().await?;
        entries.retain(|entry| planned.iter().any(|one| one.entry == entry.name));
        let now = clock::now();
        let from = Time(now.0.saturating_sub_unsigned(AROUND.0));
        let found = agenda(&entries, from, now + AROUND, &self.zone()).occurrences;
        let expected: Vec<Occurrence> = planned.iter().map(Proposal::occurrence).collect();
        let drifted = drifts(&expected, &found);
        for drift in &drifted {
            let (planned, at) = match drift {
                Drift::Moved { planned, start, end } => (planned, Some((*start, *end))),
                Drift::Deleted { planned } => (planned, None),
            };
            tracing::info!(block = planned.uid, moved = at.is_some(), "somebody changed a block");
            let note = move |one: &mut Proposal| match at {
                Some((start, end)) => {
                    one.state = Stand::Moved;
                    (one.start, one.end) = (start, end);
                }
                None => one.state = Stand::Deleted,
            };
            self.0.proposals.change(&planned.uid, &[Stand::Written, Stand::Moved], note).await?;
        }
        Ok(drifted)
    }
}

/// What others have just approved.
fn claimed(claims: &[Claim], block: &Proposal) -> Vec<Occurrence> {
    let others = claims.iter().filter(|claim| claim.plan != (block.run, block.handoff));
    others.flat_map(|claim| claim.times.iter().cloned()).collect()
}

/// What of this is in a block's way, itself apart.
fn apart(block: &Proposal, mut busy: Vec<Occurrence>) -> Option<Occurrence> {
    busy.retain(|event| event.uid != block.id);
    overlap(&block.block(), &busy).cloned()
}

/// Moves a block.
fn to(start: Time, end: Time) -> impl FnOnce(&mut Proposal) + Send + 'static {
    move |one| {
        (one.start, one.end) = (start, end);
        one.trouble = None;
        if one.state == Stand::Proposed {
            one.planned_end = end;
        }
    }
}
