//! What it costs to see a handoff: to count it, and to tell it as spans.

use std::time::{Duration, Instant};

use stafette_core::Event;
use stafette_store::{MemoryStore, Store, Stored};
use stafette_telemetry::Shown;
use stafette_telemetry::book::{Book, is_silent};
use stafette_telemetry::trace::{otlp, spans};

use crate::null::{NullRun, Shape};
use crate::{Trouble, Watching};

/// As many events as a follower of the feed gets at once.
const PAGE: usize = 256;

/// Folds the events of so many handoffs. `handoff_us` is what one takes on disk: the reference.
pub(crate) async fn measure(handoffs: u32, handoff_us: f64) -> Result<Watching, Trouble> {
    let store = MemoryStore::new();
    let mut run = NullRun::begin(&store, 0, Shape::Loop).await?;
    for _ in 0..handoffs {
        run.hand_over(&store).await?;
    }
    let made = run.made();
    run.end(&store).await?;
    let mut events: Vec<Stored> = Vec::new();
    loop {
        let after = events.last().map_or(0, |last| last.position);
        let page = store.feed(after, PAGE).await?;
        if page.is_empty() {
            break;
        }
        events.extend(page);
    }
    let (counting, total) = count(&events);
    // The last handoff of the run is refused or goes nowhere, so there may be one more.
    if total < u64::from(made) {
        return Err(format!("{made} handoffs were made, {total} were counted").into());
    }
    let (telling, told) = tell(&events);
    if told < u64::from(made) {
        return Err(format!("{made} handoffs were made, {told} spans were told").into());
    }
    let each = |took: Duration| took.as_secs_f64() * 1e6 / f64::from(made.max(1));
    let (metrics_us, tracing_us) = (each(counting), each(telling));
    let share = |us: f64| us / handoff_us.max(f64::MIN_POSITIVE);
    Ok(Watching {
        metrics_us,
        metrics_share: share(metrics_us),
        tracing_us,
        tracing_share: share(tracing_us),
    })
}

fn count(events: &[Stored]) -> (Duration, u64) {
    let mut shown = Shown::default();
    let begin = Instant::now();
    for stored in events {
        shown.apply(stored, |_| {});
    }
    (begin.elapsed(), shown.metrics.total)
}

/// Until the bytes of the request are there; how long a receiver takes is not ours.
fn tell(events: &[Stored]) -> (Duration, u64) {
    let (mut book, mut told) = (Book::default(), 0);
    let begin = Instant::now();
    for page in events.chunks(PAGE) {
        let mut ended = Vec::new();
        for stored in page.iter().filter(|stored| !is_silent(&stored.entry.name)) {
            let Ok(event) = serde_json::from_str::<Event>(&stored.entry.body) else { continue };
            for fact in book.apply(stored.run, stored.entry.at, &event) {
                ended.extend(spans(stored.run, stored.entry.at, &fact));
            }
        }
        told += ended.len() as u64;
        std::hint::black_box(otlp::protobuf(&ended));
    }
    (begin.elapsed(), told)
}
