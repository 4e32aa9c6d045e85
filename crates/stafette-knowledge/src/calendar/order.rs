//! The order of the blocks of one plan, some of which wait for others. Moving a block keeps that
//! order: blocks that wait for it move along after it, or the move is refused.

use stafette_core::{Priority, Time};

use super::occurrence::Occurrence;
use super::proposal::{Proposal, Stand};
use super::slots::{Wanted, Week, propose};

/// The blocks of one plan that take time, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Chain {
    blocks: Vec<Proposal>,
}

/// The limits within which free time is searched.
#[derive(Clone, Copy, Debug)]
pub struct Room<'a> {
    /// Everything that takes time; blocks of the chain are recognised in it by their ids.
    pub busy: &'a [Occurrence],
    /// The working hours and the rules for blocks.
    pub week: &'a Week,
    /// The first and the last moment to search.
    pub span: (Time, Time),
}

impl Chain {
    /// Makes the chain of a plan's blocks.
    #[must_use]
    pub fn new(mut blocks: Vec<Proposal>) -> Self {
        blocks.retain(|block| block.state.holds_time());
        Chain { blocks }
    }

    /// Returns the blocks of the chain.
    pub fn blocks(&self) -> &[Proposal] {
        &self.blocks
    }

    /// Returns the last predecessor that ends only after the block has begun.
    pub fn ahead_of(&self, block: &Proposal) -> Option<&Proposal> {
        self.first(block).filter(|first| first.end > block.start)
    }

    /// Returns the blocks that would move along with this one if necessary.
    pub fn behind(&self, block: &Proposal, free: fn(Stand) -> bool) -> Vec<&Proposal> {
        let mut found = self.waiting(block);
        found.retain(|one| free(one.state));
        found
    }

    /// Keeps a block at its new time and moves the blocks that wait for it after it. Returns those
    /// blocks at their new times. Blocks that are not `free` stay where they are.
    ///
    /// # Errors
    /// The block that waits for it, cannot stay, and cannot be moved after it.
    pub fn follow(
        &self,
        moved: &Proposal,
        room: Room<'_>,
        free: fn(Stand) -> bool,
    ) -> Result<Vec<Proposal>, Box<Proposal>> {
        let mut chain = self.with(moved);
        let mut along = Vec::new();
        // A block has its final place once nothing that it waits for has to move any more.
        while let Some(early) = chain.next_early(moved) {
            let place = match free(early.state) {
                true => chain.place(&early, room, free, true),
                false => None,
            };
            let Some((start, end)) = place else { return Err(Box::new(early)) };
            let later = Proposal { start, end, ..early };
            chain = chain.with(&later);
            along.push(later);
        }
        Ok(along)
    }

    /// Finds another place for a block, not earlier than it was: preferably one where no other
    /// block has to move, otherwise with the blocks that wait for it after it. The block comes
    /// first.
    pub fn elsewhere(
        &self,
        block: &Proposal,
        room: Room<'_>,
        free: fn(Stand) -> bool,
    ) -> Option<Vec<Proposal>> {
        [false, true].into_iter().find_map(|along| {
            let (start, end) = self.place(block, room, free, along)?;
            let moved = Proposal { start, end, ..block.clone() };
            let mut all = self.follow(&moved, room, free).ok()?;
            all.insert(0, moved);
            Some(all)
        })
    }

    /// Returns the last unfinished predecessor of a block; finished tasks are not waited for.
    fn first(&self, block: &Proposal) -> Option<&Proposal> {
        let open = |one: &&Proposal| {
            let own = self.blocks.iter().filter(|other| other.task == one.task);
            block.after.contains(&one.task) && own.clone().all(|other| other.done_at.is_none())
        };
        self.blocks.iter().filter(open).max_by_key(|one| one.end)
    }

    /// Returns all blocks that wait for this one, directly or indirectly.
    fn waiting(&self, block: &Proposal) -> Vec<&Proposal> {
        let mut tasks = vec![&block.task];
        let mut found: Vec<&Proposal> = Vec::new();
        loop {
            let known = |one: &Proposal| found.iter().any(|other| other.id == one.id);
            let waits = |one: &Proposal| one.after.iter().any(|task| tasks.contains(&task));
            let Some(next) = self.blocks.iter().find(|one| waits(one) && !known(one)) else {
                return found;
            };
            tasks.push(&next.task);
            found.push(next);
        }
    }

    /// Returns a block that waits for `moved` and begins too early, and has no such predecessor.
    fn next_early(&self, moved: &Proposal) -> Option<Proposal> {
        let mut early = self.waiting(moved);
        early.retain(|one| self.ahead_of(one).is_some());
        let is_behind = |one: &Proposal| {
            early.iter().any(|other| self.waiting(other).iter().any(|behind| behind.id == one.id))
        };
        early.iter().find(|one| !is_behind(one)).map(|one| (*one).clone())
    }

    /// Returns a copy of the chain with one block at another time.
    fn with(&self, moved: &Proposal) -> Self {
        let mut blocks = self.blocks.clone();
        blocks.retain(|one| one.id != moved.id);
        blocks.push(moved.clone());
        Chain { blocks }
    }

    /// Finds a place for a block in one piece: not earlier than it was, after its predecessors,
    /// before its deadline, and before what waits for it. Blocks that can come `along` do not
    /// count.
    fn place(
        &self,
        block: &Proposal,
        room: Room<'_>,
        free: fn(Stand) -> bool,
        along: bool,
    ) -> Option<(Time, Time)> {
        let waiting = self.waiting(block);
        let (loose, fast): (Vec<&Proposal>, Vec<&Proposal>) =
            waiting.into_iter().partition(|one| along && free(one.state));
        let not_before = self.first(block).map_or(block.start, |first| first.end.max(block.start));
        // A person who put it after its deadline did so on purpose.
        let deadline = block.deadline.filter(|deadline| *deadline >= block.end);
        let latest = fast.iter().map(|one| one.start).chain(deadline).min();
        let mut busy: Vec<Occurrence> = room.busy.to_vec();
        busy.retain(|event| !self.blocks.iter().any(|one| one.id == event.uid));
        let others = self
            .blocks
            .iter()
            .filter(|one| one.id != block.id && !loose.iter().any(|loose| loose.id == one.id));
        busy.extend(others.map(Proposal::occurrence));
        let wanted = Wanted {
            task: block.task.clone(),
            title: block.title.clone(),
            length: block.end.since(block.start),
            priority: Priority::default(),
            deadline: latest,
            not_before: Some(not_before),
            after: Vec::new(),
        };
        match propose(&[wanted], &busy, room.week, room.span).ok()?.blocks.as_slice() {
            [only] => Some((only.start, only.end)),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use stafette_core::{HandoffId, RunId};

    use super::*;
    use crate::graph::NodeKey;

    /// Returns a moment on Monday, or `day` days later, in UTC.
    fn at(day: i64, hour: i64) -> Time {
        let monday = Time::parse("2026-11-16T00:00:00Z").expect("a moment");
        Time(monday.0 + (day * 24 + hour) * 3_600_000)
    }

    fn block(name: &str, after: &[&str], state: Stand, day: i64, hours: (i64, i64)) -> Proposal {
        Proposal {
            id: name.into(),
            state,
            run: RunId(uuid::Uuid::nil()),
            handoff: HandoffId(1),
            task: NodeKey::task(name),
            title: name.into(),
            kind: None,
            start: at(day, hours.0),
            end: at(day, hours.1),
            planned_end: at(day, hours.1),
            after: after.iter().map(|name| NodeKey::task(name)).collect(),
            deadline: None,
            done_at: None,
            entry: format!("{name}.ics"),
            trouble: None,
        }
    }

    /// Makes three blocks that wait for each other, on Monday morning, Monday afternoon and
    /// Tuesday.
    fn three(state: Stand) -> Chain {
        Chain::new(vec![
            block("one", &[], state, 0, (9, 11)),
            block("two", &["one"], state, 0, (13, 15)),
            block("three", &["two"], state, 1, (9, 11)),
        ])
    }

    fn proposed(state: Stand) -> bool {
        state == Stand::Proposed
    }

    fn shown(blocks: &[Proposal]) -> Vec<String> {
        let show = |one: &Proposal| format!("{} {}", one.title, &one.start.rfc3339()[8..16]);
        blocks.iter().map(show).collect()
    }

    fn room<'a>(busy: &'a [Occurrence], week: &'a Week) -> Room<'a> {
        Room { busy, week, span: (at(0, 0), at(5, 0)) }
    }

    #[test]
    fn s1_14_what_waits_for_a_moved_block_comes_behind_it_and_nothing_else_moves() {
        let (chain, week) = (three(Stand::Proposed), Week::default());
        // After what waits for it: both come along.
        let moved = Proposal { start: at(1, 9), end: at(1, 11), ..chain.blocks()[0].clone() };
        let along = chain.follow(&moved, room(&[], &week), proposed).expect("there is room");
        assert_eq!(shown(&along), ["two 17T13:00", "three 18T09:00"]);
        // Before it: no block has to move.
        let moved = Proposal { start: at(0, 10), end: at(0, 12), ..chain.blocks()[0].clone() };
        assert_eq!(chain.follow(&moved, room(&[], &week), proposed), Ok(Vec::new()));
        // Onto the next one alone: the last one can stay.
        let moved = Proposal { start: at(0, 13), end: at(0, 14), ..chain.blocks()[0].clone() };
        let along = chain.follow(&moved, room(&[], &week), proposed).expect("there is room");
        assert_eq!(shown(&along), ["two 16T14:15"]);
    }

    #[test]
    fn s1_14_what_people_agreed_to_stays_and_is_named() {
        let mut chain = three(Stand::Proposed);
        chain.blocks[2].state = Stand::Written;
        let week = Week::default();
        let one = chain.blocks()[0].clone();
        let to = |day, from, until| Proposal {
            start: at(day, from),
            end: at(day, until),
            ..one.clone()
        };
        // The middle one still fits between the two.
        let along = chain.follow(&to(0, 12, 14), room(&[], &week), proposed).expect("room");
        assert_eq!(shown(&along), ["two 16T14:15"]);
        let stuck = chain.follow(&to(0, 15, 17), room(&[], &week), proposed).expect_err("no room");
        assert_eq!(stuck.title, "two", "there is none before what stands in the calendar");
        chain.blocks[1].state = Stand::Accepted;
        let stuck = chain.follow(&to(0, 12, 14), room(&[], &week), proposed).expect_err("agreed");
        assert_eq!(stuck.title, "two");
    }

    #[test]
    fn s1_14_a_block_that_lost_its_place_stays_before_what_waits_for_it_if_it_can() {
        let (chain, week) = (three(Stand::Proposed), Week::default());
        let taken = |hours: (i64, i64)| Occurrence {
            uid: "dentist".into(),
            ..block("Dentist", &[], Stand::Written, 0, hours).occurrence()
        };
        let one = &chain.blocks()[0];
        let short = Proposal { end: at(0, 10), ..one.clone() };
        let near = chain.with(&short).elsewhere(&short, room(&[taken((9, 10))], &week), proposed);
        assert_eq!(shown(&near.expect("a place")), ["one 16T10:15"], "before the next one");
        let all = chain.elsewhere(one, room(&[taken((9, 12))], &week), proposed);
        let all = shown(&all.expect("a place"));
        assert_eq!(all, ["one 16T13:00", "two 17T09:00", "three 17T13:00"], "in their order");
        // With a deadline before that there is no place.
        let mut hurried = chain.clone();
        hurried.blocks[0].deadline = Some(at(0, 12));
        let one = hurried.blocks[0].clone();
        assert_eq!(hurried.elsewhere(&one, room(&[taken((9, 12))], &week), proposed), None);
        // And none that would be behind what is in the calendar.
        let mut written = three(Stand::Written);
        written.blocks[0].state = Stand::Proposed;
        let one = written.blocks[0].clone();
        assert_eq!(written.elsewhere(&one, room(&[taken((9, 12))], &week), proposed), None);
    }

    #[test]
    fn s1_14_what_is_done_or_dropped_is_not_waited_for() {
        let mut chain = three(Stand::Written);
        let early = Proposal { start: at(0, 8), end: at(0, 9), ..chain.blocks()[1].clone() };
        assert_eq!(chain.ahead_of(&early).map(|one| one.title.as_str()), Some("one"));
        chain.blocks[0].done_at = Some(at(0, 7));
        assert_eq!(chain.ahead_of(&early), None);
        chain.blocks[0].done_at = None;
        chain.blocks[0].state = Stand::Dropped;
        assert_eq!(Chain::new(chain.blocks.clone()).ahead_of(&early), None);
    }
}
