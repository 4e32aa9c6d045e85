//! Compares the cost of a handoff late in a long run with one early in a short run.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use stafette_engine::Driver;
use stafette_store::{SqliteStore, Store};

use crate::null::{NullRun, Shape};
use crate::sample::Sample;
use crate::{BenchError, History, Opening, Point};

/// The number of times that a run is opened.
const OPENINGS: u32 = 20;

/// Measures two runs, one short and one long, each in a file of its own, alternating.
pub(crate) async fn measure(
    folder: &Path,
    shape: Shape,
    handoffs: u32,
) -> Result<History, BenchError> {
    let (early, late) = (handoffs.div_ceil(20), handoffs.saturating_mul(5));
    let mut short = Subject::grown(folder, "short", shape, early).await?;
    let mut long = Subject::grown(folder, "long", shape, late).await?;
    for _ in 0..handoffs.div_ceil(20).clamp(5, 100) {
        short.hand_over().await?;
        long.hand_over().await?;
    }
    short.run.near_snapshot(&*short.store).await?;
    long.run.near_snapshot(&*long.store).await?;
    let mut replayed = 0;
    for _ in 0..OPENINGS {
        short.open().await?;
        replayed = long.open().await?;
    }
    let ratio = |of: fn(&Subject) -> f64| of(&long) / of(&short).max(f64::MIN_POSITIVE);
    let history = History {
        shape: shape.name(),
        ratio: ratio(|subject| subject.total.median()),
        computing_ratio: ratio(|subject| subject.computing.median()),
        bytes_ratio: ratio(Subject::bytes_each),
        snapshot_ratio: ratio(|subject| subject.snapshot as f64),
        opening: Opening {
            replayed,
            early_us: short.opening.median(),
            late_us: long.opening.median(),
            ratio: ratio(|subject| subject.opening.median()),
        },
        early: short.point(early),
        late: long.point(late),
    };
    short.end().await?;
    long.end().await?;
    Ok(history)
}

/// A run of some length, and the costs of its handoffs.
struct Subject {
    store: Arc<SqliteStore>,
    run: NullRun,
    total: Sample,
    computing: Sample,
    opening: Sample,
    count: u64,
    bytes: u64,
    snapshot: u64,
}

impl Subject {
    async fn grown(
        folder: &Path,
        name: &str,
        shape: Shape,
        handoffs: u32,
    ) -> Result<Self, BenchError> {
        let store = crate::open(folder, &format!("{}-{name}.db", shape.name()))?;
        let mut run = NullRun::begin(&*store, 0, shape).await?;
        run.grow(&*store, handoffs).await?;
        Ok(Subject {
            store,
            run,
            total: Sample::default(),
            computing: Sample::default(),
            opening: Sample::default(),
            count: 0,
            bytes: 0,
            snapshot: 0,
        })
    }

    async fn hand_over(&mut self) -> Result<(), BenchError> {
        let cost = self.run.hand_over(&*self.store).await?;
        self.total.add(cost.total());
        self.computing.add(cost.computing());
        self.count += 1;
        self.bytes += cost.bytes;
        Ok(())
    }

    /// Opens the run; returns the number of events that were read besides the snapshot.
    async fn open(&mut self) -> Result<u64, BenchError> {
        let begin = Instant::now();
        let loaded = self.store.load(self.run.id()).await?.ok_or("the run is gone")?;
        let driver = Driver::restore(&loaded)?;
        self.opening.add(begin.elapsed());
        if driver.run().tally.handoffs != self.run.made() {
            return Err("the run came back with another number of handoffs".into());
        }
        self.snapshot = loaded.snapshot.map_or(0, |snapshot| snapshot.body.len() as u64);
        Ok(loaded.entries.len() as u64)
    }

    fn bytes_each(&self) -> f64 {
        self.bytes as f64 / self.count.max(1) as f64
    }

    fn point(&self, after: u32) -> Point {
        Point {
            handoff: after,
            median_us: self.total.median(),
            computing_us: self.computing.median(),
            bytes: self.bytes_each(),
            snapshot_bytes: self.snapshot,
        }
    }

    async fn end(self) -> Result<(), BenchError> {
        self.run.end(&*self.store).await?;
        self.store.close().await;
        Ok(())
    }
}
