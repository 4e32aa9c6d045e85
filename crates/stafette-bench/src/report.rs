//! What was measured, for programs and for people.

use std::fmt;

use serde::Serialize;

use crate::sample::Interval;

/// Syncing a real disk is never faster than this, so the folder is not on one.
const DISK_PER_SECOND: f64 = 100_000.0;

/// Everything that was measured. Times are in microseconds, sizes in bytes.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Report {
    /// How many handoffs were asked for.
    pub handoffs: u32,
    /// How many runs at once were asked for.
    pub runs: u32,
    /// One run on disk.
    pub one_run: Pace,
    /// Many runs on disk.
    pub many_runs: Pace,
    /// One run in memory.
    pub one_run_in_memory: Pace,
    /// Many runs in memory.
    pub many_runs_in_memory: Pace,
    /// The core alone.
    pub decisions: Decisions,
    /// Early and late in a run.
    pub histories: Vec<History>,
    /// Finding frames.
    pub scanner: Vec<Scanning>,
    /// Counting handoffs and telling of them.
    pub watching: Watching,
    /// Terminals, when they were asked for.
    pub terminals: Option<TerminalCosts>,
}

/// How fast handoffs are stored.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pace {
    /// Runs at once.
    pub runs: u32,
    /// Handoffs that were made.
    pub handoffs: u64,
    /// Handoffs a second.
    pub per_second: f64,
    /// From the agent's result until the next agent's order may go out: half took less.
    pub median_us: f64,
    /// The same: 95 of 100 took less.
    pub p95_us: f64,
    /// Where the time goes.
    pub phases: Phases,
    /// Events for one handoff.
    pub events_per_handoff: f64,
    /// Bytes of text that one handoff gives the store, with its share of the snapshots.
    pub bytes_per_handoff: f64,
    /// Transactions for one handoff; less than 1 when runs share them.
    pub commits_per_handoff: Option<f64>,
    /// The most that shared one.
    pub largest_group: Option<u64>,
    /// The size of the file in the end, for one handoff.
    pub disk_bytes_per_handoff: Option<f64>,
    /// The reference: appends of as many bytes to a plain file, each synced, a second.
    pub plain_file_per_second: Option<f64>,
    /// Handoffs for one append of the reference.
    pub to_plain_file: Option<f64>,
}

/// Where the time of a handoff goes: the median of each part.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Phases {
    /// To decide what becomes true.
    pub decide_us: f64,
    /// To turn it into what the store writes.
    pub record_us: f64,
    /// To store it.
    pub append_us: f64,
    /// To make it true, and to see what is to do.
    pub commit_us: f64,
}

/// The core alone, on one processor.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Decisions {
    /// Handoffs decided and applied, a second.
    pub handoffs_per_second: f64,
    /// Events decided and applied, a second.
    pub events_per_second: f64,
}

/// What a handoff costs early and late in a run.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct History {
    /// What the run is made of.
    pub shape: &'static str,
    /// Early.
    pub early: Point,
    /// Late.
    pub late: Point,
    /// Late to early, by time.
    pub ratio: f64,
    /// The same without the store.
    pub computing_ratio: f64,
    /// The same by bytes.
    pub bytes_ratio: f64,
    /// The same by bytes of a snapshot.
    pub snapshot_ratio: f64,
    /// Taking the run up again.
    pub opening: Opening,
}

/// What a handoff costs at one point of a run.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Point {
    /// After so many handoffs.
    pub handoff: u32,
    /// The median.
    pub median_us: f64,
    /// The median without the store.
    pub computing_us: f64,
    /// Bytes of text for the store, without snapshots.
    pub bytes: f64,
    /// Bytes of the newest snapshot.
    pub snapshot_bytes: u64,
}

/// What it costs to take a run up again, as far behind its snapshot as it gets.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Opening {
    /// Events that are replayed.
    pub replayed: u64,
    /// Early in the run.
    pub early_us: f64,
    /// Late in the run.
    pub late_us: f64,
    /// Late to early.
    pub ratio: f64,
}

/// How fast frames are found.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Scanning {
    /// In what.
    pub name: &'static str,
    /// How much of it there was.
    pub bytes: u64,
    /// How many frames were in it.
    pub frames: u64,
    /// The scanner, in millions of bytes a second.
    pub scanner_mb_per_second: f64,
    /// The reference: a search for the beginning of a frame.
    pub memmem_mb_per_second: f64,
    /// The scanner to the reference.
    pub to_memmem: f64,
}

/// What it costs to see a handoff: the same run on disk, in turns with nobody who watches it, with
/// metrics and alerts, and with traces of it sent to a receiver in this process.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Watching {
    /// The reference: nobody watches.
    pub unwatched: Watched,
    /// It is counted for metrics and alerts.
    pub metrics: Watched,
    /// It is told as spans, and they are sent.
    pub tracing: Watched,
}

/// A handoff that somebody sees, or nobody.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Watched {
    /// From the agent's result until the next agent's order may go out: half took less.
    pub median_us: f64,
    /// The same, to the reference.
    pub ratio: f64,
    /// What all processors together had to do for it.
    pub processor_us: f64,
    /// The same, beyond the reference: the middle of all rounds.
    pub added_us: Interval,
    /// What was added, to the time of the reference.
    pub of_time: f64,
    /// What was added, to what the processors did for the reference.
    pub of_work: f64,
}

/// What terminals cost.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct TerminalCosts {
    /// How many sat there.
    pub idle: u32,
    /// How many printed without a pause.
    pub busy: u32,
    /// Memory for a bare terminal of the system: the reference.
    pub bare_bytes: f64,
    /// Memory for one that sits there.
    pub idle_bytes: f64,
    /// Memory for one that prints, with all that it keeps.
    pub busy_bytes: f64,
    /// How long a key takes to be seen: alone, among the idle, and among all.
    pub echoes: Vec<Crowd>,
    /// What one alone takes in, in millions of bytes a second.
    pub mb_per_second: f64,
    /// The reference: a bare terminal.
    pub bare_mb_per_second: f64,
    /// Ours to the reference.
    pub to_bare: f64,
    /// What all that print take in together, in millions of bytes a second.
    pub all_busy_mb_per_second: f64,
}

/// How long a key takes to be seen in one terminal among others.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Crowd {
    /// How many others sit there.
    pub idle: u32,
    /// How many others print.
    pub busy: u32,
    /// From the key until it is there to be drawn: half took less.
    pub median_us: f64,
    /// The same: 95 of 100 took less.
    pub p95_us: f64,
    /// The reference, a bare terminal of the system: half took less.
    pub bare_median_us: f64,
    /// Ours to the reference.
    pub to_bare: f64,
}

impl Report {
    /// What to keep in mind when reading it.
    #[must_use]
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

/// A whole number, in groups of three digits.
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
