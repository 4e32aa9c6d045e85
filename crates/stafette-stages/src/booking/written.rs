//! Writes accepted blocks to the calendar and keeps track of them there.
//!
//! A shared calendar has no transaction over several entries. So it is read once more after a block
//! is written: an event that got in between the last read and the write is found then, and our
//! block is removed again. An event that comes later was put over ours by a person who could see
//! it.

use stafette_core::{HandoffId, Millis, RunId, Time};
use stafette_knowledge::calendar::occurrence::{Drift, Occurrence, agenda, drifts};
use stafette_knowledge::calendar::order::{Chain, Room};
use stafette_knowledge::calendar::proposal::{Proposal, ProposalError, Stand};
use stafette_knowledge::calendar::{CalendarError, Entry, entry};

use super::{IN_CALENDAR, MOVABLE, apart, follows, is_open};
use crate::planner::CalendarCache;
use crate::{StageError, Stages, clock};

/// The span around now in which our events are searched.
const AROUND: Millis = Millis::hours(400 * 24);

impl Stages {
    /// Writes accepted blocks to the calendar. Blocks that cannot be written now wait.
    pub(crate) async fn write_accepted(&self) -> Result<(), StageError> {
        let Some(diary) = &self.0.diary else { return Ok(()) };
        let _writing = self.0.booking.writing.lock().await;
        for block in self.0.proposals.in_state(Stand::Accepted).await? {
            // Read again: it may wait for approval again, with one before it.
            let block = self.0.proposals.get(&block.id).await?;
            if block.state != Stand::Accepted {
                continue;
            }
            let trouble = match self.enter(diary, &block).await {
                Ok(None) => None,
                Ok(Some(other)) => {
                    self.put_back(&block, &other).await?;
                    continue;
                }
                Err(error) => Some(error),
            };
            let away = matches!(&trouble, Some(CalendarError::Away { .. }));
            let trouble = trouble.map(|error| error.to_string());
            if let Some(trouble) = &trouble {
                tracing::warn!(block = block.id, trouble, "not in the calendar yet");
            }
            let note = move |one: &mut Proposal| {
                if trouble.is_none() {
                    one.state = Stand::Written;
                }
                one.trouble = trouble;
            };
            self.0.proposals.change(&block.id, &[Stand::Accepted], note).await?;
            if away {
                break;
            }
        }
        Ok(())
    }

    /// Writes a block to the calendar if its time is free, checked before and after. Otherwise the
    /// block is not in the calendar, and the conflicting event is returned.
    async fn enter(
        &self,
        diary: &CalendarCache,
        block: &Proposal,
    ) -> Result<Option<Occurrence>, CalendarError> {
        let mut other = self.beneath(diary, block).await?;
        if other.is_none() {
            self.put(diary, block).await?;
            other = self.beneath(diary, block).await?;
        }
        if other.is_some() {
            withdraw(diary, block).await?;
        }
        Ok(other)
    }

    /// Returns the event that a block overlaps in the calendar.
    async fn beneath(
        &self,
        diary: &CalendarCache,
        block: &Proposal,
    ) -> Result<Option<Occurrence>, CalendarError> {
        let entries = diary.entries().await?;
        Ok(apart(block, agenda(&entries, block.start, block.end, &self.zone()).occurrences))
    }

    async fn put(&self, diary: &CalendarCache, block: &Proposal) -> Result<(), CalendarError> {
        let times = (block.start, block.end);
        let notes = format!("Proposed by Stafette for {}", block.task);
        let text =
            entry::event(&block.id, &block.title, &notes, times, Some(&block.task), clock::now());
        match diary.calendar.put(&block.entry, &text, None).await {
            // Written before, by a process that died before it recorded that, perhaps for another
            // time.
            Err(CalendarError::Conflict { .. }) => {
                let kept = diary.calendar.get(&block.entry).await?;
                if !is_ours(&kept, block) {
                    return Err(CalendarError::Conflict { name: block.entry.clone() });
                }
                diary.calendar.put(&block.entry, &moved(&kept, block)?, Some(&kept.etag)).await?;
                Ok(())
            }
            put => put.map(drop),
        }
    }

    /// Moves a block in the calendar to its new time; if an event got in there meanwhile, it stays
    /// where it was.
    pub(super) async fn shift(&self, wanted: &Proposal) -> Result<(), StageError> {
        let diary = self.diary()?;
        let before = diary.calendar.get(&wanted.entry).await?;
        let text = moved(&before, wanted)?;
        let after = diary.calendar.put(&wanted.entry, &text, Some(&before.etag)).await?;
        let Some(other) = self.beneath(diary, wanted).await? else { return Ok(()) };
        diary.calendar.put(&wanted.entry, &before.text, Some(&after.etag)).await?;
        Err(StageError::taken(wanted, &other, None))
    }

    /// Makes an accepted block wait for approval of another time, because its own is taken.
    async fn put_back(&self, block: &Proposal, other: &Occurrence) -> Result<(), StageError> {
        let _line = self.0.booking.line().await;
        match self.elsewhere(block, other).await {
            Ok(fault) => {
                tracing::warn!(block = block.id, %fault, "accepted, and waits again");
                Ok(())
            }
            // A person decided otherwise meanwhile.
            Err(StageError::Proposal { source: ProposalError::State { .. } }) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Reads the calendar: writes accepted blocks, and notices blocks that were moved or deleted
    /// there.
    pub(crate) async fn look_at_calendar(&self) -> Result<Vec<Drift>, StageError> {
        let Some(diary) = &self.0.diary else { return Ok(Vec::new()) };
        self.write_accepted().await?;
        let _writing = self.0.booking.writing.lock().await;
        let planned = self.in_calendar().await?;
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
            self.0.proposals.change(&planned.uid, IN_CALENDAR, note).await?;
        }
        let mut plans: Vec<(RunId, HandoffId)> =
            planned.iter().map(|one| (one.run, one.handoff)).collect();
        plans.sort_unstable();
        plans.dedup();
        for (run, handoff) in plans {
            self.mind_the_order(&Chain::new(self.0.proposals.of(run, handoff).await?)).await?;
        }
        Ok(drifted)
    }

    /// Returns the blocks that the calendar should contain.
    pub(crate) async fn in_calendar(&self) -> Result<Vec<Proposal>, StageError> {
        let mut blocks = Vec::new();
        for state in IN_CALENDAR {
            blocks.extend(self.0.proposals.in_state(*state).await?);
        }
        Ok(blocks)
    }

    /// Repairs an order that was broken in a calendar program: proposed blocks get a later time,
    /// and blocks that cannot have one carry a warning until the order is restored.
    async fn mind_the_order(&self, chain: &Chain) -> Result<(), StageError> {
        let (now, until) = self.ahead();
        for block in chain.blocks().iter().filter(|one| one.start > now) {
            let first = chain.ahead_of(block);
            if let Some(first) = first.filter(|_| is_open(block.state)) {
                let busy = self.busy(now, until).await?;
                let room = Room { busy: &busy, week: &self.week(), span: (now, until) };
                if let Ok(along) = chain.follow(first, room, is_open) {
                    let wishes = along.iter().map(|next| follows(next, first)).collect();
                    self.0.proposals.hold_all(wishes).await?;
                    // The others are checked next time, in their state at that time.
                    return Ok(());
                }
            }
            let trouble = first.map(|first| StageError::early(block, first).to_string());
            let tells = IN_CALENDAR.contains(&block.state) || trouble.is_some();
            if tells && trouble != block.trouble {
                let note = |one: &mut Proposal| one.trouble = trouble;
                self.0.proposals.change(&block.id, MOVABLE, note).await?;
            }
        }
        Ok(())
    }
}

/// Removes a block from the calendar, if it is there.
async fn withdraw(diary: &CalendarCache, block: &Proposal) -> Result<(), CalendarError> {
    let removed = match diary.calendar.get(&block.entry).await {
        Ok(kept) if is_ours(&kept, block) => diary.calendar.remove(&block.entry, &kept.etag).await,
        kept => kept.map(drop),
    };
    match removed {
        Err(CalendarError::Gone { .. }) => Ok(()),
        removed => removed,
    }
}

/// True if an entry is our block, and not a foreign one of the same name.
fn is_ours(kept: &Entry, block: &Proposal) -> bool {
    kept.text.contains(&block.id)
}

/// Returns the text of an entry at the time of a block.
fn moved(kept: &Entry, block: &Proposal) -> Result<String, CalendarError> {
    entry::moved(&kept.text, block.start, block.end, clock::now()).map_err(|error| {
        CalendarError::Unusable { name: kept.name.clone(), why: error.to_string() }
    })
}
