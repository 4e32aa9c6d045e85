//! A person's yes to a block of time, and the way into the calendar. Nothing is booked where something
//! is: every yes looks again at the calendar and at what others said yes to meanwhile.
//!
//! Those who say yes stand in line. A block whose place was taken gets another one, and waits for
//! a yes to that. Whatever moves, a block begins after what it has to wait for.

mod written;

use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use stafette_core::{Fields, HandoffId, Input, Millis, Run, RunId, Time};
use stafette_engine::Engine;
use stafette_knowledge::calendar::CalendarError;
use stafette_knowledge::calendar::occurrence::Occurrence;
use stafette_knowledge::calendar::order::{Chain, Room};
use stafette_knowledge::calendar::proposal::{Proposal, ProposalError, Stand, Wish};
use stafette_knowledge::calendar::slots::overlap;
use tokio::sync::{Mutex, MutexGuard};

use crate::gate::{APPROVE, DROP, approval};
use crate::planner::PlanView;
use crate::{Actor, Fault, Stages};

/// How long a calendar is waited for before a yes counts without it; it is asked again before
/// anything is written to it.
const GLANCE: Duration = Duration::from_secs(4);

/// How long the time of an approval is kept for it until it is written down.
const KEPT: Duration = Duration::from_secs(60);

/// The line of those who say yes, and what was approved and is not written down yet.
#[derive(Debug, Default)]
pub(crate) struct Booking {
    claims: Mutex<Vec<Claim>>,
    /// One at a time writes to the calendar; whoever wants both takes this first.
    writing: Mutex<()>,
}

/// The time of a plan that somebody has just approved.
#[derive(Debug)]
struct Claim {
    plan: (RunId, HandoffId),
    since: Instant,
    times: Vec<Occurrence>,
}

/// A block that was moved, and what had to move with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// The block.
    #[serde(flatten)]
    pub block: Proposal,
    /// What has to wait for it and is proposed for a later time now.
    pub along: Vec<Proposal>,
}

/// In which states a block should be found in the calendar.
pub(crate) const IN_CALENDAR: &[Stand] = &[Stand::Written, Stand::Moved];

/// In which states a block can be moved.
const MOVABLE: &[Stand] = &[Stand::Proposed, Stand::Accepted, Stand::Written, Stand::Moved];

/// What nobody has said yes to moves along with what it waits for.
fn is_open(state: Stand) -> bool {
    state == Stand::Proposed
}

/// What is not in the calendar yet can wait for another yes.
fn is_loose(state: Stand) -> bool {
    matches!(state, Stand::Proposed | Stand::Accepted)
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
                && let Some(fault) = self.against(&found, &claims).await?
            {
                return Err(fault);
            }
            self.hold(&found).await?
        };
        self.settle(engine, &accepted, by).await?;
        self.write_accepted().await?;
        match self.0.proposals.get(id).await? {
            Proposal { state: Stand::Proposed, trouble: Some(why), .. } => {
                Err(Fault::Again { why })
            }
            accepted => Ok(accepted),
        }
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

    /// Moves a block to another time; one that is in the calendar is moved there. What waits for it
    /// moves along as long as nobody has said yes to its time.
    ///
    /// # Errors
    /// When an agent asks, the time is none, something stands there, or what must be done first
    /// would not be.
    pub async fn move_block(
        &self,
        actor: &Actor,
        id: &str,
        (start, end): (Time, Time),
    ) -> Result<Moved, Fault> {
        actor.is_person("move a block of time")?;
        if end <= start || end.since(start) > Millis::hours(24) {
            return Err(Fault::mistaken("a block ends after it begins, within a day"));
        }
        let _writing = self.0.booking.writing.lock().await;
        let claims = self.0.booking.line().await;
        let found = self.0.proposals.get(id).await?;
        if !found.state.holds_time() {
            let (id, state) = (found.id, found.state);
            return Err(ProposalError::State { id, state }.into());
        }
        let wanted = Proposal { start, end, ..found.clone() };
        let chain = self.chain(&found).await?;
        if let Some(first) = chain.ahead_of(&wanted) {
            return Err(Fault::early(&wanted, first));
        }
        let (now, until) = self.ahead();
        let mut busy = self.busy(now.min(start), until.max(end)).await?;
        busy.extend(claimed(&claims, &wanted));
        let behind = chain.behind(&wanted, is_open);
        let stays = |event: &&Occurrence| !behind.iter().any(|one| one.id == event.uid);
        if let Some(other) = apart(&wanted, busy.iter().filter(stays).cloned().collect()) {
            return Err(Fault::taken(&wanted, &other, None));
        }
        let room = Room { busy: &busy, week: &self.week(), span: (now, until) };
        let along = chain.follow(&wanted, room, is_open);
        let along = along.map_err(|next| Fault::late(&wanted, &next))?;
        if found.state.is_in_calendar() {
            self.shift(&wanted).await?;
        }
        let mut wishes = vec![Wish::new(id, MOVABLE, to(start, end))];
        wishes.extend(along.iter().map(|next| follows(next, &wanted)));
        let mut moved = self.0.proposals.hold_all(wishes).await?.into_iter();
        let block = moved.next().ok_or_else(|| ProposalError::None { id: id.to_owned() })?;
        Ok(Moved { block, along: moved.collect() })
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
        let (mut times, mut faults) = (Vec::new(), Vec::new());
        for block in self.0.proposals.of(run.id, question).await? {
            // As it is by now: it may have moved along with one before it.
            let block = self.0.proposals.get(&block.id).await?;
            if block.state != Stand::Proposed {
                continue;
            }
            times.push(block.occurrence());
            faults.extend(self.against(&block, &claims).await?);
        }
        if !faults.is_empty() {
            return Err(Fault::LostPlaces { blocks: faults });
        }
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
                Err(fault @ (Fault::Taken { .. } | Fault::LostPlaces { .. })) => {
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

    /// What speaks against a yes to a block. One whose place is taken has another one afterwards.
    async fn against(&self, block: &Proposal, claims: &[Claim]) -> Result<Option<Fault>, Fault> {
        if let Some(first) = self.chain(block).await?.ahead_of(block) {
            return Ok(Some(Fault::early(block, first)));
        }
        match self.in_the_way(block, claims).await? {
            Some(other) => Ok(Some(self.elsewhere(block, &other).await?)),
            None => Ok(None),
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
        let calendar = self.glance(from, to).await?;
        let mut busy = self.with_blocks(calendar, from, to, Stand::is_agreed).await?;
        busy.extend(claimed(claims, block));
        Ok(apart(block, busy))
    }

    /// What the calendar says, and nothing while it is away.
    async fn glance(&self, from: Time, to: Time) -> Result<Vec<Occurrence>, Fault> {
        match tokio::time::timeout(GLANCE, self.agenda(from, to)).await {
            Ok(Err(Fault::Calendar { source: CalendarError::Away { .. } })) | Err(_) => {
                Ok(Vec::new())
            }
            Ok(agenda) => Ok(agenda?.occurrences),
        }
    }

    /// Proposes another time for a block whose place is taken, not before it was, and behind it for
    /// what waits for it; tells of all of them. What was accepted waits again.
    async fn elsewhere(&self, block: &Proposal, other: &Occurrence) -> Result<Fault, Fault> {
        let (from, until) = self.ahead();
        let calendar = self.glance(from, until).await?;
        let mut busy = self.with_blocks(calendar, from, until, Stand::holds_time).await?;
        busy.push(other.clone());
        let chain = self.chain(block).await?;
        let room = Room { busy: &busy, week: &self.week(), span: (from, until) };
        let Some(all) = chain.elsewhere(block, room, is_loose) else {
            let fault = Fault::taken(block, other, None);
            let note = waits(fault.to_string(), (block.start, block.end));
            self.0.proposals.change(&block.id, as_seen(block), note).await?;
            return Ok(fault);
        };
        let (mut wishes, mut faults) = (Vec::new(), Vec::new());
        for moved in &all {
            let place = (moved.start, moved.end);
            let fault = match moved.id == block.id {
                true => Fault::taken(block, other, Some(place)),
                false => Fault::follows(moved, block),
            };
            wishes.push(Wish::new(&moved.id, as_seen(moved), waits(fault.to_string(), place)));
            faults.push(fault);
        }
        self.0.proposals.hold_all(wishes).await?;
        match faults.len() {
            1 => Ok(faults.remove(0)),
            _ => Ok(Fault::LostPlaces { blocks: faults }),
        }
    }

    /// The blocks that a block is planned with.
    async fn chain(&self, block: &Proposal) -> Result<Chain, Fault> {
        Ok(Chain::new(self.0.proposals.of(block.run, block.handoff).await?))
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

/// Has a block wait for a yes to a later time, since it waits for another one.
fn follows(later: &Proposal, first: &Proposal) -> Wish {
    let note = waits(Fault::follows(later, first).to_string(), (later.start, later.end));
    Wish::new(&later.id, as_seen(later), note)
}

/// Has a block wait for a yes to a time, with the reason.
fn waits(why: String, (start, end): (Time, Time)) -> impl FnOnce(&mut Proposal) + Send + 'static {
    move |one| {
        one.state = Stand::Proposed;
        to(start, end)(one);
        one.trouble = Some(why);
    }
}

/// The state in which a block that is not in the calendar was seen: nobody's yes or no since then is
/// overlooked.
fn as_seen(block: &Proposal) -> &'static [Stand] {
    match block.state {
        Stand::Accepted => &[Stand::Accepted],
        _ => &[Stand::Proposed],
    }
}
