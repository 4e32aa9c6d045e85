//! The measured values, for programs and for people.

use std::fmt;

use serde::Serialize;

use crate::sample::Interval;

/// The rate of syncs above which the folder cannot be on a real disk.
const DISK_PER_SECOND: f64 = 100_000.0;

/// All measured values. Times are in microseconds, sizes in bytes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// The requested number of handoffs.
    pub handoffs: u32,
    /// The requested number of parallel runs.
    pub runs: u32,
    /// The rate of one run on disk.
    pub one_run: Pace,
    /// The rate of many runs on disk.
    pub many_runs: Pace,
    pub one_run_in_memory: Pace,
    pub many_runs_in_memory: Pace,
    /// The rate of the core alone.
    pub decisions: Decisions,
    /// Comparisons of early and late handoffs in a run.
    pub histories: Vec<History>,
    /// The speed of finding frames, for several kinds of output.
    pub scanner: Vec<Scanning>,
    /// The cost of counting and tracing handoffs.
    pub watching: Watching,
    /// The cost of terminals, if requested.
    pub terminals: Option<TerminalCosts>,
}

/// The rate at which handoffs are stored.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pace {
    /// The number of parallel runs.
    pub runs: u32,
    pub handoffs: u64,
    pub per_second: f64,
    /// The median time from an agent's result until the next agent's order may be sent.
    pub median_us: f64,
    /// The 95th percentile of the same time.
    pub p95_us: f64,
    /// The time of each phase of a handoff.
    pub phases: Phases,
    pub events_per_handoff: f64,
    /// Bytes of text that one handoff gives to the store, including its share of the snapshots.
    pub bytes_per_handoff: f64,
    /// Transactions per handoff; less than 1 if runs share them.
    pub commits_per_handoff: Option<f64>,
    /// The most batches that shared a transaction.
    pub largest_group: Option<u64>,
    /// The final size of the file, per handoff.
    pub disk_bytes_per_handoff: Option<f64>,
    /// The reference: synced appends of as many bytes to a plain file, per second.
    pub plain_file_per_second: Option<f64>,
    /// The ratio of handoffs to appends of the reference.
    pub to_plain_file: Option<f64>,
}

/// The median time of each phase of a handoff.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Phases {
    /// The time to decide the events.
    pub decide_us: f64,
    /// The time to turn them into what the store writes.
    pub record_us: f64,
    /// The time to store them.
    pub append_us: f64,
    /// The time to apply them, and to find the work to do.
    pub commit_us: f64,
}

/// The rate of the core alone, on one processor.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Decisions {
    /// Handoffs decided and applied, per second.
    pub handoffs_per_second: f64,
    /// Events decided and applied, per second.
    pub events_per_second: f64,
}

/// The cost of a handoff early and late in a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct History {
    pub shape: &'static str,
    /// The cost early in the run.
    pub early: Point,
    /// The cost late in the run.
    pub late: Point,
    /// The ratio of late to early, by time.
    pub ratio: f64,
    /// The same ratio without the store.
    pub computing_ratio: f64,
    pub bytes_ratio: f64,
    /// The same ratio by bytes of a snapshot.
    pub snapshot_ratio: f64,
    /// The cost of opening the run again.
    pub opening: Opening,
}

/// The cost of a handoff at one point of a run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Point {
    pub handoff: u32,
    /// The median time of a handoff.
    pub median_us: f64,
    /// The median time without the store.
    pub computing_us: f64,
    /// Bytes of text for the store, without snapshots.
    pub bytes: f64,
    /// The size of the newest snapshot, in bytes.
    pub snapshot_bytes: u64,
}

/// The cost of opening a run with as many events after its snapshot as possible.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Opening {
    pub replayed: u64,
    /// The time early in the run.
    pub early_us: f64,
    /// The time late in the run.
    pub late_us: f64,
    /// The ratio of late to early.
    pub ratio: f64,
}

/// The speed of finding frames.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Scanning {
    /// The kind of output that is searched.
    pub name: &'static str,
    /// The size of the output, in bytes.
    pub bytes: u64,
    pub frames: u64,
    /// The speed of the scanner, in millions of bytes per second.
    pub scanner_mb_per_second: f64,
    /// The speed of the reference: a search for the beginning of a frame.
    pub memmem_mb_per_second: f64,
    /// The ratio of the scanner to the reference.
    pub to_memmem: f64,
}

/// The cost of observing a handoff: the same run on disk, alternating between no observer, metrics
/// and alerts, and traces that are sent to a receiver in this process.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Watching {
    /// The reference: without an observer.
    pub unwatched: Watched,
    pub metrics: Watched,
    /// With spans that are sent to a receiver.
    pub tracing: Watched,
}

/// The cost of a handoff with or without an observer.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Watched {
    /// The median time from an agent's result until the next agent's order may be sent.
    pub median_us: f64,
    /// The ratio of that time to the reference.
    pub ratio: f64,
    /// The processor time per handoff, all processors together.
    pub processor_us: f64,
    /// The processor time beyond the reference: the median of all rounds.
    pub added_us: Interval,
    /// The added processor time, relative to the time of the reference.
    pub of_time: f64,
    /// The added processor time, relative to the processor time of the reference.
    pub of_work: f64,
}

/// The cost of terminals.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TerminalCosts {
    pub idle: u32,
    /// The number of terminals that print without a pause.
    pub busy: u32,
    /// The memory of a bare terminal of the system: the reference.
    pub bare_bytes: f64,
    pub idle_bytes: f64,
    /// The memory of a printing terminal, with all that it keeps.
    pub busy_bytes: f64,
    /// The time until a key is visible: alone, among idle terminals, and among all.
    pub echoes: Vec<Crowd>,
    /// The speed of one terminal alone, in millions of bytes per second.
    pub mb_per_second: f64,
    /// The speed of the reference, a bare terminal.
    pub bare_mb_per_second: f64,
    /// The ratio of ours to the reference.
    pub to_bare: f64,
    /// The speed of all printing terminals together, in millions of bytes per second.
    pub all_busy_mb_per_second: f64,
}

/// The time until a key is visible in one terminal among others.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Crowd {
    /// The number of other idle terminals.
    pub idle: u32,
    /// The number of other printing terminals.
    pub busy: u32,
    /// The median time from the key until it is ready to be drawn.
    pub median_us: f64,
    /// The 95th percentile of the same time.
    pub p95_us: f64,
    /// The median time of the reference, a bare terminal of the system.
    pub bare_median_us: f64,
    /// The ratio of ours to the reference.
    pub to_bare: f64,
}

impl Report {
    /// Returns a caveat for the reader; `None` if there is none.
    pub fn caveat(&self) -> Option<&'static str> {
        if cfg!(debug_assertions) {
            return Some(
                "This program was built without optimisation: only counts and sizes mean anything.",
            );
        }
        let synced = self.one_run.plain_file_per_second?;
        (synced > DISK_PER_SECOND)
            .then_some("The folder does not seem to be on a disk: syncing it costs nothing.")
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paces = [
            ("on disk", &self.one_run),
            ("on disk", &self.many_runs),
            ("in memory", &self.one_run_in_memory),
            ("in memory", &self.many_runs_in_memory),
        ];
        writeln!(
            f,
            "{:<22}{:>12}{:>11}{:>11}{:>9}{:>8}{:>8}{:>15}",
            "HANDOFFS", "a second", "median", "95 %", "commits", "events", "bytes", "to plain file"
        )?;
        for (place, pace) in paces {
            write_pace(f, place, pace)?;
        }
        let decided = count(self.decisions.handoffs_per_second);
        writeln!(f, "{:<22}{decided:>12}", "decided only")?;
        if let Some(reference) = self.one_run.plain_file_per_second {
            writeln!(f, "{:<22}{:>12}{:>64}", "plain file, synced", count(reference), "1.00×")?;
        }
        writeln!(
            f,
            "\n{:<22}{:>12}{:>11}{:>11}{:>9}",
            "ONE HANDOFF", "decide", "record", "append", "commit"
        )?;
        for (place, pace) in paces {
            let Phases { decide_us, record_us, append_us, commit_us } = pace.phases;
            let title = title(place, pace.runs);
            let [decide, record, append, commit] =
                [decide_us, record_us, append_us, commit_us].map(span);
            writeln!(f, "{title:<22}{decide:>12}{record:>11}{append:>11}{commit:>9}")?;
        }
        for history in &self.histories {
            write_history(f, history)?;
        }
        writeln!(
            f,
            "\n{:<22}{:>12}{:>11}{:>11}{:>9}",
            "SCANNER", "MB/s", "memmem", "frames", "ratio"
        )?;
        for row in &self.scanner {
            writeln!(
                f,
                "{:<22}{:>12}{:>11}{:>11}{:>9}",
                row.name,
                count(row.scanner_mb_per_second),
                count(row.memmem_mb_per_second),
                count(row.frames as f64),
                ratio(row.to_memmem)
            )?;
        }
        write_watching(f, &self.watching)?;
        if let Some(terminals) = &self.terminals {
            write_terminals(f, terminals)?;
        }
        match self.caveat() {
            Some(caveat) => write!(f, "\n{caveat}"),
            None => Ok(()),
        }
    }
}

fn write_pace(f: &mut fmt::Formatter<'_>, place: &str, pace: &Pace) -> fmt::Result {
    let commits = pace.commits_per_handoff.map_or_else(String::new, |n| format!("{n:.2}"));
    writeln!(
        f,
        "{:<22}{:>12}{:>11}{:>11}{commits:>9}{:>8}{:>8}{:>15}",
        title(place, pace.runs),
        count(pace.per_second),
        span(pace.median_us),
        span(pace.p95_us),
        format!("{:.1}", pace.events_per_handoff),
        count(pace.bytes_per_handoff),
        pace.to_plain_file.map_or_else(String::new, ratio),
    )
}

fn write_watching(f: &mut fmt::Formatter<'_>, watching: &Watching) -> fmt::Result {
    writeln!(
        f,
        "\n{:<10}{:>11}{:>8}{:>11}{:>11}{:>22}{:>9}{:>9}",
        "WATCHED", "median", "ratio", "processor", "added", "95 % between", "of time", "of work"
    )?;
    let Watching { unwatched, metrics, tracing } = watching;
    let [median, processor] = [unwatched.median_us, unwatched.processor_us].map(span);
    writeln!(f, "{:<10}{median:>11}{:>8}{processor:>11}", "by nobody", "1.00×")?;
    for (name, watched) in [("metrics", metrics), ("tracing", tracing)] {
        let [median, processor] = [watched.median_us, watched.processor_us].map(span);
        let Interval { middle, low, high } = watched.added_us;
        let (added, between) = (span(middle), format!("{low:.1} … {high:.1} µs"));
        let ratio = ratio(watched.ratio);
        let [time, work] =
            [watched.of_time, watched.of_work].map(|share| format!("{:.1} %", share * 100.0));
        writeln!(
            f,
            "{name:<10}{median:>11}{ratio:>8}{processor:>11}{added:>11}{between:>22}{time:>9}{work:>9}"
        )?;
    }
    Ok(())
}

fn write_history(f: &mut fmt::Formatter<'_>, history: &History) -> fmt::Result {
    let History { early, late, opening, .. } = history;
    let heading = format!("HISTORY, {}", history.shape);
    let at = |point: &Point| format!("no. {}", count(point.handoff.into()));
    writeln!(f, "\n{heading:<22}{:>12}{:>11}{:>11}", at(early), at(late), "ratio")?;
    let rows = [
        ("a handoff", span(early.median_us), span(late.median_us), history.ratio),
        (
            "without the store",
            span(early.computing_us),
            span(late.computing_us),
            history.computing_ratio,
        ),
        ("bytes", count(early.bytes), count(late.bytes), history.bytes_ratio),
        (
            "bytes of a snapshot",
            count(early.snapshot_bytes as f64),
            count(late.snapshot_bytes as f64),
            history.snapshot_ratio,
        ),
        ("opening the run", span(opening.early_us), span(opening.late_us), opening.ratio),
    ];
    for (name, early, late, of) in rows {
        writeln!(f, "{name:<22}{early:>12}{late:>11}{:>11}", ratio(of))?;
    }
    Ok(())
}

fn write_terminals(f: &mut fmt::Formatter<'_>, costs: &TerminalCosts) -> fmt::Result {
    writeln!(
        f,
        "\n{:<22}{:>12}{:>11}{:>11}{:>9}",
        "A KEY UNTIL IT IS SEEN", "median", "95 %", "bare", "ratio"
    )?;
    for crowd in &costs.echoes {
        let among = match (crowd.idle, crowd.busy) {
            (0, 0) => "alone".to_owned(),
            (idle, 0) => format!("among {idle} idle"),
            (_, busy) => format!("… and {busy} busy"),
        };
        let [median, p95, bare] = [crowd.median_us, crowd.p95_us, crowd.bare_median_us].map(span);
        let ratio = format!("{:.0}×", crowd.to_bare);
        writeln!(f, "{among:<22}{median:>12}{p95:>11}{bare:>11}{ratio:>9}")?;
    }
    writeln!(f, "\n{:<22}{:>12}{:>11}{:>11}", "A TERMINAL", "idle", "busy", "bare")?;
    let [idle, busy, bare] = [costs.idle_bytes, costs.busy_bytes, costs.bare_bytes].map(count);
    writeln!(f, "{:<22}{idle:>12}{busy:>11}{bare:>11}", "bytes of memory")?;
    let ours = format!("{:.1}", costs.mb_per_second);
    let all = format!("{:.1}", costs.all_busy_mb_per_second);
    let bare = format!("{:.1}", costs.bare_mb_per_second);
    writeln!(f, "\n{:<22}{:>12}{:>11}{:>11}{:>9}", "PRINTED", "one", "all busy", "bare", "ratio")?;
    writeln!(f, "{:<22}{ours:>12}{all:>11}{bare:>11}{:>9}", "MB/s", ratio(costs.to_bare))
}

fn title(place: &str, runs: u32) -> String {
    if runs == 1 { format!("{place}, 1 run") } else { format!("{place}, {runs} runs") }
}

fn ratio(of: f64) -> String {
    format!("{of:.2}×")
}

fn span(micros: f64) -> String {
    match micros {
        us if us < 1000.0 => format!("{us:.1} µs"),
        us if us < 1e6 => format!("{:.2} ms", us / 1e3),
        us => format!("{:.2} s", us / 1e6),
    }
}

/// Formats a whole number in groups of three digits.
fn count(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_read_numbers_with_units() {
        assert_eq!(count(1_234_567.4), "1,234,567");
        assert_eq!(count(999.0), "999");
        assert_eq!(span(12.34), "12.3 µs");
        assert_eq!(span(1_234.0), "1.23 ms");
        assert_eq!(ratio(0.987), "0.99×");
    }
}
