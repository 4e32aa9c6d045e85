//! A store in memory: for tests and for simulation.

use std::collections::{BTreeMap, BTreeSet};
use std::future::ready;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use stafette_model::{HandoffId, RunId};

use crate::digits;
use crate::record::Page;
use crate::stats::{Counters, Stats};
use crate::{
    AppendError, Batch, Compacted, FIND_LIMIT, HandoffRow, Health, LOCK_ENTRIES, Loaded, LockBatch,
    LockEntry, LockError, LockRow, LockStore, ReadError, Reading, Removed, Reply, Retention,
    RunFilter, RunRow, Snapshot, Store, Stored, UpkeepError,
};

/// Keeps runs in memory, with the same rules as a store on disk.
///
/// A clone is another handle to the same content, as a second connection would be: closing one
/// leaves the other open. A simulation crashes its daemon by dropping a handle.
#[derive(Debug, Default)]
pub struct MemoryStore {
    content: Arc<Mutex<Content>>,
    counters: Arc<Counters>,
    closed: AtomicBool,
}

impl Clone for MemoryStore {
    fn clone(&self) -> Self {
        let (content, counters) = (self.content.clone(), self.counters.clone());
        MemoryStore { content, counters, closed: AtomicBool::new(false) }
    }
}

#[derive(Debug, Default)]
struct Content {
    head: u64,
    runs: BTreeMap<RunId, Kept>,
    /// Run and sequence number of the entry at each position.
    feed: BTreeMap<u64, (RunId, u64)>,
    locks: Book,
}

#[derive(Debug, Default)]
struct Book {
    version: u64,
    fence: u64,
    rows: BTreeMap<u64, LockRow>,
    entries: BTreeMap<u64, LockEntry>,
}

#[derive(Debug)]
struct Kept {
    row: RunRow,
    /// The entry with sequence number n is at index n - 1.
    entries: Vec<Stored>,
    handoffs: BTreeMap<HandoffId, HandoffRow>,
    snapshots: BTreeMap<u64, String>,
}

impl Kept {
    fn after(&self, seq: u64) -> &[Stored] {
        let skip = usize::try_from(seq).unwrap_or(usize::MAX).min(self.entries.len());
        &self.entries[skip..]
    }

    fn bytes(&self) -> usize {
        let entries = self.entries.iter().map(|stored| stored.entry.body.len());
        let handoffs = self.handoffs.values().map(|row| row.body.len());
        let snapshots = self.snapshots.values().map(String::len);
        self.row.body.len() + entries.chain(handoffs).chain(snapshots).sum::<usize>()
    }
}

impl MemoryStore {
    /// Creates an empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Like [`Store::append`], without waiting.
    ///
    /// # Errors
    /// As `append`, though it is never full, busy or read-only.
    pub fn append_now(&self, batch: Batch) -> Result<u64, AppendError> {
        batch.check()?;
        let position = self.content().ok_or(AppendError::Closed)?.append(batch)?;
        // Each batch is its own commit, and takes negligible time.
        self.counters.committed(1, Duration::ZERO);
        Ok(position)
    }

    /// Like [`Store::load`], without waiting.
    ///
    /// # Errors
    /// Only when the handle is closed.
    pub fn load_now(&self, run: RunId) -> Result<Option<Loaded>, ReadError> {
        self.read_now(|content| content.runs.get(&run).map(|kept| load_at(kept, u64::MAX)))
    }

    /// Like [`Store::unfinished`], without waiting.
    ///
    /// # Errors
    /// Only when the handle is closed.
    pub fn unfinished_now(&self) -> Result<Vec<RunId>, ReadError> {
        self.read_now(|content| {
            let open = content.runs.values().filter(|kept| kept.row.finished_at.is_none());
            let mut open: Vec<_> = open.map(|kept| (kept.row.created_at, kept.row.run)).collect();
            open.sort_unstable();
            open.into_iter().map(|(_, run)| run).collect()
        })
    }

    /// Returns `None` if this handle is closed. A panic elsewhere leaves the content consistent,
    /// because batches are checked before they change anything.
    fn content(&self) -> Option<MutexGuard<'_, Content>> {
        let open = !self.closed.load(Ordering::Acquire);
        open.then(|| self.content.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn read_now<T>(&self, query: impl FnOnce(&Content) -> T) -> Result<T, ReadError> {
        self.content().map(|content| query(&content)).ok_or(ReadError::Closed)
    }

    fn read<T: Send + 'static>(&self, query: impl FnOnce(&Content) -> T) -> Reading<'_, T> {
        Box::pin(ready(self.read_now(query)))
    }
}

impl Content {
    fn append(&mut self, batch: Batch) -> Result<u64, AppendError> {
        let Batch { run, expected_seq: expected, entries, row, handoffs, snapshot } = batch;
        let found = self.runs.get(&run).map_or(0, |kept| kept.row.seq);
        if found != expected {
            return Err(AppendError::Conflict { run, expected, found });
        }
        let kept = self.runs.entry(run).or_insert_with(|| Kept {
            row: row.clone(),
            entries: Vec::new(),
            handoffs: BTreeMap::new(),
            snapshots: BTreeMap::new(),
        });
        kept.row = row;
        for entry in entries {
            self.head += 1;
            self.feed.insert(self.head, (run, entry.seq));
            kept.entries.push(Stored { position: self.head, run, entry });
        }
        kept.handoffs.extend(handoffs.into_iter().map(|row| (row.id, row)));
        kept.snapshots.extend(snapshot.map(|snapshot| (snapshot.seq, snapshot.body)));
        Ok(self.head)
    }

    fn feed(&self, after: u64, limit: usize) -> Vec<Stored> {
        let mut page = Page::new(limit);
        for (run, seq) in self.feed.range(after.saturating_add(1)..).map(|(_, place)| place) {
            if page.is_full() {
                break;
            }
            if let Some(stored) = self.runs.get(run).and_then(|kept| kept.after(seq - 1).first()) {
                page.push(stored.clone());
            }
        }
        page.into_entries()
    }

    fn find(&self, digits: &str) -> Vec<RunId> {
        let Some(digits) = digits::typed(digits) else { return Vec::new() };
        let named = |run: &&RunId| {
            let name = run.0.simple().to_string();
            let is_part = digits.len() < 8 && name[24..].starts_with(&digits);
            is_part || name.starts_with(&digits) || name.ends_with(&digits)
        };
        self.runs.keys().rev().filter(named).take(FIND_LIMIT).copied().collect()
    }

    fn retain(&mut self, retention: Retention) -> Removed {
        let ended =
            self.runs.values().filter_map(|kept| Some((kept.row.finished_at?, kept.row.run)));
        let ended: BTreeSet<_> = ended.collect();
        let mut removed = Removed::default();
        for (at, run) in ended.into_iter().rev().skip(retention.keep_last) {
            if retention.finished_before.is_some_and(|before| at >= before) {
                continue;
            }
            let Some(kept) = self.runs.remove(&run) else { continue };
            for stored in &kept.entries {
                self.feed.remove(&stored.position);
            }
            removed.runs += 1;
            removed.events += kept.entries.len() as u64;
        }
        removed
    }

    fn bytes(&self) -> u64 {
        self.runs.values().map(Kept::bytes).sum::<usize>() as u64
    }

    fn compact(&mut self) -> Compacted {
        let mut done = Compacted { bytes_before: self.bytes(), ..Compacted::default() };
        for kept in self.runs.values_mut() {
            while kept.snapshots.len() > 1 {
                kept.snapshots.pop_first();
                done.snapshots += 1;
            }
        }
        done.bytes_after = self.bytes();
        done
    }

    fn health(&self) -> Health {
        let sum = |count: fn(&Kept) -> usize| self.runs.values().map(count).sum::<usize>() as u64;
        Health {
            backend: "memory",
            schema: 0,
            problems: Vec::new(),
            bytes: self.bytes(),
            max_bytes: None,
            runs: self.runs.len() as u64,
            unfinished: sum(|kept| usize::from(kept.row.finished_at.is_none())),
            events: sum(|kept| kept.entries.len()),
            unchecked: 0,
            handoffs: sum(|kept| kept.handoffs.len()),
            snapshots: sum(|kept| kept.snapshots.len()),
        }
    }
}

impl Book {
    fn write(&mut self, batch: LockBatch) -> Result<u64, LockError> {
        batch.fits(self.version, self.fence)?;
        self.version = batch.version();
        self.fence = batch.fence;
        self.entries.extend(batch.entries.into_iter().map(|entry| (entry.seq, entry)));
        self.entries = self.entries.split_off(&(self.version.saturating_sub(LOCK_ENTRIES) + 1));
        for id in batch.remove {
            self.rows.remove(&id);
        }
        self.rows.extend(batch.put.into_iter().map(|row| (row.id, row)));
        Ok(self.version)
    }
}

fn load_at(kept: &Kept, seq: u64) -> Loaded {
    let newest = kept.snapshots.range(..=seq).next_back();
    let snapshot = newest.map(|(&seq, body)| Snapshot { seq, body: body.clone() });
    let after = snapshot.as_ref().map_or(0, |snapshot| snapshot.seq);
    let entries = kept.after(after).iter().take_while(|stored| stored.entry.seq <= seq);
    Loaded { snapshot, entries: entries.cloned().collect() }
}

impl Store for MemoryStore {
    fn append(&self, batch: Batch) -> Reply<'_, Result<u64, AppendError>> {
        Box::pin(ready(self.append_now(batch)))
    }

    fn load_at(&self, run: RunId, seq: u64) -> Reading<'_, Option<Loaded>> {
        self.read(|content| content.runs.get(&run).map(|kept| load_at(kept, seq)))
    }

    fn entries(&self, run: RunId, after_seq: u64, limit: usize) -> Reading<'_, Vec<Stored>> {
        self.read(|content| {
            let mut page = Page::new(limit);
            for stored in content.runs.get(&run).map_or(&[][..], |kept| kept.after(after_seq)) {
                if page.is_full() {
                    break;
                }
                page.push(stored.clone());
            }
            page.into_entries()
        })
    }

    fn feed(&self, after_position: u64, limit: usize) -> Reading<'_, Vec<Stored>> {
        self.read(|content| content.feed(after_position, limit))
    }

    fn head(&self) -> Reading<'_, u64> {
        self.read(|content| content.head)
    }

    fn entries_of(&self, run: RunId, handoff: HandoffId) -> Reading<'_, Vec<Stored>> {
        self.read(|content| {
            let entries = content.runs.get(&run).map_or(&[][..], |kept| kept.after(0));
            let about = entries.iter().filter(|stored| stored.entry.handoff == Some(handoff));
            about.cloned().collect()
        })
    }

    fn run(&self, run: RunId) -> Reading<'_, Option<RunRow>> {
        self.read(|content| content.runs.get(&run).map(|kept| kept.row.clone()))
    }

    fn runs(&self, filter: RunFilter) -> Reading<'_, Vec<RunRow>> {
        self.read(|content| {
            let rows = content.runs.values().map(|kept| &kept.row);
            let wanted = |row: &&RunRow| filter.status.as_ref().is_none_or(|it| *it == row.status);
            let mut rows: Vec<_> = rows.filter(wanted).collect();
            let place = |row: &RunRow| (row.created_at, row.run);
            if let Some(after) = filter.after {
                let after = content.runs.get(&after).map(|kept| place(&kept.row));
                rows.retain(|row| after.is_some_and(|after| place(row) < after));
            }
            rows.sort_unstable_by_key(|row| std::cmp::Reverse(place(row)));
            rows.into_iter().take(filter.limit).cloned().collect()
        })
    }

    fn find_run(&self, digits: String) -> Reading<'_, Vec<RunId>> {
        self.read(|content| content.find(&digits))
    }

    fn handoffs(&self, run: RunId) -> Reading<'_, Vec<HandoffRow>> {
        self.read(|content| {
            let rows = content.runs.get(&run).map(|kept| kept.handoffs.values().cloned().collect());
            rows.unwrap_or_default()
        })
    }

    fn handoff(&self, run: RunId, id: HandoffId) -> Reading<'_, Option<HandoffRow>> {
        self.read(|content| content.runs.get(&run).and_then(|kept| kept.handoffs.get(&id)).cloned())
    }

    fn questions(&self) -> Reading<'_, Vec<HandoffRow>> {
        self.read(|content| {
            let rows = content.runs.values().flat_map(|kept| kept.handoffs.values());
            let mut rows: Vec<_> = rows.filter(|row| row.question).cloned().collect();
            rows.sort_unstable_by_key(|row| (row.opened_at, row.run, row.id));
            rows
        })
    }

    fn unfinished(&self) -> Reading<'_, Vec<RunId>> {
        Box::pin(ready(self.unfinished_now()))
    }

    fn write_locks(&self, batch: LockBatch) -> Reply<'_, Result<u64, LockError>> {
        let write = move || {
            batch.check()?;
            self.content().ok_or(AppendError::Closed)?.locks.write(batch)
        };
        Box::pin(ready(write()))
    }

    fn locks(&self) -> Reading<'_, LockStore> {
        self.read(|content| {
            let Book { version, fence, rows, .. } = &content.locks;
            LockStore { version: *version, fence: *fence, rows: rows.values().cloned().collect() }
        })
    }

    fn lock_entries(&self, after: u64, limit: usize) -> Reading<'_, Vec<LockEntry>> {
        self.read(|content| {
            let later = content.locks.entries.range(after.saturating_add(1)..);
            later.take(limit).map(|(_, entry)| entry.clone()).collect()
        })
    }

    fn retain(&self, retention: Retention) -> Reply<'_, Result<Removed, UpkeepError>> {
        let content = self.content().ok_or(UpkeepError::Closed);
        Box::pin(ready(content.map(|mut content| content.retain(retention))))
    }

    fn compact(&self) -> Reply<'_, Result<Compacted, UpkeepError>> {
        let content = self.content().ok_or(UpkeepError::Closed);
        Box::pin(ready(content.map(|mut content| content.compact())))
    }

    fn check(&self) -> Reading<'_, Health> {
        self.read(Content::health)
    }

    fn stats(&self) -> Stats {
        self.counters.stats()
    }

    fn close(&self) -> Reply<'_, ()> {
        self.closed.store(true, Ordering::Release);
        Box::pin(ready(()))
    }
}
