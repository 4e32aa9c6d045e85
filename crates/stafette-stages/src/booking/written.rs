//! What was accepted, in the calendar: how it gets there, and what becomes of it.
//!
//! A calendar that others write to knows no transaction over several entries. So it is looked at
//! once more after a block is in it: what got in between the last look and the write is seen then,
//! and our block goes out again. What gets in later was put on top of it by somebody who could see
//! it.

use stafette_core::{HandoffId, Millis, RunId, Time};
use stafette_knowledge::calendar::occurrence::{Drift, Occurrence, agenda, drifts};
use stafette_knowledge::calendar::order::{Chain, Room};
use stafette_knowledge::calendar::proposal::{Proposal, ProposalError, Stand};
use stafette_knowledge::calendar::{CalendarError, Entry, entry};

use super::{IN_CALENDAR, MOVABLE, apart, follows, is_open};
use crate::planner::CalendarCache;
use crate::{Fault, Stages, clock};

/// How far around now events of ours are looked for.
const AROUND: Millis = Millis::hours(400 * 24);

impl Stages {
    /// Puts into the calendar what was accepted. What cannot be put there now waits.
    pub(crate) async fn write_accepted(&self) -> Result<(), Fault> {
        let Some(diary) = &self.0.diary else { return Ok(()) };
        let _writing = self.0.booking.writing.lock().await;
        for block in self.0.proposals.in_state(Stand::Accepted).await? {
            // As it is by now: it may wait again, with one before it.
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

    /// Puts a block into the calendar where nothing else is, before and after. Otherwise it is not in
    /// it, and what is there comes back.
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

    /// What a block stands on in the calendar.
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
            // Written before, by somebody who died before it was noted, perhaps for another time.
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

    /// Moves a block that is in the calendar to where it is wanted; when something got in there
    /// meanwhile, it stays where it was.
    pub(super) async fn shift(&self, wanted: &Proposal) -> Result<(), Fault> {
        let diary = self.diary()?;
        let before = diary.calendar.get(&wanted.entry).await?;
        let text = moved(&before, wanted)?;
        let after = diary.calendar.put(&wanted.entry, &text, Some(&before.etag)).await?;
        let Some(other) = self.beneath(diary, wanted).await? else { return Ok(()) };
        diary.calendar.put(&wanted.entry, &before.text, Some(&after.etag)).await?;
        Err(Fault::taken(wanted, &other, None))
    }

    /// Has a block that was accepted wait for a yes to another time, since its own is taken.
    async fn put_back(&self, block: &Proposal, other: &Occurrence) -> Result<(), Fault> {
        let _line = self.0.booking.line().await;
        match self.elsewhere(block, other).await {
            Ok(fault) => {
                tracing::warn!(block = block.id, %fault, "accepted, and waits again");
                Ok(())
            }
            // Somebody decided otherwise meanwhile.
            Err(Fault::Proposal { source: ProposalError::State { .. } }) => Ok(()),
            Err(fault) => Err(fault),
        }
    }

    /// Looks at the calendar: what was accepted gets in, what somebody moved or deleted is noticed.
    pub(crate) async fn look_at_calendar(&self) -> Result<Vec<Drift>, Fault> {
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

    /// The blocks that should be found in the calendar.
    pub(crate) async fn in_calendar(&self) -> Result<Vec<Proposal>, Fault> {
        let mut blocks = Vec::new();
        for state in IN_CALENDAR {
            blocks.extend(self.0.proposals.in_state(*state).await?);
        }
        Ok(blocks)
    }

    /// What somebody's calendar program has put out of its order: what is only proposed gets a later
    /// time, and whatever cannot have one says so until it is in order again.
    async fn mind_the_order(&self, chain: &Chain) -> Result<(), Fault> {
        let (now, until) = self.ahead();
        for block in chain.blocks().iter().filter(|one| one.start > now) {
            let first = chain.ahead_of(block);
            if let Some(first) = first.filter(|_| is_open(block.state)) {
                let busy = self.busy(now, until).await?;
                let room = Room { busy: &busy, week: &self.week(), span: (now, until) };
                if let Ok(along) = chain.follow(first, room, is_open) {
                    let wishes = along.iter().map(|next| follows(next, first)).collect();
                    self.0.proposals.hold_all(wishes).await?;
                    // The others are looked at next time, as they are then.
                    return Ok(());
                }
            }
            let trouble = first.map(|first| Fault::early(block, first).to_string());
            let tells = IN_CALENDAR.contains(&block.state) || trouble.is_some();
            if tells && trouble != block.trouble {
                let note = |one: &mut Proposal| one.trouble = trouble;
                self.0.proposals.change(&block.id, MOVABLE, note).await?;
            }
        }
        Ok(())
    }
}

/// Takes a block out of the calendar, if it is there.
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

/// Whether an entry is a block of ours, and not somebody else's of the same name.
fn is_ours(kept: &Entry, block: &Proposal) -> bool {
    kept.text.contains(&block.id)
}

/// The text of an entry at the time of a block.
fn moved(kept: &Entry, block: &Proposal) -> Result<String, CalendarError> {
    entry::moved(&kept.text, block.start, block.end, clock::now()).map_err(|error| {
        CalendarError::Unusable { name: kept.name.clone(), why: error.to_string() }
    })
}
