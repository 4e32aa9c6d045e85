//! Measures the cost of terminals: memory for each, and the delay until a key is visible.

mod bare;
mod crew;

use std::path::Path;
use std::time::{Duration, Instant};

use stafette_agents::terminal::{Piece, Terminal};

use crate::sample::{Sample, rate};
use crate::{BenchError, Crowd, TerminalCosts};
use bare::BarePty;
use crew::Crew;

/// The number of keys that are typed at each point: less than a line of a terminal in all.
const KEYS: u32 = 300;

/// The time of typing at each point, unless a few keys take longer.
const TYPING: Duration = Duration::from_secs(10);

/// The number of keys that are typed however long it takes.
const FEW: u32 = 5;

/// The least and the most that is printed through one terminal alone, in bytes.
const FLOOD: (u64, u64) = (64 << 10, 8 << 20);

/// A program that shows what is typed, as every shell's prompt does.
const QUIET: &str = "exec cat";

/// A program that never stops printing.
const BUSY: &str = "exec yes 'The tests pass again, two of them took the clock from the machine.'";

/// Measures in `folder`: `idle` terminals first, then `busy` ones beside them.
///
/// # Errors
/// If a terminal is not available, or does not work.
pub async fn terminals(folder: &Path, idle: u32, busy: u32) -> Result<TerminalCosts, BenchError> {
    let mut crew = Crew::new(folder)?;
    let (throughput, bare_throughput) = flood(&mut crew, u64::from(idle + busy) << 16).await?;

    let empty = memory()?;
    let pairs = (0..idle).map(|_| BarePty::open()).collect::<Result<Vec<_>, _>>()?;
    let bare_bytes = each(memory()?, empty, idle);
    drop(pairs);

    let probe = crew.join(QUIET).await?;
    let alone = echo(&probe, 0, 0).await?;
    let before = memory()?;
    for _ in 0..idle {
        crew.join(QUIET).await?;
    }
    let idle_bytes = each(memory()?, before, idle);
    let among_idle = echo(&probe, idle, 0).await?;

    let before = memory()?;
    let mut printing = Vec::new();
    for _ in 0..busy {
        printing.push(crew.join(BUSY).await?);
    }
    let printed = |all: &[Terminal]| all.iter().map(|one| one.snapshot().seq).sum::<u64>();
    let (begin, first) = (Instant::now(), printed(&printing));
    let among_busy = echo(&probe, idle, busy).await?;
    let all_busy = rate(printed(&printing) - first, begin.elapsed()) / 1e6;
    let busy_bytes = each(memory()?, before, busy);
    drop(printing);
    crew.leave().await;
    Ok(TerminalCosts {
        idle,
        busy,
        bare_bytes,
        idle_bytes,
        busy_bytes,
        echoes: vec![alone, among_idle, among_busy],
        mb_per_second: throughput,
        bare_mb_per_second: bare_throughput,
        to_bare: throughput / bare_throughput.max(f64::MIN_POSITIVE),
        all_busy_mb_per_second: all_busy,
    })
}

/// Measures the same program printing through our terminal and through a bare one, in millions of
/// bytes per second.
async fn flood(crew: &mut Crew, bytes: u64) -> Result<(f64, f64), BenchError> {
    let bytes = bytes.clamp(FLOOD.0, FLOOD.1);
    let program = format!("yes 'a line of an agent that talks a lot' | head -c {bytes}");
    let begin = Instant::now();
    crew.see_through(&program).await?;
    let ours = rate(bytes, begin.elapsed()) / 1e6;
    let begin = Instant::now();
    let read = BarePty::open()?.read_all(&program)?;
    let bare = rate(bytes, begin.elapsed()) / 1e6;
    if read < bytes {
        return Err(format!("{read} of {bytes} bytes came through").into());
    }
    Ok((ours, bare))
}

/// Measures the time until a key is ready to be drawn, alternating with a bare terminal.
async fn echo(probe: &Terminal, idle: u32, busy: u32) -> Result<Crowd, BenchError> {
    let mut bare = BarePty::open()?;
    let (mut ours, mut reference) = (Sample::default(), Sample::default());
    let mut follower = probe.subscribe(None);
    follower.next().await.ok_or("the terminal is gone")?;
    let typing = Instant::now();
    for key in 0..KEYS {
        if key >= FEW && typing.elapsed() > TYPING {
            break;
        }
        let begin = Instant::now();
        probe.write(b"k".to_vec()).await?;
        loop {
            match follower.next().await.ok_or("the terminal is gone")? {
                Piece::Bytes { bytes, .. } if bytes.contains(&b'k') => break,
                Piece::Bytes { .. } | Piece::Snapshot(_) => {}
            }
        }
        ours.add(begin.elapsed());
        reference.add(bare.echo()?);
    }
    let to_bare = ours.median() / reference.median().max(f64::MIN_POSITIVE);
    Ok(Crowd {
        idle,
        busy,
        median_us: ours.median(),
        p95_us: ours.quantile(95),
        bare_median_us: reference.median(),
        to_bare,
    })
}

/// Returns the memory of this process in bytes, including what the system has swapped out.
fn memory() -> Result<u64, BenchError> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let bytes = |name: &str| -> Result<u64, BenchError> {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        let kilobytes = line.and_then(|line| line.split_whitespace().next());
        let kilobytes = kilobytes.ok_or("the system does not tell how much memory is taken")?;
        Ok(kilobytes.parse::<u64>()? * 1024)
    };
    Ok(bytes("RssAnon:")? + bytes("VmSwap:")?)
}

fn each(after: u64, before: u64, count: u32) -> f64 {
    after.saturating_sub(before) as f64 / f64::from(count.max(1))
}
