//! What it costs to see a handoff: to count it, and to tell it as spans.
//!
//! The same run three times, on the same disk and in turns: nobody follows it, metrics follow it as
//! they do in the daemon, and traces of it are sent to a receiver.

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
use crate::{Trouble, Watched, Watching};
use receiver::Receiver;

/// The three take turns so many times at most, and for so many handoffs at least.
const SLICES: u32 = 24;
const SLICE: u32 = 250;

/// How long spans may take to arrive once nothing else happens.
const PATIENCE: Duration = Duration::from_secs(60);

/// Makes so many handoffs three times, in `folder`.
pub(crate) async fn measure(folder: &Path, handoffs: u32) -> Result<Watching, Trouble> {
    let receiver = Receiver::open().await?;
    let mut lanes = [
        Lane::begin(folder, "unwatched", None).await?,
        Lane::begin(folder, "counted", None).await?,
        Lane::begin(folder, "traced", Some(receiver.url())).await?,
    ];
    let (counting, tracing) = (lanes[1].count(), lanes[2].trace());
    let slices = (handoffs / SLICE).clamp(1, SLICES);
    for slice in 0..slices {
        let until = |slice: u32| u64::from(handoffs) * u64::from(slice) / u64::from(slices);
        let share = until(slice + 1) - until(slice);
        // Each goes first as often as the others: what one leaves the disk to do, the next one feels.
        for place in 0..3 {
            let lane = (slice as usize + place) % 3;
            let seen = async |run: &NullRun| match lane {
                0 => Ok(()),
                1 => counting.seen(run).await,
                _ => tracing.seen(run).await,
            };
            lanes[lane].go(share, seen).await?;
        }
    }
    let [unwatched, mut counted, mut traced] = [&lanes[0], &lanes[1], &lanes[2]].map(Lane::watched);
    for lane in lanes {
        lane.run.end(&*lane.store).await?;
    }
    for watched in [&mut counted, &mut traced] {
        let to = |part: f64, whole: f64| part / whole.max(f64::MIN_POSITIVE);
        watched.ratio = to(watched.median_us, unwatched.median_us);
        // Less than nothing is noise, and is shown as such.
        watched.added_us = watched.processor_us - unwatched.processor_us;
        watched.of_time = to(watched.added_us, unwatched.median_us);
        watched.of_work = to(watched.added_us, unwatched.processor_us);
    }
    Ok(Watching { unwatched, metrics: counted, tracing: traced })
}

/// A run in a store of its own.
struct Lane {
    folder: PathBuf,
    store: Arc<SqliteStore>,
    run: NullRun,
    source: Source,
    is_watched: bool,
    took: Sample,
    /// For a handoff, slice by slice: what else happens on the machine is in few of them.
    processor: Sample,
}

impl Lane {
    async fn begin(folder: &Path, name: &str, otlp: Option<String>) -> Result<Self, Trouble> {
        let folder = folder.join(name);
        std::fs::create_dir_all(&folder)?;
        let store = crate::open(&folder, "events.db")?;
        let run = NullRun::begin_traced(&*store, 0, Shape::Loop, otlp).await?;
        let source = Source::new(store.clone(), run.position());
        let (took, processor) = (Sample::default(), Sample::default());
        Ok(Lane { folder, store, run, source, is_watched: false, took, processor })
    }

    /// Has it counted, from now on.
    fn count(&mut self) -> Counting {
        self.is_watched = true;
        let observer = Observer::open(&self.folder, 0);
        tokio::spawn(observer.clone().follow(self.source.feed(0), None));
        Counting(observer)
    }

    /// Has it told as spans, from now on.
    fn trace(&mut self) -> Tracing {
        self.is_watched = true;
        let exporter = Exporter::open(&self.folder, 0);
        let sent = exporter.sent();
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(exporter.follow(self.source.feed(0), stopped));
        Tracing { sent, _stop: stop }
    }

    /// Makes some handoffs, and goes on until whoever watches has `seen` them.
    async fn go(
        &mut self,
        handoffs: u64,
        seen: impl AsyncFnOnce(&NullRun) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let begin = processor_time();
        for _ in 0..handoffs {
            let source = self.is_watched.then_some(&self.source);
            let cost = self.run.hand_over_seen(&*self.store, source).await?;
            self.took.add(cost.total());
        }
        seen(&self.run).await?;
        let spent = processor_time().saturating_sub(begin).as_secs_f64();
        self.processor.add(Duration::from_secs_f64(spent / handoffs.max(1) as f64));
        Ok(())
    }

    fn watched(&self) -> Watched {
        let (median_us, processor_us) = (self.took.median(), self.processor.median());
        Watched { median_us, processor_us, ..Watched::default() }
    }
}

/// Who counts.
struct Counting(Observer);

impl Counting {
    /// Waits until all handoffs are counted.
    async fn seen(&self, run: &NullRun) -> Result<(), Trouble> {
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

/// Who tells.
struct Tracing {
    sent: Arc<Sent>,
    /// Held for as long as it goes on.
    _stop: watch::Sender<bool>,
}

impl Tracing {
    /// Waits until the receiver has a span for each handoff and one for its turn.
    async fn seen(&self, run: &NullRun) -> Result<(), Trouble> {
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

/// What this process has had of the processors so far.
fn processor_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::try_from(time).unwrap_or_default()
}
