//! Approving blocks of time and writing them to the calendar. Nothing is booked over an existing
//! event: every approval checks the calendar again, and the blocks approved meanwhile.
//!
//! Approvals are handled one at a time. A block whose time was taken gets another one, and waits
//! for approval of that. Whatever moves, a block begins after what it has to wait for.

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
use crate::{Actor, StageError, Stages};

/// The time limit for reading the calendar before an approval counts without it; the calendar is
/// read again before anything is written to it.
const GLANCE: Duration = Duration::from_secs(4);

/// The time for which an approved plan keeps its slots until it is recorded.
const KEPT: Duration = Duration::from_secs(60);

/// The queue of approvals, and the approved plans that are not recorded yet.
#[derive(Debug, Default)]
pub(crate) struct Booking {
    claims: Mutex<Vec<Claim>>,
    /// Held while the calendar is written; code that needs both locks takes this one first.
    writing: Mutex<()>,
}

/// The slots of a plan that was just approved.
#[derive(Debug)]
struct Claim {
    plan: (RunId, HandoffId),
    since: Instant,
    times: Vec<Occurrence>,
}

/// A moved block, and the blocks that moved with it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Moved {
    /// The block at its new time.
    #[serde(flatten)]
    pub block: Proposal,
    /// The blocks that wait for it and are now proposed for a later time.
    pub along: Vec<Proposal>,
}

/// The states in which the calendar should contain a block.
pub(crate) const IN_CALENDAR: &[Stand] = &[Stand::Written, Stand::Moved];

/// The states in which a block can be moved.
const MOVABLE: &[Stand] = &[Stand::Proposed, Stand::Accepted, Stand::Written, Stand::Moved];

/// True if the block is not approved yet: it then moves along with what it waits for.
fn is_open(state: Stand) -> bool {
    state == Stand::Proposed
}

/// True if the block is not in the calendar yet: it can wait for another approval.
fn is_loose(state: Stand) -> bool {
    matches!(state, Stand::Proposed | Stand::Accepted)
}

impl Booking {
    /// Waits for its turn among the approvals.
    async fn line(&self) -> MutexGuard<'_, Vec<Claim>> {
        let mut claims = self.claims.lock().await;
        claims.retain(|claim| claim.since.elapsed() < KEPT);
        claims
    }

    /// Releases the slots of an approved plan once it is recorded.
    pub(crate) async fn settled(&self, run: RunId, handoff: HandoffId) {
        self.claims.lock().await.retain(|claim| claim.plan != (run, handoff));
    }
}

impl Stages {
    /// Approves a proposed block. If it was the last one of its question, the question is answered.
    ///
    /// # Errors
    /// If an agent asks, the time has been taken, or the block was decided already.
    pub async fn accept(
        &self,
        actor: &Actor,
        engine: &Engine,
        id: &str,
        by: &str,
    ) -> Result<Proposal, StageError> {
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
                Err(StageError::Again { why })
            }
            accepted => Ok(accepted),
        }
    }

    /// Rejects a proposed block.
    ///
    /// # Errors
    /// If an agent asks, or the block was decided already.
    pub async fn drop_block(
        &self,
        actor: &Actor,
        engine: &Engine,
        id: &str,
        by: &str,
    ) -> Result<Proposal, StageError> {
        actor.is_person("drop a block of time")?;
        let dropped = |one: &mut Proposal| one.state = Stand::Dropped;
        let dropped = self.0.proposals.change(id, &[Stand::Proposed], dropped).await?;
        self.settle(engine, &dropped, by).await?;
        Ok(dropped)
    }

    /// Moves a block to another time, also in the calendar if it is there. Blocks that wait for it
    /// move along unless their time is approved.
    ///
    /// # Errors
    /// If an agent asks, the time is invalid or taken, or the block would begin before its
    /// predecessor ends.
    pub async fn move_block(
        &self,
        actor: &Actor,
        id: &str,
        (start, end): (Time, Time),
    ) -> Result<Moved, StageError> {
        actor.is_person("move a block of time")?;
        if end <= start || end.since(start) > Millis::hours(24) {
            return Err(StageError::mistaken("a block ends after it begins, within a day"));
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
            return Err(StageError::early(&wanted, first));
        }
        let (now, until) = self.ahead();
        let mut busy = self.busy(now.min(start), until.max(end)).await?;
        busy.extend(claimed(&claims, &wanted));
        let behind = chain.behind(&wanted, is_open);
        let stays = |event: &&Occurrence| !behind.iter().any(|one| one.id == event.uid);
        if let Some(other) = apart(&wanted, busy.iter().filter(stays).cloned().collect()) {
            return Err(StageError::taken(&wanted, &other, None));
        }
        let room = Room { busy: &busy, week: &self.week(), span: (now, until) };
        let along = chain.follow(&wanted, room, is_open);
        let along = along.map_err(|next| StageError::late(&wanted, &next))?;
        if found.state.is_in_calendar() {
            self.shift(&wanted).await?;
        }
        let mut wishes = vec![Wish::new(id, MOVABLE, to(start, end))];
        wishes.extend(along.iter().map(|next| follows(next, &wanted)));
        let mut moved = self.0.proposals.hold_all(wishes).await?.into_iter();
        let block = moved.next().ok_or_else(|| ProposalError::None { id: id.to_owned() })?;
        Ok(Moved { block, along: moved.collect() })
    }

    /// Checks that a whole plan can be approved, and keeps its slots until that is recorded.
    ///
    /// # Errors
    /// The obstacles, with the times that its blocks have now.
    pub(crate) async fn book(
        &self,
        run: &Run,
        question: HandoffId,
        plan: &PlanView,
    ) -> Result<(), StageError> {
        let mut claims = self.0.booking.line().await;
        claims.retain(|claim| claim.plan != (run.id, question));
        // A quick answer may arrive before the follower has stored the blocks.
        self.0.proposals.add(approval::blocks(run.id, question, plan)).await?;
        let (mut times, mut faults) = (Vec::new(), Vec::new());
        for block in self.0.proposals.of(run.id, question).await? {
            // Read again: it may have moved along with one before it.
            let block = self.0.proposals.get(&block.id).await?;
            if block.state != Stand::Proposed {
                continue;
            }
            times.push(block.occurrence());
            faults.extend(self.against(&block, &claims).await?);
        }
        if !faults.is_empty() {
            return Err(StageError::LostPlaces { blocks: faults });
        }
        claims.push(Claim { plan: (run.id, question), since: Instant::now(), times });
        Ok(())
    }

    /// Records that a plan was approved: its blocks keep their times, or get others.
    pub(crate) async fn approve(&self, run: RunId, question: HandoffId) -> Result<(), StageError> {
        for block in self.0.proposals.of(run, question).await? {
            // A block that a person decided individually stays as decided.
            if block.state != Stand::Proposed {
                continue;
            }
            match self.hold(&block).await {
                Err(StageError::Proposal { source: ProposalError::State { .. } }) | Ok(_) => {}
                Err(fault @ (StageError::Taken { .. } | StageError::LostPlaces { .. })) => {
                    tracing::warn!(block = block.id, %fault, "two plans had the same time");
                }
                Err(fault) => return Err(fault),
            }
        }
        self.0.booking.settled(run, question).await;
        Ok(())
    }

    /// Gives a proposed block its time, if that is free.
    async fn hold(&self, block: &Proposal) -> Result<Proposal, StageError> {
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

    /// Returns the objection to approving a block. If its time is taken, it has another one
    /// afterwards.
    async fn against(
        &self,
        block: &Proposal,
        claims: &[Claim],
    ) -> Result<Option<StageError>, StageError> {
        if let Some(first) = self.chain(block).await?.ahead_of(block) {
            return Ok(Some(StageError::early(block, first)));
        }
        match self.in_the_way(block, claims).await? {
            Some(other) => Ok(Some(self.elsewhere(block, &other).await?)),
            None => Ok(None),
        }
    }

    /// Returns what a block would be booked over: an event of the calendar or an approved block.
    /// Proposed blocks do not count.
    async fn in_the_way(
        &self,
        block: &Proposal,
        claims: &[Claim],
    ) -> Result<Option<Occurrence>, StageError> {
        let (from, to) = (block.start, block.end);
        let calendar = self.glance(from, to).await?;
        let mut busy = self.with_blocks(calendar, from, to, Stand::is_agreed).await?;
        busy.extend(claimed(claims, block));
        Ok(apart(block, busy))
    }

    /// Returns the events of the calendar; none while it is unreachable.
    async fn glance(&self, from: Time, to: Time) -> Result<Vec<Occurrence>, StageError> {
        match tokio::time::timeout(GLANCE, self.agenda(from, to)).await {
            Ok(Err(StageError::Calendar { source: CalendarError::Away { .. } })) | Err(_) => {
                Ok(Vec::new())
            }
            Ok(agenda) => Ok(agenda?.occurrences),
        }
    }

    /// Proposes another time for a block whose time is taken, not earlier than before, and later
    /// times for the blocks that wait for it; the result names all of them. Accepted blocks wait
    /// for approval again.
    async fn elsewhere(
        &self,
        block: &Proposal,
        other: &Occurrence,
    ) -> Result<StageError, StageError> {
        let (from, until) = self.ahead();
        let calendar = self.glance(from, until).await?;
        let mut busy = self.with_blocks(calendar, from, until, Stand::holds_time).await?;
        busy.push(other.clone());
        let chain = self.chain(block).await?;
        let room = Room { busy: &busy, week: &self.week(), span: (from, until) };
        let Some(all) = chain.elsewhere(block, room, is_loose) else {
            let fault = StageError::taken(block, other, None);
            let note = waits(fault.to_string(), (block.start, block.end));
            self.0.proposals.change(&block.id, as_seen(block), note).await?;
            return Ok(fault);
        };
        let (mut wishes, mut faults) = (Vec::new(), Vec::new());
        for moved in &all {
            let place = (moved.start, moved.end);
            let fault = match moved.id == block.id {
                true => StageError::taken(block, other, Some(place)),
                false => StageError::follows(moved, block),
            };
            wishes.push(Wish::new(&moved.id, as_seen(moved), waits(fault.to_string(), place)));
            faults.push(fault);
        }
        self.0.proposals.hold_all(wishes).await?;
        match faults.len() {
            1 => Ok(faults.remove(0)),
            _ => Ok(StageError::LostPlaces { blocks: faults }),
        }
    }

    /// Returns the blocks that a block is planned with.
    async fn chain(&self, block: &Proposal) -> Result<Chain, StageError> {
        Ok(Chain::new(self.0.proposals.of(block.run, block.handoff).await?))
    }

    /// Answers the question of a block once none of its blocks is open any more.
    async fn settle(
        &self,
        engine: &Engine,
        decided: &Proposal,
        by: &str,
    ) -> Result<(), StageError> {
        let all = self.0.proposals.of(decided.run, decided.handoff).await?;
        if all.iter().any(|one| one.state == Stand::Proposed) {
            return Ok(());
        }
        let dropped = all.iter().all(|one| one.state == Stand::Dropped);
        let text = if dropped { DROP } else { APPROVE };
        let (handoff, values, by) = (decided.handoff, Fields::new(), by.to_owned());
        let answer = Input::Answer { handoff, values, text: text.to_owned(), by };
        match engine.send(decided.run, answer).await {
            // A run that has ended needs no answer; the block still belongs to the person.
            Ok(_) | Err(stafette_engine::EngineError::Over { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Returns the slots of plans that were just approved.
fn claimed(claims: &[Claim], block: &Proposal) -> Vec<Occurrence> {
    let others = claims.iter().filter(|claim| claim.plan != (block.run, block.handoff));
    others.flat_map(|claim| claim.times.iter().cloned()).collect()
}

/// Returns the first event that overlaps a block, the block itself excluded.
fn apart(block: &Proposal, mut busy: Vec<Occurrence>) -> Option<Occurrence> {
    busy.retain(|event| event.uid != block.id);
    overlap(&block.block(), &busy).cloned()
}

/// Returns a change that moves a block.
fn to(start: Time, end: Time) -> impl FnOnce(&mut Proposal) + Send + 'static {
    move |one| {
        (one.start, one.end) = (start, end);
        one.trouble = None;
        if one.state == Stand::Proposed {
            one.planned_end = end;
        }
    }
}

/// Requests that a block waits for approval of a later time, because it waits for another one.
fn follows(later: &Proposal, first: &Proposal) -> Wish {
    let note = waits(StageError::follows(later, first).to_string(), (later.start, later.end));
    Wish::new(&later.id, as_seen(later), note)
}

/// Returns a change that makes a block wait for approval of a time, with the reason.
fn waits(why: String, (start, end): (Time, Time)) -> impl FnOnce(&mut Proposal) + Send + 'static {
    move |one| {
        one.state = Stand::Proposed;
        to(start, end)(one);
        one.trouble = Some(why);
    }
}

/// Returns the state in which a block outside the calendar was seen, so that no decision made since
/// then is overlooked.
fn as_seen(block: &Proposal) -> &'static [Stand] {
    match block.state {
        Stand::Accepted => &[Stand::Accepted],
        _ => &[Stand::Proposed],
    }
}
