//! Measures the cost of observing a handoff: of counting it, and of tracing it as spans.
//!
//! The same run three times, on the same disk and alternating: without a follower, with metrics as
//! in the daemon, and with traces that are sent to a receiver.

mod receiver;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use stafette_engine::Source;
use stafette_store::SqliteStore;
use stafette_telemetry::Observer;
use stafette_telemetry::export::{Exporter, Sent};
use stafette_telemetry::metrics::Live;
use tokio::sync::watch;

use crate::null::{NullRun, Shape};
use crate::sample::Sample;
use crate::{BenchError, Interval, Watched, Watching};
use receiver::Receiver;

/// The number of handoffs after which the three alternate: few enough that other activity on the
/// machine affects all three. Their spans fill a request.
const ROUND: u32 = 256;

/// The time limit for spans to arrive once nothing else happens.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes this many handoffs three times, in `folder`.
pub(crate) async fn measure(folder: &Path, handoffs: u32) -> Result<Watching, BenchError> {
    let receiver = Receiver::open().await?;
    let mut lanes = [
        Lane::begin(folder, "unwatched", None).await?,
        Lane::begin(folder, "counted", None).await?,
        Lane::begin(folder, "traced", Some(receiver.url())).await?,
    ];
    let (counting, tracing) = (lanes[1].count(), lanes[2].trace());
    let share = handoffs.min(ROUND);
    for round in 0..(handoffs / share.max(1)) as usize {
        // Each is first equally often: work that one leaves to the disk slows the next one.
        for place in 0..3 {
            let lane = (round + place) % 3;
            let seen = async |run: &NullRun| match lane {
                0 => Ok(()),
                1 => counting.seen(run).await,
                _ => tracing.seen(run).await,
            };
            lanes[lane].go(share, seen).await?;
        }
    }
    let [nobody, counted, traced] = &lanes;
    let watching = Watching {
        unwatched: nobody.watched(nobody),
        metrics: counted.watched(nobody),
        tracing: traced.watched(nobody),
    };
    for lane in lanes {
        lane.run.end(&*lane.store).await?;
    }
    Ok(watching)
}

/// A run in a store of its own.
struct Lane {
    folder: PathBuf,
    store: Arc<SqliteStore>,
    run: NullRun,
    source: Source,
    is_watched: bool,
    took: Sample,
    /// The processor time per handoff, one value per round.
    processor: Sample,
}

impl Lane {
    async fn begin(folder: &Path, name: &str, otlp: Option<String>) -> Result<Self, BenchError> {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder)?;
        let store = crate::open(&folder, "events.db")?;
        let run = NullRun::begin_traced(&*store, 0, Shape::Loop, otlp).await?;
        let source = Source::new(store.clone(), run.position());
        let (took, processor) = (Sample::default(), Sample::default());
        Ok(Lane { folder, store, run, source, is_watched: false, took, processor })
    }

    /// Starts counting its handoffs for metrics.
    fn count(&mut self) -> Counting {
        self.is_watched = true;
        let observer = Observer::open(&self.folder, 0);
        tokio::spawn(observer.clone().follow(self.source.feed(0), None));
        Counting(observer)
    }

    /// Starts tracing its handoffs as spans.
    fn trace(&mut self) -> Tracing {
        self.is_watched = true;
        let exporter = Exporter::open(&self.folder, 0);
        let sent = exporter.sent();
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(exporter.follow(self.source.feed(0), stopped));
        Tracing { sent, _stop: stop }
    }

    /// Makes some handoffs, and waits until the observer has `seen` them.
    async fn go(
        &mut self,
        handoffs: u32,
        seen: impl AsyncFnOnce(&NullRun) -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        let begin = processor_time();
        for _ in 0..handoffs {
            let source = self.is_watched.then_some(&self.source);
            let cost = self.run.hand_over_seen(&*self.store, source).await?;
            self.took.add(cost.total());
        }
        seen(&self.run).await?;
        let spent = processor_time().saturating_sub(begin).as_secs_f64();
        self.processor.add(Duration::from_secs_f64(spent / f64::from(handoffs.max(1))));
        Ok(())
    }

    fn watched(&self, reference: &Lane) -> Watched {
        let (median_us, processor_us) = (self.took.median(), self.processor.median());
        let added = Interval::of(self.processor.beyond(&reference.processor));
        let to = |part: f64, whole: f64| part / whole.max(f64::MIN_POSITIVE);
        let (time, work) = (reference.took.median(), reference.processor.median());
        Watched {
            median_us,
            ratio: to(median_us, time),
            processor_us,
            added_us: added,
            of_time: to(added.middle, time),
            of_work: to(added.middle, work),
        }
    }
}

/// The observer that counts.
struct Counting(Observer);

impl Counting {
    /// Waits until all handoffs are counted.
    async fn seen(&self, run: &NullRun) -> Result<(), BenchError> {
        self.0.reached(run.position()).await;
        let page = self.0.page(Live::default());
        let total = page.lines().find_map(|line| line.strip_prefix("handoff_total "));
        let made = run.made();
        match total.and_then(|total| total.parse::<u32>().ok()) {
            Some(total) if total == made => Ok(()),
            total => Err(format!("{made} handoffs were made, {total:?} were counted").into()),
        }
    }
}

/// The observer that sends spans.
struct Tracing {
    sent: Arc<Sent>,
    /// Held as long as it runs; dropping it stops the observer.
    _stop: watch::Sender<bool>,
}

impl Tracing {
    /// Waits until the receiver has a span for each handoff and one for its turn.
    async fn seen(&self, run: &NullRun) -> Result<(), BenchError> {
        let wanted = 2 * u64::from(run.made());
        let arrived = tokio::time::timeout(PATIENCE, self.sent.reached(wanted)).await;
        match (arrived.is_ok(), self.sent.counts()) {
            (true, (sent, 0)) if sent == wanted => Ok(()),
            (_, (sent, dropped)) => {
                Err(format!("{wanted} spans ended, {sent} were taken, {dropped} were not").into())
            }
        }
    }
}

/// Returns the processor time of this process so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
