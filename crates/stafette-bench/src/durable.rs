//! Measures handoffs per second, in one run and in many parallel runs.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use stafette_store::{Stats, Store};
use tokio::task::JoinSet;

use crate::null::{Cost, NullRun, Shape};
use crate::plain::PlainFile;
use crate::sample::{Sample, rate};
use crate::{BenchError, Pace, Phases};

/// The number of times that a measurement and its reference alternate.
const SLICES: u32 = 4;

/// The most syncs of the reference in one slice.
const SYNCS: u64 = 250;

/// Measures in a new file of that name in `folder`, beside a plain file.
pub(crate) async fn on_disk(
    folder: &Path,
    name: &str,
    runs: u32,
    handoffs: u32,
) -> Result<Pace, BenchError> {
    let store = crate::open(folder, &format!("{name}.db"))?;
    let reference = PlainFile::create(&folder.join(format!("{name}.txt")))?;
    let before = store.stats();
    let mut pace = pace(store.clone(), runs, handoffs, Some(reference)).await?;
    let Stats { commits, batches, largest_group, .. } = store.stats();
    // A run's first and last batches are not handoffs; they share commits like the others.
    let commits = (commits - before.commits) as f64 / (batches - before.batches).max(1) as f64;
    pace.commits_per_handoff = Some(commits);
    pace.largest_group = Some(largest_group);
    store.close().await;
    let file = std::fs::metadata(store.path())?.len();
    pace.disk_bytes_per_handoff = Some(file as f64 / pace.handoffs.max(1) as f64);
    Ok(pace)
}

/// Measures in any store, with its reference if it has one.
pub(crate) async fn pace<S: Store>(
    store: Arc<S>,
    runs: u32,
    handoffs: u32,
    mut reference: Option<PlainFile>,
) -> Result<Pace, BenchError> {
    let mut crew = Vec::new();
    for number in 0..runs {
        crew.push(NullRun::begin(&*store, number, Shape::Loop).await?);
    }
    let first = store.check().await?.events;
    let each = (handoffs / runs).max(1);
    let mut tally = Tally::default();
    for slice in 0..SLICES {
        let share = share(each, slice);
        let (took, costs);
        (crew, took, costs) = at_once(&store, crew, share).await?;
        tally.add(took, &costs);
        if let Some(plain) = reference.take() {
            let syncs = (u64::from(share) * u64::from(runs)).min(SYNCS);
            reference = Some(plain.append(tally.bytes_each(), syncs).await?);
        }
    }
    let events = store.check().await?.events - first;
    let made: u32 = crew.iter().map(NullRun::made).sum();
    let mut said = 0;
    for run in crew {
        said += run.end(&*store).await?;
    }
    // The person's request is the first handoff of each run.
    let kept = store.check().await?.handoffs;
    let expected = u64::from(made) + u64::from(runs);
    if said != made || kept != expected || tally.count != u64::from(made) {
        let counted = tally.count;
        return Err(format!("{counted} counted, {said} said, {kept} of {expected} kept").into());
    }
    Ok(tally.pace(runs, events, reference.map(|plain| plain.per_second())))
}

/// Returns the part of `each` that belongs to a slice; the slices add up to all of it.
fn share(each: u32, slice: u32) -> u32 {
    let until = |slice: u32| (u64::from(each) * u64::from(slice) / u64::from(SLICES)) as u32;
    until(slice + 1) - until(slice)
}

/// Makes that many handoffs in every run, all runs in parallel.
async fn at_once<S: Store>(
    store: &Arc<S>,
    crew: Vec<NullRun>,
    handoffs: u32,
) -> Result<(Vec<NullRun>, Duration, Vec<Cost>), BenchError> {
    let begin = Instant::now();
    let mut tasks = JoinSet::new();
    for mut run in crew {
        let store = store.clone();
        tasks.spawn(async move {
            let mut costs = Vec::with_capacity(handoffs as usize);
            for _ in 0..handoffs {
                costs.push(run.hand_over(&*store).await?);
            }
            Ok::<_, BenchError>((run, costs))
        });
    }
    let (mut crew, mut all) = (Vec::new(), Vec::new());
    while let Some(done) = tasks.join_next().await {
        let (run, costs) = done??;
        crew.push(run);
        all.extend(costs);
    }
    Ok((crew, begin.elapsed(), all))
}

/// The costs of all handoffs.
#[derive(Debug, Default)]
struct Tally {
    count: u64,
    bytes: u64,
    took: Duration,
    total: Sample,
    decide: Sample,
    record: Sample,
    append: Sample,
    commit: Sample,
}

impl Tally {
    fn add(&mut self, took: Duration, costs: &[Cost]) {
        self.took += took;
        for cost in costs {
            self.count += 1;
            self.bytes += cost.bytes + cost.snapshot_bytes;
            self.total.add(cost.total());
            self.decide.add(cost.decide);
            self.record.add(cost.record);
            self.append.add(cost.append);
            self.commit.add(cost.commit);
        }
    }

    fn bytes_each(&self) -> usize {
        usize::try_from(self.bytes / self.count.max(1)).unwrap_or(usize::MAX)
    }

    fn pace(&self, runs: u32, events: u64, reference: Option<f64>) -> Pace {
        let per_second = rate(self.count, self.took);
        Pace {
            runs,
            handoffs: self.count,
            per_second,
            median_us: self.total.median(),
            p95_us: self.total.quantile(95),
            phases: Phases {
                decide_us: self.decide.median(),
                record_us: self.record.median(),
                append_us: self.append.median(),
                commit_us: self.commit.median(),
            },
            events_per_handoff: events as f64 / self.count.max(1) as f64,
            bytes_per_handoff: self.bytes as f64 / self.count.max(1) as f64,
            commits_per_handoff: None,
            largest_group: None,
            disk_bytes_per_handoff: None,
            plain_file_per_second: reference,
            to_plain_file: reference.map(|reference| per_second / reference),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slices_of_a_measurement_are_all_of_it() {
        for each in [1, 3, 4, 62, 2000] {
            assert_eq!((0..SLICES).map(|slice| share(each, slice)).sum::<u32>(), each);
        }
    }
}
